package migrate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/migrate"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestBackAmidTakeover: a host that is heard again at the very moment in which another one takes its place leaves one game, not two: who counts for the new host
// stays with it, and who is left at the old one finds it.
func TestBackAmidTakeover(t *testing.T) {
	for seed := range seeds(2, 8) {
		for dark := 1350 * time.Millisecond; dark <= 1500*time.Millisecond; dark += 25 * time.Millisecond {
			r := ready(t, seed+1, 4)
			together := r.apart([]int{0}, []int{1, 2, 3})
			r.until(r.world.Now() + dark)
			together()
			r.until(r.world.Now() + 10*time.Second)
			r.check(fmt.Sprintf("dark for %v, seed %d", dark, seed+1))
		}
	}
}

// TestHitch: the machine of a host that stands still for seconds, while its players go on with another one, finds their game when it runs again.
func TestHitch(t *testing.T) {
	for pause := 800 * time.Millisecond; pause <= 9*time.Second; pause += 900 * time.Millisecond {
		r := ready(t, 1, 4)
		r.world.Hosts()[0].Pause(pause)
		r.until(r.world.Now() + pause + 15*time.Second)
		r.check(fmt.Sprintf("a hitch of %v", pause))
	}
}

// TestSuccessorGoesAtOnce: a successor that crashes at any moment of its first second, before its players have its plan, its tokens or a checkpoint of its own,
// leaves a game, which goes on from what the host before had given.
func TestSuccessorGoesAtOnce(t *testing.T) {
	for seed := range seeds(12, 48) {
		after := time.Duration(seed%12) * 80 * time.Millisecond
		r := newRig(t, seed+300, 4, path, func(r *rig) { r.save = 20_000 + int(seed%2)*130_000 })
		r.until(9 * time.Second)
		r.crash(0)
		for len(r.hosts()) == 0 {
			r.until(r.world.Now() + simtest.DefaultTick)
		}
		r.until(r.world.Now() + after)
		r.crash(r.hosts()[0].h.Index())
		r.until(r.world.Now() + 15*time.Second)
		r.check(fmt.Sprintf("seed %d, after %v", seed+300, after))
	}
}

// TestReopenedOffers: a player who opens its channel again and again, each time as a candidate, doesn't make all others be sent tokens each time.
func TestReopenedOffers(t *testing.T) {
	r := ready(t, 2, 3)
	plans := r.machines[0].server.host.Counters.Plans
	d, err := r.dialAs(r.world.Hosts()[2], 66)
	require.NoError(t, err)
	var ch *channel.Channel
	opened := 0
	for i := range 1200 {
		r.until(r.world.Now() + simtest.DefaultTick)
		now := r.world.Hosts()[2].Time()
		d.TickDispatch(now)
		if c := d.Server(); c != nil && c.Joined() && !c.Closing() {
			switch {
			case ch == nil || ch.Closing():
				if again, err := c.Open(bunch.Name{Index: 290}, &liar{}); err == nil {
					ch = again
					opened++
					_, _ = ch.SendBunch(offer(5, byte(1+i%100), 3))
				}
			case i%20 == 0:
				require.NoError(t, ch.Close(bunch.Destroyed))
			}
		}
		d.TickFlush(now)
	}
	require.Greater(t, opened, 10)
	require.LessOrEqual(t, r.machines[0].server.host.Counters.Plans-plans, uint64(12), "in 20 s")
}

// TestTokensAreRenewed: in a game that lasts for longer than tokens are good for, or whose clock is set, another player can still become the host.
func TestTokensAreRenewed(t *testing.T) {
	r := newRig(t, 1, 3, path, nil)
	r.until(6 * time.Second)
	r.later = 25 * time.Hour
	r.until(r.world.Now() + 6*time.Second)
	r.crash(0)
	r.until(r.world.Now() + 12*time.Second)
	r.check("a day later")
}

// TestLeaveBeforeItIsTheHost: a player that leaves while its server waits for the others to come is done at once, and another one becomes the host.
func TestLeaveBeforeItIsTheHost(t *testing.T) {
	r := ready(t, 1, 4)
	r.crash(0)
	var m *machine
	for m == nil {
		r.until(r.world.Now() + simtest.DefaultTick)
		for _, o := range r.running() {
			if o.server != nil {
				m = o
			}
		}
	}
	host := m.server.host
	require.False(t, host.Ready())
	host.Leave()
	require.True(t, host.Left())
	require.ErrorIs(t, host.Err(), migrate.ErrYielded)
	r.crash(m.h.Index())
	r.until(r.world.Now() + 12*time.Second)
	r.check("the next")
}

// TestClosesWithinCallbacks: a player that closes its Follower as it dials, is asked to be the host, moves, or is told that a connection has ended, is done with it.
func TestClosesWithinCallbacks(t *testing.T) {
	for _, in := range []string{"Dial", "Host", "Moved", "Closed"} {
		quitted := 0
		for seed := range uint64(4) {
			r := ready(t, seed+1, 4)
			for _, m := range r.machines[1:] {
				m.quits = in
			}
			if seed%2 == 0 {
				r.crash(0)
			} else {
				r.world.Hosts()[0].Pause(3 * time.Second)
			}
			r.until(r.world.Now() + 20*time.Second)
			quitted += r.quitted(in)
		}
		require.Positive(t, quitted, in)
	}
}

// quitted is how many have closed their Follower. They must be done with it.
func (r *rig) quitted(in string) (n int) {
	for _, m := range r.machines[1:] {
		if n += m.quitted; m.quitted > 0 {
			require.Nil(r.t, m.follower.Driver(), in)
			require.False(r.t, m.follower.Migrating(), in)
		}
	}
	return n
}
