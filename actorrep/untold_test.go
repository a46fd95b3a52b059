package actorrep

import (
	"errors"
	"fmt"
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

// toEnd is a connection that notes why it is to end.
type toEnd struct {
	outlet
	why *[]string
}

func (o toEnd) fail(err error) { *o.why = append(*o.why, err.Error()) }

// TestAllThatCameUpIsDone: connections that were removed are forgotten, those that are to end do in their order, and the game is told of errors, all at once. The World keeps nothing
// of it.
func TestAllThatCameUpIsDone(t *testing.T) {
	var did []string
	w := NewServer(Config{Failed: func(err error) { did = append(did, "told "+err.Error()) }})
	w.enter()
	var removed []*Peer
	for i := range 3 {
		p := &Peer{world: w, viewTarget: &pupil{}}
		removed, w.removed = append(removed, p), append(w.removed, p)
		w.endings = append(w.endings, ending{&Peer{world: w, out: toEnd{why: &did}}, fmt.Errorf("end %d", i)}, ending{&Peer{world: w, out: removedOutlet{}}, nil})
		w.report(fmt.Errorf("error %d", i))
	}
	w.exit()
	require.Equal(t, []string{"end 0", "end 1", "end 2", "told error 0", "told error 1", "told error 2"}, did)
	for _, p := range removed {
		require.Nil(t, p.viewTarget)
	}
	require.Empty(t, len(w.removed)+len(w.endings)+len(w.untold))
	for _, p := range w.removed[:3] {
		require.Nil(t, p)
	}
	for _, e := range w.endings[:6] {
		require.Zero(t, e)
	}
	for _, err := range w.untold[:3] {
		require.NoError(t, err)
	}
}

// TestDroppedCallsAreUsedAgain: calls that are dropped are counted and go back to where the next ones come from.
func TestDroppedCallsAreUsedAgain(t *testing.T) {
	w := NewServer(Config{})
	calls := []*call{w.unheld.take(), w.unheld.take()}
	w.dropCalls(nil, nil, calls, ErrActorGone)
	require.EqualValues(t, 2, w.Counters.CallsDropped)
	require.Equal(t, []*call{nil, nil}, calls)
	require.Len(t, w.unheld.list, 2)
}

// TestTextsOfActorErrors: of an actor as a whole there is no name.
func TestTextsOfActorErrors(t *testing.T) {
	p := newPair(t)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	require.EqualError(t, a.failed("", nil, ErrFull), fmt.Sprintf("actorrep: pupil %v: %v", a.guid, ErrFull))
	require.EqualError(t, a.failed("Poke", nil, ErrFull), fmt.Sprintf("actorrep: pupil.Poke of %v: %v", a.guid, ErrFull))
}
