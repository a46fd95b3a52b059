package interp_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type hue struct{ R, G, B uint8 }

type pose struct {
	At  [3]float32
	Rot struct{ X, Y, Z, W float32 } `net:"quat=15"`
}

// thing has a field of every kind.
type thing struct {
	actorrep.Base
	Pose   pose                  `net:"" interp:""`
	Turn   float32               `net:"rot=16" interp:""`
	Head   float64               `net:"" interp:"radians"`
	Degs   float64               `net:"" interp:"angle"`
	Count  int32                 `net:"" interp:""`
	State  uint8                 `net:"" interp:"step"`
	Lit    bool                  `net:"" interp:""`
	Pushed actorrep.Var[float64] `net:"" interp:""`
	Color  hue                   `net:"" interp:""`
	Name   string                `net:""`
}

func lerpHue(a, b hue, t float64) hue {
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + (float64(b)-float64(a))*t) }
	return hue{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B)}
}

// TestEveryKind: numbers and vectors go straight, angles and rotations the short way round, bools and steps in time, and types of the game's by its
// function; what has no tag is left alone.
func TestEveryKind(t *testing.T) {
	var classes []*interp.Class[*thing]
	var ins []*interp.Interpolator
	register := func(w *actorrep.World) error {
		if err := w.Register("Thing", (*thing)(nil), actorrep.UpdateFrequency(3)); err != nil {
			return err
		}
		in, err := interp.New(w, interp.Config{})
		if err != nil {
			return err
		}
		c, err := interp.Register(in, interp.ClassConfig[*thing]{Lerps: []interp.Lerp{interp.LerpOf(lerpHue)}})
		classes, ins = append(classes, c), append(ins, in)
		return err
	}
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, register)
	l := r.Join(register)
	a := &thing{Name: "server's"}
	require.NoError(t, r.Server.Spawn(a))
	set := func(now time.Duration) { // what the server has at a time; the turns cross the ends of their ranges
		s := now.Seconds()
		a.Pose.At = [3]float32{float32(s), float32(-2 * s), 7}
		half := 30 * s * math.Pi / 180 / 2
		a.Pose.Rot.Z, a.Pose.Rot.W = float32(math.Sin(half)), float32(math.Cos(half))
		a.Turn = float32(math.Mod(350+30*s, 360))
		a.Head = math.Remainder(3+0.3*s, 2*math.Pi)
		a.Degs = math.Remainder(170+30*s, 360)
		a.Count = int32(-1000 * s)
		a.Pushed.Set(3 * s)
		a.Color = hue{uint8(10 * s), 200, 0}
		a.State = uint8(s)
		a.Lit = int(s)%2 == 1
	}
	var drawn thing
	n, steps := 0, 0
	for r.Now < 20*time.Second {
		set(r.Now + rig.Tick)
		r.Step()
		for _, in := range ins {
			in.Tick(r.Now)
		}
		for m := range l.World.All {
			m := m.(*thing)
			drawn.Name = "mine"
			classes[1].At(m, &drawn)
			if r.Now < 5*time.Second {
				continue
			}
			n++
			at, ok := classes[1].Time(m)
			require.True(t, ok)
			is := drawn
			set(at)
			require.InDelta(t, a.Pose.At[0], is.Pose.At[0], 0.01)
			require.InDelta(t, a.Pose.At[1], is.Pose.At[1], 0.02)
			require.InDelta(t, 7, is.Pose.At[2], 1e-6)
			dot := float64(is.Pose.Rot.Z*a.Pose.Rot.Z + is.Pose.Rot.W*a.Pose.Rot.W)
			require.InDelta(t, 1, math.Abs(dot), 1e-4)
			require.Zero(t, is.Pose.Rot.X)
			require.InDelta(t, 0, math.Remainder(float64(a.Turn-is.Turn), 360), 0.3)
			require.InDelta(t, 0, math.Remainder(a.Head-is.Head, 2*math.Pi), 0.01)
			require.InDelta(t, 0, math.Remainder(a.Degs-is.Degs, 360), 0.3)
			require.InDelta(t, a.Count, is.Count, 10)
			require.InDelta(t, a.Pushed.Get(), is.Pushed.Get(), 0.03)
			require.InDelta(t, a.Color.R, is.Color.R, 1.01)
			require.EqualValues(t, 200, is.Color.G)
			require.Equal(t, "mine", is.Name)
			if is.State != uint8(at.Seconds()) {
				steps++ // between the change and its sample
			}
			require.Contains(t, []uint8{a.State, a.State - 1}, is.State)
		}
	}
	require.Greater(t, n, 400)
	require.Less(t, steps, n/3+1)
}

