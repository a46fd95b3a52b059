package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// resources is what a process has taken.
type resources struct {
	heap       int64 // bytes, garbage left out
	goroutines int
	files      int // descriptors; 0 where they can't be counted
}

// sample is that at a time.
type sample struct {
	at time.Duration
	resources
	clients, connections int
}

func measure() resources {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r := resources{heap: int64(m.HeapAlloc), goroutines: runtime.NumGoroutine()}
	if dir, err := os.ReadDir("/proc/self/fd"); err == nil {
		r.files = len(dir)
	}
	return r
}

// baseline is what a process has when nobody plays, the runtime's own poller included.
func baseline() (resources, error) {
	s, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err != nil {
		return resources{}, err
	}
	return measure(), s.Close()
}

// take samples, a hundred times a run or once a second.
func (s *soak) take() {
	at := s.now.Sub(s.start)
	if len(s.samples) > 0 && at-s.last.at < max(time.Second, s.o.duration/100) {
		return
	}
	s.last = sample{at, measure(), len(s.clients), s.connections()}
	s.samples = append(s.samples, s.last)
}

// writeCSV is the samples for the plot.
func (s *soak) writeCSV(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	_ = w.Write([]string{"seconds", "clients", "connections", "heap", "goroutines", "files"}) // Error tells
	for _, p := range s.samples {
		row := []string{strconv.FormatFloat(p.at.Seconds(), 'f', 1, 64)}
		for _, v := range []int64{int64(p.clients), int64(p.connections), p.heap, int64(p.goroutines), int64(p.files)} {
			row = append(row, strconv.FormatInt(v, 10))
		}
		_ = w.Write(row)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// table is what each network did, and below what came over it: both fit a terminal of 80 columns.
func (s *soak) table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nnetwork\tclients\tvanished\tmoved\tsent\tlost\trepeated\tlate\tdamaged\t")
	sum := make([]path, len(kinds))
	for i, p := range s.paths {
		r := &sum[i%len(kinds)]
		r.totals.add(&p.totals)
		r.clients += p.clients
		r.vanished += p.vanished
		r.moved += p.moved
		r.slowest = max(r.slowest, p.slowest)
	}
	for i := range kinds {
		var pushed, lost, repeated, late, damaged, large, probes uint64
		for j := i; j < len(s.paths); j += len(kinds) {
			c := s.paths[j].proxy.Counters()
			pushed += c.Up.Pushed + c.Down.Pushed
			lost += c.Up.Lost + c.Down.Lost + c.Up.BurstLost + c.Down.BurstLost + c.Up.QueueFull + c.Down.QueueFull + c.Lost
			repeated += c.Up.Duplicated + c.Down.Duplicated
			late += c.Up.Reordered + c.Down.Reordered
			damaged += c.Up.Corrupted + c.Down.Corrupted
			large += c.Up.TooBig + c.Down.TooBig
			probes += s.paths[j].probes
		}
		if large > probes {
			s.problem("%s: %d datagrams of more than %d bytes, of which at most %d tried the packet size", kinds[i].name, large, kinds[i].set.MTU, probes)
		}
		lost += large
		r := &sum[i]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", kinds[i].name, r.clients, r.vanished, r.moved, pushed, lost, repeated, late, damaged)
	}
	fmt.Fprintln(w, "\nnetwork\tbunches\tmessages\tblocks\tstreams\tcalls\tturns\tMB\tslowest\t")
	for i := range kinds {
		r := &sum[i]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t%v\t\n", kinds[i].name, r.numbers, r.messages, r.blocks, r.streams, r.calls, r.turns, float64(r.bytes)/1e6, r.slowest.Round(10*ms))
	}
	w.Flush()
}

// median of one thing in some samples.
func median(list []sample, of func(*sample) int64) int64 {
	var v []int64
	for i := range list {
		v = append(v, of(&list[i]))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// check adds to the problems what only shows in the whole: levels that rise, and what never happened.
func (s *soak) check(base resources) {
	end := s.samples[len(s.samples)-1].resources
	if end.goroutines > base.goroutines || end.files > base.files {
		s.problem("at the end %d goroutines and %d files were left, at the beginning %d and %d", end.goroutines, end.files, base.goroutines, base.files)
	}
	if grown := end.heap - base.heap; grown > 32<<20 {
		s.problem("at the end the heap was %d kB larger than at the beginning", grown>>10)
	}
	n := s.totals()
	if n.numbers == 0 || n.messages == 0 || n.blocks == 0 || n.streams == 0 || n.calls == 0 || n.turns == 0 || s.freezes == 0 {
		s.problem("something never happened: %+v, %d comparisons of actors", n, s.freezes)
	}
	var full []sample
	for _, p := range s.samples {
		if p.at < s.o.duration && p.clients >= s.o.clients*9/10 {
			full = append(full, p)
		}
	}
	if len(full) < 24 {
		return // too short to tell
	}
	early, late := full[len(full)/4:len(full)/2], full[3*len(full)/4:]
	for _, c := range []struct {
		name  string
		of    func(*sample) int64
		slack int64
	}{
		{"heap bytes", func(p *sample) int64 { return p.heap }, 8 << 20},
		{"goroutines", func(p *sample) int64 { return int64(p.goroutines) }, 50},
		{"files", func(p *sample) int64 { return int64(p.files) }, 50},
	} {
		a, b := median(early, c.of), median(late, c.of)
		if b > a+a/4+c.slack {
			s.problem("%s rise: %d in the second quarter, %d in the last", c.name, a, b)
		}
	}
}

// verdict is the last lines.
func (s *soak) verdict(out io.Writer) error {
	n, most := s.totals(), resources{}
	for _, p := range s.samples {
		most.heap, most.goroutines, most.files = max(most.heap, p.heap), max(most.goroutines, p.goroutines), max(most.files, p.files)
	}
	end := s.samples[len(s.samples)-1].resources
	fmt.Fprintf(out, "\n%d clients came and left in %.0f s, at %.1f ticks a second; the actors of all were compared %d times; at most %.1f MB, %d goroutines, %d files; at the end %.1f MB, %d, %d\n",
		s.left, s.now.Sub(s.start).Seconds(), float64(s.ticks)/s.now.Sub(s.start).Seconds(), s.freezes, float64(most.heap)/1e6, most.goroutines, most.files, float64(end.heap)/1e6, end.goroutines, end.files)
	for _, sv := range s.servers {
		fmt.Fprintf(out, "%s server: %d joined, connections ended: %v; %d states of turns compared equal\n", sv.name, sv.driver.Counters.Joined, ends(sv), sv.turns.compared)
	}
	if s.count == 0 {
		_, err := fmt.Fprintf(out, "PASS: %d bunches, %d messages, %d blocks, %d streams and %d calls arrived, none lost, doubled, damaged or out of order\n",
			n.numbers, n.messages, n.blocks, n.streams, n.calls)
		return err
	}
	for _, w := range s.wrong {
		fmt.Fprintln(out, w)
	}
	return fmt.Errorf("%d problems; seed %d", s.count, s.o.seed)
}

func ends(sv *server) (text []string) {
	for code := range 16 {
		for c, n := range sv.ends {
			if int(c) == code {
				text = append(text, fmt.Sprintf("%d %v", n, c))
			}
		}
	}
	return text
}
