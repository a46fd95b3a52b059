package travel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestDarkOnTheWay: who is in the dark amid a travel, one way or both, sees the level of after it as soon as there is light, and no other.
func TestDarkOnTheWay(t *testing.T) {
	set := netsim.Settings{Loss: 5, LagMin: 30 * time.Millisecond, LagMax: 70 * time.Millisecond}
	black := netsim.Settings{Loss: 100}
	for seed := range uint64(10) {
		for _, ways := range []int{1, 2, 3} {
			r := newTrip(t, seed, set, time.Minute)
			a, b := r.join(3), r.join(10)
			r.to("forest")
			r.all("5 trees of forest, 2 heroes")
			r.to("desert")
			for range seed {
				r.step()
			}
			if ways&1 != 0 {
				require.NoError(t, b.Up.Set(black))
			}
			if ways&2 != 0 {
				require.NoError(t, b.Down.Set(black))
			}
			for range 30 * 10 {
				r.step()
			}
			require.Equal(t, "5 trees of desert, 2 heroes", sees(a.World), "nobody waits for b to see it")
			if seed%2 == 0 {
				r.to("sea") // and on, in the dark
			} else {
				r.to("desert")
			}
			require.NoError(t, b.Up.Set(set))
			require.NoError(t, b.Down.Set(set))
			if seed%2 == 0 {
				r.all("5 trees of sea, 2 heroes")
			} else {
				r.all("5 trees of desert, 2 heroes")
			}
			require.NotContains(t, b.loads[1:], "forest", "the number of one with the map of another")
			r.until("arrived", func() bool { return !r.server.Traveling() })
			require.Empty(t, r.late)
		}
	}
}
