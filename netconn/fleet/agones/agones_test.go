package agones

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCalls: the calls are those of the published REST interface, and are made again while the SDK server isn't there yet.
func TestCalls(t *testing.T) {
	var calls []string
	away := 1
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away > 0 {
			away--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodGet && !json.Valid(body) {
			t.Errorf("%s: %q isn't JSON", r.URL.Path, body)
		}
		if r.Header.Get("Content-Type") != "application/json" {
			t.Error(r.Header)
		}
		calls = append(calls, r.Method+" "+r.URL.Path+" "+string(body))
		switch r.URL.Path {
		case "/gameserver":
			_, _ = io.WriteString(w, `{"object_meta":{"name":"local","generation":"1","labels":{"a":"b"}},"status":{"state":"Ready","address":"203.0.113.7","ports":[{"name":"default","port":7777}]}}`)
		case "/allocate":
			http.Error(w, "no", http.StatusForbidden)
		default:
			_, _ = io.WriteString(w, "{}")
		}
	}))
	defer web.Close()
	ctx := t.Context()
	s := New(web.URL)
	require.NoError(t, s.Ready(ctx))
	require.NoError(t, s.Health(ctx))
	require.NoError(t, s.Reserve(ctx, 4500*time.Millisecond))
	require.NoError(t, s.SetLabel(ctx, "map", "desert"))
	require.NoError(t, s.SetAnnotation(ctx, "build", "7"))
	g, err := s.GameServer(ctx)
	require.NoError(t, err)
	require.Equal(t, GameServer{Name: "local", Labels: map[string]string{"a": "b"}, State: "Ready", Address: "203.0.113.7", Ports: []Port{{"default", 7777}}}, g)
	var refused *Error
	require.ErrorAs(t, s.Allocate(ctx), &refused)
	require.Equal(t, http.StatusForbidden, refused.Status)
	require.NoError(t, s.Shutdown(ctx))
	require.Equal(t, []string{"POST /ready {}", "POST /health {}", `POST /reserve {"seconds":"5"}`, `PUT /metadata/label {"key":"map","value":"desert"}`,
		`PUT /metadata/annotation {"key":"build","value":"7"}`, "GET /gameserver ", "POST /allocate {}", "POST /shutdown {}"}, calls)
	web.Close()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Ready(short), context.DeadlineExceeded)
}

// TestPort: the port is the one in the environment.
func TestPort(t *testing.T) {
	t.Setenv(PortEnv, "1234")
	require.Equal(t, "http://localhost:1234", New("").url)
	t.Setenv(PortEnv, "")
	require.Equal(t, "http://localhost:9358", New("").url)
}

// TestNotAURL: what can't become better isn't tried until the context ends.
func TestNotAURL(t *testing.T) {
	for _, u := range []string{"localhost:9358", "ftp://localhost", "http://", "http://a b", "http://localhost:port"} {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Minute, cancel)
		require.ErrorContains(t, New(u).Ready(ctx), u)
		require.True(t, timer.Stop(), u)
		cancel()
	}
}
