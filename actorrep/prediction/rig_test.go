package prediction_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

const (
	ms    = time.Millisecond
	frame = time.Second / 60
	tick  = time.Second / 30
)

// body is the state of the tests: something that runs, and stops when nobody pushes.
type body struct {
	X, Y, VX, VY float64
}

// push is its input: a direction, -1 to 1 each.
type push struct{ X, Y int8 }

func simulate(s *body, in push, dt time.Duration) {
	t := dt.Seconds()
	keep := math.Exp(-8 * t)
	s.VX = s.VX*keep + float64(in.X)*40*t
	s.VY = s.VY*keep + float64(in.Y)*40*t
	if math.Abs(s.VX) < 1e-3 {
		s.VX = 0
	}
	if math.Abs(s.VY) < 1e-3 {
		s.VY = 0
	}
	s.X = min(max(s.X+s.VX*t, -20), 20)
	s.Y = min(max(s.Y+s.VY*t, -20), 20)
}

func distance(a, b *body) float64 {
	return math.Hypot(math.Hypot(a.X-b.X, a.Y-b.Y), 0.1*math.Hypot(a.VX-b.VX, a.VY-b.VY))
}

func model() prediction.Model[body, push] {
	return prediction.Model[body, push]{
		Simulate: simulate,
		Distance: distance,
		WriteInput: func(w *bitio.Writer, in *push) {
			w.WriteInt(uint32(in.X+1), 3)
			w.WriteInt(uint32(in.Y+1), 3)
		},
		ReadInput: func(r *bitio.Reader, in *push) {
			in.X, in.Y = int8(r.ReadInt(3))-1, int8(r.ReadInt(3))-1
		},
		WriteState: func(w *bitio.Writer, s *body) {
			for _, v := range [...]float64{s.X, s.Y, s.VX, s.VY} {
				w.WriteFloat64(v)
			}
		},
		ReadState: func(r *bitio.Reader, s *body) {
			*s = body{r.ReadFloat64(), r.ReadFloat64(), r.ReadFloat64(), r.ReadFloat64()}
		},
	}
}

// rig is both ends and the network between them, in virtual time. The client's clock runs at
// its own speed.
type rig struct {
	t        testing.TB
	seed     uint64
	c        *prediction.Client[body, push]
	s        *prediction.Server[body, push]
	up, down *netsim.Link
	input    func(now time.Duration) push
	speed    float64
	frame    time.Duration
	now      time.Duration
	frames   int
	each     func() // after each tick of the server
	simTime  time.Duration
}

type setup struct {
	link   netsim.Settings
	client prediction.ClientConfig[body, push]
	server prediction.ServerConfig[body, push]
	speed  float64
	frame  time.Duration
}

func newRig(t testing.TB, seed uint64, s setup) *rig {
	r := &rig{t: t, seed: seed, speed: s.speed, frame: s.frame}
	if r.speed == 0 {
		r.speed = 1
	}
	if r.frame == 0 {
		r.frame = frame
	}
	s.client.Model, s.server.Model = model(), model()
	s.server.Model.Simulate = func(b *body, in push, dt time.Duration) {
		r.simTime += dt
		simulate(b, in, dt)
	}
	var err error
	r.c, err = prediction.NewClient(s.client, body{}, 0)
	require.NoError(t, err)
	r.s, err = prediction.NewServer(s.server, body{}, 0)
	require.NoError(t, err)
	r.up, err = netsim.NewLink(s.link, 2*seed)
	require.NoError(t, err)
	r.down, err = netsim.NewLink(s.link, 2*seed+1)
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(seed, 9))
	dir := push{}
	r.input = func(time.Duration) push {
		if rnd.IntN(20) == 0 {
			dir = push{int8(rnd.IntN(3) - 1), int8(rnd.IntN(3) - 1)}
		}
		return dir
	}
	return r
}

// run goes on until a time, in steps of a millisecond.
func (r *rig) run(until time.Duration) {
	var buf [512]byte
	for ; r.now < until; r.now += ms {
		for p, ok := r.up.Pop(r.now); ok; p, ok = r.up.Pop(r.now) {
			require.NoError(r.t, r.s.Receive(r.now, bitio.NewReader(p, 8*len(p))), "seed %d", r.seed)
		}
		for p, ok := r.down.Pop(r.now); ok; p, ok = r.down.Pop(r.now) {
			require.NoError(r.t, r.c.Receive(r.local(), bitio.NewReader(p, 8*len(p))), "seed %d", r.seed)
		}
		if r.now%tick.Truncate(ms) == 0 {
			r.s.Tick(r.now)
			w := bitio.NewWriter(buf[:])
			ok, err := r.s.Reply(r.now, w)
			require.NoError(r.t, err)
			if ok {
				r.down.Push(r.now, w.Bytes())
			}
			if r.each != nil {
				r.each()
			}
		}
		for r.local() >= time.Duration(r.frames)*r.frame {
			at := time.Duration(r.frames) * r.frame
			r.frames++
			r.c.Move(at, r.input(r.now))
			w := bitio.NewWriter(buf[:])
			ok, err := r.c.Send(at, w)
			require.NoError(r.t, err)
			if ok {
				r.up.Push(r.now, w.Bytes())
			}
		}
	}
}

func (r *rig) local() time.Duration { return time.Duration(float64(r.now) * r.speed) }

func (r *rig) stop() { r.input = func(time.Duration) push { return push{} } }
