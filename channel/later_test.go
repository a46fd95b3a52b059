package channel_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLater: each function runs once, in the order given; one that asks again runs the time after. The steady state allocates nothing.
func TestLater(t *testing.T) {
	w, _ := newWire(t, true, nil)
	w.m.RunLater()
	var order []int
	var again func()
	again = func() {
		order = append(order, 1)
		w.table.Later(again)
	}
	w.table.Later(again)
	w.table.Later(func() { order = append(order, 2) })
	w.m.RunLater()
	require.Equal(t, []int{1, 2}, order)
	w.m.RunLater()
	require.Equal(t, []int{1, 2}, order, "once a tick")
	w.m.Tick(0)
	w.m.RunLater()
	require.Equal(t, []int{1, 2, 1}, order)
	order = make([]int, 0, 200)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		w.m.Tick(0)
		w.m.RunLater()
	}))
	require.Len(t, order, 101)
	w.table.Later(w.m.End)
	w.table.Later(func() { t.Error("the connection has ended") })
	w.m.Tick(0)
	w.m.RunLater()
}

// TestLaterIsFair: functions that have something to send have sent as much each, also where what they may send comes in a rhythm that turns would follow. One that had nothing for a while
// isn't ahead of the others then.
func TestLaterIsFair(t *testing.T) {
	w, _ := newWire(t, true, nil)
	var sent [3]int
	may, idle := 0, true
	for i := range sent {
		var f func()
		f = func() {
			w.table.Later(f)
			if idle && i == 1 {
				return
			}
			w.spent += may
			sent[i] += may
			may = 0
		}
		w.table.Later(f)
	}
	for _, idle = range []bool{true, false} {
		sent = [3]int{}
		for tick := range 3000 {
			w.spent = 0
			if may = 1; tick%3 == 0 {
				may = 200
			}
			w.m.RunLater()
			w.m.Tick(0)
			require.Equal(t, w.spent, w.m.TakeBeside(), "what it took")
		}
		for i, n := range sent {
			want := 202_000 / 3
			if idle {
				want = []int{101_000, 0, 101_000}[i]
			}
			require.InDelta(t, want, n, 600, "%v", sent)
		}
	}
}

// TestLaterFromOutside: functions that are given anew in each tick, not by one that runs, and take all that they find, have a share as one that calls Later itself. They keep none waiting, nor
// does it them.
func TestLaterFromOutside(t *testing.T) {
	w, _ := newWire(t, true, nil)
	var sent [3]int
	may := 0
	take := func(i int) {
		w.spent += may
		sent[i] += may
		may = 0
	}
	for i := range 2 {
		var f func()
		f = func() {
			w.table.Later(f)
			take(i)
		}
		w.table.Later(f)
	}
	for tick := range 6000 {
		if w.spent, may = 0, 1; tick%3 == 0 {
			may = 200
		}
		if tick == 3000 { // what others have sent until now doesn't count against them
			sent = [3]int{}
		}
		if tick >= 3000 {
			w.table.Later(func() { take(2) })
		}
		w.m.RunLater()
		w.m.Tick(0)
	}
	for _, n := range sent {
		require.InDelta(t, 202_000/3, n, 600, "%v", sent)
	}
}
