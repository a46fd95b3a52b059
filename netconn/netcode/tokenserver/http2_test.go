package tokenserver_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
)

// endless is a body that has nothing yet and never ends, until its request does.
type endless struct{ ctx context.Context }

func (e endless) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, io.EOF
}

// TestManyStreams: a client that opens 200 HTTP/2 streams of a connection, with bodies that never come, and resets them, over and over, has no more logins
// looked at than its Rate allows, leaves none behind, and keeps no other player from a token.
func TestManyStreams(t *testing.T) {
	var inside, looked, seconds atomic.Int64
	const other = "203.0.113.5"
	from := func(r *http.Request) (netip.Addr, error) { return netip.ParseAddr(r.Header.Get("Test-From")) }
	service, err := tokenserver.New(tokenserver.Config{Key: netcode.Key{1}, ProtocolID: 1, Servers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:7777")},
		ClientAddr: from, Now: func() time.Time { return time.Unix(1_700_000_000+seconds.Load(), 0) }, Authenticate: func(r *http.Request) (tokenserver.Player, error) {
			inside.Add(1)
			defer inside.Add(-1)
			looked.Add(1)
			_, err := io.Copy(io.Discard, r.Body)
			if r.Header.Get("Test-From") == other {
				return tokenserver.Player{ID: 2}, err
			}
			return tokenserver.Player{ID: 1}, err
		}})
	require.NoError(t, err)
	web := httptest.NewUnstartedServer(service)
	web.EnableHTTP2 = true
	web.StartTLS()
	defer web.Close()
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var answered atomic.Int64
		for range 200 {
			all.Go(func() {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, web.URL, endless{ctx})
				if err != nil {
					return
				}
				req.Header.Set("Test-From", "198.51.100.7")
				resp, err := web.Client().Do(req)
				answered.Add(1)
				if err == nil { // otherwise it was reset, or net/http has ended a connection with so many resets
					resp.Body.Close()
				}
			})
		}
		enough := assert.Eventually(t, func() bool { return answered.Load() >= 195 }, 60*time.Second, time.Millisecond)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, nil)
		require.NoError(t, err)
		req.Header.Set("Test-From", other)
		token, err := tokenserver.Fetch(web.Client(), req)
		assert.NoError(t, err)
		assert.Len(t, token, netcode.ConnectTokenBytes)
		cancel()
		all.Wait()
		require.True(t, enough)
		seconds.Add(5)
	}
	require.Eventually(t, func() bool { return inside.Load() == 0 }, 60*time.Second, time.Millisecond)
	require.LessOrEqual(t, looked.Load(), int64(5*5+5))
}
