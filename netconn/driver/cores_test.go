package driver

import (
	"errors"
	"runtime"
	"slices"
	"sync"
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

// TestCoresShares: each core begins with its share of the calls, and with the next of all where packets are to be sent in their order.
func TestCoresShares(t *testing.T) {
	const cores, each = 4, 10
	for _, inOrder := range []bool{false, true} {
		var began sync.WaitGroup
		began.Add(cores)
		first := make([]int, cores)
		meet := func(i, worker int) {
			if first[worker] == 0 {
				first[worker] = i + 1
				began.Done()
				began.Wait()
			}
		}
		if inOrder {
			Cores(cores).inOrder(cores*each, meet)
			slices.Sort(first)
			require.Equal(t, []int{1, 2, 3, 4}, first)
		} else {
			Cores(cores).Run(cores*each, meet)
			require.Equal(t, []int{1, 11, 21, 31}, first)
		}
	}
}

// TestCoresWait: the goroutines of a Run wait for the next one, and not for long.
func TestCoresWait(t *testing.T) {
	const cores = 3
	meet := func() {
		var began sync.WaitGroup
		began.Add(cores)
		Cores(cores).Run(cores, func(int, int) {
			began.Done()
			began.Wait()
		})
	}
	states := func() (sum int) {
		works.Lock()
		defer works.Unlock()
		for _, w := range works.free {
			for _, o := range w.others {
				sum += int(o.state.Load())
			}
		}
		return sum
	}
	require.Eventually(t, func() bool { return states() == gone }, time.Minute, time.Millisecond)
	waited := 0
	for range 1000 {
		if meet(); states() > 0 {
			waited++
		}
	}
	require.Positive(t, waited)
	require.Eventually(t, func() bool { return states() == gone }, time.Minute, time.Millisecond)
}

// TestCoresExit: a call that ends its goroutine, as a test that fails in it does, is as any other that returns, and in the next Run there is another goroutine.
func TestCoresExit(t *testing.T) {
	for range 10 {
		var ended, made atomic.Int32
		Cores(2).Run(100, func(_, worker int) {
			made.Add(1)
			if worker == 1 {
				ended.Add(1)
				runtime.Goexit()
			}
			time.Sleep(10 * time.Microsecond)
		})
		require.EqualValues(t, 100, made.Load())
		require.LessOrEqual(t, ended.Load(), int32(1))
	}
}

// TestCoresExitCaller: a call that ends the calling goroutine ends it when no call is in progress.
func TestCoresExitCaller(t *testing.T) {
	const cores = 4
	for range 10 {
		var busy, made atomic.Int32
		ended := make(chan int32)
		go func() {
			defer func() { ended <- busy.Load() }()
			var began sync.WaitGroup
			began.Add(cores)
			Cores(cores).Run(cores, func(_, worker int) {
				busy.Add(1)
				defer busy.Add(-1)
				began.Done()
				began.Wait()
				made.Add(1)
				if worker == 0 {
					runtime.Goexit()
				}
				time.Sleep(100 * time.Microsecond)
			})
		}()
		require.Zero(t, <-ended)
		require.EqualValues(t, cores, made.Load())
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

// BenchmarkCores is how long 2 pieces of work of 100 us each take on two cores, the median and the 90th percentile, one Run after another, and each after a pause:
// above 100 us is what it takes the other core to begin.
func BenchmarkCores(b *testing.B) {
	work := func(int, int) {
		for began := time.Now(); time.Since(began) < 100*time.Microsecond; {
		}
	}
	for _, pause := range []time.Duration{0, time.Millisecond} {
		b.Run("after "+pause.String(), func(b *testing.B) {
			took := make([]time.Duration, b.N)
			for i := range took {
				time.Sleep(pause)
				began := time.Now()
				Cores(2).Run(2, work)
				took[i] = time.Since(began)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[b.N/2].Nanoseconds())/1000, "us/p50")
			b.ReportMetric(float64(took[b.N*9/10].Nanoseconds())/1000, "us/p90")
			b.ReportMetric(0, "ns/op")
		})
	}
}
