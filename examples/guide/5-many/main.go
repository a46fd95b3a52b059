// Step 5 of the guide: many actors. Ten thousand coins lie about; a client knows the few near its player. Coins
// sleep: what doesn't change costs nothing, until somebody takes it.
//
//	go run ./examples/guide/5-many
package main

import (
	"fmt"
	"math"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/graph"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Player walks along the field.
type Player struct {
	actorrep.Base
	X, Y  float64 `net:"q=0.01"`
	Coins int     `net:""`
}

// Coin lies somewhere.
type Coin struct {
	actorrep.Base
	X, Y  float64 `net:"q=0.01,initial"`
	Taken bool    `net:""`
}

// Location says where an actor is: the grid and the view go by it.
func (p *Player) Location() (x, y, z float64) { return p.X, p.Y, 0 }

// Location is the coin's.
func (c *Coin) Location() (x, y, z float64) { return c.X, c.Y, 0 }

const (
	side = 100 // coins in a row, five metres apart
	gap  = 5.0
	cull = 30.0 // metres that coins are seen from
)

func register(w *actorrep.World) error {
	if err := w.Register("Player", (*Player)(nil), actorrep.AlwaysRelevant()); err != nil {
		return err
	}
	return w.Register("Coin", (*Coin)(nil), actorrep.CullDistance(cull))
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
	g := &graph.Graph{} // with a grid: who sees what is looked up, not tried out
	world := actorrep.NewServer(actorrep.Config{Relevancy: g.Relevancy, RelevantTimeout: time.Second / 2})
	if err := register(world); err != nil {
		return err
	}
	var coins []*Coin
	for i := range side * side {
		c := &Coin{X: gap * float64(i%side), Y: gap * float64(i/side)}
		if err := world.Spawn(c); err != nil {
			return err
		}
		if err := c.SetDormant(true); err != nil { // asleep: not compared, and its channel is closed
			return err
		}
		coins = append(coins, c)
	}
	player := &Player{Y: 250}
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Channels: world.ChannelTypes(), Joined: func(c *driver.Conn) {
		peer := world.AddConn(c)
		player.SetOwner(peer)
		peer.SetViewTarget(player) // the client sees from where its player is
		if err := world.Spawn(player); err != nil {
			fmt.Println(err)
		}
	}})
	if err != nil {
		return err
	}
	defer srv.Close()
	client := actorrep.NewClient(actorrep.Config{})
	if err := register(client); err != nil {
		return err
	}
	cl, err := driver.Dial(srv.LocalAddr().String(), driver.Config{Channels: client.ChannelTypes()})
	if err != nil {
		return err
	}
	defer cl.Close()

	const walking = 240 // ticks: four seconds
	walked, most := 0, 0
	for range 3600 { // a minute at most: it walks once it is there, then stands until the client sees what it should
		now := time.Now()
		srv.TickDispatch(now)
		if player.World() != nil && walked < walking {
			walked++
			player.X += 1 // sixty metres a second
			for _, c := range coins {
				if !c.Taken && math.Hypot(c.X-player.X, c.Y-player.Y) < 1 {
					c.Taken = true
					c.FlushDormancy() // tells who has it, and goes on sleeping
					player.Coins++
				}
			}
		}
		world.Step(srv.Time(now))
		srv.TickFlush(now)
		cl.TickDispatch(now)
		client.Step(cl.Time(now))
		cl.TickFlush(now)
		if err := cl.Err(); err != nil {
			return err // why it has no connection
		}
		most = max(most, client.Len())
		if walked == walking && compare(client, player, coins) == nil {
			break
		}
		time.Sleep(time.Second / 60)
	}
	fmt.Printf("the server has %d actors, the client never had more than %d\n", world.Len(), most)
	fmt.Printf("compared in all: %d actors in %d ticks; the player took %d coins\n", world.Counters.Compared, world.Frame(), player.Coins)
	if err := compare(client, player, coins); err != nil {
		return err
	}
	if player.Coins < 20 || most > 400 {
		return fmt.Errorf("%d coins taken, %d actors at the client", player.Coins, most)
	}
	_, err = fmt.Printf("PASS: the client sees what is within %.0f m, taken or not\n", cull)
	return err
}

// compare says which coin the client sees otherwise than it should.
func compare(client *actorrep.World, player *Player, coins []*Coin) error {
	for _, c := range coins {
		mirror, seen := client.Find(c.GUID()).(*Coin)
		away := math.Hypot(c.X-player.X, c.Y-player.Y)
		switch { // at the border, up to a fifth farther, it depends on whether it was seen before
		case away <= cull && !seen, away > 1.4*cull && seen:
			return fmt.Errorf("a coin %.0f m away: seen is %v", away, seen)
		case seen && mirror.Taken != c.Taken:
			return fmt.Errorf("a coin %.0f m away: taken is %v, the client has %v", away, c.Taken, mirror.Taken)
		}
	}
	return nil
}
