package actorrep

import (
	"reflect"
	"slices"
	"testing"
)

// checker collects what of a World's bookkeeping contradicts the rest of it.
type checker struct {
	testing.TB
	w    *World
	held map[*call]int // references found
}

func (c *checker) must(ok bool, format string, args ...any) {
	if !ok {
		c.Helper()
		c.Errorf(format, args...)
	}
}

// Consistent fails the test when a World's bookkeeping contradicts itself. It is to be called between Steps.
func (w *World) Consistent(t testing.TB) {
	t.Helper()
	c := &checker{TB: t, w: w, held: map[*call]int{}}
	c.actors()
	c.spare()
	for counters, i := reflect.ValueOf(w.Counters), 0; i < counters.NumField(); i++ {
		c.must(counters.Field(i).Uint() < 1<<60, "the counter %s is below 0", counters.Type().Field(i).Name)
	}
	if w.server {
		c.server()
	} else {
		w.client.consistent(c)
	}
	for k, n := range c.held {
		c.must(k.holders == n, "a call of %s has %d references and is in %d queues", k.name, k.holders, n)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// empty requires that a slice keeps nothing behind its end.
func empty[T comparable](c *checker, what string, s []T) {
	var zero T
	for i, v := range s[len(s):cap(s)] {
		if v != zero {
			c.must(false, "%s keeps something %d behind its end", what, i)
			return
		}
	}
}

func (c *checker) calls(what string, list []*call) {
	empty(c, what, list)
	for _, k := range list {
		c.held[k]++
	}
}

// kept counts calls that were sent and aren't acked.
func (c *checker) kept(what string, list []sentCall) {
	empty(c, what, list)
	for _, k := range list {
		c.held[k.call]++
	}
}

func (c *checker) actors() {
	w, live := c.w, 0
	for i, b := range w.actors {
		if b == nil {
			continue
		}
		live++
		c.must(b.slot == i && b.world == w && w.byGUID[b.guid] == b && b.self.base() == b, "actor %v at %d", b.guid, i)
		gaps := 0
		for place, child := range b.children {
			if child == nil {
				gaps++
				continue
			}
			c.must(child.parent == b && child.world == w && child.place == place, "a component of %v", b.guid)
		}
		c.must(gaps == b.gaps && (gaps <= leastGaps || gaps <= len(b.children)/2), "%v has %d gaps of %d, counts %d", b.guid, gaps, len(b.children), b.gaps)
		c.must(b.parent == nil || b.parent.children[b.place] == b, "%v isn't among its parent's", b.guid)
	}
	c.must(live == w.live && len(w.byGUID) == live, "%d actors, %d counted, %d ids", live, w.live, len(w.byGUID))
	c.must(w.walking == 0 && w.busy == 0 && len(w.untold)+len(w.removed)+len(w.endings) == 0, "walking %d, busy %d", w.walking, w.busy)
	empty(c, "actors", w.actors)
	for _, cl := range w.classes {
		for i := range cl.rpcs {
			p, lent := &cl.rpcs[i], 0
			empty(c, "spare parameters", p.spare)
			for _, params := range p.spare {
				if mem := p.borrow(params); mem != nil {
					lent += mem.Size()
				}
			}
			c.must(p.lent == lent && lent <= maxSpareBytes, "%s counts %d lent bytes of %d", p.name, p.lent, lent)
		}
	}
}

func (c *checker) spare() {
	s, n := &c.w.unheld, 0
	empty(c, "spare calls", s.list)
	for _, k := range s.list {
		n += cap(k.data)
		c.must(k.holders == 0 && len(k.data) == 0 && k.def == nil, "a spare call holds something")
	}
	c.must(n == s.bytes && n <= maxSpareBytes && len(s.list) <= maxSpare, "%d bytes of spare calls, %d counted", n, s.bytes)
}

func (c *checker) server() {
	w, booked := c.w, 0
	w.scheduled.Ascend(func(a appointment) bool {
		booked++
		c.must(a.b.world == w && a.b.rep.inSchedule && a.b.rep.booked == a.at && uint32(a.b.guid) == a.guid, "an appointment of %d", a.guid)
		return true
	})
	empty(c, "the list of compares", w.compares.list)
	for _, slept := range w.compares.slept {
		empty(c, "those that slept", slept)
	}
	for i, b := range w.polled {
		c.must(b.rep != nil && b.rep.polled == i, "polled %d", i)
	}
	for _, list := range [][]*Base{w.polled, w.marked, w.spare, w.moving, w.found, w.compares.popped} {
		empty(c, "a list of actors", list)
	}
	if l, is := w.relevancy.(*list); is {
		empty(c, "what the list is to check", l.fresh)
		empty(c, "whom the list is to check", l.came)
		c.must(!slices.Contains(l.fresh, nil) && !slices.Contains(l.came, nil), "the list is to check nothing")
	}
	c.must(len(w.moving)+len(w.early)+len(w.compares.list)+len(w.compares.popped) == 0, "something is left of a Step")
	views := 0
	for _, b := range w.actors {
		if b == nil {
			continue
		}
		r := b.rep
		views += len(r.views)
		if r.inSchedule {
			booked--
		}
		c.must(r.polled < 0 || w.polled[r.polled] == b, "%v is polled by another", b.guid)
		c.must(!b.needsPolling() || (r.polled >= 0) != r.inSchedule && (r.polled >= 0) == (r.interval == 0), "%v is polled %d, scheduled %v, every %v", b.guid, r.polled, r.inSchedule, r.interval)
		c.must(b.needsPolling() || r.polled < 0, "%v is polled", b.guid)
		c.must(!r.marked || r.inSchedule || slices.Contains(w.marked, b), "%v is marked for ever", b.guid)
		c.must(!r.forced || r.marked && r.due == 0, "%v is forced", b.guid)
		empty(c, "the views of an actor", r.views)
		for i, v := range r.views {
			c.must(v.b == b && int(v.slot) == i, "view %d of %v", i, b.guid)
		}
	}
	c.must(booked == 0, "%d appointments too many", booked)
	for _, p := range w.peers {
		views -= len(p.list)
		c.peer(p)
	}
	c.must(views == 0, "%d views aren't their connections'", views)
	fates := w.fates
	for i, p := range w.hearing {
		c.must(p.hearing && !slices.Contains(w.hearing[:i], p), "a connection is to learn twice")
		fates -= len(p.fates)
	}
	empty(c, "hearing", w.hearing)
	c.must(fates >= 0, "%d fates are too many", -fates)
}

// listed requires that the views of a list are those of which has says so, each once. Views that have ended stay until the list's turn.
func (c *checker) listed(p *Peer, what string, list []*view, has func(v *view) bool) {
	empty(c, what, list)
	n := 0
	for _, v := range list {
		c.must(has(v), "%v is in %s and doesn't know it", v.b.guid, what)
		if v.state != ended {
			n++
		}
	}
	for _, v := range p.list {
		if has(v) {
			n--
		}
	}
	c.must(n == 0, "%s has %d views too many", what, n)
}

func (c *checker) peer(p *Peer) {
	empty(c, "views", p.list)
	c.must(len(p.views) == len(p.list), "%d views, %d in the list", len(p.views), len(p.list))
	c.listed(p, "opening", p.opening, func(v *view) bool { return v.inOpening })
	c.listed(p, "speaking", p.speaking, func(v *view) bool { return v.inSpeaking })
	c.listed(p, "settling", p.settling, func(v *view) bool { return v.inSettling })
	c.listed(p, "leaving", p.leaving, func(v *view) bool { return v.inLeaving })
	c.listed(p, "pending", p.pending, func(v *view) bool { return v.flags&pending != 0 })
	c.listed(p, "halves", p.halves, func(v *view) bool { return v.flags&inTurns != 0 })
	var later []*view
	for i, at := range p.later {
		empty(c, "later", at)
		c.must(!slices.ContainsFunc(at, func(v *view) bool { return int(v.laterAt) != i }), "a view is at another place of later")
		later = append(later, at...)
	}
	c.listed(p, "later", later, func(v *view) bool { return v.inLater })
	for _, k := range p.batch.said {
		c.must(k == nil, "a call was said and is kept")
	}
	empty(c, "large", p.batch.large)
	empty(c, "who said it", p.batch.saidBy)
	c.must(len(p.batch.buf)+len(p.batch.chunks)+len(p.batch.large) == 0, "a batch is kept")
	c.must(p.batch.stats == (batchStats{}) && len(p.batch.ranks) == 0, "a batch isn't counted")
	for _, r := range p.batch.ranks[:cap(p.batch.ranks)] {
		c.must(r.v == nil, "ranks keep a view")
	}
	c.must(p.peaks.inFlight <= len(p.sent.ring), "%d records were in flight, with room for %d", p.peaks.inFlight, len(p.sent.ring))
	for i := range p.slab {
		c.must(p.slab[i].b == nil, "a view is used twice")
	}
	c.must(len(p.slots) == len(p.list), "%d slots, %d views", len(p.slots), len(p.list))
	for i, v := range p.list {
		c.must(int(p.slots[i]) == v.b.slot, "the slot of view %d is another actor's", i)
		c.must(v.peer == p && int(v.place) == i && p.views[v.b] == v && v.b.world == c.w, "view %d", i)
		c.view(p, v)
	}
	c.sent(p)
	for v := range p.oversize {
		c.must(p.views[v.b] == v, "a value of %v, which is gone, is too large", v.b.guid)
	}
	for id, k := range p.closing {
		c.must(len(k.views) > 0 && k.newest != nil, "%d channels of %v close", len(k.views), id)
		empty(c, "closing", k.views)
		for _, v := range k.views {
			c.must(v.b.guid == id && (v.b.world == c.w || v.b.self == nil), "a closing channel of %v keeps an actor that is destroyed", id)
		}
	}
	if o, ok := p.out.(*channelOutlet); ok && !p.ended() {
		n := 0
		for ch := range o.conn.Table().All {
			if ch.Closing() {
				n++
			}
		}
		for _, k := range p.closing {
			n -= len(k.views)
		}
		c.must(n >= 0, "%d channels close for ever", -n)
	}
	c.must(len(p.ending) == len(p.endingID), "%d ids end, of %d channels", len(p.ending), len(p.endingID))
	for id, ch := range p.ending {
		c.must(p.endingID[ch] == id && (ch.Closing() || p.ended()), "%v ends for ever", id)
	}
	d := &p.going
	c.must(d.head == 0 || d.head < len(d.list), "departures from %d of %d", d.head, len(d.list))
	for i, e := range d.list[:cap(d.list)] {
		c.must((e.v != nil) == (i >= d.head && i < len(d.list)), "departure %d of %d to %d", i, d.head, len(d.list))
	}
}

func (c *checker) view(p *Peer, v *view) {
	l, id := v.b.class.layout, v.b.guid
	c.calls("calls", v.calls)
	c.calls("mentions", v.mentioned())
	if k := v.carry; k != nil {
		c.kept("calls that aren't acked", k.kept)
		held := 0
		for _, h := range k.held {
			held += len(h.data) + partCost
		}
		c.must(held == k.heldBytes && held <= maxHeld && (held == 0 || k.departed), "%v holds %d, counts %d", id, held, k.heldBytes)
	}
	c.must((v.versions == nil) == (l.Fasts|l.Groups == 0), "versions of %v", id)
	c.must((v.flags&mentioning != 0) == (len(v.mentioned()) > 0), "%v mentions %d", id, len(v.mentioned()))
	c.must(v.rest == 0 && v.flags&unfinished == 0 || v.flags&inTurns != 0, "%v has a rest", id)
	c.must(v.flags&(unfinished|inParts) == 0 || v.state == opening, "%v opens in state %d", id, v.state)
	c.must(v.state != ended, "%v has ended", id)
	c.must(v.allowed == v.mayHave(v.aud), "%v may have %x, thinks %x", id, v.mayHave(v.aud), v.allowed)
	if v.last < 0 {
		c.must(v.last == -1, "%v", id)
	}
	if p.lacking(v.b.class) || p.finishing || !p.ready || p.idle {
		return
	}
	c.must((v.flags&drowsy != 0) == v.b.dormant && (v.flags&versioned != 0) == (v.versions != nil), "%v has flags %b", id, v.flags)
	c.must(v.state != wanted && v.state != asleep || v.versions == nil || v.versions.promised == 0, "%v was sent values that aren't acked", id)
	switch v.state {
	case wanted:
		c.must(v.inOpening, "%v waits for nothing", id)
	case opening, open:
		if _, channels := p.out.(*channelOutlet); channels && v.ch != nil {
			c.must(v.ch.Index() == v.id && v.ch.Handler() == v, "%v has channel %v as %d", id, v.ch, v.id)
		}
	case asleep:
		c.must(v.ch == nil && v.last < 0, "%v sleeps with something under way", id)
		c.must(v.dirty&v.allowed == 0 || v.inOpening, "%v sleeps with changes", id)
		c.must(len(v.calls) == 0 || v.inOpening || v.inSpeaking, "%v sleeps with calls", id)
	}
	if v.state == open {
		c.must(v.dirty&v.allowed == 0 && v.flags&mentioning == 0 || v.flags&(pending|inTurns) != 0 || v.inLater, "%v has changes and isn't served", id)
		c.must(v.toldAud == v.aud && len(v.calls) == 0 || v.inSpeaking, "%v has to speak", id)
		c.must(!v.b.dormant || v.inSettling || v.b.rep.marked, "%v never sleeps", id)
	}
	going := func() bool {
		for _, e := range p.going.list[p.going.head:] {
			if e.v == v && e.at == v.leaveAt {
				return true
			}
		}
		return false
	}
	c.must(v.relevant || v.inLeaving || going(), "%v isn't relevant and never leaves", id)
}

func (c *checker) sent(p *Peer) {
	s := &p.sent
	n, found := int64(0), int64(0)
	for i := range s.ring {
		if s.ring[i].v != nil {
			n++
		}
	}
	c.must(n == s.tail-s.head, "%d records in flight, %d in the ring", s.tail-s.head, n)
	for i := s.head; i < s.tail; i++ {
		r := s.at(i)
		c.must(r.v != nil && r.v.last >= i && r.mask != 0 && r.due&^r.mask == 0, "record %d", i)
		if r.v == nil || r.v.last != i {
			continue
		}
		for at := i; at >= s.head; at = s.at(at).prev {
			found++
			c.must(s.at(at).v == r.v && s.at(at).prev < at, "record %d isn't of its view", at)
		}
	}
	c.must(found == n, "%d of %d records are found", found, n)
	for _, v := range p.list {
		c.must(v.last < 0 || v.last >= s.head && v.last < s.tail && s.at(v.last).v == v, "the last record of %v is gone", v.b.guid)
	}
	c.must(s.first == 0 || s.first < len(s.packets), "packets from %d of %d", s.first, len(s.packets))
	flight := s.packets[s.first:]
	for i, sp := range flight {
		c.must(sp.end >= s.head && sp.end <= s.tail && (i == 0 || sp.packet >= flight[i-1].packet && sp.end >= flight[i-1].end), "packet %d ends at %d of %d to %d", sp.packet, sp.end, s.head, s.tail)
	}
	c.must(n == 0 || len(flight) > 0 && flight[len(flight)-1].end == s.tail, "%d records, %d packets", n, len(flight))
}

func (c *client) consistent(k *checker) {
	size := 0
	for a := range c.world.All {
		size += a.base().class.size()
	}
	for _, m := range c.mirrors {
		if m != nil && m.history != nil {
			size += len(m.history.entries) * m.entryBytes()
		}
		if m != nil && m.ch == nil {
			size += m.held
		}
	}
	k.must(size == c.held, "actors of %d bytes, %d counted", size, c.held)
	n, orphans := 0, 0
	for id, list := range c.waiting {
		n += len(list)
		for _, u := range list {
			if u.field < 0 {
				orphans++
			}
			_, waits := c.waits[wait{id, u}]
			k.must(waits, "%v of %v isn't known to wait", u, id)
		}
		k.must(len(list) > 0 && c.world.byGUID[id] == nil, "%v is there, and %d wait for it", id, len(list))
	}
	k.must(n == len(c.waits) && n-orphans <= maxUnmapped, "%d references wait, %d counted", n, len(c.waits))
	for i := range c.events {
		if m := c.events[i].m; m != nil {
			k.must(m.note == i+1 || m.note == 0 && len(c.events[i].fields) == 0, "event %d is note %d", i, m.note)
		}
	}
	for _, e := range c.told[:cap(c.told)] {
		k.must(e.m == nil && e.a == nil, "what was told is kept")
		for _, f := range e.fields[:cap(e.fields)] {
			k.must(!f.old.IsValid(), "an old value that was told is kept")
		}
	}
	pending := map[*mirror]int{}
	for _, p := range c.pending {
		pending[p.m]++
	}
	for _, p := range c.pending[len(c.pending):cap(c.pending)] {
		k.must(p.m == nil, "a call that has run is kept")
	}
	for _, p := range c.running[:cap(c.running)] {
		k.must(p.m == nil || len(c.running) > 0 && &c.running[0] == &p, "a call that has run is kept")
	}
	k.must(!c.args[0].IsValid() && !c.args[1].IsValid(), "what a notify was called with is kept")
	empty(k, "speaking", c.speaking)
	empty(k, "referring", c.referring)
	k.must(len(c.referring) <= c.tidyAt, "%d refer, those that have gone were to be dropped at %d", len(c.referring), c.tidyAt)
	empty(k, "leaving", c.leaving)
	for _, m := range c.leaving {
		k.must(m.leaving && m.waiting > 0, "%v should have left", m.guid)
	}
	speaking := map[*mirror]int{}
	for _, m := range c.speaking {
		speaking[m]++
		k.must(len(m.calls) > 0, "%v has nothing to say", m.guid)
	}
	mirrors := map[*mirror]bool{}
	for i, m := range c.mirrors {
		if m != nil {
			mirrors[m] = true
			k.must(int(m.index) == i, "mirror %d at %d", m.index, i)
		}
	}
	for _, b := range c.world.actors {
		if b == nil || b.mirror == nil {
			continue
		}
		m := b.mirror
		mirrors[m] = true
		k.must(m.b == b && m.self == b && m.guid == b.guid && m.class.local == b.class, "the mirror of %v", b.guid)
		k.must(!b.tornOff || b.role == Authority, "%v was torn off and is %v", b.guid, b.role)
	}
	for m := range mirrors {
		held := 0
		k.must(m.b == nil || m.b.mirror == m, "%v has another mirror", m.guid)
		for _, p := range m.parts {
			held += len(p.data) + partCost
		}
		k.must(m.held == held, "%v holds %d, counts %d", m.guid, held, m.held)
		k.must(m.waiting == pending[m], "%v waits for %d calls of %d", m.guid, m.waiting, pending[m])
		k.must(speaking[m] == min(1, len(m.calls)), "%v is %d times among those that speak, with %d calls", m.guid, speaking[m], len(m.calls))
		k.must(m.note == 0 || m.b == nil || m.note <= len(c.events) && c.events[m.note-1].m == m, "the event of %v is another's", m.guid)
		k.calls("a client's calls", m.calls)
		k.kept("a client's calls that aren't acked", m.unacked)
		k.must(m.acked <= len(m.unacked), "%v has %d acked calls of %d", m.guid, m.acked, len(m.unacked))
		k.must(m.ch == nil || k.w.client.conn.Table().Ended() || k.w.client.conn.Table().Channel(m.ch.Index()) == m.ch, "%v has a channel that has closed", m.guid)
		newest := int64(0)
		for _, f := range m.frames {
			newest = max(newest, f)
		}
		k.must(m.newest >= newest, "%v has values of %d, newest %d", m.guid, newest, m.newest)
	}
}
