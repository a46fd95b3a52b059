package actorrep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

// purse has a field of each condition.
type purse struct {
	actorrep.Base
	Always    int `net:""`
	First     int `net:"initial"`
	Coins     int `net:"owner"`
	FirstOwn  int `net:"initialorowner"`
	Moves     int `net:"autonomous"`
	Others    int `net:"skipowner"`
	Simulated int `net:"simulated"`
	Replay    int `net:"replay"`
	TapeOwn   int `net:"replayorowner"`
	Red       int `net:"group=red"`
	Nobody    int `net:"never"`
}

// TestExplainSaysWhose: of a field that its condition keeps from a connection, Explain names the condition and what the connection lacks; of an
// actor without an owner it names what nobody gets for that.
func TestExplainSaysWhose(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("purse", (*purse)(nil)))
	})
	l, other := w.join(), w.join()
	p := &purse{}
	require.NoError(t, w.Server.Spawn(p))
	says := func(field, text string) {
		t.Helper()
		for range 60 {
			w.Step()
		}
		e := w.Server.Explain(l.Peer, p, field)
		require.Equal(t, field+": "+text, e.Text)
		want := actorrep.ReasonCondition
		if text == "up to date" {
			want = actorrep.ReasonUpToDate
		}
		require.Equal(t, want, e.Reason)
	}
	nobody := "the actor has no owner; see SetOwner"
	says("Coins", "its condition is owner: "+nobody)
	says("FirstOwn", "its condition is initialorowner: "+nobody)
	says("Moves", "its condition is autonomous: "+nobody)
	says("TapeOwn", "its condition is replayorowner: "+nobody)
	says("Red", "its condition is group=red: the connection isn't in that group; see Peer.JoinGroup")
	says("First", "its condition is initial: it is sent once, with the actor")
	says("Replay", "its condition is replay: only recordings get it")
	says("Nobody", "its condition is never: nobody gets it")
	require.Equal(t, "up to date; nobody gets Coins, Moves, as the actor has no owner", w.Server.Explain(l.Peer, p).Text)
	p.SetOwner(other.Peer)
	says("Coins", "its condition is owner: another connection owns the actor")
	require.Equal(t, "up to date", w.Server.Explain(l.Peer, p).Text)
	p.SetOwner(l.Peer)
	says("Coins", "up to date")
	says("Moves", "its condition is autonomous: the actor isn't autonomous; see SetAutonomous")
	says("Others", "its condition is skipowner: the connection owns the actor")
	says("Simulated", "up to date")
	p.SetAutonomous(true)
	says("Moves", "up to date")
	says("Simulated", "its condition is simulated: the connection's player moves the actor")
	require.NoError(t, l.Peer.JoinGroup("red"))
	says("Red", "up to date")
}

// TestExplainSaysOnlyFirst: a field that is sent with the actor alone has changed since, and the client that was there keeps the old value; one that comes later has the new one.
func TestExplainSaysOnlyFirst(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("purse", (*purse)(nil)))
	})
	l := w.join()
	p := &purse{First: 1}
	p.SetOwner(l.Peer)
	run := func() {
		for range 60 {
			w.Step()
		}
	}
	require.NoError(t, w.Server.Spawn(p))
	p.First = 2 // before the client has the actor
	run()
	require.Equal(t, "up to date", w.Server.Explain(l.Peer, p).Text)
	p.First = 3
	run()
	require.Equal(t, "up to date; First changed after the client got the actor, and isn't sent again, as its condition is initial", w.Server.Explain(l.Peer, p).Text)
	require.Equal(t, "First: its condition is initial: it is sent once, with the actor, and has changed since", w.Server.Explain(l.Peer, p, "First").Text)
	late := w.join()
	run()
	require.Equal(t, "up to date", w.Server.Explain(late.Peer, p).Text)
}

// TestExplainSaysBlind: Explain says that a cull distance does nothing for a connection without a viewpoint.
func TestExplainSaysBlind(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, registerHeroes)
	l := w.join()
	h := &hero{Pos: vec3{1000, 0, 0}}
	require.NoError(t, w.Server.Spawn(h))
	h.SetCullDistance(50)
	says := func(text string) {
		t.Helper()
		for range 120 {
			w.Step()
		}
		require.Contains(t, w.Server.Explain(l.Peer, h).Text, text)
	}
	says("; it is seen at any distance, as the connection has no viewpoint")
	l.Peer.SetViewpoint(980, 0, 0)
	says("up to date")
	require.NotContains(t, w.Server.Explain(l.Peer, h).Text, "viewpoint")
	l.Peer.SetViewpoint(0, 0, 0)
	says("not relevant any more")

	w = newWorld(t, 1, clean, actorrep.Config{Relevant: func(*actorrep.Peer, actorrep.Actor) bool { return true }}, registerHeroes)
	l = w.join()
	require.NoError(t, w.Server.Spawn(&hero{}))
	h = &hero{}
	require.NoError(t, w.Server.Spawn(h))
	h.SetCullDistance(50)
	says("up to date")
	require.NotContains(t, w.Server.Explain(l.Peer, h).Text, "viewpoint", "the game says who sees it")
}
