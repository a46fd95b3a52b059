package channel

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestManyTurnsInVain: a peer that refused for long is taken as short no longer than one that refused a few hundred times: as many turns must succeed.
func TestManyTurnsInVain(t *testing.T) {
	var succeed [2]int
	for i, refused := range []int{2 * mostVain, 100_000} {
		s := newStub(t, false, noControl)
		for range refused {
			s.table.inVain()
		}
		s.table.refusing = 100
		for ; s.table.short; succeed[i]++ {
			s.table.notInVain()
		}
	}
	require.Equal(t, succeed[0], succeed[1])
	require.Less(t, succeed[0], 20)
}

// TestHoldSentLeavesNothing: what a channel needs to count what its handler keeps of what it sent is given back with the last of it.
func TestHoldSentLeavesNothing(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	require.Nil(t, ch.rare)
	require.NoError(t, ch.HoldSent(100))
	ch.ReleaseSent(40)
	require.NotNil(t, ch.rare)
	ch.ReleaseSent(60)
	require.Nil(t, ch.rare)
	require.Zero(t, s.table.heldOut)
}
