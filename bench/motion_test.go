package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// rotation is a quaternion: x, y, z, w.
type rotation [4]float64

func (a rotation) times(b rotation) rotation {
	return rotation{
		a[3]*b[0] + a[0]*b[3] + a[1]*b[2] - a[2]*b[1],
		a[3]*b[1] - a[0]*b[2] + a[1]*b[3] + a[2]*b[0],
		a[3]*b[2] + a[0]*b[1] - a[1]*b[0] + a[2]*b[3],
		a[3]*b[3] - a[0]*b[0] - a[1]*b[1] - a[2]*b[2],
	}
}

// turned is a, turned by the length of v in radians about its direction.
func (a rotation) turned(v [3]float64) rotation {
	angle := math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2])
	if angle == 0 {
		return a
	}
	s := math.Sin(angle/2) / angle
	b := rotation{v[0] * s, v[1] * s, v[2] * s, math.Cos(angle / 2)}.times(a)
	n := math.Sqrt(b[0]*b[0] + b[1]*b[1] + b[2]*b[2] + b[3]*b[3])
	for i := range b {
		b[i] /= n
	}
	return b
}

// degrees is roll, pitch and yaw.
func (a rotation) degrees() [3]float32 {
	const deg = 180 / math.Pi
	x, y, z, w := a[0], a[1], a[2], a[3]
	return [3]float32{
		float32(math.Atan2(2*(w*x+y*z), 1-2*(x*x+y*y)) * deg),
		float32(math.Asin(max(-1, min(1, 2*(w*y-z*x)))) * deg),
		float32(math.Atan2(2*(w*z+x*y), 1-2*(y*y+z*z)) * deg),
	}
}

// motion is how the objects of a scene move, in a cube of 50 m from whose sides they bounce.
type motion struct {
	speed, spin float64 // at the beginning, m/s and radians/s: the standard deviation along each axis
	push, twist float64 // acceleration, m/s² and radians/s², likewise
	held        float64 // for how long an acceleration holds, seconds, on average
}

// body is an object that moves.
type body struct {
	at, speed, push  [3]float64
	turn             rotation
	spin, twist, way [3]float64
}

const cube = 50

func (m motion) body(rng *rand.Rand) *body {
	b := &body{turn: rotation{3: 1}}
	for i := range 3 {
		b.at[i], b.way[i] = rng.Float64()*cube, rng.Float64()*6
		b.speed[i], b.spin[i] = rng.NormFloat64()*m.speed, rng.NormFloat64()*m.spin
	}
	b.turn = b.turn.turned(b.way)
	return b
}

func (m motion) move(b *body, rng *rand.Rand, dt float64) {
	again := m.held > 0 && rng.Float64() < dt/m.held
	for i := range 3 {
		if again {
			b.push[i], b.twist[i] = rng.NormFloat64()*m.push, rng.NormFloat64()*m.twist
		}
		drag := 0.0
		if m.held > 0 {
			drag = 0.5 * dt
		}
		b.speed[i] += b.push[i]*dt - b.speed[i]*drag
		b.spin[i] += b.twist[i]*dt - b.spin[i]*drag
		b.at[i] += b.speed[i] * dt
		if b.at[i] < 0 && b.speed[i] < 0 || b.at[i] > cube && b.speed[i] > 0 {
			b.speed[i] = -b.speed[i]
		}
		b.way[i] = b.spin[i] * dt
	}
	b.turn = b.turn.turned(b.way)
}

// shower is an actor that shows a body.
type shower interface {
	actorrep.Actor
	show(b *body)
}

type eulerMover struct {
	actorrep.Base
	Pos [3]float32 `net:"q=0.001"`
	Rot [3]float32 `net:"rot=16"`
}

func (m *eulerMover) show(b *body) { m.Pos, m.Rot = place(b), b.turn.degrees() }

type quatMover struct {
	actorrep.Base
	Pos [3]float32 `net:"q=0.001"`
	Rot [4]float32 `net:"quat=15"`
}

func (m *quatMover) show(b *body) {
	m.Pos = place(b)
	for i, v := range b.turn {
		m.Rot[i] = float32(v)
	}
}

func place(b *body) (p [3]float32) {
	for i, v := range b.at {
		p[i] = float32(v)
	}
	return p
}

