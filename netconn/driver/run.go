package driver

import (
	"context"
	"errors"
	"os"
	"runtime/trace"
	"time"
)

// Do runs f on the goroutine that ticks the driver: at the next TickDispatch, or at once in Run with Config.Prompt. Any
// goroutine may call it. After Close f isn't called; see Done. It panics when f is nil. All that wait run in the same TickDispatch, and nothing bounds how many do: what
// strangers ask for, bound before it is given to Do.
func (d *Driver) Do(f func()) {
	if f == nil {
		panic("driver: Do needs a function")
	}
	select {
	case <-d.done:
		return
	default:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls.add(f)
	if d.waiting {
		d.waiting = false
		_ = d.socket.SetReadDeadline(past) // on failure the read ends at the tick
	}
}

// past is a deadline that ends a read.
var past = time.Unix(1, 0)

func (d *Driver) runCalls() {
	d.mu.Lock()
	d.calls.begin()
	d.mu.Unlock()
	for f := d.calls.take(); f != nil && !d.ended; f = d.calls.take() { // the one before may have ended it
		f()
	}
}

// Done returns a channel that Close closes. After that no function given to Do runs.
func (d *Driver) Done() <-chan struct{} { return d.done }

// Run ticks the driver until ctx is done, the socket fails or a client's dial has failed. It calls step between
// TickDispatch and TickFlush; step may be nil. Then it closes the driver, which ends its connections at once; for an
// orderly end call Shutdown first, and end ctx when Len is 0. Run returns nil when ctx was done, otherwise Driver.Err.
// The end of a client's joined connection doesn't end Run: Config.Closed is told of it, and may cancel ctx. It panics
// while the driver is ticked elsewhere, as TickDispatch does.
func (d *Driver) Run(ctx context.Context, step func(now time.Time)) error {
	d.beginTicking()
	defer d.ticking.Store(false)
	interval := d.interval()
	next := d.cfg.Clock().Add(interval)
	for ctx.Err() == nil && d.Err() == nil {
		if soon := d.cfg.Clock().Add(interval); next.After(soon) {
			next = soon // the clock was set back
		}
		d.wait(next)
		now := d.cfg.Clock()
		if now.Before(next) {
			continue
		}
		if next = next.Add(interval); next.Before(now) {
			next = now.Add(interval) // a hitch isn't made up for
		}
		d.tickDispatch(now)
		if step != nil {
			trace.WithRegion(ctx, regionStep, func() { step(now) })
		}
		d.tickFlush(now)
	}
	err := d.Err()
	return errors.Join(err, d.Close())
}

// beginTicking panics where ticks would overlap: they share the buffers of datagrams, and all connections.
func (d *Driver) beginTicking() {
	if d.ticking.Swap(true) {
		panic("driver: TickDispatch, TickFlush or Run was called within a callback, or while another goroutine ticks the driver; pass functions to that goroutine with Do")
	}
}

func (d *Driver) interval() time.Duration { return time.Second / time.Duration(d.cfg.TickRate) }

// wait reads datagrams until the next tick: with Prompt as they arrive, otherwise a few times, because waking up for each
// one costs more than anything else. The more datagrams were read and sent lately, the sooner it reads again. So a fast
// connection isn't held up for acks, and what arrives between two reads fits the socket's buffer.
func (d *Driver) wait(until time.Time) {
	if d.cfg.Prompt {
		d.waitPrompt(until)
		return
	}
	begin := d.cfg.Clock()
	for now := begin; d.err == nil && now.Before(until) && !now.Before(begin); now = d.cfg.Clock() {
		n, err := d.socket.TryReadBatch(d.in)
		d.dispatch(d.at(now), n, err)
		d.serveBetween()
		d.flush() // what was answered at once, such as a handshake
		if err != nil && !d.readError(err) {
			return
		}
		if n < len(d.in) {
			time.Sleep(min(d.gather.pause(&d.Counters), until.Sub(now)))
		}
	}
}

// gathering decides how long to wait between two reads.
type gathering struct {
	moved  uint64 // datagrams read and sent until the last pause
	recent uint64 // as many since the pause before, plus half of the value before: a window arrives all at once, and then nothing
}

func (g *gathering) pause(c *Counters) time.Duration {
	moved := c.DatagramsIn + c.DatagramsOut
	g.recent = g.recent/2 + moved - g.moved
	g.moved = moved
	return max(readInterval/time.Duration(1+g.recent/fewDatagrams), leastInterval)
}

// With few datagrams the pause is readInterval; fewDatagrams more shorten it to a half, twice that to a third, and so on down to leastInterval.
const (
	readInterval  = 4 * time.Millisecond
	leastInterval = readInterval / 8
	fewDatagrams  = 128
)

// waitPrompt answers datagrams and calls at once.
func (d *Driver) waitPrompt(until time.Time) {
	for begin := d.cfg.Clock(); d.err == nil; {
		n, err := d.read(until)
		now := d.cfg.Clock()
		at := d.at(now)
		d.dispatch(at, n, err)
		d.prompt(at)
		if !now.Before(until) || now.Before(begin) || err != nil && !d.readError(err) {
			return
		}
	}
}

// read waits for datagrams until the tick or a call of Do. While calls are waiting it doesn't wait, but still reads what has arrived.
func (d *Driver) read(until time.Time) (int, error) {
	wait, err := d.setWait(until)
	if err != nil {
		return 0, err
	}
	if wait {
		n, err := d.socket.ReadBatch(d.in)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	return d.socket.TryReadBatch(d.in)
}

// setWait sets the deadline of the next read, unless calls are waiting already. From then on a call of Do ends the read.
func (d *Driver) setWait(until time.Time) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = len(d.calls.waiting) == 0
	if !d.waiting {
		return false, nil
	}
	return true, d.socket.SetReadDeadline(time.Now().Add(min(until.Sub(d.cfg.Clock()), d.interval()))) // the machine's clock may be another
}

// prompt sends what handlers and calls have written.
func (d *Driver) prompt(at time.Duration) {
	d.runCalls()
	d.serveBetween()
	for _, c := range d.conns {
		c.PostTickDispatch(at)
		c.FlushWritten(at)
	}
	d.flush()
}
