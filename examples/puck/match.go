package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

const (
	players    = 6
	serverAddr = "10.0.0.1:7777"
)

// end is what both ends have of a match.
type end struct {
	world   *actorrep.World
	group   *predict.Group // nil when each player's client predicts him alone
	players *predict.Class[*Player, Keys]
	balls   *predict.Class[*Ball, predict.NoInput] // with a group
	err     error
}

// register registers the classes; touch is what happens between members at this end.
func (e *end) register(together bool, input func(p *Player) Keys, touch func([]actorrep.Actor, time.Duration)) (err error) {
	cfg := predict.Config[*Player, Keys]{Input: input}
	if together {
		if e.group, err = predict.NewGroup(e.world, predict.GroupConfig{Touch: touch}); err != nil {
			return err
		}
		cfg.Group = e.group
		if e.balls, err = predict.Register(e.world, "Ball", predict.Config[*Ball, predict.NoInput]{Group: e.group}); err != nil {
			return err
		}
	} else if err = e.world.Register("Ball", (*Ball)(nil)); err != nil {
		return err
	}
	e.players, err = predict.Register(e.world, "Player", cfg)
	return err
}

// seen is where a player and the ball were for a tick of the player's.
type seen struct{ own, ball Vec }

// server is the match itself.
type server struct {
	end
	driver *driver.Driver
	ball   *Ball
	list   []*Player
	now    time.Duration
	log    [players]map[uint32]seen // by the player's ticks
}

func (m *match) serve(h *simtest.Host) (*server, error) {
	s := &server{end: end{world: actorrep.NewServer(actorrep.Config{})}, ball: &Ball{}}
	for i := range s.log {
		s.log[i] = map[uint32]seen{}
	}
	if err := s.register(m.together, nil, func(members []actorrep.Actor, dt time.Duration) { collide(members, dt); s.note() }); err != nil {
		return nil, err
	}
	s.err = s.world.Spawn(s.ball)
	if s.group != nil {
		s.err = errors.Join(s.err, s.balls.Join(s.ball))
	}
	socket, err := h.Listen(7777)
	if err != nil {
		return nil, err
	}
	s.driver, err = driver.Listen(serverAddr, driver.Config{Socket: socket, Clock: h.Time, Rand: h.Secrets(), Link: driver.PlainSalted{},
		Channels: s.world.ChannelTypes(), Joined: s.joined})
	return s, err
}

// joined gives a new connection a player.
func (s *server) joined(c *driver.Conn) {
	n := len(s.list)
	if n == players {
		return
	}
	peer := s.world.AddConn(c)
	p := &Player{Number: n, Disc: Disc{Pos: Vec{float64(n%2)*12 - 6, float64(n/2)*4 - 4}}}
	s.list = append(s.list, p)
	s.err = errors.Join(s.err, s.world.Spawn(p), s.players.Possess(p, peer, s.now))
}

// note keeps where all are in this tick.
func (s *server) note() {
	for i, p := range s.list {
		s.log[i][p.Ticks] = seen{p.Pos, s.ball.Pos}
	}
}

// Tick is a frame of the server's.
func (s *server) Tick(now time.Time) error {
	s.now = s.driver.Time(now)
	s.driver.TickDispatch(now)
	if s.group != nil {
		s.err = errors.Join(s.err, s.group.Tick(s.now))
	} else {
		s.err = errors.Join(s.err, s.players.Tick(s.now))
		s.ball.Simulate(predict.NoInput{}, simtest.DefaultTick)
		discs := []actorrep.Actor{s.ball}
		for _, p := range s.list {
			discs = append(discs, p)
		}
		collide(discs, simtest.DefaultTick)
		s.note()
	}
	s.world.Step(s.now)
	s.driver.TickFlush(now)
	return errors.Join(s.err, s.driver.Err())
}

// client is a player's end, played by a bot.
type client struct {
	end
	driver *driver.Driver
	match  *match
	own    *Player
	ball   *Ball
	keys   Keys
	next   time.Duration // it decides again
	now    time.Duration
	rng    simtest.Rand

	curve []sample
}

// sample is a frame of a client's: how far its own player was put by corrections in it, and what it had then.
type sample struct {
	at    time.Duration
	jump  float64
	ticks uint32
	seen  seen
}

func (m *match) dial(h *simtest.Host) (*client, error) {
	c := &client{match: m, rng: h.Rand()}
	c.world = actorrep.NewClient(actorrep.Config{Spawned: c.spawned, Failed: func(err error) { c.err = errors.Join(c.err, err) }})
	if err := c.register(m.together, c.input, collide); err != nil {
		return nil, err
	}
	var err error
	c.driver, err = driver.Dial(serverAddr, driver.Config{Socket: h.Open(), Clock: h.Time, Rand: h.Secrets(), Link: driver.PlainSalted{},
		Channels: c.world.ChannelTypes()})
	return c, err
}

