package predict_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// agree checks that all clients see all runners where the server has one.
func agree(t *testing.T, lines []*rig.Line, server *runner, format string, args ...any) {
	t.Helper()
	for _, l := range lines {
		for x := range l.World.All {
			require.Less(t, math.Abs(x.(*runner).Pos.X-server.Pos.X), 0.02, append([]any{format}, args...)...)
		}
	}
}

// alight ends a ride.
func alight[A predict.Mover[keys]](c *predict.Class[A, keys], x A, grouped bool) {
	if grouped {
		c.Leave(x)
	} else {
		c.Unpossess(x)
	}
}

// ride is a server and two clients with a class, in a group or not, and a step of all.
func ride[A predict.Mover[keys]](t *testing.T, seed uint64, grouped bool, set netsim.Settings, cfg predict.Config[A, keys]) (map[*actorrep.World]*predict.Class[A, keys], *rig.Rig, func()) {
	classes, ticks := map[*actorrep.World]*predict.Class[A, keys]{}, map[*actorrep.World]func(time.Duration) error{}
	reg := func(w *actorrep.World) (err error) {
		cfg := cfg
		if grouped {
			if cfg.Group, err = predict.NewGroup(w, predict.GroupConfig{}); err != nil {
				return err
			}
			ticks[w] = cfg.Group.Tick
		}
		if classes[w], err = predict.Register(w, "Ridden", cfg); !grouped {
			ticks[w] = classes[w].Tick
		}
		return err
	}
	r := rig.New(t, seed, set, actorrep.Config{}, reg)
	r.Join(reg)
	r.Join(reg)
	return classes, r, func() {
		require.NoError(t, ticks[r.Server](r.Now))
		r.Step()
		for _, l := range r.Lines {
			require.NoError(t, ticks[l.World](r.Now))
		}
	}
}

// TestKeptByWhoPlaysNoMore: who gets out of a vehicle and still owns it moves it no more, and sees it where it is.
func TestKeptByWhoPlaysNoMore(t *testing.T) {
	for _, later := range []int{0, 1, 3, 30} { // ticks between Unpossess and SetOwner
		s := newStage(t, 3, netsim.Settings{Lag: 50 * time.Millisecond}, right())
		a := s.join()
		r, _ := s.spawn(a, vec{X: -19})
		for range 30 {
			s.step()
		}
		s.class.Unpossess(r)
		for range later {
			s.step()
		}
		r.SetOwner(a.Peer)
		for range 200 {
			s.step()
		}
		agree(t, s.Lines, r, "SetOwner %d ticks later", later)
	}
}

// TestShortRides: a possession that ends before the first inputs have come leaves all clients with the server's place, however it ends.
func TestShortRides(t *testing.T) {
	for _, lag := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		for _, ticks := range []int{1, 3, 6, 12, 30} {
			for _, end := range []string{"Unpossess", "SetOwner", "Possess"} {
				s := newStage(t, 3, netsim.Settings{Lag: lag}, right())
				a, b := s.join(), s.join()
				r := &runner{Pos: vec{X: -float64(ticks%2) * 10}} // what is zero is sent to nobody
				require.NoError(t, s.Server.Spawn(r))
				for range 60 {
					s.step()
				}
				require.NoError(t, s.class.Possess(r, a.Peer, s.Now))
				for range ticks {
					s.step()
				}
				switch end {
				case "Unpossess":
					s.class.Unpossess(r)
				case "SetOwner":
					r.SetOwner(b.Peer)
				case "Possess":
					require.NoError(t, s.class.Possess(r, b.Peer, s.Now))
					s.class.Unpossess(r)
				}
				for range 300 {
					s.step()
				}
				agree(t, s.Lines, r, "%v, %d ticks, %s", lag, ticks, end)
			}
		}
	}
}

// TestLongRides: so does one that ends where the server's values may come before the word that it has ended.
func TestLongRides(t *testing.T) {
	for seed := range uint64(300) {
		s := newStage(t, seed, netsim.Settings{LagMin: 30 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: 20}, right())
		a, b := s.join(), s.join()
		r := &runner{Pos: vec{X: -19}}
		require.NoError(t, s.Server.Spawn(r))
		for range 60 {
			s.step()
		}
		require.NoError(t, s.class.Possess(r, a.Peer, s.Now))
		for range 40 + s.Rand.IntN(100) {
			s.step()
		}
		if seed%2 == 0 {
			s.class.Unpossess(r)
		} else {
			r.SetOwner(b.Peer)
		}
		for range 300 {
			s.step()
		}
		agree(t, s.Lines, r, "seed %d", seed)
	}
}