// TestTeleports: nobody is drawn on the way of a teleport, told by distance, by a field or by a call.
func TestTeleports(t *testing.T) {
	for name, call := range map[string]func(s *stage, far, near func()){
		"distance": func(s *stage, far, _ func()) { far() },
		"field": func(s *stage, _, near func()) {
			near()
			s.actors[0].Jumps++
		},
		"call": func(s *stage, _, near func()) {
			near()
			v, told := s.viewers[0], false
			v.draw = func(_ time.Duration, v *viewer) {
				for a := range v.line.World.All {
					if w := a.(*walker); w.Pos.X == s.actors[0].Pos.X && !told {
						told = true
						v.class.Teleport(w)
					}
				}
			}
		},
	} {
		s := newStage(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, interp.Config{}, actorrep.UpdateFrequency(5))
		s.spawn(1)
		w := s.actors[0]
		s.move = func(_ int, w *walker, _ time.Duration) { w.Pos.Y += 0.01 }
		s.run(2 * time.Second)
		to := 0.0
		seen := map[bool]int{}
		drawn := func(_, drawn *walker) {
			require.True(t, drawn.Pos.X == 0 || math.Abs(drawn.Pos.X-to) < 0.001, "%s: drawn at %v", name, drawn.Pos.X)
			seen[drawn.Pos.X == 0]++
		}
		call(s, func() { w.Pos.X, to = 50, 50 }, func() { w.Pos.X, to = 3, 3 })
		told := s.viewers[0].draw
		s.viewers[0].draw = func(now time.Duration, v *viewer) {
			if told != nil {
				told(now, v)
			}
			v.each(drawn)
		}
		s.run(2 * time.Second)
		require.Greater(t, seen[true], 5)
		require.Greater(t, seen[false], 50)
		view := s.in.Rewind(s.viewers[0].line.Peer, s.viewers[0].in.Seen())
		require.NotNil(t, view)
	}
}

// TestOwnAndServersAreAsTheyAre: At gives an actor as it is where it isn't shown from the past.
func TestOwnAndServersAreAsTheyAre(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, interp.Config{})
	s.move = circle
	s.spawn(1)
	s.actors[0].SetOwner(s.viewers[0].line.Peer)
	s.actors[0].SetAutonomous(true)
	s.run(time.Second)
	var drawn walker
	require.False(t, s.class.At(s.actors[0], &drawn))
	require.Equal(t, s.actors[0].Pos, drawn.Pos)
	v := s.viewers[0]
	for a := range v.line.World.All {
		w := a.(*walker)
		w.Pos = vec{77, 0} // predicted
		require.False(t, v.class.At(w, &drawn))
		require.Equal(t, vec{77, 0}, drawn.Pos)
	}
}

// TestComingsAndGoings: actors that go and come again are drawn where they are, and their memory is used again.
func TestComingsAndGoings(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 30 * time.Millisecond, Loss: 5}, interp.Config{})
	s.move = circle
	v := s.viewers[0]
	v.draw = func(now time.Duration, v *viewer) {
		v.each(func(w, drawn *walker) { require.InDelta(t, 5, vec{}.to(drawn.Pos), 0.1) })
	}
	s.spawn(5)
	for range 20 {
		s.spawn(5)
		s.run(time.Second)
		view := s.in.Rewind(v.line.Peer, v.in.Seen())
		for _, w := range s.actors {
			var past walker
			require.True(t, s.class.Pose(view, w, &past))
			require.InDelta(t, 5, vec{}.to(past.Pos), 0.1)
			require.NoError(t, s.Server.Destroy(w))
		}
		again := s.actors[:5]
		s.actors = nil
		s.run(time.Second)
		for i, w := range again { // the same ones, at other places
			circle(i, w, s.Now)
			require.NoError(t, s.Server.Spawn(w))
		}
		s.actors = again
	}
	require.NotZero(t, v.in.Counters.Draws)
}

type bad1 struct {
	actorrep.Base
	X float64 `net:""`
}
type bad2 struct {
	actorrep.Base
	X string `net:"" interp:""`
}
type bad3 struct {
	actorrep.Base
	X float64 `net:"" interp:"anlge"`
}
type bad4 struct {
	actorrep.Base
	X [3]float64 `net:"" interp:"quat"`
}
type bad5 struct {
	actorrep.Base
	X [25]float32 `net:"" interp:""`
}
type bad6 struct {
	actorrep.Base
	X float64 `net:"" interp:"teleport=-1"`
}

