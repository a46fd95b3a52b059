package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestGameThatWantsALittleTooMuch: a game whose states take a little more than the path carries, and that asks IsNetReady before each, doesn't fill the path's long queue with the
// adaptive controller.
func TestGameThatWantsALittleTooMuch(t *testing.T) {
	const path, size = 200_000, 400 // bytes a second, and of a state
	const lag = 30 * time.Millisecond
	for _, hz := range []int{60, 100, 128} {
		for _, want := range []float64{1.08, 1.1, 1.15} {
			l := newLab(t, [2]netsim.Settings{{Lag: lag, Bandwidth: 8 * path, QueueDelay: 1300 * time.Millisecond}, {Lag: lag}}, 1, func(_ int, c *Config) { c.Controller = adapt() })
			l.tick = time.Second / time.Duration(hz)
			l.control()
			ch := l.open(0)
			_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
			require.NoError(t, err)
			owed := 0.0
			game := func() {
				for owed += want * path * l.tick.Seconds(); owed > 0; owed -= size + 30 {
					if l.conns[0].IsNetReady() {
						_, err := ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 1, size)})
						require.NoError(t, err)
					}
				}
			}
			l.run(15*time.Second, game)
			l.lat[1] = nil
			before := l.offered[0]
			l.run(15*time.Second, game)
			late := quant(l.lat[1], 0.5)
			offers := float64(l.offered[0]-before) / 15 / path
			t.Logf("%d Hz, wants %v of the path: %v late, offers %.2f of it", hz, want, late, offers)
			require.Less(t, late, lag+100*time.Millisecond, "wants %v", want)
			require.Greater(t, offers, 0.9, "wants %v", want)
		}
	}
}
