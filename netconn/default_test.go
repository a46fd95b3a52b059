package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestDefaultOverANarrowLink: who chooses no controller gets one that finds out how narrow the path is. Over 50 kbit/s with a deep queue, and with one of three packets,
// 600 kB arrive in little more than the time that the link takes for them, and at most one and a half times as much is offered; with deep queues it is next to nothing more.
func TestDefaultOverANarrowLink(t *testing.T) {
	const total, size, rate = 600_000, 900, 50_000
	for name, net := range map[string]netsim.Settings{
		"a deep queue":           {Lag: 20 * time.Millisecond, Bandwidth: rate, QueueDelay: 10 * time.Second},
		"a queue of a second":    {Lag: 20 * time.Millisecond, Bandwidth: rate},
		"a queue of three":       {Lag: 20 * time.Millisecond, Bandwidth: rate, MaxPackets: 3},
		"three, and a long path": {Lag: 150 * time.Millisecond, Bandwidth: rate, MaxPackets: 4},
	} {
		l := newLab(t, [2]netsim.Settings{net, {Lag: 20 * time.Millisecond}}, 1, func(_ int, c *Config) { c.Controller = c.filled().Controller })
		l.join()
		ch := l.open(0)
		start, left := l.now, total/size
		for l.got[1] < total/size*size && l.now-start < 5*time.Minute {
			l.step(nil)
			for left > 0 && l.conns[0].Table().Waiting() < 64 {
				if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true, NoMerge: true}); err != nil {
					break
				}
				left--
			}
		}
		took, ideal := (l.now - start).Seconds(), float64(total*8)/rate
		t.Logf("%s: %.0f s, ideal %.0f, offered %.2f times, %d of %d", name, took, ideal, float64(l.offered[0])/total, l.got[1], total)
		require.Less(t, took, 1.15*ideal, name)
		require.Less(t, float64(l.offered[0]), 1.5*float64(total), name)
	}
}
