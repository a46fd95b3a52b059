package driver

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestCancelledDials: a client that is closed at any moment of its dial keeps no place at the server for longer than a goodbye takes, on links that know
// its slot by then, and the same client gets in at once; nobody is told of a dial that its own game has ended.
func TestCancelledDials(t *testing.T) {
	links := map[string]func(w *town, token uint64) Link{
		"netcode": func(w *town, token uint64) Link {
			l := Netcode{Key: netcode.Key{1}}
			if w.server != nil {
				l.Token = townToken(t, w, token, func(c *netcode.TokenConfig) { c.ClientID = 9 })
			}
			return l
		},
		"salted": func(*town, uint64) Link { return PlainSalted{ProtocolID: 5} },
	}
	for name, link := range links {
		for steps := range 12 {
			t.Run(fmt.Sprintf("%s, after %d ticks", name, steps), func(t *testing.T) {
				w := newTown(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, Config{Link: link(&town{}, 0), MaxConns: 1})
				c := w.dial(Config{Link: link(w, 1)})
				for range steps {
					w.step()
				}
				dialing := c.Server() == nil
				require.NoError(t, c.Close())
				if dialing {
					require.Nil(t, c.result)
				}
				for range 12 {
					w.now = w.now.Add(16 * time.Millisecond)
					w.server.TickDispatch(w.now)
					w.server.TickFlush(w.now)
				}
				w.clients, w.nextAddr = nil, netip.MustParseAddrPort("10.2.0.1:1000")
				again := w.dial(Config{Link: link(w, 2)})
				for range 60 {
					w.step()
				}
				require.True(t, again.joined, "%v; the server has %d", again.result, w.server.Len())
			})
		}
	}
}

// TestKickedAtOnce: a client whose connection a server ends in Accepted hears of it at once, though the goodbye overtakes the word that it has a slot.
func TestKickedAtOnce(t *testing.T) {
	for name, link := range map[string]Link{"netcode": Netcode{Key: netcode.Key{1}}, "salted": PlainSalted{ProtocolID: 5}} {
		for seed := range uint64(300) {
			w := newTown(t, seed, netsim.Settings{LagMin: 20 * time.Millisecond, LagMax: 80 * time.Millisecond}, Config{Link: link, Accepted: func(c *Conn) { c.Abort(c.Now(), "no") }})
			l := link
			if n, ok := l.(Netcode); ok {
				n.Token = townToken(t, w, seed+1, nil)
				l = n
			}
			c := w.dial(Config{Link: l})
			for range 60 {
				w.step()
			}
			require.NotNil(t, c.result, "%s, seed %d", name, seed)
			require.ErrorIs(t, c.result.Err, ErrDenied, "%s, seed %d: %v", name, seed, c.result)
		}
	}
}

// TestNothingIsDoneAfterClose: of the functions given to Do none runs after one that closes the driver.
func TestNothingIsDoneAfterClose(t *testing.T) {
	m := newMemory(t, Config{Link: PlainSalted{}}, Config{Link: PlainSalted{}})
	done := 0
	m.server.Do(func() { done++ })
	m.server.Do(func() { require.NoError(t, m.server.Close()) })
	m.server.Do(func() { done++ })
	m.step()
	m.server.Do(func() { done++ })
	m.step()
	require.Equal(t, 1, done)
}

// TestShutdownWhileDialing: a client that is shut down before its handshake is done doesn't join, and its server hears that it leaves.
func TestShutdownWhileDialing(t *testing.T) {
	for _, link := range []Link{Netcode{Key: netcode.Key{1}}, PlainSalted{}, PlainUnreal51()} {
		cfg := Config{Link: link}
		if _, ok := link.(PlainUnreal); ok {
			cfg.Protocol = netconn.Unreal51()
		}
		m := newMemory(t, cfg, cfg)
		m.client.Shutdown("not today")
		m.until("closed", func() bool { return m.cres != nil })
		require.Equal(t, netconn.ClosedByUs, m.cres.Code, "%v", m.cres)
		require.Equal(t, "shutting down: not today", m.cres.Reason)
		require.Nil(t, m.cc)
		require.Nil(t, m.sc)
		m.until("gone", func() bool { return m.server.Len() == 0 })
	}
}
