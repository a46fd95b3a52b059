//go:build !js

package web

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/internal/redirects"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// stranger opens a WebSocket by hand.
func (d *door) stranger(header http.Header) (*websocket.Conn, *http.Response, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig(d.hash)}}
	c, r, err := websocket.Dial(context.Background(), d.url, &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	if err != nil {
		client.CloseIdleConnections()
	}
	return c, r, err
}

func (d *door) must(header http.Header) *websocket.Conn {
	c, _, err := d.stranger(header)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// TestMessages: text, and a message that is longer than a datagram, end the session with words for who wrote the client; the longest arrives.
func TestMessages(t *testing.T) {
	d := newDoor(t, ServerConfig{})
	in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
	fits := d.must(nil)
	require.NoError(t, fits.Write(t.Context(), websocket.MessageBinary, make([]byte, mailbox.MaxDatagram)))
	eventually(t, "arrived", func() bool {
		n, err := d.TryReadBatch(in)
		require.NoError(t, err)
		return n == 1
	})
	require.Equal(t, mailbox.MaxDatagram, in[0].N)

	for _, n := range []int{mailbox.MaxDatagram + 1, 30_000, 1 << 20} {
		long := d.must(nil)
		_ = long.Write(t.Context(), websocket.MessageBinary, make([]byte, n)) // of a very long one the rest isn't taken
		_, _, err := long.Read(t.Context())
		if n < 1<<20 {
			require.Equal(t, websocket.StatusMessageTooBig, websocket.CloseStatus(err), n)
		}
		require.Error(t, err)
	}
	text := d.must(nil)
	require.NoError(t, text.Write(t.Context(), websocket.MessageText, []byte("hello")))
	_, _, err := text.Read(t.Context())
	require.Equal(t, websocket.StatusUnsupportedData, websocket.CloseStatus(err))
	require.ErrorContains(t, err, "binary")
	eventually(t, "counted", func() bool { n := d.Counters(); return n.Long == 3 && n.Text == 1 })
	require.Equal(t, 1, d.Len(), "nobody else is disturbed")
	n, err := d.TryReadBatch(in)
	require.NoError(t, err)
	require.Zero(t, n)
}

// TestOrigins: a page of another host is refused unless it is listed; what is no browser has no origin.
func TestOrigins(t *testing.T) {
	for name, test := range map[string]struct {
		origins []string
		origin  string
		good    bool
	}{
		"none":            {nil, "", true},
		"own":             {nil, "https://OWN", true},
		"other":           {nil, "https://evil.example", false},
		"listed":          {[]string{"https://play.example"}, "https://play.example", true},
		"listed, capital": {[]string{"https://play.example"}, "https://Play.Example", true},
		"not listed":      {[]string{"https://play.example"}, "https://play.example.evil.example", false},
		"other scheme":    {[]string{"https://play.example"}, "http://play.example", false},
		"own isn't":       {[]string{"https://play.example"}, "https://OWN", false},
		"null":            {nil, "null", false},
		"every":           {[]string{"*"}, "https://evil.example", true},
	} {
		d := newDoor(t, ServerConfig{Origins: test.origins})
		header := http.Header{}
		if test.origin != "" {
			own := strings.TrimSuffix(strings.TrimPrefix(d.url, "https://"), "/bunchnet")
			header.Set("Origin", strings.Replace(test.origin, "OWN", own, 1))
		}
		if test.good {
			d.must(header)
			require.Zero(t, d.Counters().BadOrigin, name)
			continue
		}
		_, r, err := d.stranger(header)
		require.Error(t, err, name)
		require.Equal(t, http.StatusForbidden, r.StatusCode, name)
		require.EqualValues(t, 1, d.Counters().BadOrigin, name)
	}
	for _, bad := range []string{"play.example", "https://play.example/", "", "//x"} {
		_, err := NewServer(ServerConfig{Origins: []string{bad}})
		require.ErrorIs(t, err, ErrConfig, bad)
	}
}

// TestRefused: each refusal of a request has its status and its counter, and leaves no place taken.
func TestRefused(t *testing.T) {
	s, err := NewServer(ServerConfig{MaxConns: 4, MaxPerAddr: 2, MaxHalfOpen: 3, Rate: 1, Burst: 3})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	ask := func(from string, header map[string]string) int {
		r := httptest.NewRequest("GET", "http://server/bunchnet", nil)
		r.RemoteAddr = from
		for k, v := range header {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	half := map[string]string{"Upgrade": "websocket"} // a request that isn't completed
	require.Equal(t, http.StatusUpgradeRequired, ask("192.0.2.1:1", nil))
	require.Equal(t, http.StatusBadRequest, ask("a pipe", half))
	require.Equal(t, http.StatusUpgradeRequired, ask("192.0.2.1:1", half), "the upgrade itself is wrong")
	require.Zero(t, s.open+s.half, "no place is taken")
	n := s.Counters()
	require.EqualValues(t, []uint64{1, 1, 1}, []uint64{n.BadRequest, n.BadAddr, n.BadUpgrade})
	for range 2 {
		ask("192.0.2.1:1", half)
	}
	require.Equal(t, http.StatusTooManyRequests, ask("192.0.2.1:2", half))
	require.EqualValues(t, 1, s.Counters().Limited)

	for _, a := range []string{"192.0.2.2", "::ffff:192.0.2.2"} {
		n, _, _ := s.take(netip.MustParseAddr(a))
		require.Nil(t, n)
	}
	require.Equal(t, http.StatusServiceUnavailable, ask("192.0.2.2:9", half))
	require.EqualValues(t, 1, s.Counters().TooManyFromAddress)
	c, _, _ := s.take(netip.MustParseAddr("192.0.2.3"))
	require.Nil(t, c)
	require.Equal(t, http.StatusServiceUnavailable, ask("192.0.2.4:1", half))
	require.EqualValues(t, 1, s.Counters().TooManyHalfOpen)
	s.half = 0 // as if they were answered
	c, _, _ = s.take(netip.MustParseAddr("192.0.2.5"))
	require.Nil(t, c)
	require.Equal(t, http.StatusServiceUnavailable, ask("192.0.2.6:1", half))
	require.EqualValues(t, 1, s.Counters().Full)
}

// TestHalfOpen: sessions that show nothing end by themselves, within their bound, and a player comes in beside them, also while more come than there is
// room for.
func TestHalfOpen(t *testing.T) {
	g := newGame(t, driver.Config{}, ServerConfig{MaxHalfOpen: 8, HalfOpen: 300 * time.Millisecond, Burst: 10000, Rate: 10000, TotalRate: 10000})
	stranger := func() {
		c, _, err := g.door.stranger(nil)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.CloseNow() })
	}
	for range 20 {
		stranger()
	}
	require.LessOrEqual(t, g.door.Len(), 8)
	require.GreaterOrEqual(t, g.door.Counters().Crowded+g.door.Counters().Unanswered, uint64(12))
	g.until("they end", func() bool { return g.door.Len() == 0 })

	flooding := true
	g.also = func(time.Time) {
		if flooding {
			stranger()
			require.LessOrEqual(t, g.door.Len(), 8+len(g.clients))
		}
	}
	p := g.dial(WebSocket, driver.Config{})
	g.until("joined beside a flood", func() bool { return p.conn != nil })
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		g.tick()
	}
	flooding = false
	g.until("strangers end", func() bool { return g.door.Len() == 1 })
	require.Nil(t, p.end, "who is answered stays")
	require.NoError(t, p.driver.Err())
	require.NotZero(t, g.door.Counters().Crowded)
	require.Zero(t, g.door.Counters().TooManyHalfOpen)
	require.LessOrEqual(t, len(g.door.shown), 2*8)
}

