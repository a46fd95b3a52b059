package tokenserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// answer is a server in memory.
type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// FuzzFetch gets arbitrary answers: a token of the right size or an error of bounded length.
func FuzzFetch(f *testing.F) {
	f.Add(200, strings.Repeat("t", netcode.ConnectTokenBytes))
	f.Add(429, "later\x00\xff")
	f.Fuzz(func(t *testing.T, status int, body string) {
		client := &http.Client{Transport: answer(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})}
		token, err := Fetch(client, httptest.NewRequest(http.MethodPost, "http://tokens.example/token", nil))
		if err == nil {
			require.Len(t, token, netcode.ConnectTokenBytes)
			require.Equal(t, http.StatusOK, status)
			return
		}
		require.Nil(t, token)
		require.Less(t, len(err.Error()), 1000)
	})
}

// FuzzServe asks in arbitrary ways: who isn't known gets no token.
func FuzzServe(f *testing.F) {
	f.Add("POST", "192.0.2.1:80", "Ann", "/token?x=1")
	f.Add("GET", "not an address", "\x00", "/")
	f.Fuzz(func(t *testing.T, method, from, who, body string) {
		r := newRig(t, nil)
		req, err := http.NewRequest(method, "http://tokens.example/token", strings.NewReader(body))
		if err != nil {
			return // no request that a server would read
		}
		req.RemoteAddr = from
		req.Header.Set("Authorization", who)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code == http.StatusOK {
			require.Len(t, w.Body.Bytes(), netcode.ConnectTokenBytes)
			require.Equal(t, http.MethodPost, method)
		}
		require.Less(t, w.Body.Len(), netcode.ConnectTokenBytes+1)
	})
}
