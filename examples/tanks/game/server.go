package game

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/migrate"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/actorrep/rewind"
	"github.com/bunchnet/bunchnet/actorrep/spectate"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
)

// Server owns the game. All of it belongs to the goroutine that ticks it.
type Server struct {
	Driver *driver.Driver
	// Hits is how often each player hit a drone, Fired how often it shot, by name.
	Hits, Fired map[string]int
	// Back is how often a player came back.
	Back int

	classes
	world   *actorrep.World
	record  *replay.Recorder
	relay   *spectate.Relay // nil without spectators
	host    *migrate.Host   // of a game that may go on without this server; else nil
	players *session.Players[*player]
	board   *Board
	shells  []*Shell
	drones  []*Drone
	crates  []*Crate
	rng     *rand.Rand
	now     time.Duration
	still   bool
	err     error
}

// player is somebody's tank and score, with a connection or without.
type player struct {
	id   uint64 // of the token
	tank *Tank
	row  fastarray.ID
	peer *actorrep.Peer // nil while it is away
}

// Listen opens a server with a config's network.
func Listen(addr string, cfg driver.Config, seed uint64) (*Server, error) {
	s, err := newServer(seed)
	if err != nil {
		return nil, err
	}
	s.populate()
	return s, s.listen(addr, cfg)
}

// ListenDelayed opens a server that shows the game to spectators, so much later.
func ListenDelayed(addr string, cfg driver.Config, seed uint64, delay time.Duration) (*Server, error) {
	s, err := newServer(seed)
	if err != nil {
		return nil, err
	}
	s.populate()
	if s.relay, err = spectate.NewRelay(s.world, spectate.RelayConfig{Delay: delay, Rate: 20}); err != nil {
		return nil, err
	}
	cfg.Channels = append(cfg.Channels, s.relay.Channel())
	return s, s.listen(addr, cfg)
}

// newServer is a server without a network, and with nothing in its world.
func newServer(seed uint64) (*Server, error) {
	s := &Server{world: actorrep.NewServer(actorrep.Config{}), rng: rand.New(rand.NewPCG(seed, 1)), Hits: map[string]int{}, Fired: map[string]int{}}
	var err error
	if s.classes, err = register(s.world, predict.Config[*Tank, Input]{}); err != nil {
		return nil, err
	}
	if s.players, err = session.NewPlayers(session.Config[*player]{New: s.enter, Rejoin: s.back, Away: s.away, Gone: s.gone}); err != nil {
		return nil, err
	}
	return s, nil
}

// populate puts what is there from the beginning on the field.
func (s *Server) populate() {
	s.board = &Board{server: s}
	s.fail(s.world.Spawn(s.board))
	for range 24 {
		d := &Drone{Pos: s.place(), vel: direction(360 * s.rng.Float64()).Times(6 + 6*s.rng.Float64())}
		s.drones = append(s.drones, d)
		s.fail(s.world.Spawn(d))
	}
	for range 40 {
		c := &Crate{Pos: s.place()}
		s.crates = append(s.crates, c)
		s.fail(s.world.Spawn(c))
		s.fail(c.SetDormant(true))
	}
}

// listen opens the network.
func (s *Server) listen(addr string, cfg driver.Config) (err error) {
	cfg.Channels, cfg.Closed = append(s.world.ChannelTypes(), cfg.Channels...), s.players.Closed
	cfg.Joined = func(c *driver.Conn) {
		if c.Login().URL != spectatorName {
			s.players.Joined(c)
		}
	}
	cfg.Server.Authorize = func(l *control.Login) error {
		if l.URL == spectatorName && s.relay == nil {
			return errors.New("there is nothing for spectators here")
		}
		return checkName(l.URL)
	}
	s.Driver, err = driver.Listen(addr, cfg)
	return errors.Join(err, s.err)
}

// spectatorName is the login of who is no player.
const spectatorName = "/spectator"

// checkName refuses what the score board has no room for, and what a terminal would obey.
func checkName(name string) error {
	switch {
	case len(name) < 1 || len(name) > maxName:
		return fmt.Errorf("a name has 1 to %d bytes", maxName)
	case printable(name) != name:
		return errors.New("a name is printable")
	}
	return nil
}

func (s *Server) fail(err error) { s.err = errors.Join(s.err, err) }

func (s *Server) place() Vec { return Vec{Size * s.rng.Float64(), Size * s.rng.Float64()} }

// enter is a new player.
func (s *Server) enter(c *driver.Conn) *player {
	p := &player{id: c.ClientID(), tank: &Tank{Name: c.Login().URL, Pos: s.place(), Ammo: magazine, server: s}}
	s.fail(s.world.Spawn(p.tank))
	var err error
	p.row, err = s.board.Rows.Add(Row{Name: p.tank.Name, Score: uint16(min(s.Hits[p.tank.Name], math.MaxUint16))})
	s.fail(err)
	s.connect(c, p)
	return p
}

// connect gives a player's tank to a connection.
func (s *Server) connect(c *driver.Conn, p *player) {
	p.peer = s.world.AddConn(c)
	p.peer.User = p
	p.peer.SetViewTarget(p.tank)
	s.fail(s.tanks.Possess(p.tank, p.peer, s.now))
}

