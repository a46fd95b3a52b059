//go:build !js

package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/webtransport-go"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/inspect"
	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/internal/readwait"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

// silent is the address of a socket that never answers.
func silent(t testing.TB) netip.AddrPort {
	s, err := udp.Listen("127.0.0.1:0", udp.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.LocalAddr()
}

func (g *game) climb(cfg LadderConfig) (*player, *Ladder) {
	cfg.Dial.CertificateHash = g.door.hash
	l, err := DialBest(g.t.Context(), cfg)
	require.NoError(g.t, err)
	return g.dialOver(l, driver.Config{}), l
}

// TestLadder: a client comes by the best way that answers, with one connect token, and says why.
func TestLadder(t *testing.T) {
	const head = 50 * time.Millisecond
	for want, set := range map[Way]func(g *game) LadderConfig{
		UDP: func(g *game) LadderConfig {
			return LadderConfig{UDP: g.srv.LocalAddr(), URL: g.door.url, HeadStart: 10 * time.Second}
		},
		WebTransport: func(g *game) LadderConfig { // a WebSocket may answer before where processes wait for the processor
			return LadderConfig{UDP: silent(t), URL: g.door.url, HeadStart: head, Ways: []Way{UDP, WebTransport}}
		},
		WebSocket: func(g *game) LadderConfig { // a firewall that lets TCP through alone
			site := httptest.NewUnstartedServer(g.door.Server)
			cert, hash, err := NewCertificate(time.Now())
			require.NoError(t, err)
			site.TLS = tlsOf(cert)
			site.StartTLS()
			t.Cleanup(site.Close)
			g.door.hash = hash
			return LadderConfig{UDP: silent(t), URL: site.URL, HeadStart: head}
		},
	} {
		t.Run(want.String(), func(t *testing.T) {
			g := newGame(t, driver.Config{}, ServerConfig{})
			p, l := g.climb(set(g))
			g.until("joined", func() bool { return p.conn != nil && len(g.lamps) == 1 })
			way, ok := l.Way()
			require.True(t, ok)
			require.Equal(t, want, way)
			for c := range g.srv.Conns {
				require.Equal(t, want, WayOf(c.RemoteAddr()))
			}
			eventually(t, "the others were given up", func() bool { // each was begun a moment after the one before, up to the one that answered
				return len(l.Attempts()) == int(want)
			})
			for _, a := range l.Attempts() {
				if a.Way == want {
					require.NoError(t, a.Err)
				} else {
					require.Error(t, a.Err)
				}
			}
			g.until("it plays", func() bool { return p.own() != nil })
		})
	}
}

// TestDownTheLadder: amid a game the path of UDP dies, and then that of WebTransport. Each time a Redialer is back by the next way, as the same player: with the
// lamp that it had, which it goes on playing with. Each ladder says why it is where it is, also in an inspector.
func TestDownTheLadder(t *testing.T) {
	var g *game
	var own *lamp // of the player, at the server
	begun, back, gone := 0, 0, false
	players, err := session.NewPlayers(session.Config[*lamp]{
		New: func(c *driver.Conn) *lamp {
			begun++
			own = &lamp{}
			require.NoError(t, g.world.Spawn(own))
			own.SetOwner(g.world.AddConn(c))
			return own
		},
		Rejoin: func(c *driver.Conn, l *lamp) {
			back++
			l.SetOwner(g.world.AddConn(c))
		},
		Gone: func(*lamp, netconn.CloseResult) { gone = true },
	})
	require.NoError(t, err)
	g = newGame(t, driver.Config{Link: driver.Netcode{Key: gameKey, TakeOver: true}, Joined: players.Joined, Closed: players.Closed}, ServerConfig{})

	u, err := url.Parse(g.door.url)
	require.NoError(t, err)
	quic, err := proxy.New(proxy.Config{Listen: "127.0.0.1:0", To: u.Host}) // of WebTransport only: TCP goes directly
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, quic.Close()) })
	open := make(chan struct{}) // WebSocket answers then, so that it isn't the quicker one where processes wait for the processor
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-open:
			g.door.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(site.Close)

	type dial struct {
		ladder *Ladder
		world  *actorrep.World
	}
	dials := map[*driver.Driver]dial{}
	r, err := session.NewRedialer(session.RedialConfig{Dial: func() (*driver.Driver, error) {
		l, err := DialBest(t.Context(), LadderConfig{UDP: g.srv.LocalAddr(), URL: "https://" + quic.LocalAddr().String() + "/bunchnet", WebSocketURL: site.URL,
			HeadStart: 50 * time.Millisecond, Dial: DialConfig{CertificateHash: g.door.hash}})
		if err != nil {
			return nil, err
		}
		w := newWorld(t, false)
		d, err := driver.Dial(g.srv.LocalAddr().String(), driver.Config{Socket: l, Link: driver.Netcode{Token: g.token(7)}, Channels: w.ChannelTypes()})
		dials[d] = dial{l, w}
		return d, err
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	ticks, last := 0, uint8(0)
	mine := func() *lamp {
		if d, ok := dials[r.Driver()]; ok {
			return (&player{world: d.world}).own()
		}
		return nil
	}
	g.also = func(now time.Time) {
		require.NoError(t, quic.Step(now))
		players.Tick(g.srv.Time(now))
		r.TickDispatch(now)
		if d, ok := dials[r.Driver()]; ok {
			if l := mine(); l != nil && l.Brightness.Get() < last+8 && ticks%8 == 0 { // a call amid the fall may be lost with its connection
				require.NoError(t, flip.Call(l, l.Brightness.Get()+1))
			}
			d.world.Step(r.Driver().Time(now))
		}
		r.TickFlush(now)
		ticks++
	}
	for i, c := range []struct {
		way Way
		die func()
		not []string
	}{
		{UDP, func() {}, nil},
		{WebTransport, func() { g.gate.shut = true }, []string{"; not udp: "}},
		{WebSocket, func() {
			require.NoError(t, quic.Set(netsim.Settings{Loss: 100}, netsim.Settings{Loss: 100}))
			close(open)
		}, []string{"; not udp: ", "; not webtransport: "}},
	} {
		c.die()
		was := own
		g.until("it plays by "+c.way.String(), func() bool {
			d, ok := dials[r.Driver()]
			if !ok || back != i {
				return false
			}
			way, _ := d.ladder.Way()
			return way == c.way && mine() != nil && own.Brightness.Get() > last+5 && mine().Brightness.Get() > last+5
		})
		last = own.Brightness.Get()
		require.Equal(t, 1, begun)
		if i > 0 {
			require.Same(t, was, own)
			require.ErrorIs(t, g.ended[i-1].Err, driver.ErrReplaced)
		}
		var by []Way
		for conn := range g.srv.Conns {
			if conn.Joined() {
				require.EqualValues(t, 7, conn.ClientID())
				by = append(by, WayOf(conn.RemoteAddr()))
			}
		}
		require.Equal(t, []Way{c.way}, by)

		ladder := dials[r.Driver()].ladder
		eventually(t, "it says why", func() bool { // each was begun a moment after the one before
			return !slices.ContainsFunc(c.not, func(not string) bool { return !strings.Contains(ladder.String(), not) })
		})
		i := inspect.New(r.Driver(), inspect.Config{Name: func(*driver.Conn) string { return ladder.String() }})
		seen := make(chan string, 1)
		go func() {
			v, err := i.View(t.Context(), inspect.Query{})
			seen <- fmt.Sprint(string(v.AppendText(nil)), err)
		}()
		text := ""
		g.until("seen", func() bool {
			select {
			case text = <-seen:
			default:
			}
			return text != ""
		})
		require.Contains(t, strings.Join(strings.Fields(text), " "), c.way.String()+" after ") // its lines are wrapped
	}
	require.NoError(t, r.Err())
	require.Equal(t, 2, back)
	require.False(t, gone)
}

// small is a socket at whose path packets of more than 600 bytes get lost.
type small struct{ udp.Socket }

func (s small) TryReadBatch(msgs []udp.Message) (int, error) {
	n, err := s.Socket.TryReadBatch(msgs)
	left := 0
	for i := range msgs[:n] {
		if len(msgs[i].Data()) <= 600 {
			msgs[left], msgs[i] = msgs[i], msgs[left]
			left++
		}
	}
	return left, err
}

// TestRungsThatLie: ways that answer, and carry no game behind that, don't keep a player out: a UDP path that loses large packets isn't chosen, and a session
// by which nothing comes isn't chosen again before the others are tried.
func TestRungsThatLie(t *testing.T) {
	g := newGame(t, driver.Config{Link: driver.Netcode{Key: gameKey, TakeOver: true}}, ServerConfig{})
	g.gate.Socket = small{g.gate.Socket}
	mute := newDoor(t, ServerConfig{HalfOpen: 200 * time.Millisecond}) // no driver reads there
	site := httptest.NewServer(g.door.Server)
	t.Cleanup(site.Close)
	var l *Ladder
	var tried []Way
	joined := false
	note := func() {
		if l != nil {
			if way, ok := l.Way(); ok {
				tried = append(tried, way)
			}
		}
	}
	r, err := session.NewRedialer(session.RedialConfig{Dial: func() (*driver.Driver, error) {
		note()
		var err error
		l, err = DialBest(t.Context(), LadderConfig{UDP: g.srv.LocalAddr(), URL: mute.url, WebSocketURL: site.URL, Last: l, Dial: DialConfig{CertificateHash: mute.hash}})
		if err != nil {
			return nil, err
		}
		return driver.Dial(g.srv.LocalAddr().String(), driver.Config{Socket: l, Link: driver.Netcode{Token: g.token(7)}, Channels: newWorld(t, false).ChannelTypes(),
			Joined: func(*driver.Conn) { joined = true }})
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	g.also = func(now time.Time) {
		r.TickDispatch(now)
		r.TickFlush(now)
	}
	g.until("it plays", func() bool { return joined })
	note()
	require.NotContains(t, tried, UDP)
	require.Equal(t, WebSocket, tried[len(tried)-1])
	require.LessOrEqual(t, len(tried), 2)
	require.Equal(t, []Way{UDP, WebTransport, WebSocket}, l.behind([]Way{UDP, WebTransport, WebSocket}), "something came")

	three := func() []Way { return []Way{UDP, WebTransport, WebSocket} }
	mutes := &Ladder{chosen: g.door.Server, way: UDP, ways: three()}
	require.Equal(t, []Way{WebTransport, WebSocket, UDP}, mutes.behind(three()))
	mutes = &Ladder{chosen: g.door.Server, way: WebTransport, ways: mutes.behind(three())}
	require.Equal(t, []Way{WebSocket, UDP, WebTransport}, mutes.behind(three()))
	require.Equal(t, three(), (&Ladder{ways: three()}).behind(three()), "none was chosen")
}

// TestLadderHandsOver: what is written and set before a way answers holds for the way that does, and who waits to read goes on waiting there.
func TestLadderHandsOver(t *testing.T) {
	d := newDoor(t, ServerConfig{})
	cfg := LadderConfig{URL: d.url, Ways: []Way{WebSocket}, Dial: DialConfig{CertificateHash: d.hash}}
	to := netip.MustParseAddrPort("192.0.2.1:7")
	message := func(text string) []udp.Message { return []udp.Message{{Buf: []byte(text), Addr: to}} }
	in, got := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}, []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}

	s := &Ladder{wait: readwait.New(), sent: mailbox.NewOutbox(sendBuffer), stop: func() {}}
	_, err := s.WriteBatch(message("before"))
	require.NoError(t, err)
	c := d.dial(WebSocket)
	require.True(t, s.choose(rung{Attempt{Way: WebSocket}, c}))
	require.False(t, s.choose(rung{Attempt{Way: WebSocket}, c}), "one way is enough")
	_, err = s.WriteBatch(message("after"))
	require.NoError(t, err)
	for _, want := range []string{"before", "after"} {
		require.NoError(t, d.SetReadDeadline(time.Now().Add(patience)))
		_, err = d.Server.ReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, want, string(in[0].Data()))
	}
	require.NoError(t, s.Close())

	late := &Ladder{wait: readwait.New(), sent: mailbox.NewOutbox(sendBuffer), stop: func() {}}
	require.NoError(t, late.SetReadDeadline(time.Unix(1, 0)))
	require.True(t, late.choose(rung{Attempt{Way: WebSocket}, d.dial(WebSocket)}))
	ended := make(chan error, 1)
	go func() {
		_, err := late.ReadBatch(got)
		ended <- err
	}()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	case <-time.After(patience):
		t.Error("the deadline was forgotten")
	}
	require.NoError(t, late.Close())

	l, err := DialBest(t.Context(), cfg)
	require.NoError(t, err)
	go func() {
		_, err := l.ReadBatch(got)
		ended <- err
	}()
	_, err = l.WriteBatch(message("hello"))
	require.NoError(t, err)
	eventually(t, "it answers", func() bool { _, ok := l.Way(); return ok })
	_, err = l.WriteBatch(message("hello"))
	require.NoError(t, err)
	_, err = d.Server.ReadBatch(in)
	require.NoError(t, err)
	_, err = d.WriteBatch([]udp.Message{{Buf: []byte("welcome"), Addr: in[0].Addr}})
	require.NoError(t, err)
	select {
	case err := <-ended:
		require.NoError(t, err)
		require.Equal(t, "welcome", string(got[0].Data()))
	case <-time.After(patience):
		t.Error("who waited wasn't woken")
	}
	require.NoError(t, l.Close())
}

// TestProbeLiars: only the server's answer to what was asked counts.
func TestProbeLiars(t *testing.T) {
	server, err := udp.Listen("127.0.0.1:0", udp.Config{})
	require.NoError(t, err)
	defer server.Close()
	other, err := udp.Listen("127.0.0.1:0", udp.Config{})
	require.NoError(t, err)
	defer other.Close()
	l, err := DialBest(t.Context(), LadderConfig{UDP: server.LocalAddr()})
	require.NoError(t, err)
	in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
	for i := range 6 {
		require.NoError(t, server.SetReadDeadline(time.Now().Add(patience)))
		_, err := server.ReadBatch(in)
		require.NoError(t, err, "it asks on after %d lies", i)
		require.True(t, isProbe(in[0].Data(), probeAsk))
		answer := append([]byte{probeAnswer}, in[0].Data()[1:]...)
		from := server
		switch i {
		case 1:
			from = other
		case 2, 3:
			answer[len(answer)-1]++
		case 4:
			answer = append(answer, 0)
		case 0:
			answer[0] = probeAsk
		}
		if i < 5 {
			_, ok := l.Way()
			require.False(t, ok)
		}
		_, err = from.WriteBatch([]udp.Message{{Buf: answer, Addr: in[0].Addr}})
		require.NoError(t, err)
	}
	eventually(t, "it answers", func() bool { _, ok := l.Way(); return ok })
	require.NoError(t, l.Close())
}

// TestLadderEnds: when no way answers the error says what went wrong with each; Close ends attempts that are under way.
func TestLadderEnds(t *testing.T) {
	d := newDoor(t, ServerConfig{})
	bad := d.hash
	bad[0]++
	l, err := DialBest(t.Context(), LadderConfig{URL: d.url, HeadStart: time.Hour, Dial: DialConfig{CertificateHash: bad}})
	require.NoError(t, err)
	in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
	require.NoError(t, l.SetReadDeadline(time.Now().Add(patience)))
	_, err = l.ReadBatch(in)
	require.ErrorIs(t, err, ErrNoSession)
	require.ErrorContains(t, err, "webtransport: ")
	require.ErrorContains(t, err, "websocket: ")
	require.ErrorContains(t, err, "certificate")
	_, ok := l.Way()
	require.False(t, ok)
	require.NoError(t, l.Close())
	_, err = l.TryReadBatch(in)
	require.ErrorIs(t, err, net.ErrClosed)

	l, err = DialBest(t.Context(), LadderConfig{UDP: silent(t), URL: d.url})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for _, cfg := range []LadderConfig{{}, {URL: "http://x/"}, {URL: "https://x/", HeadStart: -1}, {UDP: d.LocalAddr(), Ways: []Way{WebSocket}}, {URL: "https://x/", Ways: []Way{9}}} {
		_, err = DialBest(t.Context(), cfg)
		require.ErrorIs(t, err, ErrConfig)
	}
}

// TestLadderConformance runs the test of sockets over a ladder.
func TestLadderConformance(t *testing.T) {
	for _, way := range []Way{UDP, WebTransport, WebSocket} {
		t.Run(way.String(), func(t *testing.T) {
			udptest.Run(t, func(t *testing.T) (a, b udp.Socket) {
				d := newDoor(t, ServerConfig{})
				s, err := udp.Listen("127.0.0.1:0", udp.Config{})
				require.NoError(t, err)
				j := udp.Join(Answer(s), d.Server)
				if way == UDP {
					stop := readProbes(t, j)
					defer stop()
				}
				l, err := DialBest(t.Context(), LadderConfig{UDP: s.LocalAddr(), URL: d.url, Ways: []Way{way}, Dial: DialConfig{CertificateHash: d.hash}})
				require.NoError(t, err)
				eventually(t, "it answers", func() bool { _, ok := l.Way(); return ok })
				return l, j
			})
		})
	}
}

// readProbes reads a socket in place of a driver, until stop.
func readProbes(t *testing.T, s udp.Socket) (stop func()) {
	done, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				if _, err := s.TryReadBatch(in); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

// TestAnswer: probes are answered with as many bytes, and who reads sees only what isn't one; what is almost one isn't.
func TestAnswer(t *testing.T) {
	a, b := udp.Pair(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2"))
	s := Answer(a)
	ask := append(append([]byte{probeAsk}, probeName...), make([]byte, probeBytes-1-len(probeName))...)
	answer := append([]byte{probeAnswer}, ask[1:]...)
	almost := [][]byte{answer, ask[:len(ask)-1], append(append([]byte{}, ask...), 0), append([]byte{probeAsk}, make([]byte, probeBytes-1)...), {probeAsk}, []byte("a datagram")}
	for _, p := range almost {
		for _, q := range [][]byte{ask, p, ask} {
			_, err := b.WriteBatch([]udp.Message{{Buf: q, Addr: a.LocalAddr()}})
			require.NoError(t, err)
		}
	}
	in := make([]udp.Message, 4)
	for i := range in {
		in[i].Buf = make([]byte, mailbox.MaxDatagram)
	}
	var got [][]byte
	for {
		n, err := s.TryReadBatch(in)
		require.NoError(t, err)
		if n == 0 {
			break
		}
		for _, m := range in[:n] {
			got = append(got, append([]byte{}, m.Data()...))
		}
	}
	require.Equal(t, almost, got)
	for range 2 * len(almost) {
		n, err := b.TryReadBatch(in[:1])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, answer, in[0].Data())
	}
	n, err := b.TryReadBatch(in)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = b.WriteBatch([]udp.Message{{Buf: ask, Addr: a.LocalAddr()}})
		_, _ = s.TryReadBatch(in)
		_, _ = b.TryReadBatch(in)
	}))
}

