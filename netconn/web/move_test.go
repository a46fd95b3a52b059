//go:build !js

package web

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/internal/readwait"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// moving is a game whose players can come by UDP, by WebTransport through a proxy, and by WebSocket through another.
type moving struct {
	*game
	quic *proxy.Proxy
	tcp  *tcpProxy
	cfg  LadderConfig
}

func newMoving(t *testing.T) *moving { return newMovingFor(t, ServerConfig{}) }

func newMovingFor(t *testing.T, cfg ServerConfig) *moving {
	cfg.HalfOpen = cmp.Or(cfg.HalfOpen, 2*time.Second)
	g := newGame(t, driver.Config{}, cfg)
	g.door.Tell(g.srv)
	u, err := url.Parse(g.door.url)
	require.NoError(t, err)
	quic, err := proxy.New(proxy.Config{Listen: "127.0.0.1:0", To: u.Host}) // of WebTransport only
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, quic.Close()) })
	site := httptest.NewServer(g.door.Server)
	t.Cleanup(site.Close)
	m := &moving{g, quic, newTCPProxy(t, site.Listener.Addr().String()), LadderConfig{}}
	m.cfg = LadderConfig{UDP: g.srv.LocalAddr(), URL: "https://" + quic.LocalAddr().String() + "/bunchnet", WebSocketURL: "http://" + m.tcp.addr(), HeadStart: 300 * time.Millisecond}
	g.also = func(now time.Time) { require.NoError(t, quic.Step(now)) }
	return m
}

// join lets a player in whose connection can move.
func (m *moving) join(id uint64) (*player, *Ladder, *driver.Conn) {
	cfg := m.cfg
	cfg.Token = m.token(id)
	cfg.Dial.CertificateHash = m.door.hash
	l, err := DialBest(m.t.Context(), cfg)
	require.NoError(m.t, err)
	p := m.dialOver(l, driver.Config{Link: driver.Netcode{Token: cfg.Token}})
	var conn *driver.Conn
	m.until("it plays", func() bool {
		for c := range m.srv.Conns {
			if c.ClientID() == id {
				conn = c
			}
		}
		return p.conn != nil && p.own() != nil
	})
	return p, l, conn
}

// darken has all of WebTransport's packets lost, or none.
func (m *moving) darken(loss float64) {
	require.NoError(m.t, m.quic.Set(netsim.Settings{Loss: loss}, netsim.Settings{Loss: loss}))
}

// texts are large ones, so that they take many packets.
func texts() (all []string) {
	for i := range 100 {
		all = append(all, fmt.Sprint(i, string(make([]byte, i*30))))
	}
	return all
}

// echoed sends texts, does something while they are under way, and waits until all have come back, in order.
func (m *moving) echoed(p *player, amid func()) {
	m.t.Helper()
	want := texts()
	require.NoError(m.t, p.sink.Send(p.conn, want))
	m.tick()
	amid()
	m.until("all echoed", func() bool { return len(p.sink.Got) >= len(want) })
	require.Equal(m.t, want, p.sink.Got)
}

// tcpProxy carries TCP connections until they are cut.
type tcpProxy struct {
	ln    net.Listener
	to    string
	mu    sync.Mutex
	conns []cut
	wg    sync.WaitGroup
}

// cut is a connection at both ends, and whether it was cut.
type cut struct {
	ends []*net.TCPConn
	cut  *atomic.Bool
}

func newTCPProxy(t *testing.T, to string) *tcpProxy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &tcpProxy{to: to}
	t.Cleanup(func() {
		_ = p.ln.Close()
		p.reset()
		p.wg.Wait()
	})
	p.accept(ln)
	return p
}

// accept takes connections.
func (p *tcpProxy) accept(ln net.Listener) {
	p.ln = ln
	p.wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", p.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			a, b := in.(*net.TCPConn), out.(*net.TCPConn)
			p.mu.Lock()
			c := cut{[]*net.TCPConn{a, b}, new(atomic.Bool)}
			p.conns = append(p.conns, c)
			p.mu.Unlock()
			for _, way := range [][2]*net.TCPConn{{a, b}, {b, a}} {
				p.wg.Go(func() {
					_, _ = way[0].ReadFrom(way[1])
					if !c.cut.Load() {
						_ = way[0].CloseWrite()
					}
				})
			}
		}
	})
}