// TestIdle: when the driver sends a peer nothing any more, its session ends.
func TestIdle(t *testing.T) {
	d := newDoor(t, ServerConfig{Idle: 200 * time.Millisecond})
	for _, way := range ways {
		from := hello(t, d, d.dial(way))
		_, err := d.WriteBatch([]udp.Message{{Buf: []byte("ho"), Addr: from}})
		require.NoError(t, err)
	}
	d.mu.Lock()
	for _, p := range d.peers {
		if at := time.Duration(p.written.Load()); at > time.Hour {
			t.Errorf("%v: it isn't counted from the server's beginning, so time that is set ends sessions", at)
		}
	}
	d.mu.Unlock()
	eventually(t, "they end", func() bool {
		_, err := d.TryReadBatch(nil)
		require.NoError(t, err)
		return d.Len() == 0
	})
	require.EqualValues(t, 2, d.Counters().Idle)
	require.Zero(t, d.half)
	require.Zero(t, d.open)
}

// TestHitchEndsNobody: a server that stands still for longer than Idle, as one that loads a level, keeps its players.
func TestHitchEndsNobody(t *testing.T) {
	g := newGame(t, driver.Config{}, ServerConfig{Idle: 1500 * time.Millisecond, HalfOpen: 2 * time.Second})
	players := []*player{g.dial(WebTransport, driver.Config{}), g.dial(WebSocket, driver.Config{})}
	g.until("they play", func() bool { return players[0].own() != nil && players[1].own() != nil })
	time.Sleep(2500 * time.Millisecond)
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		g.tick()
	}
	require.Zero(t, g.door.Counters().Idle)
	for _, p := range players {
		require.Nil(t, p.end)
		require.NoError(t, p.driver.Err())
	}
	require.Equal(t, 2, g.door.Len())
}

