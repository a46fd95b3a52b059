package actorrep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

type unexported struct {
	actorrep.Base
	hp  uint8  `net:"notify=OnHP"`
	pos vec    `net:"q=1,notify=OnPos"`
	tag []byte `net:"notify=OnTag"`

	old []any
}

func (u *unexported) OnHP(old uint8)   { u.old = append(u.old, old) }
func (u *unexported) OnPos(old vec)    { u.old = append(u.old, old) }
func (u *unexported) OnTag(old []byte) { u.old = append(u.old, string(old)) }

// TestNotifyOfUnexportedFields: their old values are told as those of others.
func TestNotifyOfUnexportedFields(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, func(tb testing.TB, w *actorrep.World) {
		require.NoError(tb, w.Register("unexported", (*unexported)(nil)))
	})
	l := w.join()
	a := &unexported{hp: 5, tag: []byte("a")}
	require.NoError(t, w.Server.Spawn(a))
	for range 20 {
		w.Step()
	}
	a.hp, a.pos, a.tag = 6, vec{2, 3}, []byte("b")
	for range 20 {
		w.Step()
	}
	require.Equal(t, []any{uint8(5), vec{}, "a"}, l.World.Find(a.GUID()).(*unexported).old)
}

type byPointer struct {
	*actorrep.Base
	N int `net:""`
}

type middle struct{ actorrep.Base }

type byMiddle struct {
	*middle
	N int `net:""`
}

type byValue struct {
	middle
	N int `net:""`
}

// wrongOld has a notify that takes another type than its field's.
type wrongOld struct {
	actorrep.Base
	N int `net:"notify=OnN"`
}

func (*wrongOld) OnN(uint8) {}

// twoOlds has a notify that takes more than the old value.
type twoOlds struct {
	actorrep.Base
	N int `net:"notify=OnN"`
}

func (*twoOlds) OnN(int, int) {}

// oldList has a notify that takes a fast array's old value.
type oldList struct {
	actorrep.Base
	L fastarray.List[uint8] `net:"notify=OnL"`
}

func (*oldList) OnL(fastarray.List[uint8]) {}

// threeLists has more fast arrays than a class may have.
type threeLists struct {
	actorrep.Base
	A, B, C fastarray.List[uint8] `net:""`
}

// TestBaseByPointer: a class whose Base isn't in it is refused where it is registered, and so are what is no pointer to a struct, a notify that can't be called, too many fast arrays and a rate of 0.
func TestBaseByPointer(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.ErrorIs(t, w.Register("n", nil), actorrep.ErrClass)
	require.ErrorIs(t, w.Register("v", byPointer{}), actorrep.ErrClass)
	require.ErrorIs(t, w.Register("o", (*wrongOld)(nil)), actorrep.ErrNotify)
	require.ErrorIs(t, w.Register("t", (*twoOlds)(nil)), actorrep.ErrNotify)
	require.ErrorIs(t, w.Register("l", (*oldList)(nil)), actorrep.ErrNotify)
	require.ErrorIs(t, w.Register("m", (*threeLists)(nil)), actorrep.ErrManyFast)
	require.Error(t, w.Register("f", (*byValue)(nil), actorrep.UpdateFrequency(0)), "never")
	require.ErrorIs(t, w.Register("a", (*byPointer)(nil)), actorrep.ErrClass)
	require.ErrorIs(t, w.Register("b", (*byMiddle)(nil)), actorrep.ErrClass)
	require.NoError(t, w.Register("c", (*byValue)(nil)))
	require.NoError(t, w.Spawn(&byValue{}))
}

// silent has fields of which none is sent; local has none that anybody else sees.
type silent struct {
	actorrep.Base
	HP int
}

type local struct {
	actorrep.Base
	drawn int
}

type withinSilent struct{ silent }

// TestClassesThatSayNothing: a class without a name, and one with fields of which none is tagged, are refused where they are registered.
// One that has only procedures isn't, nor one that is only there.
func TestClassesThatSayNothing(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.ErrorIs(t, w.Register("", (*byValue)(nil)), actorrep.ErrNoName)
	require.ErrorIs(t, w.Register("s", (*silent)(nil)), actorrep.ErrNothing)
	require.ErrorIs(t, w.Register("w", (*withinSilent)(nil)), actorrep.ErrNothing)
	knock := actorrep.ServerRPC0(func(actorrep.Call, *silent) error { return nil })
	require.NoError(t, w.Register("s", (*silent)(nil), actorrep.RPCs{"Knock": knock}))
	require.NoError(t, w.Register("l", (*local)(nil)))
	require.NoError(t, w.Spawn(&local{drawn: 1}))
}

