package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

func TestFrequencyFallsWithDistance(t *testing.T) {
	r := newRig(t, &Graph{Middle: 4, Far: 16}, actorrep.Config{})
	c := r.join(1 << 22)
	c.peer.SetViewpoint(0, 0, 0)
	var near, middle, far [16]*thing
	for i := range near {
		near[i], middle[i], far[i] = r.spawn(10, float64(i)/16), r.spawn(70, float64(i)/16), r.spawn(95, float64(i)/16)
	}
	r.steps(30)
	require.Equal(t, []int{1, 4, 16}, []int{c.peer.UpdateEvery(near[0]), c.peer.UpdateEvery(middle[0]), c.peer.UpdateEvery(far[0])})
	run := func(actors []*thing) (updates, most int) {
		for range 64 {
			for _, a := range actors {
				a.Team.Set(a.Team.Get() + 1)
			}
			before := r.w.Counters.Updates
			r.step()
			n := int(r.w.Counters.Updates - before)
			updates, most = updates+n, max(most, n)
		}
		r.steps(20)
		for _, a := range actors {
			m := c.w.Find(a.GUID()).(*thing)
			require.Equal(t, a.Team.Get(), m.Team.Get(), "the last value didn't come")
		}
		return updates, most
	}
	n, most := run(near[:])
	require.Equal(t, []int{16 * 64, 16}, []int{n, most})
	n, most = run(middle[:])
	require.Equal(t, []int{16 * 16, 4}, []int{n, most})
	n, most = run(far[:])
	require.Equal(t, []int{16 * 4, 1}, []int{n, most}, "the work is spread")

	// What comes near is there at once, and so are its components.
	kid := &part{}
	require.NoError(t, r.w.SpawnIn(far[0], kid))
	r.steps(3)
	require.Equal(t, 16, c.peer.UpdateEvery(kid))
	far[0].Team.Set(1000)
	far[0].X.Set(20)
	r.step()
	require.Equal(t, []int{1, 1}, []int{c.peer.UpdateEvery(far[0]), c.peer.UpdateEvery(kid)})
	r.step()
	require.Equal(t, uint32(1000), c.w.Find(far[0].GUID()).(*thing).Team.Get())
	require.NoError(t, r.w.Destroy(far[1]))
	require.Zero(t, c.peer.UpdateEvery(far[1]))
	r.steps(70)
}

// What was lost goes again as soon as that is known, however seldom the actor's turn comes.
func TestLostDoesNotWait(t *testing.T) {
	r := newRig(t, &Graph{Far: actorrep.MaxUpdateEvery}, actorrep.Config{})
	c := r.join(1 << 20)
	c.peer.SetViewpoint(0, 0, 0)
	a := r.spawn(95, 0)
	r.steps(10)
	a.Team.Set(77)
	waited := 0
	for before := r.w.Counters.Updates; r.w.Counters.Updates == before; waited++ {
		require.Less(t, waited, actorrep.MaxUpdateEvery)
		r.lose = true
		r.step()
	}
	r.lose = false
	mirror := func() *thing { return c.w.Find(a.GUID()).(*thing) }
	require.NotEqual(t, uint32(77), mirror().Team.Get())
	again := 0
	for ; mirror().Team.Get() != 77; again++ {
		require.Less(t, again, 30)
		r.step()
	}
	require.NotZero(t, r.w.Counters.Resent)
}
