package coding

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSymbolVector holds the wire: a symbol that was worked out by hand from the package's doc.
func TestSymbolVector(t *testing.T) {
	contents := [][]byte{{0x11, 0x22, 0x81}, {0x80}, {0xff, 0x01}}
	const carrier = 1<<14 + 5 // sequence 5
	var e Encoder
	for i, c := range contents {
		e.Add(int64(carrier-3+i), c, false)
	}
	want := []byte{0, 0, 0}
	copy(want, contents[2]) // the newest
	x := uint32(4*5 + 2 + 1)
	y := uint64(x) * 0x9e3779b1 & 0xffffffff
	for _, c := range [][]byte{contents[1], contents[0]} {
		y ^= y << 13 & 0xffffffff
		y ^= y >> 17
		y ^= y << 5 & 0xffffffff
		coefficient := uint8(1 + 255*(y>>16)>>16)
		for i, b := range c {
			want[i] ^= slowMultiply(coefficient, b)
		}
	}
	n, size := e.Covers(carrier, 8)
	require.Equal(t, Cover(0b111), n)
	require.Equal(t, 3, size)
	require.Equal(t, want, e.AppendSymbol(nil, carrier, 2, n, size))
	require.Equal(t, []byte{0x2b, 0xfe, 0x6e}, want)
}

// TestSymbolVectorWithoutSome: one that isn't covered has its coefficient drawn too.
func TestSymbolVectorWithoutSome(t *testing.T) {
	var whole, some Encoder
	for i, c := range [][]byte{{0x11, 0x22, 0x81}, {0, 0, 0}, {0xff, 0x01}} {
		whole.Add(int64(i), c, false)
		some.Add(int64(i), c, i == 1)
	}
	require.Equal(t, whole.AppendSymbol(nil, 3, 1, 0b111, 3), some.AppendSymbol(nil, 3, 1, 0b101, 3))
	p := AppendEnd([]byte{7, 1, 2, 3}, 1, 0b101, 3, 0)
	require.Equal(t, []byte{7, 1, 2, 3, 5, 0, 0x80, 0x83, 0x12, 0}, p)
}
