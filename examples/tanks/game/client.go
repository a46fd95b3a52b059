package game

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Client is a player's end, played by a bot. All of it belongs to the goroutine that calls Tick.
type Client struct {
	Driver *driver.Driver
	// Heard is the lines of the chat.
	Heard []string
	// Shots is how often it fired, Aimed how often at a drone that it saw in the line.
	Shots, Aimed int
	// Denied is shells that the server never had.
	Denied int

	classes
	world  *actorrep.World
	own    *Tank
	board  *Board
	shells *predict.Spawns[time.Duration]
	now    time.Duration
	rng    *rand.Rand
	input  Input
	still  bool
	err    error
}

// Dial opens a client.
func Dial(addr string, cfg driver.Config, name string, seed uint64) (*Client, error) {
	c := &Client{rng: rand.New(rand.NewPCG(seed, 2))}
	c.world = actorrep.NewClient(actorrep.Config{Spawned: c.spawned, Failed: func(err error) { c.err = errors.Join(c.err, err) }})
	var err error
	if c.classes, err = register(c.world, predict.Config[*Tank, Input]{Input: func(*Tank) Input { return c.input }, Smoothing: prediction.SmootherConfig{Snap: 20}}); err != nil {
		return nil, err
	}
	c.shells = predict.NewSpawns(c.tanks, 0, func(predict.Key, time.Duration) { c.Denied++ })
	cfg.Channels, cfg.Client.URL = c.world.ChannelTypes(), name
	c.Driver, err = driver.Dial(addr, cfg)
	return c, err
}

func (c *Client) spawned(a actorrep.Actor) {
	switch a := a.(type) {
	case *Tank:
		if a.IsOwned() {
			c.own, a.client = a, c
		}
	case *Board:
		c.board, a.client = a, c
	case *Shell:
		c.shells.Take(a.Key)
	}
}

// Say says something to all.
func (c *Client) Say(line string) error { return say.Call(c.board, line) }

// Still has the bot let go of its keys.
func (c *Client) Still() { c.still = true }

// Tick is a frame of the client's.
func (c *Client) Tick(now time.Time) error {
	c.Driver.TickDispatch(now)
	c.now = c.Driver.Since(now)
	c.world.Step(c.now)
	c.past.Tick(c.now)
	c.input = Input{}
	if c.own != nil && !c.still {
		c.input = c.decide()
	}
	c.err = errors.Join(c.err, c.tanks.Tick(c.now))
	c.shells.Tick(c.now)
	c.Driver.TickFlush(now)
	return c.err
}

// decide is the bot: it turns to the nearest drone that it sees drawn, and fires when that is in the line.
func (c *Client) decide() Input {
	in := Input{Drive: 1, Seen: c.past.Seen()}
	target, best := Vec{Size / 2, Size / 2}, math.Inf(1)
	for p := range c.drones() {
		if d := p.Distance(c.own.Pos); d < best {
			target, best = p, d
		}
	}
	to := math.Atan2(target.Y-c.own.Pos.Y, target.X-c.own.Pos.X) * 180 / math.Pi
	off := math.Remainder(to-c.own.Heading, 360)
	switch {
	case off > 1.5:
		in.Turn = 1
	case off < -1.5:
		in.Turn = -1
	}
	if best < 40 {
		in.Drive = 0
	}
	in.Fire = c.own.Ammo > 0 && best < range_*0.9 && math.Abs(off) < 3
	return in
}

// drones is where drones are drawn.
func (c *Client) drones() func(yield func(at Vec) bool) {
	return func(yield func(at Vec) bool) {
		var drawn Drone
		for a := range c.world.All {
			if d, ok := a.(*Drone); ok {
				c.drawn.At(d, &drawn)
				if !yield(drawn.Pos) {
					return
				}
			}
		}
	}
}

// fire shows a shell in the tick of the key, and notes whether a drone is in its line as it is drawn.
func (c *Client) fire(t *Tank) {
	k, again := c.tanks.Key(t, 0)
	if again || t.Ammo == 0 {
		return
	}
	if k != 0 {
		c.err = errors.Join(c.err, c.shells.Add(k, c.now))
	}
	c.Shots++
	d := direction(t.Heading)
	for p := range c.drones() {
		x, y := p.X-t.Pos.X, p.Y-t.Pos.Y
		along, across := x*d.X+y*d.Y, math.Abs(x*d.Y-y*d.X)
		if along > 0 && along < range_ && across < droneSize*0.9 {
			c.Aimed++
			return
		}
	}
}

// Own is whether the player has a tank, and where it is felt to be.
func (c *Client) Own() (at Vec, ok bool) {
	if c.own == nil || !c.tanks.Predicting(c.own) {
		return Vec{}, false
	}
	return c.own.Pos, true
}

// Score is a player's on this client's board.
func (c *Client) Score(name string) int {
	if c.board != nil {
		for _, row := range c.board.Rows.All {
			if row.Name == name {
				return int(row.Score)
			}
		}
	}
	return -1
}

// View is what a client has to show, in words, for the verdict.
type View struct {
	Drones, Crates, OthersAmmo, Waiting   int
	Corrections, Inputs, LateDraws, Draws uint64
	Board                                 string
}

// View is what this client has.
func (c *Client) View() View {
	v := View{Waiting: c.shells.Len(), LateDraws: c.past.Counters.Late, Draws: c.past.Counters.Draws}
	n := c.tanks.Counters().Client
	v.Corrections, v.Inputs = n.Corrections, n.Moves
	for a := range c.world.All {
		switch a := a.(type) {
		case *Drone:
			v.Drones++
		case *Crate:
			v.Crates++
		case *Tank:
			if a != c.own {
				v.OthersAmmo += int(a.Ammo)
			}
		}
	}
	if c.board != nil {
		for _, row := range c.board.Rows.All {
			v.Board += fmt.Sprintf("%s %d, ", row.Name, row.Score)
		}
	}
	return v
}