// TestSlowReader: a peer that never reads costs the server the bytes of its queue: what is newer takes the place of what is older, the writer never waits, and others
// aren't disturbed.
func TestSlowReader(t *testing.T) {
	d := newDoor(t, ServerConfig{SendBuffer: 20_000})
	slow := d.must(nil)
	require.NoError(t, slow.Write(t.Context(), websocket.MessageBinary, []byte("hi")))
	in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
	eventually(t, "it came", func() bool {
		n, err := d.TryReadBatch(in)
		require.NoError(t, err)
		return n == 1
	})
	from := in[0].Addr
	good := d.dial(WebSocket)
	to := hello(t, d, good)
	payload := make([]byte, 1000)
	eventually(t, "datagrams make room", func() bool {
		for range 100 {
			_, err := d.WriteBatch([]udp.Message{{Buf: payload, Addr: from}})
			require.NoError(t, err)
		}
		return d.Counters().Unsent > 1000
	})
	d.Server.mu.Lock()
	out := &d.peers[from].out
	d.Server.mu.Unlock()
	waiting, held := out.Size()
	require.LessOrEqual(t, waiting, 20_000)
	require.LessOrEqual(t, held, 64*1024+64*mailbox.MaxDatagram)
	_, err := d.WriteBatch([]udp.Message{{Buf: []byte("the newest"), Addr: to}})
	require.NoError(t, err)
	eventually(t, "others aren't disturbed", func() bool {
		n, err := good.TryReadBatch(in)
		require.NoError(t, err)
		return n == 1 && string(in[0].Data()) == "the newest"
	})
}

// TestFlood: what one peer sends beyond its share of what waits is lost, and another's arrives.
func TestFlood(t *testing.T) {
	for _, way := range ways {
		d := newDoor(t, ServerConfig{})
		flood, good := d.dial(way), d.dial(way)
		in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
		eventually(t, "its share is full", func() bool {
			_, err := flood.WriteBatch([]udp.Message{{Buf: []byte("flood"), Addr: in[0].Addr}})
			require.NoError(t, err)
			return d.Counters().Unread > 10
		})
		eventually(t, "another's arrives", func() bool {
			_, err := good.WriteBatch([]udp.Message{{Buf: []byte("good"), Addr: in[0].Addr}})
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
			for n := 1; n > 0; {
				n, err = d.TryReadBatch(in)
				require.NoError(t, err)
				if n > 0 && string(in[0].Data()) == "good" {
					return true
				}
			}
			return false
		})
	}
}

// TestStrangersLeaveRoom: sessions that the driver hasn't answered can't fill the queue for reads, however many they are and whatever they send; one that was
// answered has its whole share.
func TestStrangersLeaveRoom(t *testing.T) {
	d := newDoor(t, ServerConfig{HalfOpen: patience, Burst: 100})
	share := 8
	require.LessOrEqual(t, share*d.cfg.MaxHalfOpen, inDatagrams/2)
	player := d.dial(WebSocket)
	from := hello(t, d, player)
	_, err := d.WriteBatch([]udp.Message{{Buf: []byte("welcome"), Addr: from}})
	require.NoError(t, err)
	const strangers = 20
	before := d.Counters().Received
	for range strangers {
		c := d.must(nil)
		for range inPerPeer {
			require.NoError(t, c.Write(t.Context(), websocket.MessageBinary, make([]byte, 100)))
		}
	}
	lost := uint64(strangers * (inPerPeer - share))
	eventually(t, "all came", func() bool { return d.Counters().Unread == lost })
	const most = inPerPeer - 10
	for range most {
		_, err := player.WriteBatch([]udp.Message{{Buf: []byte("play"), Addr: from}})
		require.NoError(t, err)
	}
	eventually(t, "all of the player's came", func() bool { return d.Counters().Received >= before+strangers*inPerPeer+most })
	require.Equal(t, lost, d.Counters().Unread)
}

// TestHalfAnUpgrade: connections that ask for nothing are bounded, and end.
func TestHalfAnUpgrade(t *testing.T) {
	d := newDoor(t, ServerConfig{MaxConns: 4})
	host := strings.TrimSuffix(strings.TrimPrefix(d.url, "https://"), "/bunchnet")
	session := d.must(nil)
	var all []net.Conn
	for range 2*4 + 64 {
		c, err := net.Dial("tcp", host)
		require.NoError(t, err)
		all = append(all, c)
	}
	require.NoError(t, all[0].SetReadDeadline(time.Now().Add(patience)))
	_, err := all[0].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the oldest made room")
	require.EqualValues(t, 1, d.Counters().TooManyConns)
	player := d.must(nil) // comes in though all places are taken
	require.EqualValues(t, 2, d.Counters().TooManyConns)
	eventually(t, "both are sessions", func() bool { return d.Len() == 2 })
	for _, c := range all {
		require.NoError(t, c.Close())
	}
	for _, c := range []*websocket.Conn{session, player} {
		require.NoError(t, c.Write(t.Context(), websocket.MessageBinary, []byte("here")))
	}
	eventually(t, "sessions stay", func() bool { return d.Counters().Received == 2 })
}

