package main

import (
	"testing"
	"time"

	"github.com/mlange-42/ark/ecs"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestRun runs what main runs, over several networks.
func TestRun(t *testing.T) {
	seeds := uint64(5)
	if testing.Short() {
		seeds = 1
	}
	for _, loss := range []float64{0, 10, 40} {
		for seed := range seeds {
			t.Logf("loss %v, seed %d", loss, seed)
			require.NoError(t, run(netsim.Settings{Loss: loss, LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond, Order: 5}, 20, seed))
		}
	}
}

// TestComparison: what the verdict rests on sees a difference in each component.
func TestComparison(t *testing.T) {
	p, err := newPlay(1, netsim.Settings{}, 1)
	require.NoError(t, err)
	steps := func(n int) {
		for range n {
			require.NoError(t, p.step(true))
		}
	}
	p.game.step()
	require.Error(t, p.compare(), "nothing was sent yet")
	steps(10)
	require.NoError(t, p.compare())

	e := first(&p.game.world)
	health, fire, name, pos := ecs.NewMap[Health](&p.game.world), ecs.NewMap[Burning](&p.game.world), ecs.NewMap[Name](&p.game.world), ecs.NewMap[Position](&p.game.world)
	for what, change := range []func(){
		func() { health.Get(e).Points-- },
		func() { name.Get(e).Text = "Dolly" },
		func() { pos.Get(e).X += 0.02 },
		func() { fire.Add(e, &Burning{9}) },
		func() { fire.Remove(e) },
		func() { health.Remove(e) },
		func() { p.game.world.RemoveEntity(e) },
		func() { p.game.sheep.NewEntity(&Name{"new"}, &Position{}, &Velocity{}, &Health{1, 1}, &Replicated{}) },
	} {
		change()
		require.Error(t, p.compare(), "change %d", what)
		steps(10)
		require.NoError(t, p.compare(), "change %d", what)
	}

	e = first(&p.game.world)
	ecs.NewMap[Replicated](&p.game.world).Remove(e)
	steps(10)
	require.Error(t, p.compare(), "the server has it still, but it isn't replicated")
	ecs.NewMap[Replicated](&p.game.world).Add(e, &Replicated{})
	steps(10)
	require.NoError(t, p.compare())
}

// TestOwnComponents: what a client adds to an entity stays when the server's components change.
func TestOwnComponents(t *testing.T) {
	p, err := newPlay(1, netsim.Settings{}, 1)
	require.NoError(t, err)
	for range 60 {
		require.NoError(t, p.step(false))
	}
	w := &p.clients[0].ecs
	moved := 0
	for q := ecs.NewFilter2[Trail, Health](w).Query(); q.Next(); {
		if trail, _ := q.Get(); trail.Length > 0.5 {
			moved++
		}
	}
	require.Equal(t, herd, moved)
	server := ecs.NewFilter1[Trail](&p.game.world).Query()
	require.Zero(t, server.Count(), "the server has none")
	server.Close()
}

func first(w *ecs.World) ecs.Entity {
	q := ecs.NewFilter1[Name](w).Query()
	defer q.Close()
	q.Next()
	return q.Entity()
}
