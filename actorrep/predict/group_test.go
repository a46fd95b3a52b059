package predict_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Disc is what skaters and balls are.
type Disc struct {
	Pos vec `net:"q=0.01,simulated" predict:"0.005,smooth"`
	Vel vec `net:"q=0.01,simulated" predict:"0.01"`
}

const (
	radius = 0.5
	rink   = 8.0
)

// slide moves a body on, within the rink.
func (b *Disc) slide(friction float64, dt time.Duration) {
	f := math.Max(0, 1-friction*dt.Seconds())
	b.Vel.X, b.Vel.Y = b.Vel.X*f, b.Vel.Y*f
	b.Pos.X, b.Pos.Y = b.Pos.X+b.Vel.X*dt.Seconds(), b.Pos.Y+b.Vel.Y*dt.Seconds()
	if math.Abs(b.Pos.X) > rink {
		b.Pos.X, b.Vel.X = math.Copysign(rink, b.Pos.X), -b.Vel.X
	}
	if math.Abs(b.Pos.Y) > rink {
		b.Pos.Y, b.Vel.Y = math.Copysign(rink, b.Pos.Y), -b.Vel.Y
	}
}

// bounce is an elastic push of two discs.
func bounce(a, b *Disc) {
	dx, dy := b.Pos.X-a.Pos.X, b.Pos.Y-a.Pos.Y
	d := math.Hypot(dx, dy)
	if d >= 2*radius || d == 0 {
		return
	}
	dx, dy = dx/d, dy/d
	over := (2*radius - d) / 2
	a.Pos.X, a.Pos.Y = a.Pos.X-dx*over, a.Pos.Y-dy*over
	b.Pos.X, b.Pos.Y = b.Pos.X+dx*over, b.Pos.Y+dy*over
	if v := (a.Vel.X-b.Vel.X)*dx + (a.Vel.Y-b.Vel.Y)*dy; v > 0 {
		a.Vel.X, a.Vel.Y = a.Vel.X-v*dx, a.Vel.Y-v*dy
		b.Vel.X, b.Vel.Y = b.Vel.X+v*dx, b.Vel.Y+v*dy
	}
}

type skater struct {
	actorrep.Base
	Disc
	Ticks uint32
}

type ball struct {
	actorrep.Base
	Disc
}

func (s *skater) disc() *Disc { return &s.Disc }
func (b *ball) disc() *Disc   { return &b.Disc }

const push = 12.0

func (s *skater) Simulate(in keys, dt time.Duration) {
	s.Vel.X += push * float64(in.X) * dt.Seconds()
	s.Vel.Y += push * float64(in.Y) * dt.Seconds()
	s.slide(2, dt)
	s.Ticks++
}

func (b *ball) Simulate(_ predict.NoInput, dt time.Duration) { b.slide(0.3, dt) }

// id is an actor's.
func id(a actorrep.Actor) netguid.GUID { return a.(interface{ GUID() netguid.GUID }).GUID() }

// collide is what happens between discs.
func collide(members []actorrep.Actor, _ time.Duration) {
	for i, a := range members {
		for _, b := range members[i+1:] {
			bounce(a.(interface{ disc() *Disc }).disc(), b.(interface{ disc() *Disc }).disc())
		}
	}
}

// end is one end's group and its classes.
type end struct {
	group   *predict.Group
	skaters *predict.Class[*skater, keys]
	balls   *predict.Class[*ball, predict.NoInput]
}

func (e *end) register(w *actorrep.World, g predict.GroupConfig, c predict.Config[*skater, keys]) (err error) {
	if e.group, err = predict.NewGroup(w, g); err != nil {
		return err
	}
	c.Group = e.group
	if e.skaters, err = predict.Register(w, "Skater", c); err != nil {
		return err
	}
	e.balls, err = predict.Register(w, "Ball", predict.Config[*ball, predict.NoInput]{Group: e.group})
	return err
}

// rinkStage is a server and clients with a group.
type rinkStage struct {
	*rig.Rig
	end
	ends   map[*actorrep.World]*end
	cfg    predict.GroupConfig // of clients
	inputs func(s *skater) keys
	force  func(last keys) keys // at all ends; the last one
	told   func(s *skater, c prediction.Correction)
	log    map[time.Duration]map[uint32]Disc // what the server had in each tick
}

