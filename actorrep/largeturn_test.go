package actorrep_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// crowded is a fleet with a client whose bandwidth the changes of rocks would fill.
type crowded struct {
	*fleet
	line  *rig.Line
	rocks []*rock
	alone int // bits of updates in a Step while nothing else is sent
}

func newCrowded(t *testing.T, liners ...*liner) *crowded {
	f := &crowded{fleet: newFleet(t, 1, netsim.Settings{}, actorrep.Config{})}
	f.Speed = 15_000
	f.line = f.join()
	for range 400 {
		f.rocks = append(f.rocks, &rock{})
		require.NoError(t, f.Server.Spawn(f.rocks[len(f.rocks)-1]))
	}
	for _, a := range liners {
		require.NoError(t, f.Server.Spawn(a))
	}
	f.Until(f.same)
	f.serve(30)
	was := f.Server.Counters
	f.alone = f.serve(30)
	require.Less(t, f.Server.Counters.Updates-was.Updates, uint64(30*len(f.rocks)*3/5), "the bandwidth isn't enough for all")
	return f
}

// serve changes all rocks in each Step. It returns how many bits of updates one has.
func (f *crowded) serve(steps int) int {
	was := f.Server.Counters.UpdateBits
	for range steps {
		for _, r := range f.rocks {
			r.Size += 257
		}
		f.Step()
	}
	return int(f.Server.Counters.UpdateBits-was) / steps
}

// TestLargeActorsTakeTurns: while a large actor opens on a connection whose bandwidth changes of others would fill, these and the opening get about half of it each.
func TestLargeActorsTakeTurns(t *testing.T) {
	f := newCrowded(t)
	a := &liner{}
	for i := range 20 {
		a.Decks[i] = strings.Repeat("d", 2000)
	}
	require.NoError(t, f.Server.Spawn(a))
	for range 3 {
		beside := f.serve(30)
		t.Log(f.alone, beside)
		require.Nil(t, f.line.World.Find(a.GUID()))
		require.Greater(t, beside, f.alone/3)
	}
	steps := 90
	for ; f.line.World.Find(a.GUID()) == nil; steps++ {
		require.Less(t, steps, 2*3*60, "twice what it takes alone, and a half")
		f.serve(1)
	}
	t.Log(steps)
}

// TestLargeChangesTakeTurns: likewise changes larger than a packet, of several actors in turn. One of them changes in each Step.
func TestLargeChangesTakeTurns(t *testing.T) {
	liners := []*liner{{}, {}, {}}
	f := newCrowded(t, liners...)
	paint := func(a *liner, decks int, with string) {
		for i := range decks {
			a.Decks[i] = strings.Repeat(with, 700)
		}
	}
	paint(liners[1], 8, "d")
	paint(liners[2], 3, "d")
	there := func(a *liner) bool { return f.line.World.Find(a.GUID()).(*liner).Decks == a.Decks }
	steps := 0
	for ; !there(liners[1]) || !there(liners[2]); steps += 30 {
		require.Less(t, steps, 2*3*40, "twice what they take alone, and a half")
		was := f.Server.Counters.UpdateBits
		for i := range 30 {
			paint(liners[0], 8, string(rune('e'+i%20)))
			f.serve(1)
			if steps+i == 15 {
				require.Equal(t, actorrep.ReasonStarved, f.Server.Explain(f.line.Peer, liners[2]).Reason)
			}
			require.True(t, !there(liners[1]) || there(liners[2]), "the smaller change doesn't wait for the larger")
		}
		beside := int(f.Server.Counters.UpdateBits-was) / 30
		t.Log(f.alone, beside)
		require.Greater(t, beside, f.alone/3)
	}
	require.False(t, slices.ContainsFunc(f.line.World.Find(liners[0].GUID()).(*liner).Decks[:8], func(s string) bool { return s == "" }), "all its values have come once")
	f.Until(f.same)
	t.Log(steps)
}

// TestOpeningsTakeTurns: likewise openings of many actors that fit a bunch.
func TestOpeningsTakeTurns(t *testing.T) {
	f := newCrowded(t)
	opened := f.Server.Counters.Opened
	for range 100 {
		a := &liner{}
		for i := range 4 {
			a.Decks[i] = strings.Repeat("d", 250)
		}
		require.NoError(t, f.Server.Spawn(a))
	}
	beside := f.serve(60)
	opened = f.Server.Counters.Opened - opened
	t.Log(f.alone, beside, opened)
	require.Greater(t, beside, f.alone/3)
	require.Greater(t, opened, uint64(2*15/3), "a third of what the bandwidth is enough for")
}

// TestOpeningsBesideCalls: an actor that is destroyed is opened at once for the calls that wait. That takes no turn from other openings.
func TestOpeningsBesideCalls(t *testing.T) {
	f := newCrowded(t)
	var last *liner
	for range 5 {
		plain := &rock{}
		require.NoError(t, f.Server.Spawn(plain))
		for steps := 0; !f.line.Peer.Has(plain); steps++ {
			require.Less(t, steps, 15)
			if last != nil {
				require.NoError(t, f.Server.Destroy(last))
			}
			last = &liner{Name: "n", Flag: "f"}
			_, err := last.Cargo.Add(1)
			require.NoError(t, err)
			for i := range 20 {
				last.Decks[i] = strings.Repeat("d", 12)
			}
			require.NoError(t, f.Server.Spawn(last))
			require.NoError(t, f.call(last, "n"))
			f.serve(1)
		}
	}
}
