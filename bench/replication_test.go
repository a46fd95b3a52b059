package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// mover is an object that moves and turns.
type mover struct {
	actorrep.Base
	Pos [3]float32 `net:"q=0.01"`
	Rot [3]float32 `net:"rot=16,notify=OnTurn"`
	Hue uint8      `net:"max=15"`

	turns int // told of, on a client
}

// OnTurn is told on clients.
func (m *mover) OnTurn() { m.turns++ }

// scene is a server's world with clients, all in memory; the network has a delay and nothing else.
type scene struct {
	server  *actorrep.World
	clients []*sceneClient
	now     time.Duration
	tick    time.Duration
	packets int
	bytes   int
	// serverTime is what the server took, by the CPU time of its thread.
	serverTime time.Duration
}

type sceneClient struct {
	world    *actorrep.World
	s, c     *netconn.Conn
	up, down *netsim.Link
	peer     *actorrep.Peer
}

func newScene(tb testing.TB, tick time.Duration, register func(w *actorrep.World) error) *scene {
	s := &scene{server: actorrep.NewServer(actorrep.Config{}), tick: tick}
	if err := register(s.server); err != nil {
		tb.Fatal(err)
	}
	return s
}

func (s *scene) join(tb testing.TB, delay time.Duration, controller congestion.Controller, register func(w *actorrep.World) error) *sceneClient {
	c := &sceneClient{world: actorrep.NewClient(actorrep.Config{Failed: func(err error) { tb.Error(err) }})}
	set := netsim.Settings{LagMin: delay, LagMax: delay}
	var err error
	if c.up, err = netsim.NewLink(set, 1); err == nil {
		c.down, err = netsim.NewLink(set, 2)
	}
	if err == nil {
		err = register(c.world)
	}
	cfg := netconn.Config{Server: true, NetSpeed: 1 << 24, Controller: controller, Channels: s.server.ChannelTypes(),
		LowLevelSend: func(p []byte) { s.packets++; s.bytes += len(p); c.down.Push(s.now, p) }}
	if err == nil {
		c.s, err = netconn.New(cfg, s.now, 1, 1)
	}
	if err == nil {
		c.c, err = netconn.New(netconn.Config{NetSpeed: 1 << 24, Channels: c.world.ChannelTypes(), LowLevelSend: func(p []byte) { c.up.Push(s.now, p) }}, s.now, 1, 1)
	}
	if err != nil {
		tb.Fatal(err)
	}
	c.peer = s.server.AddConn(c.s)
	s.clients = append(s.clients, c)
	return c
}

func (s *scene) step() {
	s.now += s.tick
	runtime.LockOSThread() // for cputime.Thread
	defer runtime.UnlockOSThread()
	began := cputime.Thread()
	for _, c := range s.clients {
		for p, ok := c.up.Pop(s.now); ok; p, ok = c.up.Pop(s.now) {
			_ = c.s.ReceivedPacket(s.now, p) // nothing is lost or damaged here
		}
		c.s.PostTickDispatch(s.now)
	}
	s.server.Step(s.now)
	for _, c := range s.clients {
		c.s.Tick(s.now)
	}
	s.serverTime += cputime.Thread() - began
	for _, c := range s.clients {
		for p, ok := c.down.Pop(s.now); ok; p, ok = c.down.Pop(s.now) {
			_ = c.c.ReceivedPacket(s.now, p)
		}
		c.c.PostTickDispatch(s.now)
		c.world.Step(s.now)
		c.c.Tick(s.now)
	}
}

func registerMovers(w *actorrep.World) error { return w.Register("mover", (*mover)(nil)) }

// fly is where an object of number i is: around in circles of its own, at about five metres a second.
func (m *mover) fly(i int, t float64) {
	r, w := 5+float64(i%20), 1/(1+float64(i%20)/5)
	a := w*t + float64(i)
	m.Pos = [3]float32{float32(float64(i%16)*20 + r*math.Cos(a)), float32(float64(i/16)*20 + r*math.Sin(a)), float32(2 * math.Sin(a/3))}
	m.Rot = [3]float32{float32(20 * math.Sin(a)), float32(a * 180 / math.Pi), float32(5 * math.Cos(a))}
}

const udpBytes = 28 // of IPv4 and UDP headers

