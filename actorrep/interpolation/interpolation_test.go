package interpolation_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/interpolation"
	"github.com/bunchnet/bunchnet/actorrep/netclock"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

const ms = time.Millisecond

func lerp(a, b, t float64) float64 { return a + (b-a)*t }

func newBuffer(t testing.TB, cfg interpolation.BufferConfig[float64]) *interpolation.Buffer[float64] {
	cfg.Lerp = lerp
	b, err := interpolation.NewBuffer(cfg)
	require.NoError(t, err)
	return b
}

// The naive buffer: all snapshots ever pushed; those held are the youngest ones.
func modelAt(held map[time.Duration]float64, t time.Duration) (float64, interpolation.State) {
	before, next := time.Duration(math.MinInt64), time.Duration(math.MaxInt64)
	for at := range held {
		if at <= t {
			before = max(before, at)
		} else {
			next = min(next, at)
		}
	}
	switch {
	case len(held) == 0:
		return 0, interpolation.Empty
	case before == math.MinInt64:
		return held[next], interpolation.Early
	case next != math.MaxInt64:
		return lerp(held[before], held[next], float64(t-before)/float64(next-before)), interpolation.Interpolated
	case t == before:
		return held[before], interpolation.Interpolated
	}
	prev := time.Duration(math.MinInt64)
	for at := range held {
		if at < before {
			prev = max(prev, at)
		}
	}
	state, to := interpolation.Extrapolated, t
	if t > before+100*ms {
		state, to = interpolation.Stale, before+100*ms
	}
	if prev == math.MinInt64 || before-prev < ms {
		return held[before], state
	}
	return lerp(held[prev], held[before], float64(to-prev)/float64(before-prev)), state
}

func TestBufferModel(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		capacity := 2 + rnd.IntN(8)
		b := newBuffer(t, interpolation.BufferConfig[float64]{Capacity: capacity, MaxExtrapolation: 100 * ms})
		held := map[time.Duration]float64{}
		seen := map[interpolation.State]bool{}
		for range 200 {
			at := time.Duration(rnd.IntN(2000)) * ms / 2
			v := rnd.Float64()
			oldest := time.Duration(math.MaxInt64)
			for k := range held {
				oldest = min(oldest, k)
			}
			_, dup := held[at]
			want := !dup && (len(held) < capacity || at > oldest)
			require.Equal(t, want, b.Push(at, v), "seed %d", seed)
			if want {
				if len(held) == capacity {
					delete(held, oldest)
				}
				held[at] = v
			}
			if rnd.IntN(50) == 0 {
				b.Reset()
				clear(held)
			}
			require.Equal(t, len(held), b.Len())
			for range 5 {
				at := time.Duration(rnd.IntN(2600)-200) * ms / 2
				v, state := b.At(at)
				wantV, wantState := modelAt(held, at)
				require.Equal(t, wantState, state, "seed %d at %v", seed, at)
				require.InDelta(t, wantV, v, 1e-9*max(1, math.Abs(wantV)), "seed %d at %v", seed, at)
				seen[state] = true
			}
		}
		require.GreaterOrEqual(t, len(seen), 4, "seed %d: too few kinds of cases", seed)
	}
}

func TestTeleport(t *testing.T) {
	b, err := interpolation.NewBuffer(interpolation.BufferConfig[float64]{Lerp: lerp,
		Teleport: func(a, b float64) bool { return math.Abs(a-b) > 10 }})
	require.NoError(t, err)
	b.Push(100*ms, 1)
	b.Push(200*ms, 2)
	b.Push(300*ms, 500)
	for _, c := range []struct {
		at   time.Duration
		want float64
	}{{150 * ms, 1.5}, {200 * ms, 2}, {299 * ms, 2}, {300 * ms, 500}, {350 * ms, 500}, {time.Hour, 500}} {
		v, _ := b.At(c.at)
		require.InDelta(t, c.want, v, 1e-9, "at %v", c.at)
	}
	b.Push(400*ms, 501)
	v, state := b.At(500 * ms)
	require.InDelta(t, 502, v, 1e-9)
	require.Equal(t, interpolation.Extrapolated, state)
}

