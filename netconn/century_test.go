package netconn

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestEndlessDurations: the largest durations there are don't wrap into the past: nothing times out, nobody waits for nothing, and a
// close waits for its acks.
func TestEndlessDurations(t *testing.T) {
	p := newPair(t, 1, network{delay: 50 * time.Millisecond}, func(_ int, c *Config) {
		c.Channels = testTypes(func(*channel.Channel) channel.Handler { return channel.Nop{} })
		c.KeepAlive, c.Timeout, c.LingerTimeout, c.AckDelay, c.ReorderWindow = math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64
	})
	ch, err := p.ends[0].conn.Open(testName, channel.Nop{})
	require.NoError(t, err)
	for range 100 {
		p.step()
	}
	_, err = ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.NoError(t, err)
	for i := range 1000 {
		p.step()
		require.Nil(t, p.ends[0].result, "%d", i)
		require.Nil(t, p.ends[1].result, "%d", i)
	}
	at, ok := p.ends[0].conn.NextDeadline()
	require.True(t, ok)
	require.Greater(t, at, p.now+time.Hour)
	p.ends[0].conn.Close(p.now, "")
	p.step()
	require.Nil(t, p.ends[0].result, "its close isn't acked yet")
}
