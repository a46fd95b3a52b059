package congestion

import "time"

// baseRTT is the lowest round trip time of the last 20 to 30 s: the path without queues.
// Older ones are forgotten, as routes change.
type baseRTT struct {
	buckets [3]time.Duration // 0 none; [0] is the current one
	start   time.Duration
}

const baseBucket = 10 * time.Second

func (b *baseRTT) sample(now, rtt time.Duration) {
	if b.buckets == ([3]time.Duration{}) {
		b.start = now
	}
	for i := 0; now-b.start >= baseBucket && i < len(b.buckets); i++ {
		b.buckets[2], b.buckets[1], b.buckets[0] = b.buckets[1], b.buckets[0], 0
		b.start += baseBucket
	}
	if now-b.start >= baseBucket {
		b.start = now
	}
	if b.buckets[0] == 0 || rtt < b.buckets[0] {
		b.buckets[0] = max(rtt, 1)
	}
}

// set forgets all but one round trip time.
func (b *baseRTT) set(now, rtt time.Duration) {
	b.buckets, b.start = [3]time.Duration{rtt}, now
}

// get is the base, 0 before the first sample.
func (b *baseRTT) get() time.Duration {
	var low time.Duration
	for _, d := range b.buckets {
		if d != 0 && (low == 0 || d < low) {
			low = d
		}
	}
	return low
}

// recentBest is the highest rate of the last 20 to 30 s, in bytes a second.
type recentBest struct {
	buckets [3]float64 // [0] is the current one
	start   time.Duration
}

func (b *recentBest) sample(now time.Duration, rate float64) {
	for i := 0; now-b.start >= baseBucket && i < len(b.buckets); i++ {
		b.buckets[2], b.buckets[1], b.buckets[0] = b.buckets[1], b.buckets[0], 0
		b.start += baseBucket
	}
	if now-b.start >= baseBucket {
		b.start = now
	}
	b.buckets[0] = max(b.buckets[0], rate)
}

// get is 0 before the first sample.
func (b *recentBest) get() float64 { return max(b.buckets[0], b.buckets[1], b.buckets[2]) }
