package mesh

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
)

// lease is a server's lease as this server has heard of it.
type lease struct {
	id       string
	rev      uint64
	value    leaseValue
	at       time.Duration // when this server heard of rev
	tryAt    time.Duration // not marked over before
	since    time.Duration // when this server heard of it first
	round    uint64        // in which it was allowed to go on without the store
	promised time.Duration // and until when
	told     bool          // by the watch that goes on now
	gone     bool          // it is over, and this server has ended all that it has with it
}

// tenancy is a zone's holders as this server has heard of them.
type tenancy struct {
	name   string
	cells  int    // of Plan
	first  bool   // it is in KeeperConfig.Zones
	rev    uint64 // 0: nobody has held it
	value  zoneValue
	shares []share       // of its parts
	at     time.Duration // when this server heard of value's epoch
	tryAt  time.Duration
	told   bool
}

// share is what this server knows of a zone's part besides.
type share struct {
	zoneLoad
	to string // it is to be handed to that one
}

// ownLease is this server's lease.
type ownLease struct {
	rev     uint64
	known   bool          // rev is
	base    uint64        // a random number: the beats of this start are above it
	first   time.Duration // when the first one was sent
	beat    uint64
	sent    [8]time.Duration // when the last beats were sent
	acked   time.Duration    // when the last one was sent that the store has
	until   time.Duration    // it ends, by this server's clock
	away    awayState
	held    bool // it was held once
	busy    bool
	renewAt time.Duration
	tryAt   time.Duration // not asked for before
}

// before is what a server stops before its lease ends, in hundredths: two clocks, each 1 % wrong.
const before = 2

func (k *Keeper) key(kind, name string) string { return k.cfg.Name + "." + kind + "." + name }

// heardKey takes what the watch says of a key.
func (k *Keeper) heardKey(e *kv.Event) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(e.Key, k.cfg.Name+"."), ".")
	switch kind {
	case "server":
		k.heardLease(name, e)
	case "zone":
		if t := k.tenancy(name); t != nil {
			t.heard(e, k.now)
			k.zonesChanged()
		}
	}
}

func (k *Keeper) heardLease(id string, e *kv.Event) {
	i, ok := k.findLease(id)
	if e.Kind == kv.Deleted {
		if ok {
			k.leases = slices.Delete(k.leases, i, i+1)
		}
		k.over = k.over || id == k.id && k.mine.held
		return
	}
	if !ok {
		k.leases = slices.Insert(k.leases, i, &lease{id: id, at: k.now, since: k.now})
	}
	l := k.leases[i]
	l.told = true
	var v leaseValue
	read := v.read(e.Value)
	k.over = k.over || id == k.id && (read && v.over || !read && k.mine.held)
	if e.Revision <= l.rev {
		return
	}
	l.rev, l.at = e.Revision, k.now
	if read { // else it was damaged, or is of another version: the server is there until nothing is heard of it for Lease
		l.value = v
	}
}

// heard takes what the watch says of a zone's key. A zone without a holder keeps its epoch, so that the next one has a higher.
func (t *tenancy) heard(e *kv.Event, now time.Duration) {
	t.told = true
	if e.Kind == kv.Deleted {
		t.vacant()
		return
	}
	var v zoneValue
	if !v.read(e.Value) || len(v.parts) > 1 && t.cells > 1 { // its epoch was at most the number of writes
		v = zoneValue{e.Revision, wholly("")}
	}
	if t.rev == 0 || v.epoch != t.value.epoch { // else parts of it have become calm, or aren't any more
		t.at = now
	}
	t.rev = e.Revision
	t.takes(v)
}

// vacant: nobody has the zone.
func (t *tenancy) vacant() {
	t.rev = 0
	t.takes(zoneValue{t.value.epoch, wholly("")})
}

// takes takes a value. What is known of parts that are still there stays, and what is to be handed is so as well when it was split.
func (t *tenancy) takes(v zoneValue) {
	shares := make([]share, len(v.parts))
	was, ends := 0, t.value.parts[0].size() // the former part in which this one begins
	for i, at := 0, 0; i < len(v.parts); i++ {
		for at >= ends {
			was++
			ends += t.value.parts[was].size()
		}
		f, p := t.value.parts[was], v.parts[i]
		if f.depth == p.depth {
			shares[i] = t.shares[was]
		}
		if shares[i].to = t.shares[was].to; f.holder != p.holder {
			shares[i].to = ""
		}
		at += p.size()
	}
	t.value, t.shares = v, shares
}

