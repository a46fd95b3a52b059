package mesh

import (
	"encoding/binary"
	"io"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// Bounds of a Book.
const (
	// MaxDeal is the most bytes of a deal.
	MaxDeal = 256
	// MaxDeals is the most deals of an actor that aren't settled.
	MaxDeals = 16
	// MaxBook is the most bytes of a Book.
	MaxBook = 20 + MaxDeals*(MaxDeal+20) + maxTaken*18

	maxTaken  = 64 // deals that an actor has had and that their senders may repeat; above, they wait at their senders
	maxLooks  = 32 // for holders of actors, under way at a time
	dealAgain = 500 * time.Millisecond
	wantedFor = 4 * dealAgain // before another deal takes the place of one that was asked for
)

// Dealer is an actor that deals with others.
type Dealer interface {
	Actor
	// Dealings returns its Book, which is part of its state: KeeperConfig.Save, ZoneGame.Give and Game.Save write it, and Take and Play read it.
	Dealings() *Book
}

// DealGame is what a Keeper asks of a game whose actors deal with each other. It is called within Keeper.Step and Zone.Receive.
type DealGame interface {
	// Deal is another actor's deal for one of this server's. What the game changes in a, and what a deals with others in the same call, is kept together with a's Book: all of it once, or nothing yet.
	// A Deal of a's may return ErrFull or ErrAway here too: then what came stays a's until the game deals it back, or on, later.
	Deal(a Dealer, from netguid.GUID, deal []byte)
	// Returned: the store has no actor that the deal was for. What was dealt is a's again.
	Returned(a Dealer, to netguid.GUID, deal []byte)
}

// Book is an actor's deals that aren't settled. The zero value is an empty one.
type Book struct {
	last   uint64 // number of the last deal
	deals  []dealing
	wanted []dealWanted // isn't part of a state
}

// dealWanted is a deal that its sender was asked for. What is said of a deal may come late, by another way, when it is settled long since: it is taken only in answer to a question of this server's, which had a number of its own.
type dealWanted struct {
	from     netguid.GUID
	n, nonce uint64
	at       time.Duration // when it was asked for first
}

// dealing is a deal that the other actor hasn't confirmed, or one of the other actor's that it may repeat.
type dealing struct {
	taken bool // the other one's
	n     uint64
	with  netguid.GUID
	deal  []byte

	// What follows isn't part of a state.
	asked bool          // Keep was called
	kept  bool          // the store has it
	busy  bool          // the store was asked for the other actor's holder
	at    time.Duration // it isn't repeated before
}

// Idle reports whether all is settled. Destroy an actor that deals only then: what is under way is lost otherwise, or comes twice.
func (b *Book) Idle() bool { return len(b.deals) == 0 }

// Append appends the Book to a state, MaxBook bytes at most.
func (b *Book) Append(to []byte) []byte {
	to = binary.AppendUvarint(binary.AppendUvarint(to, b.last), uint64(len(b.deals)))
	for _, d := range b.deals {
		to = binary.AppendUvarint(binary.AppendUvarint(append(to, b2u(d.taken)), d.n), uint64(d.with))
		to = appendBytes(to, d.deal)
	}
	return to
}

// Read sets the Book to what Append has written, and returns what follows. An error is of a state that was damaged.
func (b *Book) Read(state []byte) (rest []byte, err error) {
	r := reader{b: state}
	v := Book{last: r.number()}
	n := r.number()
	for ; n > 0 && !r.bad && len(v.deals) < MaxDeals+maxTaken; n-- {
		d := dealing{taken: r.byte() == 1, n: r.number(), with: netguid.GUID(r.number32())}
		d.deal = slices.Clone(r.bytes(MaxDeal))
		v.deals = append(v.deals, d)
	}
	if r.bad || n > 0 {
		return nil, errPacket
	}
	*b = v
	return r.b, nil
}

func (b *Book) find(taken bool, with netguid.GUID, n uint64) *dealing {
	for i := range b.deals {
		if d := &b.deals[i]; d.taken == taken && d.n == n && d.with == with {
			return d
		}
	}
	return nil
}

func (b *Book) remove(taken bool, with netguid.GUID, n uint64) {
	b.deals = slices.DeleteFunc(b.deals, func(d dealing) bool { return d.taken == taken && d.n == n && d.with == with })
}

func (b *Book) count(taken bool) (n int) {
	for i := range b.deals {
		if b.deals[i].taken == taken {
			n++
		}
	}
	return n
}

// Deal gives something of an actor of this server's to another actor, at whichever server that one is. The game takes it out of a and calls Deal in the same step, so that both are kept together. When the
// store has that, the other actor's server hears of it, again and again until the store has that one as well: DealGame.Deal changes the other actor once. Deals may come in another order.
//
// ErrNoActor: a isn't this server's, or to is a itself, or there are no Deals in KeeperConfig. ErrTooLong: above MaxDeal. ErrFull: MaxDeals of a aren't settled. ErrAway: the store is away. After
// an error nothing has begun.
func (k *Keeper) Deal(a Dealer, to netguid.GUID, deal []byte) error {
	b := a.Dealings()
	switch {
	case k.cfg.Deals == nil || k.over || !k.z.Owns(a) || k.kept[a.body().GUID()] == nil || !to.Valid() || to == a.body().GUID():
		return ErrNoActor
	case len(deal) > MaxDeal:
		return ErrTooLong
	case k.Away():
		return ErrAway
	case b.count(false) >= MaxDeals:
		return ErrFull
	}
	b.last++
	b.deals = append(b.deals, dealing{n: b.last, with: to, deal: slices.Clone(deal)})
	k.deals(a)
	return nil
}

// deals has the Keeper look after an actor's Book.
func (k *Keeper) deals(a Actor) {
	d, ok := a.(Dealer)
	if e := k.kept[a.body().GUID()]; ok && e != nil && !e.deals && k.cfg.Deals != nil {
		e.deals = true
		k.dealers = append(k.dealers, d)
	}
}

// stepDeals keeps deals, and says them until they are settled.
func (k *Keeper) stepDeals() {
	k.dealers = slices.DeleteFunc(k.dealers, func(a Dealer) bool {
		e := k.kept[a.body().GUID()]
		done := e == nil || !k.z.Owns(a) || a.Dealings().Idle()
		if e != nil {
			e.deals = !done
		}
		return done
	})
	for _, a := range k.dealers {
		for _, d := range slices.Clone(a.Dealings().deals) {
			k.stepDeal(a, d)
		}
	}
}

func (k *Keeper) stepDeal(a Dealer, d dealing) {
	book := a.Dealings()
	now := book.find(d.taken, d.with, d.n)
	switch {
	case now == nil || now.asked || now.busy || k.now < now.at:
	case !now.kept:
		now.asked = k.Keep(a, func(err error) {
			if now := book.find(d.taken, d.with, d.n); now != nil {
				now.asked, now.kept = false, now.kept || err == nil && now.asked
			}
		}) == nil
	default:
		now.at = k.now + dealAgain
		m := zoneMessage{kind: zoneDeal, id: d.with, from: a.body().GUID(), number: d.n, origin: k.id, call: d.deal}
		if d.taken {
			m.kind, m.call = zoneTaken, nil
		}
		if r := k.z.records[d.with]; r != nil && r.owner == k.id {
			k.dealt(&m)
			return
		}
		if k.looks >= maxLooks {
			now.at = 0
			return
		}
		k.looks++
		now.busy = true
		k.do(kv.Op{Kind: kv.Get, Key: k.actorKey(d.with)}, func(e kv.Event) {
			k.looks--
			now := book.find(d.taken, d.with, d.n)
			if now == nil || !now.busy {
				return
			}
			now.busy = false
			if !now.kept || !k.z.Owns(a) { // it may be on the way to another server, and stay
				return
			}
			var v actorRecord
			switch {
			case e.Status == kv.Missing:
				book.remove(d.taken, d.with, d.n)
				if !d.taken {
					k.cfg.Deals.Returned(a, d.with, d.deal)
				}
			case e.Status == kv.OK && v.read(e.Value) && v.holder == k.id:
				k.dealt(&m)
			case e.Status == kv.OK && v.read(e.Value):
				k.tellDeal(v.holder, &m)
			}
		})
	}
}

// tellDeal sends what is said of a deal, if there is room. It is repeated.
func (k *Keeper) tellDeal(to string, m *zoneMessage) {
	if n := k.z.neighbour(to); n != nil && !n.fills(2) {
		_ = k.z.push(to, m)
	}
}

// dealt takes what is said of a deal, or passes it on to the actor's authority.
func (k *Keeper) dealt(m *zoneMessage) {
	r := k.z.records[m.id]
	if r == nil {
		return // it is repeated
	}
	if r.owner != k.id {
		if m.hops++; m.hops <= maxHops {
			k.tellDeal(r.owner, m)
		}
		return
	}
	a, ok := r.a.(Dealer)
	if !ok || !k.z.Owns(a) || k.cfg.Deals == nil || a.body().World() != k.z.cfg.World {
		return
	}
	b := a.Dealings()
	switch m.kind {
	case zoneDeal:
		if had := b.find(true, m.from, m.number); had != nil {
			had.at = 0
			return
		}
		if b.count(true) >= maxTaken {
			return // it is repeated
		}
		i := slices.IndexFunc(b.wanted, func(w dealWanted) bool { return w.from == m.from && w.n == m.number })
		if i < 0 || m.nonce == 0 || m.nonce != b.wanted[i].nonce {
			k.want(b, m, i)
			return
		}
		b.wanted = slices.Delete(b.wanted, i, i+1)
		b.deals = append(b.deals, dealing{taken: true, n: m.number, with: m.from})
		k.deals(a)
		k.cfg.Deals.Deal(a, m.from, slices.Clone(m.call))
	case zoneWanted:
		if d := b.find(false, m.from, m.number); d != nil && d.kept {
			k.replyDeal(m.origin, zoneMessage{kind: zoneDeal, id: m.from, from: m.id, number: m.number, nonce: m.nonce, origin: k.id, call: d.deal})
		}
	case zoneTaken:
		b.remove(false, m.from, m.number)
		settled := zoneMessage{kind: zoneSettled, id: m.from, from: m.id, number: m.number, origin: k.id}
		to := m.origin
		_ = k.Keep(a, func(err error) { // only then the other one may forget that it has had it
			if err == nil {
				k.replyDeal(to, settled)
			}
		})
	case zoneSettled:
		b.remove(true, m.from, m.number)
	}
}

// want asks the sender of a deal for it: i is where it is in Book.wanted, below 0 it isn't there.
func (k *Keeper) want(b *Book, m *zoneMessage, i int) {
	if i < 0 {
		if len(b.wanted) >= maxTaken {
			if k.now-b.wanted[0].at < wantedFor {
				return // it is repeated. In place of one that is answered still, none of many would ever come
			}
			b.wanted = slices.Delete(b.wanted, 0, 1)
		}
		var nonce [8]byte
		if _, err := io.ReadFull(k.z.cfg.Rand, nonce[:]); err != nil {
			return // it is repeated
		}
		i = len(b.wanted)
		b.wanted = append(b.wanted, dealWanted{m.from, m.number, max(1, binary.LittleEndian.Uint64(nonce[:])), k.now})
	}
	k.replyDeal(m.origin, zoneMessage{kind: zoneWanted, id: m.from, from: m.id, number: m.number, nonce: b.wanted[i].nonce, origin: k.id})
}

// replyDeal answers what a server has said of a deal.
func (k *Keeper) replyDeal(to string, m zoneMessage) {
	if to == k.id {
		k.dealt(&m)
	} else {
		k.tellDeal(to, &m)
	}
}