// TestConnLimit: places are bounded, in all and for each address; what is of use keeps its place, and what isn't makes room, the one that wasn't for longest
// first.
func TestConnLimit(t *testing.T) {
	over := 0
	l := newConnLimit(3, 2, time.Minute, func() { over++ })
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	var ended []string
	take := func(a netip.Addr, name string) *place { return l.take(a, func() { ended = append(ended, name) }) }
	a1, a2 := take(a, "a1"), take(a, "a2")
	require.Nil(t, take(a, "a3"), "an address has 2")
	require.Empty(t, ended)
	b1 := take(b, "b1")
	require.True(t, l.busy())
	a1.use(0, 1)
	b1.use(1, 0)
	b2 := take(b, "b2")
	require.Equal(t, []string{"a2"}, ended, "the one without use")
	b2.use(1, 0)
	b2.use(0, 1)
	b1.use(0, 1)
	require.Nil(t, take(a, "a4"), "all have sessions")
	require.Equal(t, []string{"a2"}, ended)
	b1.use(-1, -1)
	a1.use(0, -1)
	a2.use(1, 0) // a late request of the one that has gone
	a2.give()
	require.NotNil(t, take(a, "a5"))
	require.Equal(t, []string{"a2", "b1"}, ended, "the one that wasn't for longest")
	a1.use(1, 0)
	b2.use(0, -1)
	ask := l.useless.Front().Value.(*place)
	ask.use(1, 0)
	require.NotNil(t, take(b, "b3"))
	require.Equal(t, []string{"a2", "b1", "a1"}, ended, "the one whose request is oldest")
	require.Equal(t, 3, l.n)
	require.Equal(t, 5, over)
	for _, p := range []*place{a1, b1, b2, a1, ask} {
		p.give()
	}
	require.Equal(t, 1, l.n)
	require.Equal(t, 1, l.useless.Len())
	require.Zero(t, l.asking.Len())
}

// TestConnLimitShares: strangers that hold all places, with requests whose answers they don't read or with none, and go on coming, leave a newcomer the
// time in which half of the places are taken by others.
func TestConnLimitShares(t *testing.T) {
	const places = 40
	for _, asks := range []bool{false, true} {
		l := newConnLimit(places, -1, time.Minute, func() {})
		stranger := func() {
			p := l.take(netip.MustParseAddr("192.0.2.1"), func() {})
			require.NotNil(t, p)
			if asks {
				p.use(1, 0)
			}
		}
		for range 3 * places {
			stranger()
		}
		ended := false
		newcomer := l.take(netip.MustParseAddr("192.0.2.2"), func() { ended = true })
		for range places/2 - 1 { // while it shakes hands
			stranger()
		}
		require.False(t, ended, "with requests: %v", asks)
		newcomer.use(1, 0)
		for range places/2 - 1 { // while it is answered
			stranger()
		}
		require.False(t, ended, "with requests: %v", asks)
		newcomer.use(0, 1)
		for range 3 * places {
			stranger()
		}
		require.False(t, ended, "with requests: %v", asks)
	}
}

// large is a page that takes long to send to who doesn't read, and a form that takes long to read from who doesn't write.
func large(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		_, _ = io.ReadAll(r.Body)
		return
	}
	for err := error(nil); err == nil && r.Context().Err() == nil; {
		_, err = w.Write(make([]byte, 64<<10))
	}
}

// TestSlowAnswers: connections whose answers aren't read keep nobody out.
func TestSlowAnswers(t *testing.T) {
	s, err := NewServer(ServerConfig{MaxConns: 4})
	require.NoError(t, err)
	d := s.door(t, http.HandlerFunc(large))
	host := strings.TrimSuffix(strings.TrimPrefix(d.url, "https://"), "/bunchnet")
	session := d.must(nil)
	var all []net.Conn
	for range 2*4 + 64 - 1 {
		c, err := tls.Dial("tcp", host, tlsConfig(d.hash))
		require.NoError(t, err)
		_, err = io.WriteString(c, "GET /page HTTP/1.1\r\nHost: here\r\n\r\n")
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 100))
		require.NoError(t, err)
		all = append(all, c)
	}
	player := d.must(nil) // comes in though all places are taken
	require.EqualValues(t, 1, d.Counters().TooManyConns)
	require.NoError(t, all[0].SetReadDeadline(time.Now().Add(patience)))
	_, err = io.Copy(io.Discard, all[0]) // it ends with an error, or with what was sent before the close
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the oldest made room")
	for _, c := range all {
		_ = c.Close()
	}
	for _, c := range []*websocket.Conn{session, player} {
		require.NoError(t, c.Write(t.Context(), websocket.MessageBinary, []byte("here")))
	}
	eventually(t, "sessions stay", func() bool { return d.Counters().Received == 2 })
}

