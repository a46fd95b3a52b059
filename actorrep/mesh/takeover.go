package mesh

import (
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
)

// estate is what a server that is over has had, and this one takes over.
type estate struct {
	id    string
	next  int  // page
	last  bool // there is no next one, as the store said
	whole bool // all pages were read
	left  int  // actors that aren't settled
	busy  bool
	due   time.Duration
}

// newestEnd is the revision in which the last one of the leases that are over ended; 0 without any.
func (k *Keeper) newestEnd() (rev uint64) {
	for _, l := range k.leases {
		if l.value.over {
			rev = max(rev, l.rev)
		}
	}
	return rev
}

// sight looks for a lease that has ended since. What came from that server is recorded first.
func (k *Keeper) sight() {
	if end := k.newestEnd(); end > k.end {
		k.end, k.fence = end, k.arrivals
	}
	if k.seen < k.end && !slices.ContainsFunc(k.list, func(a *kept) bool { return a.arrival > 0 && a.arrival <= k.fence }) {
		k.seen = k.end
	}
}

// allSeen reports whether all servers know of all that are over, and have recorded what came from them.
func (k *Keeper) allSeen() bool {
	end := k.newestEnd() // of which this one may have heard in this Step, and not done anything about it yet
	for _, l := range k.leases {
		if l.id != k.id && !l.value.over && l.value.seen < end {
			return false
		}
	}
	return k.current && k.seen == k.end && k.seen >= end
}

// dead reports whether a server is over, and what it has had may be taken over.
func (k *Keeper) dead(id string) bool {
	if id == "" || id == k.id || !k.allSeen() {
		return false
	}
	l := k.lease(id)
	return l != nil && l.value.over || l == nil && k.z.gone[id]
}

// stepEstates takes over what servers have had that are over.
func (k *Keeper) stepEstates() {
	for _, l := range k.leases {
		if l.value.over && !k.leaving && k.heir(l.id) == k.id && !slices.ContainsFunc(k.estates, func(s *estate) bool { return s.id == l.id }) {
			k.estates = append(k.estates, &estate{id: l.id})
		}
	}
	if !k.allSeen() {
		return
	}
	k.estates = slices.DeleteFunc(k.estates, func(s *estate) bool { return k.lease(s.id) == nil })
	for _, s := range k.estates {
		if !s.busy && k.now >= s.due && k.ofEnds < maxEndOps {
			k.stepEstate(s)
		}
	}
}

func (k *Keeper) stepEstate(s *estate) {
	ask := func(op kv.Op, done func(kv.Event)) {
		s.busy = true
		k.ofEnds++
		k.do(op, func(e kv.Event) {
			s.busy = false
			k.ofEnds--
			if e.Status == kv.Unknown {
				s.due = max(s.due, k.now+k.cfg.Lease/8)
			}
			done(e)
		})
	}
	switch {
	case s.last && !s.whole: // a first write of it that is under way still shall find one
		ask(kv.Op{Kind: kv.Put, Key: k.pageKey(s.id, s.next), Value: appendPage(nil, nil)}, func(e kv.Event) {
			if s.last, s.whole = false, e.Status == kv.OK; s.whole {
				s.next++
			}
		})
	case !s.whole:
		ask(kv.Op{Kind: kv.Get, Key: k.pageKey(s.id, s.next)}, func(e kv.Event) {
			switch e.Status {
			case kv.Missing:
				s.last = true
			case kv.OK:
				s.next++
				ids, _ := readPage(e.Value)
				for _, id := range ids {
					a := k.entry(id)
					if _, own := k.own(a); !own && a.estate == nil {
						a.estate, a.due = s, 0
						s.left++
					}
				}
			}
		})
	case slices.ContainsFunc(k.estates, func(o *estate) bool { return !o.whole || o.left > 0 }): // another one's actor may have a record of this server's still
	case s.next > 0:
		ask(kv.Op{Kind: kv.Delete, Key: k.pageKey(s.id, s.next-1), Expect: kv.Any}, func(e kv.Event) {
			if e.Status == kv.OK {
				s.next--
			}
		})
	case !slices.ContainsFunc(k.leases, func(l *lease) bool { return l.value.over && l.value.heir == s.id }):
		s.due = k.now + k.cfg.Lease/4
		ask(kv.Op{Kind: kv.Delete, Key: k.key("server", s.id), Expect: k.lease(s.id).rev}, func(kv.Event) {})
	}
}

// settled: an actor isn't its estate's any more.
func (k *Keeper) settled(a *kept) {
	if a.estate != nil {
		a.estate.left--
		a.estate = nil
	}
}

// claimed: the store has an actor as this server's that another has had.
func (k *Keeper) claimed(a *kept, rev uint64) {
	a.known, a.claimed, a.rev, a.epoch, a.hash, a.arrival = true, true, rev, a.claim.epoch, sum(a.claim.state), 0
	if a.checkAt = k.now; !k.leaving { // else it is written as it is now, and the lease ends then
		a.checkAt += k.cfg.Checkpoint
	}
	k.tell(a, a.want, ErrGone) // it isn't what they have changed
	k.settled(a)
	k.restore(a)
}

// restore has the game play an actor that was taken over.
func (k *Keeper) restore(a *kept) {
	c := a.claim
	if !k.z.restore(a.id, c.epoch, c.class, c.state) {
		k.Counters.Failed++
		a.due = k.now + time.Second
		return
	}
	a.arrival = 0
	k.Counters.Restored++
}
