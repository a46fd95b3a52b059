// Web measures by what way a player in a browser is best off: 60 messages a second, reliable and in order, are echoed to a real Chromium by
// WebTransport and by WebSocket, and to a native client by UDP, at once, through one bad network of IP packets, in which TCP and QUIC have to live
// as well. It needs Linux, root and Chromium.
//
//	go run .                      50 ms each way; 0, 1 and 5 % of packets lost each way; a minute each
//	go run . -csv /tmp/web.csv    and the curves, for bench/plot
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"time"
)

// options are the command line's.
type options struct {
	seconds int
	losses  []float64
	delay   time.Duration
	csv     string
	seed    uint64
}

func main() {
	o := options{losses: []float64{0, 1, 5}}
	flag.IntVar(&o.seconds, "seconds", 60, "how long each loss is measured, 5 to 3600")
	flag.DurationVar(&o.delay, "delay", 50*time.Millisecond, "one way, up to 500ms")
	flag.StringVar(&o.csv, "csv", "", "file for the curves; bench/plot draws them")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the network")
	flag.Parse()
	if flag.NArg() > 0 || o.seconds < 5 || o.seconds > 3600 || o.delay < 0 || o.delay > 500*time.Millisecond {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// result is what one way took at one loss.
type result struct {
	way  string
	loss float64
	took []float64 // milliseconds, sorted
}

// at is a quantile.
func (r result) at(q float64) float64 { return r.took[int(q*float64(len(r.took)-1))] }

func run(ctx context.Context, out io.Writer, o options) error {
	rig, err := newRig(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "60 messages a second echoed for %d s, reliable and in order, %v each way; ms\n\n", o.seconds, o.delay)
	fmt.Fprintln(out, "lost each way  way           messages     p50     p99   p99.9     max")
	var all []result
	for _, loss := range o.losses {
		rs, err := rig.measure(ctx, o, loss)
		if err != nil {
			return err
		}
		for _, r := range rs {
			slices.Sort(r.took)
			if r.at(0) < 2*o.delay.Seconds()*1000 {
				return fmt.Errorf("%s was quicker than the network: %.1f ms", r.way, r.at(0))
			}
			fmt.Fprintf(out, "%11.0f %%  %-12s  %8d  %6.0f  %6.0f  %6.0f  %6.0f\n", r.loss, r.way, len(r.took), r.at(0.5), r.at(0.99), r.at(0.999), r.at(1))
		}
		all = append(all, rs...)
	}
	if o.csv == "" {
		return nil
	}
	return save(o.csv, all)
}

// save writes curves: milliseconds over how rare it is that a message takes longer.
func save(path string, all []result) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	err = w.Write([]string{"y", "x", "curve", "at", "value"})
	for _, r := range all {
		for i := range 31 {
			nines := float64(i) / 10
			err = errors.Join(err, w.Write([]string{fmt.Sprintf("ms, %.0f %% lost", r.loss), "1 of 10^x messages takes longer", r.way, fmt.Sprintf("%.1f", nines),
				fmt.Sprintf("%.1f", r.at(1-math.Pow(10, -nines)))}))
		}
	}
	w.Flush()
	return errors.Join(err, w.Error(), f.Close())
}
