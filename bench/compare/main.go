// Compare runs the same workloads over this module and its peers, side by side, and prints tables:
//
//	go run . -w w1,w2,w3,w4,w5,w6,w7,r1  everything; about 80 minutes
//	go run . -w w1 -quick         a first look
//	go run -tags enet .           with ENet, where libenet-dev is installed
//
// See README.md for what the workloads are, and ../README.md for figures.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// settings is the command line.
type settings struct {
	workloads, only, out string
	serve, serverProfile string
	clients, size        int
	shards               int
	light                bool
	profile              string
	quick, verbose       bool
	burst, together      bool
	length, pauses       time.Duration
	parallel             int
	seed                 uint64
	rate                 int
	loss                 float64
	row                  string
}

var allWorkloads = []string{"w1", "w2", "w3", "w4", "w5", "w6", "w7", "r1"}

func main() {
	var s settings
	flag.StringVar(&s.workloads, "w", strings.Join(allWorkloads, ","), "workloads, with commas")
	flag.StringVar(&s.only, "peers", "", "peers by name, with commas; all by default")
	flag.StringVar(&s.out, "csv", "", "directory for the curves, which bench/plot draws; none by default")
	flag.BoolVar(&s.quick, "quick", false, "fewer and shorter measurements")
	flag.BoolVar(&s.verbose, "v", false, "say what is being measured")
	flag.DurationVar(&s.length, "length", 0, "how long W1 measures a point (default 30s, 4s with -quick)")
	flag.DurationVar(&s.pauses, "pauses", 0, "only the collector's pauses of R1 at its default, for so long")
	flag.IntVar(&s.parallel, "parallel", 4, "points of W1 measured at a time")
	flag.StringVar(&s.profile, "cpuprofile", "", "file for a CPU profile of all that is run")
	flag.StringVar(&s.serverProfile, "serverprofile", "", "file for a CPU profile of W3's last server")
	flag.StringVar(&s.serve, "serve", "", "be the server of W3 for this peer")
	flag.IntVar(&s.clients, "clients", 0, "only this number of clients in W3")
	flag.IntVar(&s.shards, "shards", 1, "drivers of our servers in W3")
	flag.BoolVar(&s.light, "light", false, "light clients in W3, of bunchnet-0")
	flag.IntVar(&s.size, "size", 0, "only messages of this many bytes in W2 and W7")
	flag.IntVar(&s.rate, "rate", 0, "only this rate of W1, and W3's, in messages a second")
	flag.StringVar(&s.row, "row", "", "only the rows of W5 and W6 whose names contain this")
	flag.BoolVar(&s.burst, "burst", false, "only W1's losses in bursts")
	flag.BoolVar(&s.together, "together", false, "only W1's messages that are written ten at a moment")
	flag.Float64Var(&s.loss, "loss", -1, "only this loss of W1, in percent")
	flag.IntVar(&kcpWindow, "kcp-window", kcpWindow, "packets that kcp-go has in flight")
	flag.Uint64Var(&s.seed, "seed", 1, "seed of the network")
	flag.Parse()
	if flag.NArg() > 0 || kcpWindow < 32 || s.shards < 1 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if err := run(os.Stdout, s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(w io.Writer, s settings) error {
	if s.length == 0 {
		s.length = 30 * time.Second
		if s.quick {
			s.length = 4 * time.Second
		}
	}
	log := io.Discard
	if s.verbose {
		log = os.Stderr
	}
	if s.serve != "" {
		return serve(w, os.Stdin, s.serve, s.profile, s.rate, s.shards)
	}
	stop, err := startProfile(s.profile)
	if err != nil {
		return err
	}
	defer stop()
	all, err := choose(w, s.only)
	if err != nil {
		return err
	}
	workloads := strings.Split(s.workloads, ",")
	for _, name := range workloads {
		if !slices.Contains(allWorkloads, name) {
			return fmt.Errorf("no workload %q: %s", name, strings.Join(allWorkloads, ", "))
		}
	}
	if s.out != "" {
		if err := writable(s.out); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%s, %s/%s, %d CPUs\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	var r results
	for _, name := range workloads {
		switch name {
		case "w1":
			r.latency = runW1(log, all, s)
			printW1(w, r.latency)
		case "w2":
			r.throughput = runW2(log, all, s)
			printW2(w, r.throughput)
		case "w3":
			r.many = runW3(log, all, s)
			printW3(w, r.many)
		case "w4":
			printW4(w, runW4(log, s))
		case "w5":
			printW5(w, runW5(log, s))
		case "w6":
			printW6(w, runW6(log, s))
		case "w7":
			printW7(w, runW7(log, all, s))
		case "r1":
			r.replication = runR1(log, s)
			printR1(w, r.replication)
		}
		if s.out != "" {
			err = errors.Join(err, r.write(s.out, name)) // what is measured next has its table still
		}
	}
	return err
}

// startProfile begins a CPU profile, if it is to be one.
func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}

// choose returns the peers that are wanted and can be had.
func choose(w io.Writer, only string) ([]*Peer, error) {
	var names []string
	if only != "" {
		names = strings.Split(only, ",")
	}
	var all []*Peer
	for _, p := range peers() {
		i := slices.Index(names, p.Name)
		if i >= 0 {
			names = slices.Delete(names, i, i+1)
		} else if only != "" {
			continue
		}
		if p.Missing != "" {
			fmt.Fprintf(w, "%s skipped: %s\n", p.Name, p.Missing)
			continue
		}
		all = append(all, p)
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("no peer %q", names)
	}
	return all, nil
}
