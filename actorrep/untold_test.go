package actorrep

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestManyErrorsAtOnce: the game is told of a hundred thousand errors that come up at once, as of the calls that wait for a client which says at last that it lacks their class, in order, and of
// those that come up meanwhile behind them. None has those behind it moved: that took 12 s.
func TestManyErrorsAtOnce(t *testing.T) {
	const many = 100_000
	var w *World
	more, late := errors.New("more"), errors.New("late")
	told, lates, moved, waiting := 0, 0, 0, 0
	w = NewServer(Config{Failed: func(err error) {
		if len(w.untold) < waiting {
			moved++
		}
		waiting = len(w.untold)
		switch {
		case errors.Is(err, late):
			require.Equal(t, many, told)
			lates++
			return
		case told%1000 == 0:
			w.report(late)
		}
		told++
	}})
	w.enter()
	for range many {
		w.report(more)
	}
	w.exit()
	require.LessOrEqual(t, moved, 1)
	require.Equal(t, many, told)
	require.Equal(t, many/1000, lates)
	require.LessOrEqual(t, cap(w.untold), 64)
}
