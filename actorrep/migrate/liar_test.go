package migrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestFlappingOffers: a player who counts for the host and doesn't, in turn, four times a second, doesn't make all others be sent plans and tokens each time.
func TestFlappingOffers(t *testing.T) {
	r := ready(t, 2, 3)
	host := r.machines[0].server.host
	d, err := r.dialAs(r.world.Hosts()[2], 66)
	require.NoError(t, err)
	var ch *channel.Channel
	plans, offers := host.Counters.Plans, 0
	for i := range 1200 {
		r.until(r.world.Now() + simtest.DefaultTick)
		now := r.world.Hosts()[2].Time()
		d.TickDispatch(now)
		if c := d.Server(); c != nil && c.Joined() && ch == nil {
			ch, err = c.Open(bunch.Name{Index: 290}, &liar{})
			require.NoError(t, err)
		}
		if ch != nil {
			_, err = ch.SendBunch(offer(5, 99, byte(i/8%2*2)))
			if err == nil {
				offers++
			}
		}
		d.TickFlush(now)
	}
	t.Logf("%d offers, %d plans", offers, host.Counters.Plans-plans)
	require.Greater(t, offers, 500)
	require.LessOrEqual(t, host.Counters.Plans-plans, uint64(36), "to each of four players two in 5 s, and one for its coming")
}