func (k *Keeper) findLease(id string) (int, bool) {
	return slices.BinarySearchFunc(k.leases, id, func(l *lease, id string) int { return cmp.Compare(l.id, id) })
}

func (k *Keeper) lease(id string) *lease {
	if i, ok := k.findLease(id); ok {
		return k.leases[i]
	}
	return nil
}

func (k *Keeper) tenancy(name string) *tenancy {
	if at, ok := k.places[name]; ok {
		return k.zones[at]
	}
	return nil
}

// begins: a watch begins, of the store of this number.
func (k *Keeper) begins(store uint64) {
	k.over = k.over || k.store != 0 && k.store != store
	k.store, k.current, k.load.ready = store, false, 0
	for _, l := range k.leases {
		l.told = false
	}
	for _, t := range k.zones {
		t.told = false
	}
}

// isCurrent: the watch has told all.
func (k *Keeper) isCurrent() {
	k.current = true
	k.currentAt = cmp.Or(k.currentAt, k.now)
	k.leases = slices.DeleteFunc(k.leases, func(l *lease) bool { return !l.told && l.id != k.id })
	for _, t := range k.zones {
		if !t.told {
			t.vacant()
		}
	}
	k.zonesChanged()
}

// renew holds this server's lease.
func (k *Keeper) renew() {
	m := &k.mine
	if m.busy || k.now < m.tryAt || k.now < m.renewAt && m.held && !k.left() {
		return
	}
	m.busy = true
	m.renewAt = k.now + k.cfg.Lease/4
	again := k.now + k.cfg.Lease/16 // when the store fails at once
	key := k.key("server", k.id)
	if !m.known && m.beat > m.base { // what happened to the last one?
		k.do(kv.Op{Kind: kv.Get, Key: key}, func(e kv.Event) {
			m.busy, m.renewAt = false, k.now
			var v leaseValue
			switch {
			case e.Status == kv.OK && v.read(e.Value) && !v.over && v.beat > m.base && v.beat <= m.beat: // else another start has the ID
				m.known, m.rev = true, e.Revision
				k.renewed(v.beat)
			case e.Status == kv.OK, e.Status == kv.Missing && (m.held || k.now-m.first >= k.share(k.cfg.Lease)): // others may have heard of it, ended it, and be done with it
				k.over = true
			case e.Status == kv.Missing:
				m.known, m.rev = true, 0
			default:
				m.tryAt = again
			}
		})
		return
	}
	m.beat++
	if m.beat == m.base+1 {
		m.first = k.now
	}
	m.sent[m.beat%8] = k.now
	k.toldSeen = k.seen
	k.weigh()
	beat, v := m.beat, leaseValue{beat: m.beat, seen: k.seen, length: k.cfg.Lease, away: k.cfg.Away, closed: m.away.closed, load: k.load.told, leaves: k.leaving, over: k.left()}
	k.do(kv.Op{Kind: kv.Put, Key: key, Value: v.append(nil), Expect: m.rev}, func(e kv.Event) {
		m.busy, m.known = false, e.Status == kv.OK
		if m.known {
			m.rev = e.Revision
			k.over = k.over || v.over
			k.renewed(beat)
		} else if m.renewAt = k.now; e.Status == kv.Unknown {
			m.tryAt = again
		}
	})
}

// left reports whether this server shall stop, the store has its actors as they are, and none is on the way to another server, or with a player to this one.
func (k *Keeper) left() bool {
	comes := k.cfg.Server != nil && len(k.cfg.Server.arrivals) > 0 && k.now-k.leftAt < k.cfg.Lease
	return k.leaving && !comes && !slices.ContainsFunc(k.list, func(a *kept) bool {
		_, own := k.own(a)
		return !own || !a.final
	})
}

// renewed: the store has a beat of this server's lease.
func (k *Keeper) renewed(beat uint64) {
	m := &k.mine
	if beat+8 <= m.beat {
		return
	}
	m.held = true
	m.acked = max(m.acked, m.sent[beat%8])
	k.bound()
}

// rank is how many servers take before this one: those that hold fewer zones, or with Weight those that weigh less, and of as many those of lower IDs. Who leaves comes last.
func (k *Keeper) rank() time.Duration {
	has := func(l *lease) uint64 { return uint64(k.holds(l.id)) }
	own, n := uint64(k.holds(k.id)), 0
	if k.cfg.Weight != nil {
		has = func(l *lease) uint64 { return l.value.load }
		own = k.load.told
	}
	if k.leaving {
		own = math.MaxUint64
	}
	for _, l := range k.leases {
		if l.id != k.id && k.alive(l) && !l.value.leaves {
			if o := has(l); o < own || o == own && l.id < k.id {
				n++
			}
		}
	}
	return time.Duration(n)
}

