package inspect

import (
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var chat = bunch.Name{Text: "Chat"}

func chatType() channel.Type {
	return channel.Type{Name: chat, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}
}

// busy runs a server and a client that talks all the time over a bad network, in virtual time, with an inspector
// of the client, and calls f after ten seconds.
func busy(t *testing.T, cfg Config, f func(t *testing.T, i *Inspector)) {
	synctest.Test(t, func(t *testing.T) {
		a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		bad := netsim.Settings{Loss: 20, LagMin: 20 * time.Millisecond, LagMax: 30 * time.Millisecond}
		impaired, err := proxy.Impair(b, bad, bad, 1)
		require.NoError(t, err)
		server, err := driver.Listen("", driver.Config{Socket: a, Channels: []channel.Type{chatType()}})
		require.NoError(t, err)
		client, err := driver.Dial("127.0.0.1:7777", driver.Config{Socket: impaired, Channels: []channel.Type{chatType()}})
		require.NoError(t, err)
		i := New(client, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- server.Run(ctx, nil) }()
		go func() { done <- client.Run(ctx, talk(t, client)) }()
		defer func() {
			cancel()
			require.NoError(t, <-done)
			require.NoError(t, <-done)
		}()
		time.Sleep(10 * time.Second) // virtual
		f(t, i)
	})
}

func talk(t *testing.T, d *driver.Driver) func(time.Time) {
	var ch *channel.Channel
	n := 0
	return func(time.Time) {
		c := d.Server()
		if c == nil || !c.Joined() || c.Closing() {
			return
		}
		if ch == nil {
			var err error
			ch, err = c.Open(chat, channel.Nop{})
			require.NoError(t, err)
		}
		n++
		for k := range n % 12 {
			_, err := ch.SendBunch(&bunch.Out{Data: []byte(fmt.Sprint("line ", n)), Reliable: k == 0, NoMerge: true})
			require.NoError(t, err)
			if n == 1 {
				break
			}
		}
	}
}

// local is a request of this machine.
func local(r *http.Request) *http.Request {
	r.RemoteAddr, r.Host = "127.0.0.1:5000", "localhost:8080"
	return r
}

// get is what a handler answers a request for a path.
func get(h http.Handler, path, accept string) *httptest.ResponseRecorder {
	r := local(httptest.NewRequest(http.MethodGet, path, nil))
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func view(t *testing.T, h http.Handler, path string) (v View) {
	w := get(h, path, "*/*")
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	// States are words in JSON and numbers in Go; what is compared here is not.
	require.NoError(t, json.Unmarshal([]byte(strings.NewReplacer(`"acked"`, "2", `"lost"`, "3", `"sent"`, "1", `"received"`, "4").Replace(w.Body.String())), &v))
	return v
}

func TestView(t *testing.T) {
	cfg := Config{Title: "arena", Name: func(c *driver.Conn) string { return "Ann\x1b[31m" },
		Actors:     func(_ *driver.Conn, q ActorQuery) ActorPage { return ActorPage{Actors: make([]Actor, 300), Count: 300} },
		Properties: func(*driver.Conn) []Property { return []Property{{Name: "Player.Pos", Bits: 1200}} }}
	busy(t, cfg, func(t *testing.T, i *Inspector) {
		v := view(t, i, "/net/json")
		require.Len(t, v.Conns, 1)
		require.Equal(t, "127.0.0.1:7777", v.Conns[0].Addr.String())
		require.True(t, v.Conns[0].Joined)
		require.Equal(t, v.Conns[0].ID, v.Detail.Conn)
		require.Equal(t, 2, v.Conns[0].Stats.Channels)
		require.Len(t, v.Detail.Channels, 1)
		require.Equal(t, "Chat", v.Detail.Channels[0].Name)
		require.Len(t, v.Detail.Actors, maxShown)
		require.Equal(t, 300, v.Detail.ActorCount)
		require.Equal(t, "Player.Pos", v.Detail.Properties[0].Name)

		require.Greater(t, len(v.Detail.Samples), 15)
		require.LessOrEqual(t, len(v.Detail.Samples), 41)
		last := v.Detail.Samples[len(v.Detail.Samples)-1]
		require.InDelta(t, v.Conns[0].Stats.RTT.Seconds(), last.RTT.Seconds(), 0.02)
		require.Greater(t, last.OutLoss, float32(0.02))

		states, resent, more := map[State]int{}, 0, 0
		require.Len(t, v.Detail.Sent, shownPackets)
		for n, p := range v.Detail.Sent {
			states[p.State]++
			more += p.More
			if n > 0 {
				require.Less(t, p.ID, v.Detail.Sent[n-1].ID)
			}
			for _, b := range p.Bunches {
				if b.Resent {
					resent++
					require.True(t, b.Reliable)
				}
			}
		}
		require.Greater(t, states[Acked], 20)
		require.Greater(t, states[Lost], 3)
		require.Positive(t, resent)
		require.Positive(t, more)
		require.NotEmpty(t, v.Detail.Received)
		require.Equal(t, Received, v.Detail.Received[0].State)

		require.Nil(t, view(t, i, "/json?conn=99").Detail)
		require.Equal(t, v.Detail.Conn, view(t, i, fmt.Sprint("/json?conn=", v.Detail.Conn)).Detail.Conn)
	})
}

func TestText(t *testing.T) {
	busy(t, Config{Name: func(c *driver.Conn) string { return "Ann\x1b[31m\u009b" }}, func(t *testing.T, i *Inspector) {
		for _, path := range []string{"/net/", "/net/text", "/?conn=1"} {
			w := get(i, path, "*/*")
			require.Equal(t, http.StatusOK, w.Code)
			require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
			text := w.Body.String()
			require.NotContains(t, text, "\x1b")
			for _, want := range []string{"bunchnet: client at 127.0.0.1:1234, up 10s", "Ann?[31m?", "joined", "RTT", "█", "OutRec", "Chat", "acked", "lost", " again]", " received"} {
				require.Contains(t, text, want)
			}
		}
	})
}

// TestTextFits: no line of the text form is longer than a terminal's 80 columns, whatever the game's names and figures are; columns of tables end below
// their headings, and no name is cut.
func TestTextFits(t *testing.T) {
	long := strings.Repeat("x", 100)
	addr := netip.MustParseAddrPort("[2001:db8:1234:5678:9abc:def0:1234:5678]:65535")
	stats := netconn.Stats{}
	stats.RTT, stats.Jitter = time.Minute, time.Minute
	stats.Rates.OutLoss, stats.Rates.InLoss, stats.Rates.InBytes, stats.Rates.OutBytes = 1, 1, 1e9, 1e9
	stats.PacketsInFlight, stats.QueuedReliable, stats.Channels = 65535, 65535, 32767
	conns := []Conn{{ID: math.MaxUint32 / 10, Addr: addr, Name: strings.Repeat("名", 64), Joined: true, Stats: stats}, {ID: 1, Addr: addr}}
	packet := Packet{ID: 1 << 20, State: Acked, Bytes: 1200, More: 7}
	for i := range 20 {
		packet.Bunches = append(packet.Bunches, Bunch{Channel: uint32(i), Sequence: 1000, Bits: 9000, Reliable: true, Open: true, Resent: true})
	}
	v := View{Title: long, ConnCount: 1e6, ConnMatches: 1e6, Load: make([]Load, 1),
		Snapshot: Snapshot{Server: true, Addr: addr, At: 1000 * time.Hour, Conns: conns,
			Refusals: map[string]uint64{"bad_token": 1e9, "other_server": 1e9, "too_many_from_this_address": 1e9}},
		Ended:  []Ended{{Conn: 7, Addr: addr, Name: long, Why: "TimedOut: nothing came for 60 s"}},
		Others: []Lanes{{Conn: 3, Name: long, NoHistory: true, Sent: []Packet{packet}}},
		Detail: &Detail{Conn: 1, Samples: make([]Sample, 200), Channels: []Channel{{Index: 32767, Name: long, OutRec: 256, InRec: 512, Room: 1}},
			Idle: []IdleChannels{{Count: 3, Name: long}}, Sent: []Packet{packet}, Received: []Packet{packet},
			Actors:     []Actor{{Class: long, ID: "actor 4294967295", Channel: 32767, Bits: 1 << 30, Explain: strings.Repeat("starved for 35 ticks ", 10)}},
			Properties: []Property{{Name: long, Bits: 1 << 40, Sent: 1e9, Received: 1e9, Refused: 1e9}, {Name: "Cow.Milk", Bits: 1}}}}
	for i := range 20 {
		v.Figures = append(v.Figures, Figure{Name: fmt.Sprintf("figure %d of the game", i), Value: 1e12})
	}
	text := string(v.AppendText(nil))
	for line := range strings.SplitSeq(text, "\n") {
		width := 0
		for _, r := range line {
			if width++; r == '名' {
				width++
			}
		}
		require.LessOrEqual(t, width, 80, line)
	}
	whole := strings.NewReplacer("\n", "", " ", "").Replace(text)
	require.Equal(t, 7, strings.Count(whole, long))
	require.Contains(t, whole, strings.Repeat("名", 64))
	require.Contains(t, whole, "figure19ofthegame1000000000000")
	aligned := func(head string, row int, columns ...string) {
		t.Helper()
		lines := strings.Split(text, "\n")
		at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, head) })
		require.Positive(t, at)
		for _, c := range columns {
			end := strings.Index(lines[at], c) + len(c)
			require.Positive(t, end, c)
			require.Regexp(t, `^[\d.]$`, lines[at+row][end-1:end], "%s in\n%s\n%s", c, lines[at], lines[at+row])
			require.Regexp(t, `^ ?$`, lines[at+row][end:min(end+1, len(lines[at+row]))], c)
		}
	}
	aligned("loss out", 2, "id", "RTT", "jitter", "loss out", "loss in", "receives", "sends", "flying", "reliable")
	aligned("OutRec", 1, "channel", "OutRec", "of", "InRec")
}

