package coding

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestALargePacketIsCoveredOftenEnough: a packet much larger than those behind it makes a few symbols large, not all as long as it is in the window.
func TestALargePacketIsCoveredOftenEnough(t *testing.T) {
	var e Encoder
	id := int64(0)
	add := func(size int) {
		e.Add(id, bytes.Repeat([]byte{1}, size), false)
		id++
	}
	for range 10 {
		add(100)
	}
	add(300)
	large := 0
	for range 6 {
		n, size := e.Covers(id, 6)
		if size == 300 {
			large++
			require.Equal(t, last(6), n)
		} else {
			require.Equal(t, 100, size)
		}
		e.AppendSymbol(nil, id, 0, n, size)
		add(100)
	}
	require.Equal(t, enough, large)
}
