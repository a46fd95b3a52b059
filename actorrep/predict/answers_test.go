package predict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestChangesAreSentAtOnce: what the game changes on the server is sent to the player in the next frame, also in one in which no tick is due.
func TestChangesAreSentAtOnce(t *testing.T) {
	r, server, client, g, mine := guns(t, Config[*gun, aim]{Rate: 10, Input: func(*gun) aim { return aim{} }})
	for range 60 {
		gunsFrame(t, r, server, client)
	}
	for i := range 12 { // three frames to a tick
		g.X = float64(i%5) - 2
		gunsFrame(t, r, server, client)
		gunsFrame(t, r, server, client) // it was on the way
		require.Equal(t, g.X, mine.X, "change %d", i)
		for range 5 + i%3 {
			gunsFrame(t, r, server, client)
		}
	}
}

// TestStandingClientSeesChanges: on a client whose frames stand still the fields have what the server has sent once World.Step has run.
func TestStandingClientSeesChanges(t *testing.T) {
	r, server, client, g, mine := guns(t, Config[*gun, aim]{Input: func(*gun) aim { return aim{} }})
	for i := range 4 {
		for range 30 {
			gunsFrame(t, r, server, client)
		}
		for range 60 { // all its moves are acked
			require.NoError(t, server.Tick(r.Now))
			r.Step()
		}
		g.X = float64(i) - 2
		for range 60 {
			require.NoError(t, server.Tick(r.Now))
			r.Step()
		}
		require.Equal(t, g.X, mine.X)
	}
}

// TestFramesOfOneTick: a client of MaxCatchUp 1 that gives an input to each tick has no hitches.
func TestFramesOfOneTick(t *testing.T) {
	r, server, client, _, _ := guns(t, Config[*gun, aim]{Rate: 10, MaxCatchUp: 1, Input: func(*gun) aim { return aim{} }})
	for range 60 {
		gunsFrame(t, r, server, client)
	}
	before := client.Counters()
	for range 90 {
		gunsFrame(t, r, server, client)
	}
	require.InDelta(t, 30, client.Counters().Client.Moves-before.Client.Moves, 2)
	require.Equal(t, before.Hitches, client.Counters().Hitches)
}

// calledOf is a world's observer of calls.
type calledOf struct {
	corrections
	names map[string]int
}

func (c *calledOf) Called(call bridge.Call) { c.names[call.Procedure]++ }

// TestBeginsOnce: only the first reply of a possession is reliable: the others needn't wait for each other.
func TestBeginsOnce(t *testing.T) {
	var server, client *Class[*gun, aim]
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, func(w *actorrep.World) (err error) {
		server, err = Register(w, "Gun", Config[*gun, aim]{})
		return err
	})
	l := r.Join(func(w *actorrep.World) (err error) {
		client, err = Register(w, "Gun", Config[*gun, aim]{Input: func(*gun) aim { return aim{X: 1} }})
		return err
	})
	seen := &calledOf{names: map[string]int{}}
	bridge.Observe.(func(*actorrep.World, bridge.Observer))(r.Server, seen)
	g := &gun{}
	require.NoError(t, r.Server.Spawn(g))
	for n := range 3 {
		require.NoError(t, server.Possess(g, l.Peer, r.Now))
		for range 60 {
			gunsFrame(t, r, server, client)
		}
		require.Equal(t, n+1, seen.names["predict.Begin"])
	}
	require.Greater(t, seen.names["predict.Reply"], 30)
}

// watchman notes in each step on the server how long its player's input has waited.
type watchman struct {
	actorrep.Base
	X     float64 `predict:"0.01"`
	waits []time.Duration
}

func (m *watchman) Simulate(in aim, dt time.Duration) {
	m.X += in.X * dt.Seconds()
	if m.World().IsServer() {
		m.waits = append(m.waits, bridge.Waited.(func(*actorrep.Peer) time.Duration)(m.Owner()))
	}
}

// TestWaitedInAStep: in a step the player's Peer has how long the server had the input, by which the time is found that the player saw; afterwards it has nothing. A group's members have it too.
func TestWaitedInAStep(t *testing.T) {
	for _, grouped := range []bool{false, true} {
		var ends classEnds[*watchman, aim]
		cfg := Config[*watchman, aim]{Input: func(*watchman) aim { return aim{X: 1} }}
		r := rig.New(t, 1, netsim.Settings{Lag: 50 * time.Millisecond, LagVariance: 30 * time.Millisecond}, actorrep.Config{}, ends.register(0, "Watchman", cfg, grouped))
		l := r.Join(ends.register(1, "Watchman", cfg, grouped))
		m := &watchman{}
		require.NoError(t, r.Server.Spawn(m))
		require.NoError(t, ends[0].Possess(m, l.Peer, r.Now))
		for range 150 {
			require.NoError(t, ends.tick(0, r.Now))
			require.Zero(t, bridge.Waited.(func(*actorrep.Peer) time.Duration)(l.Peer))
			r.Step()
			require.NoError(t, ends.tick(1, r.Now))
		}
		var all time.Duration
		for _, d := range m.waits[len(m.waits)-100:] {
			all += d
		}
		require.Greater(t, all/100, 5*time.Millisecond, "grouped %v", grouped)
		require.Less(t, all/100, 300*time.Millisecond, "grouped %v", grouped)
	}
}

