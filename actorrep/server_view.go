package actorrep

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

type viewState uint8

const (
	wanted  viewState = iota // relevant, the client knows nothing of it
	opening                  // opened; not acked yet
	open                     // the client has it
	asleep                   // dormant: the client has its last values, and there is no channel
	ended
)

// view is an actor as one connection knows it. It handles the actor's channel.
//
// Invariant: every change is in dirty or in rest, or is being sent reliably, or has arrived, or is in a record in flight
// that puts it back into dirty when its packet is lost.
type view struct {
	// What every change and ack touches is in the first cache line, since there are so many views that each line is a wait
	// for memory; what every update touches besides is in the second. A slab begins 8 bytes into a line, behind a
	// pointer of the allocator: the first line of a view is its first 56 bytes.
	peer     *Peer
	b        *Base
	dirty    layout.Mask // changed since sent, allowed or not
	allowed  layout.Mask
	last     int64  // newest record in flight, by its place in the ring; -1 none
	id       uint32 // on the wire: the channel's index
	since    uint32 // frame since which something waits to be sent
	lastBits int32  // size of its last record
	state    viewState
	flags    viewFlags
	reason   Reason // what happened to it last, for Explain
	every    uint8  // n of SetUpdateEvery; 0 is every Step

	told     layout.Mask // sent at least once
	total    uint64      // bits sent so far
	base     baseline    // the newest acked record with numbers that have a delta form, and those before it
	versions *versions   // of its fast arrays and groups; nil when it has none
	number   uint16      // number of records so far with such numbers
	acked    uint16      // number of the newest acked one

	aud      layout.Audience
	toldAud  layout.Audience // the role that the client was told
	relevant bool

	inOpening, inLeaving, inSettling, inSpeaking, inLater bool
	laterAt                                               uint8 // where in the peer's later, with inLater

	mentions *[]*call // unreliable calls to send with its values; nil until the first
	calls    []*call  // reliable calls that wait, in order
	ch       *channel.Channel
	leaveAt  time.Duration // when it is closed unless relevant again
	slot     int32         // index in the actor's views
	place    int32         // index in the peer's list

	rest layout.Mask // units that an opening in several bunches, or changes larger than a packet, haven't sent yet

	carry *carry // its reliable calls, so that they can go to another server; nil until the first
}

// versions says which versions of an actor's fast arrays and groups a connection has.
type versions struct {
	keys     [layout.MaxFast]uint32 // of the fast arrays
	later    [layout.MaxFast]uint32 // of the fast arrays: sent reliably, not acked yet
	known    []int64                // of the groups: the number of the actor's change up to which the client has each
	sent     []int64                // of the groups: sent reliably, not acked yet
	promised layout.Mask            // the arrays and groups that were sent reliably and aren't acked yet
}

func newVersions(l *layout.Layout) *versions {
	if l.Fasts|l.Groups == 0 {
		return nil
	}
	n := bits.OnesCount64(l.Groups)
	both := make([]int64, 2*n)
	return &versions{known: both[:n:n], sent: both[n:]}
}

// base is what the client has of the fast arrays and groups, for a record without a baseline of numbers.
func (s *versions) base() (base layout.Base) {
	if s != nil {
		base.Keys, base.Known = s.keys, s.known
	}
	return base
}

// arrived notes that a record has been acked.
func (s *versions) arrived(l *layout.Layout, r *record) {
	for m, i := l.Fasts, 0; m != 0; m, i = m&(m-1), i+1 {
		if r.mask&m&-m != 0 {
			s.keys[i] = r.keys[i]
		}
	}
	for m, i := l.Groups, 0; m != 0; m, i = m&(m-1), i+1 {
		if r.mask&m&-m != 0 {
			s.known[i] = max(s.known[i], r.count)
		}
	}
}

// viewFlags are the conditions of a view that every change of its actor checks, or every ack: the view's first line is enough for these.
type viewFlags uint8

const (
	pending    viewFlags = 1 << iota // in the peer's list of those
	mentioning                       // there are mentions
	unfinished                       // its opening has bunches that weren't sent
	inParts                          // and has several, which the client hasn't acked
	large                            // its opening takes several
	versioned                        // it has versions
	drowsy                           // its actor is dormant
	inTurns                          // in the peer's halves
)

// viewSlab is how many views are made at once, so that those of a connection lie together.
const viewSlab = 16

