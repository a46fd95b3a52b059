//go:build js

package main

import (
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
)

const (
	graphEvery   = 50 * time.Millisecond
	graphSamples = 160
)

// sample is the network's figures at a moment.
type sample struct {
	rtt, loss, corrections, rate float64 // ms, a share, since the sample before, bytes a second both ways
}

// graph is the last eight seconds of them.
type graph struct {
	samples     [graphSamples]sample
	n           int
	next        time.Time
	corrections uint64
}

func (g *graph) sample(now time.Time, c *game.Client) {
	if _, ok := c.Own(); !ok || now.Before(g.next) || c.Driver.Server() == nil {
		return
	}
	g.next = now.Add(graphEvery)
	st, n := c.Driver.Server().Stats(), c.Corrections()
	s := sample{rtt: st.LastRTT.Seconds() * 1000, loss: max(st.Rates.InLoss, st.Rates.OutLoss), rate: st.Rates.InBytes + st.Rates.OutBytes}
	s.corrections = float64(n - min(n, g.corrections))
	g.corrections = n
	g.samples[g.n%graphSamples] = s
	g.n++
}

// all calls yield for each sample, oldest first.
func (g *graph) all(yield func(x int, s sample) bool) {
	first := max(0, g.n-graphSamples)
	for i := first; i < g.n; i++ {
		if !yield(i-first, g.samples[i%graphSamples]) {
			return
		}
	}
}

// last is the newest sample.
func (g *graph) last() sample {
	return g.samples[(g.n+graphSamples-1)%graphSamples]
}

// times is the lengths of the last ticks.
type times struct {
	last [1024]time.Duration
	n    int
}

func (t *times) add(d time.Duration) {
	t.last[t.n%len(t.last)] = d
	t.n++
}

// at is a quantile of them.
func (t *times) at(q float64) time.Duration {
	n := min(t.n, len(t.last))
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t.last[:n]))
	return sorted[int(q*float64(n-1))]
}
