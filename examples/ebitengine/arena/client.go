package arena

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interpolation"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
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

	world     *actorrep.World
	net       *proxy.Impaired
	own       *Ship
	predicted *prediction.Client[Body, Input] // once there is an own ship
	timeline  *interpolation.Timeline
	clock     *Clock
	seen      uint32 // tick of the last snapshot
	now       time.Duration
	input     Input
	shots     uint32
	ghosts    []ghost
	err       error
}

// Dial opens a client. The ship comes while Frame is called.
func Dial(cfg ClientConfig) (*Client, error) {
	c := &Client{}
	c.world = actorrep.NewClient(actorrep.Config{Spawned: c.spawned, Destroyed: c.destroyed, Failed: func(err error) { c.err = errors.Join(c.err, err) }})
	if err := register(c.world); err != nil {
		return nil, err
	}
	var err error
	if c.timeline, err = interpolation.NewTimeline(interpolation.Config{}); err != nil {
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
	switch a := a.(type) {
	case *Clock:
		c.clock = a
	case *Ship:
		var err error
		if a.IsOwned() {
			c.own, a.mine = a, c
			c.predicted, err = prediction.NewClient(prediction.ClientConfig[Body, Input]{
				Model:      model(),
				CanCombine: func(_ *Body, a, b *Input) bool { return *a == *b && !a.Fire },
				Position:   func(b *Body) [3]float64 { return [3]float64{b.Pos.X, b.Pos.Y} },
				Smoothing:  prediction.SmootherConfig{Snap: jump},
			}, Body{Pos: a.Pos, Angle: radians(a.Angle)}, c.now)
		} else {
			a.others, err = newBuffer()
		}
		c.err = errors.Join(c.err, err)
	}
}

func (c *Client) destroyed(a actorrep.Actor) {
	switch a {
	case c.own:
		c.own, c.predicted = nil, nil
	case c.clock:
		c.clock = nil
	}
}

// Frame is the whole of a client's frame; in is what the player does in it.
func (c *Client) Frame(now time.Time, in Input) error {
	c.now = c.Driver.Since(now)
	c.Driver.TickDispatch(now)
	c.world.Step(c.now)
	c.observe()
	if c.predicted != nil {
		c.move(in)
	}
	c.Graph.sample(c)
	c.Driver.TickFlush(now)
	return errors.Join(c.err, c.Driver.Err())
}

// answer takes the server's answer to moves.
func (c *Client) answer(message []byte) error { return c.predicted.Receive(c.now, readerOf(message)) }

// move predicts the own ship, and tells the server of the input.
func (c *Client) move(in Input) {
	c.input = in
	c.predicted.Move(c.now, in)
	w := bitio.NewWriter(make([]byte, 512))
	ok, err := c.predicted.Send(c.now, w)
	c.err = errors.Join(c.err, err)
	if ok {
		_ = moves.Call(c.own, w.Bytes()) // unreliable: the next message brings these moves too
	}
	b := c.predicted.State()
	if b.Shots > c.shots {
		d := Direction(b.Angle)
		c.ghosts = append(c.ghosts, ghost{b.Pos.Plus(d.Times(Radius)), d.Times(bulletSpeed), c.now})
	}
	c.shots = b.Shots
	for len(c.ghosts) > 0 && (c.now-c.ghosts[0].born > bulletTicks*tick || outside(c.ghosts[0].at(c.now))) {
		c.ghosts = c.ghosts[1:]
	}
}

// Own is the own ship's true state as predicted, or nil as long as there is none.
func (c *Client) Own() *Body {
	if c.predicted == nil {
		return nil
	}
	return c.predicted.State()
}
