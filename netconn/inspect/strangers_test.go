package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestAccess: by default only this machine is answered, under its own names; a token or a handler of one's own lets others in.
func TestAccess(t *testing.T) {
	a, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	d, err := driver.Listen("", driver.Config{Socket: a})
	require.NoError(t, err)
	defer d.Close()
	code := func(i *Inspector, from, host, path string, header ...string) int {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.RemoteAddr, r.Host = from, host
		if len(header) == 2 {
			r.Header.Set(header[0], header[1])
		}
		w := httptest.NewRecorder()
		i.ServeHTTP(w, r)
		return w.Code
	}
	const file = "/net/page.js"
	plain := New(d, Config{})
	for _, c := range []struct {
		from, host string
		want       int
	}{
		{"127.0.0.1:9", "localhost", 200}, {"127.0.0.1:9", "LOCALHOST:8080", 200}, {"127.0.0.1:9", "127.0.0.1:8080", 200},
		{"127.3.0.1:9", "127.3.0.1", 200}, {"[::1]:9", "[::1]:8080", 200}, {"[::1]:9", "[::1]", 200}, {"[::ffff:127.0.0.1]:9", "localhost", 200},
		{"127.0.0.1:9", "evil.example", 403}, {"127.0.0.1:9", "evil.example:8080", 403}, {"127.0.0.1:9", "localhost.evil.example", 403},
		{"127.0.0.1:9", "127.0.0.1.evil.example", 403}, {"127.0.0.1:9", "", 403}, {"127.0.0.1:9", "10.0.0.1", 403},
		{"10.0.0.2:9", "localhost", 403}, {"10.0.0.2:9", "10.0.0.1", 403}, {"", "localhost", 403}, {"@", "localhost", 403},
	} {
		require.Equal(t, c.want, code(plain, c.from, c.host, file), "%+v", c)
	}
	for _, c := range []struct {
		header, value string
		want          int
	}{
		{"Sec-Fetch-Site", "same-origin", 200}, {"Sec-Fetch-Site", "none", 200}, {"Sec-Fetch-Site", "cross-site", 403}, {"Sec-Fetch-Site", "same-site", 403},
		{"Origin", "http://localhost", 200}, {"Origin", "http://evil.example", 403}, {"Origin", "http://localhost:8000", 403}, {"Origin", "null", 403},
		{"X-Forwarded-For", "203.0.113.9", 403}, {"Forwarded", "for=203.0.113.9", 403}, {"X-Real-Ip", "203.0.113.9", 403}, {"Via", "1.1 proxy", 403},
	} {
		require.Equal(t, c.want, code(plain, "127.0.0.1:9", "localhost", file, c.header, c.value), "%+v", c)
		require.Equal(t, 200, code(New(d, Config{Token: "sesame"}), "127.0.0.1:9", "localhost", file+"?token=sesame", c.header, c.value), "%+v", c)
	}
	link := httptest.NewRequest(http.MethodGet, "/net/", nil)
	link.RemoteAddr, link.Host = "127.0.0.1:9", "localhost"
	link.Header.Set("Sec-Fetch-Site", "cross-site")
	link.Header.Set("Sec-Fetch-Mode", "navigate")
	link.Header.Set("Sec-Fetch-Dest", "document")
	require.True(t, plain.allowed(link), "a link that somebody follows here")
	for _, path := range []string{"events", "past", "json", "export", "text", "page.js"} { // a window that the other page opens, or what it loads in advance
		link.URL.Path = "/net/" + path
		require.False(t, plain.allowed(link), path)
	}
	link.URL.Path = "/net/"
	link.Header.Set("Sec-Fetch-Dest", "iframe")
	require.False(t, plain.allowed(link))
	require.Equal(t, 200, code(plain, "127.0.0.1:9", "localhost:8080", file, "Origin", "http://localhost:8080"))
	require.Equal(t, 403, code(plain, "10.0.0.2:9", "10.0.0.1", file+"?token="), "no token is none")
	require.Equal(t, 403, code(plain, "10.0.0.2:9", "10.0.0.1", file, "Authorization", "Bearer "))

	token := New(d, Config{Token: "sesame"})
	require.Equal(t, 403, code(token, "127.0.0.1:9", "localhost", file), "this machine needs the token too")
	require.Equal(t, 403, code(token, "127.0.0.1:9", "evil.example", file))
	for _, h := range []string{"Bearer sesam", "Bearer sesame1", "sesame", "Basic sesame", ""} {
		require.Equal(t, 403, code(token, "10.0.0.2:9", "game.example", file, "Authorization", h), h)
	}
	require.Equal(t, 200, code(token, "10.0.0.2:9", "game.example", file, "Authorization", "Bearer sesame"))
	require.Equal(t, 200, code(token, "10.0.0.2:9", "game.example", file, "Cookie", cookie("sesame").String()))
	require.Equal(t, 403, code(token, "10.0.0.2:9", "game.example", file, "Cookie", cookie("sesame").Name+"=other"))
	r := httptest.NewRequest(http.MethodGet, "/net/?conn=5&token=sesame", nil)
	r.RemoteAddr, r.Host = "10.0.0.2:9", "game.example"
	r.Header.Set("Accept", "text/html")
	w := httptest.NewRecorder()
	token.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "0; url=./?conn=5", w.Header().Get("Refresh"))
	require.NotContains(t, w.Body.String(), "sesame")
	require.Equal(t, cookie("sesame").String()+"; Path=/net/; HttpOnly; SameSite=Strict", w.Header().Get("Set-Cookie"))
	own := New(d, Config{Token: "sesame", Allow: func(r *http.Request) bool { return r.Header.Get("X-Operator") != "" }})
	r = httptest.NewRequest(http.MethodGet, "/net/?token=guess", nil)
	r.Header.Set("X-Operator", "Ann")
	r.Header.Set("Accept", "text/html")
	w = httptest.NewRecorder()
	own.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	require.Empty(t, w.Header().Get("Set-Cookie"), "who doesn't have the token isn't given it")
	for _, odd := range []string{`"quoted"`, "semi;colon", "two words", "back\\slash", "Schlüssel", "com,ma", "\x00"} { // whatever it is made of
		i := New(d, Config{Token: odd})
		r := httptest.NewRequest(http.MethodGet, "/net/?token="+url.QueryEscape(odd), nil)
		r.RemoteAddr, r.Host = "10.0.0.2:9", "game.example"
		r.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		i.ServeHTTP(w, r)
		require.Equal(t, "0; url=./", w.Header().Get("Refresh"), odd)
		kept, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
		require.Equal(t, 200, code(i, "10.0.0.2:9", "game.example", file, "Cookie", kept), odd)
		require.Equal(t, 200, code(i, "10.0.0.2:9", "game.example", file, "Cookie", cookie("another").String()+"; "+kept), "another inspector's cookie beside it")
	}

	require.Equal(t, 200, code(own, "10.0.0.2:9", "game.example", file, "X-Operator", "Ann"))
	require.Equal(t, 403, code(own, "127.0.0.1:9", "localhost", file))
}

