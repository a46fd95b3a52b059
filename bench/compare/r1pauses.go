package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/bench/internal/largeworld"
)

// pausePoint is a server that ticks in real time with a game that makes garbage, and the collector beside it.
type pausePoint struct {
	What             string
	Percent          int // GOGC
	TickP50, TickP99 time.Duration
	Total, Stopping  quantiles // of whole pauses, and of what it took to stop everything
	Cycles           uint64
	Share            float64 // of a core, by the collector
	Heap, Scanned    float64 // bytes, at the end
}

// quantiles is upper bounds in seconds.
type quantiles struct {
	P50, P99, Max float64
	N, Long       uint64 // all, and those of longPause or more
}

// longPause is what a pause should stay below, in seconds.
const longPause = 0.5e-3

// often is GOGC for so many collections that there is a 99th percentile of their pauses.
const often = 2

// pauses measures R1 with the collector as it is by default, and with fifty times as many collections; and for comparison a program
// without a server that has as much memory, and a server with next to nothing, which are the machine's own figures.
func (r *replication) pauses(log io.Writer, n r1Sizes) error {
	measure := func(what string, percent int, c *largeworld.Rig, changes int) (heap float64) {
		fmt.Fprintf(log, "r1: pauses, %s, GOGC %d\n", what, percent)
		p := pausePoint{What: what, Percent: percent}
		p.measure(c, n.pauseTicks, changes)
		r.Pauses = append(r.Pauses, p)
		return p.Heap
	}
	c, err := largeworld.New(n.base)
	if err != nil {
		return err
	}
	measure("R1", 100, c, n.base.Actors/100)
	if n.onlyDefault {
		return nil
	}
	heap := measure("R1", often, c, n.base.Actors/100)
	runtime.KeepAlive(c)
	c, err = largeworld.New(largeworld.Config{Conns: 1, Actors: 100, Relevant: 50})
	if err != nil {
		return err
	}
	plain := ballast(int(heap))
	measure("plain objects", often, c, 1)
	runtime.KeepAlive(plain)
	plain = nil
	measure("next to nothing", 100, c, 1)
	return nil
}

// plainObject is about the size of what a server has the most of.
type plainObject struct {
	left, right *plainObject
	_           [30]uint64
}

// ballast is so many bytes of objects that know each other.
func ballast(bytes int) []*plainObject {
	all := make([]*plainObject, bytes/256)
	for i := range all {
		all[i] = &plainObject{}
		all[i].left, all[i].right = all[i*7/8], all[i/3]
	}
	return all
}

// litter is a game's garbage: small objects that know each other.
type litter struct {
	next *litter
	_    [7]uint64
}

// litterBytes is what the game drops a tick.
const litterBytes = 1 << 20

func drop() *litter {
	var first *litter
	for range litterBytes / 64 {
		first = &litter{next: first}
	}
	return first
}

func (p *pausePoint) measure(c *largeworld.Rig, ticks, changes int) {
	defer debug.SetGCPercent(debug.SetGCPercent(p.Percent))
	var last [8]*litter
	times := make([]time.Duration, 0, ticks)
	runtime.GC()
	before, began := readCollector(), time.Now()
	for i := range ticks {
		c.Change(changes)
		last[i%len(last)] = drop()
		start := time.Now()
		c.Serve()
		times = append(times, time.Since(start))
		c.Answer()
		time.Sleep(time.Until(began.Add(time.Duration(i+1) * time.Second / largeworld.Rate)))
	}
	elapsed, after := time.Since(began), readCollector()
	runtime.KeepAlive(&last)
	slices.Sort(times)
	p.TickP50, p.TickP99 = times[len(times)/2], times[len(times)*99/100]
	p.Total, p.Stopping = between(before.total, after.total), between(before.stopping, after.stopping)
	p.Cycles, p.Share = after.cycles-before.cycles, (after.cpu-before.cpu)/elapsed.Seconds()
	p.Heap, p.Scanned = after.heap, after.scanned
}

// collector is what the runtime says of it, since the program began.
type collector struct {
	total, stopping    *metrics.Float64Histogram
	cycles             uint64
	cpu, heap, scanned float64
}

func readCollector() collector {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/sched/pauses/stopping/gc:seconds"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
	metrics.Read(s)
	return collector{s[0].Value.Float64Histogram(), s[1].Value.Float64Histogram(), s[2].Value.Uint64(), s[3].Value.Float64(),
		float64(s[4].Value.Uint64()), float64(s[5].Value.Uint64())}
}

// between is the quantiles of what was added to a histogram.
func between(before, after *metrics.Float64Histogram) (q quantiles) {
	for i := range after.Counts {
		q.N += after.Counts[i] - before.Counts[i]
	}
	seen := uint64(0)
	for i := range after.Counts {
		d := after.Counts[i] - before.Counts[i]
		if d == 0 {
			continue
		}
		bound := after.Buckets[i+1]
		if seen*2 < q.N {
			q.P50 = bound
		}
		if seen*100 < q.N*99 {
			q.P99 = bound
		}
		if after.Buckets[i] >= longPause {
			q.Long += d
		}
		seen, q.Max = seen+d, bound
	}
	return q
}

func us(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e3) }

func printPauses(w io.Writer, r *replication) {
	row3 := func(q quantiles) []any {
		if q.N == 0 {
			return []any{"-", "-", "-"}
		}
		return []any{fmt.Sprintf("%.0f", q.P50*1e6), fmt.Sprintf("%.0f", q.P99*1e6), fmt.Sprintf("%.0f", q.Max*1e6)}
	}
	table(w, fmt.Sprintf("R1: the collector's pauses, at %d ticks a second in real time, 1 MB of garbage a tick", largeworld.Rate), func(row func(...any)) {
		row("world", "GOGC", "cycles", "pauses", "p50 us", "p99 us", "max us", ">0.5 ms", "stopping p50", "p99", "max", "tick p50 us", "p99 us", "core %", "live MB", "scanned MB")
		for _, p := range r.Pauses {
			cells := append([]any{p.What, p.Percent, p.Cycles, p.Total.N}, row3(p.Total)...)
			cells = append(append(cells, p.Total.Long), row3(p.Stopping)...)
			row(append(cells, us(p.TickP50), us(p.TickP99), fmt.Sprintf("%.1f", 100*p.Share), fmt.Sprintf("%.0f", p.Heap/1e6), fmt.Sprintf("%.0f", p.Scanned/1e6))...)
		}
	})
}
