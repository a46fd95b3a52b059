package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

// slowFlow is a loss-based flow: a window that grows by 60 bytes a round trip and halves at a loss.
type slowFlow struct {
	window, flight float64
	cut, rtt       time.Duration
}

func (f *slowFlow) OnSent(_ time.Duration, _ int64, bytes int) { f.flight += float64(bytes) }
func (f *slowFlow) OnAck(_ time.Duration, _ int64, bytes int, rtt time.Duration) {
	f.flight -= float64(bytes)
	f.window += 60 * float64(bytes) / f.window
	f.rtt = rtt
}

func (f *slowFlow) OnLost(now time.Duration, _ int64, bytes int) {
	f.flight -= float64(bytes)
	if now > f.cut+f.rtt {
		f.cut, f.window = now, f.window/2
	}
}
func (f *slowFlow) Tick(time.Duration)                               {}
func (f *slowFlow) Budget(time.Duration) int                         { return int(f.window - f.flight) }
func (f *slowFlow) Rate() float64                                    { return f.window }
func (f *slowFlow) NextDeadline(time.Duration) (time.Duration, bool) { return 0, false }

// TestQueueOfASlowFlow: a game that uses a fifth of its path keeps its rate beside a flow whose queue grows slowly.
func TestQueueOfASlowFlow(t *testing.T) {
	const from, to, part = 20 * time.Second, 40 * time.Second, 0.2
	const seeds = 8
	sum := 0.0
	for seed := range uint64(seeds) {
		link := &paths.Link{Rate: paths.Constant(2e6), Buffer: 300 * time.Millisecond, Delay: 25 * time.Millisecond}
		game := &paths.Flow{Controller: adaptive(t), Tick: time.Second / 60, AckEvery: time.Second / 60, Jitter: time.Millisecond}
		game.Offer = func(time.Duration) int { return 833 }
		other := &paths.Flow{Controller: &slowFlow{window: 12000}, Tick: 5 * time.Millisecond, Immediate: true, Starts: 10 * time.Second}
		paths.New(seed+1, link, game, other).Run(to)
		sum += game.Delivered(from, to) / 2e6 / part
	}
	t.Logf("gets %.2f of what it wants", sum/seeds)
	require.Greater(t, sum/seeds, 0.9)
}
