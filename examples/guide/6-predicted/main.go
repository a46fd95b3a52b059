// Step 6 of the guide: a game that feels good far away. Ann runs at once when a key is pressed, 200 ms before the server's answer is there, and the
// server has the last word, as when a gust of wind moves her (prediction). Bob sees her run evenly although packets come unevenly or not at all (interpolation).
//
//	go run ./examples/guide/6-predicted
package main

import (
	"fmt"
	"log"
	"math"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// Keys is what a player does in a tick.
type Keys struct{ Dir int8 }

// Runner runs along a line of forty metres.
type Runner struct {
	actorrep.Base
	X float64 `net:"q=0.01,simulated" predict:"0.001" interp:""`
}

// Simulate is what both ends know of running: the same keys make the same move.
func (r *Runner) Simulate(k Keys, dt time.Duration) {
	r.X = min(max(r.X+5*float64(k.Dir)*dt.Seconds(), -20), 20)
}

// end is a program: the server's, Ann's or Bob's.
type end struct {
	net     *driver.Driver
	world   *actorrep.World
	runners *predict.Class[*Runner, Keys]
	in      *interp.Interpolator
	drawn   *interp.Class[*Runner]
	runner  *Runner // Ann's, as this end has it
}

func newEnd(w *actorrep.World, keys func(*Runner) Keys) *end {
	e := &end{world: w, runners: must(predict.Register(w, "Runner", predict.Config[*Runner, Keys]{Input: keys})), in: must(interp.New(w, interp.Config{}))}
	e.drawn = must(interp.Register(e.in, interp.ClassConfig[*Runner]{}))
	return e
}

// frame is one of a server's or a client's, and where Ann is drawn.
func (e *end) frame(now time.Time) float64 {
	e.net.TickDispatch(now)
	at := e.net.Time(now)
	if e.net.IsServer() {
		must(0, e.runners.Tick(at)) // moves are simulated here
	}
	e.world.Step(at) // a client's corrections are applied here
	e.in.Tick(at)    // what time is drawn is decided here
	if !e.net.IsServer() {
		must(0, e.runners.Tick(at)) // keys are felt here
	}
	var seen Runner
	e.net.TickFlush(now)
	must(0, e.net.Err()) // why a client has no connection
	if e.runner != nil {
		e.drawn.At(e.runner, &seen)
	}
	return seen.X
}

func main() {
	if len(os.Args) > 1 {
		log.Fatalln("it has no flags and takes no arguments")
	}
	s := newEnd(actorrep.NewServer(actorrep.Config{}), nil)
	s.net = must(driver.Listen("127.0.0.1:0", driver.Config{Channels: s.world.ChannelTypes(), Joined: func(c *driver.Conn) {
		if peer := s.world.AddConn(c); c.Login().URL == "Ann" {
			s.runner = &Runner{}
			must(0, s.world.Spawn(s.runner))
			must(0, s.runners.Possess(s.runner, peer, c.Now()))
		}
	}}))
	ticks, keys, felt, was, wind, k := 0, 0, 0, 0.0, 0.5, Keys{}
	a, b := dial(s, "Ann", func(r *Runner) Keys {
		if k.Dir != 0 && r.X != was { // the tick before was felt when it was over
			felt++
		}
		k.Dir = []int8{1, 1, 0, -1, 1, 1, 1, 0, -1, 1, 0}[min(ticks/30, 10)] // five seconds this way and that, and then she stands
		ticks, keys, was = ticks+1, keys+int(k.Dir*k.Dir), r.X
		return k
	}), dial(s, "Bob", nil)
	for range 3600 { // a minute at most, until all agree
		now := time.Now()
		if s.frame(now); ticks > 120 {
			s.runner.X, wind = s.runner.X-wind, 0 // a gust that no client can know of before
		}
		ann, bob := a.frame(now), b.frame(now)
		n, corrections := b.in.Counters, a.runners.Counters().Client.Corrections // each of which may hide a key
		if ticks > 300 && math.Abs(s.runner.X-ann) < 0.001 && math.Abs(s.runner.X-bob) < 0.006 && felt+int(corrections) >= keys && corrections > 1 && n.Late*10 < n.Draws {
			fmt.Printf("Ann felt %d of %d keys in their tick, %d corrections; Bob waited in %d of %d frames for a place\n", felt, keys, corrections, n.Late, n.Draws)
			must(fmt.Printf("PASS: felt at once, seen evenly, and all agree: %.2f, %.2f, %.2f\n", s.runner.X, ann, bob))
			return
		}
		time.Sleep(time.Until(now.Add(time.Second / 60)))
	}
	log.Fatalf("FAIL: %d of %d keys felt, or Ann is in several places, or Bob waited: %+v", felt, keys, b.in.Counters)
}

func dial(server *end, name string, keys func(*Runner) Keys) (c *end) {
	c = newEnd(actorrep.NewClient(actorrep.Config{Spawned: func(a actorrep.Actor) { c.runner = a.(*Runner) }}), keys)
	bad := netsim.Settings{Loss: 5, LagMin: 90 * time.Millisecond, LagMax: 110 * time.Millisecond} // each way
	socket := must(proxy.Impair(must(udp.Listen("127.0.0.1:0", udp.Config{})), bad, bad, 1))
	c.net = must(driver.Dial(server.net.LocalAddr().String(), driver.Config{Channels: c.world.ChannelTypes(), Socket: socket, Client: control.ClientConfig{URL: name}}))
	return c
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatalln("FAIL:", err)
	}
	return v
}
