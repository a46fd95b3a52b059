package main

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// client is one player's end: it only watches, the arena's players run by themselves.
type client struct {
	name   string
	driver *driver.Driver
	world  *actorrep.World
	net    *proxy.Impaired
	result *netconn.CloseResult
	errs   []error
}

func newClient(name, addr string, bad netsim.Settings, seed uint64) (*client, error) {
	c := &client{name: name}
	c.world = actorrep.NewClient(actorrep.Config{Failed: func(err error) { c.errs = append(c.errs, err) }})
	if err := register(c.world); err != nil {
		return nil, err
	}
	local, err := udp.Listen(":0", udp.Config{})
	if err != nil {
		return nil, err
	}
	if c.net, err = proxy.Impair(local, bad, bad, seed); err != nil {
		return nil, err
	}
	c.driver, err = driver.Dial(addr, driver.Config{
		Channels: c.world.ChannelTypes(),
		Client:   control.ClientConfig{URL: name, Platform: "go"},
		Socket:   c.net,
		Closed:   func(_ *driver.Conn, r netconn.CloseResult) { c.result = &r },
	})
	return c, err
}

// tick is the whole of a client's frame.
func (c *client) tick(now time.Time) error {
	c.driver.TickDispatch(now)
	c.world.Step(c.driver.Time(now))
	c.driver.TickFlush(now)
	if c.result != nil {
		return fmt.Errorf("%s: %v", c.name, c.result)
	}
	return c.driver.Err()
}

// row is a client's line in the table.
func (c *client) row() string {
	conn := c.driver.Server()
	if conn == nil || !conn.Joined() {
		return fmt.Sprintf("%s\tjoining\t\t\t\t\t\t\t\t", c.name)
	}
	s := conn.Stats()
	score, moves := uint32(0), 0
	for a := range c.world.All {
		if p, ok := a.(*Player); ok {
			moves += p.moves
			if p.Name == c.name {
				score = p.Score
			}
		}
	}
	return fmt.Sprintf("%s\t%.0f ms\t%.0f ms\t%.1f %%\t%.1f kB/s\t%d\t%d\t%d\t%d\t", c.name, float64(s.RTT.Microseconds())/1000,
		float64(s.Jitter.Microseconds())/1000, 100*s.Rates.InLoss, s.Rates.InBytes/1000, c.world.Len(), s.QueuedReliable, moves, score)
}
