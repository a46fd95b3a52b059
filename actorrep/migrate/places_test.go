package migrate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestCandidatesKeepTheirPlaces: those of the host before stay candidates of the next one, in whatever order the players come, so that everybody has tokens for them.
func TestCandidatesKeepTheirPlaces(t *testing.T) {
	for seed := range uint64(10) {
		r := newRig(t, seed, 5, netsim.Settings{LagMin: 50 * time.Millisecond, LagMax: 60 * time.Millisecond}, func(*rig) {})
		r.until(7 * time.Second)
		r.hosts()[0].server.host.Leave()
		var before []uint64
		for _, m := range r.running() {
			if epoch, ids := m.follower.Candidates(); epoch == 1 {
				before = ids
			}
		}
		require.NotEmpty(t, before)
		for end := r.world.Now() + 4*time.Second; r.world.Now() < end; {
			r.world.RunUntil(r.world.Now() + 10*time.Millisecond)
			require.Nil(t, r.world.Failure())
			for _, m := range r.running() {
				epoch, ids := m.follower.Candidates()
				if epoch != 2 {
					continue
				}
				kept := 0
				for _, id := range before {
					if slices.Contains(ids, id) {
						kept++
					}
				}
				require.GreaterOrEqual(t, kept, len(before)-1, "seed %d at %v: %v of the host before are %v with the next one", seed, r.world.Now(), before, ids) // all but that one
			}
		}
	}
}
