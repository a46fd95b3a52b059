package main

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// server is the server's program. The runner is Ann's, others look on.
type server struct {
	net    *driver.Driver
	world  *actorrep.World
	runner *Runner
	ran    int // frames since the runner first moved
	err    error
}

func listen() (*server, error) {
	s := &server{world: actorrep.NewServer(actorrep.Config{})}
	err := register(s.world)
	if err == nil {
		s.net, err = driver.Listen("127.0.0.1:0", driver.Config{Channels: s.world.ChannelTypes(), Joined: s.joined})
	}
	return s, err
}

func (s *server) joined(c *driver.Conn) {
	peer := s.world.AddConn(c)
	if c.Login().URL != "Ann" || s.runner != nil {
		return
	}
	r := &Runner{}
	if r.truth, s.err = prediction.NewServer(prediction.ServerConfig[float64, int8]{Model: model}, 0, s.world.Now()); s.err != nil {
		return
	}
	r.SetOwner(peer)
	if s.err = s.world.Spawn(r); s.err == nil {
		s.runner = r
	}
}

func (s *server) frame(now time.Time) error {
	s.net.TickDispatch(now) // Moves run here
	at := s.net.Since(now)
	if s.runner != nil && s.err == nil {
		if s.ran > 0 || s.runner.X != 0 {
			s.ran++
		}
		if s.ran == 2*hz { // what no client can know before: a gust of wind
			*s.runner.truth.State() -= 0.5
			s.runner.truth.Correct()
		}
		s.err = s.runner.simulate(at)
	}
	s.world.Step(at)
	s.net.TickFlush(now)
	return s.err
}

// client is what Ann's and Bob's programs have in common.
type client struct {
	net   *driver.Driver
	world *actorrep.World
	err   error
}

func dial(addr, name string, bad netsim.Settings, seed uint64) (*client, error) {
	c := &client{}
	c.world = actorrep.NewClient(actorrep.Config{Spawned: func(a actorrep.Actor) { c.err = a.(*Runner).watch() }})
	if err := register(c.world); err != nil {
		return nil, err
	}
	local, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err != nil {
		return nil, err
	}
	socket, err := proxy.Impair(local, bad, bad, seed)
	if err != nil {
		return nil, err
	}
	c.net, err = driver.Dial(addr, driver.Config{
		Channels: c.world.ChannelTypes(), Socket: socket, Client: control.ClientConfig{URL: name},
	})
	return c, err
}

// begin is the first half of a client's frame; it returns the world's time.
func (c *client) begin(now time.Time) time.Duration {
	c.net.TickDispatch(now)
	c.world.Step(c.net.Since(now)) // Spawned, OnSnapshot and Reply run here
	return c.net.Since(now)
}

// own is the client's runner, or nil.
func (c *client) own() *Runner {
	for a := range c.world.All {
		if r := a.(*Runner); r.IsOwned() {
			return r
		}
	}
	return nil
}
