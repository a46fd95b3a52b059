package netconn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSettledNotesAreForgotten: what is settled names no channel any more, or a closed channel would stay in memory until the ring comes round.
func TestSettledNotesAreForgotten(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.NetSpeed = 10_000_000 })
	for range 20 {
		h.packet(0, false)
		h.give(0, h.packet(0, true))
	}
	for range 5 {
		h.exchange()
	}
	for i, c := range h.conns {
		require.Equal(t, c.noteHead, c.noteTail)
		for _, n := range c.notes {
			require.Equal(t, note{}, n, "end %d", i)
		}
	}
}
