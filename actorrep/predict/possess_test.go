package predict_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/schema"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// right is a player who goes right.
func right() config { return config{Input: func(*runner) keys { return keys{X: 1} }} }

// TestPossessedWithinATick: an actor that is given to a player within another one's step is played.
func TestPossessedWithinATick(t *testing.T) {
	var s *stage
	var l *rig.Line
	vehicle, given := &runner{}, false
	s = newStage(t, 1, netsim.Settings{}, config{Input: func(r *runner) keys {
		if r.World().IsServer() && !given {
			given = true
			require.NoError(t, s.class.Possess(vehicle, l.Peer, s.Now))
		}
		return keys{X: 1}
	}})
	l = s.join()
	host := &runner{}
	require.NoError(t, s.Server.Spawn(host))
	require.NoError(t, s.Server.Spawn(vehicle))
	require.NoError(t, s.class.Possess(host, s.Server.Local(), s.Now))
	s.until("the guest drives", func() bool { return vehicle.Pos.X > 2 })
	require.True(t, s.clients[l.World].Predicting(own(l.World)))
}

// TestEndedWithinAStep: who is taken from his player, or goes, within his own step isn't moved any more, and no Tick fails.
func TestEndedWithinAStep(t *testing.T) {
	for name, end := range map[string]func(s *stage, r *runner) error{
		"Unpossess": func(s *stage, r *runner) error { s.class.Unpossess(r); return nil },
		"SetOwner":  func(_ *stage, r *runner) error { r.SetOwner(nil); return nil },
		"Destroy":   func(s *stage, r *runner) error { return s.Server.Destroy(r) },
	} {
		t.Run(name, func(t *testing.T) {
			var s *stage
			var server *runner
			forced, at := 0, 0.0
			s = newStage(t, 1, netsim.Settings{}, config{Input: right().Input, ForceInput: func(k keys) keys {
				if forced++; forced == 1 {
					at = server.Pos.X
					require.NoError(t, end(s, server))
					server.Pos.X, at = 7, 7 // it is the game's again
				}
				return k
			}})
			l := s.join()
			server, _ = s.spawn(l, vec{X: -19})
			s.until("played", func() bool { return server.Pos.X > -18 })
			for range 30 { // the client stands still
				require.NoError(t, s.class.Tick(s.Now))
				s.Step()
			}
			require.Equal(t, 1, forced)
			require.Equal(t, at, server.Pos.X)
			for range 30 {
				s.step()
			}
			require.False(t, s.class.Predicting(server))
		})
	}
}

// TestWhoIsNoPlayer: Possess refuses who isn't a player of the world, and leaves the actor as it was.
func TestWhoIsNoPlayer(t *testing.T) {
	s, other := newStage(t, 1, netsim.Settings{}, right()), newStage(t, 1, netsim.Settings{}, right())
	l, gone, foreign := s.join(), s.join(), other.join()
	s.Server.RemoveConn(gone.Peer)
	r, part := &runner{}, &runner{}
	require.NoError(t, s.Server.Spawn(r))
	require.NoError(t, s.Server.SpawnIn(r, part))
	for _, p := range []*actorrep.Peer{nil, gone.Peer, foreign.Peer, other.Server.Local()} {
		require.ErrorIs(t, s.class.Possess(r, p, s.Now), predict.ErrNoPlayer)
		require.Nil(t, r.Owner())
		require.False(t, s.class.Predicting(r))
	}
	freed := &runner{}
	require.NoError(t, s.Server.SpawnIn(r, freed))
	require.ErrorIs(t, s.class.Possess(freed, l.Peer, s.Now), predict.ErrNoPlayer, "its parent is nobody's")
	require.NoError(t, s.Server.Destroy(freed))
	require.NoError(t, s.Server.Spawn(freed))
	require.Nil(t, freed.Owner(), "when it is an actor of its own, either")
	require.ErrorIs(t, s.class.Possess(part, l.Peer, s.Now), predict.ErrNoPlayer, "its parent is nobody's")
	require.NoError(t, s.class.Possess(r, l.Peer, s.Now))
	require.NoError(t, s.class.Possess(part, l.Peer, s.Now), "its parent is that player's")
}