func (p *tcpProxy) addr() string { return p.ln.Addr().String() }

// reset ends all connections as a router does that has forgotten them.
func (p *tcpProxy) reset() { p.end(0) }

// restart ends them as a proxy does that restarts: in order, and without a WebSocket's close frame.
func (p *tcpProxy) restart() { p.end(-1) }

func (p *tcpProxy) end(linger int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.cut.Store(true)
		for _, end := range c.ends {
			_ = end.SetLinger(linger)
			_ = end.Close()
		}
	}
	p.conns = nil
}

// TestMoves: amid a game the path of UDP dies, then that of WebTransport, then the WebSocket is reset. Each time the same connection goes on by another session,
// without a word to the game at either end, and every reliable bunch arrives.
func TestMoves(t *testing.T) {
	m := newMoving(t)
	p, l, conn := m.join(7)
	addr := conn.RemoteAddr()
	for i, c := range []struct {
		way  Way
		die  func()
		says string
	}{
		{UDP, func() {}, `^udp after \d+ ms$`},
		{WebTransport, func() { m.gate.shut = true }, `^webtransport after \d+ ms, move 1, from udp(; not websocket: it hadn't answered by then)?$`},
		{WebSocket, func() { m.darken(100) }, `^websocket after \d+ ms, move 2, from webtransport(; not webtransport: it hadn't answered by then)?$`},
		{WebSocket, m.tcp.reset, `^websocket after \d+ ms, move 3, from websocket(; not webtransport: it hadn't answered by then)?$`},
	} {
		m.echoed(p, c.die)
		m.until("it says so", func() bool { return l.Moved() == i })
		way, _ := l.Way()
		require.Equal(t, c.way, way)
		require.Equal(t, c.way, m.door.Way(addr))
		require.EqualValues(t, i, m.door.Counters().Moved)
		require.Regexp(t, c.says, l.String())
	}
	m.until("the sessions before have ended", func() bool { return m.door.Len() == 1 })
	require.Empty(t, m.ended)
	require.Nil(t, p.end)
	require.Equal(t, addr, conn.RemoteAddr())
	require.EqualValues(t, 1, m.srv.Counters.Accepted)

	began := time.Now()
	require.NoError(t, p.driver.Close())
	m.clients = nil
	m.until("the player is gone", func() bool { return len(m.ended) == 1 })
	t.Logf("after %v", time.Since(began))
	m.until("and its session", func() bool { return m.door.Len() == 0 })
	require.False(t, m.door.Has(addr), "the address is UDP's again")
}

// TestMovesBack: a path that comes back while another one is looked for is kept, and the session that was under way for it ends without harm.
func TestMovesBack(t *testing.T) {
	m := newMoving(t)
	p, l, _ := m.join(7)
	m.darken(100)
	_ = m.tcp.ln.Close() // nothing else answers
	before := len(l.Attempts())
	m.gate.shut = true
	m.until("another one is looked for", func() bool { return len(l.Attempts()) > before }) // a WebSocket, which is refused
	m.gate.shut = false
	m.echoed(p, func() {})
	require.Zero(t, l.Moved())
	way, _ := l.Way()
	require.Equal(t, UDP, way)
	m.darken(0) // a session may begin now
	m.until("no other one is looked for", func() bool { return len(l.Attempts()) > before+1 })
	require.Zero(t, l.Moved())
	m.echoed(p, func() { m.gate.shut = true })
	require.Equal(t, 1, l.Moved(), "it can still move")
	require.Empty(t, m.ended)
}

// TestMovesFirst: a session isn't closed before its connection has moved at the server too, which would take it for one that left.
func TestMovesFirst(t *testing.T) {
	m := newMoving(t)
	m.cfg.Ways = []Way{WebTransport, WebSocket}
	p, l, _ := m.join(7)
	require.NoError(t, m.quic.Set(netsim.Settings{}, netsim.Settings{Loss: 100})) // the server hears it yet
	m.until("it has moved", func() bool { return l.Moved() == 1 })
	m.silently(time.Second)
	m.echoed(p, func() {})
	require.Empty(t, m.ended)
	require.EqualValues(t, 1, m.door.Counters().Moved)
	m.until("its first session has ended", func() bool { return m.door.Len() == 1 })
}

