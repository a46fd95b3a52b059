package main

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interpolation"
)

// Keys is what a player does.
type Keys struct{ Dir int8 }

// Runner runs along a line of forty metres.
type Runner struct {
	actorrep.Base
	X  float64 `net:"q=0.01,simulated" predict:"0.001"`
	At uint32  `net:"skipowner,notify=OnSnapshot"` // ms on the server's clock: changes in every Step, so that standing still is told as well

	timeline *interpolation.Timeline // for who looks on
	places   *interpolation.Buffer[float64]
}

// Simulate is what both ends know of running: the same keys make the same move.
func (r *Runner) Simulate(k Keys, dt time.Duration) {
	r.X = min(max(r.X+5*float64(k.Dir)*dt.Seconds(), -20), 20)
}

// OnSnapshot keeps where the runner was in a Step of the server, for who draws it.
func (r *Runner) OnSnapshot() {
	at := time.Duration(r.At) * time.Millisecond // when that was, by the server's clock
	r.timeline.Arrived(r.World().Now(), at)
	r.places.Push(at, r.X)
}

// Init readies a copy for OnSnapshot.
func (r *Runner) Init() {
	r.timeline, _ = interpolation.NewTimeline(interpolation.Config{})
	r.places, _ = interpolation.NewBuffer(interpolation.BufferConfig[float64]{Lerp: func(a, b, t float64) float64 { return a + (b-a)*t }})
}