// TestLadderWebSocketURL: WebSocket may go elsewhere, as to a page for local play, also where nothing else is tried.
func TestLadderWebSocketURL(t *testing.T) {
	g := newGame(t, driver.Config{}, ServerConfig{})
	site := httptest.NewServer(g.door.Server)
	t.Cleanup(site.Close)
	for _, cfg := range []LadderConfig{{WebSocketURL: site.URL}, {URL: "https://" + silent(t).String(), WebSocketURL: site.URL, HeadStart: 50 * time.Millisecond}} {
		p, l := g.climb(cfg)
		g.until("joined", func() bool { return p.conn != nil })
		way, ok := l.Way()
		require.True(t, ok)
		require.Equal(t, WebSocket, way)
	}
	_, err := DialBest(t.Context(), LadderConfig{URL: "https://" + silent(t).String(), WebSocketURL: "nowhere"})
	require.ErrorIs(t, err, ErrConfig)
}

// TestSilentSession: a WebTransport session that begins and carries nothing isn't chosen. The next way is, of the same dial.
func TestSilentSession(t *testing.T) {
	begun := make(chan struct{}, 1)
	silent, hash := otherServer(t, func(*webtransport.Session) { begun <- struct{}{} })
	s, err := NewServer(ServerConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	site := httptest.NewServer(s)
	t.Cleanup(site.Close)
	l, err := DialBest(t.Context(), LadderConfig{URL: silent, WebSocketURL: site.URL, Dial: DialConfig{CertificateHash: hash}})
	require.NoError(t, err)
	<-begun
	eventually(t, "one is chosen", func() bool {
		_, ok := l.Way()
		return ok
	})
	way, _ := l.Way()
	require.Equal(t, WebSocket, way)
	n, err := s.TryReadBatch(make([]udp.Message, 1))
	require.NoError(t, err)
	require.Zero(t, n, "the driver sees no probes")
	require.NoError(t, l.Close())
}

// TestLateAnswers: answers to probes that come after a way is chosen are the ladder's, and don't count as something that came from the game.
func TestLateAnswers(t *testing.T) {
	a, b := udp.Pair(netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:2"))
	t.Cleanup(func() { require.NoError(t, errors.Join(a.Close(), b.Close())) })
	l := &Ladder{chosen: a, way: UDP}
	answer := newProbe(probeAnswer)
	write := func(p ...[]byte) {
		for _, p := range p {
			_, err := b.WriteBatch([]udp.Message{{Buf: p, Addr: a.LocalAddr()}})
			require.NoError(t, err)
		}
	}
	in := make([]udp.Message, 8)
	for i := range in {
		in[i].Buf = make([]byte, mailbox.MaxDatagram)
	}
	write(answer, answer)
	n, err := l.TryReadBatch(in)
	require.NoError(t, err)
	require.Zero(t, n)
	require.False(t, l.heard.Load())
	write(answer, []byte("one"), answer, []byte("two"))
	n, err = l.TryReadBatch(in)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, "one two", string(in[0].Data())+" "+string(in[1].Data()))
	require.True(t, l.heard.Load())
}

// TestProbesKeepTheirPace: who sends a client that asks something else, and as fast as he can, has it ask no more often.
func TestProbesKeepTheirPace(t *testing.T) {
	s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	var probes, sent atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		var p [2000]byte
		_, to, err := s.ReadFromUDPAddrPort(p[:])
		if err != nil {
			return
		}
		probes.Add(1)
		flood := make(chan struct{})
		go func() {
			defer close(flood)
			for {
				if _, err := s.WriteToUDPAddrPort([]byte{1}, to); err != nil {
					return
				}
				sent.Add(1)
				time.Sleep(50 * time.Microsecond)
			}
		}()
		for err == nil {
			if _, _, err = s.ReadFromUDPAddrPort(p[:]); err == nil {
				probes.Add(1)
			}
		}
		<-flood
	}()
	ctx, stop := context.WithCancel(t.Context())
	l, err := DialBest(ctx, LadderConfig{UDP: s.LocalAddr().(*net.UDPAddr).AddrPort()})
	require.NoError(t, err)
	time.Sleep(2 * time.Second)
	stop()
	require.NoError(t, l.Close())
	require.NoError(t, s.Close())
	<-done
	t.Logf("%d datagrams of a byte had it send %d probes", sent.Load(), probes.Load())
	require.LessOrEqual(t, probes.Load(), int64(2*time.Second/probeInterval)+5)
}

