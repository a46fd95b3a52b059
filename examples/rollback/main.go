// Rollback plays the same game twice over the same bad network, in virtual time: in lockstep, where an input waits until everybody has it, and with
// rollback, where it is felt at once and the other's moves are corrected as they come. Two players push each other about a ring, 60 frames
// a second.
//
//	go run ./examples/rollback
//	go run ./examples/rollback -loss 10 -seconds 300
//
// For each round trip it prints how long a key takes until it moves the own player (felt), how long the game stood still, and what was
// seen of corrections: how often the other player jumped, and how far, in pixels of a ring of 400. The bars are the felt delay.
//
// The exit code is 0 when both machines came to the same states in every game and the own key was felt within three frames with rollback,
// however long the round trip.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/examples/rollback/ring"
)

var roundTrips = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond}

func main() {
	var o ring.Options
	flag.Uint64Var(&o.Seed, "seed", 1, "seed of the network and of the players")
	flag.IntVar(&o.Seconds, "seconds", 60, "length of each game, 5 to 3600")
	flag.Float64Var(&o.Loss, "loss", 2, "percentage of packets lost, 0 to 30")
	flag.Parse()
	if flag.NArg() > 0 || o.Seconds < 5 || o.Seconds > 3600 || !(o.Loss >= 0 && o.Loss <= 30) {
		fmt.Fprintln(os.Stderr, "a flag is out of range, or an argument follows the flags; see -help")
		os.Exit(2)
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// run plays all games and gives the verdict.
func run(out io.Writer, o ring.Options) error {
	fmt.Fprintf(out, "2 players, %d frames a second, %d s a game, %g %% loss\n\n", int(time.Second/ring.FrameTime), o.Seconds, o.Loss)
	fmt.Fprintln(out, "round trip               felt, ms                                 stood still  jumps a second  px, mean  px, largest  frames back")
	slowest := time.Duration(0)
	for _, rtt := range roundTrips {
		for i, play := range []func(ring.Options, time.Duration) (ring.Figures, error){ring.Lockstep, ring.Rollback} {
			name := []string{"lockstep", "rollback"}[i]
			f, err := play(o, rtt)
			if err != nil {
				return fmt.Errorf("%s, round trip %v: %w", name, rtt, err)
			}
			fmt.Fprintf(out, "%10v  %-9s  %5.0f %-32s %9.1f %% %15.1f %9.1f %12d %12d\n", rtt, name, ms(f.Felt), bar(f.Felt), 100*f.Still,
				f.Jumps, f.MeanJump, f.LargestJump, f.Deepest)
			if name == "rollback" {
				slowest = max(slowest, f.Felt)
			}
		}
	}
	if slowest > 3*ring.FrameTime {
		return fmt.Errorf("with rollback a key was felt after %v", slowest)
	}
	fmt.Fprintf(out, "\nPASS: the machines agreed in every game, and with rollback a key was felt after %.0f ms at most\n", ms(slowest))
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// bar draws a delay, 10 ms a mark.
func bar(d time.Duration) string { return strings.Repeat("#", int(d/(10*time.Millisecond))) }