// TestProxyWithoutHeaders: behind a proxy on this machine that says nothing of whom it passes on, as nginx by default, every request seems to be this
// machine's own. With a Token nobody is answered who doesn't send it.
func TestProxyWithoutHeaders(t *testing.T) {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	defer d.Close()
	inner := httptest.NewServer(New(d, Config{Token: "sesame"}))
	defer inner.Close()
	to, err := url.Parse(inner.URL)
	require.NoError(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
	defer proxy.Close()
	code := func(path string, header ...string) int {
		r, err := http.NewRequest(http.MethodGet, proxy.URL+path, nil)
		require.NoError(t, err)
		r.Host = "game.example"
		if len(header) == 2 {
			r.Header.Set(header[0], header[1])
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, 403, code("/net/page.js"))
	require.Equal(t, 403, code("/net/page.js?token=guess"))
	require.Equal(t, 403, code("/net/page.js", "Authorization", "Bearer guess"))
	require.Equal(t, 200, code("/net/page.js", "Authorization", "Bearer sesame"))
	require.Equal(t, 200, code("/net/page.js?token=sesame"))
}

// TestViewersThatDontRead: eight viewers that never read what they are sent give their places up.
func TestViewersThatDontRead(t *testing.T) {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	long := strings.Repeat("why ", 100_000)
	i := New(d, Config{Interval: time.Millisecond, Figures: func() []Figure { return []Figure{{Name: long}} }})
	i.patience = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, nil) }()
	web := httptest.NewServer(i)
	defer func() {
		web.Close()
		cancel()
		require.NoError(t, <-done)
	}()
	for range 8 {
		c, err := net.Dial("tcp", web.Listener.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4096))
		_, err = fmt.Fprintf(c, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return len(i.viewers) == 8 }, 20*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		resp, err := http.Get(web.URL + "/events")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return false
		}
		_, err = io.CopyN(io.Discard, resp.Body, 10)
		return err == nil
	}, 60*time.Second, 10*time.Millisecond, "a viewer that reads gets a place")
}

