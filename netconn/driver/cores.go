package driver

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Cores runs work on so many cores: the calling goroutine, and others that end before Run returns. It is an
// actorrep.Executor, for actorrep.Config.Parallel; Config.Parallel is another use. 0 and 1 are one core, without another goroutine. Steady use allocates
// nothing.
//
//	world := actorrep.NewServer(actorrep.Config{Parallel: driver.Cores(4)})
type Cores int

// Workers is the most calls that Run makes at the same time.
func (c Cores) Workers() int { return max(1, int(c)) }

// Run calls f(0, ...) to f(n-1, ...) and returns when all have returned. Each core takes the next i when it has done its
// last one. worker is 0 to Workers-1, and 0 on the calling goroutine. When a call of f panics, Run panics on the calling goroutine, once no
// other call is in progress; calls that haven't begun are left out. On several cores its value is an error with the first panic's value and stack. If that
// value is an error, errors.Is and errors.As find it.
func (c Cores) Run(n int, f func(i, worker int)) {
	workers := min(c.Workers(), n)
	if workers < 2 {
		for i := range n {
			f(i, 0)
		}
		return
	}
	w := takeWork()
	if w.last == nil {
		w.last = w.running.Done
	}
	w.f, w.n = f, int64(n)
	w.next.Store(0)
	for len(w.others) < workers-1 {
		worker := len(w.others) + 1
		w.others = append(w.others, func() {
			defer w.running.Done()
			w.do(worker)
		})
	}
	w.running.Add(workers)
	for _, other := range w.others[:workers-1] {
		go other()
	}
	go w.last() // another core takes the goroutine that was started last only after a pause, so this one does nothing
	w.do(0)
	w.running.Wait()
	failed := w.failed.Swap(nil)
	w.f = nil
	giveBack(w)
	if failed != nil {
		panic(failed)
	}
}

// workPanic is the panic of a call that Run made.
type workPanic struct {
	value any
	stack []byte
}

// Error is the value, and the stack of the goroutine that panicked.
func (p *workPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// Unwrap is the value if that is an error, else nil.
func (p *workPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// works is kept between calls of Run, so that they don't allocate: no more than maxWorks.
var works struct {
	sync.Mutex
	free []*work
}

const maxWorks = 16

func takeWork() *work {
	works.Lock()
	defer works.Unlock()
	n := len(works.free)
	if n == 0 {
		return &work{}
	}
	w := works.free[n-1]
	works.free = works.free[:n-1]
	return w
}

func giveBack(w *work) {
	works.Lock()
	defer works.Unlock()
	if len(works.free) < maxWorks {
		works.free = append(works.free, w)
	}
}

// work is one call of Run.
type work struct {
	f       func(i, worker int)
	n       int64
	next    atomic.Int64
	failed  atomic.Pointer[workPanic] // the first call that panicked
	running sync.WaitGroup
	others  []func() // what the other goroutines do
	last    func()   // what the goroutine does that is started after them
}

func (w *work) do(worker int) {
	defer func() {
		if p := recover(); p != nil {
			w.failed.CompareAndSwap(nil, &workPanic{p, debug.Stack()})
			w.next.Store(w.n) // nobody begins another
		}
	}()
	for i := w.next.Add(1) - 1; i < w.n; i = w.next.Add(1) - 1 {
		w.f(int(i), worker)
	}
}
