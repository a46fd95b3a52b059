package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/graph"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
)

// unit is an actor of a large world.
type unit struct {
	actorrep.Base
	X, Y   actorrep.Var[float32] `net:"q=0.01"`
	Health actorrep.Var[uint8]   `net:"max=100"`
	State  actorrep.Var[uint8]   `net:""`
}

// Location is where it is.
func (u *unit) Location() (x, y, z float64) { return float64(u.X.Get()), float64(u.Y.Get()), 0 }

// r1Sink is a client of which only the acks matter.
type r1Sink struct{}

func (r1Sink) ReceivedBunch(*channel.Channel, *bunch.In)    {}
func (r1Sink) ReceivedAck(*channel.Channel, int64)          {}
func (r1Sink) ReceivedNak(*channel.Channel, int64)          {}
func (r1Sink) Closed(*channel.Channel, channel.CloseReason) {}

// crowd is a server's world and connections to clients in the same process. Packets wait in memory between a server's Tick
// and its next TickDispatch, as they would in a socket.
type crowd struct {
	world    *actorrep.World
	server   []*netconn.Conn
	client   []*netconn.Conn
	down, up [][]byte
	peers    []*actorrep.Peer
	units    []*unit
	rng      *rand.Rand
	now      time.Duration
	side     float64
	steps    int
	sent     int // bytes
}

const (
	r1Conns, r1Actors, r1Relevant = 100, 50_000, 2_000
	r1Cull                        = 100
)

// newCrowd spreads actors so that each connection sees about relevant of them.
func newCrowd(b testing.TB, conns, actors, relevant int, relevantTimeout time.Duration) *crowd {
	g := &graph.Graph{}
	c := &crowd{rng: rand.New(rand.NewPCG(1, 2))}
	c.world = actorrep.NewServer(actorrep.Config{Driver: g.Drive, RelevantTimeout: relevantTimeout})
	if err := c.world.Register("unit", (*unit)(nil), actorrep.CullDistance(r1Cull)); err != nil {
		b.Fatal(err)
	}
	// Seen is what is within about 1.1 times the cull distance.
	area := math.Pi * 1.1 * 1.1 * r1Cull * r1Cull
	c.side = math.Sqrt(float64(actors) / float64(relevant) * area)
	for range actors {
		u := &unit{}
		u.X.Set(float32(c.rng.Float64() * c.side))
		u.Y.Set(float32(c.rng.Float64() * c.side))
		u.Health.Set(100)
		if err := c.world.Spawn(u); err != nil {
			b.Fatal(err)
		}
		c.units = append(c.units, u)
	}
	for i := range conns {
		c.connect(b, i)
	}
	c.place()
	for range 200 {
		c.serve()
		c.clients()
	}
	return c
}

func (c *crowd) connect(b testing.TB, i int) {
	c.down, c.up = append(c.down, nil), append(c.up, nil)
	s, err := netconn.New(netconn.Config{Server: true, NetSpeed: 1 << 24, Channels: c.world.ChannelTypes(), LowLevelSend: func(p []byte) {
		c.down[i] = append(append(c.down[i], byte(len(p)), byte(len(p)>>8)), p...)
		c.sent += len(p)
	}}, 0, 1, 1)
	if err != nil {
		b.Fatal(err)
	}
	accept := func(*channel.Channel) channel.Handler { return r1Sink{} }
	types := []channel.Type{{Name: bunch.Actor, ServerOpen: true, Accept: accept}, {Name: actorrep.ReplicationName, ServerOpen: true, Accept: accept}}
	k, err := netconn.New(netconn.Config{NetSpeed: 1 << 24, Channels: types, LowLevelSend: func(p []byte) {
		c.up[i] = append(append(c.up[i], byte(len(p)), byte(len(p)>>8)), p...)
	}}, 0, 1, 1)
	if err != nil {
		b.Fatal(err)
	}
	c.server, c.client = append(c.server, s), append(c.client, k)
	c.peers = append(c.peers, c.world.AddConn(s))
}