// TestSlowRequestsQUIC: a request on a QUIC connection whose answer isn't read, or whose body doesn't come, ends, though the connection is kept alive. A
// session has more time.
func TestSlowRequestsQUIC(t *testing.T) {
	s, err := NewServer(ServerConfig{})
	require.NoError(t, err)
	s.body, s.answer = 300*time.Millisecond, 300*time.Millisecond
	ended := make(chan string, 2)
	d := s.door(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		large(w, r)
		ended <- r.Method
	}))
	from := hello(t, d, d.dial(WebTransport))
	h3 := &http3.Transport{TLSClientConfig: tlsConfig(d.hash), QUICConfig: &quic.Config{KeepAlivePeriod: 50 * time.Millisecond}}
	defer h3.Close()
	body, _ := io.Pipe() // nothing comes
	for method, r := range map[string]io.Reader{http.MethodGet: nil, http.MethodPost: body} {
		go func() {
			req, _ := http.NewRequest(method, strings.TrimSuffix(d.url, "/bunchnet")+"/page", r)
			resp, err := h3.RoundTrip(req)
			if err == nil {
				t.Cleanup(func() { _ = resp.Body.Close() })
			}
		}()
		select {
		case which := <-ended:
			require.Equal(t, method, which)
		case <-time.After(10 * time.Second):
			t.Fatal("it is kept for ever: ", method)
		}
	}
	_ = body.Close()
	_, err = d.WriteBatch([]udp.Message{{Buf: []byte("x"), Addr: from}})
	require.NoError(t, err)
	require.Equal(t, 1, d.Len())
	require.Zero(t, d.Counters().NoPeer)
}

// TestIdleQUIC: a QUIC connection that is kept alive, on which nothing is asked for, ends; a session's stays.
func TestIdleQUIC(t *testing.T) {
	s, err := NewServer(ServerConfig{})
	require.NoError(t, err)
	s.idle = 300 * time.Millisecond
	cert, hash, err := NewCertificate(time.Now())
	require.NoError(t, err)
	addr, err := s.Listen("127.0.0.1:0", ListenConfig{TLS: tlsOf(cert)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	d := &door{s, t, "https://" + addr.String() + "/bunchnet", hash}
	from := hello(t, d, d.dial(WebTransport))
	conf := tlsConfig(hash)
	conf.NextProtos = []string{"h3"}
	c, err := quic.DialAddr(t.Context(), addr.String(), conf, &quic.Config{EnableDatagrams: true, KeepAlivePeriod: 50 * time.Millisecond})
	require.NoError(t, err)
	select {
	case <-c.Context().Done():
	case <-time.After(patience):
		t.Fatal("it is kept for ever")
	}
	_, err = d.WriteBatch([]udp.Message{{Buf: []byte("x"), Addr: from}})
	require.NoError(t, err)
	require.Equal(t, 1, d.Len())
	require.Zero(t, d.Counters().NoPeer)
}

// TestLyingServer: a server of WebTransport that opens streams nobody asked for, and one of WebSocket whose answer has no end, cost a client little.
func TestLyingServer(t *testing.T) {
	cert, hash, err := NewCertificate(time.Now())
	require.NoError(t, err)
	taken := make(chan int, 1)
	h3 := &http3.Server{Addr: "127.0.0.1:0", TLSConfig: http3.ConfigureTLSConfig(tlsOf(cert))}
	webtransport.ConfigureHTTP3Server(h3)
	liar := &webtransport.Server{H3: h3, CheckOrigin: func(*http.Request) bool { return true }}
	h3.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session, err := liar.Upgrade(w, r)
		if err != nil {
			return
		}
		all := 0
		for { // until it takes no more
			s, err := session.OpenUniStream()
			if err != nil {
				break
			}
			_ = s.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
			n, err := s.Write(make([]byte, 1<<20))
			if all += n; err != nil && n == 0 {
				break
			}
		}
		taken <- all
	})
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- liar.Serve(pc) }()
	c, err := Dial(t.Context(), "https://"+pc.LocalAddr().String()+"/bunchnet", DialConfig{CertificateHash: hash})
	require.NoError(t, err)
	require.LessOrEqual(t, <-taken, 2*connBytes)
	require.NoError(t, c.in.Failed(), "the session goes on")
	require.NoError(t, c.Close())
	require.NoError(t, liar.Close())
	<-served
	require.NoError(t, pc.Close())

	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	defer endless.Close()
	c, err = Dial(t.Context(), endless.URL, DialConfig{Way: WebSocket})
	require.NoError(t, err)
	_, err = c.ReadBatch([]udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}})
	require.ErrorIs(t, err, ErrNoSession)
	require.ErrorContains(t, err, "exceeded")
	require.NoError(t, c.Close())
}

