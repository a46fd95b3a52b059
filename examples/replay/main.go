// Replay records a game to a file and looks at it again: all in virtual time, without a network. Ships fly about an arena, shoot,
// sleep in docks and blow up, for two minutes at 30 ticks a second, while the world is recorded ten times
// a second with a checkpoint every fifteen seconds. Then the file is opened and played into a
// client's world at four times the speed, and after that from one place to another, forward and back.
//
// Whatever time is shown, the picture must be the one that the server had: each frame while playing, each place
// after a seek. Printed are what the recording cost, what the seeks took, and a verdict.
//
//	go run ./examples/replay
//	go run ./examples/replay -seconds 600 -ships 200 -file game.replay     # keep the file
//
// The exit code is 0 when all pictures are the same.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

type options struct {
	seconds, ships int
	seed           uint64
	file           string
}

func main() {
	var o options
	flag.IntVar(&o.seconds, "seconds", 120, "how long the game is")
	flag.IntVar(&o.ships, "ships", 60, "ships in it")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the game and of the seeks")
	flag.StringVar(&o.file, "file", "", "keep the recording here")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	if o.seconds < 10 || o.ships < 2 {
		fmt.Fprintln(os.Stderr, "10 seconds and 2 ships are the least")
		os.Exit(2)
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, o options) error {
	file, err := os.CreateTemp("", "arena-*.replay")
	if o.file != "" {
		file, err = os.Create(o.file)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if o.file == "" {
		defer os.Remove(file.Name())
	}
	pictures, err := record(out, file, o)
	if err != nil {
		return err
	}
	return watch(out, file, pictures, rand.New(rand.NewPCG(o.seed, 2)))
}

// picture is the arena at a time of the recording.
type picture struct {
	at   time.Duration
	text string
}

const tick = time.Second / 30

// record plays the game and returns what there was to see in each frame of its recording.
func record(out io.Writer, file io.Writer, o options) ([]picture, error) {
	world := actorrep.NewServer(actorrep.Config{})
	if err := register(world); err != nil {
		return nil, err
	}
	rec, err := replay.Record(world, file, replay.Config{Checkpoints: 15 * time.Second, ActorsPerFrame: 64, Note: "arena"})
	if err != nil {
		return nil, err
	}
	g := &game{world: world, rng: rand.New(rand.NewPCG(o.seed, 1)), ships: o.ships}
	var pictures []picture
	spent, slowest := time.Duration(0), time.Duration(0)
	steps := o.seconds * 30
	for i := range steps {
		if err := g.tick(); err != nil {
			return nil, err
		}
		frames, start := rec.Counters.Frames, time.Now()
		world.Step(time.Duration(i) * tick)
		took := time.Since(start)
		spent, slowest = spent+took, max(slowest, took)
		if rec.Counters.Frames > frames {
			pictures = append(pictures, picture{rec.Duration(), draw(world)})
		}
	}
	if err := rec.Close(); err != nil {
		return nil, err
	}
	pictures = append(pictures, picture{rec.Duration(), draw(world)}) // Close has recorded the end
	c := rec.Counters
	size := c.Bytes
	fmt.Fprintf(out, "%-10s %d s of %d actors, %d shots, %d wrecks\n", "game", o.seconds, world.Len(), g.shots, g.wrecks)
	fmt.Fprintf(out, "%-10s %d frames, %d kB: %.1f kB/s, %.1f B a frame and actor\n", "recording", c.Frames, size/1000,
		float64(size)/1000/float64(o.seconds), float64(size)/float64(c.Frames)/float64(o.ships))
	fmt.Fprintf(out, "%-10s %d checkpoints, %d actors copied, at most %d in one step\n", "", c.Checkpoints, c.Snapshots, c.Busiest)
	fmt.Fprintf(out, "%-10s a step took %v on average and %v at most, game and recording\n", "", (spent / time.Duration(steps)).Round(100*time.Nanosecond), slowest.Round(time.Microsecond))
	return pictures, nil
}
