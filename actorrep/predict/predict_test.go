package predict_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// keys is an input.
type keys struct {
	X, Y int8 `net:""`
	Look float32
}

type vec struct{ X, Y float64 }

// runner walks about in a room of 40 by 40.
type runner struct {
	actorrep.Base
	Pos   vec     `net:"q=0.01,simulated" predict:"0.001,smooth"`
	Yaw   float32 `net:"rot=16,skipowner" predict:"0.5"`
	Steps uint32  `predict:""`
	Speed float64 // the game's; the same at both ends
}

func (r *runner) Simulate(in keys, dt time.Duration) {
	speed := 5 + r.Speed
	r.Pos.X = min(max(r.Pos.X+speed*float64(in.X)*dt.Seconds(), -20), 20)
	r.Pos.Y = min(max(r.Pos.Y+speed*float64(in.Y)*dt.Seconds(), -20), 20)
	r.Yaw = float32(math.Mod(float64(r.Yaw+in.Look*float32(dt.Seconds())), 360))
	r.Steps++
}

type runners = predict.Class[*runner, keys]

type config = predict.Config[*runner, keys]

// stage is a server's world and clients' with a class of runners each.
type stage struct {
	*rig.Rig
	class   *runners
	clients map[*actorrep.World]*runners
	cfg     config
}

func newStage(t *testing.T, seed uint64, set netsim.Settings, cfg config) *stage {
	s := &stage{clients: map[*actorrep.World]*runners{}, cfg: cfg}
	s.Rig = rig.New(t, seed, set, actorrep.Config{}, func(w *actorrep.World) (err error) {
		s.class, err = predict.Register(w, "Runner", cfg)
		return err
	})
	return s
}

func (s *stage) join() *rig.Line { return s.Join(s.register) }

// register is a client's.
func (s *stage) register(w *actorrep.World) (err error) {
	s.clients[w], err = predict.Register(w, "Runner", s.cfg)
	return err
}

// step is a frame of all.
func (s *stage) step() {
	require.NoError(s.T, s.class.Tick(s.Now))
	s.Step()
	for _, l := range s.Lines {
		require.NoError(s.T, s.clients[l.World].Tick(s.Now))
	}
}

// until steps until f, a minute at most.
func (s *stage) until(what string, f func() bool) {
	s.T.Helper()
	s.Await(what, s.step, f)
}

// own is a client's own runner.
func own(w *actorrep.World) *runner {
	for a := range w.All {
		if r, ok := a.(*runner); ok && r.IsOwned() {
			return r
		}
	}
	return nil
}

// spawn gives a line's player a runner at a place, and waits until it is predicted.
func (s *stage) spawn(l *rig.Line, at vec) (server, client *runner) {
	server = &runner{Pos: at, Yaw: 90}
	require.NoError(s.T, s.Server.Spawn(server))
	require.NoError(s.T, s.class.Possess(server, l.Peer, s.Now))
	s.until("predicted", func() bool {
		client = own(l.World)
		return client != nil && s.clients[l.World].Predicting(client)
	})
	return server, client
}

// TestPlayed: the player's own actor moves in the frame of the input, the server comes to the same without a correction, and who looks on sees
// it; over a bad network too.
func TestPlayed(t *testing.T) {
	for _, net := range []netsim.Settings{{}, {Lag: 100 * time.Millisecond}, {Lag: 100 * time.Millisecond, LagVariance: 25 * time.Millisecond, Loss: 5}, {Lag: 60 * time.Millisecond, Loss: 20, Dup: 5}} {
		var now keys
		corrected := 0
		s := newStage(t, 7, net, config{Input: func(*runner) keys { return now }, Corrected: func(*runner, prediction.Correction) { corrected++ }})
		player, watcher := s.join(), s.join()
		server, mine := s.spawn(player, vec{3, -4})
		require.InDelta(t, 3, mine.Pos.X, 1e-9, "the first correction has brought the state")
		require.InDelta(t, 90, mine.Yaw, 1e-6)
		begun := corrected
		for i := range 300 {
			before := mine.Pos
			now = keys{X: int8(i/30%3 - 1), Y: int8(i/40%3 - 1), Look: 45}
			s.step()
			if now.X != 0 && math.Abs(mine.Pos.X) < 19 {
				require.NotEqual(t, before.X, mine.Pos.X, "felt at once")
			}
		}
		now = keys{}
		s.until("all agree", func() bool {
			var seen *runner
			for a := range watcher.World.All {
				seen = a.(*runner)
			}
			return seen != nil && math.Abs(server.Pos.X-mine.Pos.X) < 1e-3 && math.Abs(server.Pos.X-seen.Pos.X) < 0.006 && math.Abs(server.Pos.Y-seen.Pos.Y) < 0.006
		})
		require.Zero(t, watcherSteps(watcher), "what has no net tag is nobody else's")
		c := s.class.Counters()
		t.Logf("%+v: %d corrections, server %+v", net, corrected-begun, c.Server)
		require.Zero(t, c.Server.SpeedHacks)
		if net.Loss == 0 {
			require.Equal(t, begun, corrected)
			require.Equal(t, 1, corrected, "the first state")
		} else {
			require.Less(t, corrected-begun, 20)
		}
		require.Zero(t, c.Strange)
	}
}

