package fleet

import (
	"bytes"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// seatKeeper is a Server's seats: the record in the store, and who is here.
//
// The record never says less than is true: a seat is in it before its player is let in, and leaves it after.
type seatKeeper struct {
	s    *Server
	cell cell
	rec  seats // of cell.value
	// listed: the watch that has begun told of the record.
	listed bool
	at     time.Duration // earliest time of the next write

	players map[uint64]int // connections by client id
	// placed is the placements that the record had, by slot, until it has them no more. early is the players who came before their placement
	// was seen, by its number.
	placed map[uint64]*expected
	early  map[uint64]early
	walks  []walk // players without a placement, in the order they came
}

// early is the players who came with a placement that isn't seen yet, and its Ticket's stamp.
type early struct {
	came  []uint64
	stamp uint64
}

// expected is a placement as its server sees it.
type expected struct {
	id      uint64   // its number, with renewals
	left    int      // seats that nobody has come for
	came    []uint64 // who came. A seat of another member isn't theirs when they come again
	until   time.Duration
	current bool // the newest record has it
}

// walk is a player who came without a placement and waits for a seat.
type walk struct {
	id    uint64
	until time.Duration
	sent  bool // the record under way has it
	seat  bool // the store has it
	none  bool // it gets none, which it is told when it asks again
}

const (
	// writeEvery is the time between two writes of the record.
	writeEvery = 50 * time.Millisecond
	// maxWalks bounds the players who wait for a seat, in all.
	maxWalks = 1024
	// walkTime is how long one waits for the store. Then it is refused, and tries the next server of its token.
	walkTime = 2 * time.Second
	// seatTime is how long its seat then waits for it: it asks ten times a second.
	seatTime = 5 * time.Second
)

func (k *seatKeeper) init(s *Server) {
	*k = seatKeeper{s: s, cell: cell{key: seatsKey + s.info.ID, known: true}, players: map[uint64]int{}, placed: map[uint64]*expected{}, early: map[uint64]early{}}
}

// closed reports whether the store's record lets nobody in.
func (k *seatKeeper) closed() bool { return k.cell.known && k.cell.rev != 0 && k.rec.closed }

// expected is the seats of players who may still come.
func (k *seatKeeper) expected() (n int) {
	for _, p := range k.placed {
		n += p.left
	}
	for _, w := range k.walks {
		if !w.none {
			n++
		}
	}
	return n
}

// watched takes an event of the watch.
func (k *seatKeeper) watched(e kv.Event) {
	switch {
	case e.Kind == kv.Begin:
		k.listed = false
	case e.Kind == kv.Current:
		if !k.listed && !k.cell.busy() {
			k.cell.known = false
		}
	case e.Key == k.cell.key:
		k.listed = true
		if k.cell.see(e) {
			k.absorb()
		}
	}
}

func (k *seatKeeper) result(e kv.Event) {
	put := k.cell.kind == kv.Put
	if !k.cell.result(e) {
		return
	}
	if e.Status == kv.OK && put {
		for i := range k.walks {
			if w := &k.walks[i]; w.sent {
				w.seat, w.until = true, k.s.now+seatTime
			}
		}
	}
	k.unsure()
	if k.cell.known {
		k.absorb()
	}
}

// unsure: nothing is under way any more.
func (k *seatKeeper) unsure() {
	if !k.cell.busy() {
		for i := range k.walks {
			k.walks[i].sent = false
		}
	}
}

// absorb looks at a new record.
func (k *seatKeeper) absorb() {
	rec, err := parseSeats(k.cell.value)
	if err != nil { // missing, or nonsense that somebody else wrote: it is written anew
		rec = seats{placements: k.rec.placements}
	}
	k.rec = rec
	for _, p := range k.placed {
		p.current = false
	}
	for _, p := range rec.placements {
		e := k.placed[slot(p.id)]
		switch {
		case e == nil || e.id != p.id && !k.anyHere(e.came):
			came := k.early[p.id].came
			e = &expected{id: p.id, left: max(0, p.seats-len(came)), came: came, until: k.s.now + k.s.cfg.hold()}
			k.placed[slot(p.id)] = e
		case e.id != p.id: // who has renewed it came with the number before
			e.id = p.id
		}
		if p.revoked {
			e.left = 0
		}
		e.current = true
	}
	for id, p := range k.placed {
		if !p.current {
			delete(k.placed, id)
		}
	}
	for id, e := range k.early {
		if !k.s.ask.ahead(e.stamp, k.cell.seen) {
			delete(k.early, id)
		}
	}
	k.lapse()
}

// anyHere reports whether one of them is here.
func (k *seatKeeper) anyHere(ids []uint64) bool {
	return slices.ContainsFunc(ids, func(id uint64) bool { return k.players[id] > 0 })
}

// lapse ends what was waited for long enough.
func (k *seatKeeper) lapse() {
	for _, p := range k.placed {
		if p.left > 0 && k.s.now >= p.until {
			k.s.Counters.Lapsed += uint64(p.left)
			p.left = 0
		}
	}
	kept := k.walks[:0]
	for _, w := range k.walks {
		if k.s.now < w.until {
			kept = append(kept, w)
		} else if !w.seat && !w.none {
			w.none, w.until = true, k.s.now+seatTime
			kept = append(kept, w)
		}
	}
	k.walks = kept
}

// wanted is the record as it should be. Walk-ins for whom there is no room are refused.
func (k *seatKeeper) wanted() seats {
	w := seats{closed: k.s.info.State != Ready, capacity: k.s.info.Capacity, held: len(k.players)}
	for _, p := range k.rec.placements {
		if e := k.placed[slot(p.id)]; e != nil && e.left > 0 {
			w.placements = append(w.placements, placement{id: p.id, seats: e.left})
		}
	}
	for i := range k.walks {
		if k.walks[i].seat {
			w.held++
		}
	}
	for i := range k.walks {
		switch o := &k.walks[i]; {
		case o.seat || o.none:
		case w.taken() >= w.capacity || w.closed:
			o.none = true
		default:
			w.held++
		}
	}
	w.held = min(w.held, MaxCapacity)
	return w
}

// step writes the record when it isn't what it should be, or will expire.
func (k *seatKeeper) step() {
	k.lapse()
	c := &k.cell
	switch {
	case c.waits(k.s.now):
		return
	case !c.known:
		c.get(&k.s.ask, k.s.now)
		return
	case k.s.now < k.at && c.rev != 0:
		return
	}
	rec := k.wanted()
	b := rec.encode()
	waits := false
	for i := range k.walks {
		w := &k.walks[i]
		w.sent = !w.seat && !w.none
		waits = waits || w.sent
	}
	// One who waits may be in the record by a write whose outcome wasn't told. It is written again: an older write that is late could take the seat back otherwise.
	if c.rev != 0 && bytes.Equal(b, c.value) && !waits && k.s.now-c.asked < k.s.cfg.seatsTTL()/4 {
		return
	}
	k.at = k.s.now + writeEvery
	c.put(&k.s.ask, k.s.now, b, k.s.cfg.seatsTTL())
}

// Admit decides whether a client may join, for driver.Netcode.Admit. A client whose token has a placement here, or who is here already, is
// let in at once, also while the store is away. One without waits until the store has a seat for it, some milliseconds, and is refused
// when there is none; then it tries the next server in its token. Each Admit must be followed by a Left.
func (s *Server) Admit(c netcode.ClientInfo) netcode.Admission {
	a := s.seats.admit(c.ID, readTicket(c.UserData))
	if a == netcode.Refuse {
		s.Counters.Refused++
	}
	return a
}

func (k *seatKeeper) admit(id uint64, t Ticket) netcode.Admission {
	s := k.s
	if s.info.State == Stopped || s.info.State == Starting {
		return netcode.Refuse
	}
	here := k.players[id] > 0
	if !here && len(k.players) >= s.info.Capacity {
		return netcode.Refuse
	}
	if t.server == s.hash {
		p, came := k.placed[slot(t.placement)], k.early[t.placement].came
		switch {
		case p != nil && p.left > 0 && !slices.Contains(p.came, id): // also of one who is here: another seat isn't needed
			p.left--
			p.came = append(p.came, id)
			s.Counters.Placed++
			return k.letIn(id)
		case (p == nil || p.id != t.placement) && s.ask.ahead(t.stamp, k.cell.seen) && !here && !slices.Contains(came, id) && len(came) < t.seats: // the record has it, and isn't seen yet
			k.early[t.placement] = early{append(came, id), t.stamp}
			s.Counters.Placed++
			return k.letIn(id)
		}
	}
	if here {
		return k.letIn(id)
	}
	for i := range k.walks {
		w := k.walks[i]
		if w.id != id {
			continue
		}
		if !w.seat && !w.none {
			return netcode.Wait
		}
		k.walks = slices.Delete(k.walks, i, i+1)
		if w.none {
			return netcode.Refuse
		}
		s.Counters.WalkIns++
		return k.letIn(id)
	}
	if s.info.State != Ready || len(k.walks) >= maxWalks || len(k.players)+k.expected() >= s.info.Capacity {
		return netcode.Refuse
	}
	k.walks = append(k.walks, walk{id: id, until: s.now + walkTime})
	return netcode.Wait
}

func (k *seatKeeper) letIn(id uint64) netcode.Admission {
	k.players[id]++
	return netcode.Admit
}

// Left tells that a connection of a client that was admitted has ended: call it from driver.Config.Closed, or when the game no longer
// keeps the player. Its seat is free when its last connection has ended.
func (s *Server) Left(id uint64) {
	if n := s.seats.players[id]; n > 1 {
		s.seats.players[id] = n - 1
	} else {
		delete(s.seats.players, id)
	}
}

// Players returns how many players have a seat here now.
func (s *Server) Players() int { return len(s.seats.players) }
