package fleet

import (
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
)

// asker numbers a machine's ops and collects them.
type asker struct {
	last    uint64
	out     []kv.Op
	timeout time.Duration
	store   uint64 // whose revisions are known; 0 before the first
}

// anew reports whether a watch that begins is that of another store: nothing that is known of revisions holds any more.
func (a *asker) anew(e kv.Event) bool {
	was := a.store
	if e.Kind == kv.Begin {
		a.store = e.Store
	}
	return was != 0 && was != a.store
}

func (a *asker) ask(op kv.Op) uint64 {
	a.last++
	op.ID = a.last
	a.out = append(a.out, op)
	return op.ID
}

// stamp is a revision that says of which store it is, as tickets have it.
func (a *asker) stamp(rev uint64) uint64 { return a.store<<48 | rev }

// ahead reports whether a stamp is of this store, as far as that is known, and newer than what has been seen.
func (a *asker) ahead(stamp, seen uint64) bool {
	return (a.store == 0 || stamp>>48 == a.store&0xffff) && stamp<<16>>16 > seen
}

// cell is one key that a machine writes by compare-and-set: what is known of it, and the op under way.
type cell struct {
	key   string
	value []byte // the newest seen; nil when the key doesn't exist
	rev   uint64 // the value's; 0 when the key doesn't exist
	seen  uint64 // highest revision seen, a deletion's too
	known bool   // false: it must be read before it is written

	op     uint64 // under way; 0 none
	kind   kv.Kind
	until  time.Duration // when the op is given up
	next   time.Duration // no op begins before: the one before had no known outcome
	asked  time.Duration
	writes []byte
}

// anew forgets all that was known, for a store that was made anew. The result of an op under way is ignored.
func (c *cell) anew() { *c = cell{key: c.key} }

func (c *cell) busy() bool { return c.op != 0 }

// retryEvery is the time between two ops on a key whose outcome is unknown: a store that fails at once isn't asked in each step.
const retryEvery = 50 * time.Millisecond

// waits reports whether no op may begin now.
func (c *cell) waits(now time.Duration) bool { return c.busy() || now < c.next }

func (c *cell) begin(a *asker, now time.Duration, op kv.Op) {
	op.Key = c.key
	c.kind, c.writes, c.asked, c.until = op.Kind, op.Value, now, now+a.timeout
	c.op = a.ask(op)
}

func (c *cell) get(a *asker, now time.Duration) { c.begin(a, now, kv.Op{Kind: kv.Get}) }

// put writes a value over the one known.
func (c *cell) put(a *asker, now time.Duration, value []byte, ttl time.Duration) {
	c.begin(a, now, kv.Op{Kind: kv.Put, Value: value, Expect: c.rev, TTL: ttl})
}

// see takes what a watch says. It reports whether that was new.
func (c *cell) see(e kv.Event) bool {
	if e.Revision <= c.seen {
		return false
	}
	c.seen, c.value, c.rev = e.Revision, e.Value, e.Revision
	if e.Kind == kv.Deleted {
		c.value, c.rev = nil, 0
	}
	c.known = true
	return true
}

// result takes the result of the op under way. ok is false if it is another's.
func (c *cell) result(e kv.Event) (ok bool) {
	if c.op == 0 || e.ID != c.op {
		return false
	}
	c.op = 0
	if e.Status == kv.Unknown {
		c.next = c.asked + retryEvery
	}
	switch {
	case e.Status == kv.Missing:
		c.value, c.rev, c.known = nil, 0, true
	case e.Status != kv.OK:
		c.known = false
	case c.kind == kv.Delete:
		c.value, c.rev = nil, 0
	case c.kind == kv.Put && e.Revision > c.seen:
		c.seen, c.value, c.rev, c.known = e.Revision, c.writes, e.Revision, true
	case c.kind == kv.Get && e.Revision >= c.seen:
		c.seen, c.value, c.rev, c.known = e.Revision, e.Value, e.Revision, true
	case c.kind == kv.Get: // a read from a replica that is behind: what the watch said is newer
		c.known = c.rev != 0
	}
	return true
}

// giveUp ends an op that has taken too long; what became of it is unknown.
func (c *cell) giveUp(now time.Duration) bool {
	if c.op == 0 || now < c.until {
		return false
	}
	c.op, c.known = 0, false
	return true
}
