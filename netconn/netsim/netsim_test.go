package netsim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

func run(t testing.TB, s Settings, seed uint64, n int, gap time.Duration) (l *Link, got map[uint32]int, order []uint32, delays []time.Duration, hash uint64) {
	l, err := NewLink(s, seed)
	require.NoError(t, err)
	got = map[uint32]int{}
	h := fnv.New64a()
	var b [100]byte
	for i, now := 0, time.Duration(0); i < n || l.Len() > 0; now += gap {
		if i < n {
			binary.LittleEndian.PutUint32(b[:], uint32(i))
			binary.LittleEndian.PutUint64(b[4:], uint64(now))
			l.Push(now, b[:])
			i++
		}
		for p, ok := l.Pop(now); ok; p, ok = l.Pop(now) {
			id := binary.LittleEndian.Uint32(p)
			got[id]++
			order = append(order, id)
			delays = append(delays, now-time.Duration(binary.LittleEndian.Uint64(p[4:])))
			h.Write(p)
			fmt.Fprint(h, now)
		}
	}
	return l, got, order, delays, h.Sum64()
}

func TestPerfectLinkKeepsOrder(t *testing.T) {
	_, got, order, _, _ := run(t, Settings{Lag: 20 * ms}, 1, 1000, ms)
	require.Len(t, got, 1000)
	for i, id := range order {
		require.EqualValues(t, i, id)
	}
}

func TestRates(t *testing.T) {
	const n = 20000
	l, got, _, _, _ := run(t, Settings{Loss: 10, Dup: 5, Order: 3, LagMin: 5 * ms, LagMax: 15 * ms}, 7, n, ms)
	require.InDelta(t, n*0.10, float64(l.Counters.Lost), n*0.01)
	require.InDelta(t, n*0.9*0.05, float64(l.Counters.Duplicated), n*0.01)
	require.InDelta(t, n*0.9*0.03, float64(l.Counters.Reordered), n*0.01)
	require.EqualValues(t, n-l.Counters.Lost, len(got))
	for id, times := range got {
		require.LessOrEqual(t, times, 2, "datagram %d", id)
	}
}

// TestProfiles: Unreal's profiles lose as many as they say, and delay by as long.
func TestProfiles(t *testing.T) {
	const n = 20000
	for _, p := range []struct {
		settings  Settings
		loss      float64
		low, high time.Duration
	}{{Average(), 0.01, 30 * ms, 60 * ms}, {Bad(), 0.05, 100 * ms, 200 * ms}} {
		l, _, _, delays, _ := run(t, p.settings, 7, n, ms)
		require.InDelta(t, n*p.loss, float64(l.Counters.Lost), n*0.005)
		require.GreaterOrEqual(t, slices.Min(delays), p.low)
		require.Less(t, slices.Min(delays), p.low+2*ms)
		require.LessOrEqual(t, slices.Max(delays), p.high+ms)
		require.Greater(t, slices.Max(delays), p.high-2*ms)
	}
}

func TestBurst(t *testing.T) {
	l, got, _, _, _ := run(t, Settings{BurstLoss: 1, BurstLength: 5}, 3, 10000, ms)
	require.Greater(t, l.Counters.BurstLost, uint64(300))
	run := 0
	for i := range uint32(10000) {
		if got[i] > 0 {
			require.Zero(t, run%5, "a burst of %d before datagram %d", run, i)
			run = 0
			continue
		}
		run++
	}
}

// TestSetEndsABurst: a link whose new settings have no bursts loses nothing to the one that it was in.
func TestSetEndsABurst(t *testing.T) {
	l, err := NewLink(Settings{BurstLoss: 100, BurstLength: 1000}, 1)
	require.NoError(t, err)
	l.Push(0, []byte{1})
	require.EqualValues(t, 1, l.Counters.BurstLost)
	require.NoError(t, l.Set(Settings{}))
	for range 100 {
		l.Push(0, []byte{1})
	}
	require.Equal(t, 100, l.Len())
}

