package inspect

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// serveHTTP2 runs a driver and serves h over HTTP/2, until the test ends.
func serveHTTP2(t *testing.T, d *driver.Driver, h http.Handler) *httptest.Server {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, nil) }()
	web := httptest.NewUnstartedServer(h)
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(func() {
		web.Close()
		cancel()
		require.NoError(t, <-done)
	})
	return web
}

// TestSlowEventsOverHTTP2: events that are further apart than a viewer may take for one still come, over HTTP/2 too, whose deadlines end streams that are idle.
func TestSlowEventsOverHTTP2(t *testing.T) {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	i := New(d, Config{Interval: 300 * time.Millisecond})
	i.patience = 100 * time.Millisecond
	web := serveHTTP2(t, d, i)
	resp, err := web.Client().Get(web.URL + "/events")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 2, resp.ProtoMajor)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	events := bufio.NewScanner(resp.Body)
	events.Buffer(nil, 1<<20)
	n := 0
	for n < 4 && events.Scan() {
		if len(events.Bytes()) > 0 {
			n++
		}
	}
	require.NoError(t, events.Err())
	require.Equal(t, 4, n)
}

// TestNothingReadOverHTTP2: a viewer that lets no more than a byte of an answer through, as HTTP/2 allows, keeps nothing for longer than an answer may
// take: no file of the page, no view, no events, no film and no refusal.
func TestNothingReadOverHTTP2(t *testing.T) {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	past, err := flight.New(actorrep.NewServer(actorrep.Config{}), d, flight.Config{})
	require.NoError(t, err)
	i := New(d, Config{Past: past})
	i.patience, i.answer = 200*time.Millisecond, 200*time.Millisecond
	var mu sync.Mutex
	left := map[string]bool{}
	web := serveHTTP2(t, d, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.ServeHTTP(w, r)
		mu.Lock()
		defer mu.Unlock()
		left[r.URL.Path] = true
	}))
	narrow := web.Client().Transport.(*http.Transport).Clone()
	narrow.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1}
	defer narrow.CloseIdleConnections()
	paths := []string{"/page.js", "/page.css", "/uPlot.iife.min.js", "/json", "/text", "/export", "/events", "/past", "/nothing"}
	for _, path := range paths {
		resp, err := (&http.Client{Transport: narrow}).Get(web.URL + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, 2, resp.ProtoMajor)
	}
	for _, path := range paths {
		require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return left[path] }, 20*time.Second, time.Millisecond, path)
	}
}
