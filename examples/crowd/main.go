// Crowd is 250 players who all see each other move, each with 64 kB/s down, at 20 Hz: how old is what
// they see, and does the server's work fit its ticks? Everything but the network is real; that is in memory, in virtual
// time, with delay and loss. It fails when
//
//   - more than one of 100 players in view is older than -limit,
//   - more than one of 100 ticks of the server doesn't fit: its work takes longer than the time to the next tick,
//   - a player gets more bytes than -bandwidth, and a tenth for what is sent again.
//
// The work of a tick is the CPU time of its two goroutines where they run one after the other, and of the longer one where
// they run at once. So what else runs on the machine doesn't count (but on systems other than Linux it does).
//
//	go run ./examples/crowd
//	go run ./examples/crowd -players 500                              # 28 ms of its 50 on two cores of an Intel Xeon
//	go run ./examples/crowd -players 200 -bandwidth 16000 -seconds 20
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// player is somebody in the square.
type player struct {
	actorrep.Base
	Pos  [3]float32 `net:"q=0.01,notify=OnPos"`
	Yaw  float32    `net:"rot=10"`
	Mood uint8      `net:"max=7"`

	seen uint32 // on a client: the server's Step of its newest place
}

// OnPos notes how new the place is.
func (p *player) OnPos() { p.seen = p.World().Frame() }

// Location is where the player stands, for priority by distance.
func (p *player) Location() (x, y, z float64) {
	return float64(p.Pos[0]), float64(p.Pos[1]), float64(p.Pos[2])
}

// walk is where player number i is at a time: around in the square, turning back at its edges.
func (p *player) walk(i int, t float64) {
	a := float64(i) * 2.39996
	speed := 1.5 + float64(i%5)/2
	p.Pos[0] = float32(bounce(float64(i%25)*4+speed*t*math.Cos(a), 100))
	p.Pos[1] = float32(bounce(float64(i/25)*5+speed*t*math.Sin(a), 100))
	p.Yaw = float32(math.Mod(a*180/math.Pi+20*math.Sin(t+a), 360))
	p.Mood = uint8(int(t/3) + i&7)
	p.Mood &= 7
}

func bounce(x, size float64) float64 {
	x = math.Mod(math.Abs(x), 2*size)
	return min(x, 2*size-x)
}

type options struct {
	players, bandwidth int
	hz                 int
	seconds            float64
	bad                netsim.Settings
	limit              time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.players, "players", 250, "players, all in view of each other")
	flag.IntVar(&o.bandwidth, "bandwidth", 64_000, "bytes a second to each of them")
	flag.IntVar(&o.hz, "hz", 20, "ticks a second")
	flag.Float64Var(&o.seconds, "seconds", 5, "how long they walk, in the game's time")
	delay := flag.Duration("delay", 30*time.Millisecond, "one-way delay")
	loss := flag.Float64("loss", 1, "datagrams lost, percent, each way")
	flag.DurationVar(&o.limit, "limit", 500*time.Millisecond, "fail when the age of what is seen is above this at the 99th percentile")
	flag.Parse()
	if flag.NArg() > 0 || o.players < 1 || o.bandwidth < 1 || o.hz < 1 || o.hz > 1000 || !(o.seconds > 0 && o.seconds <= 86400) {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	o.bad = netsim.Settings{LagMin: *delay, LagMax: *delay + *delay/2, Loss: *loss}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// crowd is the whole of it.
type crowd struct {
	o       options
	server  *actorrep.World
	players []*player
	clients []*client
	now     time.Duration
	took    []time.Duration // CPU time by the server's ticks, on the way from begin to end
	beside  time.Duration   // what a goroutine beside took longer than this one, in this tick
}

type client struct {
	world    *actorrep.World
	mirrors  []*player
	s, c     *netconn.Conn
	up, down *netsim.Link
	bytes    int
}

const cores = 2

// Workers is actorrep.Executor's.
func (c *crowd) Workers() int { return cores }

// Run runs a part of the server's Step on two cores: here, and on a goroutine beside. It is driver.Cores, but notes the
// CPU time.
func (c *crowd) Run(n int, f func(i, worker int)) {
	work := func(w int) time.Duration {
		began := cputime.Thread()
		for i := w; i < n; i += cores {
			f(i, w)
		}
		return cputime.Thread() - began
	}
	var wg sync.WaitGroup
	var beside time.Duration
	wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		beside = work(1)
	})
	here := work(0)
	wg.Wait()
	c.beside += max(0, beside-here)
}

func run(o options) error {
	runtime.LockOSThread() // for cputime.Thread
	c := &crowd{o: o}
	c.server = actorrep.NewServer(actorrep.Config{Parallel: c})
	if err := c.server.Register("player", (*player)(nil), actorrep.CullDistance(200)); err != nil {
		return err
	}
	fmt.Printf("%d players, %d Hz, %d kB/s each, %v to %v one way, %.0f %% lost\n", o.players, o.hz, o.bandwidth/1000, o.bad.LagMin, o.bad.LagMax, o.bad.Loss)
	for i := range o.players {
		if err := c.join(i); err != nil {
			return err
		}
	}
	began := c.now
	for !c.complete() {
		c.step()
		if c.now-began > time.Minute {
			return fmt.Errorf("after a minute not everybody sees everybody: %d", c.clients[0].world.Len())
		}
	}
	fmt.Printf("everybody sees everybody after %.1f s\n\n", (c.now - began).Seconds())
	return c.measure()
}

func (c *crowd) complete() bool {
	for _, cl := range c.clients {
		if cl.world.Len() < c.o.players {
			return false
		}
	}
	return true
}

