package driver

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCores: each call is made once, no worker has two at a time, and all have returned when Run does. That no goroutine
// is left is TestMain's to check.
func TestCores(t *testing.T) {
	for _, cores := range []Cores{-1, 0, 1, 2, 4, 8} {
		for _, n := range []int{0, 1, 2, 3, 1000} {
			calls := make([]atomic.Int32, n)
			busy := make([]atomic.Int32, cores.Workers())
			cores.Run(n, func(i, worker int) {
				if busy[worker].Add(1) != 1 {
					t.Error("a worker has two calls at a time")
				}
				calls[i].Add(1)
				busy[worker].Add(-1)
			})
			for i := range calls {
				require.EqualValues(t, 1, calls[i].Load(), "%d cores, call %d of %d", cores, i, n)
			}
		}
	}
}

func TestCoresAllocs(t *testing.T) {
	sum := make([]int, 100)
	f := func(i, _ int) { sum[i]++ }
	Cores(4).Run(len(sum), f)
	require.Zero(t, testing.AllocsPerRun(200, func() { Cores(4).Run(len(sum), f) }))
}
