package actorrep

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Reason is why an actor, or a field of it, was or wasn't sent to a connection.
type Reason uint8

// The reasons. Each is recorded where the decision is made.
const (
	ReasonNone       Reason = iota
	ReasonNotSpawned        // not in this world
	ReasonNoSchema          // the client hasn't answered yet which classes it has
	ReasonIrrelevant        // not relevant; Explanation.Text says why
	ReasonWaiting           // relevant; waits to be opened
	ReasonOpening           // opened; not acked yet
	ReasonSent              // the newest record was sent
	ReasonUpToDate          // the client has every value that it may have
	ReasonStarved           // no bandwidth left
	ReasonLost              // its packet was lost; it is sent again
	ReasonNoRoom            // no room for another channel or reliable bunch
	ReasonDormant           // dormant
	ReasonTornOff           // torn off
	ReasonCondition         // a field's condition doesn't allow it
	ReasonInactive          // SetCondition switched the field off
	ReasonInFlight          // sent, not acked
	ReasonPending           // changed; sent in the next Step that its update frequency and SetUpdateEvery allow
	ReasonLeaving           // no longer relevant; stays for RelevantTimeout
	ReasonUnmapped          // the field refers to an actor that the client doesn't have
	ReasonNoClass           // the client lacks the class, or has it with other fields
	ReasonUnfit             // the value doesn't fit its field or the connection's ReliableBuffer or MaxMemory: a number is sent as the nearest that does, for others clients keep the last that did
	ReasonUnmarked          // set, but nothing says so: call MarkDirty, or FlushDormancy if the actor is dormant
)

