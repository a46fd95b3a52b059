package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// TestBaseOfQuietRounds: rounds in which little is sent say that the path is longer if there are eight of them, all longer than the base, that differ by no more than a path does by itself.
func TestBaseOfQuietRounds(t *testing.T) {
	for name, v := range map[string]struct {
		n           int
		noise       time.Duration
		low, others time.Duration
		base        time.Duration
	}{
		"longer":                   {8, 0, 80 * ms, 80 * ms, 80 * ms},
		"longer, of many rounds":   {29, 0, 80 * ms, 80 * ms, 80 * ms},
		"too few":                  {7, 0, 80 * ms, 80 * ms, 50 * ms},
		"just as far apart":        {8, 0, 80 * ms, 110 * ms, 80 * ms},
		"a queue of others":        {8, 0, 80 * ms, 110*ms + 1, 50 * ms},
		"noise":                    {8, 20 * ms, 80 * ms, 130 * ms, 80 * ms},
		"a queue beyond the noise": {8, 20 * ms, 80 * ms, 130*ms + 1, 50 * ms},
		"shorter":                  {8, 0, 40 * ms, 40 * ms, 50 * ms},
		"as long":                  {8, 0, 50 * ms, 70 * ms, 50 * ms},
	} {
		for at := range 8 { // the low one
			var q queueDelay
			q.base.set(0, 50*ms)
			q.n, q.noises[1] = v.n, v.noise
			for i := range q.last {
				q.last[i] = roundLow{v.others, 1}
			}
			q.last[at].low = v.low
			was := q.base
			q.hush(time.Second)
			require.Equal(t, v.base, q.base.get(), "%s, round %d", name, at)
			if v.base == 50*ms {
				require.Equal(t, was, q.base, "%s: what is no news doesn't make the base younger", name)
			}
		}
	}
}

// TestNoiseIsRemembered: for 20 to 30 s, also by a flow that was silent meanwhile, and up to 40 ms.
func TestNoiseIsRemembered(t *testing.T) {
	var q queueDelay
	for _, v := range []struct{ at, noise, known time.Duration }{
		{0, -ms, 0},
		{0, 10 * ms, 10 * ms},
		{time.Second, 5 * ms, 10 * ms},
		{30*time.Second - 1, 0, 10 * ms},
		{30 * time.Second, 0, 0},
		{41 * time.Second, 7 * ms, 7 * ms},
		{70*time.Second - 1, 0, 7 * ms},
		{70 * time.Second, 0, 0},
		{time.Hour + 5*time.Second, 6 * ms, 6 * ms},
		{time.Hour + 35*time.Second - 1, 0, 6 * ms},
		{time.Hour + 35*time.Second, 0, 0},
		{time.Hour + 36*time.Second, time.Second, maxNoise},
	} {
		q.listen(v.at, v.noise)
		require.Equal(t, v.known, q.noise(), "%v", v.at)
	}
	q.up, q.down = 8*ms, 6*ms
	q.quiet()
	require.Equal(t, []time.Duration{maxNoise / 2, 4 * ms, 3 * ms}, []time.Duration{q.noise(), q.up, q.down}, "half of it is forgotten")
}

// TestNoiseOfRounds: four times what the round trip time goes up and down by on average, less a quarter of the time between bursts. What only rises is a queue.
func TestNoiseOfRounds(t *testing.T) {
	for name, v := range map[string]struct {
		low   func(i int) time.Duration
		apart time.Duration
		noise time.Duration
	}{
		"up and down": {func(i int) time.Duration { return 50*ms + time.Duration(i%2)*8*ms }, 0, 16 * ms},
		"of ticks":    {func(i int) time.Duration { return 50*ms + time.Duration(i%2)*8*ms }, 12 * ms, 4 * ms},
		"a queue":     {func(i int) time.Duration { return 50*ms + time.Duration(i)*8*ms }, 0, 0},
		"a drain":     {func(i int) time.Duration { return time.Second - time.Duration(i)*8*ms }, 0, 0},
	} {
		var q queueDelay
		for i := range 100 {
			q.sample(time.Duration(i)*50*ms, v.low(i), 100, v.apart, false)
		}
		require.InDelta(t, v.noise, q.noise(), float64(2*ms), name)
		if name == "up and down" {
			require.InDelta(t, 4*ms, q.up, float64(ms), "as often as not")
			require.InDelta(t, 4*ms, q.down, float64(ms))
		}
	}
}

