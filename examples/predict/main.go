// Predict shows the low-level parts by themselves, on a wire of its own, without driver and actors: for those who build on them. A game has all this by tags on
// its actors instead; see step 6 of the guide, and examples/tanks.
//
// It is a character that moves at once although its server is 200 ms away, and 5 % of the datagrams
// get lost. All runs in virtual time over a simulated network: a player with package prediction, the server,
// and a watcher who sees the character through package interpolation and shoots at what it sees, which
// the server judges with package rewind. Package netclock tells the watcher how old its picture is.
//
// Three times the server pushes the character, which no client can know before. Printed are the
// time from an input to the screen with and without prediction, the corrections, a strip of the
// server's, the player's and the watcher's idea of the character, and a verdict.
//
//	go run ./examples/predict
//	go run ./examples/predict -rtt 80ms -loss 20 -jitter 30ms -seed 7
//	go run ./examples/predict -cheat            # the player's clock runs half as fast again
//
// The exit code is 0 when inputs are felt in the same frame, corrections are small, and all ends agree
// once the player stands; with -cheat when the server was not outrun.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// options are the command line's.
type options struct {
	rtt, jitter time.Duration
	loss        float64
	seed        uint64
	cheat       bool
}

func main() {
	var o options
	flag.DurationVar(&o.rtt, "rtt", 200*time.Millisecond, "round trip, up to 600ms")
	flag.Float64Var(&o.loss, "loss", 5, "percentage of datagrams lost each way, 0 to 40")
	flag.DurationVar(&o.jitter, "jitter", 10*time.Millisecond, "what each way's delay varies by, up and down, up to 100ms")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the network and of the player")
	flag.BoolVar(&o.cheat, "cheat", false, "let the player's clock run half as fast again")
	flag.Parse()
	if flag.NArg() > 0 || o.rtt < 0 || o.rtt > 600*time.Millisecond || !(o.loss >= 0 && o.loss <= 40) || o.jitter < 0 || o.jitter > 100*time.Millisecond {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if err := play(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// network is what each way of a path does.
func (o *options) network() netsim.Settings {
	return netsim.Settings{Loss: o.loss, LagMin: max(0, o.rtt/2-o.jitter), LagMax: o.rtt/2 + o.jitter}
}