// TestGroupPlayedOnWithAnother: members are predicted on without a gap when the player is given another of the group's actors.
func TestGroupPlayedOnWithAnother(t *testing.T) {
	r, server, client := beads(t, 4, beadConfig{})
	g := client.group
	for range 30 {
		beadsFrame(t, r, server, client)
	}
	for a := range r.Server.All {
		b := a.(*bead)
		if b.Owner() != nil {
			continue
		}
		require.NoError(t, server.Possess(b, r.Lines[0].Peer, r.Now))
		for range 20 {
			beadsFrame(t, r, server, client)
			require.Equal(t, 4, g.Len())
			for _, m := range g.members {
				require.True(t, m.alive)
			}
		}
	}
	require.Len(t, client.pawns, 4)
}

// TestGroupForgetsPossessions: a server keeps nothing of possessions in a group that have ended, whether by Unpossess, by SetOwner or with the actor.
func TestGroupForgetsPossessions(t *testing.T) {
	r, server, client := beads(t, 2, beadConfig{})
	peer := r.Lines[0].Peer
	for i := range 30 {
		b := spawned(t, r.Server)
		require.NoError(t, server.Possess(b, peer, r.Now))
		beadsFrame(t, r, server, client)
		switch i % 3 {
		case 0:
			server.Unpossess(b)
		case 1:
			b.SetOwner(nil)
		default:
			require.NoError(t, r.Server.Destroy(b))
		}
		beadsFrame(t, r, server, client)
		require.Len(t, server.pawns, 1)
		require.Len(t, server.byActor, 1)
	}
}

// heavy has a state of 2,048 bits.
type heavy[I any] struct {
	actorrep.Base
	All [32]float64 `predict:""`
}

func (h *heavy[I]) Simulate(_ I, _ time.Duration) { h.All[0]++ }

type (
	load12 struct{ All [12]float64 }
	load13 struct{ All [13]float64 }
)

// TestGroupLargestMember: a member whose state and input fit in a message beside what a message has besides is told to the players; of a larger one Tick says so, and the others are told all the same.
func TestGroupLargestMember(t *testing.T) {
	type classes struct {
		group *Group
		small *Class[*bead, pulse]
		fits  *Class[*heavy[load12], load12]
		large *Class[*heavy[load13], load13]
	}
	register := func(c *classes) func(w *actorrep.World) error {
		return func(w *actorrep.World) (err error) {
			if c.group, err = NewGroup(w, GroupConfig{}); err != nil {
				return err
			}
			if c.small, err = Register(w, "Bead", Config[*bead, pulse]{Group: c.group, Input: func(*bead) pulse { return pulse{} }}); err != nil {
				return err
			}
			if c.fits, err = Register(w, "Fits", Config[*heavy[load12], load12]{Group: c.group, Input: func(*heavy[load12]) load12 { return load12{} }}); err != nil {
				return err
			}
			c.large, err = Register(w, "Large", Config[*heavy[load13], load13]{Group: c.group, Input: func(*heavy[load13]) load13 { return load13{} }})
			return err
		}
	}
	var server, client classes
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, register(&server))
	l := r.Join(register(&client))
	mine, fits, large := &bead{}, &heavy[load12]{}, &heavy[load13]{}
	for _, a := range []actorrep.Actor{mine, fits, large} { // a message has them in this order
		require.NoError(t, r.Server.Spawn(a))
	}
	last := spawned(t, r.Server)
	require.NoError(t, server.small.Possess(mine, l.Peer, r.Now))
	require.NoError(t, server.fits.Possess(fits, r.Server.Local(), r.Now))
	require.NoError(t, server.large.Possess(large, r.Server.Local(), r.Now))
	require.NoError(t, server.small.Join(last))
	for range 60 {
		err := server.group.Tick(r.Now)
		if server.group.Counters.Updates > 0 {
			require.ErrorIs(t, err, ErrGroup)
			require.ErrorContains(t, err, large.GUID().String())
			require.NotContains(t, err.Error(), fits.GUID().String()+" ")
		}
		r.Step()
		require.NoError(t, client.group.Tick(r.Now))
	}
	require.Equal(t, 3, client.group.Len())
	for _, id := range []actorrep.Actor{mine, fits, last} {
		a := l.World.Find(baseOf(id).GUID())
		require.True(t, client.group.predicting(baseOf(a)))
		require.Greater(t, client.group.byBase[baseOf(a)].heard, client.group.newest-30)
	}
	none := client.large.Offset(l.World.Find(large.GUID()).(*heavy[load13]), r.Now)
	require.Zero(t, none, "it is no member here")
	require.Zero(t, server.fits.Offset(fits, r.Now), "a server draws nothing")
}
