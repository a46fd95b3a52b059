package arena

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// ClientConfig is the settings of a Client.
type ClientConfig struct {
	// Addr is the server's.
	Addr string
	// Name is the player's.
	Name string
	// Seed is that of the bad network of Impair.
	Seed uint64
	// Socket is used instead of opening one; then Impair does nothing. May be nil.
	Socket udp.Socket
}

// Client is a player's end. All of it belongs to the goroutine that calls Frame.
type Client struct {
	Driver *driver.Driver
	Graph  Graph
	// Lag and Loss are the bad network of Impair, each way.
	Lag  time.Duration
	Loss float64

	classes
	world  *actorrep.World
	net    *proxy.Impaired
	own    *Ship
	now    time.Duration
	input  Input
	ghosts []ghost
	err    error
}

// Dial opens a client. The ship comes while Frame is called.
func Dial(cfg ClientConfig) (*Client, error) {
	c := &Client{}
	c.world = actorrep.NewClient(actorrep.Config{Spawned: c.spawned, Destroyed: c.destroyed, Failed: func(err error) { c.err = errors.Join(c.err, err) }})
	var err error
	c.classes, err = register(c.world, predict.Config[*Ship, Input]{
		Input:     func(*Ship) Input { return c.input },
		Smoothing: prediction.SmootherConfig{Snap: jump},
	})
	if err != nil {
		return nil, err
	}
	socket := cfg.Socket
	if socket == nil {
		local, err := udp.Listen(":0", udp.Config{})
		if err != nil {
			return nil, err
		}
		if c.net, err = proxy.Impair(local, netsim.Settings{}, netsim.Settings{}, cfg.Seed); err != nil {
			return nil, err
		}
		socket = c.net
	}
	c.Driver, err = driver.Dial(cfg.Addr, driver.Config{Channels: c.world.ChannelTypes(), Socket: socket,
		Client: control.ClientConfig{URL: cfg.Name, Platform: "go"},
		Closed: func(_ *driver.Conn, r netconn.CloseResult) {
			c.err = errors.Join(c.err, fmt.Errorf("the connection ended: %v", r))
		},
	})
	return c, err
}

// Impair makes the network bad from now on, each way.
func (c *Client) Impair(lag time.Duration, loss float64) error {
	if c.net == nil {
		return nil
	}
	c.Lag, c.Loss = min(max(lag, 0), time.Second), min(max(loss, 0), 50)
	bad := netsim.Settings{Lag: c.Lag, LagVariance: c.Lag / 10, Loss: c.Loss}
	return c.net.Set(bad, bad)
}

func (c *Client) spawned(a actorrep.Actor) {
	if s, ok := a.(*Ship); ok && s.IsOwned() {
		c.own, s.mine = s, c
	}
}

func (c *Client) destroyed(a actorrep.Actor) {
	if a == c.own {
		c.own = nil
	}
}

// Frame is the whole of a client's frame; in is what the player does in it.
func (c *Client) Frame(now time.Time, in Input) error {
	c.now = c.Driver.Time(now)
	c.Driver.TickDispatch(now)
	c.world.Step(c.now)
	c.past.Tick(c.now)
	c.input = in
	c.err = errors.Join(c.err, c.ships.Tick(c.now))
	for len(c.ghosts) > 0 && (c.now-c.ghosts[0].born > bulletLife || outside(c.ghosts[0].at(c.now))) {
		c.ghosts = c.ghosts[1:]
	}
	c.Graph.sample(c)
	c.Driver.TickFlush(now)
	return errors.Join(c.err, c.Driver.Err())
}

// fired shows a bullet of the own ship at once.
func (c *Client) fired(s *Ship) {
	if _, again := c.ships.Key(s, 0); again {
		return
	}
	d := Direction(radians(s.Angle))
	c.ghosts = append(c.ghosts, ghost{s.Pos.Plus(d.Times(Radius)), d.Times(bulletSpeed), c.now})
}

// Own is the own ship's true state as predicted, or nil as long as there is none.
func (c *Client) Own() *Body {
	if c.own == nil || !c.ships.Predicting(c.own) {
		return nil
	}
	return &c.own.Body
}
