//go:build !js

package web

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/echotest"
	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// lamp is an actor.
type lamp struct {
	actorrep.Base
	Brightness actorrep.Var[uint8] `net:"max=100"`
}

var flip = actorrep.ServerRPC(func(_ actorrep.Call, l *lamp, to uint8) error {
	l.Brightness.Set(to)
	return nil
}, actorrep.Reliable)

// game is a server of lamps, one for each client, and the clients.
type game struct {
	t       testing.TB
	door    *door
	gate    *gate
	world   *actorrep.World
	srv     *driver.Driver
	lamps   map[*driver.Conn]*lamp
	ended   []netconn.CloseResult
	clients []*player
	also    func(now time.Time) // is ticked too
}

// gate is a socket that passes nothing once it is shut.
type gate struct {
	udp.Socket
	shut bool
}

func (g *gate) TryReadBatch(msgs []udp.Message) (int, error) {
	n, err := g.Socket.TryReadBatch(msgs)
	if g.shut {
		n = 0
	}
	return n, err
}

func (g *gate) WriteBatch(msgs []udp.Message) (int, error) {
	if g.shut {
		return len(msgs), nil
	}
	return g.Socket.WriteBatch(msgs)
}

// SendsWhole is for the function of that name.
func (g *gate) SendsWhole() bool { return udp.SendsWhole(g.Socket) }

// player is a client.
type player struct {
	world  *actorrep.World
	driver *driver.Driver
	socket udp.Socket
	conn   *driver.Conn
	sink   echotest.Sink
	end    *netconn.CloseResult
}

func (p *player) lamps() (all []*lamp) {
	for a := range p.world.All {
		if l, ok := a.(*lamp); ok {
			all = append(all, l)
		}
	}
	return all
}

func newWorld(t testing.TB, server bool) *actorrep.World {
	w := actorrep.NewClient(actorrep.Config{})
	if server {
		w = actorrep.NewServer(actorrep.Config{})
	}
	require.NoError(t, w.Register("lamp", (*lamp)(nil), actorrep.RPCs{"flip": flip}))
	return w
}

var gameKey = netcode.Key{1, 2, 3}

func newGame(t testing.TB, cfg driver.Config, sc ServerConfig) *game {
	g := &game{t: t, door: newDoor(t, sc), world: newWorld(t, true), lamps: map[*driver.Conn]*lamp{}}
	socket, err := udp.Listen("127.0.0.1:0", udp.Config{NoPoller: true, Whole: true})
	require.NoError(t, err)
	g.gate = &gate{Socket: socket}
	cfg.Socket = udp.Join(Answer(g.gate), g.door.Server)
	if cfg.Link == nil {
		cfg.Link = driver.Netcode{Key: gameKey}
	}
	cfg.Channels = append(g.world.ChannelTypes(), echotest.Server())
	if cfg.Joined == nil {
		cfg.Joined = func(c *driver.Conn) {
			l := &lamp{}
			require.NoError(t, g.world.Spawn(l))
			l.SetOwner(g.world.AddConn(c))
			g.lamps[c] = l
		}
	}
	closed := cfg.Closed
	cfg.Closed = func(c *driver.Conn, r netconn.CloseResult) {
		g.ended = append(g.ended, r)
		if closed != nil {
			closed(c, r)
		}
	}
	g.srv, err = driver.Listen("", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.srv.Close()) })
	return g
}

// dial adds a client that comes by a way.
func (g *game) dial(way Way, cfg driver.Config) *player {
	if way == UDP {
		return g.dialOver(nil, cfg)
	}
	s, err := Dial(context.Background(), g.door.url, DialConfig{Way: way, CertificateHash: g.door.hash})
	require.NoError(g.t, err)
	return g.dialOver(s, cfg)
}

// dialOver adds a client with a socket; nil is the driver's own.
func (g *game) dialOver(s udp.Socket, cfg driver.Config) *player {
	p := &player{world: newWorld(g.t, false), socket: s}
	cfg.Socket = s
	if cfg.Link == nil {
		cfg.Link = driver.Netcode{Key: gameKey}
	}
	cfg.Channels = append(p.world.ChannelTypes(), echotest.Client())
	cfg.Joined = func(c *driver.Conn) { p.conn = c }
	cfg.Closed = func(_ *driver.Conn, r netconn.CloseResult) { p.end = &r }
	var err error
	p.driver, err = driver.Dial(g.srv.LocalAddr().String(), cfg)
	require.NoError(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, p.driver.Close()) })
	g.clients = append(g.clients, p)
	return p
}

