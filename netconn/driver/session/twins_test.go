package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestTwoOfOneIdentity: two machines that dial with the same identity don't take each other's place for ever: who was replaced hears why, also where packets get lost and overtake
// each other, and gives up.
func TestTwoOfOneIdentity(t *testing.T) {
	for _, loss := range []float64{0, 10, 40} {
		for seed := range uint64(10) {
			r := newRig(t, seed, netsim.Settings{Loss: loss, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}, func(r *rig) { r.ids = map[string]uint64{"Bob": 1} })
			r.world.RunUntil(60 * time.Second)
			require.Nil(t, r.world.Failure())
			here, away := r.players.Len()
			require.Equal(t, []int{1, 0}, []int{here, away})
			one, other := r.clients["Ann"].Err(), r.clients["Bob"].Err()
			require.True(t, (one == nil) != (other == nil), "loss %v, seed %d: %v, %v", loss, seed, one, other)
			require.ErrorIs(t, errors.Join(one, other), driver.ErrReplaced)
			require.LessOrEqual(t, len(r.told), 7, "loss %v, seed %d: %v", loss, seed, r.told)
		}
	}
}
