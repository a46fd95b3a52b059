package driver

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Cores runs work on so many cores: the calling goroutine, and others. It is an actorrep.Executor, for actorrep.Config.Parallel; Config.Parallel is another
// use. 0 and 1 are one core, without another goroutine. Steady use allocates nothing.
//
// A core takes 60 to 110 us to begin. So the other goroutines wait for the next Run when they have done their part, for 100 us, and begin it at once; then
// they end. They use their cores meanwhile, and leave them to any other goroutine that can run. A Run whose calls have all returned doesn't wait for those that haven't begun.
//
//	world := actorrep.NewServer(actorrep.Config{Parallel: driver.Cores(4)})
type Cores int

// Workers is the most calls that Run makes at the same time.
func (c Cores) Workers() int { return max(1, int(c)) }

// Run calls f(0, ...) to f(n-1, ...) and returns when all have returned. Each core has its share of the calls, those one after another, so that in the next Run
// it has what is in its cache; then it takes calls of others that are late. worker is 0 to Workers-1, and 0 on the calling goroutine. When a call of f panics,
// Run panics on the calling goroutine, once no other call is in progress; calls that haven't begun are left out. On several cores its value is an error with
// the first panic's value and stack. If that value is an error, errors.Is and errors.As find it.
func (c Cores) Run(n int, f func(i, worker int)) { c.run(n, f, c.Workers()) }

// inOrder is Run, but that each core takes the next call of all when it has done its last one.
func (c Cores) inOrder(n int, f func(i, worker int)) { c.run(n, f, 1) }

func (c Cores) run(n int, f func(i, worker int), spans int) {
	workers := min(c.Workers(), n)
	if workers < 2 {
		for i := range n {
			f(i, 0)
		}
		return
	}
	w := takeWork()
	w.f = f
	w.divide(n, min(spans, n))
	for len(w.others) < workers-1 {
		w.others = append(w.others, newOther(w, len(w.others)+1))
	}
	w.running.Add(workers - 1)
	starts := false
	for _, o := range w.others[:workers-1] {
		if !o.state.CompareAndSwap(waiting, wanted) {
			o.state.Store(wanted)
			starts = true
			go o.run()
		}
	}
	if starts {
		go last()
	}
	defer w.end(workers - 1) // also when a call of f ends the calling goroutine
	w.do(0)
}

// end waits until so many others have done their parts.
func (w *work) end(others int) {
	for _, o := range w.others[:others] {
		if o.state.CompareAndSwap(wanted, waiting) { // there is nothing left for it
			w.running.Done()
		}
	}
	for began := time.Now(); slices.ContainsFunc(w.others[:others], (*other).works) && time.Since(began) < linger; {
		runtime.Gosched() // a goroutine that is woken may go on on another core
	}
	w.running.Wait()
	failed := w.failed.Swap(nil)
	w.f = nil
	giveBack(w)
	if failed != nil {
		panic(failed)
	}
}

// last does nothing: another core takes the goroutine that was started last only after a pause.
func last() {}

const (
	// linger is how long the goroutines of a Run wait for each other, or for the next one, before they give up their cores.
	linger = 100 * time.Microsecond
	// lingerTurns is how many times they look at most: clocks may be coarser than linger.
	lingerTurns = 1 << 12
)

// other is one of the goroutines that help.
type other struct {
	work   *work
	worker int
	state  atomic.Int32
	run    func() // made once
}

// States of other.
const (
	gone    = iota // has no goroutine
	waiting        // for the next Run, or its goroutine hasn't begun
	wanted         // by a Run
	working        // in it
)

func newOther(w *work, worker int) *other {
	o := &other{work: w, worker: worker}
	o.run = func() {
		for again := true; again; again = o.wait() {
			if o.state.CompareAndSwap(wanted, working) {
				o.help()
			}
		}
	}
	return o
}

// help does its part of a Run.
func (o *other) help() {
	next := int32(gone) // when a call of f ends the goroutine
	defer func() {
		o.state.Store(next)
		o.work.running.Done()
	}()
	o.work.do(o.worker)
	next = waiting
}

func (o *other) works() bool { return o.state.Load() == working }

// wait waits for the next Run, and reports whether it came.
func (o *other) wait() bool {
	began := time.Now()
	for turn := 0; o.state.Load() == waiting; turn++ {
		if (turn > lingerTurns || time.Since(began) > linger) && o.state.CompareAndSwap(waiting, gone) {
			return false
		}
		runtime.Gosched()
	}
	return true
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
	spans   []*span
	divided int                       // so many of spans are used
	failed  atomic.Pointer[workPanic] // the first call that panicked
	running sync.WaitGroup
	others  []*other
}

// span is calls of f one after another. Each is in cache lines of its own.
type span struct {
	next atomic.Int64
	end  int64
	_    [112]byte
}

// divide makes spans of n calls.
func (w *work) divide(n, spans int) {
	for len(w.spans) < spans {
		w.spans = append(w.spans, &span{})
	}
	w.divided = spans
	for i, s := range w.spans[:spans] {
		s.next.Store(int64(i) * int64(n) / int64(spans))
		s.end = int64(i+1) * int64(n) / int64(spans)
	}
}

// do makes the calls of a worker's span, and then of the others.
func (w *work) do(worker int) {
	spans := w.spans[:w.divided]
	defer func() {
		if p := recover(); p != nil {
			w.failed.CompareAndSwap(nil, &workPanic{p, debug.Stack()})
			for _, s := range spans { // nobody begins another
				s.next.Store(s.end)
			}
		}
	}()
	for i := range spans {
		s := spans[(worker+i)%len(spans)]
		for call := s.next.Add(1) - 1; call < s.end; call = s.next.Add(1) - 1 {
			w.f(int(call), worker)
		}
	}
}