// TestGroupRides: the same of a group's members.
func TestGroupRides(t *testing.T) {
	for seed := range uint64(60) {
		classes, r, step := ride(t, seed, true, netsim.Settings{LagMin: 30 * time.Millisecond, LagMax: 100 * time.Millisecond, Loss: float64(seed%3) * 10}, right())
		a := r.Lines[0]
		x := &runner{Pos: vec{X: -19}}
		require.NoError(t, r.Server.Spawn(x))
		for range 60 {
			step()
		}
		require.NoError(t, classes[r.Server].Possess(x, a.Peer, r.Now))
		for range 1 + r.Rand.IntN([]int{12, 120}[seed%2]) {
			step()
		}
		classes[r.Server].Leave(x)
		for range 300 {
			step()
		}
		agree(t, r.Lines, x, "seed %d", seed)
	}
}

// hopper is on the ground, or jumps.
type hopper struct {
	actorrep.Base
	X, Y float64 `net:"q=0.01,simulated" predict:"0.01"`
	Open bool    `net:"simulated" predict:""`
}

func (h *hopper) Simulate(in keys, dt time.Duration) {
	h.X += 4 * float64(in.X) * dt.Seconds()
	h.Y += 4 * float64(in.Y) * dt.Seconds()
	if in.Look != 0 {
		h.Open = in.Look > 0
	}
}

// TestValuesAfterARide: a possession has ended, and its player's client doesn't know yet. The values that come meanwhile are its in the end, those too that are what it shows just then, and that change back.
func TestValuesAfterARide(t *testing.T) {
	for seed := range uint64(100) {
		grouped := seed%2 == 1
		in := keys{X: 1}
		classes, r, step := ride(t, seed, grouped, netsim.Settings{LagMin: 30 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: float64(seed % 4 / 2 * 20)},
			predict.Config[*hopper, keys]{Input: func(*hopper) keys { return in }})
		a := r.Lines[0]
		x := &hopper{}
		require.NoError(t, r.Server.Spawn(x))
		for range 40 {
			step()
		}
		c := classes[r.Server]
		require.NoError(t, c.Possess(x, a.Peer, r.Now))
		for range 60 + r.Rand.IntN(30) {
			step()
		}
		in = keys{}
		for range 20 {
			step()
		}
		alight(c, x, grouped)
		x.X++ // he is thrown out, and it rolls on
		for i := range 300 {
			switch i {
			case 1:
				x.Open = true
			case 2:
				x.Open = false
			case 3:
				in = keys{Y: 1} // the player jumps
			}
			step()
		}
		for y := range a.World.All {
			h := y.(*hopper)
			require.InDelta(t, x.X, h.X, 0.02, "seed %d", seed)
			require.InDelta(t, x.Y, h.Y, 0.02, "seed %d", seed)
			require.Equal(t, x.Open, h.Open, "seed %d", seed)
		}
	}
}

// locker is moved by its player, who opens and shuts it. Others are told of that.
type locker struct {
	actorrep.Base
	X    float64 `net:"q=0.01,simulated" predict:"0.01"`
	Open bool    `net:"skipowner" predict:""`
}

func (l *locker) Simulate(in keys, dt time.Duration) {
	l.X += 4 * float64(in.X) * dt.Seconds()
	l.Open = l.Open || in.X > 0
}

// TestStunnedAtOnce: who owns an actor, and plays it no more before his first inputs have come, keeps what only others are sent.
func TestStunnedAtOnce(t *testing.T) {
	for ticks := 1; ticks <= 12; ticks++ {
		classes, r, step := ride(t, uint64(ticks), false, netsim.Settings{Lag: 50 * time.Millisecond}, predict.Config[*locker, keys]{Input: func(*locker) keys { return keys{X: 1} }})
		a := r.Lines[0]
		x := &locker{}
		require.NoError(t, r.Server.Spawn(x))
		for range 40 {
			step()
		}
		require.NoError(t, classes[r.Server].Possess(x, a.Peer, r.Now))
		for range ticks {
			step()
		}
		x.SetAutonomous(false)
		for range 200 {
			step()
		}
		for y := range a.World.All {
			require.Equal(t, x.Open, y.(*locker).Open, "%d ticks", ticks)
		}
	}
}

