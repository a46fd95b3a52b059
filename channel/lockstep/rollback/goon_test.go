package rollback

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGoOn: packets of inputs go on behind the last one, up to goOnFrames beyond what is acked.
func TestGoOn(t *testing.T) {
	for onward, want := range map[int64]int64{0: 100, 99: 100, 100: 100, 101: 101, 99 + goOnFrames: 99 + goOnFrames, 100 + goOnFrames: 100} {
		require.Equal(t, want, goOn(100, onward), "%d", onward)
	}
}
