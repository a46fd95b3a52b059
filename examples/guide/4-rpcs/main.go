// Step 4 of the guide: players that act. A client may call procedures of what it owns, and of nothing else; the server
// runs them, checks them, and answers. How much each has is shown to its owner only.
//
//	go run ./examples/guide/4-rpcs
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Player belongs to a client.
type Player struct {
	actorrep.Base
	X     float64 `net:"q=0.01"`
	Coins int     `net:"owner"` // nobody else is told

	dir  float64 // on the server: where it goes
	news int     // on its client: how often it was told
}

// Go is called by the owner's client and runs at the server. The next call makes up for a lost one. An invalid one ends the connection.
var Go = actorrep.ServerRPC(func(_ actorrep.Call, p *Player, dir float64) error {
	p.dir = dir
	return nil
}).Validated(func(_ actorrep.Call, _ *Player, dir float64) bool { return dir >= -1 && dir <= 1 })

// Buy is reliable: it arrives, once, in order. An error it returns is the server's to know.
var Buy = actorrep.ServerRPC(func(_ actorrep.Call, p *Player, price int) error {
	if price < 0 || price > p.Coins {
		return errors.New("can't pay that")
	}
	p.Coins -= price
	return Bought.Call(p, p.Coins)
}, actorrep.Reliable)

// Bought goes the other way: the server calls, the owner's client runs it.
var Bought = actorrep.ClientRPC(func(_ actorrep.Call, p *Player, left int) error {
	p.news++
	fmt.Printf("%v: bought it, %d coins left\n", p.GUID(), left)
	return nil
}, actorrep.Reliable)

func register(w *actorrep.World) error {
	return w.Register("Player", (*Player)(nil), actorrep.RPCs{"Go": Go, "Buy": Buy, "Bought": Bought})
}

// client is one player's program: it goes its way, buys once, and once tries to move somebody else.
type client struct {
	net    *driver.Driver
	world  *actorrep.World
	dir    float64
	me     *Player
	bought bool
	other  error // what calling another's player came to
}

func (c *client) frame(now time.Time) error {
	c.net.TickDispatch(now)
	c.world.Step(c.net.Time(now))
	for a := range c.world.All {
		if p := a.(*Player); p.IsOwned() {
			c.me = p
		} else {
			c.other = Go.Call(p, 1)
		}
	}
	if c.me != nil {
		if err := Go.Call(c.me, c.dir); err != nil && !errors.Is(err, actorrep.ErrSaturated) {
			return err
		}
		if !c.bought {
			c.bought = true
			if err := Buy.Call(c.me, 30); err != nil {
				return err
			}
		}
	}
	c.net.TickFlush(now)
	return c.net.Err() // why it has no connection
}

func main() {
	if len(os.Args) > 1 {
		log.Fatal("it has no flags and takes no arguments")
	}
	if err := run(); err != nil {
		log.Fatal("FAIL: ", err)
	}
}

func run() error {
	world := actorrep.NewServer(actorrep.Config{})
	if err := register(world); err != nil {
		return err
	}
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Channels: world.ChannelTypes(), Joined: func(c *driver.Conn) {
		p := &Player{Coins: 100}
		p.SetOwner(world.AddConn(c)) // the connection's own: it may call, and sees Coins
		if err := world.Spawn(p); err != nil {
			fmt.Println(err)
		}
	}})
	if err != nil {
		return err
	}
	defer srv.Close()
	clients := []*client{{dir: 1}, {dir: -1}}
	for _, c := range clients {
		c.world = actorrep.NewClient(actorrep.Config{})
		if err := register(c.world); err != nil {
			return err
		}
		if c.net, err = driver.Dial(srv.LocalAddr().String(), driver.Config{Channels: c.world.ChannelTypes()}); err != nil {
			return err
		}
		defer c.net.Close()
	}
	for now, end := time.Now(), time.Now().Add(time.Minute); now.Before(end) && check(clients) != nil; now = time.Now() {
		srv.TickDispatch(now) // the clients' calls run here
		for a := range world.All {
			p := a.(*Player)
			p.X += 3 * p.dir / 60
		}
		world.Step(srv.Time(now))
		srv.TickFlush(now)
		for _, c := range clients {
			if err := c.frame(now); err != nil {
				return err
			}
		}
		time.Sleep(time.Second / 60)
	}
	for _, c := range clients {
		for a := range c.world.All {
			p := a.(*Player)
			fmt.Printf("the client that goes %+.0f sees %v at %+.1f with %d coins (its own: %v)\n", c.dir, p.GUID(), p.X, p.Coins, p.IsOwned())
		}
	}
	if err = check(clients); err == nil {
		_, err = fmt.Println("PASS: each moved its own player only;", clients[0].other)
	}
	return err
}

// check says what isn't as it should be in the end: each has gone three metres its way, and has bought once.
func check(clients []*client) error {
	for _, c := range clients {
		if c.world.Len() != 2 || c.me == nil || c.me.news != 1 || !errors.Is(c.other, actorrep.ErrNotOwner) {
			return fmt.Errorf("%d players, not one answer, or another's player moved: %v", c.world.Len(), c.other)
		}
		for a := range c.world.All {
			if p := a.(*Player); p.IsOwned() != (p.Coins == 70) || p.IsOwned() != (p.X*c.dir > 0) || p.X*p.X < 9 {
				return errors.New("it went another way, or shows its coins to others")
			}
		}
	}
	return nil
}
