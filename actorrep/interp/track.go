package interp

import (
	"math"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interpolation"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

const (
	// keptGaps is of how many of an actor's last gaps between samples the interval is the median.
	keptGaps = 9
	// fewGaps is how many gaps are needed for an interval.
	fewGaps = 3
	// longestGap: a longer gap doesn't count for the interval, because the actor was at rest.
	longestGap = 1100 * time.Millisecond
	// firstInterval is assumed while no actor of the class has moved.
	firstInterval = 50 * time.Millisecond
	// restGaps is how many intervals without a sample are a rest, when no packet was missed.
	restGaps = 2.5
	// sparseGaps: this many intervals more than reach are a rest even when each may have been a lost packet.
	sparseGaps = 2
	// intervalSlew is the fraction of the passing time by which an actor's interval may change, so that the drawn time
	// neither jumps nor goes back.
	intervalSlew = 0.04
)

// track is one actor's past values.
type track struct {
	base  *actorrep.Base
	guid  netguid.GUID // a change means that the struct is another actor now
	actor actorrep.Actor
	class *class

	buffer   *interpolation.Buffer[sample]
	any      bool // there is a sample
	newest   time.Duration
	last     sample        // the newest one; before any, the values whose server time isn't known
	came     time.Duration // when these came; 0 there are none
	before   sample        // the one before that
	fresh    int8          // 2 when the newest came since the last Tick, 1 when since the one before
	missed   uint64        // packets of the connection until then
	jumped   bool          // the next sample is a teleport
	waiting  uint64        // draws after the newest sample: counted as late when the next sample shows that the actor moved
	gaps     [keptGaps]time.Duration
	nGaps    int
	typical  time.Duration // their median; 0 while there are none
	interval time.Duration // typical, smoothed; used for drawing
	opened   bool          // there are samples after the first
	guessed  bool          // interval is firstInterval: nothing of the class had moved when the actor appeared
	at       time.Duration // time drawn last, on a client
	past     Past
}

// begin prepares a track for an actor.
func (t *track) begin(a actorrep.Actor, c *class) {
	buffer := t.buffer
	*t = track{base: baseOf(a), guid: baseOf(a).GUID(), actor: a, class: c, buffer: buffer, interval: c.interval(), guessed: c.typical == 0}
	t.past.class = c
	t.buffer.Reset()
}

// there reports whether the actor is still in the world.
func (t *track) there(w *actorrep.World) bool { return t.base.World() == w && t.base.GUID() == t.guid }

// sample stores the values of a time. missed is how many packets the connection has missed so far. opening is how long after an actor's first values the next may be
// that a server sends at once.
func (t *track) sample(at time.Duration, v *sample, missed uint64, reach float64, opening time.Duration, n *Counters) {
	gap := at - t.newest
	switch {
	case !t.any:
		t.any, t.last = true, *v
	case gap <= 0: // newer values, of a server whose time stands or went back
		if t.class.plan.apart(&t.last, v) {
			t.buffer.Push(t.newest-1, t.last)
		}
		t.buffer.Replace(*v)
		t.last = *v
		return
	default:
		t.since(at, gap, int64(missed-t.missed), v, reach, opening, n)
		t.opened = true
	}
	t.buffer.Push(at, *v)
	t.before, t.fresh = t.last, 2
	t.newest, t.last, t.missed, t.waiting, t.jumped = at, *v, missed, 0, false
}

// since interprets the gap since the sample before: a teleport, a rest, or movement.
func (t *track) since(at, gap time.Duration, missed int64, v *sample, reach float64, opening time.Duration, n *Counters) {
	n.Samples++
	known := t.typical
	if known == 0 {
		known = t.class.interval()
	}
	switch held := max(at-known, t.newest+1); {
	case t.jumped || t.class.plan.apart(&t.last, v):
		n.Jumps++
		t.hold(at-1, at) // drawn at the old place until just before
	case !t.opened && gap <= opening+time.Duration(reach*float64(known)):
	case isRest(gap, known, missed, reach) && held < at:
		n.Rests++
		t.hold(held, at)
	default:
		n.Late += t.waiting
	}
	if gap > longestGap || opening > 0 && !t.opened {
		return
	}
	if *v == t.last || t.base.Role() == actorrep.AutonomousProxy {
		return // it stood, or is predicted here: others of its values came
	}
	t.gaps[t.nGaps%keptGaps] = gap
	if t.nGaps++; t.nGaps < fewGaps {
		return
	}
	sorted := t.gaps
	kept := sorted[:min(t.nGaps, keptGaps)]
	slices.Sort(kept)
	t.typical = kept[len(kept)/2]
	if t.guessed {
		t.interval, t.guessed = t.typical, false
	}
	t.class.typical = t.typical
}

// hold adds a copy of the last sample, shortly before the new one: the actor stood there.
func (t *track) hold(until, before time.Duration) {
	if until > t.newest && until < before {
		t.buffer.Push(until, t.last)
	}
}

// isRest reports whether an actor was at rest in a gap.
func isRest(gap, interval time.Duration, missed int64, reach float64) bool {
	intervals := float64(gap) / float64(interval)
	if intervals < restGaps {
		return false
	}
	absent := int64(math.Round(intervals)) - 1 // samples that would have been sent
	return missed < absent || float64(absent) >= reach+sparseGaps
}

// tick moves the interval towards the typical one.
func (t *track) tick(dt time.Duration) {
	t.fresh = max(t.fresh-1, 0)
	if t.typical > 0 {
		t.interval = follow(t.interval, t.typical, dt)
	}
}

// follow moves an interval towards another.
func follow(interval, typical, dt time.Duration) time.Duration {
	most := time.Duration(intervalSlew * float64(dt))
	return interval + min(max(typical-interval, -most), most)
}

// behind is reach * interval, at most most.
func (t *track) behind(reach float64, most time.Duration) time.Duration {
	return min(time.Duration(reach*float64(t.interval)), most)
}

// jump makes the newest sample a teleport if it arrived in this frame, else the next one.
func (t *track) jump() {
	if t.fresh == 0 {
		t.jumped = true
		return
	}
	t.buffer.Push(t.newest-1, t.before)
	t.fresh = 0
}
