package predict

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netclock"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

const (
	// keptTicks is how many of the last ticks a client knows when it made them.
	keptTicks = 128
	// keptTimings is how many of the server's last words about arrivals count: at ten a second, 19 seconds.
	keptTimings = 192
	// startAhead is how much more than two round trips a clock begins ahead of what it has heard. The first reply waits for the actor's opening, for a
	// round trip or so; and too early is better than too late.
	startAhead = 100 * time.Millisecond
	// maxEarly bounds what a server may say about an arrival.
	maxEarly = 2 * time.Second
)

// clock is the shared time at a client: that of the server's ticks, so far ahead that an input comes just before its tick.
//
// A tick that was made at the local time l and came so early for its time t would have come in time if the shared time were t - early at l: so far it must be
// ahead of the local time. It is ahead by the mean of the two most that the last arrivals needed: one alone is too much chance. It follows that by running up to 5 % faster or slower.
type clock struct {
	follower *netclock.Follower
	ahead    time.Duration // of the local time, to be
	ticks    [keptTicks]madeTick
	needs    [keptTimings]need
	n        int     // of needs, ever
	inTime   bool    // an input has come in time
	drift    float64 // how much faster than this end's the server's clock seems to run
	step     time.Duration
	newest   time.Duration
}

// need is how far ahead of the local time a tick should have been; when and which.
type need struct{ ahead, local, at time.Duration }

type madeTick struct{ at, local time.Duration }

// begin starts the clock when the server's time reached comes in, unless it runs.
func (k *clock) begin(now, reached, roundTrip, step time.Duration) {
	k.step = step
	if k.follower == nil {
		k.restart(reached + 2*roundTrip + startAhead - now)
	}
}

// restart lets the time jump.
func (k *clock) restart(ahead time.Duration) {
	k.ahead = ahead
	k.follower, _ = netclock.NewFollower(netclock.FollowerConfig{}) // its defaults are right: 5 %, and a jump from a second on
}

// advance is the shared time at a local one; 0 before it began.
func (k *clock) advance(now time.Duration) time.Duration {
	if k.follower == nil {
		return 0
	}
	return k.follower.Advance(now, now+k.ahead)
}

// made notes when a tick was made.
func (k *clock) made(at, local time.Duration) {
	k.newest = at
	k.ticks[at/k.step%keptTicks] = madeTick{at, local}
}

// hear takes what the server says about an arrival.
func (k *clock) hear(t timing) {
	if !t.told || k.newest == 0 {
		return
	}
	back := uint8(k.newest/k.step) - t.tick
	at := k.newest - time.Duration(back)*k.step
	m := k.ticks[uint64(at/k.step)%keptTicks]
	if m.at != at {
		return // it was made before this clock was
	}
	k.needs[k.n%keptTimings] = need{at - t.early - m.local, m.local, at}
	if k.n++; k.n%driftEvery == 0 && k.n >= keptTimings/2 {
		k.measureDrift()
	}
	drift := k.drift
	if math.Abs(drift) < minDrift {
		drift = 0
	}
	first, second := need{ahead: math.MinInt64}, need{ahead: math.MinInt64} // of different ticks
	for _, d := range k.needs[:min(k.n, keptTimings)] {
		switch d.ahead += time.Duration(drift * float64(m.local-d.local)); {
		case d.at == first.at:
		case d.ahead > first.ahead:
			first, second = d, first
		case d.ahead > second.ahead:
			second = d
		}
	}
	k.ahead = first.ahead + spare
	if second.at > 0 {
		k.ahead = first.ahead/2 + second.ahead/2 + spare
	}
	if k.inTime = k.inTime || t.early >= 0; !k.inTime {
		k.restart(k.ahead) // the first guess was too little
	}
}

const (
	// maxDrift is more than clocks differ by: the path has changed.
	maxDrift = 0.02
	// spare is how much further ahead a clock is than the last arrivals needed.
	spare = 2 * time.Millisecond
	// minDrift is less than can be told from jitter.
	minDrift = 0.005
	// driftEvery is how many timings come between two measurements of the drift.
	driftEvery = 16
	// driftShare is how much of a measured drift is believed at once.
	driftShare = 0.3
)

// measureDrift compares the older half of the needs with the newer one.
func (k *clock) measureDrift() {
	sorted := k.needs
	all := sorted[:min(k.n, keptTimings)]
	slices.SortFunc(all, func(a, b need) int { return cmp.Compare(a.local, b.local) })
	old, young := all[:len(all)/2], all[len(all)/2:]
	between := young[len(young)/2].local - old[len(old)/2].local
	for _, part := range [2][]need{old, young} {
		slices.SortFunc(part, func(a, b need) int { return cmp.Compare(a.ahead, b.ahead) })
	}
	off := young[len(young)/2].ahead - old[len(old)/2].ahead
	if drift := float64(off) / float64(max(between, 1)); math.Abs(drift) < maxDrift {
		k.drift += driftShare * (drift - k.drift)
	}
}

// timing is what a reply says about time.
type timing struct {
	step  time.Duration // of the server's ticks
	told  bool
	tick  uint8         // low bits of the number of the tick whose input came latest among the last ones
	early time.Duration // how early that was
}

const earlyUnit = 18 // bits of a time that aren't told

func (c *Class[A, I]) writeTiming(p *pawn[A, I], w *bitio.Writer) {
	w.WriteIntPacked(uint32(p.step / time.Microsecond))
	at, early, ok := p.server.Tightest()
	w.WriteBool(ok)
	if ok {
		w.WriteUint8(uint8(at / p.step))
		v := int64(min(max(early, -maxEarly), maxEarly) >> earlyUnit)
		w.WriteIntPacked(uint32(v<<1) ^ uint32(v>>63))
	}
}

func readTiming(r *bitio.Reader) (t timing, err error) {
	t.step = time.Duration(r.ReadIntPacked()) * time.Microsecond
	if t.told = r.ReadBool(); t.told {
		t.tick = r.ReadUint8()
		v := r.ReadIntPacked()
		t.early = time.Duration(int32(v>>1)^-int32(v&1)) << earlyUnit
	}
	if t.step < time.Second/240-time.Microsecond || t.step > time.Second/10 || t.early > maxEarly || t.early < -maxEarly-1<<earlyUnit {
		r.Fail(bitio.ErrFormat)
	}
	return t, r.Err()
}
