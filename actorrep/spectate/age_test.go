package spectate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

type thing struct {
	actorrep.Base
	Count uint32 `net:""`
}

// TestNothingYoungerLeaves: what is written in a Step of the world is as old as Delay when it may leave, also in a server with long ticks, in one that has
// stood still, and by a relay that begins when the world has run for long.
func TestNothingYoungerLeaves(t *testing.T) {
	const delay = 5 * time.Second
	for _, tick := range []time.Duration{time.Second / 60, 300 * time.Millisecond, 900 * time.Millisecond} {
		w := actorrep.NewServer(actorrep.Config{})
		require.NoError(t, w.Register("thing", (*thing)(nil)))
		a := &thing{}
		require.NoError(t, w.Spawn(a))
		now := time.Hour
		w.Step(now)
		r, err := NewRelay(w, RelayConfig{Delay: delay, Checkpoints: 2 * time.Second})
		require.NoError(t, err)
		var written []time.Duration
		for i := range 200 {
			if now += tick; i%50 == 20 {
				now += 10 * time.Second
			}
			a.Count++
			w.Step(now)
			for len(written) < r.first+len(r.blocks) {
				written = append(written, now)
			}
			r.Step(now)
			for n := range r.ready {
				require.GreaterOrEqual(t, now-written[n], delay, "block %d, ticks of %v", n, tick)
			}
		}
	}
}