// TestAnswersThatNobodyReads: what is answered at once isn't kept for viewers that never read it.
func TestAnswersThatNobodyReads(t *testing.T) {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	long := strings.Repeat("why ", 2<<20)
	i := New(d, Config{Figures: func() []Figure { return []Figure{{Name: long}} }})
	i.answer = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, nil) }()
	var left atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.ServeHTTP(w, r)
		left.Add(1)
	}))
	defer func() {
		web.Close()
		cancel()
		require.NoError(t, <-done)
	}()
	for _, path := range []string{"text", "json", "export"} {
		c, err := net.Dial("tcp", web.Listener.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4096))
		_, err = fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return left.Load() == 3 }, 60*time.Second, time.Millisecond)
}

// TestFilmThatNobodyReads: a viewer that doesn't read a film keeps others from films as long as an event of theirs may take, and not for all of the
// time that a film may take.
func TestFilmThatNobodyReads(t *testing.T) {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	world := actorrep.NewServer(actorrep.Config{})
	past, err := flight.New(world, d, flight.Config{})
	require.NoError(t, err)
	i := New(d, Config{Past: past, Title: strings.Repeat("a game ", 2<<20)})
	i.patience, i.answer = 100*time.Millisecond, time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, nil) }()
	web := httptest.NewServer(i)
	defer func() {
		web.Close()
		cancel()
		require.NoError(t, <-done)
	}()
	require.Eventually(t, i.source.lives, 60*time.Second, time.Millisecond)
	c, err := net.Dial("tcp", web.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4096))
	_, err = fmt.Fprint(c, "GET /past HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, 100))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(i.films) == 0 }, 60*time.Second, time.Millisecond)
}