// TestSetOwnerEndsPossession: an actor that SetOwner gives to another player is shown to him as to all.
func TestSetOwnerEndsPossession(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{}, right())
	a, b := s.join(), s.join()
	server, _ := s.spawn(a, vec{})
	server.SetOwner(b.Peer)
	for range 30 {
		server.Pos.X += 0.1
		s.step()
	}
	require.False(t, s.class.Predicting(server))
	s.until("both see it where it is", func() bool {
		for _, l := range s.Lines {
			for r := range l.World.All {
				if math.Abs(r.(*runner).Pos.X-server.Pos.X) > 0.01 {
					return false
				}
			}
		}
		return true
	})
	require.NotNil(t, own(b.World))
}

// TestSpawnedAgainIsNobodys: a possession ends when its actor is destroyed, also when that is spawned again: at once, or after a Tick. Whoever owns it then, and doesn't
// possess it, sees it as all do.
func TestSpawnedAgainIsNobodys(t *testing.T) {
	for _, later := range []bool{false, true} {
		for _, another := range []bool{false, true} {
			s := newStage(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, right())
			a, b := s.join(), s.join()
			server, _ := s.spawn(a, vec{X: -10})
			require.NoError(t, s.Server.Destroy(server))
			if later {
				s.step()
				s.step()
			}
			if another {
				server.SetOwner(b.Peer)
			}
			require.NoError(t, s.Server.Spawn(server))
			s.step()
			require.False(t, s.class.Predicting(server))
			at := server.Pos.X
			for range 60 {
				s.step()
			}
			require.Equal(t, at, server.Pos.X, "nobody moves it")
			for range 30 {
				server.Pos.X += 0.1
				s.step()
			}
			for range 30 {
				s.step()
			}
			for _, l := range s.Lines {
				seen, ok := l.World.Find(server.GUID()).(*runner)
				require.True(t, ok)
				require.InDelta(t, server.Pos.X, seen.Pos.X, 0.01, "later %v, another's %v", later, another)
			}
			owner := map[bool]*rig.Line{false: a, true: b}[another]
			require.NoError(t, s.class.Possess(server, owner.Peer, s.Now))
			s.until("played", func() bool { return server.Pos.X > at+6 })
		}
	}
}

// TestPossessedInAnotherWorld: what becomes of an actor that was destroyed and is possessed in another world by now is no business of the former one.
func TestPossessedInAnotherWorld(t *testing.T) {
	s, other := newStage(t, 1, netsim.Settings{}, right()), newStage(t, 2, netsim.Settings{}, right())
	server, _ := s.spawn(s.join(), vec{X: -10})
	l := other.join()
	require.NoError(t, s.Server.Destroy(server))
	server.SetOwner(nil)
	require.NoError(t, other.Server.Spawn(server))
	require.NoError(t, other.class.Possess(server, l.Peer, other.Now))
	for range 30 {
		s.step()
		other.step()
	}
	require.Equal(t, actorrep.AutonomousProxy, own(l.World).Role())
	require.Greater(t, server.Pos.X, -9.0)
}

// TestPossessedIsAwake: an actor that is put to sleep while somebody plays it is woken, and played on.
func TestPossessedIsAwake(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, right())
	l := s.join()
	server, mine := s.spawn(l, vec{X: -20})
	for range 3 {
		require.NoError(t, server.SetDormant(true))
		s.Step() // it sleeps
		for range 60 {
			s.step()
		}
		require.False(t, server.Dormant())
		require.InDelta(t, mine.Pos.X, server.Pos.X, 1.3, "a round trip behind")
	}
	require.Greater(t, server.Pos.X, 0.0)
}

// TestPlayedAgainInSight: a player who loses his actor from sight and gets it anew goes on with it.
func TestPlayedAgainInSight(t *testing.T) {
	see := true
	s := &stage{clients: map[*actorrep.World]*runners{}, cfg: right()}
	s.Rig = rig.New(t, 1, netsim.Settings{Lag: 30 * time.Millisecond, Loss: 5}, actorrep.Config{RelevantTimeout: -1, Relevant: func(*actorrep.Peer, actorrep.Actor) bool { return see }},
		func(w *actorrep.World) (err error) {
			s.class, err = predict.Register(w, "Runner", s.cfg)
			return err
		})
	l := s.join()
	server, _ := s.spawn(l, vec{X: -20})
	for range 3 {
		see = false
		s.until("out of sight", func() bool { return own(l.World) == nil })
		for range 60 {
			s.step()
			require.Nil(t, own(l.World), "what isn't relevant isn't opened for its replies")
		}
		see = true
		s.until("played again", func() bool {
			mine := own(l.World)
			return mine != nil && s.clients[l.World].Predicting(mine)
		})
		x := server.Pos.X
		s.until("moved", func() bool { return server.Pos.X > x+1 })
		require.InDelta(t, own(l.World).Pos.X, server.Pos.X, 0.9)
	}
}

