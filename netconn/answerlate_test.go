package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLongLingerEndsSoon: a close whose acks were lost in a darkness is acked soon behind it, however long both ends would linger, and the end that is gone
// doesn't answer each keep-alive.
func TestLongLingerEndsSoon(t *testing.T) {
	for _, linger := range []time.Duration{2 * time.Second, time.Minute, time.Hour} {
		for i := range 4 {
			dark, protocol := []time.Duration{time.Second, 20 * time.Second}[i&1], []Protocol{Bunchnet(), Unreal53(true)}[i>>1]
			if dark > linger {
				continue
			}
			l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 1, func(_ int, c *Config) {
				c.LingerTimeout, c.KeepAlive, c.Protocol = linger, 10*time.Millisecond, protocol
			})
			l.join()
			l.conns[0].Close(l.now, "bye")
			l.dark[1] = true
			answered := 0
			for end := l.now + dark; l.now < end; l.step(nil) {
				if l.res[1] != nil && answered == 0 {
					answered = l.packets[1]
				}
			}
			require.NotNil(t, l.res[1])
			require.Nil(t, l.res[0])
			require.Less(t, l.packets[1]-answered, 40, "%s, linger %v, dark %v", protocol.Name, linger, dark)
			l.dark[1] = false
			back := l.now
			for l.res[0] == nil && l.now-back < linger {
				l.step(nil)
			}
			require.NotNil(t, l.res[0], "%s, linger %v, dark %v", protocol.Name, linger, dark)
			require.Zero(t, l.res[0].Unacked)
			require.Less(t, l.now-back, dark+500*time.Millisecond, "%s, linger %v, dark %v", protocol.Name, linger, dark)
		}
	}
}
