package ring

import (
	"testing"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
)

// TestRingIsDeterministic: the ring saves all of its state.
func TestRingIsDeterministic(t *testing.T) {
	err := rollback.SyncTest(rollback.Config{Players: 2, InputSize: 1}, &rollGame{ring: newRing()}, 2000, func(p int, f int64, dst []byte) {
		dst[0] = byte(f/7*int64(p+3)) & 31
	})
	if err != nil {
		t.Error(err)
	}
}
