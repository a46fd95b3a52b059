package inspect

import (
	"math"
	"runtime/metrics"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Load is the time that the driver's ticks and Go's garbage collector took between two samples.
type Load struct {
	At    time.Duration
	Ticks uint64
	// Mean is a tick's time, Worst a power of two that the longest wasn't over.
	Mean, Worst time.Duration
	// Dispatch, Step and Flush are the parts of Mean.
	Dispatch, Step, Flush time.Duration
	// Collections is how often the collector ran; Pause is the longest time that it, and whatever else does, stopped the
	// program, rounded up to a bound of the runtime's histogram.
	Collections uint64
	Pause       time.Duration
	Heap        uint64 // bytes of live and unswept objects
	Goroutines  uint64
}

// loads is the last samples of a driver, and what the next one is the difference to.
type loads struct {
	ring    []Load
	n       int
	ticks   driver.TickTimes
	cycles  uint64
	pauses  []uint64
	metrics []metrics.Sample
}

const (
	metricCycles = iota
	metricPauses
	metricHeap
	metricGoroutines
)

func newLoads(samples int) loads {
	l := loads{ring: make([]Load, samples), metrics: []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/sched/pauses/total/gc:seconds"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/sched/goroutines:goroutines"}}}
	l.process()
	return l
}

// process reads the runtime's figures and returns them as a Load.
func (l *loads) process() (s Load) {
	metrics.Read(l.metrics)
	cycles := l.metrics[metricCycles].Value.Uint64()
	s.Collections, l.cycles = cycles-l.cycles, cycles
	h := l.metrics[metricPauses].Value.Float64Histogram()
	if l.pauses == nil {
		l.pauses = make([]uint64, len(h.Counts))
	}
	for i, n := range h.Counts {
		if n > l.pauses[i] {
			top := h.Buckets[i+1]
			if math.IsInf(top, 0) {
				top = h.Buckets[i]
			}
			s.Pause = time.Duration(top * float64(time.Second))
		}
		l.pauses[i] = n
	}
	s.Heap, s.Goroutines = l.metrics[metricHeap].Value.Uint64(), l.metrics[metricGoroutines].Value.Uint64()
	return s
}

// sample adds what has happened since the last one.
func (l *loads) sample(at time.Duration, t driver.TickTimes) {
	s := l.process()
	s.At = at
	if s.Ticks = t.Count - l.ticks.Count; s.Ticks > 0 {
		n := time.Duration(s.Ticks)
		s.Dispatch, s.Step, s.Flush = (t.Dispatch-l.ticks.Dispatch)/n, (t.Step-l.ticks.Step)/n, (t.Flush-l.ticks.Flush)/n
		s.Mean = s.Dispatch + s.Step + s.Flush
	}
	for i := range t.Below {
		if t.Below[i] > l.ticks.Below[i] {
			s.Worst = time.Microsecond << i
		}
	}
	l.ticks = t
	l.ring[l.n%len(l.ring)] = s
	l.n++
}

// list is the samples, oldest first.
func (l *loads) list() []Load {
	list := []Load{}
	for i := max(0, l.n-len(l.ring)); i < l.n; i++ {
		list = append(list, l.ring[i%len(l.ring)])
	}
	return list
}
