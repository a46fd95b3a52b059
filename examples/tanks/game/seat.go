package game

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/migrate"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Seat is a player whose game goes on when the host has gone: here, if it is this player's turn, or with another host.
type Seat struct {
	// Client is what the player sees at present, Server the game when it is here, else nil.
	Client *Client
	Server *Server
	// Lost is how much of the game was lost when it came here.
	Lost time.Duration

	cfg      SeatConfig
	follower *migrate.Follower
	dialed   map[*driver.Driver]*Client
	seen     uint32        // the newest frame
	at       time.Time     // when that came
	still    time.Duration // the longest time without one
}

// SeatConfig is the settings of a Seat.
type SeatConfig struct {
	Name string
	Play Player
	Seed uint64
	// Port is where others reach this player's server.
	Port uint16
	// Listen is the network of that, and Dial that of a connection, to the server here if own.
	Listen func() (driver.Config, error)
	Dial   func(own bool) (driver.Config, error)
}

// NewSeat joins the game at a host, or is the host.
func NewSeat(cfg SeatConfig, first migrate.Destination, key driver.Netcode) (*Seat, error) {
	s := &Seat{cfg: cfg, dialed: map[*driver.Driver]*Client{}}
	var err error
	if s.follower, err = migrate.NewFollower(migrate.FollowerConfig{Port: cfg.Port, Dial: s.dial, Host: s.become, Moved: s.moved}); err != nil {
		return nil, err
	}
	if first.Own {
		if err := s.open(key, nil); err != nil {
			return nil, err
		}
	}
	d, err := s.dial(first)
	if err != nil {
		return nil, err
	}
	s.follower.Follow(d)
	s.moved(d, first.Own)
	return s, nil
}

// open opens the server here, with the world of a checkpoint if there is one.
func (s *Seat) open(link driver.Netcode, from *migrate.Succession) error {
	g, err := newServer(s.cfg.Seed)
	if err != nil {
		return err
	}
	cfg, err := s.cfg.Listen()
	if err != nil {
		return err
	}
	link.TakeOver = true
	cfg.Link = link
	name := s.cfg.Name
	clock := cfg.Clock
	if clock == nil {
		clock = time.Now
	}
	if g.host, err = migrate.NewHost(g.world, migrate.HostConfig{Succession: from, Save: g.save, Clock: clock, Rand: cfg.Rand, ID: (*driver.Conn).ClientID,
		Own: func(c *driver.Conn) bool { return c.Login().URL == name && c.RemoteAddr().Addr().IsLoopback() }}); err != nil {
		return err
	}
	if from == nil {
		g.populate()
	} else if _, err := migrate.Restore(g.world, from.Checkpoint, g.load); err != nil {
		return err
	} else {
		s.Lost = from.Lost
	}
	cfg.Channels = append(cfg.Channels, g.host.Channel())
	if err := g.listen("", cfg); err != nil {
		return err
	}
	s.Server = g
	return nil
}

// become is the follower's: it is this player's turn.
func (s *Seat) become(from migrate.Succession) (*migrate.Host, error) {
	s.Leave()
	if err := s.open(from.Link, &from); err != nil {
		return nil, err
	}
	return s.Server.host, nil
}

func (s *Seat) dial(to migrate.Destination) (*driver.Driver, error) {
	cfg, err := s.cfg.Dial(to.Own)
	if err != nil {
		return nil, err
	}
	cfg.Link, cfg.Channels = to.Link, append(cfg.Channels, s.follower.Channel())
	c, err := Dial(to.Addr.String(), cfg, s.cfg.Name, s.cfg.Play)
	if err != nil {
		return nil, err
	}
	c.follows = true
	s.dialed[c.Driver] = c
	return c.Driver, nil
}

// moved is the follower's: the game goes on with another connection.
func (s *Seat) moved(d *driver.Driver, own bool) {
	if s.Client != nil {
		s.dialed[d].Event = s.Client.Event
		s.dialed[d].Heard = s.Client.Heard
	}
	s.Client = s.dialed[d]
	clear(s.dialed)
	s.dialed[d] = s.Client
	if !own {
		s.Leave()
	}
}

// Leave ends the server here at once.
func (s *Seat) Leave() {
	if s.Server != nil {
		_ = s.Server.Driver.Close()
		s.Server = nil
	}
}

// Tick is a frame of the player's, and of the server if it is here.
func (s *Seat) Tick(now time.Time) error {
	s.follower.TickDispatch(now)
	err := errors.Join(s.Client.Frame(now), s.follower.Err())
	s.follower.TickFlush(now)
	if f := s.Client.world.Frame(); f != s.seen {
		if !s.at.IsZero() {
			s.still = max(s.still, now.Sub(s.at))
		}
		s.seen, s.at = f, now
	}
	if s.Server != nil {
		err = errors.Join(err, s.Server.Tick(now))
		if s.Server.host.Err() != nil {
			s.Leave()
		}
	}
	return err
}

// Stood is the longest time in which this player saw nothing new since the last call.
func (s *Seat) Stood() (d time.Duration) {
	d, s.still = s.still, 0
	return d
}

// Migrations is how often the game has gone on with another host.
func (s *Seat) Migrations() uint64 { return s.follower.Counters.Migrations }

// kept is what a checkpoint has of an actor, or of the game, besides replicated fields.
type kept struct {
	ID          uint64         `json:",omitempty"` // whose tank
	Row         fastarray.ID   `json:",omitempty"`
	Reload      float64        `json:",omitempty"`
	Vel         Vec            // of a drone
	Left        time.Duration  `json:",omitempty"` // of a shell's life
	Hits, Fired map[string]int `json:",omitempty"`
}

func (s *Server) save(a actorrep.Actor, dst []byte) []byte {
	var k kept
	switch a := a.(type) {
	case nil:
		k.Hits, k.Fired = s.Hits, s.Fired
	case *Tank:
		for p := range s.players.All {
			if p.tank == a {
				k.ID, k.Row, k.Reload = p.id, p.row, a.Reload
			}
		}
	case *Drone:
		k.Vel = a.vel
	case *Shell:
		k.Left = a.until - s.now
	default:
		return dst
	}
	b, err := json.Marshal(k)
	s.fail(err)
	return append(dst, b...)
}

func (s *Server) load(a actorrep.Actor, data []byte) error {
	var k kept
	if len(data) > 0 {
		if err := json.Unmarshal(data, &k); err != nil {
			return err
		}
	}
	switch a := a.(type) {
	case nil:
		for name, n := range k.Hits {
			s.Hits[name] = n
		}
		for name, n := range k.Fired {
			s.Fired[name] = n
		}
		if s.board == nil {
			return errors.New("no board")
		}
	case *Board:
		s.board, a.server = a, s
	case *Tank:
		a.server, a.Reload = s, k.Reload
		s.players.Restore(strconv.FormatUint(k.ID, 10), &player{id: k.ID, tank: a, row: k.Row})
	case *Drone:
		a.vel = k.Vel
		s.drones = append(s.drones, a)
	case *Crate:
		s.crates = append(s.crates, a)
	case *Shell:
		a.until = k.Left
		s.shells = append(s.shells, a)
	}
	return nil
}