func TestEvents(t *testing.T) {
	busy(t, Config{Viewers: 1}, func(t *testing.T, i *Inspector) {
		ctx, cancel := context.WithCancel(t.Context())
		w, gone := httptest.NewRecorder(), make(chan bool)
		go func() {
			i.ServeHTTP(w, local(httptest.NewRequestWithContext(ctx, http.MethodGet, "/net/events", nil)))
			close(gone)
		}()
		time.Sleep(1100 * time.Millisecond) // virtual
		require.Equal(t, http.StatusServiceUnavailable, get(i, "/events", "*/*").Code)
		cancel()
		<-gone
		require.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
		events := 0
		for block := range strings.SplitSeq(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
			events++
			data, ok := strings.CutPrefix(block, "data: ")
			require.True(t, ok, block)
			var v map[string]any
			require.NoError(t, json.Unmarshal([]byte(data), &v))
			require.Contains(t, v, "Detail")
		}
		require.InDelta(t, 5, events, 1)
	})
}

// alone is a server that nobody ticks yet.
func alone(t *testing.T) *driver.Driver {
	a, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	d, err := driver.Listen("", driver.Config{Socket: a})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// TestNotTicked: nobody ticks the driver.
func TestNotTicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := alone(t)
		i := New(d, Config{})
		for range maxAsking {
			w := get(i, "/json", "*/*")
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			require.Contains(t, w.Body.String(), "isn't ticked")
		}
		_, err := i.View(t.Context(), Query{})
		require.ErrorIs(t, err, ErrBusy)
		require.Contains(t, Var{i.source}.String(), "isn't ticked")

		ctx, cancel := context.WithCancel(t.Context())
		w, gone := httptest.NewRecorder(), make(chan bool)
		go func() {
			i.ServeHTTP(w, local(httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil)))
			close(gone)
		}()
		time.Sleep(time.Second)
		cancel()
		<-gone
		require.Contains(t, w.Body.String(), "event: stalled")

		d.TickDispatch(time.Now()) // those that wait are let go
		got := make(chan int)
		go func() { got <- get(i, "/json", "*/*").Code }()
		synctest.Wait()
		d.TickDispatch(time.Now())
		require.Equal(t, http.StatusOK, <-got)
	})
}

