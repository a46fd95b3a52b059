package wire

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
		var to, from Paths
		w := bitio.NewWriter(make([]byte, 4096))
		var sent []Path
		for range 300 {
			p := Path{}
			if rng.IntN(5) > 0 {
				p.Age = uint8(1 + rng.IntN(1+int(seed%20)))
			}
			if p.Age > 0 && rng.IntN(4) > 0 {
				p.Gap, p.Form = uint8(1+rng.IntN(3)), uint8(rng.IntN(4))
			}
			sent = append(sent, p)
			to.Write(w, p)
		}
		require.NoError(t, w.Err())
		r := bitio.NewReader(w.Bytes(), w.Len())
		for i, p := range sent {
			require.Equal(t, p, from.Read(r), "seed %d, %d", seed, i)
		}
		require.NoError(t, r.Err())
		require.Zero(t, r.Remaining())
		require.Equal(t, to, from)
	}
}

// TestPathTakesABit: a path that is named again takes a bit.
func TestPathTakesABit(t *testing.T) {
	var l Paths
	w := bitio.NewWriter(make([]byte, 64))
	p := Path{4, 2, 1}
	l.Write(w, p)
	n := w.Len()
	l.Write(w, p)
	require.Equal(t, n+1, w.Len())
	l.Write(w, Path{})
	l.Write(w, p)
	require.Equal(t, n+1+4+4, w.Len())
}