// TestFrames: frames that no honest end sends, below messages, end the session at once or with HalfOpen, and nobody else is disturbed.
func TestFrames(t *testing.T) {
	d := newDoor(t, ServerConfig{HalfOpen: 500 * time.Millisecond, Burst: 100})
	player := d.dial(WebSocket)
	from := hello(t, d, player)
	_, err := d.WriteBatch([]udp.Message{{Buf: []byte("welcome"), Addr: from}})
	require.NoError(t, err)
	host := strings.TrimSuffix(strings.TrimPrefix(d.url, "https://"), "/bunchnet")
	mask := []byte{0, 0, 0, 0}
	frame := func(head byte, length ...byte) []byte { return append(append([]byte{head}, length...), mask...) }
	var strangers sync.WaitGroup
	n := 0
	for name, c := range map[string]struct {
		p    []byte
		over int // how often
	}{
		"compressed, though nobody agreed on it": {frame(0xc2, 0x80), 1},
		"without a mask":                         {[]byte{0x82, 0x01, 'x'}, 1},
		"8 EiB long":                             {append(frame(0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), make([]byte, 4096)...), 100},
		"longer than 63 bits":                    {frame(0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), 1},
		"an unknown kind":                        {frame(0x83, 0x80), 1},
		"a continuation of nothing":              {frame(0x80, 0x80), 1},
		"a long ping":                            {append(frame(0x89, 0xfe, 0x01, 0x00), make([]byte, 256)...), 1},
		"a ping in parts":                        {frame(0x09, 0x80), 1},
		"a message of empty parts without end":   {append(frame(0x02, 0x80), frame(0x00, 0x80)...), 0},
		"parts of one byte":                      {append(append(frame(0x02, 0x81), 'x'), append(frame(0x00, 0x81), 'x')...), 1},
		"half a head":                            {[]byte{0x82, 0xff, 0x00}, 1},
		"pings without end":                      {frame(0x89, 0x80), 0},
		"half a message":                         {append(frame(0x02, 0xc0), 'x'), 1},
	} {
		n++
		stranger, err := tls.Dial("tcp", host, tlsConfig(d.hash))
		require.NoError(t, err)
		_, err = io.WriteString(stranger, "GET /bunchnet HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		require.NoError(t, err)
		r, err := http.ReadResponse(bufio.NewReader(stranger), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, r.StatusCode, name)
		require.NoError(t, stranger.SetReadDeadline(time.Now().Add(patience)))
		strangers.Go(func() { // the server ends it, and not the stranger
			if _, err := io.Copy(io.Discard, stranger); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it is kept for ever: ", name)
			}
			_ = stranger.Close()
		})
		strangers.Go(func() {
			for i, err := 0, error(nil); err == nil && (c.over == 0 || i < c.over); i++ { // until it ends
				_, err = stranger.Write(c.p)
			}
		})
	}
	strangers.Wait()
	eventually(t, "all have ended", func() bool {
		c := d.Counters()
		return d.Len() == 1 && c.Left+c.Long+c.Unanswered == uint64(n)
	})
	_, err = player.WriteBatch([]udp.Message{{Buf: []byte("play"), Addr: from}})
	require.NoError(t, err)
	in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
	eventually(t, "the player plays on", func() bool {
		n, err := d.TryReadBatch(in)
		require.NoError(t, err)
		return n == 1 && string(in[0].Data()) == "play"
	})
}

