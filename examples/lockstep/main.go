// Lockstep plays a small battle on four machines at once: four players, 200 units, integers only.
// The machines exchange nothing but commands (channel/lockstep), over a simulated network
// that loses 10 % of the packets, in virtual time. After every turn the states of
// all four must be the same.
//
//	go run ./examples/lockstep
//	go run ./examples/lockstep -desync          # machine 2 gets one unit wrong, and is found out
//	go run ./examples/lockstep -loss 30 -lag 120ms -map
//	go run ./examples/lockstep -over link       # the same over channel/lockstep/link
//
// Without -desync a second game follows, among strangers: one lies, one stalls, one leaves, and it goes on.
//
// The exit code is 0 when all turns agreed; with -desync when the report named the right
// turn and player, and the machine was whole again after replaying the log.
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
	seed   uint64
	turns  int64
	loss   float64
	lag    time.Duration
	desync bool
	link   bool
	maps   bool

	strangers bool // three of four players misbehave
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the network and of the players")
	flag.Int64Var(&o.turns, "turns", 600, "turns to play, 200 to 100000")
	flag.Float64Var(&o.loss, "loss", 10, "percentage of packets lost, 0 to 50")
	flag.DurationVar(&o.lag, "lag", 40*time.Millisecond, "one way delay, up to 400ms; it varies by half of that")
	flag.BoolVar(&o.desync, "desync", false, "get one unit wrong on machine 2")
	flag.BoolVar(&o.maps, "map", false, "draw the battle as it goes")
	over := flag.String("over", "datagrams", "transport: datagrams or link")
	flag.Parse()
	o.link = *over == "link"
	if flag.NArg() > 0 || o.turns < 200 || o.turns > 100000 || !(o.loss >= 0 && o.loss <= 50) || o.lag < 0 || o.lag > 400*time.Millisecond ||
		!o.link && *over != "datagrams" {
		fmt.Fprintln(os.Stderr, "a flag is out of range, or an argument follows the flags; see -help")
		os.Exit(2)
	}
	err := play(os.Stdout, o)
	if err == nil && !o.desync {
		err = strangers(os.Stdout, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// network is what both directions of each machine's path do.
func (o *options) network() netsim.Settings {
	return netsim.Settings{Loss: o.loss, Dup: 2, Order: 5, LagMin: o.lag * 3 / 4, LagMax: o.lag * 5 / 4}
}
