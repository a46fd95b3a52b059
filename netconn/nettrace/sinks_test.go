package nettrace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func random(rng *rand.Rand) Event {
	e := Event{At: time.Duration(rng.Int64N(1e15)) / 1000 * 1000, Kind: Kind(rng.IntN(int(kinds))), Conn: rng.Uint32()}
	if rng.IntN(2) == 0 {
		e.PacketID, e.ChSequence, e.ChIndex = rng.Int64()-1<<62, rng.Int64N(1024), rng.Uint32()
	}
	if rng.IntN(2) == 0 {
		e.Bits, e.A, e.B = rng.Uint32(), rng.Uint64(), rng.Uint64()
	}
	return e
}

// TestRing compares the ring with all events that there were.
func TestRing(t *testing.T) {
	for _, size := range []int{0, 1, 7, 64} {
		r, all := NewRing(size), []Event(nil)
		rng := rand.New(rand.NewPCG(uint64(size), 1))
		for range 200 {
			e := random(rng)
			r.Trace(&e)
			all = append(all, e)
			want := all[max(0, len(all)-max(1, size)):]
			var got []Event
			for e := range r.All {
				got = append(got, e)
			}
			require.Equal(t, want, got)
			require.Equal(t, len(want), r.Len())
			require.EqualValues(t, len(all), r.Total())
		}
		for range r.All {
			break
		}
	}
}

// TestJSONL reads back with encoding/json what was written.
func TestJSONL(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	var out bytes.Buffer
	j, all := NewJSONL(&out), []Event(nil)
	for range 2000 {
		e := random(rng)
		j.Trace(&e)
		all = append(all, e)
	}
	require.NoError(t, j.Flush())
	lines := bufio.NewScanner(&out)
	for i, want := range all {
		require.True(t, lines.Scan(), "seed %d line %d", seed, i)
		var got struct {
			At             float64
			Conn, Ch, Bits uint32
			Kind           string
			Packet, Seq    int64
			A, B           uint64
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &got), "%s", lines.Text())
		require.InDelta(t, want.At.Seconds(), got.At, 1e-6)
		require.Equal(t, want.Kind.String(), got.Kind)
		require.Equal(t, Event{PacketID: want.PacketID, ChSequence: want.ChSequence, A: want.A, B: want.B, Conn: want.Conn, ChIndex: want.ChIndex, Bits: want.Bits},
			Event{PacketID: got.Packet, ChSequence: got.Seq, A: got.A, B: got.B, Conn: got.Conn, ChIndex: got.Ch, Bits: got.Bits}, "seed %d line %d", seed, i)
		require.Less(t, len(lines.Bytes()), maxJSON)
	}
	require.False(t, lines.Scan())
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestJSONLError(t *testing.T) {
	boom := errors.New("disk full")
	j := NewJSONL(failing{boom})
	for range 10_000 {
		j.Trace(&Event{Kind: PacketSent})
	}
	require.ErrorIs(t, j.Flush(), boom)
	require.LessOrEqual(t, cap(j.buf), jsonlBuffer)
}

func TestTee(t *testing.T) {
	a, b := NewRing(2), NewRing(2)
	Tee{a, b}.Trace(&Event{Kind: PacketSent, Conn: 4})
	require.Equal(t, a, b)
	require.EqualValues(t, 1, a.Total())
	require.Equal(t, "Kind(200)", Kind(200).String())
	require.JSONEq(t, `{"at":0,"conn":4,"kind":"PacketSent","packet":-3}`, Event{Kind: PacketSent, Conn: 4, PacketID: -3}.String())
}

func TestAllocs(t *testing.T) {
	r, j := NewRing(64), NewJSONL(io.Discard)
	tee := Tee{r, j}
	e := Event{Kind: BunchSent, PacketID: 5, A: 7}
	require.Zero(t, testing.AllocsPerRun(10_000, func() { tee.Trace(&e) }))
}