// stopped is a session whose reader's thread stands still once, right after it has read something.
type stopped struct {
	udp.Socket
	after  func()
	closed atomic.Bool
}

func (s *stopped) TryReadBatch(msgs []udp.Message) (int, error) {
	n, err := s.Socket.TryReadBatch(msgs)
	if f := s.after; f != nil && n > 0 {
		s.after = nil
		f()
	}
	return n, err
}

func (s *stopped) Close() error {
	s.closed.Store(true)
	return s.Socket.Close()
}

// TestFormerIsKept: what came by the former session while the connection moved doesn't end that session: its end could come before the server has heard of the move.
func TestFormerIsKept(t *testing.T) {
	a, b := udp.Pair(netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:2"))
	c, d := udp.Pair(netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:2"))
	old := &stopped{Socket: a}
	l := &Ladder{chosen: old, way: WebTransport, wait: readwait.New()}
	l.mover.begin(true, [16]byte{1}, 0)
	l.heard.Store(true)
	old.after = func() { require.True(t, l.change(context.Background(), rung{Attempt{Way: WebSocket}, c})) }
	_, err := b.WriteBatch([]udp.Message{{Buf: []byte("late"), Addr: a.LocalAddr()}})
	require.NoError(t, err)
	in := []udp.Message{{Buf: make([]byte, 1500)}}
	n, err := l.TryReadBatch(in)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	l.done.Wait()
	require.False(t, old.closed.Load(), "the server may not have heard of the move")
	_, err = d.WriteBatch([]udp.Message{{Buf: []byte("new"), Addr: a.LocalAddr()}})
	require.NoError(t, err)
	n, err = l.TryReadBatch(in)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	l.done.Wait()
	require.True(t, old.closed.Load())
}
