package main

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// server is the arena's: driver, world and rules.
type server struct {
	driver *driver.Driver
	world  *actorrep.World
	game   *game
	peers  map[*driver.Conn]*seat
}

type seat struct {
	peer   *actorrep.Peer
	player *Player
}

func newServer(addr string, cfg driver.Config, seed uint64) (*server, error) {
	s := &server{world: actorrep.NewServer(actorrep.Config{}), peers: map[*driver.Conn]*seat{}}
	if err := register(s.world); err != nil {
		return nil, err
	}
	s.game = newGame(s.world, seed)
	cfg.Channels, cfg.Server, cfg.Joined, cfg.Closed = s.world.ChannelTypes(), control.ServerConfig{Map: "arena"}, s.joined, s.closed
	var err error
	s.driver, err = driver.Listen(addr, cfg)
	return s, err
}

func (s *server) joined(c *driver.Conn) {
	peer := s.world.AddConn(c)
	player, err := s.game.join(c.Login().URL, peer)
	if err != nil {
		c.CloseWithReason(err.Error())
		return
	}
	s.peers[c] = &seat{peer, player}
}

func (s *server) closed(c *driver.Conn, _ netconn.CloseResult) {
	if seat := s.peers[c]; seat != nil {
		s.world.RemoveConn(seat.peer)
		s.game.leave(seat.player)
		delete(s.peers, c)
	}
}

// tick is the whole of a server's frame.
func (s *server) tick(now time.Time) error {
	s.driver.TickDispatch(now)
	if err := s.game.step(); err != nil {
		return err
	}
	s.world.Step(s.driver.Time(now))
	s.driver.TickFlush(now)
	return s.driver.Err()
}