// TestDialErrors: what goes wrong is told to the driver's user, with what to do about it.
func TestDialErrors(t *testing.T) {
	for _, bad := range []string{"", "play.example", "http://x/", "ftp://x/", "https://", "https://[::1", "wss://x/"} {
		_, err := Dial(t.Context(), bad, DialConfig{})
		require.ErrorIs(t, err, ErrConfig, bad)
	}
	_, err := Dial(t.Context(), "https://x/", DialConfig{Way: 9})
	require.ErrorIs(t, err, ErrConfig)
	_, err = Dial(t.Context(), "https://x/", DialConfig{SendBuffer: -1})
	require.ErrorIs(t, err, ErrConfig)

	d := newDoor(t, ServerConfig{Origins: []string{"https://play.example"}})
	for _, way := range ways {
		for name, test := range map[string]struct {
			url  string
			hash bool
			want string
		}{
			"another certificate": {d.url, false, "certificate"},
			"another path":        {strings.Replace(d.url, "/bunchnet", "/other", 1), true, "404"},
		} {
			cfg := DialConfig{Way: way, CertificateHash: d.hash}
			if !test.hash {
				cfg.CertificateHash[0]++
			}
			c, err := Dial(t.Context(), test.url, cfg)
			require.NoError(t, err)
			in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
			require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
			_, err = c.ReadBatch(in)
			require.ErrorIs(t, err, ErrNoSession, "%v %s", way, name)
			require.ErrorContains(t, err, test.want, "%v %s", way, name)
			_, err = c.WriteBatch([]udp.Message{{Buf: []byte("x"), Addr: netip.MustParseAddrPort("192.0.2.1:1")}})
			require.ErrorIs(t, err, ErrNoSession)
			require.NoError(t, c.Close())
		}
	}
	_, err = d.Listen("127.0.0.1:0", ListenConfig{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = d.Listen("127.0.0.1:0", ListenConfig{TLS: &tls.Config{}})
	require.Error(t, err)
}

// TestCloseAtAnyTime: both ends close at any moment of a session's beginning, and nothing is left behind.
func TestCloseAtAnyTime(t *testing.T) {
	for _, way := range ways {
		for i := range 12 {
			d := newDoor(t, ServerConfig{})
			c := d.dial(way)
			for k := range 8 {
				_, err := c.WriteBatch([]udp.Message{{Buf: fmt.Append(nil, k), Addr: netip.MustParseAddrPort("192.0.2.1:1")}})
				require.NoError(t, err)
			}
			time.Sleep(time.Duration(i) * time.Millisecond) // so that it is another moment each time
			if i%2 == 0 {
				require.NoError(t, c.Close())
			}
			require.NoError(t, d.Close())
			require.NoError(t, d.Close())
			_, err := d.TryReadBatch(make([]udp.Message, 1))
			require.ErrorIs(t, err, net.ErrClosed)
			_, err = d.WriteBatch(nil)
			require.ErrorIs(t, err, net.ErrClosed)
			require.Zero(t, d.Len())
		}
	}
}

// TestLastWords: what is written just before Close is read before the end is, by WebSocket; WebTransport may lose it, and tells the end.
func TestLastWords(t *testing.T) {
	for _, way := range ways {
		d := newDoor(t, ServerConfig{})
		c := d.dial(way)
		from := hello(t, d, c)
		_, err := d.WriteBatch([]udp.Message{{Buf: []byte("last words"), Addr: from}})
		require.NoError(t, err)
		require.NoError(t, d.Close())
		var got []string
		in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
		for {
			n, err := c.ReadBatch(in)
			if err != nil {
				require.ErrorIs(t, err, ErrEnded)
				if way == WebSocket { // the end of QUIC may overtake that of the session
					require.ErrorContains(t, err, errClosing.Error())
				}
				break
			}
			require.Equal(t, 1, n)
			got = append(got, string(in[0].Data()))
		}
		if way == WebSocket {
			require.Equal(t, []string{"last words"}, got)
		}
	}
}

// noted is a session that notes what is sent.
type noted struct {
	sent   []string
	closed chan struct{}
	once   sync.Once
}

func (n *noted) send(p []byte) error {
	n.sent = append(n.sent, string(p))
	return nil
}

func (n *noted) receive(*mailbox.Inbox) ([]byte, error) {
	<-n.closed
	return nil, io.EOF
}

func (n *noted) close(error) { n.once.Do(func() { close(n.closed) }) }

// TestClosedAtOnce: what is written is sent even when Close comes before its goroutine has run.
func TestClosedAtOnce(t *testing.T) {
	for range 100 {
		s, err := NewServer(ServerConfig{})
		require.NoError(t, err)
		n, _, _ := s.take(netip.MustParseAddr("192.0.2.1"))
		require.Nil(t, n)
		l := &noted{closed: make(chan struct{})}
		s.begin(WebSocket, netip.MustParseAddrPort("192.0.2.1:1"), l, func() {})
		for addr := range s.peers {
			_, err := s.WriteBatch([]udp.Message{{Buf: []byte("last words"), Addr: addr}})
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
		require.Equal(t, []string{"last words"}, l.sent)
		require.Zero(t, s.open+s.half)
	}
}

// TestOtherProtocols: what a TLS config negotiates besides HTTP stays, as ACME's challenge does (RFC 8737) by which autocert gets a certificate. HTTP/2, which
// has no WebSockets here, doesn't.
func TestOtherProtocols(t *testing.T) {
	s, err := NewServer(ServerConfig{})
	require.NoError(t, err)
	cert, hash, err := NewCertificate(time.Now())
	require.NoError(t, err)
	conf := tlsOf(cert)
	conf.NextProtos = []string{"h2", "http/1.1", "acme-tls/1"}
	addr, err := s.Listen("127.0.0.1:0", ListenConfig{TLS: conf})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for want, asked := range map[string][]string{"acme-tls/1": {"acme-tls/1"}, "http/1.1": {"h2", "http/1.1"}} {
		with := tlsConfig(hash)
		with.NextProtos = asked
		c, err := tls.Dial("tcp", addr.String(), with)
		require.NoError(t, err)
		require.Equal(t, want, c.ConnectionState().NegotiatedProtocol)
		require.NoError(t, c.Close())
	}
}

// otherServer serves WebTransport sessions without a Server, and returns its URL and the certificate's hash.
func otherServer(t *testing.T, f func(*webtransport.Session)) (url string, hash [sha256.Size]byte) {
	cert, hash, err := NewCertificate(time.Now())
	require.NoError(t, err)
	h3 := &http3.Server{Addr: "127.0.0.1:0", TLSConfig: http3.ConfigureTLSConfig(tlsOf(cert))}
	webtransport.ConfigureHTTP3Server(h3)
	s := &webtransport.Server{H3: h3, CheckOrigin: func(*http.Request) bool { return true }}
	h3.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if session, err := s.Upgrade(w, r); err == nil {
			f(session)
		}
	})
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(pc) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		<-served
		require.NoError(t, pc.Close())
	})
	return "https://" + pc.LocalAddr().String() + "/bunchnet", hash
}