func TestNoExtrapolation(t *testing.T) {
	b := newBuffer(t, interpolation.BufferConfig[float64]{MaxExtrapolation: -1})
	b.Push(0, 1)
	b.Push(100*ms, 2)
	v, state := b.At(101 * ms)
	require.Equal(t, 2.0, v)
	require.Equal(t, interpolation.Stale, state)
}

// playResult is what a run over a link showed.
type playResult struct {
	delay        time.Duration // at the end
	extrapolated float64       // share of frames
	worst        float64       // distance from the true movement, where interpolated
}

// play sends a sine at 30 Hz over a link, and shows it at 100 Hz.
func play(t *testing.T, link netsim.Settings, seed uint64) playResult {
	l, err := netsim.NewLink(link, seed)
	require.NoError(t, err)
	tl, err := interpolation.NewTimeline(interpolation.Config{})
	require.NoError(t, err)
	b := newBuffer(t, interpolation.BufferConfig[float64]{})
	truth := func(at time.Duration) float64 { return math.Sin(2 * at.Seconds()) }
	const offset = 12345 * time.Second // of the sender's clock
	last, frames, ext, res := time.Duration(0), 0, 0, playResult{}
	for now := time.Duration(0); now < 30*time.Second; now += 10 * ms {
		if now%(30*ms) == 0 {
			var p [8]byte
			binary.LittleEndian.PutUint64(p[:], uint64(now+offset))
			l.Push(now, p[:])
		}
		for p, ok := l.Pop(now); ok; p, ok = l.Pop(now) {
			at := time.Duration(binary.LittleEndian.Uint64(p))
			tl.Arrived(now, at)
			b.Push(at, truth(at))
		}
		at, ok := tl.Shown(now)
		if !ok {
			continue
		}
		require.GreaterOrEqual(t, at, last, "seed %d: time ran back", seed)
		last = at
		v, state := b.At(at)
		if now < 5*time.Second {
			continue
		}
		frames++
		if state == interpolation.Interpolated {
			res.worst = max(res.worst, math.Abs(v-truth(at)))
		} else {
			ext++
		}
	}
	res.delay, res.extrapolated = tl.Delay(), float64(ext)/float64(frames)
	if link.Dup > 0 {
		require.NotZero(t, tl.Counters.Late)
	}
	return res
}

func TestDelayAdapts(t *testing.T) {
	for seed := range uint64(10) {
		clean := play(t, netsim.Settings{Lag: 50 * ms}, seed)
		jitter := play(t, netsim.Settings{LagMin: 20 * ms, LagMax: 80 * ms, Dup: 3}, seed)
		lossy := play(t, netsim.Settings{Lag: 50 * ms, Loss: 15}, seed)
		require.Zero(t, clean.extrapolated, "seed %d", seed)
		require.InDelta(t, float64(35*ms), float64(clean.delay), float64(11*ms), "seed %d: an interval and the margin", seed)
		require.Greater(t, jitter.delay, clean.delay+30*ms, "seed %d", seed)
		require.Less(t, jitter.delay, 140*ms, "seed %d", seed)
		require.Greater(t, lossy.delay, clean.delay+20*ms, "seed %d", seed)
		for _, r := range []playResult{jitter, lossy} {
			require.Less(t, r.extrapolated, 0.06, "seed %d: %+v", seed, r)
			require.Less(t, r.worst, 0.02, "seed %d: %+v", seed, r)
		}
	}
}

func TestTimelineBounds(t *testing.T) {
	tl, err := interpolation.NewTimeline(interpolation.Config{MinDelay: 60 * ms, MaxDelay: 90 * ms})
	require.NoError(t, err)
	_, ok := tl.Shown(0)
	require.False(t, ok)
	require.Equal(t, 90*ms, tl.Delay())
	for i := range 100 {
		at := time.Duration(i) * 10 * ms
		tl.Arrived(at, at)
	}
	require.Equal(t, 60*ms, tl.Delay())
	for i := range 100 {
		at := time.Second + time.Duration(i)*500*ms
		tl.Arrived(at, at)
	}
	require.Equal(t, 90*ms, tl.Delay())
	jumps, stands := tl.Jumps()
	require.Zero(t, jumps+stands)
}

