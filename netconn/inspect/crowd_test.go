package inspect

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestScrapesShareASnapshot: however many ask a Source and however often, the driver's goroutine walks its connections once a while.
func TestScrapesShareASnapshot(t *testing.T) {
	for _, prompt := range []bool{false, true} { // with it a call runs at once, not in the next tick
		cfg := driver.Config{Prompt: prompt}
		taken := 0
		withClient(t, cfg, func(s *Source) {
			s.name = func(*driver.Conn) string { taken++; return "" }
			var wg sync.WaitGroup
			for range 5 * maxAsking {
				wg.Go(func() {
					for range 20 {
						snap, err := s.Snapshot(context.Background())
						assert.NoError(t, err)
						assert.Len(t, snap.Conns, 1)
					}
				})
			}
			began := time.Now()
			wg.Wait()
			require.LessOrEqual(t, taken, 1+int(time.Since(began)/snapshotAge))

			first, err := s.Snapshot(context.Background())
			require.NoError(t, err)
			time.Sleep(snapshotAge)
			next, err := s.Snapshot(context.Background())
			require.NoError(t, err)
			require.GreaterOrEqual(t, next.At-first.At, snapshotAge, "it gets no older")
		})
	}
}

// withClient runs a server with one connection in virtual time, and f with a Source of it.
func withClient(t *testing.T, cfg driver.Config, f func(s *Source)) {
	synctest.Test(t, func(t *testing.T) {
		a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		cfg.Socket = a
		server, err := driver.Listen("", cfg)
		require.NoError(t, err)
		client, err := driver.Dial("127.0.0.1:7777", driver.Config{Socket: b})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- server.Run(ctx, nil) }()
		go func() { done <- client.Run(ctx, nil) }()
		defer func() {
			cancel()
			require.NoError(t, <-done)
			require.NoError(t, <-done)
		}()
		time.Sleep(2 * time.Second)
		f(NewSource(server))
	})
}

// TestLongNames: names that a peer chose make neither an event nor the text larger, and turn no line of a terminal around.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("<語\u202e", 4096)
	busy(t, Config{Name: func(*driver.Conn) string { return long }}, func(t *testing.T, i *Inspector) {
		require.Less(t, get(i, "/json", "*/*").Body.Len(), 100_000)
		v := view(t, i, "/json?also=1")
		for _, name := range []string{v.Conns[0].Name, v.Detail.Name, v.Others[0].Name} {
			require.Equal(t, string([]rune(long)[:maxName])+"…", name)
		}
		text := get(i, "/text", "*/*").Body.String()
		require.Contains(t, text, "<語?<語?")
		require.NotContains(t, text, "\u202e")
	})
}

// TestQueriesApart: a text that looks like the rest of a query isn't mixed up with another query.
func TestQueriesApart(t *testing.T) {
	var asked []string
	cfg := Config{Interval: time.Hour, Actors: func(_ *driver.Conn, q ActorQuery) ActorPage { asked = append(asked, q.Match); return ActorPage{} }}
	busy(t, cfg, func(t *testing.T, i *Inspector) {
		const between = " Sort: Down:false From:0} Actors:{Match:"
		for _, q := range []Query{{Conns: ConnQuery{Match: "a" + between + "b"}, Actors: ActorQuery{Match: "c"}}, {Conns: ConnQuery{Match: "a"}, Actors: ActorQuery{Match: "b" + between + "c"}}} {
			_, err := i.View(t.Context(), q)
			require.NoError(t, err)
		}
		require.Equal(t, []string{"c", "b" + between + "c"}, asked)
	})
}

// TestEventsEnd: the streams of events end when the driver has closed, so that http.Server.Shutdown, which waits for them, ends too.
func TestEventsEnd(t *testing.T) {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	web := httptest.NewServer(New(d, Config{}))
	defer web.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, nil) }()
	resp, err := http.Get(web.URL + "/events")
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.CopyN(io.Discard, resp.Body, 10)
	require.NoError(t, err)
	cancel()
	require.NoError(t, <-done)
	end, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	require.NoError(t, web.Config.Shutdown(end))
	require.Equal(t, http.StatusServiceUnavailable, get(web.Config.Handler, "/events", "*/*").Code)
}