// TestLowOfFewPackets: the round trip time of a round is the lowest of the last rounds together that have eight packets where the path's delay varies, or three where the application sends little.
func TestLowOfFewPackets(t *testing.T) {
	for name, v := range map[string]struct {
		noise   time.Duration
		idle    bool
		packets []int
		lows    []time.Duration
		low     time.Duration
		unsure  bool
	}{
		"one packet":              {0, false, []int{1, 1}, []time.Duration{50 * ms, 60 * ms}, 60 * ms, false},
		"idle, three":             {0, true, []int{1, 3}, []time.Duration{50 * ms, 60 * ms}, 60 * ms, false},
		"idle, two":               {0, true, []int{1, 2}, []time.Duration{50 * ms, 60 * ms}, 50 * ms, false},
		"idle, the one before":    {0, true, []int{1, 1, 2}, []time.Duration{40 * ms, 50 * ms, 60 * ms}, 50 * ms, false},
		"idle, no more":           {0, true, []int{1, 1}, []time.Duration{50 * ms, 60 * ms}, 50 * ms, true},
		"noise, eight":            {ms, false, []int{1, 8}, []time.Duration{50 * ms, 60 * ms}, 60 * ms, false},
		"noise, seven":            {ms, true, []int{1, 1, 7}, []time.Duration{40 * ms, 50 * ms, 60 * ms}, 50 * ms, false},
		"noise, of two":           {ms, false, []int{1, 1}, []time.Duration{50 * ms, 60 * ms}, 50 * ms, false},
		"noise, the last eight":   {ms, false, []int{0, 0, 0, 0, 0, 0, 0, 0, 0}, []time.Duration{30 * ms, 40 * ms, 60 * ms, 60 * ms, 60 * ms, 60 * ms, 60 * ms, 60 * ms, 60 * ms}, 40 * ms, false},
		"noise, from the restart": {ms, false, []int{1}, []time.Duration{60 * ms}, 60 * ms, false},
	} {
		var q queueDelay
		q.noises[0] = v.noise
		for i, n := range v.packets {
			q.sample(time.Duration(i)*ms, v.lows[i], n, time.Hour, v.idle)
		}
		require.Equal(t, v.low, q.low, name)
		require.Equal(t, v.unsure, q.unsure, name)
	}
}

// TestAverageOfRounds: the delay follows a round by a quarter after the fourth since a restart, and at once after the first. The base is the lowest average of three rounds or more.
func TestAverageOfRounds(t *testing.T) {
	var q queueDelay
	step := func(low, average, base time.Duration) {
		t.Helper()
		q.sample(0, low, lowPackets, time.Hour, false)
		require.Equal(t, []time.Duration{average, base}, []time.Duration{q.average, q.base.get()})
	}
	step(80*ms, 80*ms, 80*ms)
	step(40*ms, 60*ms, 80*ms)
	step(60*ms, 60*ms, 60*ms)
	step(20*ms, 50*ms, 50*ms)
	step(30*ms, 45*ms, 45*ms)
	step(65*ms, 50*ms, 45*ms)
	q.restart()
	step(30*ms, 30*ms, 45*ms)
	step(50*ms, 40*ms, 45*ms)
	step(40*ms, 40*ms, 40*ms)
	step(80*ms, 50*ms, 40*ms)
	q.rebase(time.Minute)
	require.Equal(t, []time.Duration{80 * ms, 80 * ms}, []time.Duration{q.average, q.base.get()})
	step(100*ms, 100*ms, 80*ms)
}

