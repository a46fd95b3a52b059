package channel

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// holds reports whether the list names channels where there are entries, and none elsewhere in its memory.
func (q *turns) holds(t *testing.T, entries int) {
	t.Helper()
	require.Equal(t, entries, q.len())
	for i, ch := range q.list[:cap(q.list)] {
		require.Equal(t, i >= int(q.head) && i < len(q.list), ch != nil, "entry %d of %d, head %d", i, len(q.list), q.head)
	}
}

// TestTurnsKeepTheirMemory: a queue that is never empty takes turns for ever in the same memory.
func TestTurnsKeepTheirMemory(t *testing.T) {
	var q turns
	chs := [3]Channel{}
	for range 1000 {
		for i := range chs {
			q.push(&chs[i])
		}
	}
	require.Equal(t, 3000, q.waiting)
	for i := range 3 * 999 {
		ch, _ := q.first()
		require.Same(t, &chs[i%3], ch)
		q.took()
		q.holds(t, 3)
		require.LessOrEqual(t, cap(q.list), 16)
	}
	require.Equal(t, 3, q.waiting)
	for range chs {
		q.took()
	}
	q.holds(t, 0)
	require.Zero(t, q.head)
	require.NotNil(t, q.list, "a short list keeps its memory")
	ch, _ := q.first()
	require.Nil(t, ch)
}

// TestLongTurnsGiveTheirMemoryBack: when none waits any more.
func TestLongTurnsGiveTheirMemoryBack(t *testing.T) {
	var q turns
	chs := make([]Channel, 2*maxIdleBacklog)
	for i := range chs {
		q.push(&chs[i])
	}
	for range chs {
		q.took()
	}
	require.Nil(t, q.list)
}

// TestTurnsOfClosedChannels: their bunches don't wait any more; their entries go when their turn comes, or when they are more than the others.
func TestTurnsOfClosedChannels(t *testing.T) {
	var q turns
	chs := make([]Channel, 2*(maxStale+2))
	leave := func(ch *Channel) {
		ch.closed = true
		q.leave(ch)
		q.leave(ch) // once is enough
		q.compact()
	}
	for i := range chs {
		q.push(&chs[i])
		q.push(&chs[i])
	}
	var idle Channel
	leave(&idle)
	require.Zero(t, q.stale, "it had no entry")
	for i := range maxStale + 2 {
		leave(&chs[2*i])
	}
	require.EqualValues(t, maxStale+2, q.stale, "no more than the others")
	require.Equal(t, 2*(maxStale+2), q.waiting)
	q.holds(t, len(chs))
	leave(&chs[1])
	require.Zero(t, q.stale)
	q.holds(t, maxStale+1)
	ch, _ := q.first()
	require.Same(t, &chs[3], ch)
	require.Equal(t, 2*(maxStale+1), q.waiting)

	leave(&chs[3])
	require.EqualValues(t, 1, q.stale)
	ch, _ = q.first()
	require.Same(t, &chs[5], ch)
	require.Zero(t, q.stale)
	q.holds(t, maxStale)
}

// TestFewStaleTurnsStay: up to maxStale entries of closed channels aren't worth a walk.
func TestFewStaleTurnsStay(t *testing.T) {
	var q turns
	chs := make([]Channel, maxStale+1)
	for i := range chs {
		q.push(&chs[i])
	}
	for i := range chs {
		chs[i].closed = true
		q.leave(&chs[i])
		q.compact()
		if i < maxStale {
			require.EqualValues(t, i+1, q.stale)
		}
	}
	require.Zero(t, q.stale)
	q.holds(t, 0)
}