// BenchmarkObjects is 250 objects that all move and turn, at 30 Hz, to one client: bits per object and update on the
// wire, UDP and IP headers and the server's acks included.
func BenchmarkObjects(b *testing.B) {
	for _, rtt := range []time.Duration{0, 100 * time.Millisecond, 250 * time.Millisecond} {
		b.Run(fmt.Sprintf("rtt=%v", rtt), func(b *testing.B) {
			const objects = 250
			s := newScene(b, time.Second/30, registerMovers)
			s.join(b, rtt/2, nil, registerMovers)
			var all []*mover
			for i := range objects {
				m := &mover{Hue: uint8(i % 16)}
				m.fly(i, 0)
				if err := s.server.Spawn(m); err != nil {
					b.Fatal(err)
				}
				all = append(all, m)
			}
			step := func() {
				for i, m := range all {
					m.fly(i, s.now.Seconds())
				}
				s.step()
			}
			for range 60 {
				step()
			}
			s.packets, s.bytes, s.serverTime = 0, 0, 0
			before := s.server.Counters.Updates
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				step()
			}
			updates := float64(s.server.Counters.Updates - before)
			b.ReportMetric(float64(s.bytes+s.packets*udpBytes)*8/updates, "bits/update")
			b.ReportMetric(float64(s.serverTime.Microseconds())/float64(b.N), "server-µs/tick")
			if updates < float64(objects*b.N)*0.99 {
				b.Errorf("%v updates in %d ticks", updates, b.N)
			}
		})
	}
}

// BenchmarkPlayers is players who all move and see each other: the server's time a tick, on one core, receiving and
// acks and packets included.
func BenchmarkPlayers(b *testing.B) {
	for _, n := range []int{25, 50, 100, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newScene(b, time.Second/30, registerMovers)
			var all []*mover
			for i := range n {
				c := s.join(b, 25*time.Millisecond, nil, registerMovers)
				m := &mover{}
				m.SetOwner(c.peer)
				if err := s.server.Spawn(m); err != nil {
					b.Fatal(err)
				}
				all = append(all, m)
				m.fly(i, 0)
			}
			step := func() {
				for i, m := range all {
					m.fly(i, s.now.Seconds())
				}
				s.step()
			}
			for range 90 {
				step()
			}
			s.serverTime, s.bytes = 0, 0
			b.ResetTimer()
			for range b.N {
				step()
			}
			b.ReportMetric(float64(s.serverTime.Microseconds())/float64(b.N)/1000, "server-ms/tick")
			b.ReportMetric(float64(s.serverTime.Nanoseconds())/float64(b.N)/float64(n*n), "ns/update")
			b.ReportMetric(float64(s.bytes)/float64(b.N)/float64(n)*30/1000, "kB/s/player")
		})
	}
}

// static is what stands around.
type static struct {
	actorrep.Base
	Pos  [3]float32 `net:"q=0.01"`
	Yaw  float32    `net:"rot=16"`
	Kind uint16     `net:"max=999"`
}

// BenchmarkJoin is a client that joins a world of 10,000 actors that don't change, over 1 Mbit/s and 50 ms.
func BenchmarkJoin(b *testing.B) {
	const actors, rate = 10_000, 125_000 // bytes a second
	register := func(w *actorrep.World) error { return w.Register("static", (*static)(nil), actorrep.Manual()) }
	for range b.N {
		s := newScene(b, time.Second/30, register)
		rng := rand.New(rand.NewPCG(1, 1))
		for range actors {
			a := &static{Pos: [3]float32{rng.Float32() * 1000, rng.Float32() * 1000, rng.Float32() * 10}, Yaw: rng.Float32() * 360, Kind: uint16(rng.IntN(1000))}
			if err := s.server.Spawn(a); err != nil {
				b.Fatal(err)
			}
		}
		for range 10 {
			s.step()
		}
		bucket := congestion.NewTokenBucket(rate)
		c := s.join(b, 25*time.Millisecond, bucket, register)
		began := s.now
		for c.world.Len() < actors {
			s.step()
			if s.now-began > time.Minute {
				b.Fatalf("%d actors after a minute", c.world.Len())
			}
		}
		b.ReportMetric((s.now - began).Seconds(), "s/join")
		b.ReportMetric(float64(s.bytes+s.packets*udpBytes)*8/actors, "bits/actor")
	}
}