// TestStunnedInALongLoss: who owns an actor, and plays it no more, has what owners are sent, also when that comes before the word that he was to play.
func TestStunnedInALongLoss(t *testing.T) {
	for seed := range uint64(200) {
		classes, r, step := ride(t, seed, false, netsim.Settings{LagMin: 30 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: 30}, predict.Config[*locker, keys]{Input: func(*locker) keys { return keys{X: 1} }})
		x := &locker{}
		require.NoError(t, r.Server.Spawn(x))
		for range 40 {
			step()
		}
		require.NoError(t, classes[r.Server].Possess(x, r.Lines[0].Peer, r.Now))
		for range 1 + seed%12 {
			step()
		}
		x.SetAutonomous(false)
		for range 300 {
			step()
		}
		for y := range r.Lines[0].World.All {
			require.InDelta(t, x.X, y.(*locker).X, 0.02, "seed %d", seed)
		}
	}
}

// lamp is lit and put out, by its player and by the server's game. How bright it is is one of two as well.
type lamp struct {
	actorrep.Base
	Lit    bool  `net:"simulated" predict:""`
	Open   bool  `net:"skipowner" predict:""`
	Bright int32 `net:"skipowner" predict:""`
	Turned int16 `net:"simulated" predict:""`
}

func (l *lamp) Simulate(in keys, dt time.Duration) {
	if l.Turned = int16(in.X); in.Look > 0 {
		l.Lit, l.Open, l.Bright = !l.Lit, !l.Open, l.Bright^1
	}
}

// TestFlipsAfterARide: what has few values is often what its player's client shows, or the one that it doesn't, when it comes before the word that he plays no more. It is the server's in the end.
func TestFlipsAfterARide(t *testing.T) {
	for seed := range uint64(200) {
		grouped := seed%2 == 1
		var in keys
		classes, r, step := ride(t, seed, grouped, netsim.Settings{LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: 20}, predict.Config[*lamp, keys]{Input: func(*lamp) keys { return in }})
		x, c := &lamp{}, classes[r.Server]
		flip := func() {
			in = keys{X: int8(r.Rand.IntN(3) - 1)}
			if r.Rand.IntN(7) == 0 {
				in.Look = 1
			}
			if r.Rand.IntN(10) == 0 {
				x.Lit, x.Open, x.Bright = !x.Lit, !x.Open, x.Bright^1
			}
			step()
		}
		require.NoError(t, r.Server.Spawn(x))
		for range 40 {
			step()
		}
		for range 2 {
			require.NoError(t, c.Possess(x, r.Lines[0].Peer, r.Now))
			for range 20 + r.Rand.IntN(60) {
				flip()
			}
			alight(c, x, grouped)
			for range r.Rand.IntN(40) {
				flip()
			}
		}
		for range 200 {
			step()
		}
		for y := range r.Lines[0].World.All {
			h := y.(*lamp)
			require.Equal(t, []any{x.Lit, x.Open, x.Bright, x.Turned}, []any{h.Lit, h.Open, h.Bright, h.Turned}, "seed %d", seed)
		}
	}
}

// belt is an actor with an array that goes in parts; its player uses the fourth slot.
type belt struct {
	actorrep.Base
	X     float64  `net:"q=0.01,simulated" predict:"0.01"`
	Slots [8]uint8 `net:"simulated" predict:""`
}

func (b *belt) Simulate(in keys, dt time.Duration) {
	if b.X += float64(in.X) * dt.Seconds(); in.Look > 0 {
		b.Slots[3] = 9
	}
}

// TestPartsAfterARide: who plays no more just as he uses something has the server's array again, without loss.
func TestPartsAfterARide(t *testing.T) {
	for seed := range uint64(60) {
		in := keys{X: 1}
		grouped := seed%2 == 1
		classes, r, step := ride(t, seed, grouped, netsim.Settings{LagMin: 25 * time.Millisecond, LagMax: 25 * time.Millisecond}, predict.Config[*belt, keys]{Input: func(*belt) keys { return in }})
		x, c := &belt{}, classes[r.Server]
		require.NoError(t, r.Server.Spawn(x))
		for range 40 {
			step()
		}
		require.NoError(t, c.Possess(x, r.Lines[0].Peer, r.Now))
		for range 60 {
			step()
		}
		in.Look = 1
		for range seed % 4 {
			step()
		}
		alight(c, x, grouped)
		for range 200 {
			step()
		}
		for y := range r.Lines[0].World.All {
			require.Equal(t, x.Slots, y.(*belt).Slots, "seed %d", seed)
		}
	}
}
