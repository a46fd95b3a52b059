package mesh

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// kept is an actor whose record in the store is this server's, or is to be.
type kept struct {
	id      netguid.GUID
	index   int // in Keeper.list
	page    *page
	listed  uint64 // the version of the page from which on it has the actor
	rev     uint64
	known   bool   // rev is
	fresh   bool   // nobody else has written a record
	epoch   uint32 // of this server's record; 0: there is none
	hash    uint64
	write   uint64
	last    actorWrite // the last write, and what comes of it
	busy    bool
	due     time.Duration // not looked at before
	checkAt time.Duration // the next checkpoint
	want    uint64        // changes that Keep was called for, and those of durable fields
	durable uint64        // the sum of those as of the last one
	stored  uint64        // of those, how many the store has
	told    []toldWhen
	arrival uint64      // it has come from elsewhere as this one, and isn't recorded yet
	to      string      // where it went
	next    uint32      // in this epoch
	given   []byte      // with this state; nil: a player's goes with its player
	ended   uint32      // it was destroyed here in this epoch
	claim   actorRecord // epoch above 0: what it is taken over with
	claimed bool        // the store has claim
	estate  *estate     // the one that it is in
	final   bool        // the store has it as it is since Leave
	deals   bool        // it is in Keeper.dealers
	gone    bool
}

type actorWrite struct {
	epoch uint32
	hash  uint64
	want  uint64
	final bool // after Leave
}

type toldWhen struct {
	want uint64
	done func(error)
}

// page is a part of the list of this server's actors.
type page struct {
	number  int
	ids     []netguid.GUID
	version uint64 // of ids
	stored  uint64
	rev     uint64
	known   bool
	busy    bool
	due     time.Duration // not asked for before
}

// Keep writes the actor's state to the store now, as it is when the Keeper's next Step comes to it, and calls done when the store has it: a change that was made before is not lost from then on.
// ErrGone: this server is over, or the actor is no more; nobody knows whether the store has it. ErrTooLong: the state is above MaxActorState. Keep itself returns ErrNoActor when the actor isn't this server's, and ErrFull when 1024 wait.
func (k *Keeper) Keep(a Actor, done func(error)) error {
	e := k.kept[a.body().GUID()]
	switch {
	case k.over || e == nil || !k.z.Owns(a):
		return ErrNoActor
	case k.waiting >= maxWaiting:
		return ErrFull
	}
	k.waiting++
	e.want++
	e.told = append(e.told, toldWhen{e.want, done})
	return nil
}

// tell tells who waits for a change.
func (k *Keeper) tell(a *kept, want uint64, err error) {
	n := 0
	for n < len(a.told) && a.told[n].want <= want {
		n++
	}
	now := slices.Clone(a.told[:n])
	a.told = slices.Delete(a.told, 0, n)
	k.waiting -= n
	for _, t := range now {
		t.done(err)
	}
}

// owned: an actor is this server's from now on.
func (k *Keeper) owned(r *record) {
	a := k.entry(r.id)
	a.fresh = a.fresh || r.epoch == 1
	a.claim, a.claimed, a.ended, a.to, a.next, a.given, a.due = actorRecord{}, false, 0, "", 0, nil, 0
	k.settled(a)
	k.arrivals++
	a.arrival = k.arrivals
	k.deals(r.a)
}

// goes: an actor of this server's goes to another one, in an epoch, with a state.
func (k *Keeper) goes(r *record, to string, epoch uint32, state []byte) {
	a := k.kept[r.id]
	a.to, a.next, a.given, a.known, a.due = to, epoch, slices.Clone(state), false, k.now+k.cfg.Lease/8
}

// destroyed: the game has destroyed an actor of this server's.
func (k *Keeper) destroyed(r *record) {
	if a := k.kept[r.id]; a != nil {
		a.ended, a.due = r.epoch, 0
		k.tell(a, a.want, ErrGone)
	}
}

// recorded reports whether the store has an actor as this server's: it may be given away.
func (k *Keeper) recorded(r *record) bool {
	a := k.kept[r.id]
	return a != nil && a.epoch == r.epoch
}

// hasLease reports whether a server has a lease. One that is over and forgotten may hold a zone for a while by a late write: what was given to it would wait for its end for ever.
func (k *Keeper) hasLease(id string) bool { return k.lease(id) != nil }

// entry returns what is kept of an actor. Its id is in the list before there is a record.
func (k *Keeper) entry(id netguid.GUID) *kept {
	a := k.kept[id]
	if a != nil {
		return a
	}
	i := slices.IndexFunc(k.pages, func(p *page) bool { return len(p.ids) < pageIDs })
	if i < 0 {
		i = len(k.pages)
		k.pages = append(k.pages, &page{number: i, known: true})
	}
	p := k.pages[i]
	p.ids = append(p.ids, id)
	p.version++
	a = &kept{id: id, page: p, listed: p.version, index: len(k.list)}
	k.kept[id] = a
	k.list = append(k.list, a)
	return a
}