func newView(p *Peer, b *Base) *view {
	if len(p.slab) == 0 {
		p.slab = make([]view, viewSlab)
	}
	v := &p.slab[0]
	p.slab = p.slab[1:]
	*v = view{peer: p, b: b, last: -1, base: noBaseline, versions: newVersions(b.class.layout), slot: int32(len(b.rep.views)), place: int32(len(p.list))}
	b.rep.views = append(b.rep.views, v)
	p.list, p.slots = append(p.list, v), append(p.slots, int32(b.slot))
	p.views[b] = v
	if v.versions != nil {
		v.flags |= versioned
	}
	v.setDrowsy()
	if b.parent != nil {
		if pv := p.views[b.parent]; pv != nil {
			v.every = pv.every
		}
	}
	v.setAudience()
	if len(p.world.early) > 0 && !p.lacking(b.class) {
		for _, c := range p.world.early[b] {
			if c.def.reliable || p.replay {
				v.calls = append(v.calls, c.held())
				v.speakUp()
			}
		}
	}
	return v
}

// mentioned is the unreliable calls to send with the actor's values.
func (v *view) mentioned() []*call {
	if v.mentions == nil {
		return nil
	}
	return *v.mentions
}

// setAudience updates whether the connection is the actor's owner, autonomous or a recording, and thereby which units it may have.
func (v *view) setAudience() {
	var a layout.Audience
	if v.peer.replay {
		a |= layout.Replay
	}
	if v.b.Owner() == v.peer {
		a |= layout.Owner
		if v.b.autonomous {
			a |= layout.Autonomous
		}
	}
	allowed := v.mayHave(a)
	if v.allowed&^allowed != 0 && v.state != wanted {
		v.flush() // calls go with what was set before them
	}
	if v.aud&^a&(layout.Owner|layout.Autonomous) != 0 && v.state != wanted {
		again := allowed &^ v.allowed // its client has moved it since, as with package predict, also what is zero, and was never sent
		v.dirty |= again
		v.b.class.layout.Touch(v.b.rep.shadow, again, v.b.rep.count+1)
	}
	v.aud = a
	if allowed != v.allowed {
		v.allowed, v.base.older = allowed, 0
	}
	switch {
	case v.state == open:
		if v.toldAud != a {
			v.speakUp()
		}
		v.wake()
	case v.state == asleep:
		v.wake()
	}
}

// mayHave is the units that an audience may have.
func (v *view) mayHave(a layout.Audience) layout.Mask {
	if v.peer.everything {
		return v.b.class.layout.All() &^ v.b.inactive
	}
	if v.b.physics {
		a |= layout.Physics
	}
	return v.b.class.layout.Allowed(a) &^ (v.b.inactive | v.peer.outside(v.b.class.layout))
}

// changed marks units as not known to the client.
func (v *view) changed(m layout.Mask) {
	v.dirty |= m
	v.wake()
}

// tell marks units as sent.
func (v *view) tell(m layout.Mask) {
	v.dirty &^= m
	v.told |= m
	if v.peer.oversize != nil {
		v.fitted(m)
	}
}

// wake queues the view, when there is something that the client may have.
func (v *view) wake() {
	switch {
	case v.state == asleep:
		if v.wakes() {
			v.reopen()
		}
	case v.dirty&v.allowed == 0 && v.flags&mentioning == 0:
	case v.state == open && v.flags&pending == 0 && (v.flags&inTurns == 0 || v.flags&mentioning != 0):
		if v.every <= 1 || !v.park() {
			v.queue(v.peer.world.frame)
		}
	}
}

// wakes reports whether a view that is asleep has something to tell the client: values, calls, the client's role, or that the actor is awake.
func (v *view) wakes() bool {
	return v.dirty&v.allowed != 0 || len(v.calls) > 0 || v.toldAud != v.aud || !v.b.dormant
}

// reopen queues the view to have its channel opened.
func (v *view) reopen() {
	if !v.inOpening {
		v.inOpening = true
		v.since = v.peer.world.frame
		v.peer.opening = append(v.peer.opening, v)
	}
}

// unwant starts the timeout after which the view is closed.
func (v *view) unwant() {
	if !v.relevant {
		return
	}
	v.relevant = false
	for c := range v.b.components {
		if cv := v.peer.views[c]; cv != nil {
			cv.unwant()
		}
	}
	if v.state == wanted && v.flush() && v.state == wanted { // else its calls open it first
		v.detach()
		return
	}
	v.leaveAt = v.peer.world.now + min(v.peer.world.timeout(), math.MaxInt64-v.peer.world.now)
	v.peer.going.push(v)
}