// TestEveryEventIsNew: a viewer whose timer is early by turns, as every timer is, gets a new look in each event, beside others at other moments of the
// interval, and all of them together cost the driver one look an interval.
func TestEveryEventIsNew(t *testing.T) {
	looks := 0
	cfg := Config{Actors: func(*driver.Conn, ActorQuery) ActorPage { looks++; return ActorPage{} }}
	busy(t, cfg, func(t *testing.T, i *Inspector) {
		const events = 40
		begin := time.Now()
		var wg sync.WaitGroup
		for n := range 3 {
			wg.Go(func() {
				last := time.Duration(-1)
				for e := range events {
					late := time.Duration(n)*80*time.Millisecond + time.Duration((1-e%2)*20)*time.Millisecond
					time.Sleep(time.Until(begin.Add(time.Duration(e)*i.cfg.Interval + late)))
					k, err := i.get(t.Context(), Query{})
					if assert.NoError(t, err) {
						assert.Greater(t, k.view.At, last, "viewer %d, event %d", n, e)
						last = k.view.At
					}
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, looks, events+2)
	})
}

// TestViewersShare: eight viewers of one connection cost the driver one look an interval.
func TestViewersShare(t *testing.T) {
	looks := 0
	cfg := Config{Actors: func(*driver.Conn, ActorQuery) ActorPage { looks++; return ActorPage{} }}
	busy(t, cfg, func(t *testing.T, i *Inspector) {
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // 20 intervals
		defer cancel()
		for range 8 {
			wg.Go(func() {
				i.ServeHTTP(httptest.NewRecorder(), local(httptest.NewRequestWithContext(ctx, http.MethodGet, "/net/events", nil)))
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		require.Less(t, looks, 25)
		require.Greater(t, looks, 10)

		first, err := i.get(t.Context(), Query{})
		require.NoError(t, err)
		again, err := i.get(t.Context(), Query{})
		require.NoError(t, err)
		a, err := first.encoded()
		require.NoError(t, err)
		b, err := again.encoded()
		require.NoError(t, err)
		require.Same(t, &a[0], &b[0], "it is encoded once for all of them")
		other, err := i.get(t.Context(), Query{Conn: 77})
		require.NoError(t, err)
		require.Equal(t, first.view.At, other.view.At, "whoever asks for something else in the same interval sees the same moment")

		time.Sleep(i.cfg.Interval)
		looks, i.looks.age = 0, time.Hour
		busyAnswers := 0
		for n := range 100 { // whoever asks for something else each time gets so much of the driver and no more
			if answer := get(i, fmt.Sprint("/json?from=", 1+n), "*/*"); answer.Code == http.StatusServiceUnavailable {
				busyAnswers++
				require.Contains(t, answer.Body.String(), "too many different requests")
			}
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		events := httptest.NewRecorder()
		i.ServeHTTP(events, local(httptest.NewRequestWithContext(ctx, http.MethodGet, "/net/events?conn=99", nil)))
		require.Contains(t, events.Body.String(), "event: stalled\ndata: \"too many different requests", "the driver is ticked")
		require.LessOrEqual(t, looks, maxLooks)
		require.Equal(t, 100-looks, busyAnswers)
	})
}

type tile struct {
	actorrep.Base
	N int32
}

var knock = actorrep.ClientRPC(func(actorrep.Call, *tile, int32) error { return nil }, actorrep.Reliable)

// bigWorld is a server's world of n actors, a peer in it, and a tick of both ends, which returns the peer's connection.
func bigWorld(t testing.TB, n int) (*actorrep.World, *actorrep.Peer, func() *driver.Conn) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Tile", (*tile)(nil), actorrep.RPCs{"Knock": knock}))
	for range n {
		require.NoError(t, w.Spawn(&tile{}))
	}
	a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	var peer *actorrep.Peer
	d, err := driver.Listen("", driver.Config{Socket: a, Channels: w.ChannelTypes(), Joined: func(c *driver.Conn) { peer = w.AddConn(c) }})
	require.NoError(t, err)
	m := actorrep.NewClient(actorrep.Config{})
	require.NoError(t, m.Register("Tile", (*tile)(nil), actorrep.RPCs{"Knock": knock}))
	c, err := driver.Dial("127.0.0.1:1", driver.Config{Socket: b, Channels: m.ChannelTypes()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()); require.NoError(t, d.Close()) })
	now := time.Now()
	tick := func() (of *driver.Conn) {
		now = now.Add(16 * time.Millisecond)
		d.TickDispatch(now)
		c.TickDispatch(now)
		if peer != nil {
			w.Step(d.Time(now))
			m.Step(c.Time(now))
		}
		d.TickFlush(now)
		c.TickFlush(now)
		for of = range d.Conns {
			return of
		}
		return nil
	}
	for range 1000 {
		if tick(); peer != nil {
			return w, peer, tick
		}
	}
	t.Fatal("never joined")
	return nil, nil, nil
}

// TestActorsBounded: what a look at a world costs doesn't grow with the world, and all of it can be paged through.
func TestActorsBounded(t *testing.T) {
	cost := func(n int, q ActorQuery) float64 {
		w, p, _ := bigWorld(t, n)
		look := Actors(w, func(*driver.Conn) *actorrep.Peer { return p })
		return testing.AllocsPerRun(10, func() { look(nil, q) })
	}
	all := ActorQuery{Max: maxShown}
	require.InDelta(t, cost(300, all), cost(20_000, all), 100) // pools lose some with the race detector; one an actor would be 19,700
	none := ActorQuery{Max: maxShown, Match: "nothing"}
	require.InDelta(t, cost(5000, none), cost(20_000, none), 100)

	w, p, _ := bigWorld(t, 1000)
	look, ids := Actors(w, func(*driver.Conn) *actorrep.Peer { return p }), map[string]bool{}
	for q, pages := all, 0; pages < 10; pages++ {
		page := look(nil, q)
		require.LessOrEqual(t, len(page.Actors), maxShown)
		require.Equal(t, 1000, page.Count)
		for _, a := range page.Actors {
			require.NotEmpty(t, a.Explain)
			ids[a.ID] = true
		}
		if q.From = page.Next; q.From == 0 {
			break
		}
	}
	require.Len(t, ids, 1000)
	for id := range ids {
		page := look(nil, ActorQuery{Max: maxShown, Match: id})
		require.NotEmpty(t, page.Actors)
		break
	}
	w, p, _ = bigWorld(t, maxFrom+2*maxShown)
	look = Actors(w, func(*driver.Conn) *actorrep.Peer { return p })
	last := look(nil, ActorQuery{Max: maxShown, From: maxFrom})
	require.Len(t, last.Actors, maxShown)
	require.Zero(t, last.Next, "nothing leads to where a look mustn't begin")
	require.Equal(t, last.Actors, look(nil, ActorQuery{Max: maxShown, From: 1 << 30}).Actors)

	w, p, _ = bigWorld(t, 1000)
	look = Actors(w, func(*driver.Conn) *actorrep.Peer { return p })
	require.Len(t, look(nil, ActorQuery{Max: maxShown, Match: "TILE"}).Actors, maxShown)
	require.Empty(t, look(nil, none).Actors)
	figures := map[string]uint64{}
	for _, f := range Figures(w)() {
		figures[f.Name] = f.Value
	}
	require.EqualValues(t, 1000, figures["actors"])
	require.Contains(t, figures, "calls dropped")
}

// TestOperator: ticks, the collector, refusals, figures, other connections' packets, idle channels and the export are there.
func TestOperator(t *testing.T) {
	cfg := Config{Figures: func() []Figure { return []Figure{{"calls sent", 7}} }}
	busy(t, cfg, func(t *testing.T, i *Inspector) {
		v := view(t, i, "/json?also=1,99")
		require.Greater(t, len(v.Load), 15)
		last := v.Load[len(v.Load)-1]
		require.Positive(t, last.Ticks)
		require.Positive(t, last.Heap)
		require.Positive(t, last.Goroutines)
		require.Positive(t, v.Ticks.Count)
		require.NotNil(t, v.Refusals)
		require.Equal(t, []Figure{{"calls sent", 7}}, v.Figures)
		require.Len(t, v.Others, 1)
		require.Equal(t, v.Detail.Sent[0].ID, v.Others[0].Sent[0].ID)
		require.Equal(t, []IdleChannels{{"Control", 1}}, v.Detail.Idle)

		time.Sleep(i.cfg.Interval)
		w := get(i, "/net/export?conn=1", "*/*")
		require.Equal(t, `attachment; filename="inspect.json"`, w.Header().Get("Content-Disposition"))
		var all struct{ Detail struct{ Sent []any } }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &all))
		require.Greater(t, len(all.Detail.Sent), shownPackets)

		text := get(i, "/text", "*/*").Body.String()
		for _, want := range []string{"ticks of ", "collections", "calls sent 7", "loss in", "receives", "1 idle: Control"} {
			require.Contains(t, text, want)
		}
		for _, bad := range []string{"/json?also=x", "/json?also=1,2,3,4,5,6,7,8", "/json?from=-1", "/json?actors=" + strings.Repeat("a", maxMatch+1), "/events?also=x",
			"/events?actors=" + strings.Repeat("a", maxMatch+1)} { // an answer without events is what a browser asks for again and again
			require.Equal(t, http.StatusBadRequest, get(i, bad, "*/*").Code, bad)
		}
		require.Equal(t, http.StatusOK, get(i, "/json?actors="+url.QueryEscape(strings.Repeat("語", 60)), "*/*").Code, "what the page's input takes")
	})
}

// TestLoad: a sample is what has happened since the one before.
func TestLoad(t *testing.T) {
	l := newLoads(2)
	var ticks driver.TickTimes
	for n := range 3 {
		ticks.Count += 4
		ticks.Dispatch, ticks.Step, ticks.Flush = ticks.Dispatch+4*time.Millisecond, ticks.Step+8*time.Millisecond, ticks.Flush+12*time.Millisecond
		ticks.Below[3] += 3
		ticks.Below[10+n]++
		goruntime.GC()
		l.sample(time.Duration(n)*time.Second, ticks)
	}
	list := l.list()
	require.Len(t, list, 2)
	for n, s := range list {
		require.Equal(t, time.Duration(n+1)*time.Second, s.At)
		require.EqualValues(t, 4, s.Ticks)
		require.Equal(t, []time.Duration{6 * time.Millisecond, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond}, []time.Duration{s.Mean, s.Dispatch, s.Step, s.Flush})
		require.Equal(t, time.Microsecond<<(11+n), s.Worst)
		require.Positive(t, s.Collections)
		require.Less(t, s.Collections, uint64(100))
		require.Positive(t, s.Pause)
	}
}

// TestProperties: procedures stand among the properties, with how often they were called.
func TestProperties(t *testing.T) {
	w, p, tick := bigWorld(t, 1)
	for range 30 {
		tick() // so that it is there
	}
	for a := range w.All {
		a.(*tile).SetOwner(p)
		require.NoError(t, knock.Call(a.(*tile), 5))
	}
	var c *driver.Conn
	for range 30 {
		c = tick()
	}
	props := map[string]Property{}
	for _, x := range Properties(func(*driver.Conn) *actorrep.Peer { return p })(c) {
		props[x.Name] = x
	}
	require.Contains(t, props, "Tile.Knock()")
	require.EqualValues(t, 1, props["Tile.Knock()"].Sent)
	require.Positive(t, props["Tile.Knock()"].Bits)
}

// TestRefusals: what the link refuses is told by reason.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
		d, err := driver.Listen("", driver.Config{Socket: a, Checksum: true})
		require.NoError(t, err)
		defer d.Close()
		i := New(d, Config{})
		_, err = b.WriteBatch([]udp.Message{{Buf: []byte("nonsense"), Addr: a.LocalAddr()}})
		require.NoError(t, err)
		d.TickDispatch(time.Now())
		d.TickFlush(time.Now())
		got := make(chan string)
		go func() { got <- get(i, "/text", "*/*").Body.String() }()
		synctest.Wait()
		d.TickDispatch(time.Now())
		require.Contains(t, <-got, "refused corrupt 1\n")
	})
}