func watcherSteps(l *rig.Line) (n uint32) {
	for a := range l.World.All {
		n += a.(*runner).Steps
	}
	return n
}

// TestPushed: what the game changes on the server comes to the player at once, and smooth hides it for a while.
func TestPushed(t *testing.T) {
	var sizes []float64
	s := newStage(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, config{Input: func(*runner) keys { return keys{X: 1} },
		Corrected: func(_ *runner, c prediction.Correction) { sizes = append(sizes, c.Size) }})
	l := s.join()
	server, mine := s.spawn(l, vec{})
	for range 30 {
		s.step()
	}
	class := s.clients[l.World]
	require.Zero(t, class.Offset(mine, s.Now))
	sizes = nil
	server.Pos.Y += 2
	for range 5 {
		s.step()
	}
	require.Len(t, sizes, 1)
	require.InDelta(t, 2000, sizes[0], 1, "in tolerances")
	require.InDelta(t, 2, mine.Pos.Y, 1e-9)
	require.InDelta(t, -2, class.Offset(mine, s.Now)[1], 1.99, "it fades")
	require.NotZero(t, class.Offset(mine, s.Now)[1])
	s.until("gone", func() bool { return math.Abs(class.Offset(mine, s.Now)[1]) < 1e-6 })
	require.Len(t, sizes, 1)
}

// TestOwnersChange: who loses an actor predicts it no more and sees it as others do; who gets it goes on from where it is; back again too.
func TestOwnersChange(t *testing.T) {
	s := newStage(t, 3, netsim.Settings{Lag: 40 * time.Millisecond, Loss: 5}, config{Input: func(*runner) keys { return keys{X: 1} }})
	a, b := s.join(), s.join()
	server, mine := s.spawn(a, vec{X: -19})
	for turn, to := range []*rig.Line{b, a, b, a} {
		for range 20 {
			s.step()
		}
		from := a
		if to == a {
			from = b
		}
		require.NoError(t, s.class.Possess(server, to.Peer, s.Now))
		s.until("the other plays", func() bool {
			mine = own(to.World)
			return own(from.World) == nil && mine != nil && s.clients[to.World].Predicting(mine)
		})
		x := mine.Pos.X
		for range 10 {
			s.step()
		}
		require.Greater(t, mine.Pos.X, x, "turn %d", turn)
		require.InDelta(t, server.Pos.X, mine.Pos.X, 1.5, "turn %d", turn)
	}
	s.class.Unpossess(server)
	s.until("nobody plays", func() bool { return own(a.World) == nil && own(b.World) == nil })
	x := server.Pos.X
	for range 30 {
		s.step()
	}
	require.Equal(t, x, server.Pos.X)
	require.False(t, s.class.Predicting(server))
	for _, l := range s.Lines {
		for r := range l.World.All {
			require.InDelta(t, x, r.(*runner).Pos.X, 0.006)
		}
	}
}

// TestFrameRates: a client of 144 frames a second and one of 30 come to the same as the server, at the same steps.
func TestFrameRates(t *testing.T) {
	for _, rate := range []float64{20, 60, 144} {
		s := newStage(t, 5, netsim.Settings{Lag: 30 * time.Millisecond, Loss: 10}, config{Rate: rate, Input: func(*runner) keys { return keys{X: 1, Y: -1} }})
		l := s.join()
		server, mine := s.spawn(l, vec{-19, 19})
		began, steps := s.Now, mine.Steps
		for range 90 {
			s.step()
		}
		want := (s.Now - began).Seconds() * rate
		require.InDelta(t, want, float64(mine.Steps-steps), 0.05*want+2, "but for what the clock runs faster or slower")
		s.until("agreed", func() bool { return math.Abs(server.Pos.X-mine.Pos.X) < 0.01 })
	}
}

