package driver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTickTimes: the time of a tick goes to what took it, and to the bucket of its length.
func TestTickTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, Config{}, Config{})
		m.until("joined", func() bool { return m.cc != nil && m.sc != nil })
		before := m.server.TickTimes()
		for _, step := range []time.Duration{0, 3 * time.Microsecond, time.Millisecond, time.Hour} {
			m.server.TickDispatch(m.now)
			time.Sleep(step) // virtual, and all that takes time here
			m.server.TickFlush(m.now)
		}
		m.server.TickFlush(m.now) // no tick
		after := m.server.TickTimes()
		require.EqualValues(t, 4, after.Count-before.Count)
		require.Equal(t, time.Hour+time.Millisecond+3*time.Microsecond, after.Step-before.Step)
		require.Zero(t, after.Dispatch)
		require.Zero(t, after.Flush)
		for i, n := range after.Below {
			want := map[int]uint64{0: 1, 2: 1, 10: 1, TickBuckets - 1: 1}[i]
			require.Equal(t, want, n-before.Below[i], "bucket %d", i)
		}
	})
}
