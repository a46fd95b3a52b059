package migrate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/migrate"
)

// apart cuts two groups of hosts from each other, until together.
func (r *rig) apart(a, b []int) (together func()) {
	each := func(f func(i, j int)) {
		for _, i := range a {
			for _, j := range b {
				f(i, j)
				f(j, i)
			}
		}
	}
	hosts := r.world.Hosts()
	each(func(i, j int) { r.world.Cut(hosts[i], hosts[j]) })
	return func() { each(func(i, j int) { r.world.Join(hosts[i], hosts[j]) }) }
}

// ready starts a game of n and waits until all have the succession.
func ready(t *testing.T, seed uint64, n int) *rig {
	r := newRig(t, seed, n, path, nil)
	r.until(6 * time.Second)
	r.check("the beginning")
	return r
}

// TestSplit: where the network falls apart, the part with more than half of the players besides the host goes on, the other stands still, and when the two meet
// again all play the one game.
func TestSplit(t *testing.T) {
	for seed := range seeds(6, 30) {
		r := ready(t, seed+1, 4)
		together := r.apart([]int{0, 1}, []int{2, 3})
		for range 60 {
			r.until(r.world.Now() + 100*time.Millisecond)
			if r.world.Now() > 7500*time.Millisecond {
				require.LessOrEqual(t, len(r.hosts()), 1, "seed %d at %v", seed+1, r.world.Now())
			}
		}
		hosts := r.hosts()
		require.Len(t, hosts, 1, "seed %d", seed+1)
		require.GreaterOrEqual(t, hosts[0].h.Index(), 2, "seed %d", seed+1)
		together()
		r.until(r.world.Now() + 12*time.Second)
		r.check("together again")
	}
}

// TestAloneIsNobody: of three players that are left each alone, none goes on, and each is told.
func TestAloneIsNobody(t *testing.T) {
	r := ready(t, 1, 4)
	r.crash(0)
	r.apart([]int{1}, []int{2, 3})
	r.apart([]int{2}, []int{3})
	r.until(r.world.Now() + 25*time.Second)
	require.Empty(t, r.hosts())
	for _, m := range r.running() {
		require.ErrorIs(t, m.follower.Err(), migrate.ErrNobody)
	}
}

// TestDarkHost: a host that nobody hears for a moment goes on as the host when nobody has taken its place; and one of two, whose only guest has crashed,
// stands still until that has timed out, and plays on.
func TestDarkHost(t *testing.T) {
	for seed := range seeds(6, 30) {
		r := ready(t, seed+1, 4)
		together := r.apart([]int{0}, []int{1, 2, 3})
		r.until(r.world.Now() + 850*time.Millisecond)
		together()
		r.until(r.world.Now() + 10*time.Second)
		r.check("light again")
	}
	r := ready(t, 1, 2)
	r.crash(1)
	r.until(r.world.Now() + 3*time.Second)
	require.Empty(t, r.hosts())
	r.until(r.world.Now() + 12*time.Second)
	r.check("the guest has timed out")
	require.Equal(t, 0, r.hosts()[0].h.Index())
}

// TestAgain: the game goes on from host to host, as long as there are players.
func TestAgain(t *testing.T) {
	r := ready(t, 3, 5)
	for len(r.running()) > 2 {
		r.crash(r.hosts()[0].h.Index())
		r.until(r.world.Now() + 15*time.Second)
		r.check("the next")
	}
}
