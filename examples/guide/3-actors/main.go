// Step 3 of the guide: actors. The server has a world with a player for each client, and walks them about; each client
// has a copy of that world, which follows by itself. Nobody sends messages any more.
//
//	go run ./examples/guide/3-actors
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Player is the same type at both ends. What has a tag is replicated.
type Player struct {
	actorrep.Base
	Name string  `net:"initial"`              // once, when the player appears
	X    float64 `net:"q=0.01,notify=OnMove"` // in steps of a centimetre, whenever it has changed
	Y    float64 `net:"q=0.01"`

	moves int // has no tag: each end's own
}

// OnMove is called on a client when X has changed.
func (p *Player) OnMove() { p.moves++ }

// client is one player's program.
type client struct {
	net   *driver.Driver
	world *actorrep.World
}

func join(addr string) (*client, error) {
	c := &client{world: actorrep.NewClient(actorrep.Config{
		Spawned: func(a actorrep.Actor) { fmt.Println("appeared:", a.(*Player).Name) },
	})}
	err := c.world.Register("Player", (*Player)(nil))
	if err == nil {
		c.net, err = driver.Dial(addr, driver.Config{Channels: c.world.ChannelTypes()})
	}
	return c, err
}

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "it has no flags and takes no arguments")
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run() error {
	world := actorrep.NewServer(actorrep.Config{})
	if err := world.Register("Player", (*Player)(nil)); err != nil {
		return err
	}
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{
		Channels: world.ChannelTypes(),
		Joined: func(c *driver.Conn) {
			world.AddConn(c) // from now on this client sees the world
			if err := world.Spawn(&Player{Name: fmt.Sprintf("player %d", world.Len()+1)}); err != nil {
				fmt.Println(err)
			}
		},
	})
	if err != nil {
		return err
	}
	defer srv.Close()
	var clients []*client
	for range 2 {
		c, err := join(srv.LocalAddr().String())
		if err != nil {
			return err
		}
		defer c.net.Close()
		clients = append(clients, c)
	}

	const walking = 120 // ticks: two seconds
	walked := 0
	for range 3600 { // a minute at most: everybody walks once both are there, then stands until all have heard
		now := time.Now()
		srv.TickDispatch(now)
		if world.Len() == len(clients) && walked < walking {
			walked++
			for a := range world.All {
				p := a.(*Player)
				p.X += 1.5 / 60
				p.Y += 0.5 / 60
			}
		}
		world.Step(srv.Time(now)) // finds what has changed, and writes it
		srv.TickFlush(now)

		for _, c := range clients {
			c.net.TickDispatch(now)       // values are set
			c.world.Step(c.net.Time(now)) // Spawned and notifies are called
			c.net.TickFlush(now)
			if err := c.net.Err(); err != nil {
				return err // why it has no connection
			}
		}
		if walked == walking && compare(world, clients) == nil {
			break
		}
		time.Sleep(time.Second / 60)
	}
	return verdict(world, clients)
}

// compare looks for every actor of the server in each client's world, by its GUID, which is the same at both ends.
func compare(world *actorrep.World, clients []*client) error {
	for i, c := range clients {
		for a := range world.All {
			p := a.(*Player)
			mirror, ok := c.world.Find(p.GUID()).(*Player)
			if !ok {
				return fmt.Errorf("client %d doesn't see %s", i+1, p.Name)
			}
			if dx, dy := mirror.X-p.X, mirror.Y-p.Y; max(dx, -dx, dy, -dy) > 0.0051 {
				return fmt.Errorf("client %d sees %s at (%.2f, %.2f), the server at (%.3f, %.3f)", i+1, mirror.Name, mirror.X, mirror.Y, p.X, p.Y)
			}
		}
	}
	return nil
}

func verdict(world *actorrep.World, clients []*client) error {
	for i, c := range clients {
		for a := range c.world.All {
			p := a.(*Player)
			fmt.Printf("client %d sees %s at (%.2f, %.2f) after %d moves\n", i+1, p.Name, p.X, p.Y, p.moves)
		}
	}
	if err := compare(world, clients); err != nil {
		return err
	}
	if world.Len() != 2 {
		return fmt.Errorf("%d players joined", world.Len())
	}
	_, err := fmt.Println("PASS: both clients see both players where the server has them")
	return err
}
