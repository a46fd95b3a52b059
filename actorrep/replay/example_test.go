package replay_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

// Kite is an actor that rises.
type Kite struct {
	actorrep.Base
	Height float64 `net:"q=0.1"`
}

// A game of ten seconds is recorded, and looked at from its middle on.
func ExampleRecord() {
	server := actorrep.NewServer(actorrep.Config{})
	kite := &Kite{}
	check(server.Register("Kite", kite))
	check(server.Spawn(kite))

	var file bytes.Buffer
	rec, err := replay.Record(server, &file, replay.Config{Note: "a windy day"})
	check(err)
	for now := time.Duration(0); now <= 10*time.Second; now += 50 * time.Millisecond {
		kite.Height = now.Seconds()
		server.Step(now)
	}
	check(rec.Close())

	replay, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	check(err)
	client := actorrep.NewClient(actorrep.Config{Spawned: func(a actorrep.Actor) { fmt.Println("a kite appears") }})
	check(client.Register("Kite", (*Kite)(nil)))
	check(replay.Play(client))
	fmt.Println(replay.Note(), replay.Duration())
	check(replay.Seek(5 * time.Second))
	check(replay.SetSpeed(4))
	for now := time.Duration(0); now <= time.Second; now += time.Second / 2 {
		check(replay.Step(now))
		fmt.Printf("%v: %.1f\n", replay.Position(), client.Find(kite.GUID()).(*Kite).Height)
	}
	// Output:
	// a windy day 10s
	// a kite appears
	// 5s: 5.0
	// 7s: 7.0
	// 9s: 9.0
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
