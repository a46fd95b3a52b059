package actorrep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// beast is an actor that is buried when it has died.
type beast struct {
	actorrep.Base
	HP   uint8                `net:"notify=OnHP"`
	Prey actorrep.Ref[*beast] `net:"notify=OnPrey"`
	told []string
}

func (b *beast) OnHP() {
	b.told = append(b.told, "HP")
	if b.HP == 0 && b.Role() == actorrep.Authority {
		if err := b.World().Destroy(b); err != nil { // a corpse isn't needed any more
			panic(err)
		}
	}
}

func (b *beast) OnPrey() {
	b.told = append(b.told, "Prey")
}

func (b *beast) Destroyed() {
	b.told = append(b.told, "Destroyed")
	if b.World() != nil || b.Prey.In(b.World()) != nil {
		panic("it is in no world any more")
	}
}

// TestDestroyedInANotify: a client's game destroys a torn-off actor in a notify. Its later notifies aren't called, and its references lead nowhere.
func TestDestroyedInANotify(t *testing.T) {
	reg := func(w *actorrep.World) error { return w.Register("beast", (*beast)(nil)) }
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, reg)
	l := r.Join(reg)
	a, b := &beast{HP: 9}, &beast{HP: 9}
	require.NoError(t, r.Server.Spawn(a))
	require.NoError(t, r.Server.Spawn(b))
	for range 20 {
		r.Step()
	}
	mirror := l.World.Find(a.GUID()).(*beast)
	a.HP, a.Prey = 0, actorrep.RefTo(b)
	require.NoError(t, a.TearOff())
	for range 20 {
		r.Step()
	}
	require.Equal(t, []string{"HP", "Destroyed"}, mirror.told)
}

// TestReferencesOfADestroyedActor lead nowhere, as it is in no world.
func TestReferencesOfADestroyedActor(t *testing.T) {
	reg := func(w *actorrep.World) error { return w.Register("beast", (*beast)(nil)) }
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, reg)
	l := r.Join(reg)
	a := &beast{HP: 9}
	require.NoError(t, r.Server.Spawn(a))
	for range 20 {
		r.Step()
	}
	mirror := l.World.Find(a.GUID()).(*beast)
	require.NoError(t, r.Server.Destroy(a))
	for range 20 {
		r.Step()
	}
	require.Equal(t, []string{"Destroyed"}, mirror.told)
}