// TestBaseOfFewPackets: a base that is of rounds of few packets is that of many as soon as there are three rounds of these since a restart, where the path's delay varies by itself: few have less of that than many. It rises by four times
// the noise at most, once, and not where the noise may be a queue.
func TestBaseOfFewPackets(t *testing.T) {
	for name, v := range map[string]struct {
		noise     time.Duration
		packets   int // of the rounds before the restart
		drained   bool
		many      int // of those after it
		low, base time.Duration
	}{
		"longer":                {5 * ms, 3, false, lowPackets, 65 * ms, 65 * ms},
		"much longer":           {5 * ms, 3, false, lowPackets, 90 * ms, 70 * ms},
		"few again":             {5 * ms, 3, false, lowPackets/3 - 1, 65 * ms, 50 * ms},
		"were many":             {5 * ms, lowPackets, false, lowPackets, 65 * ms, 50 * ms},
		"not the first restart": {5 * ms, 3, true, lowPackets, 65 * ms, 50 * ms},
		"no noise":              {0, 3, false, lowPackets, 65 * ms, 50 * ms},
		"as good as all noise":  {maxNoise / 2, 3, false, lowPackets, 65 * ms, 50 * ms},
		"almost as much":        {maxNoise/2 - 1, 3, false, lowPackets, 65 * ms, 65 * ms},
	} {
		q := queueDelay{drained: v.drained}
		sample := func(low time.Duration, packets int) { q.sample(0, low, packets, time.Hour, false) }
		for range len(q.last) {
			sample(50*ms, v.packets)
		}
		for again, base := range []time.Duration{v.base, v.base} {
			q.restart()
			for i := range baseRounds {
				q.noises[0] = v.noise
				require.Equal(t, []time.Duration{50 * ms, base}[again], q.base.get(), "%s: after %d rounds", name, i)
				sample(v.low+time.Duration(again)*5*ms, v.many)
			}
			require.Equal(t, base, q.base.get(), name)
		}
		if v.noise == 0 {
			q.restart()
			q.noises[0] = 5 * ms
			for range baseRounds {
				sample(v.low, v.many)
			}
			require.Equal(t, 65*ms, q.base.get(), "%s: but later", name)
		}
	}
}

// TestLongQueue: on average by more than what is unclear, or at once by more than twice that; and not by so few packets that chance may have made it.
func TestLongQueue(t *testing.T) {
	for _, v := range []struct {
		low, average time.Duration
		unsure, long bool
	}{
		{50 * ms, 70 * ms, false, false},
		{50 * ms, 70*ms + 1, false, true},
		{90 * ms, 50 * ms, false, false},
		{90*ms + 1, 50 * ms, false, true},
		{time.Second, time.Second, true, false},
	} {
		q := queueDelay{low: v.low, average: v.average, unsure: v.unsure}
		q.base.set(0, 50*ms)
		require.Equal(t, v.long, q.long(20*ms), "%+v", v)
		require.Equal(t, v.low-50*ms, q.delay())
	}
	q := queueDelay{low: 40 * ms}
	q.base.set(0, 50*ms)
	require.Zero(t, q.delay())
}

// TestLowOfBatches: the lowest round trip time of the last three batches of 10 ms or more, when there are three.
func TestLowOfBatches(t *testing.T) {
	var q recentRTT
	for _, v := range []struct{ at, rtt, low time.Duration }{
		{time.Second, 50 * ms, 0},
		{time.Second + 10*ms - 1, 40 * ms, 0},
		{time.Second + 10*ms, 45 * ms, 0},
		{time.Second + 20*ms - 1, 60 * ms, 0},
		{time.Second + 20*ms, 70 * ms, 40 * ms},
		{time.Second + 30*ms, 80 * ms, 45 * ms},
		{time.Second + 40*ms, 90 * ms, 70 * ms},
		{time.Second + 41*ms, 20 * ms, 20 * ms},
	} {
		q.sample(v.at, v.rtt)
		require.Equal(t, v.low, q.low(), "%v", v.at)
	}
	q.restart()
	require.Zero(t, q.low())
	q.sample(time.Second+41*ms, 30*ms)
	require.Equal(t, 30*ms, q.lows[0])
}