func newRink(t testing.TB, seed uint64, set netsim.Settings, cfg predict.GroupConfig) *rinkStage {
	s := &rinkStage{ends: map[*actorrep.World]*end{}, log: map[time.Duration]map[uint32]Disc{}}
	s.cfg = cfg
	s.cfg.Touch = collide
	server := s.cfg
	server.Touch = func(members []actorrep.Actor, dt time.Duration) {
		collide(members, dt)
		at, again := s.group.Simulating()
		require.False(t, again)
		discs := map[uint32]Disc{}
		for _, a := range members {
			discs[uint32(id(a))] = *a.(interface{ disc() *Disc }).disc()
		}
		s.log[at] = discs
	}
	s.Rig = rig.New(t, seed, set, actorrep.Config{}, func(w *actorrep.World) error {
		return s.register(w, server, predict.Config[*skater, keys]{Input: s.input, ForceInput: s.forced})
	})
	return s
}

func (s *rinkStage) input(a *skater) (k keys) {
	if s.inputs != nil {
		k = s.inputs(a)
	}
	return k
}

func (s *rinkStage) forced(last keys) keys {
	if s.force != nil {
		return s.force(last)
	}
	return last
}

func (s *rinkStage) join() *rig.Line { return s.Join(s.registerClient) }

func (s *rinkStage) registerClient(w *actorrep.World) error {
	e := &end{}
	s.ends[w] = e
	return e.register(w, s.cfg, predict.Config[*skater, keys]{Input: s.input, ForceInput: s.forced, Corrected: func(a *skater, c prediction.Correction) {
		if s.told != nil {
			s.told(a, c)
		}
	}})
}

func (s *rinkStage) step() {
	require.NoError(s.T, s.group.Tick(s.Now))
	s.Step()
	for _, l := range s.Lines {
		require.NoError(s.T, s.ends[l.World].group.Tick(s.Now))
	}
}

func (s *rinkStage) until(what string, f func() bool) {
	s.T.Helper()
	s.Await(what, s.step, f)
}

// skate gives a player, or nobody, a skater.
func (s *rinkStage) skate(l *rig.Line, at vec) *skater {
	a := &skater{Disc: Disc{Pos: at}}
	require.NoError(s.T, s.Server.Spawn(a))
	if l == nil {
		require.NoError(s.T, s.skaters.Join(a))
	} else {
		require.NoError(s.T, s.skaters.Possess(a, l.Peer, s.Now))
	}
	return a
}

func (s *rinkStage) drop(at, vel vec) *ball {
	b := &ball{Disc: Disc{Pos: at, Vel: vel}}
	require.NoError(s.T, s.Server.Spawn(b))
	require.NoError(s.T, s.balls.Join(b))
	return b
}

// agree says what of the server's actors a client has elsewhere.
func (s *rinkStage) agree(l *rig.Line) string {
	for a := range s.Server.All {
		b := l.World.Find(id(a))
		if b == nil {
			return "it isn't there"
		}
		x, y := a.(interface{ disc() *Disc }).disc(), b.(interface{ disc() *Disc }).disc()
		if d := math.Hypot(x.Pos.X-y.Pos.X, x.Pos.Y-y.Pos.Y); d > 0.02 {
			return fmt.Sprintf("%T %v is %.3f off: %v and %v", a, id(a), d, *x, *y)
		}
	}
	return ""
}

func (s *rinkStage) untilAgreed() {
	s.T.Helper()
	s.UntilBy(s.step, s.agree)
}

// wander is a bot: it keeps a direction for half a second.
func wander(now func() time.Duration) func(a *skater) keys {
	return func(a *skater) keys {
		n := uint64(now()/(500*time.Millisecond))*7919 + uint64(a.GUID())*104729
		n ^= n >> 7
		return keys{X: int8(n%3) - 1, Y: int8(n/3%3) - 1}
	}
}

// TestGroupAgrees: after half a minute of collisions at 0 to 20 % loss all ends have all members in the same places, within their tolerances.
func TestGroupAgrees(t *testing.T) {
	for _, loss := range []float64{0, 5, 20} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			s := newRink(t, 7, netsim.Settings{Lag: 60 * time.Millisecond, LagVariance: 5 * time.Millisecond, Loss: loss}, predict.GroupConfig{})
			for i := range 4 {
				s.skate(s.join(), vec{float64(i)*2 - 3, 1})
			}
			s.drop(vec{0, -1}, vec{3, 1})
			s.drop(vec{2, -2}, vec{-3, 2})
			s.inputs = wander(func() time.Duration { return s.Now })
			for range 30 * 30 {
				s.step()
			}
			for _, l := range s.Lines {
				c := s.ends[l.World].group.Counters
				t.Logf("%+v", c)
				require.NotZero(t, c.Rewinds)
				require.Greater(t, c.Good, c.States/2, "most is as predicted")
				require.Zero(t, c.Strange)
				require.Equal(t, 6, s.ends[l.World].group.Len())
			}
			s.inputs = nil
			s.untilAgreed()
			for range 60 {
				s.step()
			}
			s.untilAgreed()
		})
	}
}