// String describes the reason in a few words.
func (r Reason) String() string {
	names := [...]string{"nothing happened", "not spawned", "the client doesn't know the classes yet", "not relevant", "waits for bandwidth to be opened",
		"opening, not acked yet", "sent", "up to date", "starved", "lost, goes again", "no room for another channel or reliable bunch", "dormant", "torn off",
		"its condition doesn't allow it", "switched off", "in flight", "changed, goes in the next Step", "leaving", "refers to an actor that the client doesn't have", "the client doesn't have the class", "a value doesn't fit its field", "set, but not marked as changed"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Explanation is the result of World.Explain.
type Explanation struct {
	Reason Reason
	// Text explains it in words, with the numbers that matter.
	Text string
	// Waiting is for how many Steps a change has waited, Bits the size of the last record, Budget the bits that the
	// connection may send now.
	Waiting, Bits, Budget int
	// Channel is the index of the actor's channel on the connection. Total is the bits sent for the actor so far, on its
	// channel and in records.
	Channel uint32
	Total   uint64
	// Dormant is how long the actor has been dormant, with ReasonDormant. Leaves is how long until it goes, with
	// ReasonLeaving.
	Dormant, Leaves time.Duration
}

// Explain says why a connection has or lacks an actor's values; with a field's name, or the path of a part of one as an ActorError names it, why it has or
// lacks that. The connection is one of a server's World.
func (w *World) Explain(p *Peer, a Actor, field ...string) Explanation {
	e := Explanation{}
	switch {
	case p == nil:
		e.Text = "no connection was given; Explain is asked on the server, with the Peer that AddConn returned"
		return e
	case p.world != w:
		e.Text = ErrOtherWorld.Error()
		return e
	case isNil(a):
		e.Text = "no actor was given"
		return e
	}
	p.learnFates()
	return w.explanation(p, a.base(), field...)
}

// explanation is Explain's, of what is known now: it changes nothing.
func (w *World) explanation(p *Peer, b *Base, field ...string) (e Explanation) {
	if p.out != nil {
		e.Budget = p.out.budget()
	}
	v := w.explainPeer(&e, p, b)
	switch {
	case v != nil && len(field) > 0:
		v.explainField(&e, field[0])
	case v != nil:
		if v.explain(&e, b.class.layout.All()); e.Text == "" {
			e.Text = e.text() + v.ownerless() + v.onlyFirst() + v.blind()
		}
	case e.Text != "":
	case e.Reason == ReasonNoClass:
		e.Text = fmt.Sprintf("%v: %q", ErrNoClass, b.class.name)
	case e.Reason == ReasonIrrelevant:
		e.Text = p.irrelevance(b)
	default:
		e.Text = e.text()
	}
	return e
}

// explainPeer says why a connection has no view of an actor, or returns the view. Where the text takes work it is left to Explain.
func (w *World) explainPeer(e *Explanation, p *Peer, b *Base) *view {
	v := p.views[b]
	switch {
	case b.world != w:
		e.Reason = ReasonNotSpawned
	case b.tornOff:
		e.Reason = ReasonTornOff
	case p.local:
		e.Reason, e.Text = ReasonUpToDate, "the player at the server has the actor itself"
	case p.removed():
		e.Reason, e.Text = ReasonIrrelevant, "the connection was removed"
	case p.ended():
		e.Reason, e.Text = ReasonIrrelevant, "the connection has ended; call World.RemoveConn"
	case !p.ready:
		e.Reason = ReasonNoSchema
		if o, ok := p.out.(*channelOutlet); ok && o.told != nil {
			e.Text = o.told.Error()
		}
	case p.lacking(b.class):
		e.Reason = ReasonNoClass
	case v == nil:
		e.Reason = ReasonIrrelevant
	default:
		return v
	}
	return nil
}

// irrelevance says why an actor isn't relevant to the connection.
func (p *Peer) irrelevance(b *Base) string {
	switch {
	case b.parent != nil:
		return "not relevant: its parent isn't there: " + p.world.explanation(p, b.parent).Text
	case p.byHand:
		return "not relevant: its connection is another server's, which doesn't mirror it"
	}
	return "not relevant: " + p.world.relevancy.ExplainRelevancy(p, b.self)
}

// conditionText names the condition of units that the connection may not have, and says what it lacks for that.
func (v *view) conditionText(m layout.Mask) string {
	u := &v.b.class.layout.Units[bits.TrailingZeros64(m)]
	name, why := u.Condition.String(), ""
	switch owner := v.b.Owner(); u.Condition {
	case layout.NetGroup:
		name, why = "group="+u.NetGroup, "the connection isn't in that group; see Peer.JoinGroup"
	case layout.OwnerOnly, layout.InitialOrOwner, layout.ReplayOrOwner, layout.AutonomousOnly:
		switch {
		case owner == nil:
			why = "the actor has no owner; see SetOwner"
		case owner != v.peer:
			why = "another connection owns the actor"
		default:
			why = "the actor isn't autonomous; see SetAutonomous"
		}
	case layout.InitialOnly:
		if why = "it is sent once, with the actor"; v.state == open && v.dirty&m != 0 {
			why += ", and has changed since"
		}
	case layout.SkipOwner:
		why = "the connection owns the actor"
	case layout.ReplayOnly:
		why = "only recordings get it"
	case layout.Never:
		why = "nobody gets it"
	default:
		why = "the connection's player moves the actor"
	}
	return fmt.Sprintf("its condition is %s: %s", name, why)
}

// blind says, for the end of a text, that a cull distance does nothing because the connection has no viewpoint, or returns "".
func (v *view) blind() string {
	w, p := v.peer.world, v.peer
	_, isList := w.relevancy.(*list)
	_, _, _, view := p.Viewpoint()
	if !isList || w.cfg.Relevant != nil || p.byHand || view || v.b.cull <= 0 || v.b.always || v.b.onlyOwner || p.replay || v.b.owner == p {
		return ""
	}
	return "; it is seen at any distance, as the connection has no viewpoint"
}

// ownerless names fields that nobody gets because the actor has no owner, for the end of a text, or returns "".
func (v *view) ownerless() string {
	if v.b.Owner() != nil {
		return ""
	}
	names := v.forbidden(v.b.class.layout.All(), layout.OwnerOnly, layout.AutonomousOnly)
	if names == "" {
		return ""
	}
	return fmt.Sprintf("; nobody gets %s, as the actor has no owner", names)
}

// forbidden names the fields with units of m that one of these conditions keeps from the connection.
func (v *view) forbidden(m layout.Mask, by ...layout.Condition) string {
	var names []string
	for _, f := range v.b.class.layout.Fields {
		if m := f.Mask & m &^ v.allowed; m != 0 && slices.Contains(by, v.b.class.layout.Units[bits.TrailingZeros64(m)].Condition) {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}

// onlyFirst names fields that have changed since the client got the actor, and whose changes nobody is sent, for the end of a text, or returns "".
func (v *view) onlyFirst() string {
	if v.state != open {
		return ""
	}
	names := v.forbidden(v.dirty, layout.InitialOnly)
	if names == "" {
		return ""
	}
	return fmt.Sprintf("; %s changed after the client got the actor, and isn't sent again, as its condition is initial", names)
}

// explain says why the client has or lacks the units of m.
func (v *view) explain(e *Explanation, m layout.Mask) {
	w, shadow, over := v.peer.world, v.b.rep.shadow, v.peer.oversize[v]
	m &= v.allowed
	e.Bits, e.Total, e.Channel = int(v.lastBits), v.total, v.id
	if v.flags&(pending|inTurns) != 0 {
		e.Waiting = int(w.frame - v.since)
	}
	switch {
	case v.state == wanted && v.peer.holds(v.b):
		e.Reason, e.Text = ReasonWaiting, "waits for Peer.Release"
	case v.state == wanted && (v.reason == ReasonNoRoom || v.peer.noRoom): // one before it found none
		if e.Reason = ReasonNoRoom; v.flags&large != 0 {
			e.Text = "its opening in several bunches waits for others that aren't acked"
		}
	case v.state == wanted:
		e.Reason = ReasonWaiting
	case v.state == opening:
		e.Reason = ReasonOpening
		if v.flags&unfinished != 0 {
			e.Text = fmt.Sprintf("opening in several bunches: %d values are to be sent", bits.OnesCount64(v.rest))
		}
	case v.unmarked(m) != 0:
		e.Reason, e.Text = ReasonUnmarked, v.b.unmarkedText(v.unmarked(m))
	case v.state == asleep && v.wakes():
		e.Reason = ReasonWaiting
	case v.state == asleep && (shadow.Unfit|over)&m == 0 && v.b.class.layout.Differs(shadow, v.b.ptr, m) == 0:
		e.Reason, e.Dormant = ReasonDormant, w.now-v.b.rep.dormantSince
	case v.flags&(pending|inTurns) != 0 && v.dirty&m != 0 && (v.reason == ReasonStarved || v.reason == ReasonLost || v.reason == ReasonNoRoom):
		if e.Reason = v.reason; e.Reason == ReasonStarved && v.flags&inTurns != 0 {
			e.Text = fmt.Sprintf("changes larger than a packet take turns with other traffic: for %d ticks %d values have waited for bandwidth", e.Waiting, bits.OnesCount64(v.dirty&m))
		}
	case v.dirty&m != 0:
		e.Reason = ReasonPending
	case v.b.class.layout.Differs(shadow, v.b.ptr, m) != 0:
		e.Reason = ReasonPending
		if r := v.b.rep; r.inSchedule && r.booked > w.now {
			e.Text = fmt.Sprintf("changed, its update frequency has it compared in %v", (r.booked - w.now).Round(time.Millisecond))
		}
	case v.peer.sent.inFlight(v)&m != 0:
		e.Reason = ReasonInFlight
	case !v.relevant:
		e.Reason, e.Leaves = ReasonLeaving, v.leaveAt-w.now
	case !v.peer.out.drained(v):
		e.Reason = ReasonInFlight
	case over&m != 0:
		e.Reason, e.Text = ReasonUnfit, v.tooLarge(over&m).Error()
	case shadow.Unfit&m != 0:
		e.Reason, e.Text = ReasonUnfit, v.b.unfit(shadow.Unfit&m).Error()
	default:
		e.Reason = ReasonUpToDate
	}
}

func (v *view) explainField(e *Explanation, field string) {
	m := v.b.class.layout.PathMask(field)
	switch {
	case m == 0:
		e.Reason, e.Text = ReasonNone, fmt.Sprintf("%s has no replicated field %q", v.b.class.name, field)
		return
	case m&v.b.inactive != 0:
		e.Reason = ReasonInactive
	case m&v.allowed == 0:
		e.Reason, e.Text = ReasonCondition, v.conditionText(m)
	default:
		v.explain(e, m)
		if id := v.unmapped(m); id != 0 && (e.Reason == ReasonUpToDate || e.Reason == ReasonDormant || e.Reason == ReasonLeaving) {
			e.Reason, e.Text = ReasonUnmapped, fmt.Sprintf("sent, but %v isn't at the client", id)
		}
	}
	if e.Text == "" {
		e.Text = e.text()
	}
	e.Text = field + ": " + e.Text
}

// unmarked is the units of m that the game has set and that no Step will compare.
func (v *view) unmarked(m layout.Mask) layout.Mask {
	b := v.b
	if b.rep.marked {
		m &^= b.rep.marks
	}
	if b.needsPolling() {
		m &= b.class.layout.Pushed
	}
	return b.class.layout.Differs(b.rep.shadow, b.ptr, m)
}

// unmarkedText says what to do about them.
func (b *Base) unmarkedText(m layout.Mask) string {
	l, do := b.class.layout, "MarkDirty"
	if b.dormant {
		do = "FlushDormancy"
	}
	return fmt.Sprintf("%s was set, and nothing says so: call %s", l.Units[bits.TrailingZeros64(m)].Path, do)
}

// unmapped returns an actor that units of m refer to and that the client doesn't have, or 0.
func (v *view) unmapped(m layout.Mask) netguid.GUID {
	l := v.b.class.layout
	for rest := m & l.Refs; rest != 0; rest &= rest - 1 {
		id := netguid.GUID(l.Number(v.b.rep.shadow, bits.TrailingZeros64(rest)))
		if !id.Valid() {
			continue
		}
		if there := v.peer.views[v.peer.world.byGUID[id]]; there == nil || there.state == wanted || there.state == opening {
			return id
		}
	}
	return 0
}

func (e *Explanation) text() string {
	switch e.Reason {
	case ReasonStarved:
		last := "no record of it was sent yet"
		if e.Bits > 0 {
			last = fmt.Sprintf("its last record took %d bits", e.Bits)
		}
		return fmt.Sprintf("starved for %d ticks: %s, the budget is %d", e.Waiting, last, e.Budget)
	case ReasonDormant:
		return fmt.Sprintf("dormant for %v", e.Dormant.Round(time.Millisecond))
	case ReasonLeaving:
		return fmt.Sprintf("not relevant any more, goes in %v", e.Leaves.Round(time.Millisecond))
	case ReasonPending, ReasonLost:
		return fmt.Sprintf("%v, for %d ticks", e.Reason, e.Waiting)
	}
	return e.Reason.String()
}

// ExplainSight says in words why Sees returns what it does.
func (p *Peer) ExplainSight(a Actor) string {
	b := a.base()
	switch {
	case p.replay || b.always || b.owner == p || p.viewTarget == a:
		return "always seen"
	case b.onlyOwner:
		return "only its owner sees it"
	}
	d, limit, ok := p.distance(a)
	if !ok {
		_, located := a.(Located)
		switch {
		case b.cull <= 0:
			return "seen at any distance"
		case !located:
			return "seen at any distance, whatever its cull distance: it has no method Location"
		}
		return "seen at any distance, whatever its cull distance: the connection has no viewpoint; call Peer.SetViewTarget or SetViewpoint"
	}
	if d > limit*limit {
		return fmt.Sprintf("out of range by %.4g: %.4g away, seen within %.4g", math.Sqrt(d)-limit, math.Sqrt(d), limit)
	}
	return fmt.Sprintf("within range: %.4g away, seen within %.4g", math.Sqrt(d), limit)
}
