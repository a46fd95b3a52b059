package link

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type funcs struct{ datagram, message func(p []byte) }

func (f funcs) Datagram(p []byte) { f.datagram(p) }
func (f funcs) Message(m []byte)  { f.message(m) }

// TestNarrowPath: who sends more than the path carries doesn't keep it full of what was sent before.
func TestNarrowPath(t *testing.T) {
	const size, seconds = 60, 60
	for _, rate := range []float64{5e3, 20e3, 100e3} {
		for _, queue := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second} {
			var now time.Duration
			offered, got := 0, 0
			up, err := netsim.NewLink(netsim.Settings{Lag: 25 * time.Millisecond, Bandwidth: rate * 8, QueueDelay: queue}, 1)
			require.NoError(t, err)
			down, err := netsim.NewLink(netsim.Settings{Lag: 25 * time.Millisecond}, 2)
			require.NoError(t, err)
			a, err := New(Config{}, funcs{func(p []byte) { offered += len(p); up.Push(now, p) }, func([]byte) {}})
			require.NoError(t, err)
			b, err := New(Config{}, funcs{func(p []byte) { down.Push(now, p) }, func(m []byte) { got += len(m) }})
			require.NoError(t, err)
			for sent := 0.0; now < seconds*time.Second; {
				now += 5 * time.Millisecond
				for p, ok := up.Pop(now); ok; p, ok = up.Pop(now) {
					require.NoError(t, b.Receive(now, p))
				}
				for p, ok := down.Pop(now); ok; p, ok = down.Pop(now) {
					require.NoError(t, a.Receive(now, p))
				}
				for sent < 2*rate*now.Seconds() && a.Send(now, make([]byte, size)) == nil {
					sent += size
				}
				a.Tick(now)
				b.Tick(now)
			}
			require.Greater(t, float64(got), 0.3*rate*seconds, "%v B/s, queue %v", rate, queue)
			require.Less(t, float64(offered), 4*float64(got), "%v B/s, queue %v", rate, queue)
		}
	}
}
