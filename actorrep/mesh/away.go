package mesh

import "time"

// awayState is what a server knows about its right to go on without the store.
type awayState struct {
	round   uint64        // the last in which it asked the others
	closed  uint64        // up to this one it doesn't rely on them
	base    time.Duration // when the last write was sent that the store had before the round
	granted bool          // all have said yes in round
	askAt   time.Duration // the next time
	seenAt  time.Duration // when the store was away last; before a server is first in doubt, far in the past
}

// Away reports whether the store has confirmed nothing of this server's for 98 % of Lease, and the server goes on by permission of the others (KeeperConfig.Away). Changes are written, and Keep's callers are told, when it is back.
func (k *Keeper) Away() bool {
	return k.mine.held && !k.over && k.now >= k.mine.acked+k.share(k.cfg.Lease)
}

// share is a part of a lease after which its holder stops.
func (k *Keeper) share(d time.Duration) time.Duration { return d / 100 * (100 - before) }

// doubts reports whether the store is late: a renewal, which goes out each quarter of Lease, should have been confirmed.
func (k *Keeper) doubts() bool { return k.now-k.mine.acked >= k.cfg.Lease*3/8 }

// bound sets when this server's lease ends.
func (k *Keeper) bound() {
	m := &k.mine
	m.until = m.acked + k.share(k.cfg.Lease)
	if m.away.granted {
		m.until = max(m.until, m.away.base+k.share(k.cfg.Away))
	}
}

// stepAway answers who asks, and asks for permission to go on when the store is late.
func (k *Keeper) stepAway() {
	m, w := &k.mine, &k.mine.away
	if !m.held {
		return
	}
	doubts := k.doubts()
	if doubts {
		w.seenAt = k.now
	}
	for _, n := range k.z.neighbours {
		if n.ready > n.leave && k.permits(n, n.ready) {
			n.leave, n.sayAt = n.ready, 0
		}
		n.ready = n.heard // what came before this Step was called is older than the next one's now
	}
	switch {
	case k.cfg.Away == 0:
		return
	case !doubts:
		w.closed, w.granted = w.round, false
		k.greet()
	case w.round == w.closed || !w.granted && m.acked > w.base: // a new round
		w.round++
		w.base, w.askAt = m.acked, 0
	}
	asks := w.round > w.closed && !w.granted
	again := asks && k.now >= w.askAt
	if again {
		w.askAt = k.now + k.cfg.Lease/8
	}
	w.granted = w.granted || asks
	for _, l := range k.leases {
		if l.id == k.id || l.value.over {
			continue
		}
		n := k.z.neighbour(l.id)
		if n == nil {
			w.granted = w.granted && !asks
			continue
		}
		n.ask = 0
		if asks && n.granted < w.round {
			w.granted, n.ask = false, w.round
			if again {
				n.sayAt = 0
			}
		}
	}
	k.bound()
}

// greet tells other servers that this one doesn't go on without the store unless they allow it: they needn't wait for Away when it is gone.
func (k *Keeper) greet() {
	for _, l := range k.leases {
		if l.id == k.id || l.value.over {
			continue
		}
		if n := k.z.neighbour(l.id); n != nil && !n.greeted {
			n.greeted = k.z.push(n.id, &zoneMessage{kind: zoneAsks}) == nil
		}
	}
}

// permits lets a server go on without the store for its Away, if this one hasn't had the store lately either. From now on this server doesn't end its lease before that.
func (k *Keeper) permits(n *neighbour, round uint64) bool {
	l := k.lease(n.id)
	w := &k.mine.away
	if l == nil || l.value.over || l.value.beat == 0 || w.seenAt == 0 || k.now-w.seenAt > 4*k.cfg.Lease {
		return false
	}
	l.round, l.promised = round, k.now+k.away(l)
	return true
}

// away is how long a server may go on without the store.
func (k *Keeper) away(l *lease) time.Duration {
	if l.value.beat == 0 { // its value couldn't be read
		return k.cfg.Away
	}
	return l.value.away
}

// runsOut reports whether nobody has heard of a server for so long that it has stopped.
func (k *Keeper) runsOut(l *lease, turn time.Duration) bool {
	silent := k.now - l.at - turn
	switch {
	case silent < l.length(k):
		return false
	case l.round > l.value.closed && k.now < l.promised: // it may go on, and hasn't said that it has the store again
		return false
	}
	return k.asks(l.id) || silent >= k.away(l)
}

// asks reports whether a server doesn't go on without the store unless this one allows it.
func (k *Keeper) asks(id string) bool {
	i, ok := k.z.find(id)
	return ok && k.z.neighbours[i].asks
}