func (g *game) tick() {
	now := time.Now()
	g.srv.TickDispatch(now)
	g.world.Step(g.srv.Time(now))
	g.srv.TickFlush(now)
	for _, p := range g.clients {
		p.driver.TickDispatch(now)
		p.world.Step(p.driver.Time(now))
		p.driver.TickFlush(now)
	}
	if g.also != nil {
		g.also(now)
	}
	time.Sleep(5 * time.Millisecond)
}

func (g *game) until(what string, f func() bool) {
	g.t.Helper()
	for end := time.Now().Add(patience); !f(); g.tick() {
		if time.Now().After(end) {
			g.t.Fatalf("never: %s; door %+v, server %+v", what, g.door.Counters(), g.srv.Counters)
		}
	}
}

func links() map[string]driver.Link {
	return map[string]driver.Link{"netcode": driver.Netcode{Key: gameKey}, "salted": driver.PlainSalted{}, "unreal": driver.PlainUnreal51()}
}

// TestOneWorld: clients that come by UDP, WebTransport and WebSocket are in one world of one driver, over every link: large messages are echoed in order, a
// call of each changes its actor, all see the same; each has its remote address; when they leave, the server hears of it, and their sessions end.
func TestOneWorld(t *testing.T) {
	for name, link := range links() {
		t.Run(name, func(t *testing.T) {
			g := newGame(t, driver.Config{Link: link}, ServerConfig{})
			for _, way := range []Way{UDP, WebTransport, WebSocket, WebTransport, WebSocket} {
				g.dial(way, driver.Config{Link: link})
			}
			g.until("all joined", func() bool { return len(g.lamps) == len(g.clients) })
			found := map[string]int{}
			seen := map[netip.AddrPort]bool{}
			for c := range g.srv.Conns {
				way := WayOf(c.RemoteAddr())
				require.True(t, c.RemoteAddr().Addr().Unmap().WithZone("").IsLoopback())
				require.Equal(t, way != UDP, g.door.Has(c.RemoteAddr()))
				require.False(t, seen[c.RemoteAddr()])
				seen[c.RemoteAddr()] = true
				found[way.String()]++
			}
			require.Equal(t, map[string]int{"udp": 1, "webtransport": 2, "websocket": 2}, found)

			want := []string{}
			for i := range 100 {
				want = append(want, fmt.Sprint(i, string(make([]byte, i*50))))
			}
			for i, p := range g.clients {
				require.NoError(t, p.sink.Send(p.conn, want))
				g.until("the lamp is there", func() bool { return p.own() != nil })
				require.NoError(t, flip.Call(p.own(), uint8(10+i)))
			}
			g.until("all echoed, and the same world everywhere", func() bool {
				for _, p := range g.clients {
					sum := 0
					for _, l := range p.lamps() {
						sum += int(l.Brightness.Get())
					}
					if len(p.sink.Got) < len(want) || len(p.lamps()) != len(g.clients) || sum != 10+11+12+13+14 {
						return false
					}
				}
				return true
			})
			for _, p := range g.clients {
				require.Equal(t, want, p.sink.Got)
			}
			n := g.door.Counters()
			require.EqualValues(t, []uint64{2, 2}, []uint64{n.WebTransports, n.WebSockets})
			require.Less(t, n.TooLarge, uint64(50), "those that search for the packet size")
			require.Equal(t, 4, g.door.Len())
			for _, p := range g.clients {
				p.conn.CloseWithReason("bye")
			}
			g.until("all left", func() bool { return len(g.ended) == len(g.clients) })
			for _, p := range g.clients {
				require.NoError(t, p.driver.Close())
			}
			g.clients = nil
			g.until("no sessions", func() bool { return g.door.Len() == 0 })
		})
	}
}

// own is the player's lamp.
func (p *player) own() *lamp {
	for _, l := range p.lamps() {
		if l.IsOwned() {
			return l
		}
	}
	return nil
}