// TestListenServersPlayer: the player at the server feels and moves like others.
func TestListenServersPlayer(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{}, config{Input: func(*runner) keys { return keys{X: 1} }})
	r := &runner{}
	require.NoError(t, s.Server.Spawn(r))
	require.NoError(t, s.class.Possess(r, s.Server.Local(), s.Now))
	for range 30 {
		s.step()
	}
	require.InDelta(t, 5, r.Pos.X, 0.2)
	require.True(t, r.IsOwned())
}

// TestCheatsGainNothing: a client whose steps are longer than time gets no further than one that plays fair.
func TestCheatsGainNothing(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, config{Input: func(*runner) keys { return keys{X: 1} }})
	l := s.join()
	server, _ := s.spawn(l, vec{X: -20})
	fake := s.Now
	for range 60 {
		require.NoError(t, s.class.Tick(s.Now))
		s.Step()
		fake += 2 * rig.Tick // twice as fast
		require.NoError(t, s.clients[l.World].Tick(fake))
	}
	require.Less(t, server.Pos.X, -20+5*2.1, "two seconds")
}

type wrong1 struct {
	actorrep.Base
	X float64 `net:"" predict:"0.1"`
}
type wrong2 struct {
	actorrep.Base
	X float64 `net:"simulated"`
}
type wrong3 struct {
	actorrep.Base
	X string `predict:""`
}
type wrong4 struct {
	actorrep.Base
	X float64 `predict:"-1"`
}
type wrong5 struct {
	actorrep.Base
	X float64 `predict:"1,smoth"`
}
type wrong6 struct {
	actorrep.Base
	X [33]int8 `predict:""`
}

func (*wrong1) Simulate(keys, time.Duration) {}
func (*wrong2) Simulate(keys, time.Duration) {}
func (*wrong3) Simulate(keys, time.Duration) {}
func (*wrong4) Simulate(keys, time.Duration) {}
func (*wrong5) Simulate(keys, time.Duration) {}
func (*wrong6) Simulate(keys, time.Duration) {}

type texts struct{ S string }

type talker struct {
	actorrep.Base
	X float64 `predict:""`
}

func (*talker) Simulate(texts, time.Duration) {}

// TestWrongClasses: what can't be predicted is told by Register, with what to do.
func TestWrongClasses(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	try := func(err error, want string) {
		t.Helper()
		require.ErrorIs(t, err, predict.ErrClass)
		require.ErrorContains(t, err, want)
	}
	_, err := predict.Register(w, "1", predict.Config[*wrong1, keys]{})
	try(err, "condition simulated or skipowner")
	_, err = predict.Register(w, "2", predict.Config[*wrong2, keys]{})
	try(err, "no field with a predict tag")
	_, err = predict.Register(w, "3", predict.Config[*wrong3, keys]{})
	try(err, "X is string")
	_, err = predict.Register(w, "4", predict.Config[*wrong4, keys]{})
	try(err, "no number from 0 up")
	_, err = predict.Register(w, "5", predict.Config[*wrong5, keys]{})
	try(err, "there is smooth")
	_, err = predict.Register(w, "6", predict.Config[*wrong6, keys]{})
	try(err, "over 32 numbers")
	_, err = predict.Register(w, "7", predict.Config[*talker, texts]{})
	try(err, "texts.S is string")
	for _, cfg := range []config{{Rate: 5}, {Rate: 500}, {Rate: math.NaN()}, {MaxCatchUp: -1}, {MaxCatchUp: 65}} {
		_, err = predict.Register(w, "8", cfg)
		require.ErrorIs(t, err, predict.ErrConfig)
	}
	class, err := predict.Register(w, "9", config{})
	require.NoError(t, err)
	require.ErrorIs(t, class.Possess(&runner{}, w.Local(), 0), predict.ErrNotSpawned)
	r := &runner{}
	require.NoError(t, w.Spawn(r))
	require.ErrorIs(t, class.Possess(r, w.Local(), 0), predict.ErrNoInput)
	require.ErrorIs(t, class.Possess(r, nil, 0), predict.ErrNoPlayer)
	class.Unpossess(r)
}
