package game

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/actorrep/spectate"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Client is a player's end. All of it belongs to the goroutine that calls Tick.
type Client struct {
	Driver *driver.Driver
	// Event is told what the player's game sees happen. May be nil.
	Event func(what string)
	// Heard is the lines of the chat.
	Heard []string
	// Shots is how often it fired, Aimed how often at a drone that it saw in the line.
	Shots, Aimed int
	// Denied is shells that the server never had.
	Denied int

	classes
	world     *actorrep.World
	own       *Tank
	board     *Board
	shells    *predict.Spawns[*Shell]
	now       time.Duration
	play      Player
	spectator *spectate.Spectator // instead of a player's connection
	replay    *replay.Replay      // instead of a server
	began     time.Time           // of the replay
	still     bool
	follows   bool // a seat knows what to do when the connection ends
	err       error
}

// Player says what a player does in a tick, from what the client shows.
type Player func(c *Client) Input

// Dial opens a client.
func Dial(addr string, cfg driver.Config, name string, play Player) (*Client, error) {
	c, err := newClient(play)
	if err != nil {
		return nil, err
	}
	cfg.Channels, cfg.Client.URL = append(c.world.ChannelTypes(), cfg.Channels...), name
	cfg.Closed = func(_ *driver.Conn, r netconn.CloseResult) {
		if c.err == nil && !c.follows {
			c.err = fmt.Errorf("the connection has ended: %s", printable(r.String()))
		}
	}
	c.Driver, err = driver.Dial(addr, cfg)
	return c, err
}

// Watch opens a match that Server.Record wrote. Whose it was has no tank in it.
func Watch(in io.ReaderAt, size int64) (*Client, error) {
	c, err := newClient(nil)
	if err != nil {
		return nil, err
	}
	if c.replay, err = replay.Open(in, size); err != nil {
		return nil, err
	}
	return c, c.replay.Play(c.world)
}

// Spectate opens a client that sees the game as a spectator, without a tank.
func Spectate(addr string, cfg driver.Config) (*Client, error) {
	c, err := newClient(nil)
	if err != nil {
		return nil, err
	}
	if c.spectator, err = spectate.NewSpectator(c.world, 0); err != nil {
		return nil, err
	}
	cfg.Channels, cfg.Client.URL = append(c.world.ChannelTypes(), c.spectator.Channel()), spectatorName
	cfg.Joined = func(conn *driver.Conn) { c.err = errors.Join(c.err, c.spectator.Open(conn)) }
	cfg.Closed = func(_ *driver.Conn, r netconn.CloseResult) {
		c.err = errors.Join(c.err, fmt.Errorf("the connection has ended: %s", printable(r.String())))
	}
	c.Driver, err = driver.Dial(addr, cfg)
	return c, err
}

func newClient(play Player) (*Client, error) {
	c := &Client{play: play}
	c.world = actorrep.NewClient(actorrep.Config{Spawned: c.spawned, Failed: func(err error) { c.err = errors.Join(c.err, err) }})
	var err error
	if c.classes, err = register(c.world, predict.Config[*Tank, Input]{Input: func(*Tank) Input { return c.sample() }, Smoothing: prediction.SmootherConfig{Snap: 20}}); err != nil {
		return nil, err
	}
	c.shells = predict.NewSpawns(c.tanks, 0, func(predict.Key, *Shell) { c.Denied++ })
	return c, nil
}

// sample is what the player does in a tick.
func (c *Client) sample() Input {
	if c.still {
		return Input{}
	}
	in := c.play(c)
	in.Seen = c.past.Seen()
	return in
}

func (c *Client) spawned(a actorrep.Actor) {
	switch a := a.(type) {
	case *Tank:
		c.event("%s is here", a.Name)
		if a.IsOwned() {
			c.own, a.client = a, c
		}
	case *Board:
		c.board, a.client = a, c
		for _, r := range a.Rows.All {
			c.event("%s has %d", r.Name, r.Score)
		}
		a.Rows.OnAdd = func(_ fastarray.ID, r Row) { c.event("%s has %d", r.Name, r.Score) }
		a.Rows.OnChange = func(_ fastarray.ID, _, r Row) { c.event("%s has %d", r.Name, r.Score) }
	case *Crate:
		a.client = c
	case *Shell:
		a.born = c.now
		if shown, ok := c.shells.Take(a.Key); ok {
			a.born = shown.born
		}
	}
}

func (c *Client) event(format string, args ...any) {
	if c.Event != nil {
		c.Event(printable(fmt.Sprintf(format, args...)))
	}
}

// printable is text without what a terminal obeys, since names may come from anybody.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return '?'
	}, s)
}

// Say says something to all.
func (c *Client) Say(line string) error { return say.Call(c.board, line) }

// Still has the player let go of the keys.
func (c *Client) Still() { c.still = true }

// Tick is a frame of the client's.
func (c *Client) Tick(now time.Time) error {
	if c.replay != nil {
		return c.tickReplay(now)
	}
	if c.spectator != nil {
		return c.tickSpectator(now)
	}
	c.Driver.TickDispatch(now)
	err := c.Frame(now)
	c.Driver.TickFlush(now)
	return err
}

// Frame is what a frame of a player's does between the driver's TickDispatch and TickFlush, when something else ticks the driver.
func (c *Client) Frame(now time.Time) error {
	c.now = c.Driver.Time(now)
	c.world.Step(c.now)
	c.past.Tick(c.now)
	c.err = errors.Join(c.err, c.tanks.Tick(c.now))
	c.shells.Tick(c.now)
	return c.err
}

// tickReplay is a frame of a recorded match.
func (c *Client) tickReplay(now time.Time) error {
	if c.began.IsZero() {
		c.began = now
	}
	err := c.replay.Step(now.Sub(c.began))
	c.now = c.replay.Position()
	c.past.Tick(c.now)
	return errors.Join(c.err, err)
}

// tickSpectator is a frame of a spectator's.
func (c *Client) tickSpectator(now time.Time) error {
	c.Driver.TickDispatch(now)
	err := c.spectator.Step(c.Driver.Time(now))
	c.now = c.spectator.Position()
	c.past.Tick(c.now)
	c.Driver.TickFlush(now)
	return errors.Join(c.err, err)
}

// Shown is the time of the match that a spectator sees; 0 before there is something.
func (c *Client) Shown() time.Duration { return c.now }

// Done reports whether a recorded match is over.
func (c *Client) Done() bool { return c.replay != nil && c.replay.Done() }

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
		c.err = errors.Join(c.err, c.shells.Add(k, &Shell{From: t.Pos, Vel: direction(t.Heading).Times(range_), born: c.now}))
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

// Corrections is how often the server corrected the player's tank.
func (c *Client) Corrections() uint64 { return c.tanks.Counters().Client.Corrections }

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
