package migrate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/migrate"
)

// TestFlappingHost: a host that stands still and goes on again, in turn, as far as it says, doesn't have its players dial candidates, at addresses that it
// chooses and with a world each time, as often as it likes.
func TestFlappingHost(t *testing.T) {
	r := ready(t, 3, 4)
	f := r.machines[2].follower
	before := f.Counters
	for i := range 200 {
		migrate.HostSays(f, i%2 == 1)
		r.until(r.world.Now() + 100*time.Millisecond)
	}
	t.Logf("%d dials, %d cancelled, in 20 s", f.Counters.Dials-before.Dials, f.Counters.Cancelled-before.Cancelled)
	require.LessOrEqual(t, f.Counters.Dials-before.Dials, uint64(60))
}
