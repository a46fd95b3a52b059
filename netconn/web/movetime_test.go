//go:build !js

package web

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// refuse has the proxy take no connections until the function that it returns is called.
func (p *tcpProxy) refuse(t *testing.T) (again func()) {
	addr := p.addr()
	require.NoError(t, p.ln.Close())
	return func() {
		ln, err := net.Listen("tcp", addr)
		require.NoError(t, err)
		p.accept(ln)
	}
}

// TestMovesWhenItCan: a session that breaks while no other one can be made, as when a proxy starts again, is followed by one as soon as there is one, for as long as the
// server waits.
func TestMovesWhenItCan(t *testing.T) {
	m := newMoving(t)
	m.cfg.Ways = []Way{WebSocket}
	p, l, _ := m.join(7)
	again := m.tcp.refuse(t)
	m.tcp.restart()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		m.tick()
	}
	require.NoError(t, p.driver.Err())
	again()
	m.echoed(p, func() {})
	require.Equal(t, 1, l.Moved())
	require.Empty(t, m.ended)
	require.Nil(t, p.end)
	m.door.mu.Lock()
	defer m.door.mu.Unlock()
	require.Empty(t, m.door.waits, "nobody waits for it any more")
}

// TestMovesNoMore: when no other session can be made for as long as the server waits, the driver hears why, and the server knows that nobody has left: package session keeps
// such a player.
func TestMovesNoMore(t *testing.T) {
	m := newMoving(t)
	m.cfg.Ways = []Way{WebSocket}
	p, _, _ := m.join(7)
	m.tcp.refuse(t)
	m.tcp.reset()
	m.until("the driver says so", func() bool { return p.driver.Err() != nil })
	require.ErrorIs(t, p.driver.Err(), ErrEnded)
	require.ErrorIs(t, p.driver.Err(), ErrNoSession)
	m.until("the connection has ended", func() bool { return len(m.ended) == 1 })
	require.Equal(t, netconn.TimedOut, m.ended[0].Code, m.ended[0])
}

// TestHitchMovesNobody: a server that stands still for a while is no dead path. Its players stay on their way.
func TestHitchMovesNobody(t *testing.T) {
	m := newMoving(t)
	p, l, _ := m.join(7)
	m.echoed(p, func() {})
	p.sink.Got = nil
	for range 5 {
		for end := time.Now().Add(1200 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			now := time.Now()
			p.driver.TickDispatch(now)
			p.world.Step(p.driver.Time(now))
			p.driver.TickFlush(now)
			m.also(now)
		}
		clients := m.clients
		m.clients = nil
		m.tick()
		time.Sleep(15 * time.Millisecond) // the way to the client
		m.clients = clients
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
			m.tick()
		}
	}
	require.Zero(t, l.Moved())
	require.Regexp(t, `^udp after \d+ ms$`, l.String(), "what was tried meanwhile is no reason for it")
}

// TestAddressIsFreeAgain: once a moved connection has ended, its UDP address is another player's who comes from there, however long the session stays, and the end of
// that session doesn't end the other player's connection.
func TestAddressIsFreeAgain(t *testing.T) {
	m := newMoving(t)
	m.door.wait = 300 * time.Millisecond
	m.cfg.URL = "" // UDP, and then WebSocket
	p, l, conn := m.join(7)
	addr := conn.RemoteAddr()
	m.gate.shut = true
	m.until("it has moved", func() bool { return l.Moved() == 1 })
	m.echoed(p, func() {})
	m.gate.shut = false
	m.clients = nil // it says nothing more, and keeps its session
	conn.CloseWithReason("bye")
	conn.Abort(conn.Now(), "bye")
	m.until("it has ended", func() bool { return len(m.ended) == 1 })
	require.Equal(t, WebSocket, m.door.Way(addr))

	m.ended = nil
	var s udp.Socket
	eventually(t, "the port is free", func() (ok bool) {
		var err error
		s, err = udp.Listen(addr.String(), udp.Config{})
		return err == nil
	})
	other := m.dialOver(s, driver.Config{Link: driver.Netcode{Token: m.token(8)}})
	m.until("the other one plays", func() bool { return other.conn != nil && other.own() != nil })
	require.Equal(t, UDP, m.door.Way(addr))
	require.NoError(t, l.Close())
	for end := time.Now().Add(2 * m.door.wait); time.Now().Before(end); {
		m.tick()
	}
	m.echoed(other, func() {})
	require.Empty(t, m.ended)
}

// TestUntold: a server that wasn't told of its driver says so to a session that names a connection.
func TestUntold(t *testing.T) {
	d := newDoor(t, ServerConfig{})
	c := d.dial(WebSocket)
	ask(t, c, [16]byte{1})
	eventually(t, "it is refused", func() bool { return c.in.Failed() != nil })
	require.ErrorContains(t, c.in.Failed(), "see Server.Tell")
	require.EqualValues(t, 1, d.Counters().NoPath)
}

