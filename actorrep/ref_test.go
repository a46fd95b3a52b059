package actorrep_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type hunter struct {
	actorrep.Base
	Prey  actorrep.Ref[*rock]     `net:"notify=OnPrey"`
	Pack  []actorrep.Ref[*hunter] `net:"notify=OnPack"`
	Known []struct {
		Who  actorrep.Ref[*rock]
		Seen uint8
	} `net:""`
	Leader actorrep.Var[actorrep.Ref[*hunter]] `net:""`

	told []string
}

func (h *hunter) OnPrey(old actorrep.Ref[*rock]) {
	h.told = append(h.told, fmt.Sprint("prey ", h.Prey.In(h.World()) != nil, old == h.Prey))
}
func (h *hunter) OnPack() { h.told = append(h.told, "pack") }

type order struct {
	Whom actorrep.Ref[*hunter]
	What []actorrep.Ref[*rock]
}

var hunt = actorrep.ClientRPC(func(c actorrep.Call, h *hunter, o order) error {
	h.told = append(h.told, fmt.Sprint("hunt ", o.Whom.In(c.World) == h, len(o.What), o.What[0].In(c.World) != nil, o.What[1].In(c.World) != nil))
	return nil
}, actorrep.Reliable)

func registerHunter(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("hunter", (*hunter)(nil), actorrep.RPCs{"Hunt": hunt}))
	require.NoError(t, w.Register("rock", (*rock)(nil)))
}

// TestRef: references are nil until their actor comes, notify then and when it comes again, in slices, structs, Vars and
// parameters.
func TestRef(t *testing.T) {
	seen := false
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{RelevantTimeout: -1, Relevant: func(_ *actorrep.Peer, a actorrep.Actor) bool {
		_, is := a.(*rock)
		return !is || seen
	}}, registerHunter)
	l := w.join()
	a, b, r := &hunter{}, &hunter{}, &rock{Size: 1}
	a.SetOwner(l.Peer)
	for _, x := range []actorrep.Actor{a, b, r} {
		require.NoError(t, w.Server.Spawn(x))
	}
	steps := func() (told []string) {
		for range 20 {
			w.Step()
		}
		mine := l.World.Find(a.GUID()).(*hunter)
		told, mine.told = mine.told, nil
		return told
	}
	require.Empty(t, steps())
	a.Prey, a.Pack = actorrep.RefTo(r), []actorrep.Ref[*hunter]{actorrep.RefTo(b), {}}
	a.Known = append(a.Known, struct {
		Who  actorrep.Ref[*rock]
		Seen uint8
	}{actorrep.RefTo(r), 3})
	a.Leader.Set(actorrep.RefTo(b))
	require.Same(t, r, a.Prey.In(w.Server))
	require.Equal(t, []string{"prey false false", "pack"}, steps())
	mine := l.World.Find(a.GUID()).(*hunter)
	theirs := l.World.Find(b.GUID()).(*hunter)
	require.Same(t, theirs, mine.Pack[0].In(l.World))
	require.Nil(t, mine.Pack[1].In(l.World))
	require.Same(t, theirs, mine.Leader.Get().In(l.World))
	for range 2 {
		require.Nil(t, mine.Known[0].Who.In(l.World))
		seen = true
		require.Equal(t, []string{"prey true true"}, steps())
		require.EqualValues(t, 1, mine.Known[0].Who.In(l.World).Size)
		seen = false
		require.Empty(t, steps())
	}
	require.NoError(t, hunt.Call(a, order{actorrep.RefTo(a), []actorrep.Ref[*rock]{actorrep.RefTo(r), {}}}))
	require.Equal(t, []string{"hunt true 2 false false"}, steps())
	seen = true
	steps()
	require.NoError(t, hunt.Call(a, order{actorrep.RefTo(a), []actorrep.Ref[*rock]{actorrep.RefTo(r), {}}}))
	require.Equal(t, []string{"hunt true 2 true false"}, steps())
	require.NoError(t, w.Server.Destroy(r))
	require.Nil(t, a.Prey.In(w.Server))
	steps()
	require.Nil(t, mine.Prey.In(l.World))

	require.Zero(t, actorrep.RefTo[*rock](nil))
	require.Zero(t, actorrep.RefTo(&rock{}))
}

// TestRefOfAnotherType: a reference leads to no actor of another type, whoever says it does.
func TestRefOfAnotherType(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	registerHunter(t, w)
	h := &hunter{}
	require.NoError(t, w.Spawn(h))
	r := actorrep.RefTo(h)
	require.Same(t, h, r.In(w))
	require.Nil(t, actorrep.Ref[*rock](r).In(w))
	require.Nil(t, r.In(actorrep.NewServer(actorrep.Config{})))
}

// TestRefsOfSleepers: a reference notifies when its actor comes, though its own actor slept and woke meanwhile.
func TestRefsOfSleepers(t *testing.T) {
	seen := false
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{RelevantTimeout: -1, Relevant: func(_ *actorrep.Peer, a actorrep.Actor) bool {
		_, is := a.(*rock)
		return !is || seen
	}}, registerHunter)
	l := w.join()
	a, r := &hunter{}, &rock{Size: 1}
	require.NoError(t, w.Server.Spawn(a))
	require.NoError(t, w.Server.Spawn(r))
	a.Prey = actorrep.RefTo(r)
	steps := func() []string {
		for range 20 {
			w.Step()
		}
		mine := l.World.Find(a.GUID()).(*hunter)
		told := mine.told
		mine.told = nil
		return told
	}
	steps()
	for range 2 {
		require.NoError(t, a.SetDormant(true))
		steps()
		require.Equal(t, actorrep.ReasonDormant, w.Server.Explain(l.Peer, a).Reason)
		a.Leader.Set(actorrep.RefTo(a))
		require.NoError(t, a.SetDormant(false))
		steps()
		seen = true
		require.Equal(t, []string{"prey true true"}, steps())
		seen = false
		require.Empty(t, steps())
	}
}