// TestLeaps: a round trip time leaps when it rises from one packet to the next by twice the time between these or more, and that is known for a second.
func TestLeaps(t *testing.T) {
	const at = 10 * time.Second
	for name, v := range map[string]struct {
		after, rtt time.Duration // when the second packet leaves, and its round trip time
		by         time.Duration
	}{
		"at once":     {10 * ms, 150 * ms, 100 * ms},
		"as slow":     {50 * ms, 150 * ms, 100 * ms},
		"too slow":    {50*ms + 1, 150 * ms, 0},
		"not at all":  {10 * ms, 50 * ms, 0},
		"and shorter": {10 * ms, 40 * ms, 0},
	} {
		var q recentRTT
		q.step(at, 50*ms)
		require.False(t, q.leapt(at, 0), "%s: the first packet is no rise", name)
		now := at - 50*ms + v.after + v.rtt
		q.step(now, v.rtt)
		require.Equal(t, v.by > 0, q.leapt(now, v.by-1), name)
		require.False(t, q.leapt(now, v.by), name)
		require.Equal(t, v.by > 0, q.leapt(now+time.Second-1, 0), name)
		require.False(t, q.leapt(now+time.Second, 0), name)
	}
	var early recentRTT
	early.step(51*ms, 50*ms)
	require.False(t, early.leapt(51*ms, 0), "nor where the clock begins with it")
	var q recentRTT
	q.step(at, 50*ms)
	q.step(at+110*ms, 150*ms)
	q.step(at+180*ms, 200*ms)
	require.True(t, q.leapt(at+180*ms, 99*ms), "a lower one doesn't take its place")
	q.step(at+1200*ms, 50*ms)
	q.step(at+1220*ms, 70*ms)
	require.True(t, q.leapt(at+1220*ms, 19*ms), "a second later it does")
	require.False(t, q.leapt(at+1220*ms, 20*ms))
}

// TestBaseIsForgotten: the base is the lowest round trip time of the last 20 to 30 s since the first, and what was delivered lately the most of them.
func TestBaseIsForgotten(t *testing.T) {
	const s = time.Second
	for from, list := range map[time.Duration][]struct{ at, rtt, base time.Duration }{
		5 * s: {
			{0, 50 * ms, 50 * ms},
			{10*s - 1, 40 * ms, 40 * ms},
			{10 * s, 60 * ms, 40 * ms},
			{30*s - 1, 70 * ms, 40 * ms},
			{30 * s, 80 * ms, 60 * ms},
			{40*s - 1, 90 * ms, 60 * ms},
			{40 * s, 90 * ms, 70 * ms},
			{time.Hour + 3*s, 100 * ms, 100 * ms},
			{time.Hour + 33*s - 1, 120 * ms, 100 * ms},
			{time.Hour + 33*s, 120 * ms, 120 * ms},
			{time.Hour + 34*s, 0, 1},
		},
		0: {{0, 50 * ms, 50 * ms}, {30*s - 1, 80 * ms, 50 * ms}, {30 * s, 80 * ms, 80 * ms}},
	} {
		var b baseRTT
		var lately recentBest
		require.Zero(t, b.get())
		require.Zero(t, lately.get())
		for _, v := range list {
			b.sample(from+v.at, v.rtt)
			require.Equal(t, v.base, b.get(), "%v", v.at)
			lately.sample(v.at, 1e9-float64(v.rtt))
			require.InDelta(t, 1e9-float64(v.base), lately.get(), 1, "%v", v.at)
		}
	}
}
