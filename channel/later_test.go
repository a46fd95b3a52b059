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
