package message

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// everything has a field of each kind.
type everything struct {
	yes, no bool
	bits    uint64
	low     int32
	u8      uint8
	u16     uint16
	u32     uint32
	u64     uint64
	bytes   []byte
	text    string
}

func (e *everything) Serialize(s *Stream) {
	s.Bool(&e.yes)
	s.Bool(&e.no)
	s.Bits(&e.bits, 13)
	s.Int(&e.low, -7, 900)
	s.Uint8(&e.u8)
	s.Uint16(&e.u16)
	s.Uint32(&e.u32)
	s.Uint64(&e.u64)
	s.Bytes(&e.bytes, 20)
	s.String(&e.text, 20)
}

// TestFieldsArriveAsTheyWere: whatever the fields are, and who sends a message has it as it was.
func TestFieldsArriveAsTheyWere(t *testing.T) {
	var reg Registry
	kind := reg.Add("everything", func() Message { return new(everything) })
	sent := func() *everything {
		return &everything{yes: true, bits: 1<<13 - 2, low: -7, u8: 254, u16: math.MaxUint16 - 1, u32: math.MaxUint32 - 1, u64: math.MaxUint64 - 1, bytes: []byte{1, 2, 3}, text: "four"}
	}
	a, b := New(Config{Kinds: &reg}), New(Config{Kinds: &reg})
	m := sent()
	require.NoError(t, a.Send(kind, m))
	require.Equal(t, sent(), m)
	w := bitio.NewWriter(make([]byte, 200))
	require.Equal(t, 1, a.Write(0, w))
	require.NoError(t, b.Read(bitio.NewReader(w.Bytes(), w.Len())))
	got, _ := b.Receive()
	require.Equal(t, sent(), got)
	r := bitio.NewReader(w.Bytes(), w.Len())
	r.ReadBool()
	r.ReadInt(maxPerPacket + 1)
	r.ReadUint16()
	require.True(t, r.ReadBool(), "yes is 1 on the wire")
	require.False(t, r.ReadBool())
}

// TestWrittenIsGone: what a Write has written isn't written by the next one, in any mode, though Sent wasn't called.
func TestWrittenIsGone(t *testing.T) {
	for mode := Ordered; mode <= Sequenced; mode++ {
		var reg Registry
		kind := reg.Add("figure", func() Message { return new(figure) })
		q := New(Config{Mode: mode, Kinds: &reg})
		for want := range 3 {
			if want > 0 {
				require.NoError(t, q.Send(kind, new(figure)))
			}
			w := bitio.NewWriter(make([]byte, 200))
			require.Equal(t, min(want, 1), q.Write(time.Duration(want), w), "mode %d", mode)
		}
		require.Zero(t, q.Write(3, bitio.NewWriter(make([]byte, 200))), "mode %d", mode)
	}
}

// TestRoomAloneWaits: a packet that only tells of room leaves when there is a quarter of the window more, and one with messages tells of a sixteenth.
func TestRoomAloneWaits(t *testing.T) {
	for _, c := range []struct {
		received int64
		messages int
		want     int
		tells    bool
	}{{3, 0, 0, false}, {15, 0, 0, false}, {16, 0, 1, true}, {3, 1, 1, false}, {4, 1, 1, true}} {
		var reg Registry
		kind := reg.Add("figure", func() Message { return new(figure) })
		q := New(Config{Kinds: &reg, Window: 64})
		q.recvNext = c.received
		for range c.messages {
			require.NoError(t, q.Send(kind, new(figure)))
		}
		w := bitio.NewWriter(make([]byte, 200))
		require.Equal(t, c.want, q.Write(0, w), "%+v", c)
		r := bitio.NewReader(w.Bytes(), w.Len())
		require.Equal(t, c.tells, r.ReadBool(), "%+v", c)
		if c.tells {
			require.EqualValues(t, 64+c.received, r.ReadUint16(), "%+v", c)
		}
	}
}

// TestReachGrows: how many messages may be sent ahead grows by as many as arrive, by one for each packet beyond half of what was too many, and never above the window.
func TestReachGrows(t *testing.T) {
	for _, c := range []struct{ reach, calm, n, want int }{{9, 10, 5, 14}, {10, 10, 5, 11}, {11, 10, 5, 12}, {99, 200, 5, 100}, {100, 10, 1, 100}, {5, 0, 5, 6}} {
		v := vain{reach: c.reach, calm: c.calm}
		v.acked(0, c.n, 100)
		require.Equal(t, c.want, v.reach, "%+v", c)
	}
}
