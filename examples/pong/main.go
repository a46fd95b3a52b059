// Pong is a game of two over UDP: the host plays left, the guest right. Both are here in one process, and bots
// that follow the ball; the verdict is whether both have seen the same score.
//
//	go run ./examples/pong
package main

import (
	"cmp"
	"fmt"
	"log"
	"math"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Ball flies over a field 2 wide and 1 high.
type Ball struct {
	actorrep.Base
	X, Y   float64 `net:"q=0.001"`
	Points [2]int  `net:""`
	dx, dy float64
}

// Paddle is a player's, at the left or the right end.
type Paddle struct {
	actorrep.Base
	Side int     `net:"initial"`
	Y    float64 `net:"q=0.001"`
	aim  float64
}

const reach, toWin, hz = 0.08, 3, 60

// Aim is how a player moves a paddle: towards y.
var Aim = actorrep.ServerRPC(func(_ actorrep.Call, p *Paddle, y float64) error { p.aim = y; return nil }).
	Validated(func(_ actorrep.Call, _ *Paddle, y float64) bool { return y >= 0 && y <= 1 })

// game is one end's.
type game struct {
	net     *driver.Driver
	world   *actorrep.World
	ball    *Ball
	paddles [2]*Paddle
	err     error
}

func open(addr string, host bool) (g *game, err error) {
	g = &game{world: actorrep.NewClient(actorrep.Config{}), ball: &Ball{}}
	start, cfg := driver.Dial, driver.Config{MaxConns: 1, Closed: func(_ *driver.Conn, r netconn.CloseResult) { g.err = fmt.Errorf("%v", r) }}
	if host {
		g.world, start = actorrep.NewServer(actorrep.Config{}), driver.Listen
		cfg.Joined = func(c *driver.Conn) { g.err = g.enter(1, g.world.AddConn(c)) }
	}
	cfg.Channels = g.world.ChannelTypes()
	err = cmp.Or(g.world.Register("Ball", (*Ball)(nil)), g.world.Register("Paddle", (*Paddle)(nil), actorrep.RPCs{"Aim": Aim}))
	if err == nil && host {
		err = g.enter(0, g.world.Local())
	}
	if err == nil {
		g.net, err = start(addr, cfg)
	}
	return g, err
}

// enter gives a player a paddle; with the second one comes the ball.
func (g *game) enter(side int, owner *actorrep.Peer) error {
	p := &Paddle{Side: side, Y: 0.5, aim: 0.5}
	p.SetOwner(owner)
	if err := g.world.Spawn(p); side == 0 || err != nil {
		return err
	}
	return g.world.Spawn(&Ball{X: 1, Y: 0.5, dx: 2, dy: 1})
}

func (g *game) over() bool { return max(g.ball.Points[0], g.ball.Points[1]) == toWin }

func (g *game) frame(now time.Time) error { // of either end
	g.net.TickDispatch(now)
	for a := range g.world.All {
		switch a := a.(type) {
		case *Paddle:
			if g.paddles[a.Side] = a; a.IsOwned() { // the bot: it follows the ball
				_ = Aim.Call(a, max(0, min(1, g.ball.Y))) // unreliable: if it can't go now, the next frame's will
			}
			if g.net.IsServer() {
				a.Y += max(-0.5/hz, min(0.5/hz, a.aim-a.Y))
			}
		case *Ball:
			if g.ball = a; g.net.IsServer() && !g.over() {
				a.fly(g.paddles)
			}
		}
	}
	g.world.Step(g.net.Time(now))
	g.net.TickFlush(now)
	return g.err
}

func (b *Ball) fly(paddles [2]*Paddle) {
	b.X, b.Y = b.X+b.dx/hz, b.Y+b.dy/hz
	if b.Y < 0 && b.dy < 0 || b.Y > 1 && b.dy > 0 {
		b.dy = -b.dy
	}
	if b.X > 0 && b.X < 2 {
		return
	}
	side := min(1, int(max(0, b.X))) // where it has come
	if off := b.Y - paddles[side].Y; math.Abs(off) < reach {
		b.dx, b.dy = -1.15*b.dx, b.dy+6*off
		return
	}
	b.Points[1-side]++
	fmt.Println(b.Points[0], ":", b.Points[1])
	b.X, b.Y, b.dx, b.dy = 1, 0.5, math.Copysign(2, -b.dx), -1
}

func play() error {
	host, err := open("127.0.0.1:0", true)
	if err != nil {
		return err
	}
	defer host.net.Close()
	guest, err := open(host.net.LocalAddr().String(), false)
	if err != nil {
		return err
	}
	defer guest.net.Close()
	tick := time.Tick(time.Second / hz)
	for left := 60 * hz; left > 0 && !(host.over() && guest.over()); left-- {
		now := <-tick
		if err := cmp.Or(host.frame(now), guest.frame(now)); err != nil {
			return err
		}
	}
	if a, b := host.ball.Points, guest.ball.Points; a != b || !host.over() {
		return fmt.Errorf("the host has %v, the guest %v", a, b)
	}
	_, err = fmt.Println("PASS: both have seen the last point")
	return err
}

func main() {
	if len(os.Args) > 1 {
		log.Fatal("it has no flags and takes no arguments")
	}
	if err := play(); err != nil {
		log.Fatal("FAIL: ", err)
	}
}
