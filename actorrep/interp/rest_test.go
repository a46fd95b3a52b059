package interp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRest: a gap is a rest when fewer packets were missed in it than values would have come, or when so many in a row aren't lost.
func TestRest(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		gap    time.Duration
		missed int64
		reach  float64
		rest   bool
	}{
		{100 * ms, 0, 1, false}, {200 * ms, 0, 1, false}, {300 * ms, 0, 1, true}, {3000 * ms, 2, 1, true},
		{300 * ms, 1, 3, true}, {300 * ms, 2, 3, false}, {500 * ms, 30, 3, false}, {600 * ms, 30, 3, true}, {600 * ms, 30, 6, false},
	} {
		require.Equal(t, c.rest, isRest(c.gap, 100*ms, c.missed, c.reach), "%+v", c)
	}
}
