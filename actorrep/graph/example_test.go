package graph_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/graph"
	"github.com/bunchnet/bunchnet/netconn"
)

// Soldier is somewhere, and on a team.
type Soldier struct {
	actorrep.Base
	X, Y actorrep.Var[float32] `net:""`
	Team actorrep.Var[uint8]   `net:""`
}

// Location is what the grid goes by.
func (s *Soldier) Location() (x, y, z float64) { return float64(s.X.Get()), float64(s.Y.Get()), 0 }

// Radio is heard by its team, wherever that is.
type Radio struct {
	actorrep.Base
	Team actorrep.Var[uint8]  `net:""`
	Said actorrep.Var[string] `net:""`
}

// Soldiers are seen by who is near, radios by their team.
func Example() {
	teams := &graph.Rooms{Of: func(a actorrep.Actor, rooms []graph.Room) []graph.Room {
		return append(rooms, graph.Room(a.(*Radio).Team.Get()))
	}}
	g := &graph.Graph{
		Nodes: []graph.Node{&graph.Grid{}, teams},
		Route: func(a actorrep.Actor) graph.Node {
			if _, is := a.(*Radio); is {
				return teams
			}
			return nil // as its settings say: the grid
		},
		Far: 4, // what is far goes out in every fourth Step
	}
	world := actorrep.NewServer(actorrep.Config{Relevancy: g.Relevancy})
	check(world.Register("soldier", (*Soldier)(nil), actorrep.CullDistance(150)))
	check(world.Register("radio", (*Radio)(nil)))

	conn, err := netconn.New(netconn.Config{Server: true, Channels: world.ChannelTypes(), LowLevelSend: func([]byte) {}}, 0, 1, 1)
	check(err)
	player := world.AddConn(conn)
	player.SetViewpoint(0, 0, 0)
	check(teams.SetPeer(player, 2))

	soldier, radio := &Soldier{}, &Radio{}
	soldier.X.Set(120)
	radio.Team.Set(1)
	check(world.Spawn(soldier))
	check(world.Spawn(radio))

	show := func(now time.Duration) {
		world.Step(now)
		fmt.Printf("soldier %-5v %s\n", player.IsRelevant(soldier), g.ExplainRelevancy(player, soldier))
		fmt.Printf("radio   %-5v %s\n", player.IsRelevant(radio), g.ExplainRelevancy(player, radio))
	}
	show(1 * time.Second)
	soldier.X.Set(400)
	radio.Team.Set(2)
	show(2 * time.Second)
	// Output:
	// soldier true  within range, seen as far: 120 away, seen within 150
	// radio   false in other rooms: it is in [1], the connection in [2]
	// soldier false out of range by 250: 400 away, seen within 150
	// radio   true  in the same room: it is in [2], the connection in [2]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