func (c *client) spawned(a actorrep.Actor) {
	switch a := a.(type) {
	case *Ball:
		c.ball = a
	case *Player:
		if a.IsOwned() {
			c.own = a
			if c.group == nil {
				a.near = c.alone
			}
		}
	}
}

// alone is a tick of a player who is predicted alone: he bounces off the others where the client knows them to be, and they don't move for him.
func (c *client) alone(p *Player) {
	for a := range c.world.All {
		if a == actorrep.Actor(p) {
			continue
		}
		there, _, _ := a.(disc).body()
		was := *there
		bounce(p, a.(disc))
		*there = was
	}
}

// input is what the bot does in a tick. It decides again some five times a second, and not always well.
func (c *client) input(p *Player) Keys {
	switch {
	case c.match.calm || c.ball == nil:
		return Keys{}
	case c.now >= c.next:
		c.next = c.now + time.Duration(100+c.rng.IntN(200))*time.Millisecond
		if c.keys = bot(p, c.ball.Pos); c.rng.IntN(3) == 0 {
			c.keys = Keys{int8(c.rng.IntN(3) - 1), int8(c.rng.IntN(3) - 1)}
		}
	}
	return c.keys
}

// Tick is a frame of a client's.
func (c *client) Tick(now time.Time) error {
	c.now = c.driver.Time(now)
	var before [3]float64
	if c.own != nil {
		before = c.players.Offset(c.own, c.now)
	}
	c.driver.TickDispatch(now)
	c.world.Step(c.now)
	if c.group != nil {
		c.err = errors.Join(c.err, c.group.Tick(c.now))
	} else {
		c.err = errors.Join(c.err, c.players.Tick(c.now))
	}
	if c.own != nil && c.ball != nil && c.players.Predicting(c.own) && !c.match.calm {
		after := c.players.Offset(c.own, c.now)
		c.curve = append(c.curve, sample{at: c.match.world.Now(), jump: Vec{after[0] - before[0], after[1] - before[1]}.length(), ticks: c.own.Ticks,
			seen: seen{c.own.Pos, c.ball.Pos}})
	}
	c.driver.TickFlush(now)
	return errors.Join(c.err, c.driver.Err())
}

// match is a server and six players in virtual time.
type match struct {
	world    *simtest.Simulation
	together bool
	calm     bool
	server   *server
	clients  [players]*client
}

func newMatch(o options, together bool) (*match, error) {
	m := &match{together: together}
	m.world = simtest.NewSimulation(o.seed, m.boot)
	m.world.AddHost("server", true)
	for i := range players {
		set := netsim.Settings{LagMin: o.rtt/2 - o.rtt/20, LagMax: o.rtt/2 + o.rtt/20, Loss: o.loss}
		if err := m.world.AddHost(fmt.Sprint("player", i), false).SetNet(set, set); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *match) boot(h *simtest.Host) (simtest.Program, error) {
	if h.IsServer() {
		s, err := m.serve(h)
		m.server = s
		return s, err
	}
	c, err := m.dial(h)
	m.clients[h.Index()-1] = c
	return c, err
}

// until goes on for a time, and says what went wrong.
func (m *match) until(at time.Duration) error {
	m.world.RunUntil(at)
	if f := m.world.Failure(); f != nil {
		return fmt.Errorf("after %v: %s: %s", m.world.Now().Round(time.Millisecond), f.Checker, f.Text)
	}
	return nil
}

// warm is how long it takes until all play and the clocks have settled.
const warm = 3 * time.Second

// play plays so many seconds after all have come, and then has all stand.
func (m *match) play(length time.Duration) error {
	if err := m.until(warm + length); err != nil {
		return err
	}
	m.calm = true
	for give := m.world.Now() + 30*time.Second; ; {
		if err := m.until(m.world.Now() + 500*time.Millisecond); err != nil {
			return err
		}
		what := m.differs()
		if what == "" && m.stands() {
			break
		}
		if m.world.Now() > give {
			return errors.New("no agreement: " + what)
		}
	}
	return nil
}

// stands reports whether nothing moves.
func (m *match) stands() bool {
	for a := range m.server.world.All {
		if d, _, _ := a.(disc).body(); d.Vel.length() > 0.01 {
			return false
		}
	}
	return true
}

// differs says what a client has elsewhere than the server.
func (m *match) differs() string {
	for i, c := range m.clients {
		if len(m.server.list) != players || c.own == nil {
			return fmt.Sprintf("player %d isn't in the game", i)
		}
		for a := range m.server.world.All {
			theirs, ok := c.world.Find(a.(disc).GUID()).(disc)
			if !ok {
				return fmt.Sprintf("player %d lacks a %T", i, a)
			}
			x, _, _ := a.(disc).body()
			y, _, _ := theirs.body()
			if d := x.Pos.distance(y.Pos); d > 0.03 {
				return fmt.Sprintf("player %d has %T %.3f m off", i, a, d)
			}
		}
	}
	return ""
}