// TestLooksAreSpread: looks that were asked for at one time take several ticks, one each when they are slow; a panic of one keeps nobody out.
func TestLooksAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, looked, wrong := alone(t), 0, false
		i := New(d, Config{Figures: func() []Figure {
			if looked++; wrong {
				panic("of the game")
			}
			time.Sleep(workTime)
			return nil
		}})
		answers := make(chan error, 3*maxAsking)
		ask := func() {
			for from := range maxAsking {
				go func() {
					_, err := i.View(t.Context(), Query{Actors: ActorQuery{From: from}})
					answers <- err
				}()
			}
			synctest.Wait()
		}
		ask()
		for n := range maxAsking {
			d.TickDispatch(time.Now())
			require.Equal(t, n+1, looked)
		}
		for range maxAsking {
			require.NoError(t, <-answers)
		}
		time.Sleep(time.Second) // these are old
		wrong = true
		ask()
		for range maxAsking {
			require.Panics(t, func() { d.TickDispatch(time.Now()) })
		}
		for range maxAsking {
			require.ErrorIs(t, <-answers, ErrNotTicked)
		}
		wrong = false
		ask()
		for range maxAsking {
			d.TickDispatch(time.Now())
			require.NoError(t, <-answers)
		}
	})
}

// TestWaitsWithAnother: who waits for a look that another began gets the same error when it takes too long, on which a stream of events goes on.
func TestWaitsWithAnother(t *testing.T) {
	l, asking, answer := looks{age: time.Second, byQuery: map[string]*look{}}, make(chan bool), make(chan bool)
	go func() {
		_, _ = l.get(t.Context(), "q", func() (View, error) { close(asking); <-answer; return View{}, nil })
		close(answer)
	}()
	<-asking
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.get(ctx, "q", nil)
	require.ErrorIs(t, err, ErrNotTicked)
	answer <- true
	<-answer
}

