package actorrep_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

type tent struct {
	actorrep.Base
	Size uint8 `net:""`
}

type placed struct {
	tent
}

// camp and site are no classes.
type (
	camp struct {
		actorrep.Base
		T tent `net:""`
	}
	site struct {
		actorrep.Base `net:""`
		N             int `net:""`
	}
)

// returns has an Init of its own that isn't an Initializer's.
type returns struct {
	actorrep.Base
	N int `net:""`
}

// Init fails.
func (*returns) Init() error { return nil }

// ends has a Destroyed of its own that isn't a Notified's.
type ends struct{ tent }

// Destroyed fails.
func (*ends) Destroyed() error { return nil }

func (*placed) Location() (x, y, z float64) { return 0, 0, 0 }

// TestRegisterSaysWhatIsWrong: an option of a class that can't do what it says is an error, and no panic.
func TestRegisterSaysWhatIsWrong(t *testing.T) {
	var made *actorrep.RPC[*tent, int]
	for what, o := range map[string]actorrep.ClassOption{
		"procedure Pitch is nil":             actorrep.RPCs{"Pitch": nil},
		"procedure Fold is nil":              actorrep.RPCs{"Fold": made},
		"an option of Register is nil":       nil,
		"CullDistance -1":                    actorrep.CullDistance(-1),
		"CullDistance NaN":                   actorrep.CullDistance(math.NaN()),
		"needs a method Location() (x, y, z": actorrep.CullDistance(10),
	} {
		require.ErrorContains(t, actorrep.NewServer(actorrep.Config{}).Register("tent", (*tent)(nil), o), what)
	}
	require.ErrorContains(t, actorrep.NewServer(actorrep.Config{}).Register("returns", (*returns)(nil)), "returns.Init returns something, so a client wouldn't call it")
	require.ErrorContains(t, actorrep.NewServer(actorrep.Config{}).Register("ends", (*ends)(nil)), "ends.Destroyed returns something, so a client wouldn't call it")
	for rate, what := range map[float64]string{0: "RateLimit 0 must be a number above 0", -1: "RateLimit -1", math.Inf(1): "RateLimit +Inf", math.NaN(): "RateLimit NaN"} {
		pitch := actorrep.ServerRPC0(func(actorrep.Call, *tent) error { return nil }, actorrep.RateLimit(rate, 1))
		require.ErrorContains(t, actorrep.NewServer(actorrep.Config{}).Register("tent", (*tent)(nil), actorrep.RPCs{"Pitch": pitch}), what)
	}
	drum := actorrep.MulticastRPC0(func(actorrep.Call, *tent) error { return nil }, actorrep.RateLimit(1, 1))
	require.ErrorContains(t, actorrep.NewServer(actorrep.Config{}).Register("tent", (*tent)(nil), actorrep.RPCs{"Drum": drum}), "RateLimit is for server procedures")
	require.ErrorContains(t, actorrep.NewServer(actorrep.Config{}).Register("camp", (*camp)(nil)), "T is a actorrep_test.tent, an actor; use an actorrep.Ref")
	require.ErrorContains(t, actorrep.NewServer(actorrep.Config{}).Register("site", (*site)(nil)), "actorrep.Base takes no tag")
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("placed", (*placed)(nil), actorrep.CullDistance(10)))
	require.NoError(t, w.Register("tent", (*tent)(nil), actorrep.CullDistance(0)), "any distance")
	require.NoError(t, actorrep.NewClient(actorrep.Config{}).Register("tent", (*tent)(nil), actorrep.CullDistance(10)), "a client needs no place")
}

// TestNowhere: of a cull distance of an actor that is nowhere, and of a nil pointer as a view target, the game is told, or nothing comes of it.
func TestNowhere(t *testing.T) {
	var failed []error
	w := newWorld(t, 1, clean, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("tent", (*tent)(nil)))
		require.NoError(t, w.Register("placed", (*placed)(nil), actorrep.CullDistance(10)))
	})
	l := w.join()
	const text = "a cull distance needs a method Location() (x, y, z"
	a := &tent{}
	require.NoError(t, w.Server.Spawn(a))
	require.NoError(t, w.Server.Spawn(&placed{}))
	require.Empty(t, failed)
	for range 2 {
		a.SetCullDistance(5)
		l.Peer.SetViewTarget((*placed)(nil))
		require.Nil(t, l.Peer.ViewTarget())
		w.Step()
	}
	b := &tent{}
	b.SetCullDistance(5)
	require.NoError(t, w.Server.Spawn(b))
	require.Len(t, failed, 2)
	for _, err := range failed {
		require.ErrorContains(t, err, text)
	}
}

// TestPeerOfAnotherWorld: a Peer of another World owns nothing: the game is told, no call goes to that World's client, and Explain says so.
func TestPeerOfAnotherWorld(t *testing.T) {
	called := 0
	call := actorrep.ClientRPC0(func(actorrep.Call, *tent) error { called++; return nil }, actorrep.Reliable)
	reg := func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("tent", (*tent)(nil), actorrep.RPCs{"Call": call}))
	}
	var failed []error
	here := newWorld(t, 1, clean, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, reg)
	there := newWorld(t, 2, clean, actorrep.Config{}, reg)
	mine, other := here.join(), there.join()
	a := &tent{}
	a.SetOwner(other.Peer)
	require.ErrorIs(t, here.Server.Spawn(a), actorrep.ErrOtherWorld)
	a.SetOwner(mine.Peer)
	require.NoError(t, here.Server.Spawn(a))
	steps := func() {
		for range 30 {
			here.Step()
			there.Step()
		}
	}
	steps()
	require.NoError(t, call.Call(a))
	steps()
	require.Equal(t, 1, called)

	a.SetOwner(other.Peer)
	require.Nil(t, a.Owner())
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], actorrep.ErrOtherWorld)
	require.ErrorContains(t, failed[0], "tent")
	require.ErrorIs(t, call.Call(a), actorrep.ErrNoOwner)
	steps()
	require.Equal(t, 1, called)
	require.Zero(t, other.World.Len())
	require.Equal(t, actorrep.ErrOtherWorld.Error(), here.Server.Explain(other.Peer, a).Text)

	there.Server.RemoveConn(other.Peer)
	a.SetOwner(mine.Peer)
	a.SetOwner(other.Peer)
	require.Nil(t, a.Owner(), "a removed one counts as nobody")
	require.Len(t, failed, 1)
}