func TestConfigs(t *testing.T) {
	for i, cfg := range []interpolation.Config{
		{MinDelay: -1}, {MinDelay: time.Second}, {InitialDelay: time.Second}, {Margin: -2}, {Quantile: 1.1}, {Quantile: -1}, {Window: 7}, {Window: 257},
	} {
		_, err := interpolation.NewTimeline(cfg)
		require.ErrorIs(t, err, interpolation.ErrConfig, "case %d", i)
	}
	_, err := interpolation.NewTimeline(interpolation.Config{Follower: netclock.FollowerConfig{MaxSlew: 2}})
	require.ErrorIs(t, err, netclock.ErrConfig)
	for i, cfg := range []interpolation.BufferConfig[float64]{{}, {Lerp: lerp, MaxExtrapolation: -2}, {Lerp: lerp, Capacity: 1}, {Lerp: lerp, Capacity: 1025}} {
		_, err := interpolation.NewBuffer(cfg)
		require.ErrorIs(t, err, interpolation.ErrConfig, "case %d", i)
	}
	require.Equal(t, "stale State(9)", fmt.Sprint(interpolation.Stale, interpolation.State(9)))
}

func TestAllocs(t *testing.T) {
	tl, err := interpolation.NewTimeline(interpolation.Config{})
	require.NoError(t, err)
	b := newBuffer(t, interpolation.BufferConfig[float64]{})
	now := time.Duration(0)
	require.Zero(t, testing.AllocsPerRun(500, func() {
		now += 33 * ms
		tl.Arrived(now, now)
		b.Push(now, 1)
		at, _ := tl.Shown(now)
		b.At(at)
	}))
}

// TestBufferMemory: a buffer of a thing that rests takes the memory of two snapshots, and none takes more than that of its Capacity in the end.
func TestBufferMemory(t *testing.T) {
	type pose [200]byte
	const many, capacity = 100, 48
	buffers := make([]*interpolation.Buffer[pose], many)
	took := func(pushes int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range buffers {
			var err error
			buffers[i], err = interpolation.NewBuffer(interpolation.BufferConfig[pose]{Lerp: func(a, _ pose, _ float64) pose { return a }, Capacity: capacity})
			require.NoError(t, err)
			for at := range time.Duration(pushes) {
				require.True(t, buffers[i].Push(at, pose{}))
			}
			require.Equal(t, min(pushes, capacity), buffers[i].Len())
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / many
	}
	require.Less(t, took(2), uint64(4*len(pose{})))
	require.Less(t, took(3*capacity), uint64(3*capacity*len(pose{})))
}

func Example() {
	timeline, err := interpolation.NewTimeline(interpolation.Config{})
	if err != nil {
		panic(err)
	}
	door, err := interpolation.NewBuffer(interpolation.BufferConfig[float64]{
		Lerp: func(a, b, t float64) float64 { return a + (b-a)*t },
	})
	if err != nil {
		panic(err)
	}
	for at := time.Duration(0); at <= 200*time.Millisecond; at += 50 * time.Millisecond {
		timeline.Arrived(at+30*time.Millisecond, at) // each took 30 ms
		door.Push(at, at.Seconds()*90)               // degrees
	}
	shown, _ := timeline.Shown(230 * time.Millisecond)
	angle, state := door.At(shown)
	fmt.Printf("%v ago it stood at %.1f degrees, %v\n", timeline.Delay(), angle, state)
	// Output: 100ms ago it stood at 9.0 degrees, interpolated
}

func BenchmarkArrived(b *testing.B) {
	tl, err := interpolation.NewTimeline(interpolation.Config{})
	require.NoError(b, err)
	rnd, now := rand.New(rand.NewPCG(1, 1)), time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 33 * ms
		tl.Arrived(now+time.Duration(rnd.IntN(30))*ms, now)
	}
}

// TestLatenessOnly: the time between arrivals, as of a sender that falls silent, doesn't lengthen the delay then; how late they are does.
func TestLatenessOnly(t *testing.T) {
	for _, only := range []bool{false, true} {
		tl, err := interpolation.NewTimeline(interpolation.Config{LatenessOnly: only})
		require.NoError(t, err)
		for i := range 100 {
			at := time.Duration(i) * 200 * ms
			tl.Arrived(at+50*ms+time.Duration(i%5)*10*ms, at)
		}
		if want := 40*ms + 5*ms; only {
			require.Equal(t, want, tl.Delay())
		} else {
			require.Equal(t, want+200*ms, tl.Delay())
		}
	}
}