// silently goes on while the clients don't.
func (m *moving) silently(d time.Duration) {
	clients := m.clients
	m.clients = nil
	for end := time.Now().Add(d); time.Now().Before(end); {
		m.tick()
	}
	m.clients = clients
}

// TestMovesOn: a session by which nothing comes is left for the next one, and its end doesn't end the connection.
func TestMovesOn(t *testing.T) {
	m := newMoving(t)
	p, l, conn := m.join(7)
	again := m.tcp.refuse(t) // on a busy machine WebSocket may answer first, whatever its head start
	m.gate.shut = true
	m.until("it has moved", func() bool { return l.Moved() == 1 })
	again()
	require.NoError(t, m.quic.Set(netsim.Settings{}, netsim.Settings{Loss: 100}))
	m.until("it has moved on", func() bool { return l.Moved() == 2 })
	if m.door.Way(conn.RemoteAddr()) != WebTransport {
		t.Log("the server has heard of that already: its old session isn't the connection's any more when it ends")
	}
	m.silently(1500 * time.Millisecond)
	require.Empty(t, m.ended)
	m.echoed(p, func() {})
	require.Empty(t, m.ended)
	require.Equal(t, WebSocket, m.door.Way(conn.RemoteAddr()))
}

// TestLeavesByAnEnd: a session that was closed ends its connection at once, one that broke 5 s later.
func TestLeavesByAnEnd(t *testing.T) {
	m := newMoving(t)
	m.cfg.Silence = time.Hour
	var left []*player
	for i, way := range ways {
		m.cfg.Ways = []Way{way}
		p, _, _ := m.join(uint64(i))
		left = append(left, p)
	}
	_, _, conn := m.join(8)
	_ = m.tcp.ln.Close() // no other session
	require.NoError(t, left[1].socket.Close())
	m.tcp.reset()
	require.NoError(t, left[0].socket.Close())
	m.clients = nil
	m.until("who left is gone", func() bool { return len(m.ended) == 2 })
	require.False(t, conn.Closed())
	m.until("the other one too", func() bool { return len(m.ended) == 3 })
}

// TestSleepIsNoSilence: a machine that slept looks for no other session before it has listened.
func TestSleepIsNoSilence(t *testing.T) {
	m := newMoving(t)
	p, l, _ := m.join(7)
	before := len(l.Attempts())
	m.gate.shut = true
	m.silently(time.Second)
	m.gate.shut = false
	m.echoed(p, func() {})
	require.Len(t, l.Attempts(), before)
	require.Nil(t, l.mover.giveUp)
}

// TestReaderMoves: who waits to read goes on waiting at the next session.
func TestReaderMoves(t *testing.T) {
	d := newDoor(t, ServerConfig{})
	l := &Ladder{wait: readwait.New(), sent: mailbox.NewOutbox(sendBuffer), stop: func() {}}
	l.mover.begin(true, netcode.PathID{1}, 0)
	l.heard.Store(true)
	require.True(t, l.choose(rung{Attempt{Way: WebSocket}, d.dial(WebSocket)}))
	in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
	ended := make(chan error, 1)
	go func() {
		_, err := l.ReadBatch(in)
		ended <- err
	}()
	time.Sleep(10 * time.Millisecond) // it waits then, mostly
	next := d.dial(WebSocket)
	from := hello(t, d, next)
	require.True(t, l.change(t.Context(), rung{Attempt{Way: WebSocket}, next}))
	_, err := d.WriteBatch([]udp.Message{{Buf: []byte("welcome"), Addr: from}})
	require.NoError(t, err)
	select {
	case err := <-ended:
		require.NoError(t, err)
		require.Equal(t, "welcome", string(in[0].Data()))
	case <-time.After(patience):
		t.Error("who waited wasn't woken")
	}
	require.NoError(t, l.Close())
}

// TestResetEndsDriver: the end of a session is no temporary error, whatever the system called it.
func TestResetEndsDriver(t *testing.T) {
	m := newMoving(t)
	m.cfg.Ways = []Way{WebSocket}
	l, err := DialBest(t.Context(), m.cfg)
	require.NoError(t, err)
	p := m.dialOver(l, driver.Config{})
	m.until("it plays", func() bool { return p.conn != nil && p.own() != nil })
	m.tcp.reset()
	m.until("the driver says so", func() bool { return p.driver.Err() != nil })
	require.ErrorIs(t, p.driver.Err(), ErrEnded)
}

