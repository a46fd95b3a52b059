package congestion

import "time"

// queueDelay tells how long the queue is from the lowest round trip time of each round,
// the one of the packet that waited least for others of its burst, for the peer's tick and for
// ours. The ticks' phases still move it by up to two ticks, so its average is compared
// with the lowest average.
type queueDelay struct {
	base    baseRTT
	average time.Duration // over about four rounds
	low     time.Duration // of the last round
}

func (q *queueDelay) sample(now, low time.Duration) {
	q.low = low
	if q.average == 0 {
		q.average = low
	}
	q.average += (low - q.average) / 4
	q.base.sample(now, q.average)
}

// restart forgets the average, after a change that it would follow too late: the next
// sample is the average.
func (q *queueDelay) restart() { q.average = 0 }

// rebase takes the path as it is now for one without a queue.
func (q *queueDelay) rebase(now time.Duration) {
	q.average = q.low
	q.base.set(now, q.low)
}

// delay is that of the last round.
func (q *queueDelay) delay() time.Duration { return max(q.low-q.base.get(), 0) }

// long reports whether the queue is longer than a target: on average by most of the
// time between bursts, or at once by two of them.
func (q *queueDelay) long(target, gap time.Duration) bool {
	return q.average-q.base.get() > target+gap || q.delay() > 2*(target+gap)
}

// recentRTT is the lowest round trip time of the last three batches of feedback.
type recentRTT struct {
	lows  [3]time.Duration // newest first
	began time.Duration
}

// batchTime is how long a batch lasts at least: acks that come one by one are gathered.
const batchTime = 10 * time.Millisecond

func (q *recentRTT) sample(now, rtt time.Duration) {
	if q.lows[0] == 0 || now-q.began >= batchTime {
		copy(q.lows[1:], q.lows[:2])
		q.lows[0], q.began = rtt, now
		return
	}
	q.lows[0] = min(q.lows[0], rtt)
}

// low is 0 when there were fewer than three.
func (q *recentRTT) low() time.Duration { return min(q.lows[0], q.lows[1], q.lows[2]) }
