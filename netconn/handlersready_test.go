package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestHandlersKeepToTheBudget: a handler that sends reliably while IsNetReady says so doesn't fill the buffer, and what it sends isn't seconds late.
func TestHandlersKeepToTheBudget(t *testing.T) {
	for _, bandwidth := range []float64{8e6, 2e6} {
		var l *lab
		l = newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond, Bandwidth: bandwidth, QueueDelay: 300 * time.Millisecond}), 1, func(i int, c *Config) {
			c.Controller = adapt()
			if i == 0 {
				c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return &eager{l: l} }
			}
		})
		l.join()
		ch := l.open(1)
		most := 0
		for range 20 * 60 {
			l.step(func() {
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 200), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			})
			most = max(most, l.conns[0].Table().Unacked())
		}
		t.Logf("%v bit/s: %d unacked at most, %d kB came", bandwidth, most, l.got[1]/1000)
		require.Less(t, most, 2000)
		require.Greater(t, float64(l.got[1]), 20*0.8*bandwidth/8)
	}
}
