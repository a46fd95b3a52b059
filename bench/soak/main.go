// Soak keeps 200 clients joining, playing and leaving for as long as it is told, over real sockets and through proxies that do
// to datagrams all that a network may: loss, bursts, repeats, reordering, damage, delay, jitter, little bandwidth, a small
// MTU, outages, and clients whose address changes. There is a server for each kind of link. All at once each client sends
// numbered bunches, messages in three modes, blocks and streams, calls procedures of its actor, watches the actors of
// the others and plays turns in step.
//
//	go run ./bench/soak -duration 30m
//	go run ./bench/soak -duration 20s -clients 50
//	go run ./bench/soak -duration 5m -csv /tmp/soak.csv
//	cd bench/plot && go run . -in /tmp/soak.csv -svg /tmp/soak.svg
//
// On a machine that can't keep up the soak's time goes slower: no tick is worth more than two intervals, so that no time-out is the
// machine's. Everything is checked where it arrives: nothing lost, doubled, damaged or out of order, every client's actors the
// server's, all hashes of turns equal, connections ended by nobody but whom the plan says. Memory, goroutines and file
// descriptors are sampled; they must stay level, and be back where they began when all have left. The exit code is 0 when
// all of that held.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// options are the command line's.
type options struct {
	duration time.Duration
	clients  int
	rate     int
	seed     uint64
	csv      string
	polite   bool          // nobody vanishes, so that the end needn't wait until servers have noticed
	interval time.Duration // of progress lines
	live     bool          // they overwrite each other
}

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", 5*time.Minute, "how long clients come and go; then all leave")
	flag.IntVar(&o.clients, "clients", 200, "clients at a time, 1 to 600")
	flag.IntVar(&o.rate, "rate", 20, "ticks a second, 5 to 120")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the networks and of what clients do")
	flag.StringVar(&o.csv, "csv", "", "file for the samples, for the plot")
	flag.Parse()
	if flag.NArg() > 0 || o.clients < 1 || o.clients > 600 || o.rate < 5 || o.rate > 120 || o.duration <= 0 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	o.interval = 10 * time.Second
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		o.interval, o.live = 500*time.Millisecond, true
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// run is the whole soak and its verdict.
func run(out io.Writer, o options) error {
	base, err := baseline()
	if err != nil {
		return err
	}
	s, err := newSoak(o)
	if err != nil {
		return err
	}
	base.heap = measure().heap // with servers and networks
	fmt.Fprintf(out, "%d clients at a time, %d servers, %d networks each, %d ticks a second, %v, seed %d\n",
		o.clients, len(s.servers), len(kinds), o.rate, o.duration, o.seed)
	err = s.play(out)
	if cerr := s.close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	s.samples = append(s.samples, sample{at: s.now.Sub(s.start), resources: measure()})
	if o.csv != "" {
		if err := s.writeCSV(o.csv); err != nil {
			return err
		}
	}
	s.table(out)
	s.check(base)
	return s.verdict(out)
}

// play ticks until the time is up and all have left.
func (s *soak) play(out io.Writer) error {
	t := time.NewTicker(time.Second / time.Duration(s.o.rate))
	defer t.Stop()
	line, last := s.start, time.Now()
	for real := range t.C {
		now := s.now.Add(min(real.Sub(last), s.longest()))
		last = real
		if err := s.step(now); err != nil {
			return err
		}
		if now.After(line) {
			line = now.Add(s.o.interval)
			s.progress(out)
		}
		at := now.Sub(s.start)
		switch {
		case at < s.o.duration:
		case len(s.clients) == 0 && s.connections() == 0:
			return nil
		case at > s.o.duration+patience:
			s.problem("%d clients and %d connections were left %v after the end", len(s.clients), s.connections(), patience)
			return nil
		}
	}
	return nil
}

// patience is how long the last clients may take to hear everything and leave, or be found out to have vanished.
const patience = 90 * time.Second

// progress is one line.
func (s *soak) progress(out io.Writer) {
	r := s.last.resources
	begin, end := "", "\n"
	if s.o.live {
		begin, end = "\x1b[?7l", "\x1b[K\r\x1b[?7h" // cut at the terminal's width
	}
	n := s.totals()
	fmt.Fprintf(out, "%s%7.1f s  %d problems  %3d clients, %d came, %d left  %d bunches, %d messages, %d blocks, %d streams, %d calls, %d turns  %.1f MB, %d goroutines, %d files%s",
		begin, s.now.Sub(s.start).Seconds(), s.problems(), len(s.clients), s.came, s.left, n.numbers, n.messages, n.blocks, n.streams, n.calls, n.turns,
		float64(r.heap)/1e6, r.goroutines, r.files, end)
}