// length is how long the lease is: its holder may have another one than this server.
func (l *lease) length(k *Keeper) time.Duration { return max(k.cfg.Lease, l.value.length) }

// alive reports whether a server's lease may be held still.
func (k *Keeper) alive(l *lease) bool { return !l.value.over && !k.runsOut(l, 0) }

// orphans reports whether a zone, or a part of one, has a holder whose lease is over, or that has none.
func (k *Keeper) orphans() bool {
	k.holds("")
	for id := range k.counts {
		if l := k.lease(id); l == nil || l.value.over {
			return true
		}
	}
	return false
}

// holds is how many zones a server holds, and parts of zones.
func (k *Keeper) holds(id string) int {
	if k.counts == nil {
		k.counts = map[string]int{}
		for _, t := range k.zones {
			for _, p := range t.value.parts {
				k.counts[p.holder]++
			}
		}
	}
	return k.counts[id]
}

// zonesChanged: what is counted, and in the table, isn't as it is.
func (k *Keeper) zonesChanged() { k.tabled, k.laid, k.counts = false, false, nil }

// heir is the server that takes over what a server has had. "" when that isn't known; the server itself while it isn't over.
func (k *Keeper) heir(id string) string {
	for range len(k.leases) + 1 {
		l := k.lease(id)
		switch {
		case l == nil:
			return ""
		case !l.value.over:
			return id
		}
		id = l.value.heir
	}
	return ""
}

// stepLeases ends the leases that have run out, and takes over the zones of the servers that had them.
func (k *Keeper) stepLeases() {
	if !k.current || !k.mine.held {
		return
	}
	turn := k.rank() * k.cfg.Lease / 8
	wait := k.cfg.Lease + turn
	for _, l := range k.leases {
		dead := !l.value.over && k.runsOut(l, turn) || l.value.over && k.heir(l.value.heir) == "" && k.now-k.currentAt >= wait
		if l.id == k.id || !dead || k.now < l.tryAt || k.ofEnds >= maxEndOps {
			continue // what there is no room for comes next
		}
		k.ofEnds++
		l.tryAt = k.now + k.cfg.Lease/4
		v := l.value
		v.over, v.heir = true, k.id
		k.do(kv.Op{Kind: kv.Put, Key: k.key("server", l.id), Value: v.append(nil), Expect: l.rev}, func(e kv.Event) {
			k.ofEnds--
			if e.Status == kv.OK {
				k.Counters.Ended++
			}
		})
	}
	for _, l := range k.leases {
		if l.value.over && !l.gone {
			l.gone = true
			k.gone(l.id)
		}
	}
	k.sight()
	if k.orphans() {
		k.takeZones(wait)
	}
	k.retable()
	k.stepHands()
	k.stepSpread()
}

// takeZones takes over what is this server's as the heir, and what nobody has had, or nobody known for so long.
func (k *Keeper) takeZones(wait time.Duration) {
	for _, t := range k.zones {
		if k.ofZones >= maxZoneOps {
			return // the others next
		}
		if k.now < t.tryAt {
			continue
		}
		k.change(t, &k.Counters.Zones, func(i int) string {
			heir := k.id
			switch l := k.lease(t.value.parts[i].holder); {
			case l != nil:
				heir = k.heir(l.id)
				if !l.value.over {
					return ""
				}
			case t.rev == 0 && t.first: // nobody has had it
			case k.now-max(k.currentAt, t.at) < wait: // its holder's lease may come later
				return ""
			}
			if heir != k.id {
				return ""
			}
			return heir
		})
	}
}

// retable gives the Zone the table that says which server holds which zone.
func (k *Keeper) retable() {
	if k.tabled {
		return
	}
	epoch := uint64(1)
	for _, z := range k.zones {
		if z.value.parts[0].holder == "" { // nobody has it; a part alone always has a holder
			return
		}
		epoch += z.value.epoch
	}
	t := k.lay().Table
	t.Epoch = epoch
	k.tabled = true
	if t.Epoch > k.z.table.Epoch {
		k.complain(k.z.setTable(t))
	}
}

// Holds returns the epoch of a zone that this server holds, or a part of it: how many holders it has had, and how often it was split or merged. It is 0 when it is all other servers'.
func (k *Keeper) Holds(zone string) uint64 {
	if t := k.tenancy(zone); t != nil && !k.over && k.mine.held && slices.ContainsFunc(t.value.parts, func(p part) bool { return p.holder == k.id }) {
		return t.value.epoch
	}
	return 0
}
