package flight

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/channel"
)

// Bounds of what is kept of why connections lack actors and values.
const (
	maxWaits   = 16384            // at once, of all connections
	waitsAStep = 16               // that are noted
	waitsAgain = 10 * time.Second // after that one is noted again: a log has only its last part
)

// waits is the reasons that hold now, by connection; 0 is those that hold for all.
type waits struct {
	of      map[uint32]*connWaits
	all     int           // in of
	noted   int           // in this Step
	refused time.Duration // when one was last refused, because there are maxWaits; -1 is never
}

// connWaits is a connection's.
type connWaits struct {
	of    map[waitKey]*wait
	round uint32 // of the search for them
	seen  int    // in this round
}

type waitKey struct {
	actor netguid.GUID
	some  bool
}

// wait is why a connection lacks an actor, or units of it.
type wait struct {
	reason       uint8
	round        uint32 // in which it was last found
	units        layout.Mask
	found, noted time.Duration
	text         string // when it was found
}

// Room reports whether more reasons may be noted in this Step.
func (r observer) Room() bool { return r.waits.noted < waitsAStep }

// Waits notes that a reason doesn't hold any more, and asks for one that is new.
func (r observer) Waits(e bridge.Wait) bool {
	id, ok := r.waiter(e.Conn)
	if !ok {
		return false
	}
	c, now := r.waits.of[id], r.world.Now()
	var known *wait
	if c != nil {
		known = c.of[waitKey{e.Actor, e.Some}]
	}
	switch {
	case known == nil && e.Reason == 0:
		return false
	case known == nil:
		if r.waits.all == maxWaits {
			r.waits.refused = now
			return false
		}
		return true
	}
	known.round = c.round
	c.seen++
	switch {
	case e.Reason == 0:
		delete(c.of, waitKey{e.Actor, e.Some})
		c.seen--
		r.waits.all--
		r.noteWait(id, waitKey{e.Actor, e.Some}, &wait{})
	case e.Reason != known.reason || e.Units != known.units:
		return true
	case now-known.noted >= waitsAgain:
		known.noted = now
		r.noteWait(id, waitKey{e.Actor, e.Some}, known)
	}
	return false
}

// Why notes a reason.
func (r observer) Why(e bridge.Wait, text string) {
	id, _ := r.waiter(e.Conn)
	c, key, now := r.waits.of[id], waitKey{e.Actor, e.Some}, r.world.Now()
	if c == nil {
		c = &connWaits{of: map[waitKey]*wait{}}
		r.waits.of[id] = c
	}
	known := c.of[key]
	if known == nil {
		known = &wait{}
		c.of[key] = known
		c.seen++
		r.waits.all++
	}
	*known = wait{reason: e.Reason, round: c.round, units: e.Units, found: now, noted: now, text: text[:min(len(text), maxText)]}
	r.noteWait(id, key, known)
}

// Waited forgets the reasons of actors that aren't there any more.
func (r observer) Waited(conn channel.Conn) {
	id, _ := r.waiter(conn)
	c := r.waits.of[id]
	if c == nil {
		return
	}
	if len(c.of) > c.seen {
		for key, known := range c.of {
			if known.round != c.round {
				delete(c.of, key)
				r.waits.all--
			}
		}
	}
	c.round++
	c.seen = 0
}

// waiter is the id of a connection, 0 of all; ok is false when it has none.
func (r *Recorder) waiter(conn channel.Conn) (id uint32, ok bool) {
	if conn == nil {
		return 0, true
	}
	id = r.idOf(conn)
	return id, id != 0
}

// forgetWaits forgets those of a connection that is no longer there.
func (r *Recorder) forgetWaits(id uint32) {
	if c := r.waits.of[id]; c != nil {
		r.waits.all -= len(c.of)
		delete(r.waits.of, id)
	}
}

// noteWait adds a reason to the log, or, with none, that none holds.
func (r *Recorder) noteWait(conn uint32, key waitKey, w *wait) {
	now, packet := r.world.Now(), uint64(0)
	if w.reason != 0 {
		packet = uint64((now-w.found)/time.Microsecond) + 1
	}
	packet <<= 1
	if key.some {
		packet |= 1
	}
	r.waits.noted++
	r.log.begin(kindWaits, now, conn).uint(packet).uint(uint64(key.actor)).uint(w.units).text(w.text)
}