func TestBandwidthAndQueue(t *testing.T) {
	l, got, _, delays, _ := run(t, Settings{Bandwidth: 400_000, QueueDelay: 100 * ms}, 1, 2000, ms)
	// 100-byte datagrams: 500 a second pass, 1000 are pushed.
	require.InDelta(t, 1000+50, len(got), 20)
	require.Greater(t, l.Counters.QueueFull, uint64(900))
	for _, d := range delays {
		require.LessOrEqual(t, d, 105*ms)
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	s := Settings{Loss: 10, Dup: 10, Order: 10, Corrupt: 10, LagMin: ms, LagMax: 30 * ms, BurstLoss: 1, BurstLength: 3}
	_, _, _, _, a := run(t, s, 5, 3000, ms)
	_, _, _, _, b := run(t, s, 5, 3000, ms)
	_, _, _, _, c := run(t, s, 6, 3000, ms)
	require.Equal(t, a, b)
	require.NotEqual(t, a, c)
}

func TestCorruptFlipsFewBits(t *testing.T) {
	l, err := NewLink(Settings{Corrupt: 100}, 1)
	require.NoError(t, err)
	orig := make([]byte, 8)
	for range 2000 {
		l.Push(0, orig)
		p, ok := l.Pop(0)
		require.True(t, ok)
		flipped := 0
		for _, b := range p {
			for ; b != 0; b &= b - 1 {
				flipped++
			}
		}
		require.LessOrEqual(t, flipped, 3)
		require.Positive(t, flipped)
	}
	require.True(t, bytes.Equal(orig, make([]byte, 8)), "the caller's bytes are left alone")
}

func TestSettingsErrors(t *testing.T) {
	for _, s := range []Settings{{Loss: -1}, {Loss: 101}, {Lag: -1}, {LagMin: 2, LagMax: 1}, {LagMax: 1, Lag: 1}, {LagMax: 1, LagVariance: 1}, {Bandwidth: -1}, {BurstLoss: 1}, {MTU: -1}, {MaxPackets: -1}, {MaxBytes: -1}, {LossMinSize: -1}, {LossMaxSize: -1}, {LossMinSize: 9, LossMaxSize: 8}, {BurstLength: -1}} {
		_, err := NewLink(s, 1)
		require.ErrorIs(t, err, ErrSettings, "%+v", s)
	}
}

func TestMTU(t *testing.T) {
	l, _ := NewLink(Settings{MTU: 50}, 1)
	l.Push(0, make([]byte, 51))
	l.Push(0, make([]byte, 50))
	require.Equal(t, 1, l.Len())
	require.EqualValues(t, 1, l.Counters.TooBig)
}

func TestAllocs(t *testing.T) {
	l, _ := NewLink(Settings{Loss: 10, Dup: 10, LagMin: ms, LagMax: 5 * ms}, 1)
	p, now := make([]byte, 200), time.Duration(0)
	step := func() {
		now += ms
		l.Push(now, p)
		for _, ok := l.Pop(now); ok; _, ok = l.Pop(now) {
		}
	}
	for range 1000 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(1000, step))
}

// TestBoundsOfTheQueue: what a link holds stays within MaxPackets and MaxBytes, and what is lost for that is counted, and takes no time of the narrow place.
func TestBoundsOfTheQueue(t *testing.T) {
	for _, s := range []Settings{{Lag: time.Second, MaxPackets: 10}, {Lag: time.Second, MaxBytes: 10_000}} {
		for _, dup := range []float64{0, 100} {
			s.Dup = dup
			l, err := NewLink(s, 1)
			require.NoError(t, err)
			for range 25 {
				l.Push(0, make([]byte, 1000))
			}
			require.Equal(t, 10, l.Len(), "%+v", s)
			require.EqualValues(t, 25-10+l.Counters.Duplicated, l.Counters.QueueFull)
			require.EqualValues(t, dup/100*5, l.Counters.Duplicated)
		}
	}
	l, err := NewLink(Settings{Bandwidth: 8000, QueueDelay: time.Hour, MaxPackets: 3}, 1)
	require.NoError(t, err)
	for range 100 {
		l.Push(0, make([]byte, 1000))
	}
	require.Equal(t, 3*time.Second, l.QueueDelay(0))
	for now := time.Duration(0); now <= 3*time.Second; now += ms {
		for _, ok := l.Pop(now); ok; _, ok = l.Pop(now) {
		}
	}
	require.EqualValues(t, 3, l.Counters.Passed)
}

// TestBuffersStayWithinTheBytes: whatever the sizes of datagrams were before, the large buffers that a link keeps take no more than MaxBytes.
func TestBuffersStayWithinTheBytes(t *testing.T) {
	const most, large = 1 << 17, 1 << 16
	l, err := NewLink(Settings{MaxBytes: most, Lag: ms}, 1)
	require.NoError(t, err)
	now := time.Duration(0)
	for i := range 20_000 {
		size := 10
		if i%400 == 399 {
			size = large
		}
		l.Push(now, make([]byte, size))
		if i%1000 == 999 {
			now += time.Second
			for _, ok := l.Pop(now); ok; _, ok = l.Pop(now) {
			}
		}
	}
	held, small := cap(l.last), 0
	for _, b := range l.free {
		held += cap(b)
		if cap(b) == smallBuffer {
			small++
		}
	}
	require.Equal(t, held, l.held)
	require.LessOrEqual(t, held-small*smallBuffer, most)
}
