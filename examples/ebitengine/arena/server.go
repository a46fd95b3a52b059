package arena

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// MaxShips bounds players and bots together: as many as there are colors.
const MaxShips = 12

// ServerConfig is the settings of a Server.
type ServerConfig struct {
	// Addr is where to listen.
	Addr string
	// Bots is the ships without a player; at most MaxShips-1.
	Bots int
	// Seed is that of the places where ships appear, and of the bots.
	Seed uint64
	// Socket is used instead of opening one at Addr. May be nil.
	Socket udp.Socket
}

// Server owns the game. All of it belongs to the goroutine that ticks it.
type Server struct {
	Driver *driver.Driver

	classes
	world   *actorrep.World
	ticks   uint32
	players []*player
	bullets []*Bullet
	rng     *rand.Rand
	now     time.Duration // of the tick at hand
	frozen  bool
	err     error
}

// player is a connection's, or a bot.
type player struct {
	server *Server
	ship   *Ship
	conn   *driver.Conn // nil for a bot
	peer   *actorrep.Peer
	bot    *bot
}

// Listen opens a server.
func Listen(cfg ServerConfig) (*Server, error) {
	if cfg.Bots < 0 || cfg.Bots >= MaxShips {
		return nil, fmt.Errorf("%d bots; there may be up to %d", cfg.Bots, MaxShips-1)
	}
	s := &Server{world: actorrep.NewServer(actorrep.Config{}), rng: rand.New(rand.NewPCG(cfg.Seed, 3))}
	var err error
	if s.classes, err = register(s.world, predict.Config[*Ship, Input]{}); err != nil {
		return nil, err
	}
	for i := range cfg.Bots {
		p := &player{server: s, bot: &bot{rng: s.rng}}
		if err := s.enter(p, fmt.Sprintf("Bot %d", i+1)); err != nil {
			return nil, err
		}
	}
	s.Driver, err = driver.Listen(cfg.Addr, driver.Config{
		Channels: s.world.ChannelTypes(), Server: control.ServerConfig{Map: "arena"},
		Joined: s.joined, Closed: s.left, MaxConns: MaxShips, TickRate: TickRate, Socket: cfg.Socket,
	})
	return s, err
}

func (s *Server) joined(c *driver.Conn) {
	p := &player{server: s, conn: c, peer: s.world.AddConn(c)}
	err := s.enter(p, c.Login().URL)
	if err == nil {
		err = s.ships.Possess(p.ship, p.peer, s.now)
	}
	if err != nil {
		s.world.RemoveConn(p.peer)
		c.CloseWithReason(err.Error())
		return
	}
	c.User = p
}

const maxName = 24 // bytes of a ship's

var (
	errFull = errors.New("the arena is full")
	errName = fmt.Errorf("a name has %d bytes at most", maxName)
)

func (s *Server) enter(p *player, name string) error {
	if len(name) > maxName {
		return errName
	}
	taken := [MaxShips]bool{}
	for _, q := range s.players {
		taken[q.ship.Color] = true
	}
	for i, t := range taken {
		if !t {
			p.ship = &Ship{Name: name, Color: uint8(i), Hull: 100, Body: s.place(), player: p}
			s.players = append(s.players, p)
			return s.world.Spawn(p.ship)
		}
	}
	return errFull
}

func (s *Server) left(c *driver.Conn, _ netconn.CloseResult) {
	p, ok := c.User.(*player)
	if !ok {
		return
	}
	s.world.RemoveConn(p.peer)
	s.fail(s.world.Destroy(p.ship))
	for i, q := range s.players {
		if q == p {
			s.players = append(s.players[:i], s.players[i+1:]...)
			return
		}
	}
}

func (s *Server) fail(err error) { s.err = errors.Join(s.err, err) }

// place is a body somewhere, at rest.
func (s *Server) place() Body {
	return Body{Pos: Vec{40 + s.rng.Float64()*(Width-80), 40 + s.rng.Float64()*(Height-80)}, Angle: 360 * s.rng.Float64()}
}

// Tick is the whole of a server's frame.
func (s *Server) Tick(now time.Time) error {
	s.now = s.Driver.Time(now)
	s.Driver.TickDispatch(now)
	s.ticks++
	s.fail(s.ships.Tick(s.now))
	for _, p := range s.players {
		if p.bot != nil {
			p.step()
		}
	}
	s.fly()
	s.world.Step(s.now)
	s.past.Tick(s.now)
	s.Driver.TickFlush(now)
	return errors.Join(s.err, s.Driver.Err())
}

// Run ticks the server until ctx is done, and closes it.
func (s *Server) Run(ctx context.Context) error {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.Driver.Close()
		case now := <-t.C:
			if err := s.Tick(now); err != nil {
				return errors.Join(err, s.Driver.Close())
			}
		}
	}
}

// Ships is the true ones, with the connections of their players; bots have none.
func (s *Server) Ships(yield func(ship Sprite, c *driver.Conn) bool) {
	for _, p := range s.players {
		if !yield(p.ship.sprite(p.ship.Pos, radians(p.ship.Angle), p.ship.Thrust), p.conn) {
			return
		}
	}
}

// Freeze has bots stand still, and bullets gone; players may go on.
func (s *Server) Freeze(on bool) { s.frozen = on }

// step moves a bot.
func (p *player) step() {
	s := p.server
	if s.frozen {
		p.ship.Vel, p.ship.Thrust = Vec{}, false
		return
	}
	p.ship.Simulate(p.bot.steer(s, p), tick)
}
