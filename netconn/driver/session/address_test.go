package session_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

// wires is a server of Players, and clients that dial it from addresses of the test's choice.
type wires struct {
	t      *testing.T
	link   driver.Link
	clock  time.Time
	server *udptest.Wire
	srv    *driver.Driver
	conns  []*driver.Conn // at the server, in the order in which they joined
	ends   []*wireEnd     // whose datagrams are carried
	told   []string
	types  []channel.Type
}

type wireEnd struct {
	d    *driver.Driver
	s    *udptest.Wire
	addr netip.AddrPort
}

var wireKey = netcode.Key{1}

func newWires(t *testing.T, link driver.Link, types ...channel.Type) *wires {
	w := &wires{t: t, link: link, types: types, clock: time.Unix(1_700_000_000, 0), server: udptest.NewWire(netip.MustParseAddrPort("127.0.0.1:7777"))}
	players, err := session.NewPlayers(session.Config[string]{
		ID:     func(c *driver.Conn) string { return c.Login().URL },
		New:    func(c *driver.Conn) string { w.told = append(w.told, "new "+c.Login().URL); return c.Login().URL },
		Rejoin: func(_ *driver.Conn, p string) { w.told = append(w.told, "back "+p) },
		Away:   func(p string, _ netconn.CloseResult) { w.told = append(w.told, "away "+p) },
		Gone:   func(p string, _ netconn.CloseResult) { w.told = append(w.told, "gone "+p) },
	})
	require.NoError(t, err)
	cfg := w.config(w.server)
	cfg.Link, cfg.Closed = link, players.Closed
	cfg.Joined = func(c *driver.Conn) {
		w.conns = append(w.conns, c)
		players.Joined(c)
	}
	w.srv, err = driver.Listen("", cfg)
	require.NoError(t, err)
	return w
}

func (w *wires) config(s *udptest.Wire) driver.Config {
	return driver.Config{Socket: s, Link: w.link, Clock: func() time.Time { return w.clock }, Timeout: 20 * time.Second, Channels: w.types}
}

func (w *wires) dial(name, addr string) *driver.Driver {
	s := udptest.NewWire(netip.MustParseAddrPort("127.0.0.1:1234"))
	cfg := w.config(s)
	cfg.Client.URL = name
	if _, tokens := w.link.(driver.Netcode); tokens {
		unix := uint64(w.clock.Unix())
		token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: uint64(name[0]), Create: unix, Expire: unix + 60, Timeout: 5, Servers: []netip.AddrPort{w.server.LocalAddr()}, PrivateKey: wireKey})
		require.NoError(w.t, err)
		cfg.Link = driver.Netcode{Token: token}
	}
	d, err := driver.Dial(w.server.LocalAddr().String(), cfg)
	require.NoError(w.t, err)
	w.ends = append(w.ends, &wireEnd{d, s, netip.MustParseAddrPort(addr)})
	return d
}

func (w *wires) run(d time.Duration) {
	for until := w.clock.Add(d); w.clock.Before(until); {
		w.clock = w.clock.Add(16 * time.Millisecond)
		for _, e := range w.ends {
			e.d.TickDispatch(w.clock)
			e.d.TickFlush(w.clock)
			for _, m := range e.s.Out {
				w.server.In = append(w.server.In, udp.Message{Buf: m.Buf, Addr: e.addr})
			}
			e.s.Out = nil
		}
		w.srv.TickDispatch(w.clock)
		w.srv.TickFlush(w.clock)
		for _, m := range w.server.Out {
			for _, e := range w.ends {
				if e.addr == m.Addr {
					e.s.In = append(e.s.In, udp.Message{Buf: m.Buf, Addr: w.server.LocalAddr()})
				}
			}
		}
		w.server.Out = nil
	}
}

// TestAddressIsAnothers: a player is kept when somebody else connects from its address, as behind a router that has restarted, and so is one whose program has crashed and starts again at its
// port, whatever the link.
func TestAddressIsAnothers(t *testing.T) {
	for _, link := range []driver.Link{driver.Netcode{Key: wireKey, TakeOver: true}, driver.PlainSalted{}, driver.PlainUnreal51(), driver.PlainUnreal53()} {
		w := newWires(t, link)
		w.dial("Ann", "192.0.2.1:1000")
		w.run(2 * time.Second)
		w.ends = nil // it crashed, or its router
		w.run(3 * time.Second)
		if _, tokens := link.(driver.Netcode); tokens {
			w.dial("Bob", "192.0.2.1:1000")
			w.run(time.Second)
			w.dial("Ann", "192.0.2.1:1001")
			w.run(time.Second)
			require.Equal(t, []string{"new Ann", "away Ann", "new Bob", "back Ann"}, w.told)
		} else {
			w.dial("Ann", "192.0.2.1:1000")
			w.run(time.Second)
			require.Equal(t, []string{"new Ann", "away Ann", "back Ann"}, w.told, "%T", link)
		}
	}
}

// TestSaidThenAnothers: who has said that it leaves isn't kept because somebody connects from its address before its close is through.
func TestSaidThenAnothers(t *testing.T) {
	chat := channel.Type{Name: bunch.Name{Text: "chat"}, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}
	for _, link := range []driver.Link{driver.PlainSalted{}, driver.PlainUnreal51(), driver.PlainUnreal53()} {
		w := newWires(t, link, chat)
		ann := w.dial("Ann", "192.0.2.1:1000").Server
		w.run(time.Second)
		ch, err := ann().Open(chat.Name, channel.Nop{})
		require.NoError(t, err)
		for range 200 {
			_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		ann().CloseWithReason("enough")
		w.run(100 * time.Millisecond)
		require.False(t, w.conns[0].Closed(), "%T", link)
		w.ends = nil // it is killed
		w.run(time.Second)
		w.dial("Bob", "192.0.2.1:1000")
		w.run(2 * time.Second)
		require.Equal(t, []string{"new Ann", "gone Ann", "new Bob"}, w.told, "%T", link)
		require.Equal(t, "enough", w.conns[0].Result().Reason)
	}
}
