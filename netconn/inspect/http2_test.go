package inspect

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
)

// TestSlowEventsOverHTTP2: events that are further apart than a viewer may take for one still come, over HTTP/2 too, whose deadlines end streams that are idle.
func TestSlowEventsOverHTTP2(t *testing.T) {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	i := New(d, Config{Interval: 300 * time.Millisecond})
	i.patience = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, nil) }()
	web := httptest.NewUnstartedServer(i)
	web.EnableHTTP2 = true
	web.StartTLS()
	defer func() {
		web.Close()
		cancel()
		require.NoError(t, <-done)
	}()
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
