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
	// keptTicks is for how many of the last ticks a client knows when it simulated them.
	keptTicks = 128
	// keptTimings is how many of the server's last timings count: 24 seconds at ten a second.
	keptTimings = 240
	// startAhead is how much more than two round trips a clock starts ahead of the server's time. The first reply waits
	// about a round trip for the actor's opening, and too early is better than too late.
	startAhead = 100 * time.Millisecond
	// strange is how far a clock may differ from the server's messages. Beyond it there is another server, or this
	// process was paused.
	strange = 10 * time.Second
	// maxEarly bounds the arrival times that a server may report.
	maxEarly = 10 * time.Second
	// longestGuess bounds two round trips in the first guess: the round trip that a process measures which stood still is that long. A server tells at once
	// when the guess is too short.
	longestGuess = 500 * time.Millisecond
	// hitch is the shortest frame, and unusual how many times as long as the ones before it must be, after which the time is measured anew.
	hitch   = 200 * time.Millisecond
	unusual = 4
	// longestTick is how much of a long frame a driver's time counts at most.
	longestTick = time.Second
	// tooEarly is how many ticks early an input must arrive for the time to jump back. The server refuses inputs that
	// are 64 early.
	tooEarly = 32
)

// clock is the shared time on a client: the time of the server's ticks, ahead by so much that an input arrives just
// before its tick.
//
// A tick was made when the shared time was some amount ahead of the local time. If its input arrived early, that amount
// could have been smaller by as much. The clock aims at the amount that all but the worst few of the last inputs needed,
// and gets there by running up to 5 % faster or slower.
//
// The local time counts the game's frames. One in which the game's time goes back counts as long as those before it.
type clock struct {
	follower *netclock.Follower
	ahead    time.Duration // target: shared time minus local time
	since    time.Duration // local time at which it was that
	trend    float64       // how it grows from then on
	ticks    [keptTicks]madeTick
	needs    [keptTimings]need
	n        int     // number of needs so far
	inTime   bool    // an input has arrived in time
	drift    float64 // how much faster than this end's the server's clock seems to run
	step     time.Duration
	newest   time.Duration
	local    time.Duration // of the last frame
	game     time.Duration // the game's time of the last frame, as Tick was given it
	stepped  time.Duration // and as World.Step was
	frame    time.Duration // the length of frames, smoothed
	hitched  bool          // the last frame was unusually long
}

// need is how far ahead of the local time a tick should have been, when it was made, and which tick it is.
type need struct{ ahead, local, at time.Duration }

// madeTick is when a tick was made. No time is known of one that was made late because of this end, or before the clock forgot what was measured.
type madeTick struct {
	at, local, shared time.Duration
	known             bool
}

// copy returns a clock that goes on as this one does, by the local time of another one, which is ahead of this one's by offset.
func (k *clock) copy(offset time.Duration, other *clock) *clock {
	c := *k
	c.restart()
	c.local += offset
	c.since += offset
	c.ahead -= offset
	c.game, c.stepped = other.game+c.local-other.local, other.stepped+c.local-other.local
	c.follower.Advance(c.local, k.follower.Value())
	for i := range c.ticks {
		c.ticks[i].local += offset
	}
	for i := range c.needs {
		c.needs[i].local += offset
		c.needs[i].ahead -= offset
	}
	return &c
}

// begin starts the clock when the server's time reached arrives, or restarts it when the server's time doesn't fit. After a pause the first messages
// are as old as the pause, and newer ones follow: until an input has arrived in time, the clock can't be behind what the server has reached.
func (k *clock) begin(now, reached, roundTrip, step time.Duration) {
	k.step = step
	if off := k.target(now) - reached; k.follower == nil || off < -strange || off > strange || off < 0 && !k.inTime {
		k.forget()
		k.ticks, k.newest = [keptTicks]madeTick{}, 0
		k.ahead, k.since, k.trend = reached+min(2*roundTrip, longestGuess)+startAhead-now, now, 0
		k.restart()
	}
}

// forget drops what was measured: the next input that the server tells of sets the time.
func (k *clock) forget() {
	k.n, k.drift, k.inTime = 0, 0, false
	for i := range k.ticks {
		k.ticks[i].known = false
	}
}

// target is what the shared time should be at a local time.
func (k *clock) target(now time.Duration) time.Duration {
	return now + k.ahead + time.Duration(k.trend*float64(now-k.since))
}

// restart makes the time jump.
func (k *clock) restart() {
	k.follower, _ = netclock.NewFollower(netclock.FollowerConfig{}) // its defaults are right: 5 %, and a jump from a second on
}

// atStep returns the local time of a World.Step since the last frame.
func (k *clock) atStep(now time.Duration) time.Duration { return k.local + k.passed(k.stepped, now) }

// passed is how long a frame is, by the game's time at the last one and now.
func (k *clock) passed(last, now time.Duration) time.Duration {
	if now < last {
		return k.frame
	}
	return now - last
}

// at returns the local time of a time since the last frame.
func (k *clock) at(now time.Duration) time.Duration { return k.local + now - k.game }

