package congestion

import "time"

// TokenBucket is Unreal's NetSpeed: QueuedBits grow with what is sent and shrink at a
// fixed rate. The rate doesn't adapt to the path. The client chooses it (NMT_Netspeed),
// and the server clamps it.
type TokenBucket struct {
	// MaxTick bounds the time that one tick gives credit for, so that a hitch can't release
	// a burst. A loop whose ticks are always further apart, up to 8 s, gets all of its rate. Default
	// 1/30 s (Unreal's NetServerMaxTickRate).
	MaxTick time.Duration

	rate    int     // bytes a second
	queued  float64 // bytes; negative is credit
	last    time.Duration
	started bool
	ticks   steadyTick
}

// MinNetSpeed is the lowest rate in bytes a second (Unreal's minimum client rate).
const MinNetSpeed = 1800

// NewTokenBucket returns a bucket with a rate in bytes a second. A rate below MinNetSpeed
// is raised to it.
func NewTokenBucket(bytesPerSecond int) *TokenBucket {
	return &TokenBucket{rate: max(bytesPerSecond, MinNetSpeed), MaxTick: time.Second / 30}
}

// SetRate changes the rate, in bytes a second. A rate below MinNetSpeed is raised to it.
func (b *TokenBucket) SetRate(bytesPerSecond int) { b.rate = max(bytesPerSecond, MinNetSpeed) }

// OnSent adds the bytes of a packet to the debt, which is that of a second at most, or of the largest packet.
func (b *TokenBucket) OnSent(_ time.Duration, _ int64, bytes int) {
	if debt := b.queued + float64(bytes); debt <= float64(b.rate)*maxDebt.Seconds() { // the usual case
		b.queued = debt
		return
	}
	most := max(float64(b.rate)*maxDebt.Seconds(), float64(bytes), b.queued)
	b.queued = min(b.queued+float64(bytes), most)
}

// OnAck does nothing.
func (b *TokenBucket) OnAck(time.Duration, int64, int, time.Duration) {}

// OnLost does nothing.
func (b *TokenBucket) OnLost(time.Duration, int64, int) {}

// Tick gives credit for the time since the last Tick, at most MaxTick of it. The credit
// never exceeds that of two such ticks. A second Tick at the same time does nothing.
func (b *TokenBucket) Tick(now time.Duration) {
	if !b.started {
		b.started, b.last = true, now
	}
	if now <= b.last {
		return
	}
	dt := now - b.last
	if b.ticks.add(dt, b.queued <= 0); dt > b.MaxTick {
		dt = min(dt, max(b.MaxTick, 2*b.ticks.steady()))
	}
	b.last = now
	delta := float64(b.rate) * (float64(dt) / float64(time.Second))
	if b.queued -= delta; b.queued < -2*delta { // max would look for NaN
		b.queued = -2 * delta
	}
}

// Budget returns the credit in bytes. It is at least 1 without debt, so a packet may
// leave, and 0 with debt.
func (b *TokenBucket) Budget(time.Duration) int {
	if b.queued > 0 {
		return 0
	}
	return whole(-b.queued) + 1
}

// Rate returns the rate in bytes a second.
func (b *TokenBucket) Rate() float64 { return float64(b.rate) }

// NextDeadline returns when the debt will be paid, if Tick is called often enough. ok is
// false without debt.
func (b *TokenBucket) NextDeadline(now time.Duration) (time.Duration, bool) {
	if b.queued <= 0 {
		return 0, false
	}
	return max(now, b.last+seconds(b.queued, float64(b.rate))+1), true
}