// place puts the viewpoints on circles within the world.
func (c *crowd) place() {
	for i, p := range c.peers {
		middle := c.side / 2
		r := (c.side/2 - 1.2*r1Cull) * (0.2 + 0.8*float64(i%10)/10)
		// They walk at 5 to 15 a second, at 30 Hz.
		speed := 5 + 10*float64(i)/float64(len(c.peers))
		a := 2*math.Pi*float64(i)/float64(len(c.peers)) + float64(c.steps)/30*speed/max(r, 1)
		p.SetViewpoint(middle+r*math.Cos(a), middle+r*math.Sin(a), 0)
	}
}

func deliver(conn *netconn.Conn, now time.Duration, queue *[]byte) {
	q := *queue
	for len(q) > 0 {
		n := int(q[0]) | int(q[1])<<8
		_ = conn.ReceivedPacket(now, q[2:2+n])
		q = q[2+n:]
	}
	*queue = (*queue)[:0]
	conn.PostTickDispatch(now)
}

// serve is a tick of the server: what came, the world's Step, what goes.
func (c *crowd) serve() {
	c.now += time.Second / 30
	for i, s := range c.server {
		deliver(s, c.now, &c.up[i])
	}
	c.world.Step(c.now)
	for _, s := range c.server {
		s.Tick(c.now)
	}
}

func (c *crowd) clients() {
	for i, k := range c.client {
		deliver(k, c.now, &c.down[i])
		k.Tick(c.now)
	}
}

// change sets values of n actors, as a game's Step would.
func (c *crowd) change(n int) {
	for range n {
		u := c.units[c.rng.IntN(len(c.units))]
		u.State.Set(u.State.Get() + 1)
		u.Health.Set((u.Health.Get() + 1) % 100)
	}
}

// run measures the server's ticks; what the game and the clients do isn't counted.
func (c *crowd) run(b *testing.B, game func()) {
	for range 100 {
		game()
		c.serve()
		c.clients()
	}
	relevant := 0
	for _, p := range c.peers {
		relevant += p.Len()
	}
	var before, after runtime.MemStats
	mallocs, bytes := uint64(0), c.sent
	times := make([]time.Duration, 0, b.N)
	updates, opened := c.world.Counters.Updates, c.world.Counters.Opened
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		game()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		start := time.Now()
		c.serve()
		times = append(times, time.Since(start))
		b.StopTimer()
		runtime.ReadMemStats(&after)
		mallocs += after.Mallocs - before.Mallocs
		c.clients()
		b.StartTimer()
	}
	b.StopTimer()
	n := float64(b.N)
	slices.Sort(times) // the middle one tells more than the mean on a machine that is busy with other things
	b.ReportMetric(float64(times[len(times)/2]), "p50-ns/tick")
	b.ReportMetric(float64(times[len(times)*99/100]), "p99-ns/tick")
	b.ReportMetric(float64(mallocs)/n, "serverallocs/tick")
	b.ReportMetric(float64(c.world.Counters.Updates-updates)/n, "updates/tick")
	b.ReportMetric(float64(c.world.Counters.Opened-opened)/n, "opens/tick")
	b.ReportMetric(float64(c.sent-bytes)/n, "B/tick")
	b.ReportMetric(float64(relevant)/float64(len(c.peers)), "relevant")
}

// BenchmarkR1Idle is a tick of a server with 100 connections and 50,000 actors, 2,000 relevant to each, of which
// nothing changes.
func BenchmarkR1Idle(b *testing.B) {
	newCrowd(b, r1Conns, r1Actors, r1Relevant, 0).run(b, func() {})
}

// BenchmarkR1Percent is the same with changes: of a hundredth of the actors a tick, and of more and fewer.
func BenchmarkR1Percent(b *testing.B) {
	c := newCrowd(b, r1Conns, r1Actors, r1Relevant, 0)
	for _, n := range []int{50, 500, 5000} {
		b.Run(fmt.Sprintf("%.1f%%", float64(n)*100/r1Actors), func(b *testing.B) { c.run(b, func() { c.change(n) }) })
	}
}

