package seqnum_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/history/seqnum"
)

// Every pair of every small space against the definitions of the package's doc.
func TestExhaustive(t *testing.T) {
	for _, s := range []seqnum.Space{1, 2, 3, 4, 5, 6} {
		size := 1 << s
		require.Equal(t, size, s.Size())
		require.Equal(t, uint16(size-1), s.Mask())
		for a := range size {
			require.Equal(t, uint16((a+1)%size), s.Next(uint16(a)))
			for b := range size {
				checkPair(t, s, a, b)
			}
			for near := -3 * size; near < 3*size; near++ {
				checkExpand(t, s, uint16(a), int64(near))
			}
		}
	}
}

func checkPair(t *testing.T, s seqnum.Space, a, b int) {
	size := s.Size()
	forward := ((a-b)%size + size) % size // steps from b on to a
	want := forward
	if forward >= size/2 {
		want = forward - size
	}
	require.Equal(t, want, s.Diff(uint16(a), uint16(b)), "%d bits: %d-%d", s, a, b)
	require.Equal(t, forward > 0 && forward < size/2, s.Less(uint16(b), uint16(a)), "%d bits: %d<%d", s, b, a)
}

// checkExpand looks for the nearest id one by one; the lower of two comes first.
func checkExpand(t *testing.T, s seqnum.Space, wire uint16, near int64) {
	for d := int64(0); ; d++ {
		for _, id := range []int64{near - d, near + d} {
			if s.Truncate(id) == wire {
				require.Equal(t, id, s.Expand(wire, near), "%d bits: %d near %d", s, wire, near)
				return
			}
		}
	}
}

func TestTruncate(t *testing.T) {
	require.Equal(t, uint16(16383), seqnum.Packet.Truncate(-1))
	require.Equal(t, uint16(0), seqnum.Packet.Truncate(16384))
	require.Equal(t, uint16(5), seqnum.Channel.Truncate(1<<40+5))
	require.Equal(t, uint16(65535), seqnum.U16.Truncate(-1))
	require.Equal(t, uint16(0), seqnum.U16.Next(65535))
}

// Numbers of 10 and 14 bits: what an id truncates to expands to it again near by,
// and order goes with difference.
func FuzzSpaces(f *testing.F) {
	f.Add(int64(0), int32(0))
	f.Add(int64(16383), int32(1))
	f.Add(int64(1<<40), int32(-8192))
	f.Add(int64(-1), int32(8191))
	f.Fuzz(func(t *testing.T, id int64, offset int32) {
		id >>= 2 // away from the ends of int64
		for _, s := range []seqnum.Space{seqnum.Channel, seqnum.Packet, seqnum.U16} {
			half := int64(s.Size() / 2)
			near := id + int64(offset)%half
			if got := s.Expand(s.Truncate(id), near); got != id {
				t.Fatalf("%d bits: %d near %d expands to %d", s, id, near, got)
			}
			a, b := s.Truncate(id), s.Truncate(near)
			if d := int64(s.Diff(a, b)); d != id-near {
				t.Fatalf("%d bits: %d-%d is %d, not %d", s, a, b, d, id-near)
			}
			if s.Less(a, b) != (id < near) || s.Less(b, a) != (near < id) {
				t.Fatalf("%d bits: order of %d and %d", s, a, b)
			}
			if s.Next(a) != s.Truncate(id+1) {
				t.Fatalf("%d bits: after %d comes %d", s, a, s.Next(a))
			}
		}
	})
}

func TestAllocs(t *testing.T) {
	id := int64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		id = seqnum.Packet.Expand(seqnum.Packet.Next(seqnum.Packet.Truncate(id)), id)
		if !seqnum.Packet.Less(1, 2) {
			t.Fatal(id)
		}
	}))
}

func Example() {
	newest := int64(40_000) // the last id seen
	for _, wire := range []uint16{7233, 7231, 1} {
		id := seqnum.Packet.Expand(wire, newest)
		fmt.Println(wire, "is packet", id)
	}
	// Output:
	// 7233 is packet 40001
	// 7231 is packet 39999
	// 1 is packet 32769
}
