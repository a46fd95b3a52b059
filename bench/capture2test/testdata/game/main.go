// A game that can be captured: a counter that its clients press, over a lossy network in virtual time. It writes the
// server's run into a file.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/capture"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Counter is one client's.
type Counter struct {
	actorrep.Base
	N int `net:""`
}

var worth = 1

// Press is its owner's.
var Press = actorrep.ServerRPC(func(_ actorrep.Call, c *Counter, _ struct{}) error {
	c.N += worth
	return nil
}, actorrep.Reliable)

type end struct {
	d     *driver.Driver
	world *actorrep.World
	ticks int
}

func boot(o capture.Outside) (capture.Program, error) {
	e := &end{world: actorrep.NewServer(actorrep.Config{})}
	err := e.world.Register("Counter", (*Counter)(nil), actorrep.RPCs{"Press": Press})
	if err == nil {
		e.d, err = driver.Listen("", o.Config(driver.Config{Channels: e.world.ChannelTypes(), Link: driver.PlainSalted{}, Joined: e.joined}))
	}
	return e, err
}

func (e *end) joined(c *driver.Conn) {
	counter := &Counter{}
	counter.SetOwner(e.world.AddConn(c))
	if err := e.world.Spawn(counter); err != nil {
		c.CloseWithReason(err.Error())
	}
}

func (e *end) Tick(now time.Time) error {
	e.d.TickDispatch(now)
	if e.ticks++; !e.world.IsServer() && e.ticks%7 == 0 {
		for a := range e.world.All {
			if c := a.(*Counter); c.IsOwned() {
				_ = Press.Call(c, struct{}{})
			}
		}
	}
	e.world.Step(e.d.Time(now))
	e.d.TickFlush(now)
	return e.d.Err()
}

func (e *end) Call([]byte) error { return nil }

func (e *end) State(w io.Writer) {
	for a := range e.world.All {
		fmt.Fprintln(w, a.(*Counter).N)
	}
}

type game struct {
	file io.Writer
	rec  *capture.Recorder
}

func (g *game) Boot(h *simtest.Host) (simtest.Program, error) {
	if h.IsServer() {
		socket, err := h.Listen(7777)
		if err == nil {
			g.rec, err = capture.Record(g.file, capture.Outside{Socket: socket, Clock: h.Time, Rand: h.Secrets()}, capture.Config{}, boot)
		}
		return g.rec, err
	}
	e := &end{world: actorrep.NewClient(actorrep.Config{})}
	err := e.world.Register("Counter", (*Counter)(nil), actorrep.RPCs{"Press": Press})
	if err == nil {
		e.d, err = driver.Dial(fmt.Sprintf("%v:7777", h.Simulation().ServerOf(h).Addr()), driver.Config{Channels: e.world.ChannelTypes(),
			Link: driver.PlainSalted{}, Socket: h.Open(), Clock: h.Time, Rand: h.Secrets()})
	}
	return e, err
}

func (g *game) Calm()           {}
func (g *game) Pending() string { return "" }

func run(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	script, err := simtest.Parse("seed 3\nrun 5s\nclients 2\nnet lag=40ms loss=10")
	if err != nil {
		return err
	}
	g := &game{file: file}
	result := simtest.Play(script, func(*simtest.Simulation, *simtest.Script) (simtest.Game, error) { return g, nil })
	if !result.OK() {
		return fmt.Errorf("%s", result.String())
	}
	return g.rec.Close()
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