// BenchmarkR1Pauses is R1Percent with 500 changes while the collector runs all the time, which is far more than the server's
// garbage asks for: how long it stops the world. With next to nothing in the world it is the machine's own figure.
func BenchmarkR1Pauses(b *testing.B) {
	b.Run("R1", func(b *testing.B) { newCrowd(b, r1Conns, r1Actors, r1Relevant, 0).collected(b, 500) })
	b.Run("next to nothing", func(b *testing.B) { newCrowd(b, 1, 100, 50, 0).collected(b, 1) })
}

// collected is run with the collector at work throughout.
func (c *crowd) collected(b *testing.B, changes int) {
	stop, done := make(chan struct{}), make(chan struct{})
	before := pauses()
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	c.run(b, func() { c.change(changes) })
	close(stop)
	<-done
	p50, p99, worst, n := quantiles(before, pauses())
	b.ReportMetric(p50*1e6, "p50-us/pause")
	b.ReportMetric(p99*1e6, "p99-us/pause")
	b.ReportMetric(worst*1e6, "max-us/pause")
	b.ReportMetric(float64(n), "pauses")
}

// pauses is the runtime's histogram of the collector's pauses.
func pauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// quantiles is the upper bounds of what was added to a histogram.
func quantiles(before, after *metrics.Float64Histogram) (p50, p99, worst float64, n uint64) {
	for i := range after.Counts {
		n += after.Counts[i] - before.Counts[i]
	}
	seen := uint64(0)
	for i := range after.Counts {
		d := after.Counts[i] - before.Counts[i]
		if d == 0 {
			continue
		}
		bound := after.Buckets[i+1]
		if seen*2 < n {
			p50 = bound
		}
		if seen*100 < n*99 {
			p99 = bound
		}
		seen, worst = seen+d, bound
	}
	return p50, p99, worst, n
}

// BenchmarkR1Moving is the same with players that walk, so that actors come into their sight and leave it.
func BenchmarkR1Moving(b *testing.B) {
	c := newCrowd(b, r1Conns, r1Actors, r1Relevant, 0)
	c.run(b, func() {
		c.steps++
		c.place()
	})
}

// BenchmarkR1Growth is R1Percent with more of each: actors at the same density, connections, what each sees. With half of
// the actors or the connections, what goes out halves too.
func BenchmarkR1Growth(b *testing.B) {
	for _, s := range []struct{ conns, actors, relevant int }{{25, 50_000, 2000}, {50, 50_000, 2000}, {100, 12_500, 2000}, {100, 25_000, 2000}, {100, 50_000, 500}, {100, 100_000, 2000}} {
		b.Run(fmt.Sprintf("%dconns/%dactors/%drelevant", s.conns, s.actors, s.relevant), func(b *testing.B) {
			c := newCrowd(b, s.conns, s.actors, s.relevant, 0)
			b.Run("idle", func(b *testing.B) { c.run(b, func() {}) })
			b.Run("500 changes", func(b *testing.B) { c.run(b, func() { c.change(500) }) })
		})
	}
}

// BenchmarkR1Memory is what an actor costs, in the graph and its shadow included, and what a view: an actor as one
// connection knows it, its channel included, and the connection's own part.
func BenchmarkR1Memory(b *testing.B) {
	// load makes a world and returns the heap it takes without the clients' ends.
	load := func(conns int) (heap, views float64) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		c := newCrowd(b, conns, r1Actors, r1Relevant, 0)
		for _, p := range c.peers {
			views += float64(p.Len())
		}
		c.client, c.down, c.up = nil, make([][]byte, conns), make([][]byte, conns)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(c)
		return float64(after.HeapAlloc) - float64(before.HeapAlloc), views
	}
	for range b.N {
		few, fewViews := load(1)
		many, manyViews := load(21)
		view := (many - few) / (manyViews - fewViews)
		b.ReportMetric(view, "B/view")
		b.ReportMetric((few-view*fewViews)/r1Actors, "B/actor")
	}
}