// motionScenes are measured by TestMotionBits. most is the bits of an update at a round trip of 50 and of 100 ms.
var motionScenes = []struct {
	name string
	motion
	make func() shower
	most [2]float64
}{
	{"straight, Euler", motion{speed: 5, spin: 1.25}, func() shower { return new(eulerMover) }, [2]float64{25.5, 34}},
	{"random, Euler", motion{speed: 3, spin: 1, push: 6, twist: 1.6, held: 1}, func() shower { return new(eulerMover) }, [2]float64{40.5, 52}},
	{"random each tick", motion{speed: 3, spin: 1, push: 6.5, twist: 3.5, held: 1e-9}, func() shower { return new(eulerMover) }, [2]float64{53.5, 61.5}},
	{"straight, quaternion", motion{speed: 5, spin: 1.25}, func() shower { return new(quatMover) }, [2]float64{20.5, 27.2}},
}

// TestMotionBits holds how many bits on the wire an update of a moving object takes, UDP and IP headers and acks' room included: 250
// objects at 30 Hz, to one client. With -v it prints a table of where they go.
func TestMotionBits(t *testing.T) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "scene\tRTT\tbits/update\theads\tPos\tRot\tpackets\t")
	for _, sc := range motionScenes {
		for i, rtt := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond} {
			b := measureMotion(t, sc.motion, sc.make, rtt)
			fmt.Fprintf(w, "%s\t%v\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", sc.name, rtt, b.total, b.heads, b.fields[0], b.fields[1], b.total-b.heads-b.fields[0]-b.fields[1])
			if b.total > sc.most[i] {
				t.Errorf("%s at %v: %.2f bits an update, more than %v", sc.name, rtt, b.total, sc.most[i])
			}
		}
	}
	w.Flush()
	t.Log("\n" + table.String())
}

// motionBits is the bits of an update, and what of them is heads of records and values.
type motionBits struct {
	total, heads float64
	fields       [2]float64
}

const motionObjects = 250

// newMotion is a scene with that many objects and one client, that have moved for some seconds. run has them move for so many ticks.
func newMotion(tb testing.TB, m motion, make func() shower, rtt time.Duration) (s *scene, peer *actorrep.Peer, run func(ticks int)) {
	register := func(w *actorrep.World) error { return w.Register("mover", make()) }
	s = newScene(tb, time.Second/30, register)
	peer = s.join(tb, rtt/2, nil, register).peer
	rng := rand.New(rand.NewPCG(1, 2))
	bodies, actors := [motionObjects]*body{}, [motionObjects]shower{}
	for i := range motionObjects {
		bodies[i], actors[i] = m.body(rng), make()
		actors[i].show(bodies[i])
		if err := s.server.Spawn(actors[i]); err != nil {
			tb.Fatal(err)
		}
	}
	run = func(n int) {
		for range n {
			for i, a := range actors {
				m.move(bodies[i], rng, s.tick.Seconds())
				a.show(bodies[i])
			}
			s.step()
		}
	}
	run(90)
	s.packets, s.bytes, s.serverTime = 0, 0, 0
	return s, peer, run
}

// BenchmarkMotion is the server's CPU time for an update of the scenes of TestMotionBits, receiving and acks and packets included.
func BenchmarkMotion(b *testing.B) {
	for _, sc := range motionScenes {
		for _, rtt := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond} {
			b.Run(fmt.Sprintf("%s/rtt=%v", sc.name, rtt), func(b *testing.B) {
				s, _, run := newMotion(b, sc.motion, sc.make, rtt)
				b.ReportAllocs()
				b.ResetTimer()
				run(b.N)
				n := float64(b.N * motionObjects)
				b.ReportMetric(float64(s.serverTime.Nanoseconds())/n, "server-ns/update")
				b.ReportMetric(float64(s.bytes+s.packets*udpBytes)*8/n, "bits/update")
			})
		}
	}
}

func measureMotion(t *testing.T, m motion, make func() shower, rtt time.Duration) (b motionBits) {
	const ticks = 300
	s, peer, run := newMotion(t, m, make, rtt)
	updates, before := s.server.Counters.Updates, peer.Attribution(0)
	run(ticks)
	n := float64(s.server.Counters.Updates - updates)
	if n != motionObjects*ticks {
		t.Fatalf("%v updates of %d objects in %d ticks", n, motionObjects, ticks)
	}
	b.total = float64(s.bytes+s.packets*udpBytes) * 8 / n
	for i, c := range peer.Attribution(0) {
		bits := float64(c.Bits-before[i].Bits) / n
		switch c.Name {
		case "Pos":
			b.fields[0] += bits
		case "Rot":
			b.fields[1] += bits
		case "record heads":
			b.heads += bits
		}
	}
	return b
}
