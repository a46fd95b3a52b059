package tokenserver

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlace: Place is asked for those who have logged in and are within the limits, and its answer is the client's.
func TestPlace(t *testing.T) {
	var placed []uint64
	var answer error
	r := newRig(t, func(c *Config) {
		c.Servers, c.Rate, c.Burst, c.TotalRate = nil, 1e6, 1e6, 8
		c.Place = func(_ *http.Request, p *Player) error {
			placed = append(placed, p.ID)
			p.Servers = []netip.AddrPort{netip.MustParseAddrPort("203.0.113.9:1")}
			return answer
		}
	})
	ask := func(who string) *httptest.ResponseRecorder { return r.ask("POST", "192.0.2.1:1", who) }
	require.Equal(t, http.StatusUnauthorized, ask("").Code)
	require.Equal(t, http.StatusServiceUnavailable, ask("later").Code)
	require.Empty(t, placed)
	require.Equal(t, http.StatusOK, ask("ann").Code)
	require.Equal(t, []uint64{42}, placed)

	for _, c := range []struct {
		err    error
		status int
		reason string
		retry  string
	}{
		{&Error{http.StatusUpgradeRequired, "servers take build 7"}, http.StatusUpgradeRequired, "servers take build 7", ""},
		{fmt.Errorf("with a reason: %w", &Error{http.StatusServiceUnavailable, "full"}), http.StatusServiceUnavailable, "full", "1"},
		{&Error{http.StatusConflict, strings.Repeat("x", 300)}, http.StatusConflict, strings.Repeat("x", 100), ""},
		{&Error{200, "no refusal"}, http.StatusServiceUnavailable, "no_servers", "1"},
		{fmt.Errorf("the store: %w", ErrUnavailable), http.StatusServiceUnavailable, "unavailable", "1"},
		{errors.New("the secret is hunter2"), http.StatusServiceUnavailable, "no_servers", "1"},
	} {
		answer = c.err
		w := ask("ann")
		require.Equal(t, c.status, w.Code, "%v", c.err)
		require.Equal(t, c.reason, strings.TrimSpace(w.Body.String()))
		require.Equal(t, c.retry, w.Header().Get("Retry-After"))
	}
	require.EqualValues(t, 3, r.Counters().NotPlaced)
	n := len(placed)
	require.Equal(t, http.StatusOK, func() int { answer = nil; return ask("ann").Code }())
	require.Equal(t, http.StatusTooManyRequests, ask("ann").Code)
	require.Len(t, placed, n+1, "beyond TotalRate nobody is placed")
}
