package rollback

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// told is a packet of player 1 of two.
func told(s *Session, frame, lead, check int64, sum uint64) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{typePlay, 1}, s.agreement)
	b = binary.AppendUvarint(b, uint64(frame))
	b = append(binary.AppendVarint(b, lead), 0) // nobody is silent
	b = binary.AppendVarint(b, -frame)          // how far it has the local player's inputs
	b = binary.AppendVarint(b, -frame)          // and its own
	if b = binary.AppendUvarint(b, uint64(check)); check > 0 {
		b = binary.LittleEndian.AppendUint64(b, sum)
	}
	return b
}

func lied(t *testing.T, event func(Event)) *Session {
	s, err := New(Config{Players: 2, InputSize: 1, Event: event}, still{})
	require.NoError(t, err)
	require.NoError(t, s.Connect(1, nowhere{}))
	return s
}

// TestLeadOfALiar: a player can't say once that it is so far behind that this machine waits for seconds.
func TestLeadOfALiar(t *testing.T) {
	for _, lead := range []int64{-maxFrame, maxFrame, -1001, 1001} {
		s := lied(t, nil)
		require.ErrorIs(t, s.Receive(0, 1, told(s, 0, lead, 0, 0)), ErrMalformed, "%d", lead)
		require.Zero(t, s.players[1].lead)
	}
	for _, lead := range []int64{-1000, 1000} {
		s := lied(t, nil)
		require.NoError(t, s.Receive(0, 1, told(s, 0, lead, 0, 0)))
		require.LessOrEqual(t, math.Abs(s.players[1].lead), 1000.0/32)
	}
}

// TestCheckOfFramesToCome: a player can't give a checksum of a frame that it hasn't simulated, after which no other would be compared.
func TestCheckOfFramesToCome(t *testing.T) {
	desynced := 0
	s := lied(t, func(e Event) {
		if e.Kind == Desynced {
			desynced++
		}
	})
	require.ErrorIs(t, s.Receive(0, 1, told(s, 15, 0, 1, 1)), ErrMalformed)
	require.ErrorIs(t, s.Receive(0, 1, told(s, 15, 0, maxFrame/CheckEvery, 1)), ErrMalformed)
	s.checks[1] = check{CheckEvery, 5}
	require.NoError(t, s.Receive(0, 1, told(s, CheckEvery, 0, 1, 1)))
	require.Equal(t, 1, desynced)
}

// TestNeverAcked: what is written for a player, or a spectator, that never acks is no more than a few times the packet.
func TestNeverAcked(t *testing.T) {
	ring := make([]byte, 1024*256)
	for i := range ring {
		ring[i] = byte(i * 7 >> 3)
	}
	zero := make([]byte, 256)
	asked := 0
	at := func(f int64) []byte { asked++; return ring[f*256 : f*256+256 : f*256+256] }
	b := make([]byte, 0, 400)
	for _, c := range []struct{ room, count, want int }{{400, 1000, 1}, {1400, 1000, 5}, {200, 1000, 0}, {1400, 2, 2}, {1 << 20, 1000, 128}} {
		asked = 0
		out, n := appendInputs(b[:0], c.room, zero, 0, int64(c.count), at)
		require.Equal(t, c.want, n)
		require.LessOrEqual(t, len(out), c.room)
		require.LessOrEqual(t, asked, 2*(c.want+1), "room for %d: inputs read", c.want)
	}
}

// BenchmarkNeverAcked is a packet of inputs that fill it, of which none is acked.
func BenchmarkNeverAcked(b *testing.B) {
	ring := make([]byte, 1024*256)
	for i := range ring {
		ring[i] = byte(i * 7 >> 3)
	}
	zero, out := make([]byte, 256), make([]byte, 0, 400)
	at := func(f int64) []byte { return ring[f*256 : f*256+256 : f*256+256] }
	b.ReportAllocs()
	for b.Loop() {
		out, _ = appendInputs(out[:0], 400, zero, 0, 1000, at)
	}
}
