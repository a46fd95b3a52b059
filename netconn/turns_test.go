package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestAcksTakeNoTurns: where the controller counts packets, an end that acks each packet of its peer has its own turns all the same:
// 30 a second, however often the peer sends.
func TestAcksTakeNoTurns(t *testing.T) {
	for _, both := range []bool{true, false} {
		l := newLab(t, [2]netsim.Settings{{Lag: 23 * time.Millisecond}, {Lag: 23 * time.Millisecond}}, 1, func(i int, c *Config) {
			if i == 0 || both {
				c.Controller = congestion.NewGoodBad(1024)
			}
		})
		l.control()
		l.run(time.Second, nil)
		chs := [2]*channel.Channel{l.open(0), l.open(1)}
		for _, ch := range chs {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 20), Reliable: true})
			require.NoError(t, err)
		}
		var sent [2]int
		play := func() {
			for i, ch := range chs {
				if l.conns[i].IsNetReady() {
					_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 100)})
					require.NoError(t, err)
					sent[i]++
				}
			}
		}
		l.run(20*time.Second, play)
		sent = [2]int{}
		l.run(10*time.Second, play)
		require.InDelta(t, 300, sent[0], 5, "both %v", both)
		if both {
			require.InDelta(t, 300, sent[1], 5)
		}
	}
}