// leave makes the actor disappear from the client. It reports false when there is no room for the close now.
func (v *view) leave(reason channel.CloseReason) bool {
	p := v.peer
	for c := range v.b.components { // they go with it
		if cv := p.views[c]; cv != nil && !cv.leave(reason) {
			return false
		}
	}
	if !v.flush() {
		if reason != bunch.Destroyed {
			return false
		}
		p.world.dropCalls(v.b, p, v.calls, ErrActorGone)
		v.calls = nil
	}
	switch v.state {
	case opening, open:
		busy := !p.out.drained(v)
		closed := p.out.close(v, reason)
		if !closed {
			p.world.Counters.Delayed++
			if reason != bunch.Destroyed {
				return false
			}
			p.bid(farewell{id: v.b.guid}) // told as soon as there is room
		}
		p.world.Counters.Closed++
		if closed && busy && v.ch != nil {
			if p.ending == nil {
				p.ending, p.endingID = map[netguid.GUID]*channel.Channel{}, map[*channel.Channel]netguid.GUID{}
			}
			p.ending[v.b.guid], p.endingID[v.ch] = v.ch, v.b.guid
		}
	case asleep:
		p.bid(farewell{id: v.b.guid})
	}
	v.detach()
	return true
}

// tearOff sends the last values and leaves the actor to the client.
func (v *view) tearOff() {
	p := v.peer
	whole := true
	if v.state == asleep && v.dirty&v.allowed != 0 {
		_, whole = p.open(v)
	}
	v.flush()
	closed := v.state == wanted
	if v.state == open || v.state == opening {
		whole = v.openMore(true) && (v.speak(true) || v.unacked() == 0)
		closed = p.out.close(v, bunch.TearOff)
	}
	if !closed {
		p.bid(farewell{v.b.guid, true})
	}
	if !whole {
		p.world.tell(v.b, "", p, ErrTornEarly)
	}
	p.world.dropCalls(v.b, p, v.calls, ErrActorGone)
	v.calls = nil
	v.detach()
}

// detach forgets the view on the server.
func (v *view) detach() {
	p, r := v.peer, v.b.rep
	last := r.views[len(r.views)-1]
	r.views[v.slot], last.slot = last, v.slot
	r.views[len(r.views)-1] = nil
	r.views = r.views[:len(r.views)-1]

	end := p.list[len(p.list)-1]
	p.list[v.place], end.place = end, v.place
	p.slots[v.place] = p.slots[len(p.list)-1]
	p.list[len(p.list)-1] = nil
	p.list, p.slots = p.list[:len(p.list)-1], p.slots[:len(p.list)-1]
	delete(p.views, v.b)
	delete(p.oversize, v)
	p.world.Counters.CallsDropped += uint64(len(v.calls)) // the connection has ended
	p.world.unheld.dropFirst(v.calls, len(v.calls))
	p.world.unheld.dropFirst(v.mentioned(), len(v.mentioned()))
	v.dropCarry()
	v.state, v.calls, v.mentions = ended, nil, nil
}

// opened is called when the client has acked the actor.
func (v *view) opened() {
	if v.state != opening || v.flags&unfinished != 0 || v.flags&inParts != 0 && !v.peer.out.drained(v) {
		return
	}
	v.state = open
	v.flags &^= inParts
	if v.toldAud != v.aud || len(v.calls) > 0 {
		v.speakUp()
	}
	v.wake()
	v.mayRest()
}

// setDrowsy notes whether the actor is dormant.
func (v *view) setDrowsy() {
	if v.flags &^= drowsy; v.b.dormant {
		v.flags |= drowsy
	}
}

// mayRest queues a dormant actor's view to be checked each Step until it can sleep.
func (v *view) mayRest() {
	if v.flags&drowsy != 0 && v.state == open && !v.inSettling {
		v.inSettling = true
		v.peer.settling = append(v.peer.settling, v)
	}
}

// atRest reports whether the client has everything, and the actor isn't being given to another server.
func (v *view) atRest() bool {
	if v.carry != nil && v.carry.departed {
		return false
	}
	return v.state == open && v.dirty&v.allowed == 0 && v.last == -1 && len(v.calls) == 0 && v.flags&mentioning == 0 && v.toldAud == v.aud && v.peer.out.drained(v)
}

// settle closes the channels of dormant actors once the client has all their values.
func (p *Peer) settle() {
	kept := p.settling[:0]
	for _, v := range p.settling {
		switch {
		case v.state != open || !v.b.dormant:
			v.inSettling = false
		case v.atRest() && p.out.close(v, bunch.Dormancy):
			v.inSettling = false
			v.state, v.ch = asleep, nil
			v.dropCarry()
			v.base = noBaseline
			p.world.Counters.Closed++
		default:
			kept = append(kept, v)
		}
	}
	p.peaks.settling = max(p.peaks.settling, len(p.settling))
	clear(p.settling[len(kept):])
	p.settling = kept
}