func (s *Server) back(c *driver.Conn, p *player) {
	s.Back++
	s.away(p, netconn.CloseResult{})
	s.connect(c, p)
}

func (s *Server) away(p *player, _ netconn.CloseResult) {
	if p.peer != nil {
		s.world.RemoveConn(p.peer)
		p.peer = nil
	}
}

func (s *Server) gone(p *player, r netconn.CloseResult) {
	s.away(p, r)
	s.fail(s.world.Destroy(p.tank))
	s.fail(s.board.Rows.Remove(p.row))
}

// fire judges a shot by what its player saw, and shows a shell to all.
func (s *Server) fire(t *Tank, seen interp.Seen) {
	if t.Ammo == 0 {
		return
	}
	t.Ammo--
	s.Fired[t.Name]++
	d := direction(t.Heading)
	key, _ := s.tanks.Key(t, 0)
	sh := &Shell{Key: key, From: t.Pos, Vel: d.Times(range_), until: s.now + shellLife}
	s.fail(s.world.Spawn(sh))
	sh.SetOwner(t.Owner())
	s.shells = append(s.shells, sh)
	to := t.Pos.Plus(d.Times(range_))
	hit, ok := s.past.Rewind(t.Owner(), seen).Ray(rewind.Vec{t.Pos.X, t.Pos.Y, 0}, rewind.Vec{to.X, to.Y, 0}, 0)
	if !ok {
		return
	}
	for _, drone := range s.drones {
		if rewind.ID(drone.GUID()) == hit.ID {
			s.score(t)
			drone.Pos = s.place()
		}
	}
}

func (s *Server) score(t *Tank) {
	s.Hits[t.Name]++
	for id, row := range s.board.Rows.All {
		if row.Name == t.Name {
			row.Score++
			s.fail(s.board.Rows.Set(id, row))
		}
	}
}

// Still has drones stand, so that all can agree on where things are.
func (s *Server) Still() { s.still = true }

// Tick is a frame of the server's.
func (s *Server) Tick(now time.Time) error {
	s.now = s.Driver.Time(now)
	s.Driver.TickDispatch(now)
	s.players.Tick(s.now)
	if s.host == nil || s.host.Ready() {
		s.fail(s.tanks.Tick(s.now))
		s.step(time.Second / 60)
	}
	s.world.Step(s.now)
	s.past.Tick(s.now)
	if s.relay != nil {
		s.relay.Step(s.now)
		s.fail(s.relay.Err())
	}
	if s.host != nil {
		s.host.Step(s.now)
	}
	s.Driver.TickFlush(now)
	return errors.Join(s.err, s.Driver.Err())
}

// step moves what has no player.
func (s *Server) step(dt time.Duration) {
	kept := s.shells[:0]
	for _, sh := range s.shells {
		if s.now < sh.until {
			kept = append(kept, sh)
		} else {
			s.fail(s.world.Destroy(sh))
		}
	}
	clear(s.shells[len(kept):])
	s.shells = kept
	for _, d := range s.drones {
		if s.still {
			break
		}
		if s.rng.IntN(90) == 0 {
			d.vel = direction(360 * s.rng.Float64()).Times(6 + 6*s.rng.Float64())
		}
		d.Pos = d.Pos.Plus(d.vel.Times(dt.Seconds()))
		if d.Pos.X < 0 || d.Pos.Y < 0 || d.Pos.X > Size || d.Pos.Y > Size {
			d.vel = d.vel.Times(-1)
			d.Pos = Vec{math.Min(math.Max(d.Pos.X, 0), Size), math.Min(math.Max(d.Pos.Y, 0), Size)}
		}
	}
	for p := range s.players.All {
		for _, c := range s.crates {
			if !c.Taken && c.Pos.Distance(p.tank.Pos) < 6 {
				c.Taken = true
				c.FlushDormancy()
				p.tank.Ammo = min(p.tank.Ammo+magazine, 250)
			}
		}
	}
}

// Record writes the match to out, for Watch, until EndRecord.
func (s *Server) Record(out io.Writer) (err error) {
	s.record, err = replay.Record(s.world, out, replay.Config{})
	return err
}

// EndRecord writes what is left of the record.
func (s *Server) EndRecord() error {
	if s.record == nil {
		return nil
	}
	return s.record.Close()
}

// Hosting reports whether the game goes on here.
func (s *Server) Hosting() bool { return s.host == nil || s.host.Ready() }

// Place is where a player's tank really is.
func (s *Server) Place(name string) (at Vec, ok bool) {
	for p := range s.players.All {
		if p.tank.Name == name {
			return p.tank.Pos, true
		}
	}
	return Vec{}, false
}

// World is the server's, for tools that look at it.
func (s *Server) World() *actorrep.World { return s.world }

// Peer is the world's side of a player's connection, or nil.
func (s *Server) Peer(c *driver.Conn) *actorrep.Peer {
	if p, ok := s.players.Of(c); ok {
		return p.peer
	}
	return nil
}

// Drones is the number of them.
func (s *Server) Drones() int { return len(s.drones) }

// Crates is the number of them.
func (s *Server) Crates() int { return len(s.crates) }

// Asleep is the crates that sleep.
func (s *Server) Asleep() (n int) {
	for _, c := range s.crates {
		if c.Dormant() {
			n++
		}
	}
	return n
}
