package actorrep

import "time"

// watch detects a method that the game should call each frame and doesn't.
type watch struct {
	due   func() bool // something waits for the call
	err   error
	steps int           // in which it was due, in a row
	since time.Duration // of the first of these
	told  bool
}

// A call counts as forgotten when it was due for this long, and in this many Steps.
const (
	forgottenAfter = time.Second
	forgottenSteps = 30
)

// watch gives err to Config.Failed, once, when due was true in all Steps for a while.
func (w *World) watch(due func() bool, err error) {
	w.watches = append(w.watches, watch{due: due, err: err})
}

// stepWatches looks for what the game has forgotten.
func (w *World) stepWatches() {
	for i := range w.watches {
		f := &w.watches[i]
		switch {
		case f.told:
		case !f.due():
			f.steps = 0
		case f.steps == 0:
			f.steps, f.since = 1, w.now
		default:
			f.steps++
			if f.told = f.steps > forgottenSteps && w.now-f.since > forgottenAfter; f.told {
				w.report(f.err)
			}
		}
	}
}
