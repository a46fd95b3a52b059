package congestion

import "time"

// queueDelay tells how long the queue is from the lowest round trip time of each round,
// the one of the packet that waited least for others of its burst, for the peer's tick and for
// ours. The ticks' phases still move it by up to two ticks, so its average is compared
// with the lowest average. A path whose delay varies by itself moves it more.
type queueDelay struct {
	base    baseRTT
	average time.Duration    // over about four rounds
	low     time.Duration    // of the last round, or of the last few where the path's delay varies by itself
	last    [8]roundLow      // the last rounds, by number
	n       int              // how many there have been since the last restart
	unsure  bool             // low is of too few packets of one that sends little
	few     bool             // the base is of rounds of few packets, from before the first drain
	drained bool             // there has been one
	up      time.Duration    // by which it rose from one round to the next, on average
	down    time.Duration    // by which it fell
	noises  [3]time.Duration // the greatest noise of the last 20 to 30 s, as in base
	began   time.Duration
}

// roundLow is the lowest round trip time of a round, and how many packets it is of.
type roundLow struct {
	low     time.Duration
	packets int
}

// maxNoise is the most that jitter is taken for: beyond it a queue that goes up and down may be most of it.
const maxNoise = 40 * time.Millisecond

const (
	lowPackets  = 8 // of which the lowest round trip time is at least where the path's delay varies by itself
	idlePackets = 3 // and where the application sends little: an ack that is lost makes a packet a tick late
)

// sample takes the lowest round trip time of a round of so many packets, which were sent or acked a time apart, while the application left credit
// unused or not.
func (q *queueDelay) sample(now, low time.Duration, packets int, apart time.Duration, idle bool) {
	if q.n > 0 {
		before := q.last[(q.n-1)%len(q.last)].low
		q.up += (max(low-before, 0) - q.up) / 8
		q.down += (max(before-low, 0) - q.down) / 8
	}
	q.listen(now, 4*(min(q.up, q.down)-apart/4))
	q.last[q.n%len(q.last)] = roundLow{low, packets}
	q.n++
	enough := 1
	switch {
	case q.noise() > 0:
		enough = lowPackets
	case idle:
		enough = idlePackets
	}
	for i := 2; i <= min(q.n, len(q.last)) && packets < enough; i++ {
		r := q.last[(q.n-i)%len(q.last)]
		low, packets = min(low, r.low), packets+r.packets
	}
	q.low, q.unsure = low, packets < enough && enough == idlePackets
	q.average += (low - q.average) / time.Duration(min(q.n, 4))
	switch {
	case q.n < baseRounds && q.base.get() > 0:
	// Few packets have less of the noise than many, so a base from the start isn't for what comes after it.
	case q.n == baseRounds && q.few && packets >= lowPackets && q.noise() > 0 && q.noise() < maxNoise/2:
		q.base.set(now, min(q.average, q.base.get()+4*q.noise()))
		q.few = false
	default:
		q.few = q.few || packets < lowPackets && !q.drained
		q.base.sample(now, q.average)
	}
}

// baseRounds is how many rounds a base is the average of at least: the lowest of single ones is what chance makes.
const baseRounds = 3

// listen notes the noise of now.
func (q *queueDelay) listen(now, noise time.Duration) {
	for ; now-q.began >= baseBucket; q.began += baseBucket {
		if now-q.began >= 3*baseBucket {
			q.began = now - 3*baseBucket
		}
		q.noises = [3]time.Duration{0, q.noises[0], q.noises[1]}
	}
	q.noises[0] = min(max(q.noises[0], noise), maxNoise)
}

// restart forgets the average, after a change that it would follow too late: the next
// sample is the average.
func (q *queueDelay) restart() { q.average, q.n, q.drained = 0, 0, true }

// rebase takes the path as it is now for one without a queue.
func (q *queueDelay) rebase(now time.Duration) {
	q.average, q.n = q.low, 0
	q.base.set(now, q.low)
}

// steady is by how much the lowest round trip times of rounds differ on a path without a queue, beside the noise.
const steady = 30 * time.Millisecond

// hush takes the lowest round trip time of the last rounds for the base if it is longer: so little was sent in them that what they waited for is no queue of ours. Where
// they differ there is one of others: flows that share a link, each quiet in turn, would take the queue of the others for a longer and longer path.
func (q *queueDelay) hush(now time.Duration) {
	if q.n < len(q.last) {
		return
	}
	low, high := q.last[0].low, q.last[0].low
	for _, r := range q.last[1:] {
		low, high = min(low, r.low), max(high, r.low)
	}
	if low > q.base.get() && high-low <= steady+q.noise() {
		q.base.set(now, low)
	}
}

// delay is that of the last round.
func (q *queueDelay) delay() time.Duration { return max(q.low-q.base.get(), 0) }

// noise is how much of the delay may be the path's own jitter: that goes up and down from round to round, while a queue rises for
// long and falls at once. Ticks make a part of it by themselves, which is counted elsewhere. It is remembered as long as the base,
// since that was found in the same noise: many packets at once have less of it than few, and where the peer puts them in order,
// all are as late as the latest.
func (q *queueDelay) noise() time.Duration {
	return max(q.noises[0], q.noises[1], q.noises[2])
}

// quiet forgets the noise: there is a queue beyond it, which may have been all of it.
func (q *queueDelay) quiet() {
	q.up, q.down, q.noises = q.up/2, q.down/2, [3]time.Duration{q.noise() / 2}
}

// long reports whether the queue is longer than a target: on average by most of the
// time between bursts, or at once by two of them.
func (q *queueDelay) long(unclear time.Duration) bool {
	return !q.unsure && (q.average-q.base.get() > unclear || q.delay() > 2*unclear)
}

// recentRTT is the lowest round trip time of the last three batches of feedback.
type recentRTT struct {
	lows  [3]time.Duration // newest first
	began time.Duration

	last time.Duration // the last sample
	sent time.Duration // when its packet left
	rise time.Duration // the most by which it rose at once, lately
	rose time.Duration // when it did
}

// batchTime is how long a batch lasts at least: acks that come one by one are gathered.
const batchTime = 10 * time.Millisecond

// step notes by how much the round trip time rises from one packet to the next.
func (q *recentRTT) step(now, rtt time.Duration) {
	// By a queue it would rise within that time only if several times what the link delivers went in.
	if rise := rtt - q.last; q.last > 0 && rise >= 2*(now-rtt-q.sent) && (rise > q.rise || now-q.rose > recutAfter) {
		q.rise, q.rose = rise, now
	}
	q.last, q.sent = rtt, now-rtt
}

// sample adds to the batches.
func (q *recentRTT) sample(now, rtt time.Duration) {
	if q.lows[0] == 0 || now-q.began >= batchTime {
		copy(q.lows[1:], q.lows[:2])
		q.lows[0], q.began = rtt, now
		return
	}
	q.lows[0] = min(q.lows[0], rtt)
}

// restart forgets the batches.
func (q *recentRTT) restart() { q.lows = [3]time.Duration{} }

// leapt reports whether the round trip time has lately risen by more than a time from one packet to the next, as on a path that has become
// longer.
func (q *recentRTT) leapt(now, more time.Duration) bool {
	return q.rise > more && now-q.rose < recutAfter
}

// low is 0 when there were fewer than three.
func (q *recentRTT) low() time.Duration { return min(q.lows[0], q.lows[1], q.lows[2]) }
