// Puck is a match of six players and a ball, with elastic collisions of all with all, over a bad network in virtual time: once with all predicted
// together (predict.Group), and once with each player's client predicting him alone, while ball and others are where the server's values have them.
//
//	go run ./examples/puck
//	go run ./examples/puck -rtt 200ms -loss 10 -seconds 300
//	go run ./examples/puck -png corrections.png
//
// For each stretch of the match it prints how far corrections put a player's own disc, and how far the ball was from where the player saw it: from
// where the server had it in the tick that the player's input was for, which is what counts when he kicks it. -png draws both over time.
//
// The exit code is 0 when all agree on where everything is once it stands, and corrections and the ball's error are smaller with the group by the
// factors that the last lines name.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

// options are the command line's.
type options struct {
	seed    uint64
	seconds int
	rtt     time.Duration
	loss    float64
	png     string
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the network")
	flag.IntVar(&o.seconds, "seconds", 60, "length of each match, 10 to 3600")
	flag.DurationVar(&o.rtt, "rtt", 120*time.Millisecond, "round trip, 0 to 400 ms")
	flag.Float64Var(&o.loss, "loss", 5, "percentage of packets lost, 0 to 20")
	flag.StringVar(&o.png, "png", "", "draw the corrections and the ball's error over time into this file")
	flag.Parse()
	if flag.NArg() > 0 || o.seconds < 10 || o.seconds > 3600 || o.rtt < 0 || o.rtt > 400*time.Millisecond || !(o.loss >= 0 && o.loss <= 20) {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}