// TestPageClosed: the connection of a session that has ended without a word ends at once, and no other.
func TestPageClosed(t *testing.T) {
	g := newGame(t, driver.Config{}, ServerConfig{})
	g.door.Tell(g.srv)
	for _, way := range ways {
		g.door.wait = time.Hour
		stays := g.dial(way, driver.Config{})
		goes := g.dial(way, driver.Config{})
		g.until("joined", func() bool { return stays.conn != nil && goes.conn != nil })
		g.ended = nil
		g.clients = g.clients[:len(g.clients)-1] // its driver says nothing any more
		require.NoError(t, goes.socket.Close())
		g.until("it ended", func() bool { return len(g.ended) == 1 })
		require.Equal(t, netconn.ClosedByPeer, g.ended[0].Code)
		require.Nil(t, stays.end)
	}
}

// token is a fresh connect token.
func (g *game) token(id uint64) netcode.Token {
	now := uint64(time.Now().Unix())
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: id, Create: now, Expire: now + 30, Timeout: 5,
		Servers: []netip.AddrPort{g.srv.LocalAddr()}, PrivateKey: gameKey})
	require.NoError(g.t, err)
	return token
}

// TestDoorAlone: a server without UDP takes the tokens that name what is in its Addrs.
func TestDoorAlone(t *testing.T) {
	d := newDoor(t, ServerConfig{})
	server, joined := netip.MustParseAddrPort("192.0.2.1:443"), 0
	srv, err := driver.Listen("", driver.Config{Socket: d.Server, Link: driver.Netcode{Key: gameKey, Addrs: []netip.AddrPort{server}}, Joined: func(*driver.Conn) { joined++ }})
	require.NoError(t, err)
	var clients []*driver.Driver
	for _, way := range ways {
		cl, err := driver.Dial(server.String(), driver.Config{Socket: d.dial(way), Link: driver.Netcode{Key: gameKey}, Joined: func(*driver.Conn) { joined++ }})
		require.NoError(t, err)
		clients = append(clients, cl)
	}
	eventually(t, "joined", func() bool {
		now := time.Now()
		for _, d := range append(clients, srv) {
			d.TickDispatch(now)
			d.TickFlush(now)
		}
		return joined == 2*len(ways)
	})
	for _, d := range append(clients, srv) {
		require.NoError(t, d.Close())
	}
}

// TestAdmission: a connect token admits by every way, once; without one nothing is answered, and the session ends.
func TestAdmission(t *testing.T) {
	for _, way := range ways {
		t.Run(way.String(), func(t *testing.T) {
			g := newGame(t, driver.Config{}, ServerConfig{HalfOpen: 500 * time.Millisecond})
			other := g.dial(way, driver.Config{Link: driver.Netcode{Key: netcode.Key{9}}})
			g.until("the session ends", func() bool { return other.end != nil || other.driver.Err() != nil })
			require.ErrorIs(t, other.driver.Err(), ErrEnded)
			require.Contains(t, other.driver.Err().Error(), "connect token")
			require.EqualValues(t, 1, g.door.Counters().Unanswered)
			require.Zero(t, g.srv.Counters.Accepted)

			p := g.dial(way, driver.Config{Link: driver.Netcode{Token: g.token(7)}})
			g.until("joined", func() bool { return p.conn != nil && len(g.lamps) == 1 })
			for c := range g.srv.Conns {
				require.EqualValues(t, 7, c.ClientID())
			}
		})
	}
}

// lateWords is a link whose sends fail before its receiving half has read why.
type lateWords struct{ failed chan struct{} }

func (l *lateWords) send([]byte) error {
	close(l.failed)
	return net.ErrClosed
}

func (l *lateWords) receive(*mailbox.Inbox) ([]byte, error) {
	<-l.failed
	time.Sleep(20 * time.Millisecond)
	return nil, errUnanswered
}

func (l *lateWords) close(error) {}

// TestLateWords: a send that fails since the server has ended the session doesn't hide the server's words.
func TestLateWords(t *testing.T) {
	in := mailbox.NewInbox(inClient, receiveBuffer)
	c := &Client{reader: in.Reader(), in: in, way: WebSocket, out: mailbox.NewOutbox(sendBuffer), settled: make(chan struct{}), page: page{closing: make(chan struct{})}}
	c.out.Push([]byte("hello"))
	c.carry(t.Context(), &lateWords{make(chan struct{})})
	c.wg.Wait()
	require.ErrorIs(t, in.Failed(), errUnanswered)
}
