package interp_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

// Boat is sent five times a second, and drawn evenly nevertheless.
type Boat struct {
	actorrep.Base
	X       float64 `net:"q=0.01" interp:""`
	Heading float64 `net:"rot=16" interp:""`
}

// A recording is watched: what a client of the server would see.
func ExampleRegister() {
	var file bytes.Buffer
	server := actorrep.NewServer(actorrep.Config{})
	check(server.Register("Boat", (*Boat)(nil), actorrep.UpdateFrequency(5)))
	rec, err := replay.Record(server, &file, replay.Config{})
	check(err)
	boat := &Boat{Heading: 350}
	check(server.Spawn(boat))
	for tick := range 300 {
		boat.X, boat.Heading = float64(tick)/60, 350+float64(tick)/6
		server.Step(time.Duration(tick) * time.Second / 60)
	}
	check(rec.Close())

	client := actorrep.NewClient(actorrep.Config{})
	check(client.Register("Boat", (*Boat)(nil)))
	in, err := interp.New(client, interp.Config{})
	check(err)
	boats, err := interp.Register(in, interp.ClassConfig[*Boat]{})
	check(err)
	replay, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	check(err)
	check(replay.Play(client))

	var drawn Boat
	longest, before := 0.0, 0.0
	for frame := range 280 {
		now := time.Duration(frame) * time.Second / 60
		check(replay.Step(now)) // at a connection: TickDispatch and client.Step
		in.Tick(now)
		for a := range client.All {
			before = drawn.X
			boats.At(a.(*Boat), &drawn)
			if frame > 100 {
				longest = max(longest, drawn.X-before)
			}
		}
	}
	fmt.Printf("at most %.2f m from frame to frame; sent were steps of %.2f m\n", longest, 1.0/5)
	// Output: at most 0.02 m from frame to frame; sent were steps of 0.20 m
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A player shoots at what he saw. This one plays at the server, and sees the present.
func ExampleNew() {
	world := actorrep.NewServer(actorrep.Config{})
	check(world.Register("Boat", (*Boat)(nil)))
	in, err := interp.New(world, interp.Config{})
	check(err)
	boats, err := interp.Register(in, interp.ClassConfig[*Boat]{})
	check(err)
	boat := &Boat{X: 7}
	check(world.Spawn(boat))
	world.Step(0)
	in.Tick(0)
	var seen Boat
	view := in.Rewind(world.Local(), in.Seen()) // a client's Seen comes with its shot
	fmt.Println(boats.Pose(view, boat, &seen), seen.X)
	// Output: true 7
}