// TestHeadTakesNoPlace: whoever asks for the head of the event stream is answered, and takes no viewer's place.
func TestHeadTakesNoPlace(t *testing.T) {
	i := New(alone(t), Config{Viewers: 1})
	i.viewers <- struct{}{}
	w := httptest.NewRecorder()
	i.ServeHTTP(w, local(httptest.NewRequest(http.MethodHead, "/net/events", nil)))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
	require.Equal(t, http.StatusServiceUnavailable, get(i, "/net/events", "").Code)
}

func TestVar(t *testing.T) {
	busy(t, Config{}, func(t *testing.T, i *Inspector) {
		var v expvar.Var = Var{i.source}
		var snap Snapshot
		require.NoError(t, json.Unmarshal([]byte(v.String()), &snap))
		require.Len(t, snap.Conns, 1)
		require.Positive(t, snap.Counters.DatagramsOut)
	})
}

// TestFiles: everything the page needs is served, and nothing in it leads elsewhere.
func TestFiles(t *testing.T) {
	a, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	d, err := driver.Listen("", driver.Config{Socket: a})
	require.NoError(t, err)
	defer d.Close()
	i := New(d, Config{})
	page := get(i, "/net/", "text/html,*/*")
	require.Equal(t, http.StatusOK, page.Code)
	require.Equal(t, "default-src 'self'; frame-ancestors 'none'", page.Header().Get("Content-Security-Policy"))
	require.Contains(t, page.Body.String(), `<link rel="icon" href="icon.svg">`, "or a browser asks the server for another one")
	for name := range files {
		w := get(i, "/deep/below/"+name, "*/*")
		require.Equal(t, http.StatusOK, w.Code, name)
		require.Equal(t, files[name], w.Header().Get("Content-Type"))
		if name != "uPlot.LICENSE" && name != "uPlot.iife.min.js" {
			require.NotContains(t, w.Body.String(), "//cdn", name)
			require.NotContains(t, strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", ""), "http://", name)
			require.NotContains(t, w.Body.String(), "https://", name)
		}
		if strings.HasSuffix(name, ".js") || strings.HasSuffix(name, ".css") {
			require.Contains(t, page.Body.String(), `"`+name+`"`)
		}
	}
	require.Equal(t, http.StatusNotFound, get(i, "/net/../../etc/passwd", "*/*").Code)
	require.Equal(t, http.StatusNotFound, get(i, "/static/page.htm", "*/*").Code)
	require.Equal(t, http.StatusBadRequest, get(i, "/json?conn=-1", "*/*").Code)
	require.Equal(t, http.StatusBadRequest, get(i, "/events?conn=x", "*/*").Code)
	w := httptest.NewRecorder()
	i.ServeHTTP(w, local(httptest.NewRequest(http.MethodPost, "/", nil)))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

// TestHistory: what becomes of packets, and what is too old to be known.
func TestHistory(t *testing.T) {
	cfg := Config{Packets: 4}.filled()
	h := newHistory(&cfg)
	send := func(id int64, seq int64) {
		h.trace(&nettrace.Event{Kind: nettrace.BunchSent, PacketID: id, ChIndex: 3, ChSequence: seq, Bits: 8, A: nettrace.Reliable})
		h.trace(&nettrace.Event{Kind: nettrace.PacketSent, PacketID: id, A: 50})
	}
	send(10, 1)
	send(11, 2)
	h.trace(&nettrace.Event{Kind: nettrace.BunchSent, PacketID: 12, ChIndex: 3}) // under construction
	h.trace(&nettrace.Event{Kind: nettrace.PacketNak, PacketID: 10})
	h.trace(&nettrace.Event{Kind: nettrace.PacketAcked, PacketID: 11, A: uint64(time.Millisecond)})
	h.trace(&nettrace.Event{Kind: nettrace.PacketAcked, PacketID: 3}) // long gone
	list := h.sent.newest(10)
	require.Len(t, list, 2)
	require.Equal(t, Packet{ID: 11, RTT: time.Millisecond, Bytes: 50, State: Acked, Bunches: []Bunch{{Channel: 3, Bits: 8, Sequence: 2, Reliable: true}}}, list[0])
	require.Equal(t, Lost, list[1].State)
	for id := int64(13); id < 17; id++ {
		send(id, 1)
	}
	list = h.sent.newest(10)
	require.Len(t, list, 4)
	require.True(t, list[3].Bunches[0].Resent)
	require.False(t, list[2].Bunches[0].Resent, "it was lost once")
	h.trace(&nettrace.Event{Kind: nettrace.BunchReceived, PacketID: -5})
	require.Empty(t, h.received.newest(10))
	b, err := json.Marshal(list[0].State)
	require.NoError(t, err)
	require.Equal(t, `"sent"`, string(b))
	require.Equal(t, "unknown", State(9).String())
}

// TestEnded: connections that have gone, with why, no more than a few.
func TestEnded(t *testing.T) {
	busy(t, Config{Name: func(c *driver.Conn) string { return "Ann" }}, func(t *testing.T, i *Inspector) {
		require.Empty(t, view(t, i, "/json").Ended)
		d := i.source.driver
		d.Do(func() { d.Server().CloseWithReason("enough") })
		time.Sleep(3 * time.Second) // virtual
		v := view(t, i, "/json")
		require.Empty(t, v.Conns)
		require.Len(t, v.Ended, 1)
		require.Contains(t, v.Ended[0].Why, "closed by") // us, or the peer whose answer was faster
		require.Equal(t, "Ann", v.Ended[0].Name)
		require.Equal(t, "127.0.0.1:7777", v.Ended[0].Addr.String())
		require.Contains(t, get(i, "/text", "*/*").Body.String(), "closed by")
		done := make(chan bool)
		d.Do(func() {
			for n := range uint32(100) {
				i.Trace(&nettrace.Event{Kind: nettrace.ConnClosed, Conn: 100 + n})
			}
			close(done)
		})
		<-done
		time.Sleep(i.cfg.Interval) // virtual
		v = view(t, i, "/json")
		require.Len(t, v.Ended, maxEnded)
		require.EqualValues(t, 199, v.Ended[0].Conn)
	})
}

// TestAllocs: watching costs no allocation an event.
func TestAllocs(t *testing.T) {
	a, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	d, err := driver.Listen("", driver.Config{Socket: a})
	require.NoError(t, err)
	defer d.Close()
	i := New(d, Config{Interval: time.Hour})
	i.Trace(&nettrace.Event{Conn: 1})
	e := nettrace.Event{Conn: 1, ChIndex: 3, Bits: 80, A: nettrace.Reliable}
	require.Zero(t, testing.AllocsPerRun(5000, func() {
		e.PacketID++
		for _, e.Kind = range []nettrace.Kind{nettrace.BunchSent, nettrace.PacketSent, nettrace.PacketNak, nettrace.PacketReceived, nettrace.BunchReceived} {
			i.Trace(&e)
		}
	}))
}

func BenchmarkTrace(b *testing.B) {
	cfg := Config{}.filled()
	h := newHistory(&cfg)
	e := nettrace.Event{ChIndex: 3, Bits: 80, A: nettrace.Reliable}
	for b.Loop() {
		e.PacketID++
		e.Kind = nettrace.BunchSent
		h.trace(&e)
		e.Kind = nettrace.PacketSent
		h.trace(&e)
	}
}

// TestSlowLook: a look that takes longer than who asked waits leaves what was returned alone.
func TestSlowLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := alone(t)
		slow := New(d, Config{Figures: func() []Figure {
			time.Sleep(2 * askTimeout)
			return []Figure{{"late", 1}}
		}})
		ticked := make(chan bool)
		go func() {
			time.Sleep(time.Second)
			d.TickDispatch(time.Now())
			close(ticked)
		}()
		v, err := slow.look(t.Context(), Query{})
		require.ErrorIs(t, err, ErrNotTicked)
		<-ticked
		require.Zero(t, v)
	})
}