// TestWordsOfTheServer: what a server says at the end comes to the player without what a terminal obeys.
func TestWordsOfTheServer(t *testing.T) {
	url, hash := otherServer(t, func(s *webtransport.Session) { _ = s.CloseWithError(7, "bye\x1b[2J\n\u202egone") })
	c, err := Dial(t.Context(), url, DialConfig{CertificateHash: hash})
	require.NoError(t, err)
	_, err = c.ReadBatch([]udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}})
	require.ErrorIs(t, err, ErrEnded)
	require.ErrorContains(t, err, "bye?[2J??gone")
	require.NotContains(t, err.Error(), "\x1b")
	require.NoError(t, c.Close())
}

// TestForeignPages: a page that isn't in Origins can make a player's browser ask for sessions. That takes nothing of the player's Rate, nor of TotalRate.
func TestForeignPages(t *testing.T) {
	d := newDoor(t, ServerConfig{Rate: 0.001, Burst: 2, TotalRate: 2})
	for range 10 {
		_, r, err := d.stranger(http.Header{"Origin": {"https://evil.example"}})
		require.Error(t, err)
		require.Equal(t, http.StatusForbidden, r.StatusCode)
	}
	d.must(nil)
	require.EqualValues(t, 10, d.Counters().BadOrigin)
	require.Zero(t, d.Counters().Limited)
}

// together is a session that takes nothing, and that ends once all end.
type together struct {
	noted
	closing *sync.WaitGroup
}

func (l *together) send([]byte) error {
	<-l.closed
	return errSlow
}

func (l *together) close(why error) {
	l.once.Do(func() {
		l.closing.Done()
		l.closing.Wait()
		close(l.closed)
	})
}

// TestCloseManySlow: sessions whose peers take nothing are ended by Close at once, not one after the other.
func TestCloseManySlow(t *testing.T) {
	const n = 8
	s, err := NewServer(ServerConfig{})
	require.NoError(t, err)
	var closing sync.WaitGroup
	closing.Add(n)
	for i := range n {
		no, _, _ := s.take(netip.MustParseAddr("192.0.2.1"))
		require.Nil(t, no)
		l := &together{noted: noted{closed: make(chan struct{})}, closing: &closing}
		s.begin(WebSocket, netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(i+1)), l, func() {})
	}
	for addr := range s.peers {
		_, err := s.WriteBatch([]udp.Message{{Buf: []byte("x"), Addr: addr}})
		require.NoError(t, err)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("never closed")
	}
}

// TestProbesLeaveLittle: a session that probes without an end and reads nothing has the server hold the answers to a few.
func TestProbesLeaveLittle(t *testing.T) {
	d := newDoor(t, ServerConfig{})
	slow := d.must(nil)
	ask := newProbe(probeAsk)
	eventually(t, "answers are lost", func() bool {
		_ = slow.Write(t.Context(), websocket.MessageBinary, ask)
		return d.Counters().Unsent > 100
	})
	d.Server.mu.Lock()
	defer d.Server.mu.Unlock()
	for _, p := range d.peers {
		waiting, _ := p.out.Size()
		require.LessOrEqual(t, waiting, (maxProbes+1)*probeBytes)
		require.False(t, p.answered.Load())
	}
}

// TestRedirectsEnd: a server that sends a WebSocket's request elsewhere again and again is asked a few times.
func TestRedirectsEnd(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	}))
	defer s.Close()
	c, err := Dial(t.Context(), s.URL, DialConfig{Way: WebSocket})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.ReadBatch(make([]udp.Message, 1))
	require.ErrorIs(t, err, ErrNoSession)
	require.ErrorContains(t, err, "elsewhere")
	require.LessOrEqual(t, asked.Load(), int64(redirects.Most))
}