// forget forgets an actor whose record is no longer this server's.
func (k *Keeper) forget(a *kept) {
	a.gone = true
	k.settled(a)
	a.page.ids = slices.DeleteFunc(a.page.ids, func(id netguid.GUID) bool { return id == a.id })
	a.page.version++
	last := k.list[len(k.list)-1]
	k.list[a.index], last.index = last, a.index
	k.list = k.list[:len(k.list)-1]
	delete(k.kept, a.id)
}

// stepKept writes what is due.
func (k *Keeper) stepKept() {
	for _, p := range k.pages {
		k.stepPage(p)
	}
	saves := 0
	for urgent := 1; urgent >= 0; urgent-- {
		for range len(k.list) {
			if len(k.list) == 0 || saves >= maxSaves || k.ofActors >= maxActorOps {
				break
			}
			if k.at++; k.at >= len(k.list) {
				k.at = 0
			}
			a := k.list[k.at]
			if !a.busy && k.now >= a.due && a.page.stored >= a.listed && (urgent == 0 || a.epoch == 0 || a.want > a.stored || a.arrival > 0 || a.estate != nil) {
				saves += k.stepActor(a)
			}
		}
	}
	k.stepEstates()
}

func (k *Keeper) stepPage(p *page) {
	if p.busy || k.ofPages >= maxPageOps || k.now < p.due || p.stored == p.version || p.number > 0 && k.pages[p.number-1].stored == 0 { // who takes over reads up to the first that isn't there
		return
	}
	p.busy = true
	k.ofPages++
	key := k.pageKey(k.id, p.number)
	if !p.known {
		k.do(kv.Op{Kind: kv.Get, Key: key}, func(e kv.Event) {
			k.ofPages--
			p.busy, p.known = false, e.Status == kv.OK || e.Status == kv.Missing
			if p.known {
				p.rev = e.Revision
			} else {
				p.due = k.now + k.cfg.Lease/8
			}
		})
		return
	}
	version := p.version
	k.do(kv.Op{Kind: kv.Put, Key: key, Value: appendPage(nil, p.ids), Expect: p.rev}, func(e kv.Event) {
		k.ofPages--
		p.busy, p.known = false, e.Status == kv.OK
		if p.known {
			p.rev, p.stored = e.Revision, version
		} else if e.Status == kv.Unknown {
			p.due = k.now + k.cfg.Lease/8
		}
	})
}

func (k *Keeper) pageKey(id string, number int) string {
	return k.key("list", id+"."+strconv.Itoa(number))
}

func (k *Keeper) actorKey(id netguid.GUID) string {
	return k.key("actor", strconv.FormatUint(uint64(id), 10))
}

// ask has the store do something with an actor's record.
func (k *Keeper) ask(a *kept, op kv.Op, done func(kv.Event)) {
	a.busy = true
	k.ofActors++
	op.Key = k.actorKey(a.id)
	k.do(op, func(e kv.Event) {
		a.busy = false
		k.ofActors--
		if !a.gone {
			done(e)
		}
	})
}

// stepActor does what is due for an actor. It returns how many states it saved.
func (k *Keeper) stepActor(a *kept) int {
	r, own := k.own(a)
	switch {
	case own && (a.known || a.fresh && a.write == 0):
		return k.save(a, r)
	case own || !a.known:
		k.ask(a, kv.Op{Kind: kv.Get}, func(e kv.Event) { k.readBack(a, e) })
	case a.ended > 0 && a.rev == 0: // a first write that is under way still shall find a record
		a.write++
		v := actorRecord{epoch: a.ended, write: a.write, holder: k.id}
		k.ask(a, kv.Op{Kind: kv.Put, Value: v.append(nil)}, func(e kv.Event) {
			if a.known = e.Status == kv.OK; a.known {
				a.rev = e.Revision
			}
		})
	case a.ended > 0:
		k.ask(a, kv.Op{Kind: kv.Delete, Expect: a.rev}, func(e kv.Event) {
			if e.Status == kv.OK {
				k.forget(a)
			}
			a.known = false
		})
	case a.claimed:
		k.restore(a)
	case a.claim.epoch > 0:
		epoch := a.claim.epoch
		k.ask(a, kv.Op{Kind: kv.Put, Value: a.claim.append(nil), Expect: a.rev}, func(e kv.Event) {
			if a.known = e.Status == kv.OK && a.claim.epoch == epoch; a.known { // else it has come meanwhile
				k.claimed(a, e.Revision)
			}
		})
	default:
		a.known = false
	}
	return 0
}

// own returns the Zone's record of an actor, and whether it is this server's.
func (k *Keeper) own(a *kept) (*record, bool) {
	r := k.z.records[a.id]
	return r, r != nil && r.owner == k.id && r.a.body().World() == k.z.cfg.World
}

