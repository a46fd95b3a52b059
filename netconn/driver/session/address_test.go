package session_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// wire is a socket whose datagrams the test carries.
type wire struct {
	udp.Socket
	in, out []udp.Message
}

func newWire(addr netip.AddrPort) *wire {
	s, _ := udp.Pair(addr, netip.MustParseAddrPort("127.0.0.1:9"))
	return &wire{Socket: s}
}

func (s *wire) TryReadBatch(msgs []udp.Message) (int, error) {
	n := min(len(msgs), len(s.in))
	for i, m := range s.in[:n] {
		msgs[i].Addr, msgs[i].N = m.Addr, copy(msgs[i].Buf, m.Buf)
	}
	s.in = s.in[n:]
	return n, nil
}

func (s *wire) WriteBatch(msgs []udp.Message) (int, error) {
	for _, m := range msgs {
		s.out = append(s.out, udp.Message{Buf: slices.Clone(m.Buf), Addr: m.Addr})
	}
	return len(msgs), nil
}

// TestAddressIsAnothers: a player is kept when somebody else connects from its address, as behind a router that has restarted, and so is one whose program has crashed and starts again at its
// port, whatever the link.
func TestAddressIsAnothers(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.1:7777")
	key := netcode.Key{1}
	for _, link := range []driver.Link{driver.Netcode{Key: key, TakeOver: true}, driver.PlainSalted{}, driver.PlainUnreal51(), driver.PlainUnreal53()} {
		_, tokens := link.(driver.Netcode)
		clock := time.Unix(1_700_000_000, 0)
		now := func() time.Time { return clock }
		var told []string
		players, err := session.NewPlayers(session.Config[string]{
			ID:     func(c *driver.Conn) string { return c.Login().URL },
			New:    func(c *driver.Conn) string { told = append(told, "new "+c.Login().URL); return c.Login().URL },
			Rejoin: func(_ *driver.Conn, p string) { told = append(told, "back "+p) },
			Away:   func(p string, r netconn.CloseResult) { told = append(told, "away "+p) },
			Gone:   func(p string, r netconn.CloseResult) { told = append(told, "gone "+p) },
		})
		require.NoError(t, err)
		server := newWire(at)
		srv, err := driver.Listen("", driver.Config{Link: link, Socket: server, Clock: now, Timeout: 20 * time.Second, Joined: players.Joined, Closed: players.Closed})
		require.NoError(t, err)
		type end struct {
			d    *driver.Driver
			s    *wire
			addr netip.AddrPort
		}
		var ends []*end
		dial := func(name, addr string) {
			cfg := driver.Config{Link: link, Socket: newWire(netip.MustParseAddrPort("127.0.0.1:1234")), Clock: now, Timeout: 20 * time.Second}
			cfg.Client.URL = name
			if tokens {
				unix := uint64(clock.Unix())
				token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: uint64(name[0]), Create: unix, Expire: unix + 60, Timeout: 5, Servers: []netip.AddrPort{at}, PrivateKey: key})
				require.NoError(t, err)
				cfg.Link = driver.Netcode{Token: token}
			}
			d, err := driver.Dial(at.String(), cfg)
			require.NoError(t, err)
			ends = append(ends, &end{d, cfg.Socket.(*wire), netip.MustParseAddrPort(addr)})
		}
		run := func(d time.Duration) {
			for until := clock.Add(d); clock.Before(until); {
				clock = clock.Add(16 * time.Millisecond)
				for _, e := range ends {
					e.d.TickDispatch(clock)
					e.d.TickFlush(clock)
					for _, m := range e.s.out {
						server.in = append(server.in, udp.Message{Buf: m.Buf, Addr: e.addr})
					}
					e.s.out = nil
				}
				srv.TickDispatch(clock)
				srv.TickFlush(clock)
				for _, m := range server.out {
					for _, e := range ends {
						if e.addr == m.Addr {
							e.s.in = append(e.s.in, udp.Message{Buf: m.Buf, Addr: at})
						}
					}
				}
				server.out = nil
			}
		}
		dial("Ann", "192.0.2.1:1000")
		run(2 * time.Second)
		ends = nil // it crashed, or its router
		run(3 * time.Second)
		if tokens {
			dial("Bob", "192.0.2.1:1000")
			run(time.Second)
			dial("Ann", "192.0.2.1:1001")
			run(time.Second)
			require.Equal(t, []string{"new Ann", "away Ann", "new Bob", "back Ann"}, told)
		} else {
			dial("Ann", "192.0.2.1:1000")
			run(time.Second)
			require.Equal(t, []string{"new Ann", "away Ann", "back Ann"}, told, "%T", link)
		}
	}
}
