// Swarm plays the exercise of netconn/simtest from many seeds at once: each draws its wire, links, rate
// controllers, workloads and faults. It prints what was covered, and shrinks what fails to a script.
//
//	go run ./bench/swarm -seeds 10000
//	go run ./bench/swarm -minutes 30 -first 1000000
//	go run ./bench/swarm -seeds 1000 -only coding   those that draw an option
//	go run ./bench/swarm -seeds 1000 -way mixed     over models of WebSocket, WebTransport and ICE beside UDP
//	go run ./bench/swarm -seed 4711            one seed, with its script
//	go run ./bench/swarm -script file.txt      a script
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/simtest/exercise"
)

type options struct {
	first, seeds uint64
	minutes      float64
	jobs         int
	stop         bool
	shrink       int
	save         string
	only         string
	way          string
}

func main() {
	var o options
	flag.Uint64Var(&o.seeds, "seeds", 0, "seeds to play; 0: as many as -minutes allows, or 1000")
	flag.Uint64Var(&o.first, "first", 1, "the first seed")
	flag.Float64Var(&o.minutes, "minutes", 0, "stop after so many minutes; 0 never")
	flag.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "seeds played at once")
	flag.BoolVar(&o.stop, "stop-at-first", false, "stop at the first failure")
	flag.IntVar(&o.shrink, "shrink", 300, "runs spent on making a failing script shorter")
	flag.StringVar(&o.save, "save", "netconn/simtest/testdata", "where shrunk scripts go; empty: nowhere")
	flag.StringVar(&o.only, "only", "", "play only the seeds that draw this option")
	flag.StringVar(&o.way, "way", "", "what carries datagrams: udp, websocket, webtransport, ice or mixed; default udp")
	one := flag.Uint64("seed", 0, "play only this seed, and print its script")
	script := flag.String("script", "", "play only the script in this file")
	flag.Parse()
	if flag.NArg() > 0 || o.jobs < 1 || o.shrink < 0 || !(o.minutes >= 0) {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if o.seeds == 0 && o.minutes == 0 {
		o.seeds = 1000
	}
	ok, err := true, error(nil)
	switch {
	case *script != "":
		ok, err = playFile(*script)
	case *one != 0:
		ok = playOne(o.draw(*one))
	default:
		ok, err = swarm(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func playFile(name string) (bool, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return false, err
	}
	s, err := simtest.Parse(string(b))
	if err != nil {
		return false, err
	}
	return playOne(s), nil
}

func playOne(s simtest.Script) bool {
	fmt.Print(s)
	r := exercise.Play(s)
	fmt.Printf("%v\n%+v\n", &r, r.Counters)
	if g, ok := r.Game.(*exercise.Game); ok {
		fmt.Printf("%+v\n", g.Counters)
	}
	return r.OK()
}

// swarm plays seeds until there have been enough, and says what came of it.
func swarm(o options) (bool, error) {
	if err := o.drawn(); err != nil {
		return false, err
	}
	begin := time.Now()
	t := newTally()
	var failed []simtest.Result
	next := begin
	for r := range results(o) {
		t.add(&r)
		if !r.OK() {
			fmt.Printf("\nFAIL %v\n", &r)
			failed = append(failed, r)
			if o.stop {
				break
			}
		}
		if now := time.Now(); now.After(next) {
			next = now.Add(5 * time.Second)
			fmt.Printf("%7.1f s  %6d seeds  %9d datagrams  %8.0f s of play  %d failures\n", now.Sub(begin).Seconds(), t.runs, t.sent, t.played.Seconds(), len(failed))
		}
	}
	t.print(time.Since(begin))
	for i := range failed {
		if i == 5 || o.shrink == 0 {
			break
		}
		if failed[i].Failure.Checker == "hang" {
			fmt.Print(failed[i].Script)
			continue
		}
		if err := report(&failed[i], o); err != nil {
			return false, err
		}
	}
	if len(failed) > 0 {
		fmt.Printf("FAIL: %d of %d seeds\n", len(failed), t.runs)
		return false, nil
	}
	if t.runs == 0 {
		return false, errors.New("no seed was played")
	}
	_, err := fmt.Printf("PASS: %d seeds\n", t.runs)
	return true, err
}

// drawn returns an error for an option that no seed draws.
func (o *options) drawn() error {
	if o.only == "" {
		return nil
	}
	known := map[string]bool{}
	for seed := range uint64(1000) {
		s := exercise.Draw(seed)
		for _, d := range s.Options {
			known[d.Key] = true
		}
	}
	if !known[o.only] {
		return fmt.Errorf("no seed draws %q; they draw %s", o.only, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return nil
}

// draw is a seed's script.
func (o *options) draw(seed uint64) simtest.Script {
	s := exercise.Draw(seed)
	if o.way != "" {
		s.Set("way", o.way)
	}
	return s
}

// results plays seeds on all processors and hands the results over in the order of the seeds.
func results(o options) func(yield func(simtest.Result) bool) {
	return func(yield func(simtest.Result) bool) {
		var until time.Time
		if o.minutes > 0 {
			until = time.Now().Add(time.Duration(o.minutes * float64(time.Minute)))
		}
		type job struct {
			script simtest.Script
			out    chan simtest.Result
		}
		pending := make(chan job, o.jobs-1)
		quit := make(chan struct{})
		defer close(quit)
		go func() {
			defer close(pending)
			played := uint64(0)
			for seed := o.first; (o.seeds == 0 || played < o.seeds) && (until.IsZero() || time.Now().Before(until)); seed++ {
				j := job{o.draw(seed), make(chan simtest.Result, 1)}
				if o.only != "" && j.script.Option(o.only) == "" {
					continue
				}
				played++
				select {
				case pending <- j:
				case <-quit:
					return
				}
				go func() { j.out <- exercise.Play(j.script) }()
			}
		}()
		for j := range pending {
			if !yield(await(j.out, j.script)) {
				return
			}
		}
	}
}

// hangAfter is far longer than any seed takes, also on a machine with much else to do: at nice 19 beside a load of 45 seeds of 0.2 s have
// taken more than a minute.
const hangAfter = 5 * time.Minute

// await is a script's result, or that it has none.
func await(out chan simtest.Result, s simtest.Script) simtest.Result {
	select {
	case r := <-out:
		return r
	case <-time.After(hangAfter):
		return simtest.Result{Script: s, Failure: &simtest.Failure{Checker: "hang", Text: "no end after " + hangAfter.String()}}
	}
}

// report shrinks a failure and saves it as a script.
func report(r *simtest.Result, o options) error {
	fmt.Printf("\nshrinking seed %d (%s)\n", r.Script.Seed, r.Failure.Checker)
	small := simtest.Shrink(*r, o.shrink, exercise.Play, nil)
	small.Script.Comment = []string{
		fmt.Sprintf("Shrunk from seed %d. What it found, before that was mended:", r.Script.Seed),
		firstLine(small.Failure.String()),
	}
	fmt.Print(small.Script)
	if o.save == "" {
		return nil
	}
	name := filepath.Join(o.save, fmt.Sprintf("seed-%d.txt", r.Script.Seed))
	fmt.Println("saved as", name)
	return os.WriteFile(name, []byte(small.Script.String()), 0o644)
}

func firstLine(s string) string {
	for i, c := range s {
		if c == '\n' {
			return s[:i]
		}
	}
	return s
}
