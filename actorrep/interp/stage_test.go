package interp_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/rewind"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type vec struct{ X, Y float64 }

func (a vec) to(b vec) float64 { return math.Hypot(b.X-a.X, b.Y-a.Y) }

// walker walks about.
type walker struct {
	actorrep.Base
	Pos   vec     `net:"q=0.001" interp:"teleport=5"`
	Yaw   float64 `net:"rot=16" interp:""`
	Jumps uint8   `net:"" interp:"jump"`
	Other uint32  `net:""`
}

func walkers(in *interp.Interpolator) (*interp.Class[*walker], error) {
	return interp.Register(in, interp.ClassConfig[*walker]{Hitboxes: func(_, seen *walker, dst []rewind.Capsule) []rewind.Capsule {
		at := rewind.Vec{seen.Pos.X, seen.Pos.Y, 0}
		return append(dst, rewind.Capsule{A: at, B: rewind.Vec{at[0], at[1], 1.8}, Radius: 0.4})
	}})
}

// stage is a server of 60 Steps a second and clients of 75 frames, in virtual time.
type stage struct {
	*rig.Rig
	in      *interp.Interpolator
	class   *interp.Class[*walker]
	viewers []*viewer
	actors  []*walker
	move    func(i int, w *walker, now time.Duration) // before each Step

	step, frame         time.Duration // 60 and 75 a second, if not said
	nextStep, nextFrame time.Duration
}

// viewer is a client that draws.
type viewer struct {
	line  *rig.Line
	in    *interp.Interpolator
	class *interp.Class[*walker]
	draw  func(now time.Duration, v *viewer) // each frame
	drawn walker
}

const (
	step  = time.Second / 60
	frame = time.Second / 75
	grain = time.Second / 300
)

func newStage(t testing.TB, seed uint64, set netsim.Settings, cfg interp.Config, options ...actorrep.ClassOption) *stage {
	return newStageOf(t, seed, set, cfg, func(*actorrep.World) error { return nil }, options...)
}

// newStageOf is newStage with more classes.
func newStageOf(t testing.TB, seed uint64, set netsim.Settings, cfg interp.Config, more func(w *actorrep.World) error, options ...actorrep.ClassOption) *stage {
	s := &stage{step: step, frame: frame}
	register := func(w *actorrep.World) (in *interp.Interpolator, c *interp.Class[*walker], err error) {
		if err = w.Register("Walker", (*walker)(nil), options...); err != nil {
			return nil, nil, err
		}
		if err = more(w); err != nil {
			return nil, nil, err
		}
		if in, err = interp.New(w, cfg); err != nil {
			return nil, nil, err
		}
		c, err = walkers(in)
		return in, c, err
	}
	s.Rig = rig.New(t, seed, set, actorrep.Config{}, func(w *actorrep.World) (err error) {
		s.in, s.class, err = register(w)
		return err
	})
	v := &viewer{}
	v.line = s.Join(func(w *actorrep.World) (err error) {
		v.in, v.class, err = register(w)
		return err
	})
	s.viewers = append(s.viewers, v)
	return s
}

func (s *stage) spawn(n int) {
	for i := range n {
		w := &walker{}
		if s.move != nil {
			s.move(i, w, s.Now)
		}
		require.NoError(s.T, s.Server.Spawn(w))
		s.actors = append(s.actors, w)
	}
}

// run lets time pass.
func (s *stage) run(d time.Duration) {
	for until := s.Now + d; s.Now < until; {
		s.tick()
	}
}

func (s *stage) tick() {
	s.Now += min(grain, s.step, s.frame)
	if s.Now >= s.nextStep {
		s.nextStep += s.step
		for _, l := range s.Lines {
			for p, ok := l.Up.Pop(s.Now); ok; p, ok = l.Up.Pop(s.Now) {
				_ = l.S.ReceivedPacket(s.Now, p)
			}
			l.S.PostTickDispatch(s.Now)
		}
		for i, w := range s.actors {
			if s.move != nil {
				s.move(i, w, s.Now)
			}
		}
		s.Server.Step(s.Now)
		s.in.Tick(s.Now)
		for _, l := range s.Lines {
			l.S.Tick(s.Now)
		}
	}
	if s.Now >= s.nextFrame {
		s.nextFrame += s.frame
		for _, v := range s.viewers {
			l := v.line
			for p, ok := l.Down.Pop(s.Now); ok; p, ok = l.Down.Pop(s.Now) {
				_ = l.C.ReceivedPacket(s.Now, p)
			}
			l.C.PostTickDispatch(s.Now)
			l.World.Step(s.Now)
			v.in.Tick(s.Now)
			if v.draw != nil {
				v.draw(s.Now, v)
			}
			l.C.Tick(s.Now)
		}
	}
}

// each draws every walker that the client has.
func (v *viewer) each(f func(w *walker, drawn *walker)) {
	for a := range v.line.World.All {
		w := a.(*walker)
		v.class.At(w, &v.drawn)
		f(w, &v.drawn)
	}
}

// circle walks in a circle of 5 m at 5 m/s, and looks ahead.
func circle(i int, w *walker, now time.Duration) {
	a := now.Seconds() + float64(i)
	w.Pos = vec{5 * math.Cos(a), 5 * math.Sin(a)}
	w.Yaw = math.Mod(a*180/math.Pi+90, 360)
}