// ReceivedBunch handles what a client sends on an actor's channel: calls.
func (v *view) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	var c *carry
	switch {
	case !in.Reliable:
	case ch == v.ch:
		c = v.counts()
	case v.carry != nil && v.carry.departed:
		c = v.carry
	}
	if err := v.peer.receiveCalls(v, &in.Data, c); err != nil {
		ch.Conn().Fail(err, false)
	}
}

// ReceivedLate handles a call that the client made before it learned that the channel closes, because the actor sleeps
// or isn't relevant: the call runs. When the client has the actor's next channel already, it doesn't: the client was
// told that the call was lost, and newer calls may have run.
func (v *view) ReceivedLate(ch *channel.Channel, in *bunch.In) {
	if now := v.peer.views[v.b]; now != nil && now.ch != nil && now.ch.OpenAcked() || v.peer.closing[v.b.guid].after(ch) {
		return
	}
	v.ReceivedBunch(ch, in)
}

// closing is an actor's closing channels. There may be several: the actor may be opened and closed again before the
// first has closed.
type closing struct {
	newest *channel.Channel
	views  []*view // by channel, the oldest first; a view that has slept may have several
}

// after reports whether the client may know a newer channel than ch.
func (c closing) after(ch *channel.Channel) bool {
	return c.newest != nil && c.newest != ch && c.newest.OpenAcked() // as it is, too, once its close is acked
}

// ReceivedAck notes that the client has what was sent reliably, the actor itself first.
func (v *view) ReceivedAck(ch *channel.Channel, _ int64) {
	v.peer.learnFates()
	if v.state == opening && ch == v.ch && ch.OpenAcked() {
		v.opened()
	}
	if v.versions != nil && v.versions.promised != 0 && ch == v.ch && v.peer.out.drained(v) {
		v.keep()
	}
	if ch == v.ch {
		v.noteAcked()
	}
}

// promise notes the versions of the fast arrays and groups of m that are being sent reliably.
func (v *view) promise(m layout.Mask) {
	l, s := v.b.class.layout, v.versions
	if m &= l.Fasts | l.Groups; m == 0 {
		return
	}
	s.promised |= m
	var keys [layout.MaxFast]uint32
	l.Keys(v.b.rep.shadow, keys[:])
	for rest, i := l.Fasts, 0; rest != 0; rest, i = rest&(rest-1), i+1 {
		if m&rest&-rest != 0 {
			s.later[i] = keys[i]
		}
	}
	for rest, i := l.Groups, 0; rest != 0; rest, i = rest&(rest-1), i+1 {
		if m&rest&-rest != 0 {
			s.sent[i] = v.b.rep.count
		}
	}
}

// keep notes that those versions have arrived. From now on only newer changes are sent.
func (v *view) keep() {
	l, s := v.b.class.layout, v.versions
	if s == nil {
		return
	}
	for m, i := l.Fasts, 0; m != 0; m, i = m&(m-1), i+1 {
		if s.promised&m&-m != 0 && (s.keys[i] == 0 || int32(s.later[i]-s.keys[i]) > 0) {
			s.keys[i] = s.later[i]
		}
	}
	for m, i := l.Groups, 0; m != 0; m, i = m&(m-1), i+1 {
		if s.promised&m&-m != 0 {
			s.known[i] = max(s.known[i], s.sent[i])
		}
	}
	s.promised = 0
}

// ReceivedNak does nothing: everything on an actor's own channel is reliable.
func (*view) ReceivedNak(*channel.Channel, int64) {}

// Closed forgets the channel: its close is acked, or the connection has ended.
func (v *view) Closed(ch *channel.Channel, _ channel.CloseReason) {
	if v.ch == ch {
		v.ch = nil
		if v.state == opening || v.state == open {
			v.peer.closedBy(ch)
		}
	}
	if c := v.peer.closing[v.b.guid]; len(c.views) > 0 {
		if i := slices.Index(c.views, v); i >= 0 {
			c.views = slices.Delete(c.views, i, i+1)
		}
		if v.peer.closing[v.b.guid] = c; len(c.views) == 0 {
			delete(v.peer.closing, v.b.guid)
		}
	}
	if id, is := v.peer.endingID[ch]; is {
		delete(v.peer.ending, id)
		delete(v.peer.endingID, ch)
	}
}

var (
	_ channel.Handler  = (*view)(nil)
	_ channel.Finisher = (*view)(nil)
)