// TestForeignPaths: who doesn't know a connection's path id can't move it, nor can a session that has said something else before, and one that names a connection and
// sends nothing more changes nothing.
func TestForeignPaths(t *testing.T) {
	m := newMoving(t)
	var log bytes.Buffer
	m.door.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	p, _, conn := m.join(7)
	token := m.token(7) // not that of the connection
	id, ok := token.PathID()
	require.True(t, ok)
	own := netcode.PathID{}
	for path := range map[netcode.PathID]bool{own: true, id: true, {1}: true} {
		c := m.door.dial(WebSocket)
		ask(t, c, path)
		m.until("it is refused", func() bool { return c.in.Failed() != nil })
		require.ErrorContains(t, c.in.Failed(), "no connection with this path id")
	}
	require.EqualValues(t, 3, m.door.Counters().NoPath)
	require.NotContains(t, log.String(), fmt.Sprintf("%x", id[:]))

	real := p.socket.(*Ladder).mover.path
	require.NotContains(t, fmt.Sprintf("%v %+v %x %s", real, real, real, real), fmt.Sprintf("%x", real[:]))
	late := m.door.dial(WebSocket)
	write(t, late, []byte("hello"))
	ask(t, late, real)
	m.until("it is refused", func() bool { return late.in.Failed() != nil })
	require.ErrorContains(t, late.in.Failed(), "no connection with this path id")

	idle := m.door.dial(WebTransport)
	m.until("it is answered", func() bool {
		ask(t, idle, real)
		n, err := idle.TryReadBatch([]udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}})
		require.NoError(t, err)
		return n == 1
	})
	m.echoed(p, func() {})
	require.Zero(t, m.door.Counters().Moved)
	require.Equal(t, UDP, m.door.Way(conn.RemoteAddr()))
	m.until("it is ended for want of a connection", func() bool { return idle.in.Failed() != nil })
	m.echoed(p, func() {})
	require.Empty(t, m.ended)
}

// ask names a connection by a session.
func ask(t *testing.T, c *Client, id netcode.PathID) {
	m := mover{path: id}
	write(t, c, m.ask())
}

func write(t *testing.T, c *Client, p []byte) {
	_, err := c.WriteBatch([]udp.Message{{Buf: p, Addr: netip.MustParseAddrPort("192.0.2.1:7")}})
	if err != nil {
		require.ErrorIs(t, err, ErrEnded)
	}
}

// TestDriverless: without Tell, and while nobody ticks the driver, a session that names a connection is refused and nothing waits for ever.
func TestDriverless(t *testing.T) {
	d := newDoor(t, ServerConfig{HalfOpen: 100 * time.Millisecond})
	for _, tick := range []bool{false, true} {
		if tick {
			srv, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.Netcode{Key: gameKey}})
			require.NoError(t, err)
			defer srv.Close()
			d.Tell(srv)
		}
		c := d.dial(WebSocket)
		ask(t, c, netcode.PathID{1})
		eventually(t, "it is refused", func() bool { return c.in.Failed() != nil })
		eventually(t, "nothing waits", func() bool {
			stacks := make([]byte, 1<<20)
			return !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("mayMove"))
		})
	}
	salted, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	defer salted.Close()
	_, ok := salted.AddrOfPath(netcode.PathID{})
	require.False(t, ok, "it has no tokens")
	bare, err := DialBest(context.Background(), LadderConfig{UDP: salted.LocalAddr(), Token: (&game{t: t, srv: salted}).token(1)})
	require.NoError(t, err)
	require.False(t, bare.mover.on, "there is no other way, so an error of the socket is the driver's to see")
	require.NoError(t, bare.Close())
	_, err = DialBest(context.Background(), LadderConfig{URL: d.url, Token: netcode.Token("short")})
	require.ErrorIs(t, err, ErrConfig)
	_, err = DialBest(context.Background(), LadderConfig{URL: d.url, Silence: -1})
	require.ErrorIs(t, err, ErrConfig)
}
