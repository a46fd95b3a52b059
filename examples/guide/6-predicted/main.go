// Step 6 of the guide: a game that feels good far away. Ann runs at once when a key is pressed, 200 ms before the
// server's answer is there, and the server has the last word, as when it pushes her (prediction). Bob sees Ann run evenly although packets come
// unevenly or not at all (interpolation).
//
//	go run ./examples/guide/6-predicted
package main

import (
	"cmp"
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

const (
	hz      = 60
	lag     = 100 * time.Millisecond // each way
	running = 5 * hz                 // frames in which Ann presses keys
)

// end is a program: the server's, Ann's or Bob's.
type end struct {
	net     *driver.Driver
	world   *actorrep.World
	runners *predict.Class[*Runner, Keys]
	in      *interp.Interpolator
	drawn   *interp.Class[*Runner]
	runner  *Runner // Ann's, as this end has it
	pushed  bool
}

func newEnd(w *actorrep.World, keys func(*Runner) Keys) (*end, error) {
	runners, err := predict.Register(w, "Runner", predict.Config[*Runner, Keys]{Input: keys})
	if err != nil {
		return nil, err
	}
	in, err := interp.New(w, interp.Config{})
	if err != nil {
		return nil, err
	}
	drawn, err := interp.Register(in, interp.ClassConfig[*Runner]{})
	return &end{world: w, runners: runners, in: in, drawn: drawn}, err
}

func listen() (*end, error) {
	s, err := newEnd(actorrep.NewServer(actorrep.Config{}), nil)
	if err != nil {
		return nil, err
	}
	s.net, err = driver.Listen("127.0.0.1:0", driver.Config{Channels: s.world.ChannelTypes(), Joined: func(c *driver.Conn) {
		peer := s.world.AddConn(c)
		if c.Login().URL != "Ann" {
			return
		}
		r := &Runner{}
		if err := s.world.Spawn(r); err != nil {
			log.Fatal(err)
		}
		if err := s.runners.Possess(r, peer, c.Now()); err != nil {
			log.Fatal(err)
		}
		s.runner = r
	}})
	return s, err
}

func dial(addr, name string, seed uint64, keys func(*Runner) Keys) (*end, error) {
	var c *end
	c, err := newEnd(actorrep.NewClient(actorrep.Config{Spawned: func(a actorrep.Actor) { c.runner = a.(*Runner) }}), keys)
	if err != nil {
		return nil, err
	}
	local, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err != nil {
		return nil, err
	}
	bad := netsim.Settings{Loss: 5, LagMin: lag - 10*time.Millisecond, LagMax: lag + 10*time.Millisecond}
	socket, err := proxy.Impair(local, bad, bad, seed)
	if err != nil {
		return nil, err
	}
	c.net, err = driver.Dial(addr, driver.Config{Channels: c.world.ChannelTypes(), Socket: socket, Client: control.ClientConfig{URL: name}})
	return c, err
}

// serve is a frame of the server's.
func (s *end) serve(now time.Time, frame int) error {
	s.net.TickDispatch(now) // moves are simulated here
	at := s.net.Since(now)
	if s.runner != nil && frame > 2*hz && !s.pushed { // what no client can know before: a gust of wind
		s.runner.X, s.pushed = s.runner.X-0.5, true
	}
	err := s.runners.Tick(at)
	s.world.Step(at)
	s.in.Tick(at)
	s.net.TickFlush(now)
	return err
}

// play is a frame of a client's; draw comes before what is sent.
func (c *end) play(now time.Time, draw func()) error {
	c.net.TickDispatch(now)
	at := c.net.Since(now)
	c.world.Step(at)          // corrections are applied here
	c.in.Tick(at)             // what time is drawn is decided here
	err := c.runners.Tick(at) // keys are felt here
	if c.runner != nil {
		draw()
	}
	c.net.TickFlush(now)
	return cmp.Or(err, c.net.Err())
}

func main() {
	if err := run(); err != nil {
		fmt.Println("FAIL:", err)
		os.Exit(1)
	}
}

func run() error {
	s, err := listen()
	if err != nil {
		return err
	}
	defer s.net.Close()
	g := game{}
	a, err := dial(s.net.LocalAddr().String(), "Ann", 1, g.keys)
	if err != nil {
		return err
	}
	defer a.net.Close()
	b, err := dial(s.net.LocalAddr().String(), "Bob", 3, nil)
	if err != nil {
		return err
	}
	defer b.net.Close()
	tick := time.NewTicker(time.Second / hz)
	defer tick.Stop()
	for range 60 * hz { // a minute at most; Ann stands after five seconds, and then all should come to agree
		now := <-tick.C
		if err := cmp.Or(s.serve(now, g.frame), a.play(now, func() { g.ann = a.runner.X }), b.play(now, func() { g.see(b) })); err != nil {
			return err
		}
		if g.frame > running && math.Abs(s.runner.X-g.ann) < 0.001 && math.Abs(s.runner.X-g.bob) < 0.006 {
			return g.verdict(s, a, b)
		}
	}
	return fmt.Errorf("not everybody has Ann in the same place: server %v, Ann %.3f, Bob %.3f", s.runner, g.ann, g.bob)
}