type bad7 struct {
	actorrep.Base
	Y float64 `net:"" interp:""`
	X float64 `interp:""`
}

// TestWrongClasses: what can't be interpolated is told by Register.
func TestWrongClasses(t *testing.T) {
	in, err := interp.New(actorrep.NewClient(actorrep.Config{}), interp.Config{})
	require.NoError(t, err)
	check := func(err error, want string) {
		t.Helper()
		require.ErrorIs(t, err, interp.ErrClass)
		require.ErrorContains(t, err, want)
	}
	_, err = interp.Register(in, interp.ClassConfig[*bad1]{})
	check(err, "no field with an interp tag")
	_, err = interp.Register(in, interp.ClassConfig[*bad2]{})
	check(err, "LerpOf")
	_, err = interp.Register(in, interp.ClassConfig[*bad3]{})
	check(err, "anlge")
	_, err = interp.Register(in, interp.ClassConfig[*bad4]{})
	check(err, "four floats")
	_, err = interp.Register(in, interp.ClassConfig[*bad5]{})
	check(err, "over 24 numbers")
	_, err = interp.Register(in, interp.ClassConfig[*bad6]{})
	check(err, "teleport=-1")
	_, err = interp.Register(in, interp.ClassConfig[*bad7]{})
	check(err, "no net tag")
	_, err = interp.Register(in, interp.ClassConfig[*thing]{Lerps: []interp.Lerp{interp.LerpOf(func(a, _ string, _ float64) string { return a })}})
	check(err, "pointers")
	_, err = walkers(in)
	require.NoError(t, err)
	_, err = walkers(in)
	check(err, "already")
	for _, cfg := range []interp.Config{{MaxDelay: -1}, {MaxDelay: time.Minute}, {MaxRewind: -1}, {MaxRewind: time.Minute}} {
		_, err = interp.New(actorrep.NewClient(actorrep.Config{}), cfg)
		require.ErrorIs(t, err, interp.ErrConfig)
	}
}

// TestAllocs: frames of a hundred actors allocate nothing, at either end, with a Rewind in each.
func TestAllocs(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, interp.Config{})
	s.move = circle
	s.spawn(100)
	v := s.viewers[0]
	sum := 0.0
	add := func(_, drawn *walker) { sum += drawn.Pos.X }
	v.draw = func(_ time.Duration, v *viewer) { v.each(add) }
	s.run(5 * time.Second)
	past := &walker{}
	require.Zero(t, testing.AllocsPerRun(200, func() {
		s.tick()
		view := s.in.Rewind(v.line.Peer, v.in.Seen())
		if _, ok := view.Ray([3]float64{-10, 0, 1}, [3]float64{10, 0, 1}, 0); !s.class.Pose(view, s.actors[3], past) && ok {
			t.Fail()
		}
	}))
	require.NotZero(t, sum)
}

func BenchmarkFrame100(b *testing.B) {
	s := newStage(b, 1, netsim.Settings{Lag: 20 * time.Millisecond}, interp.Config{})
	s.move = circle
	s.spawn(100)
	s.run(3 * time.Second)
	v := s.viewers[0]
	var list []*walker
	for a := range v.line.World.All {
		list = append(list, a.(*walker))
	}
	now := s.Now
	b.ReportAllocs()
	for b.Loop() {
		now += frame
		v.in.Tick(now)
		for _, w := range list {
			v.class.At(w, &v.drawn)
		}
	}
}

func BenchmarkRewind100(b *testing.B) {
	s := newStage(b, 1, netsim.Settings{Lag: 20 * time.Millisecond}, interp.Config{})
	s.move = circle
	s.spawn(100)
	s.run(3 * time.Second)
	v := s.viewers[0]
	seen := v.in.Seen()
	b.ReportAllocs()
	for b.Loop() {
		s.in.Rewind(v.line.Peer, seen).Ray([3]float64{-10, 0, 1}, [3]float64{10, 0, 1}, 0)
	}
}

// TestHitches: a client that stands still now and then isn't behind for that.
func TestHitches(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, interp.Config{})
	s.move = circle
	s.spawn(3)
	v := s.viewers[0]
	for range 20 {
		s.run(time.Second)
		s.nextFrame += 300 * time.Millisecond
	}
	require.Less(t, v.in.Delay(), 40*time.Millisecond)
	require.Greater(t, v.in.Delay(), time.Millisecond)
	require.Equal(t, 1.0, v.in.Reach(), "nothing was lost")
}
