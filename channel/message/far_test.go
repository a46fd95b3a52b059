package message

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// figure is a message of eight bits.
type figure struct{ n uint8 }

func (f *figure) Serialize(s *Stream) { s.Uint8(&f.n) }

// one is a packet with a message of an Ordered queue.
func one(id int) *bitio.Reader {
	w := bitio.NewWriter(make([]byte, 16))
	w.WriteBool(false)
	w.WriteInt(1, maxPerPacket+1)
	w.WriteUint16(uint16(id))
	w.WriteUint8(uint8(id))
	return bitio.NewReader(w.Bytes(), w.Len())
}

// TestRoomFollowsWhatWaits: one message far ahead makes no room for all that are missing: a peer could send one on each of many channels, one after the other. Whatever order messages come
// in, all are received in theirs, each once, and what they count ends.
func TestRoomFollowsWhatWaits(t *testing.T) {
	const window = 4096
	var reg Registry
	reg.Add("figure", func() Message { return new(figure) })
	open := func() (*Queue, *held) {
		q, mem := New(Config{Kinds: &reg, Window: window}), new(held)
		q.memory = mem
		return q, mem
	}
	q, mem := open()
	require.NoError(t, q.Read(one(window-1)))
	require.LessOrEqual(t, mem.n, messageCost+1+farCost)
	require.Empty(t, q.in)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, order := range []string{"backwards", "shuffled", "odd ones first", "in turn"} {
		ids := make([]int, window)
		for i := range ids {
			ids[i] = i
		}
		switch order {
		case "backwards":
			slices.Reverse(ids)
		case "shuffled":
			rng.Shuffle(window, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		case "odd ones first":
			slices.SortStableFunc(ids, func(a, b int) int { return b&1 - a&1 })
		}
		q, mem := open()
		got, most := 0, 0 // received, and the most that waited
		for _, id := range ids {
			for range 2 { // the second one is a duplicate
				require.NoError(t, q.Read(one(id)))
			}
			most = max(most, q.waiting)
			require.LessOrEqual(t, len(q.in), thin*(most+leastRing), order)
			if rng.IntN(3) == 0 {
				for m, k := q.Receive(); m != nil; m, k = q.Receive() {
					require.Equal(t, uint8(got), m.(*figure).n, order)
					k.Free(m)
					got++
				}
			}
		}
		for m, k := q.Receive(); m != nil; m, k = q.Receive() {
			require.Equal(t, uint8(got), m.(*figure).n, order)
			k.Free(m)
			got++
		}
		require.Equal(t, window, got, order)
		require.EqualValues(t, window, q.Counters.Duplicate, order)
		require.Empty(t, q.far)
		require.Equal(t, max(0, len(q.in)-leastRing)*incomingSize, mem.n, "%s: the ring is what is left", order)
		require.Zero(t, q.waitBytes)
	}
}

// TestFarRoomStaysCounted: what a map once had room for counts until it is gone, since it doesn't shrink.
func TestFarRoomStaysCounted(t *testing.T) {
	var reg Registry
	reg.Add("figure", func() Message { return new(figure) })
	q, mem := New(Config{Kinds: &reg, Window: 4096}), new(held)
	q.memory = mem
	read := func(from, to int) {
		for id := from; id < to; id++ {
			require.NoError(t, q.Read(one(id)))
		}
	}
	receive := func() (n int) {
		for m, k := q.Receive(); m != nil; m, k = q.Receive() {
			k.Free(m)
			n++
		}
		return n
	}
	read(4000, 4001)
	for id := 3000; id < 3500; id += farPage {
		read(id, id+1)
	}
	pages := q.farRoom
	require.Equal(t, len(q.far), pages)
	require.Greater(t, pages, 15)
	read(0, 3000)
	read(3000, 3500)
	require.Equal(t, 3500, receive())
	require.Len(t, q.far, 1)
	require.GreaterOrEqual(t, mem.n, pages*farCost)
	read(3500, 4000)
	require.Equal(t, 501, receive())
	require.Nil(t, q.far)
	require.Equal(t, (len(q.in)-leastRing)*incomingSize, mem.n)
}