// TestHitchOfTheHost: a frame of the player at the server that comes late moves him as far as the frames that were left out would have.
func TestHitchOfTheHost(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{}, right())
	r := &runner{}
	require.NoError(t, s.Server.Spawn(r))
	require.NoError(t, s.class.Possess(r, s.Server.Local(), 0))
	require.NoError(t, s.class.Tick(0))
	require.NoError(t, s.class.Tick(200*time.Millisecond))
	require.EqualValues(t, 12, r.Steps)
	require.InDelta(t, 1, r.Pos.X, 1e-3)
	require.NoError(t, s.class.Tick(10*time.Second))
	require.EqualValues(t, 12+64, r.Steps, "what is more is left out")
}

// TestLeavingIsNoError: Tick gives no error while the player's connection closes.
func TestLeavingIsNoError(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, right())
	l := s.join()
	s.spawn(l, vec{})
	l.C.Close(s.Now, "bye")
	for i := range 60 {
		require.NoError(t, s.clients[l.World].Tick(s.Now+time.Duration(i)*rig.Tick))
	}
}

// build1 to build5 are classes of other builds of a game.
type (
	build1 struct { // another tolerance
		actorrep.Base
		Pos   vec     `net:"q=0.01,simulated" predict:"0.1,smooth"`
		Yaw   float32 `net:"rot=16,skipowner" predict:"0.5"`
		Steps uint32  `predict:""`
	}
	build2 struct { // other fields
		actorrep.Base
		Pos   vec     `net:"q=0.01,simulated" predict:"0.001,smooth"`
		Yaw   float32 `net:"rot=16,skipowner" predict:"0.5"`
		Ticks uint32  `predict:""`
	}
	build3 struct { // the same, and other inputs
		actorrep.Base
		Pos   vec     `net:"q=0.01,simulated" predict:"0.001,smooth"`
		Yaw   float32 `net:"rot=16,skipowner" predict:"0.5"`
		Steps uint32  `predict:""`
	}
	jumps struct {
		Jump bool
		X, Y int8
		Look float32
	}
)

func (*build1) Simulate(keys, time.Duration)  {}
func (*build2) Simulate(keys, time.Duration)  {}
func (*build3) Simulate(jumps, time.Duration) {}

// TestOtherBuilds: builds that predict other numbers, with other tolerances or from other inputs, don't take each other's messages, and the schema
// says so.
func TestOtherBuilds(t *testing.T) {
	ours := actorrep.NewClient(actorrep.Config{})
	_, err := predict.Register(ours, "Runner", right())
	require.NoError(t, err)
	for name, register := range map[string]func(w *actorrep.World) error{
		"tolerance": func(w *actorrep.World) error {
			_, err := predict.Register(w, "Runner", predict.Config[*build1, keys]{Input: func(*build1) keys { return keys{} }})
			return err
		},
		"fields": func(w *actorrep.World) error {
			_, err := predict.Register(w, "Runner", predict.Config[*build2, keys]{Input: func(*build2) keys { return keys{} }})
			return err
		},
		"inputs": func(w *actorrep.World) error {
			_, err := predict.Register(w, "Runner", predict.Config[*build3, jumps]{Input: func(*build3) jumps { return jumps{} }})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := actorrep.NewClient(actorrep.Config{})
			require.NoError(t, register(theirs))
			changes := schema.Of(ours).Diff(schema.Of(theirs))
			require.Len(t, changes, 3)
			for _, c := range changes {
				require.Equal(t, schema.Breaking, c.Severity)
			}
		})
	}
	same := actorrep.NewClient(actorrep.Config{})
	_, err = predict.Register(same, "Runner", config{Rate: 30})
	require.NoError(t, err)
	require.Empty(t, schema.Of(ours).Diff(schema.Of(same)))
}
