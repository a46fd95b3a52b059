package main

import (
	"fmt"
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Vec is a place in the arena.
type Vec struct{ X, Y float64 }

// Runner is a client's figure: it runs for the nearest coin.
type Runner struct {
	actorrep.Base
	Name  string   `net:"initial"`
	Pos   Vec      `net:"q=0.01"`
	Score uint32   `net:""`
	Hand  [4]uint8 `net:"owner"` // cards that only its own player may see
}

// Coin is something to run for.
type Coin struct {
	actorrep.Base
	Pos   Vec    `net:"q=0.01"`
	Value uint16 `net:"max=100"`
}

// arena is the game of a run: the simtest.Game.
type arena struct {
	w     *simtest.Simulation
	dials int
	calm  bool
}

func newArena(w *simtest.Simulation) *arena { return &arena{w: w} }

// Boot starts a server or a client.
func (g *arena) Boot(h *simtest.Host) (simtest.Program, error) {
	if h.IsServer() {
		return g.serve(h)
	}
	c := &client{g: g, h: h}
	return c, c.dial()
}

// Calm stops the game, so that clients can catch up with it.
func (g *arena) Calm() { g.calm = true }

// Pending compares every client with the server.
func (g *arena) Pending() string {
	for _, h := range g.w.Hosts() {
		if h.IsServer() {
			continue
		}
		c, ok := h.Program().(*client)
		s, up := g.w.ServerOf(h).Program().(*server)
		if !ok || !up || c.d.Server() == nil || !c.d.Server().Joined() || s.runners[h.Name()] == nil {
			return h.Name() + " isn't in the game"
		}
		if what := c.differs(s); what != "" {
			return h.Name() + ": " + what
		}
	}
	return ""
}

func register(w *actorrep.World) error {
	if err := w.Register("Runner", (*Runner)(nil)); err != nil {
		return err
	}
	return w.Register("Coin", (*Coin)(nil))
}

// server is the arena's rules.
type server struct {
	g       *arena
	h       *simtest.Host
	d       *driver.Driver
	world   *actorrep.World
	runners map[string]*seat // looked up only
	order   []*seat
	coins   []*Coin
}

type seat struct {
	conn   *driver.Conn
	peer   *actorrep.Peer
	runner *Runner
}

func (g *arena) serve(h *simtest.Host) (*server, error) {
	s := &server{g: g, h: h, world: actorrep.NewServer(actorrep.Config{}), runners: map[string]*seat{}}
	if err := register(s.world); err != nil {
		return nil, err
	}
	socket, err := h.Listen(7777)
	if err != nil {
		return nil, err
	}
	s.d, err = driver.Listen("", driver.Config{
		Channels: s.world.ChannelTypes(), Link: driver.PlainSalted{}, Checksum: true, Timeout: 4 * time.Second,
		Socket: socket, Clock: h.Time, Rand: h.Secrets(), Joined: s.joined, Closed: s.closed,
	})
	return s, err
}

func (s *server) place() Vec { return Vec{s.h.Rand().Float64() * 100, s.h.Rand().Float64() * 100} }

func (s *server) joined(c *driver.Conn) {
	name := c.Login().URL
	r := &Runner{Name: name, Pos: s.place()}
	for i := range r.Hand {
		r.Hand[i] = uint8(1 + s.h.Rand().IntN(52))
	}
	one := &seat{conn: c, peer: s.world.AddConn(c), runner: r}
	r.SetOwner(one.peer)
	if err := s.world.Spawn(r); err != nil {
		s.g.w.Failf("spawn", "%v", err)
		return
	}
	s.runners[name] = one
	s.order = append(s.order, one)
}

func (s *server) closed(c *driver.Conn, _ netconn.CloseResult) {
	for i, one := range s.order {
		if one.conn != c {
			continue
		}
		s.order = append(s.order[:i], s.order[i+1:]...)
		if s.runners[one.runner.Name] == one {
			delete(s.runners, one.runner.Name)
		}
		s.world.RemoveConn(one.peer)
		_ = s.world.Destroy(one.runner) // a server's world
		return
	}
}

// Tick is a frame of the server.
func (s *server) Tick(now time.Time) error {
	s.d.TickDispatch(now)
	if !s.g.calm {
		if err := s.step(); err != nil {
			return err
		}
	}
	s.world.Step(s.d.Time(now))
	s.d.TickFlush(now)
	return s.d.Err()
}

// step lets everybody run for the nearest coin.
func (s *server) step() error {
	for len(s.coins) < 10 {
		c := &Coin{Pos: s.place(), Value: uint16(1 + s.h.Rand().IntN(100))}
		if err := s.world.Spawn(c); err != nil {
			return err
		}
		s.coins = append(s.coins, c)
	}
	for _, one := range s.order {
		r := one.runner
		best, dist := -1, math.Inf(1)
		for i, c := range s.coins {
			if d := math.Hypot(c.Pos.X-r.Pos.X, c.Pos.Y-r.Pos.Y); d < dist {
				best, dist = i, d
			}
		}
		if best < 0 {
			return nil
		}
		c := s.coins[best]
		if dist > 1 {
			r.Pos.X += (c.Pos.X - r.Pos.X) / dist
			r.Pos.Y += (c.Pos.Y - r.Pos.Y) / dist
			continue
		}
		r.Score += uint32(c.Value)
		r.Hand[s.h.Rand().IntN(4)] = uint8(1 + s.h.Rand().IntN(52))
		s.coins = append(s.coins[:best], s.coins[best+1:]...)
		if err := s.world.Destroy(c); err != nil {
			return err
		}
	}
	return nil
}

// client watches, and dials again when its connection ends.
type client struct {
	g     *arena
	h     *simtest.Host
	d     *driver.Driver
	world *actorrep.World
	gone  bool
	again time.Duration
}

func (c *client) dial() (err error) {
	c.g.dials++
	c.gone, c.again = false, 0
	c.world = actorrep.NewClient(actorrep.Config{Failed: func(err error) { c.g.w.Failf("actors", "%s: %v", c.h.Name(), err) }})
	if err := register(c.world); err != nil {
		return err
	}
	c.d, err = driver.Dial(fmt.Sprintf("%v:7777", c.g.w.ServerOf(c.h).Addr()), driver.Config{
		Channels: c.world.ChannelTypes(), Link: driver.PlainSalted{}, Checksum: true, Timeout: 4 * time.Second,
		Client: control.ClientConfig{URL: c.h.Name()}, Socket: c.h.Open(), Clock: c.h.Time, Rand: c.h.Secrets(),
		Closed: func(*driver.Conn, netconn.CloseResult) { c.gone = true },
	})
	return err
}

// Tick is a frame of a client.
func (c *client) Tick(now time.Time) error {
	switch {
	case c.again > 0 && c.g.w.Now() < c.again:
		return nil
	case c.again > 0:
		return c.dial()
	}
	c.d.TickDispatch(now)
	c.world.Step(c.d.Time(now))
	c.d.TickFlush(now)
	if c.gone || c.d.Err() != nil {
		_ = c.d.Close() // only the socket of a simulation
		c.again = c.g.w.Now() + 200*time.Millisecond
	}
	for a := range c.world.All {
		if r, ok := a.(*Runner); ok && r.Name != c.h.Name() && r.Hand != [4]uint8{} {
			c.g.w.Failf("leak", "%s sees the cards of %s", c.h.Name(), r.Name)
		}
	}
	return nil
}

// differs is the first thing a client sees that isn't so.
func (c *client) differs(s *server) string {
	if c.world.Len() != s.world.Len() {
		return fmt.Sprintf("%d actors of %d", c.world.Len(), s.world.Len())
	}
	near := func(a, b Vec) bool { return math.Abs(a.X-b.X) < 0.006 && math.Abs(a.Y-b.Y) < 0.006 }
	for a := range s.world.All {
		switch want := a.(type) {
		case *Coin:
			if got, ok := c.world.Find(want.GUID()).(*Coin); !ok || !near(got.Pos, want.Pos) || got.Value != want.Value {
				return fmt.Sprintf("coin %v is wrong", want.GUID())
			}
		case *Runner:
			got, ok := c.world.Find(want.GUID()).(*Runner)
			if !ok || got.Name != want.Name || got.Score != want.Score || !near(got.Pos, want.Pos) || want.Owner() == s.runners[c.h.Name()].peer && got.Hand != want.Hand {
				return fmt.Sprintf("runner %q is wrong", want.Name)
			}
		}
	}
	return ""
}
