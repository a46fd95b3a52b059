package predict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const clockStep = 16666 * time.Microsecond

// begun is a clock that has begun, and has made a tick in each of so many frames.
func begun(frames int) (k *clock, now time.Duration) {
	k, now = &clock{}, time.Hour
	k.advance(now, now)
	k.begin(k.local, 2*time.Hour, 50*time.Millisecond, clockStep)
	for range frames {
		now += clockStep
		local, shared := k.advance(now, now)
		k.made(shared-shared%clockStep, local, shared)
	}
	return k, now
}

// TestClockHearsOfArrivalsAlone: a reply of a server at which no input has arrived says nothing about the time.
func TestClockHearsOfArrivalsAlone(t *testing.T) {
	for n := range 32 {
		k, now := begun(150 + 8*n) // whatever the numbers of the last ticks are
		before, aims := *k, k.target(now)
		k.hear(timing{step: clockStep}, k.newest)
		require.Equal(t, before, *k)
		require.Equal(t, aims, k.target(now))
	}
}

// TestClockHearsOfInputsOfNow: an input that came over 128 ticks before or after what the server has reached is another one than the tick whose low bits it has.
func TestClockHearsOfInputsOfNow(t *testing.T) {
	const far = 128 * clockStep
	for off, heard := range map[time.Duration]bool{-far - 1: false, -far: true, -2 * clockStep: true, 0: true, 2 * clockStep: true, far: true, far + 1: false} {
		k, _ := begun(200)
		at, early := k.newest-10*clockStep, 3*clockStep
		k.hear(timing{step: clockStep, told: true, tick: uint8(at / clockStep), early: early}, at-early+off)
		require.Equal(t, heard, k.n == 1, "%v", off)
	}
}

// TestClockBacksRightAway: a clock that goes back in its first frames costs no more than such a frame.
func TestClockBacksRightAway(t *testing.T) {
	for _, first := range []time.Duration{0, time.Second, 100 * time.Hour} {
		k := &clock{}
		now := first
		before, _ := k.advance(now, now)
		for range 3 {
			now += clockStep
			before, _ = k.advance(now, now)
		}
		now -= 10 * time.Millisecond
		after, _ := k.advance(now, now)
		require.LessOrEqual(t, after-before, clockStep)
	}
}

// TestDriftOfNoisyArrivals: of clocks that run alike no drift is measured, whichever single inputs came late.
func TestDriftOfNoisyArrivals(t *testing.T) {
	for late := range keptTimings {
		k := &clock{step: clockStep, n: keptTimings}
		for i := range k.needs {
			at := time.Duration(i) * 100 * time.Millisecond
			k.needs[i] = need{0, at, at}
		}
		k.needs[late].ahead = 100 * time.Millisecond
		k.measureDrift()
		require.Zero(t, k.drift, "the %d-th", late)
	}
}

// TestDriftAmidNoise: of clocks that run apart the drift is measured, whenever in a quarter of the arrivals a few inputs came late.
func TestDriftAmidNoise(t *testing.T) {
	for from := range keptTimings / 4 {
		k := &clock{step: clockStep, n: keptTimings}
		for i := range k.needs {
			at := time.Duration(i) * 100 * time.Millisecond
			k.needs[i] = need{at / 100, at, at}
			if into := i % (keptTimings / 4); into >= from && into < from+5 {
				k.needs[i].ahead += time.Duration(1+i/(keptTimings/4)%2) * 200 * time.Millisecond
			}
		}
		k.measureDrift()
		require.InDelta(t, driftShare*0.01, k.drift, 0.0005, "the %d-th on", from)
	}
}

// TestClockGoesOnInAnotherWorld: the clock of a client that follows its player to another server runs as the one of the server that it leaves, by the other world's time:
// with the drift between the clocks that was measured, and with what is heard there of ticks that were made before.
func TestClockGoesOnInAnotherWorld(t *testing.T) {
	const offset, frame, games, lag = 90 * time.Minute, 20 * time.Millisecond, 3 * time.Second, 60 * time.Millisecond
	type tick struct{ at, made time.Duration }
	run := func(k *clock, now time.Duration, passed *time.Duration, ticks *[]tick, frames int) (shown []time.Duration) {
		for i := range frames {
			now, *passed = now+frame, *passed+frame
			local, shared := k.advance(now, now)
			require.Equal(t, local, k.atStep(now))
			at := shared - shared%clockStep
			k.made(at, local, shared)
			*ticks = append(*ticks, tick{at, *passed})
			// The server's clock runs 1 % faster. It tells of a tick that was made a dozen frames ago.
			told := (*ticks)[max(len(*ticks)-12, 0)]
			came := 2*time.Hour + time.Duration(1.01*float64(told.made+lag+time.Duration(i%7)*2*time.Millisecond))
			k.hear(timing{told: true, tick: uint8(told.at / clockStep), early: told.at - came, step: clockStep}, came)
			shown = append(shown, shared)
		}
		return shown
	}
	k, other := &clock{}, &clock{}
	now := time.Hour
	k.advance(now, now)
	other.advance(now+games, now+games) // the games' times may differ by a constant
	k.begin(k.local, 2*time.Hour, 50*time.Millisecond, clockStep)
	var passed time.Duration
	var ticks []tick
	run(k, now, &passed, &ticks, 600)
	require.InDelta(t, 0.01, k.drift, 0.003)
	end := k.game
	other.local = k.local + offset - frame // its frame comes after the other's
	other.game, other.stepped = end+games-frame, end+games-frame
	c := k.copy(offset, other)
	require.Equal(t, c.local+time.Millisecond, c.atStep(end+games+time.Millisecond))
	at, made := passed, append([]tick{}, ticks...)
	want, got := run(k, end, &passed, &ticks, 300), run(c, end+games, &at, &made, 300)
	for i := range want {
		require.InDelta(t, want[i], got[i], float64(10*time.Microsecond), "frame %d", i)
	}
}
