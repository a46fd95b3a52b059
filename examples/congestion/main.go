// Congestion runs three rate controllers over the same simulated links, in virtual time, and compares what they make of them: the
// rate that gets through and the queue that builds up. With -draw it draws both over time.
//
//	go run ./examples/congestion
//	go run ./examples/congestion -draw
//	go run ./examples/congestion -link drop -controller adaptive -tick 30 -ack 200ms
//	go run ./examples/congestion -csv curves.csv   # for bench/plot
//	go run ./examples/congestion -paths            # Adaptive on a table of 640 paths
//
// Each game sends 1000-byte packets, as many as its controller allows, in bursts at its
// tick. The peer acks at its own pace.
//
// The verdict, and the exit code, is on the default for the internet, congestion.Adaptive:
// 90 % of the link, half of the packets queued for less than 30 ms, and a second flow that
// gets its share (Jain's index 0.9; over many seeds it is 0.99 on average).
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

func main() {
	only := flag.String("link", "", "run only the link whose name contains this")
	controller := flag.String("controller", "", "run only the controller whose name contains this")
	seed := flag.Uint64("seed", 1, "seed of the network and of the games' ticks")
	hz := flag.Float64("tick", 60, "ticks a second of the games")
	ack := flag.Duration("ack", 0, "time between a peer's acks; 0 for its tick")
	csv := flag.String("csv", "", "write the curves to a file")
	curves := flag.Bool("draw", false, "draw rates and queues over time, above the table")
	every := flag.Bool("paths", false, "print the table of paths that Adaptive is held to")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	if *every {
		if !everyPath(os.Stdout, *seed, paths.Table(true)) {
			os.Exit(1)
		}
		return
	}
	if !(*hz > 0 && *hz <= 1000) || *ack < 0 {
		fmt.Fprintln(os.Stderr, "-tick must be above 0 and at most 1000, -ack not negative")
		os.Exit(2)
	}
	style := style{tick: time.Duration(float64(time.Second) / *hz), ack: *ack}
	if style.ack == 0 {
		style.ack = style.tick
	}
	runs := runAll(*seed, style, *only, *controller)
	if len(runs) == 0 {
		fmt.Fprintln(os.Stderr, "no link or no controller of that name")
		os.Exit(2)
	}
	if *curves {
		for i := range runs {
			draw(os.Stdout, &runs[i], i == 0 || runs[i].link != runs[i-1].link)
		}
	}
	if *csv != "" {
		if err := writeCSV(*csv, runs); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	table(os.Stdout, runs)
	good, err := verdict(os.Stdout, runs)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !good || err != nil {
		os.Exit(1)
	}
}

func runAll(seed uint64, s style, only, controller string) []run {
	var runs []run
	for i := range links {
		for _, k := range kinds {
			if strings.Contains(links[i].name, only) && strings.Contains(k.name, controller) {
				runs = append(runs, simulate(seed, &links[i], k, s))
			}
		}
	}
	return runs
}