// TestPast: the page links to what a flight recorder keeps, which is a page of its own, made for one viewer at a time.
func TestPast(t *testing.T) {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	world := actorrep.NewServer(actorrep.Config{})
	past, err := flight.New(world, d, flight.Config{})
	require.NoError(t, err)
	world.Step(time.Second)
	past.Note(0, "a shot")
	require.Equal(t, 404, get(New(d, Config{}), "/net/past", "").Code)
	i := New(d, Config{Past: past, Title: "a <game>"})
	require.Equal(t, 503, get(i, "/net/past", "").Code, "it isn't ticked")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, nil) }()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()
	require.Eventually(t, i.source.lives, 20*time.Second, time.Millisecond)
	require.True(t, view(t, i, "/net/json").Past)
	r := get(i, "/net/past?conn=3&also=4", "")
	require.Equal(t, 200, r.Code)
	require.Equal(t, "frame-ancestors 'none'", r.Header().Get("Content-Security-Policy"))
	require.Contains(t, r.Body.String(), "a &lt;game&gt;")
	require.Contains(t, r.Body.String(), `<meta http-equiv="Content-Security-Policy" content="default-src 'none';`)
	require.Equal(t, 400, get(i, "/net/past?conn=x", "").Code)
	stranger := httptest.NewRecorder()
	i.ServeHTTP(stranger, httptest.NewRequest(http.MethodGet, "http://game.example/net/past", nil))
	require.Equal(t, 403, stranger.Code)
	i.films <- struct{}{}
	require.Equal(t, 503, get(i, "/net/past", "").Code, "another is being made")
	<-i.films
	require.Equal(t, 200, get(i, "/net/past", "").Code)
}