// TestMovesToNarrow: packets are as large as a connection's new path carries, whose MTU is less than the old one's, and every reliable bunch arrives.
func TestMovesToNarrow(t *testing.T) {
	m := newMoving(t)
	u, err := url.Parse(m.cfg.URL)
	require.NoError(t, err)
	narrow, err := proxy.New(proxy.Config{Listen: "127.0.0.1:0", To: u.Host})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, narrow.Close()) })
	quic := m.also
	m.also = func(now time.Time) {
		quic(now)
		require.NoError(t, narrow.Step(now))
	}
	m.cfg.URL, m.cfg.WebSocketURL = "https://"+narrow.LocalAddr().String()+"/bunchnet", ""
	p, l, conn := m.join(7)
	size := func(of *driver.Conn) int { return of.Stats().PacketSize }
	echoed := func(what string, until func() bool) {
		m.until(what, func() bool {
			p.sink.Got = nil
			m.echoed(p, func() {})
			return until()
		})
	}
	echoed("large packets", func() bool { return min(size(p.conn), size(conn)) >= 1190 })
	p.sink.Got = nil
	m.echoed(p, func() {
		m.gate.shut = true
		m.until("it has moved", func() bool { return l.Moved() == 1 })
		carries := netsim.Settings{MTU: 1200} // of which QUIC's headers take some 30 bytes and netcode's 25
		require.NoError(t, narrow.Set(carries, carries))
	})
	echoed("the new size is found", func() bool {
		return min(size(p.conn), size(conn)) > 1024 && max(size(p.conn), size(conn)) < 1180
	})
	require.NotZero(t, min(p.conn.Counters.Narrowed, conn.Counters.Narrowed))
	require.Equal(t, 1, l.Moved())
	require.Empty(t, m.ended)
}

// TestEmptyServer: a server that takes every move and carries nothing is asked ever more rarely.
func TestEmptyServer(t *testing.T) {
	m := newMoving(t)
	m.cfg.URL = "" // UDP, and then WebSocket
	p, l, _ := m.join(7)
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		now := time.Now()
		m.srv.TickDispatch(now) // it answers probes and sends nothing
		p.driver.TickDispatch(now)
		p.driver.TickFlush(now)
	}
	require.GreaterOrEqual(t, l.Moved(), 2)
	require.LessOrEqual(t, m.door.Counters().WebSockets, uint64(3), "it pauses for longer each time")
	m.echoed(p, func() {})
	require.Empty(t, m.ended)
}

// idleLink is a session that says nothing until its end.
type idleLink struct {
	ended chan struct{}
	once  sync.Once
}

func (l *idleLink) send([]byte) error { return nil }

func (l *idleLink) receive(*mailbox.Inbox) ([]byte, error) {
	<-l.ended
	return nil, io.ErrUnexpectedEOF
}

func (l *idleLink) close(error) { l.once.Do(func() { close(l.ended) }) }

// TestMoveCounts: after thousands of sessions that begin, are answered, move, take each other's addresses and end, all at once, a server counts what there is, and
// every place is given back.
func TestMoveCounts(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	s, err := NewServer(ServerConfig{MaxConns: 64, MaxPerAddr: 9, MaxHalfOpen: 16, HalfOpen: 50 * time.Millisecond, Idle: 80 * time.Millisecond})
	require.NoError(t, err)
	addrs := []netip.AddrPort{}
	for i := range 12 {
		addrs = append(addrs, netip.MustParseAddrPort(fmt.Sprintf("192.0.2.%d:7", i+1)))
	}
	rounds := 10
	if os.Getenv("CI") != "" {
		rounds = 200
	}
	for range rounds {
		var all sync.WaitGroup
		for g := range 4 {
			rng := rand.New(rand.NewPCG(seed, uint64(g)))
			seed++
			all.Go(func() {
				for range 200 {
					s.mu.Lock()
					var p, q *peer
					for _, p = range s.peers {
						if rng.IntN(4) == 0 {
							break
						}
					}
					for _, q = range s.peers {
						if rng.IntN(4) == 0 {
							break
						}
					}
					var at netip.AddrPort
					if p != nil {
						at = p.addr
					}
					if q != nil && p != nil && !p.moved && !p.to.IsValid() && rng.IntN(3) == 0 {
						if p.to = q.addr; rng.IntN(2) == 0 {
							p.to = addrs[rng.IntN(len(addrs))]
						}
						if p.to == p.addr {
							p.to = netip.AddrPort{}
						}
					} else {
						q = nil
					}
					moves := q != nil && p.to.IsValid()
					s.mu.Unlock()
					switch k := rng.IntN(8); {
					case moves:
						s.move(p)
					case k < 3:
						from := addrs[rng.IntN(len(addrs))]
						n, _, crowded := s.take(from.Addr())
						if crowded != nil {
							s.end(crowded, errCrowded)
						}
						if n == nil && k == 0 {
							s.give(from.Addr())
						} else if n == nil {
							s.begin(WebSocket, from, &idleLink{ended: make(chan struct{})}, func() {})
						}
					case k < 6 && at.IsValid():
						s.write(at)
					case p != nil:
						s.end(p, io.ErrUnexpectedEOF)
					}
				}
			})
		}
		all.Wait()
		s.check(t)
	}
	eventually(t, "all have ended", func() bool {
		_, err := s.TryReadBatch(nil)
		require.NoError(t, err)
		return s.Len() == 0
	})
	s.check(t)
	require.Zero(t, s.open)
	require.Zero(t, s.half)
	for _, a := range addrs {
		for range 9 {
			require.True(t, s.places.Room(a.Addr()))
			s.places.Add(a.Addr())
		}
	}
	require.NoError(t, s.Close())
	n := s.Counters()
	t.Logf("%+v", n)
	require.NotZero(t, n.Moved)
}

