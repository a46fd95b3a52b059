package actorrep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestHeldIsBounded: a client whose calls wait for Stay can't have more of them kept than maxHeld, each counted with what it costs.
func TestHeldIsBounded(t *testing.T) {
	for _, n := range []int{1, 1000} {
		c := &carry{departed: true}
		kept := 0
		for c.hold(bitio.NewReader(make([]byte, n), 8*n)) == nil {
			kept++
		}
		require.Equal(t, maxHeld/(n+partCost), kept)
		require.Len(t, c.held, kept)
		c.gone = true
		require.NoError(t, c.hold(bitio.NewReader(make([]byte, n), 8*n)))
	}
}