// TestExplainIsAskedWrongly: Explain says what it lacks.
func TestExplainIsAskedWrongly(t *testing.T) {
	w := newWorld(t, 3, clean, actorrep.Config{})
	l := w.join()
	a := &ship{}
	require.NoError(t, w.Server.Spawn(a))
	require.Contains(t, w.Server.Explain(nil, a).Text, "no connection")
	require.Contains(t, w.Server.Explain(l.Peer, nil).Text, "no actor")
	require.Contains(t, w.Server.Explain(l.Peer, (*ship)(nil)).Text, "no actor")
	w.Await("the ship", w.Step, func() bool { return l.World.Len() > 0 })
	require.Contains(t, l.World.Explain(nil, l.World.Find(a.GUID())).Text, "on the server")
}

// shed has a field of parts.
type shed struct {
	actorrep.Base
	Box struct{ Labels [2]string } `net:"cap=3"`
}

// TestExplainOfWhatWasTold: Explain takes the name that an ActorError gives.
func TestExplainOfWhatWasTold(t *testing.T) {
	var failed []error
	w := newWorld(t, 5, clean, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("shed", (*shed)(nil)))
	})
	l := w.join()
	a := &shed{}
	require.NoError(t, w.Server.Spawn(a))
	w.Await("the shed", w.Step, func() bool { return l.World.Len() > 0 })
	a.Box.Labels[1] = "long"
	w.Step()
	require.Len(t, failed, 1)
	var e *actorrep.ActorError
	require.ErrorAs(t, failed[0], &e)
	require.Equal(t, "Box.Labels[1]", e.Name)
	for name, want := range map[string]actorrep.Reason{e.Name: actorrep.ReasonUnfit, "Box": actorrep.ReasonUnfit, "Box.Labels[0]": actorrep.ReasonUpToDate, "Box.Labels[2]": actorrep.ReasonNone} {
		require.Equal(t, want, w.Server.Explain(l.Peer, a, name).Reason, name)
	}
}

// TestExplainSaysWhoForgot: when the server's own connection lacks the channel types, Explain doesn't say that the client doesn't answer.
func TestExplainSaysWhoForgot(t *testing.T) {
	var failed []error
	w := newWorld(t, 4, clean, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }})
	w.Careless = true
	l := w.join()
	a := &ship{}
	require.NoError(t, w.Server.Spawn(a))
	for range 3 {
		w.Step()
	}
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], actorrep.ErrNoChannelTypes)
	e := w.Server.Explain(l.Peer, a)
	require.Equal(t, actorrep.ReasonNoSchema, e.Reason)
	require.Equal(t, failed[0].Error(), e.Text)
}

// TestMirrorsSayThatTheServerDecides: what only a server may do to an actor isn't "not spawned" for a client's.
func TestMirrorsSayThatTheServerDecides(t *testing.T) {
	w := newWorld(t, 5, clean, actorrep.Config{})
	l := w.join()
	a := &ship{}
	all := func(a *ship) []error {
		return []error{a.SetDormant(true), a.TearOff(), a.SetUpdateFrequency(1), a.SetCondition("Name", true)}
	}
	for _, err := range all(a) {
		require.ErrorIs(t, err, actorrep.ErrNotSpawned)
	}
	require.NoError(t, w.Server.Spawn(a))
	w.Await("the ship", w.Step, func() bool { return l.World.Len() > 0 })
	for _, err := range all(l.World.Find(a.GUID()).(*ship)) {
		require.ErrorIs(t, err, actorrep.ErrClient)
	}
	require.NoError(t, w.Server.Destroy(a))
	for _, err := range all(a) {
		require.ErrorIs(t, err, actorrep.ErrNotSpawned)
	}
}

// TestAddConnTwice: a connection that the world has isn't added again, and the game is told.
func TestAddConnTwice(t *testing.T) {
	var failed []error
	w := newWorld(t, 6, clean, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }})
	l := w.join()
	require.Same(t, l.Peer, w.Server.AddConn(l.S))
	require.Len(t, failed, 1)
	require.ErrorContains(t, failed[0], "AddConn")
	a := &ship{}
	a.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(a))
	w.Await("the ship", w.Step, func() bool { return l.World.Len() > 0 })
	for range 30 * 15 {
		w.Step()
	}
	require.Len(t, failed, 1)
	require.Empty(t, l.Failed)
}

// TestSchemaErrorIsOneLine: what the server is told of several classes that a client lacks can be read.
func TestSchemaErrorIsOneLine(t *testing.T) {
	var failed []error
	w := newWorld(t, 7, clean, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }})
	l := w.JoinOther(func(w *actorrep.World) error { return w.Register("tent", (*tent)(nil)) })
	w.Await("the answer", w.Step, l.Peer.Ready)
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], actorrep.ErrSchema)
	text := failed[0].Error()
	require.Equal(t, 1, strings.Count(text, "; actorrep: "), text)
	require.NotContains(t, text, "\n")
	require.NotContains(t, text, "?")
}
