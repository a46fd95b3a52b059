package actorrep

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestPaths: both ends of a chunk know the same paths by the same places, however many there are.
func TestPaths(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var to, from pathList
		w := bitio.NewWriter(make([]byte, 4096))
		var sent []path
		for range 300 {
			p := path{}
			if rng.IntN(5) > 0 {
				p.age = uint8(1 + rng.IntN(1+int(seed%20)))
			}
			if p.age > 0 && rng.IntN(4) > 0 {
				p.gap, p.full = uint8(1+rng.IntN(3)), rng.IntN(2) == 0
			}
			sent = append(sent, p)
			to.write(w, p)
		}
		require.NoError(t, w.Err())
		r := bitio.NewReader(w.Bytes(), w.Len())
		for i, p := range sent {
			require.Equal(t, p, from.read(r), "seed %d, %d", seed, i)
		}
		require.NoError(t, r.Err())
		require.Zero(t, r.Remaining())
		require.Equal(t, to, from)
	}
}

// TestPathTakesABit: a path that is named again takes a bit.
func TestPathTakesABit(t *testing.T) {
	var l pathList
	w := bitio.NewWriter(make([]byte, 64))
	p := path{4, 2, true}
	l.write(w, p)
	n := w.Len()
	l.write(w, p)
	require.Equal(t, n+1, w.Len())
	l.write(w, path{})
	l.write(w, p)
	require.Equal(t, n+1+4+4, w.Len())
}
