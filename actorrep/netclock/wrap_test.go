package netclock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/netclock"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestRequestsWrap: the number of a request, 16 bits, wraps in 18 hours; a clock asked for 72 hours stays right, and one
// that wasn't for as long is right with the next answer.
func TestRequestsWrap(t *testing.T) {
	c, err := netclock.NewClient(netclock.Config{})
	require.NoError(t, err)
	const ahead = 5 * time.Hour
	now := time.Duration(0)
	ask := func() {
		now = max(now, c.NextDeadline())
		w, reply := bitio.NewWriter(make([]byte, 32)), bitio.NewWriter(make([]byte, 32))
		ok, err := c.Request(now, w)
		require.True(t, ok && err == nil)
		require.NoError(t, netclock.Answer(now+ahead, now+ahead, bitio.NewReader(w.Bytes(), w.Len()), reply))
		require.NoError(t, c.Reply(now, bitio.NewReader(reply.Bytes(), reply.Len())))
		at, ok := c.ServerTime(now)
		require.True(t, ok)
		require.Equal(t, now+ahead, at)
	}
	for now < 72*time.Hour {
		ask()
	}
	require.Zero(t, c.Counters.Unmatched)
	now += 72 * time.Hour
	ask()
}
