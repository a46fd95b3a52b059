package travel_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/travel"
)

// Both ends of a game: the server travels, and the client says when it has loaded the level.
func Example() {
	// The server.
	world := actorrep.NewServer(actorrep.Config{})
	server, err := travel.NewServer(world, travel.Config{
		Stays:   func(a actorrep.Actor) bool { _, hero := a.(*Hero); return hero },
		Arrived: func(m string) { fmt.Println("all are in the", m) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The client.
	mirror := actorrep.NewClient(actorrep.Config{})
	client, err := travel.NewClient(mirror, func(m string) { fmt.Println("load the", m) })
	if err != nil {
		fmt.Println(err)
		return
	}

	if err := server.To("desert"); err != nil {
		fmt.Println(err)
	}
	for now := time.Duration(0); server.Traveling(); now += time.Second / 30 {
		// driver: TickDispatch; Joined calls world.AddConn
		server.Step(now)
		world.Step(now)
		mirror.Step(now) // in another process
		client.Step()
		client.Ready(server.Map()) // once what load began is done
	}
	// Output: all are in the desert
}