// advance returns the local and the shared time of a frame, by the game's time and that of its last World.Step. The shared time is 0 before it started.
func (k *clock) advance(now, stepped time.Duration) (local, shared time.Duration) {
	dt := k.passed(k.game, now)
	k.game, k.stepped, k.local = now, stepped, k.local+dt
	if k.local > dt {
		if k.hitched = dt > hitch && dt > unusual*k.frame; k.hitched && dt >= longestTick {
			k.forget() // this end's time may have left some of it out
		}
		k.frame += (min(dt, longestTick) - k.frame) / 8
	}
	if k.follower == nil {
		return k.local, 0
	}
	return k.local, k.follower.Advance(k.local, k.target(k.local))
}

// takeBack is told that the ticks after a time are made again. The server may have the first inputs of some: what it tells of them means nothing. The others are
// overwritten before their time comes.
func (k *clock) takeBack(to time.Duration) {
	for i := range k.ticks {
		if m := &k.ticks[i]; m.at > to {
			m.known = false
		}
	}
}

// made notes when a tick was made, in local and shared time.
func (k *clock) made(at, local, shared time.Duration) {
	k.newest = at
	if m := &k.ticks[at/k.step%keptTicks]; m.at != at { // the first time
		*m = madeTick{at, local, shared, !k.hitched} // in a hitch it is late because of this end, not of the path
	}
}

// hear takes in what the server says about an arrival, when its time had reached so much.
func (k *clock) hear(t timing, reached time.Duration) {
	if !t.told || k.newest == 0 {
		return
	}
	back := uint8(k.newest/k.step) - t.tick
	at := k.newest - time.Duration(back)*k.step
	m := k.ticks[uint64(at/k.step)%keptTicks]
	if m.at != at || !m.known {
		return // made before this clock started, say
	}
	if came := at - t.early; came > reached+128*k.step || came < reached-128*k.step {
		return // inputs arrive about now: another tick with the same low bits, made before a pause, or taken back
	}
	early := t.early >= tooEarly*k.step
	if early {
		k.n, k.drift = 0, 0 // inputs were late because of a hitch
	}
	k.needs[k.n%keptTimings] = need{m.shared - m.local - t.early, m.local, at}
	if k.n++; k.n%driftEvery == 0 && k.n >= keptTimings/2 {
		k.measureDrift()
	}
	k.since, k.trend = m.local, k.drift
	if math.Abs(k.trend) < minDrift {
		k.trend = 0
	}
	var worst [rank]need // of different ticks
	n := 0
	for _, d := range k.needs[:min(k.n, keptTimings)] {
		d.ahead += time.Duration(k.trend * float64(m.local-d.local))
		if slices.ContainsFunc(worst[:n], func(w need) bool { return w.at == d.at }) {
			continue
		}
		i := n
		for i > 0 && worst[i-1].ahead < d.ahead {
			i--
		}
		if i < rank {
			n = min(n+1, rank)
			copy(worst[i+1:n], worst[i:n-1])
			worst[i] = d
		}
	}
	k.ahead = worst[n-1].ahead
	if k.inTime = k.inTime || t.early >= 0; !k.inTime || early {
		k.restart() // the first guess was too small, or much too large
	}
	if early { // one input says little about the jitter and the loss: too early is better than too late here too
		k.follower.Advance(k.local, k.target(k.local)+startAhead+k.step)
	}
}

const (
	// maxDrift is more than clocks differ by: beyond it the network path has changed.
	maxDrift = 0.02
	// rank: the clock follows the rank-th worst of the last arrivals. The very worst are too random.
	rank = 3
	// minDrift is the least drift that can be told from jitter.
	minDrift = 0.001
	// driftEvery is how many timings pass between two measurements of the drift.
	driftEvery = 16
	// driftShare is the weight of a new measurement of the drift.
	driftShare = 0.3
)

// measureDrift compares the quarters of the needs. A path that has become longer or shorter differs between two of them only, which is no drift.
func (k *clock) measureDrift() {
	sorted := k.needs
	all := sorted[:min(k.n, keptTimings)]
	slices.SortFunc(all, func(a, b need) int { return cmp.Compare(a.local, b.local) })
	var drifts [3]float64
	var last need // medians of the quarter before
	for i := range len(drifts) + 1 {
		part := all[i*len(all)/4 : (i+1)*len(all)/4]
		local := part[len(part)/2].local
		slices.SortFunc(part, func(a, b need) int { return cmp.Compare(a.ahead, b.ahead) })
		median := need{ahead: part[len(part)/2].ahead, local: local}
		if i > 0 {
			drifts[i-1] = float64(median.ahead-last.ahead) / float64(max(median.local-last.local, 1))
		}
		last = median
	}
	slices.Sort(drifts[:])
	drift := drifts[1]
	if drifts[0]*drifts[2] < 0 {
		drift = 0 // a queue that fills and drains: a clock's goes one way
	}
	if math.Abs(drift) < maxDrift {
		k.drift += driftShare * (drift - k.drift)
	}
}

// timing is what a reply says about time.
type timing struct {
	step  time.Duration // length of the server's ticks
	told  bool          // the rest is set
	tick  uint8         // low bits of the number of the tick, of the last ones, whose input arrived latest
	early time.Duration // how early it arrived
}

// earlyUnit is the number of low bits of early, in ns, that aren't sent.
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
