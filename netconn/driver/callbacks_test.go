package driver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// batchOf is a socket that handles so many datagrams at once.
type batchOf struct {
	udp.Socket
	n int
}

func (b batchOf) BatchSize() int { return b.n }

// rebinds moves a driver to a socket of smaller batches with the first bunch that it gets, and counts them.
type rebinds struct {
	channel.Nop
	n *int
}

func (h rebinds) ReceivedBunch(ch *channel.Channel, _ *bunch.In) {
	if *h.n++; *h.n == 1 {
		d := ConnOf(ch).Driver()
		if err := d.Rebind(batchOf{d.socket, 1}); err != nil {
			panic(err)
		}
	}
}

// TestRebindInAHandler: a handler may give the driver another socket; the datagrams that were read with its own are taken all the same.
func TestRebindInAHandler(t *testing.T) {
	name, n := bunch.Name{Index: 300}, 0
	types := []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return rebinds{n: &n} }}}
	w := newTown(t, 1, netsim.Settings{}, Config{Link: PlainSalted{}, Channels: types})
	var clients []*townClient
	for range 8 {
		clients = append(clients, w.dial(Config{Link: PlainSalted{}, Channels: types}))
	}
	w.until("joined", func() bool {
		for _, c := range clients {
			if !c.joined {
				return false
			}
		}
		return true
	})
	for range 60 {
		w.step()
	}
	for _, c := range clients {
		ch, err := c.Server().Open(name, channel.Nop{})
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
		require.NoError(t, err)
	}
	w.step() // the clients send
	refused := w.server.Counters.Refused
	w.step()
	require.Equal(t, 8, n)
	require.Equal(t, refused, w.server.Counters.Refused)
}

// TestClosedAmidJoining: a connection that a callback of the login ends isn't told to have joined afterwards.
func TestClosedAmidJoining(t *testing.T) {
	for name, end := range map[string]func(c *Conn){
		"Abort":           func(c *Conn) { c.Abort(c.Now(), "too slow") },
		"CloseWithReason": func(c *Conn) { c.CloseWithReason("too slow") },
	} {
		var w *town
		joined, admitted, closed := 0, 0, 0
		w = newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, Config{Link: PlainSalted{},
			Joined: func(*Conn) { joined++ },
			Closed: func(*Conn, netconn.CloseResult) { closed++ },
			Server: control.ServerConfig{Admitted: func() { admitted++ }, NetSpeed: func(int) {
				for c := range w.server.Conns {
					end(c)
				}
			}}})
		c := w.dial(Config{Link: PlainSalted{}})
		w.until("ended", func() bool { return closed == 1 && c.result != nil })
		require.Zero(t, joined, name)
		require.Zero(t, admitted, name)
		require.Zero(t, w.server.Counters.Joined, name)
	}
}

// TestCloseAsAClientComesAgain: a game that closes its server when it hears that a client's former connection has ended, as the client connects again
// from the same address, hears of no other connection.
func TestCloseAsAClientComesAgain(t *testing.T) {
	for name, link := range map[string]Link{"unreal": PlainUnreal53(), "salted": PlainSalted{}} {
		var w *town
		ended, after := false, 0
		note := func(*Conn) {
			if ended {
				after++
			}
		}
		w = newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, Config{Link: link, Accepted: note, Joined: note,
			Closed: func(*Conn, netconn.CloseResult) {
				ended = true
				_ = w.server.Close()
			}})
		at := netip.MustParseAddrPort("10.3.0.1:1000")
		w.nextAddr = at
		first := w.dial(Config{Link: link})
		w.until("joined", func() bool { return first.joined })
		w.sockets, w.nextAddr = nil, at // its process has crashed
		_ = w.dial(Config{Link: link})
		w.until("replaced", func() bool { return ended })
		for range 100 {
			w.step()
		}
		require.Zero(t, after, name)
		require.Zero(t, w.server.Len(), name)
	}
}

// TestClosedForNoReason: CloseWithError(nil) closes, before the login and later.
func TestClosedForNoReason(t *testing.T) {
	for name, server := range map[string]Config{
		"accepted": {Accepted: func(c *Conn) { c.CloseWithError(nil) }},
		"joined":   {Joined: func(c *Conn) { c.CloseWithError(nil) }},
	} {
		server.Link = PlainSalted{}
		w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, server)
		c := w.dial(Config{Link: PlainSalted{}})
		w.until("ended", func() bool { return c.result != nil && w.server.Len() == 0 })
		require.Equal(t, netconn.ClosedByPeer, c.result.Code, name)
	}
}
