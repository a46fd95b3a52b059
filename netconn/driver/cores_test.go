package driver

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

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

var errBoom = errors.New("boom")

// TestCoresPanic: a call that panics has Run panic where it was called, when no call is in progress, with what it panicked with and where.
func TestCoresPanic(t *testing.T) {
	for _, cores := range []Cores{2, 4, 8} {
		for bad := range 8 {
			var busy atomic.Int32
			blowUp := func(i int) {
				if i == bad {
					panic(errBoom)
				}
			}
			run := func() (p any) {
				defer func() { p = recover() }()
				cores.Run(100, func(i, _ int) {
					busy.Add(1)
					defer busy.Add(-1)
					blowUp(i)
					time.Sleep(10 * time.Microsecond)
				})
				return nil
			}
			p := run()
			require.Zero(t, busy.Load())
			require.Implements(t, (*error)(nil), p)
			require.ErrorIs(t, p.(error), errBoom)
			require.ErrorContains(t, p.(error), "TestCoresPanic")
			bad = -1
			require.Nil(t, run(), "the next Run is as any other")
		}
	}
}

func TestCoresAllocs(t *testing.T) {
	sum := make([]int, 100)
	f := func(i, _ int) { sum[i]++ }
	Cores(4).Run(len(sum), f)
	require.Zero(t, testing.AllocsPerRun(200, func() { Cores(4).Run(len(sum), f) }))
}

// BenchmarkCores is how long 2 pieces of work of 100 us each take on two cores, the median and the 90th percentile: above 100 us is what it takes the other
// core to begin.
func BenchmarkCores(b *testing.B) {
	work := func(int, int) {
		for began := time.Now(); time.Since(began) < 100*time.Microsecond; {
		}
	}
	took := make([]time.Duration, b.N)
	for i := range took {
		began := time.Now()
		Cores(2).Run(2, work)
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[b.N/2].Nanoseconds())/1000, "us/p50")
	b.ReportMetric(float64(took[b.N*9/10].Nanoseconds())/1000, "us/p90")
	b.ReportMetric(0, "ns/op")
}
