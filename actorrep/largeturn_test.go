package actorrep_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLargeActorsTakeTurns: while a large actor opens on a connection whose bandwidth changes of others would fill, these and the opening get about half of it each.
func TestLargeActorsTakeTurns(t *testing.T) {
	f := newFleet(t, 1, netsim.Settings{}, actorrep.Config{})
	f.Speed = 15_000
	l := f.join()
	var rocks []*rock
	for range 400 {
		rocks = append(rocks, &rock{})
		require.NoError(t, f.Server.Spawn(rocks[len(rocks)-1]))
	}
	f.Until(f.same)
	serve := func(steps int) int {
		was := f.Server.Counters.Updates
		for range steps {
			for _, r := range rocks {
				r.Size += 257
			}
			f.Step()
		}
		return int(f.Server.Counters.Updates-was) / steps
	}
	serve(30)
	alone := serve(30)
	require.Less(t, alone, len(rocks)/2, "the bandwidth isn't enough for all")
	a := &liner{}
	for i := range 20 {
		a.Decks[i] = strings.Repeat("d", 2000)
	}
	require.NoError(t, f.Server.Spawn(a))
	for range 3 {
		beside := serve(30)
		t.Log(alone, beside)
		require.Nil(t, l.World.Find(a.GUID()))
		require.Greater(t, beside, alone/3)
	}
	steps := 90
	for ; l.World.Find(a.GUID()) == nil; steps++ {
		require.Less(t, steps, 2*3*60, "twice what it takes alone, and a half")
		serve(1)
	}
	t.Log(steps)
}