// TestOwnerThatLeft: a connection that was removed owns nothing, whenever it is said to.
func TestOwnerThatLeft(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, registerSoldier)
	l := w.join()
	a, early := &soldier{}, &soldier{}
	require.NoError(t, w.Server.Spawn(a))
	early.SetOwner(l.Peer)
	for range 10 {
		w.Step()
	}
	w.Server.RemoveConn(l.Peer)
	w.Lines = nil
	a.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(early))
	for _, b := range []*soldier{a, early} {
		require.True(t, b.Owner() == nil)
		require.ErrorIs(t, tell.Call(b, "x"), actorrep.ErrNoOwner)
	}
	l.Peer.SetRelevant(a, true)
	require.Zero(t, l.Peer.Len())
	w.Step()
}

// TestFloodOfLimitedCalls: calls over their rate are refused before they are decoded. What an honest client may have made
// during an outage is no reason to part; more than a minute's worth is.
func TestFloodOfLimitedCalls(t *testing.T) {
	decoded = 0
	flood := func(w *actorrep.World) error {
		return w.Register("flooded", (*flooded)(nil), actorrep.RPCs{"Limited": limited})
	}
	// the client's own limit is lifted, as a cheat's
	lifted := func(w *actorrep.World) error {
		return w.Register("flooded", (*flooded)(nil), actorrep.RPCs{"Limited": unlimited})
	}
	r := rig.New(t, 1, clean, actorrep.Config{}, flood)
	l := r.Join(lifted)
	a := &flooded{}
	a.SetOwner(l.Peer)
	require.NoError(t, r.Server.Spawn(a))
	for range 20 {
		r.Step()
	}
	mine := l.World.Find(a.GUID()).(*flooded)
	for range 10 { // 100 calls: 20 s' worth at once
		for range 10 {
			require.NoError(t, unlimited.Call(mine, weighed{}))
		}
		r.Step()
	}
	for range 10 {
		r.Step()
	}
	require.EqualValues(t, 100, r.Server.Counters.CallsReceived)
	require.Less(t, decoded, 10)
	require.Equal(t, 100, decoded+int(r.Server.Counters.CallsRefused))

	ended := false
	for range 60 {
		for range 10 {
			_ = unlimited.Call(mine, weighed{})
		}
		r.Now += rig.Tick
		for p, ok := l.Up.Pop(r.Now); ok; p, ok = l.Up.Pop(r.Now) {
			_ = l.S.ReceivedPacket(r.Now, p)
		}
		for p, ok := l.Down.Pop(r.Now); ok; p, ok = l.Down.Pop(r.Now) {
			_ = l.C.ReceivedPacket(r.Now, p)
		}
		l.World.Step(r.Now)
		r.Server.Step(r.Now)
		l.S.Tick(r.Now)
		l.C.Tick(r.Now)
		if ended = l.S.Closed(); ended {
			break
		}
	}
	require.True(t, ended)
	require.Less(t, decoded, 20)
}

type flooded struct {
	actorrep.Base
	N int `net:""`
}

var decoded int

// weighed counts how often it is decoded.
type weighed struct{}

func (*weighed) WriteNet(w *bitio.Writer)      { w.WriteUint8(1) }
func (*weighed) ReadNet(r *bitio.Reader) error { decoded++; r.ReadUint8(); return r.Err() }

func nothing(actorrep.Call, *flooded, weighed) error { return nil }

var (
	limited   = actorrep.ServerRPC(nothing, actorrep.Reliable, actorrep.RateLimit(5, 3))
	unlimited = actorrep.ServerRPC(nothing, actorrep.Reliable, actorrep.OnOverflow(actorrep.DropOldest))
)

// TestSpawnOfNoActor: what is no actor is refused, nil and a pointer to none too.
func TestSpawnOfNoActor(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	register(t, w)
	for _, a := range []actorrep.Actor{nil, (*rock)(nil), byPointer{}} {
		require.ErrorIs(t, w.Spawn(a), actorrep.ErrClass)
		require.ErrorIs(t, w.SpawnAs(a, nil, 77), actorrep.ErrClass)
	}
	require.ErrorIs(t, w.Spawn(&byPointer{}), actorrep.ErrUnknown)
	require.ErrorIs(t, w.SpawnIn(nil, &rock{}), actorrep.ErrNotSpawned)
	require.Zero(t, w.Len())
}