var writing sync.Mutex

// write is a datagram of the driver, whose goroutine is one.
func (s *Server) write(to netip.AddrPort) {
	writing.Lock()
	defer writing.Unlock()
	_, _ = s.WriteBatch([]udp.Message{{Buf: []byte("hello"), Addr: to}})
}

// check compares what a server counts with what there is.
func (s *Server) check(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	half, away := 0, 0
	for addr, p := range s.peers {
		require.Equal(t, addr, p.addr)
		if !p.answered.Load() {
			half++
		}
		if WayOf(addr) == UDP {
			require.True(t, (*s.away.Load())[addr])
			away++
		}
	}
	require.Equal(t, len(s.peers), s.open)
	require.Equal(t, half, s.half)
	require.Len(t, *s.away.Load(), away)
}

// TestPromptMoves: a driver that waits for datagrams goes on when its session is reset, again and again, and hears of its end when there is no other.
func TestPromptMoves(t *testing.T) {
	m := newMoving(t)
	m.cfg.Ways, m.cfg.Token, m.cfg.Dial.CertificateHash = []Way{WebSocket}, m.token(7), m.door.hash
	l, err := DialBest(t.Context(), m.cfg)
	require.NoError(t, err)
	p := m.dialOver(l, driver.Config{Link: driver.Netcode{Token: m.cfg.Token}, Prompt: true})
	m.until("it plays", func() bool { return p.conn != nil && p.own() != nil })
	m.clients = nil
	ended := make(chan error, 1)
	go func() { ended <- p.driver.Run(t.Context(), nil) }()
	ask := func(f func()) {
		done := make(chan struct{})
		p.driver.Do(func() {
			f()
			close(done)
		})
		select {
		case <-done:
		case err := <-ended:
			require.FailNow(t, "the driver has ended", "%v: %v; %+v", err, l, m.ended)
		}
	}
	want := texts()
	for i := range 3 {
		ask(func() { err = p.sink.Send(p.conn, want) })
		require.NoError(t, err)
		m.tick()
		m.tcp.reset()
		m.until("all echoed", func() bool {
			n := 0
			ask(func() { n = len(p.sink.Got) })
			return n == len(want)
		})
		require.Equal(t, i+1, l.Moved())
	}
	require.Empty(t, m.ended)
	m.tcp.refuse(t)
	m.tcp.reset()
	m.until("it hears of the end", func() bool { return len(ended) == 1 })
	require.ErrorIs(t, <-ended, ErrEnded)
}

// TestFlaps: paths that die and come back every second, all at once, lose nothing that was reliable.
func TestFlaps(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("it takes half a minute")
	}
	m := newMoving(t)
	p, l, _ := m.join(7)
	want := texts()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 16 {
		require.NoError(t, p.sink.Send(p.conn, want))
		m.gate.shut = true
		m.darken(100)
		if rng.IntN(2) == 0 {
			m.tcp.reset()
		}
		dark := time.Duration(200+rng.IntN(1000)) * time.Millisecond
		for end := time.Now().Add(dark); time.Now().Before(end); {
			m.tick()
		}
		m.gate.shut = false
		m.darken(0)
		m.until("all echoed", func() bool { return len(p.sink.Got) == len(want) })
		require.Equal(t, want, p.sink.Got)
		require.Nil(t, p.end)
	}
	require.Empty(t, m.ended)
	m.until("one session at most", func() bool { return m.door.Len() <= 1 })
	t.Logf("%v; %+v", l, m.door.Counters())
}