func (c *crowd) measure() error {
	ticks := int(c.o.seconds * float64(c.o.hz))
	c.took = nil
	for _, cl := range c.clients {
		cl.bytes = 0
		for a := range cl.world.All {
			cl.mirrors = append(cl.mirrors, a.(*player))
		}
	}
	var ages []uint32
	before := c.server.Counters
	for i := range ticks {
		c.step()
		if i%5 == 4 { // a sample
			for _, cl := range c.clients[:min(50, len(c.clients))] {
				for _, m := range cl.mirrors {
					ages = append(ages, c.server.Frame()-m.seen)
				}
			}
		}
	}
	return c.report(ages, ticks, before)
}

func (c *crowd) report(ages []uint32, ticks int, before actorrep.Counters) error {
	slices.Sort(ages)
	age := func(part float64) time.Duration {
		n := ages[min(len(ages)-1, int(part*float64(len(ages))))]
		return time.Duration(n) * time.Second / time.Duration(c.o.hz)
	}
	down := make([]int, 0, len(c.clients))
	for _, cl := range c.clients {
		down = append(down, cl.bytes)
	}
	slices.Sort(down)
	rate := func(n int) float64 { return float64(n) / float64(ticks) * float64(c.o.hz) / 1000 }
	updates := c.server.Counters.Updates - before.Updates
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	slices.Sort(c.took)
	tick := func(part float64) time.Duration { return c.took[min(len(c.took)-1, int(part*float64(len(c.took))))] }
	fmt.Fprintln(w, "age of what is seen, p50\tp90\tp99\tmax\tkB/s p50\tmax\tbits/update\ttick's CPU ms, p50\tp99\tmax")
	fmt.Fprintf(w, "%v\t%v\t%v\t%v\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\n", age(.5), age(.9), age(.99), age(1), rate(down[len(down)/2]), rate(down[len(down)-1]),
		float64(c.server.Counters.UpdateBits-before.UpdateBits)/float64(updates), ms(tick(.5)), ms(tick(.99)), ms(tick(1)))
	w.Flush()
	fmt.Println()
	budget := time.Second / time.Duration(c.o.hz)
	fit, _ := slices.BinarySearch(c.took, budget+1)
	var wrong []error
	if over := ticks - fit; 100*over > ticks {
		wrong = append(wrong, fmt.Errorf("%d of %d ticks of the server take more CPU time than the %v to the next one, the longest %v: too many players for this machine", over, ticks, budget, tick(1).Round(time.Millisecond)))
	}
	if age(.99) > c.o.limit {
		wrong = append(wrong, fmt.Errorf("one in a hundred players in view is %v old or older, and %v is the limit", age(.99), c.o.limit))
	}
	if most := rate(down[len(down)-1]); most > 1.1*float64(c.o.bandwidth)/1000 {
		wrong = append(wrong, fmt.Errorf("a player gets %.1f kB/s, and %d is what he has", most, c.o.bandwidth/1000))
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	_, err := fmt.Printf("PASS: %.1f million updates; 99 of 100 players in view are at most %v old; %d of %d ticks fit %v\n", float64(updates)/1e6, age(.99), fit, ticks, budget)
	return err
}

func (c *crowd) join(i int) error {
	cl := &client{world: actorrep.NewClient(actorrep.Config{})}
	if err := cl.world.Register("player", (*player)(nil)); err != nil {
		return err
	}
	var err error
	if cl.up, err = netsim.NewLink(c.o.bad, uint64(2*i)); err != nil {
		return err
	}
	if cl.down, err = netsim.NewLink(c.o.bad, uint64(2*i+1)); err != nil {
		return err
	}
	cl.s, err = netconn.New(netconn.Config{Server: true, Channels: c.server.ChannelTypes(), Controller: congestion.NewTokenBucket(c.o.bandwidth),
		LowLevelSend: func(p []byte) { cl.bytes += len(p); cl.down.Push(c.now, p) }}, c.now, 1, 1)
	if err != nil {
		return err
	}
	cl.c, err = netconn.New(netconn.Config{Channels: cl.world.ChannelTypes(), LowLevelSend: func(p []byte) { cl.up.Push(c.now, p) }}, c.now, 1, 1)
	if err != nil {
		return err
	}
	p := &player{}
	p.walk(i, 0)
	peer := c.server.AddConn(cl.s)
	p.SetOwner(peer)
	peer.SetViewTarget(p)
	c.players, c.clients = append(c.players, p), append(c.clients, cl)
	return c.server.Spawn(p)
}

// step is one tick of everybody.
func (c *crowd) step() {
	c.now += time.Second / time.Duration(c.o.hz)
	for i, p := range c.players {
		p.walk(i, c.now.Seconds())
	}
	c.beside = 0
	began := cputime.Thread()
	for _, cl := range c.clients {
		for p, ok := cl.up.Pop(c.now); ok; p, ok = cl.up.Pop(c.now) {
			_ = cl.s.ReceivedPacket(c.now, p) // what it can't use it counts
		}
		cl.s.PostTickDispatch(c.now)
	}
	c.server.Step(c.now)
	for _, cl := range c.clients {
		cl.s.Tick(c.now)
	}
	c.took = append(c.took, cputime.Thread()-began+c.beside)
	for _, cl := range c.clients {
		for p, ok := cl.down.Pop(c.now); ok; p, ok = cl.down.Pop(c.now) {
			_ = cl.c.ReceivedPacket(c.now, p)
		}
		cl.c.PostTickDispatch(c.now)
		cl.world.Step(c.now)
		cl.c.Tick(c.now)
	}
}