// save writes an actor of this server's, if it is time.
func (k *Keeper) save(a *kept, r *record) int {
	if a.epoch == r.epoch && a.want == a.stored && k.now < a.checkAt {
		return 0
	}
	state := k.cfg.Save(r.a)
	a.checkAt = k.now + k.cfg.Checkpoint
	if len(state) > MaxActorState {
		k.Counters.TooLong++
		a.due = k.now + k.cfg.Checkpoint
		k.tell(a, a.want, ErrTooLong)
		a.stored, a.arrival, a.final = a.want, 0, k.leaving
		return 1
	}
	w := actorWrite{r.epoch, sum(state), a.want, k.leaving}
	if a.epoch == r.epoch && a.hash == w.hash { // and no write is in doubt
		k.saved(a, w)
		return 1
	}
	a.write++
	a.last, a.hash = w, 0
	v := actorRecord{epoch: r.epoch, write: a.write, holder: k.id, class: r.a.body().ClassName(), state: state}
	k.ask(a, kv.Op{Kind: kv.Put, Value: v.append(nil), Expect: a.rev}, func(e kv.Event) {
		if a.known = e.Status == kv.OK; a.known {
			a.rev = e.Revision
			k.Counters.Written++
			k.saved(a, w)
			return
		}
		a.checkAt = k.now           // it is written again, not at the next checkpoint only
		if e.Status == kv.Unknown { // a store that is full says so at once
			a.due = k.now + k.cfg.Lease/8
		}
	})
	return 1
}

func sum(state []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(state)
	return h.Sum64()
}

// saved: the store has a write of this server's.
func (k *Keeper) saved(a *kept, w actorWrite) {
	a.epoch, a.hash, a.stored, a.fresh = w.epoch, w.hash, max(a.stored, w.want), false
	if r, own := k.own(a); own && r.epoch == w.epoch {
		a.arrival = 0
		a.final = w.final
	}
	k.tell(a, w.want, nil)
}

// readBack takes what the store has of an actor.
func (k *Keeper) readBack(a *kept, e kv.Event) {
	r, own := k.own(a)
	var v actorRecord
	switch {
	case e.Status == kv.Missing && own:
		a.known, a.rev, a.epoch = true, 0, 0
		return
	case e.Status == kv.Missing && (a.fresh && a.write > 0 || a.estate != nil): // its first write may come later
		a.known, a.rev, a.ended = true, 0, max(a.ended, 1)
		return
	case e.Status == kv.Missing:
		k.tell(a, a.want, ErrGone)
		k.forget(a)
		return
	case e.Status != kv.OK:
		a.due = k.now + k.cfg.Lease/8
		return
	case !v.read(e.Value):
		k.Counters.Damaged++
		a.due = k.now + time.Second
		return
	}
	a.rev = e.Revision
	switch {
	case v.class == "" && !own: // it was destroyed before it had a record
		a.known, a.ended = true, max(a.ended, v.epoch)
		return
	case v.holder == k.id && v.write == a.write && v.epoch == a.last.epoch:
		k.saved(a, a.last)
	case v.holder == k.id && v.epoch == a.claim.epoch:
		k.claimed(a, a.rev)
		return
	}
	switch {
	case own && (v.epoch > r.epoch || v.epoch == r.epoch && v.holder != k.id):
		k.Counters.Fenced++
		k.z.lose(r)
	case own || v.epoch <= a.ended:
		a.known = true
	case k.dead(v.holder) || v.holder == k.id && k.dead(a.to): // with a server that is over, or on the way to it
		epoch := v.epoch + claimEpochs
		if r != nil {
			epoch = max(epoch, r.epoch+1)
		}
		if epoch < maxEpoch-1 {
			state := slices.Clone(v.state)
			if v.holder == k.id && a.given != nil && a.next == v.epoch+1 { // the other server hasn't recorded it: it is as it was given
				state = a.given
			}
			a.write++
			a.known, a.claim = true, actorRecord{epoch: epoch, write: a.write, holder: k.id, class: v.class, state: state}
			return
		}
		fallthrough
	case v.holder != k.id && k.lease(v.holder) == nil && !k.z.gone[v.holder]:
		k.lookFor(a, v.holder)
	case v.holder == k.id || v.epoch < a.next || k.lease(v.holder) == nil || k.lease(v.holder).value.over: // it is on the way, or not all have told yet what has come to them
		a.due = k.now + k.cfg.Lease/8
	default: // another server has it
		if a.next > 0 {
			k.tell(a, a.want, nil)
		}
		k.tell(a, a.want, ErrGone)
		k.forget(a)
	}
}

// lookFor looks for the lease of a server that has a record and that this one hasn't heard of. Nobody writes a record before its lease: one that has none any more was over, and all it had was taken over, when a write of
// its came that was under way still.
func (k *Keeper) lookFor(a *kept, holder string) {
	a.busy = true
	a.due = k.now + k.cfg.Lease/8
	k.ofActors++
	k.do(kv.Op{Kind: kv.Get, Key: k.key("server", holder)}, func(e kv.Event) {
		a.busy = false
		k.ofActors--
		if e.Status == kv.Missing && k.lease(holder) == nil {
			k.gone(holder)
		}
	})
}
