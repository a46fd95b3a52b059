// Simulate plays a small arena game, server, clients and their worlds, from a thousand seeds: each draws another
// bad network and other faults. After each run every client must see exactly what the server has. It ends with a
// summary by kind of fault, and with the script of what failed.
//
//	go run ./examples/simulate
//	go run ./examples/simulate -seeds 20 -v
//	go run ./examples/simulate -seed 17      one seed, with its script
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/netconn/simtest"
)

func main() {
	seeds := flag.Uint64("seeds", 1000, "seeds to play")
	one := flag.Uint64("seed", 0, "play only this seed")
	verbose := flag.Bool("v", false, "a line for each seed")
	flag.Parse()
	if flag.NArg() > 0 || *seeds < 1 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if *one != 0 {
		s := draw(*one)
		fmt.Print(s)
		r := play(s)
		fmt.Println(&r)
		exit(r.OK())
	}
	exit(run(*seeds, *verbose))
}

func exit(ok bool) {
	if !ok {
		fmt.Println("FAIL")
		os.Exit(1)
	}
	if _, err := fmt.Println("PASS"); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// draw makes a script of a seed, play plays it.
func draw(seed uint64) simtest.Script {
	return simtest.Draw(seed, simtest.Profile{MaxClients: 4, MaxFaults: 5, Corrupt: true})
}

func play(s simtest.Script) simtest.Result {
	return simtest.Play(s, func(w *simtest.Simulation, _ *simtest.Script) (simtest.Game, error) { return newArena(w), nil })
}

// run plays seeds on all processors.
func run(seeds uint64, verbose bool) bool {
	begin := time.Now()
	sum := &summary{byKind: map[string]*line{}}
	out := make(chan chan simtest.Result, runtime.NumCPU())
	go func() {
		defer close(out)
		for seed := uint64(1); seed <= seeds; seed++ {
			one := make(chan simtest.Result, 1)
			out <- one
			go func() { one <- play(draw(seed)) }()
		}
	}()
	bar := newBar(seeds)
	for one := range out {
		r := <-one
		sum.add(&r)
		if verbose {
			fmt.Println(&r)
		} else {
			bar.show(uint64(sum.all.runs), sum.all.failures)
		}
	}
	sum.print(time.Since(begin))
	return sum.all.failures == 0
}

// bar is a progress bar: redrawn on a terminal, a few lines otherwise.
type bar struct {
	total uint64
	live  bool
	shown uint64
}

func newBar(total uint64) *bar {
	info, err := os.Stdout.Stat()
	return &bar{total: max(1, total), live: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

func (b *bar) show(done uint64, failures int) {
	step := b.total / 100
	if !b.live {
		step = b.total / 5
	}
	if done < b.total && done < b.shown+max(1, step) {
		return
	}
	b.shown = done
	const width = 50
	n := int(done * width / b.total)
	text := fmt.Sprintf("[%s%s] %4d of %d seeds, %d failures", strings.Repeat("#", n), strings.Repeat(".", width-n), done, b.total, failures)
	if b.live && done < b.total {
		fmt.Print("\r", text)
		return
	}
	if b.live {
		fmt.Print("\r")
	}
	fmt.Println(text)
}

// summary is what came of all runs.
type summary struct {
	all      line
	byKind   map[string]*line
	counters simtest.Counters
	played   time.Duration
	failed   []simtest.Result
}

type line struct{ runs, faults, failures, reconnects int }

func (s *summary) add(r *simtest.Result) {
	lines := map[string]int{}
	for _, f := range r.Script.Faults {
		lines[string(f.Kind)]++
	}
	if len(lines) == 0 {
		lines["none"] = 0
	}
	reconnects := 0
	if g, ok := r.Game.(*arena); ok {
		reconnects = g.dials - r.Script.Clients
	}
	add := func(l *line, faults int) {
		l.runs++
		l.faults += faults
		l.reconnects += reconnects
		if !r.OK() {
			l.failures++
		}
	}
	add(&s.all, len(r.Script.Faults))
	for kind, n := range lines {
		if s.byKind[kind] == nil {
			s.byKind[kind] = &line{}
		}
		add(s.byKind[kind], n)
	}
	c := &s.counters
	c.Sent += r.Counters.Sent
	c.Lost += r.Counters.Lost + r.Counters.Cut
	c.Corrupted += r.Counters.Corrupted
	c.Duplicated += r.Counters.Duplicated
	s.played += r.Took
	if !r.OK() && len(s.failed) < 3 {
		s.failed = append(s.failed, *r)
	}
}

func (s *summary) print(took time.Duration) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nfault\truns\tfaults\tnew dials\tfailures\t")
	for _, k := range append([]simtest.Kind{"none"}, simtest.Kinds...) {
		if l := s.byKind[string(k)]; l != nil {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", k, l.runs, l.faults, l.reconnects, l.failures)
		}
	}
	fmt.Fprintf(w, "all\t%d\t%d\t%d\t%d\t\n", s.all.runs, s.all.faults, s.all.reconnects, s.all.failures)
	w.Flush()
	fmt.Printf("\n%.0f s of play in %.1f s; %d datagrams, %d lost, %d repeated, %d corrupted\n",
		s.played.Seconds(), took.Seconds(), s.counters.Sent, s.counters.Lost, s.counters.Duplicated, s.counters.Corrupted)
	for i := range s.failed {
		small := simtest.Shrink(s.failed[i], 200, play, nil)
		fmt.Printf("\n%v\nshrunk to:\n%v", &s.failed[i], small.Script)
	}
}
