package actorrep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// An actor's owner may go to another server while reliable calls are under way. Both ends count the reliable calls of the actor, each
// direction for itself; the numbers go on from server to server. Depart returns how many calls of the client have run, and the calls to the
// client that it hasn't acked. Arrive at the next server sends the client a resume message and then these calls. The client leaves out
// those that it had from the former server, and sends its own calls that didn't run there.
//
//	resume     a call of procedure 256, not counted:  32 how many servers the actor has come to | 64 calls to the client before the next
//	           one | 64 calls of the client that have run
//	hole       a call of procedure 257, counted: one that doesn't go to another server
const (
	resumeCall = maxProcedures + iota
	holeCall
)

// Errors of actors that go to another server.
var (
	// ErrDeparted: the actor is being given to another server, and can't be called until Stay.
	ErrDeparted = errors.New("actorrep: the actor is being given to another server")
	// ErrShare: Depart needs Config.IDs, a share of the ids of several servers.
	ErrShare = errors.New("actorrep: Config.IDs must be this server's share of the ids of several")
)

// carry is a view's reliable calls, on a server of several.
type carry struct {
	sent      uint64     // calls to the client
	kept      []sentCall // the last of them, which the owner's client hasn't acked
	bunches   int        // reliable bunches of the channel, since there is a carry
	ran       uint64     // calls of the client that have arrived
	stay      uint32     // how many servers the actor has come to by Arrive, this one included
	departed  bool
	gone      bool   // and destroyed here: the client makes its calls at the next server
	held      []part // bunches of the client since Depart
	heldBytes int
}

// sentCall is a reliable call that was sent and isn't acked.
type sentCall struct {
	call  *call
	bunch int // number of its last bunch, from 1
}

// maxHeld bounds the bytes of a client's calls that wait for Stay, with partCost for each bunch. Above it the connection ends.
const maxHeld = 256 << 10

// counts returns the view's carry. It is nil on a server that is alone, and in a recording.
func (v *view) counts() *carry {
	if v.carry == nil && v.peer.world.cfg.IDs.Servers > 1 && !v.peer.replay {
		v.carry = &carry{}
		if v.ch != nil {
			v.carry.bunches = v.ch.NumOutRec()
		}
	}
	return v.carry
}

// noteSent counts reliable calls that were sent, and keeps those to the owner until it has acked them.
func (v *view) noteSent(calls []*call) {
	c := v.counts()
	if c == nil || len(calls) == 0 {
		return
	}
	owner := v.aud&layout.Owner != 0
	if !owner {
		v.forgetKept(len(c.kept))
	}
	for _, k := range calls {
		if k.rpc == resumeCall {
			continue
		}
		c.sent++
		if owner {
			c.kept = append(c.kept, sentCall{k.held(), c.bunches})
		}
	}
}

// noteAcked forgets the calls that the client has acked.
func (v *view) noteAcked() {
	if c := v.carry; c != nil && len(c.kept) > 0 && v.ch != nil {
		n, acked := 0, c.bunches-v.ch.NumOutRec()
		for n < len(c.kept) && c.kept[n].bunch <= acked {
			n++
		}
		v.forgetKept(n)
	}
}

// forgetKept forgets the first n of the calls that are kept.
func (v *view) forgetKept(n int) { v.carry.kept = v.peer.world.unheld.dropSent(v.carry.kept, n) }

// dropCarry forgets the carry, as the channel is over.
func (v *view) dropCarry() {
	if v.carry == nil {
		return
	}
	v.forgetKept(len(v.carry.kept))
	if v.carry.departed {
		v.carry = &carry{departed: true, gone: true}
	} else {
		v.carry = nil
	}
}

// hold keeps a client's bunch of calls for Stay.
func (c *carry) hold(r *bitio.Reader) error {
	if c.gone {
		return nil
	}
	bits := r.Remaining()
	n := (bits + 7) / 8
	if c.heldBytes += n + partCost; c.heldBytes > maxHeld {
		return fmt.Errorf("%w: calls of an actor that is being given to another server", ErrFull)
	}
	b := make([]byte, n)
	r.ReadBitsTo(b, bits)
	c.held = append(c.held, part{b, bits})
	return nil
}

// Depart appends to dst what Arrive needs at another server, so that the reliable calls under way between an actor and its owner's client
// run once. From now on the actor's reliable calls return ErrDeparted, and those of its client wait, until Stay or until the actor is destroyed.
// Calls of the procedures except don't go along: they are for the connection. ErrShare: Config.IDs isn't this
// server's share of the ids of several.
func (w *World) Depart(a Actor, dst []byte, except ...Procedure) ([]byte, error) {
	b := a.base()
	switch {
	case b.world != w || !w.server:
		return dst, ErrNotSpawned
	case w.cfg.IDs.Servers < 2:
		return dst, ErrShare
	}
	var v *view
	if p := b.Owner(); p != nil && !p.local {
		v = p.views[b]
	}
	if v == nil {
		return append(dst, 0, 0, 0, 0), nil
	}
	c := v.counts()
	c.departed = true
	var under []*call
	for _, k := range c.kept {
		under = append(under, k.call)
	}
	for _, k := range v.calls {
		if k.rpc != resumeCall {
			under = append(under, k)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(c.stay))
	dst = binary.AppendUvarint(dst, c.sent-uint64(len(c.kept)))
	dst = binary.AppendUvarint(dst, c.ran)
	dst = binary.AppendUvarint(dst, uint64(len(under)))
	for _, k := range under {
		if k.rpc == holeCall || b.class.excepts(k.rpc, except) {
			dst = append(dst, 0)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(k.name)))
		dst = append(dst, k.name...)
		dst = binary.LittleEndian.AppendUint32(dst, k.def.params.Hash())
		dst = binary.AppendUvarint(dst, uint64(k.bits))
		dst = append(dst, k.data[:(k.bits+7)/8]...)
	}
	return dst, nil
}

// excepts reports whether a procedure is one of those.
func (c *class) excepts(rpc int, those []Procedure) bool {
	for _, p := range those {
		if c.rpcs[rpc].Procedure == p {
			return true
		}
	}
	return false
}

// Stay ends what Depart began: the actor doesn't go. The calls of its client that arrived since run now.
func (w *World) Stay(a Actor) {
	b := a.base()
	if b.world != w || !w.server {
		return
	}
	for _, v := range slices.Clone(b.rep.views) { // it may have got another owner since
		if v.carry != nil && v.carry.departed {
			v.stay()
		}
	}
}

func (v *view) stay() {
	p, held := v.peer, v.carry.held
	v.carry.departed, v.carry.held, v.carry.heldBytes = false, nil, 0
	for _, h := range held { // a call may destroy the actor; those behind it are refused then
		r := bitio.NewReader(h.data, h.bits)
		if err := p.receiveCalls(v, r, v.carry); err != nil {
			p.out.fail(err)
			return
		}
	}
}

// Arrive goes on, for an actor that has come from another server, with the calls that were under way there: state is what Depart appended. The
// actor is spawned, under the id that it had there (SpawnAs), and a connection's player owns it. The client's World must have Follow.
func (w *World) Arrive(a Actor, state []byte) error {
	b := a.base()
	p := b.Owner()
	switch {
	case b.world != w || !w.server:
		return ErrNotSpawned
	case p == nil || p.local:
		return ErrNoOwner
	}
	r := stateReader{b: state}
	var lacks []string // procedures
	stays, before, ran, n := r.number(), r.number(), r.number(), r.number()
	var calls []*call
	for i := uint64(0); i < n && !r.bad; i++ {
		k, lack := r.call(b.class, w)
		calls = append(calls, k)
		if lack != "" {
			lacks = append(lacks, lack)
		}
	}
	if r.bad || len(r.b) > 0 || stays >= math.MaxUint32 {
		return fmt.Errorf("%w: not what Depart of this class has appended: %d bytes", errFormat, len(state))
	}
	v := p.views[b]
	if v == nil {
		p.want(b)
		v = p.views[b]
	}
	c := v.counts()
	switch {
	case c == nil:
		return ErrShare
	case c.departed:
		return ErrDeparted
	case p.lacking(b.class):
		return ErrNoClass
	}
	for _, name := range lacks {
		w.Counters.CallsDropped++
		w.tell(b, "", p, fmt.Errorf("%w: %q, which another server has called", ErrNoProcedure, name))
	}
	v.forgetKept(len(c.kept))
	c.sent, c.ran, c.stay = before, ran, uint32(stays)+1
	m := bitio.NewWriter(make([]byte, 20))
	m.WriteUint32(c.stay)
	m.WriteBits(before, 64)
	m.WriteBits(ran, 64)
	resume := w.unheld.take()
	resume.rpc, resume.name, resume.def, resume.frame = resumeCall, "resume", reservedCall, w.frame+1
	resume.given = true
	resume.data, resume.bits = append(resume.data, m.Bytes()...), m.Len()
	v.calls = append(append([]*call{resume}, calls...), v.calls...)
	b.force()
	v.speakUp()
	if v.state == asleep {
		v.reopen()
	}
	return nil
}

// given is how many of the calls that wait are of another server. They keep their numbers, so that no Overflow drops them.
func (v *view) given() (n int) {
	for n < len(v.calls) && v.calls[n].given {
		n++
	}
	return n
}

// reservedCall is the definition of resume and hole.
var reservedCall = &definition{kind: clientRPC, reliable: true}

// stateReader reads what Depart appended.
type stateReader struct {
	b   []byte
	bad bool
}

func (r *stateReader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *stateReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

// call reads a call, for a class of this server, which may lack its procedure.
func (r *stateReader) call(c *class, w *World) (k *call, lack string) {
	k = w.unheld.take()
	k.rpc, k.name, k.def, k.frame, k.given = holeCall, "hole", reservedCall, w.frame+1, true
	name := string(r.take(r.number()))
	if name == "" {
		return k, ""
	}
	hash := r.take(4)
	bits := r.number()
	if r.bad || bits > maxParams*8 {
		r.bad = true
		return k, ""
	}
	data := r.take((bits + 7) / 8)
	for i := range c.rpcs {
		if d := c.rpcs[i].definition(); c.rpcs[i].name == name && d.kind != serverRPC && d.params.Hash() == binary.LittleEndian.Uint32(hash) {
			k.rpc, k.name, k.def, k.data, k.bits = i, c.rpcs[i].name, d, append(k.data, data...), int(bits)
			return k, ""
		}
	}
	return k, name
}

// maxAcked and maxAckedBytes bound the acked calls that a client keeps while another World follows. Above them the oldest are forgotten: they
// are lost only if the server, which has acked them, had given the player away already. Then Config.Failed gets ErrUnacked.
const (
	maxAcked      = 256
	maxAckedBytes = 64 << 10
)

// Follow is called on a client whose player travels: from is the World of the server that the player leaves. When this World's server goes on
// with an actor by Arrive, the calls under way go on here: each runs once. Calls of such an actor in this World wait for that, for 5 s at most, and
// calls of it in the other World are made here from then on. Call it whenever the player is sent to this World's server, also when there is a connection with it still.
// Call it before the former server calls Depart: a call that arrives there between the two isn't kept, and Config.Failed gets ErrUnacked for it.
// Step from before this World in each frame. nil ends it: Config.Failed of the other World gets ErrUnacked for the calls that nobody has taken over.
func (w *World) Follow(from *World) {
	if w.server || from == w || from != nil && from.server || from == w.client.follows {
		return
	}
	if old := w.client.follows; old != nil && old.client.follower == w {
		old.client.follower = nil
		for _, m := range old.client.over {
			old.client.speaking = append(old.client.speaking, m) // the next Step drops its calls
			m.dropUnacked()
		}
		clear(old.client.over)
	}
	w.client.follows = from
	if from == nil {
		return
	}
	if other := from.client.follower; other != nil && other != w && other.client.follows == from {
		other.client.follows = nil // its player goes on here. A World has one follower, so that what a World follows comes to an end, or back to it
	}
	from.client.follower = w
	for depth := 0; from != nil && from != w; depth++ { // a World that nobody needs any more isn't kept
		if next := from.client.follows; next != nil && next != w && (depth >= maxFollowed || !next.client.awaited()) {
			from.client.follows = nil
		}
		from = from.client.follows
	}
}

// maxFollowed bounds the Worlds of a player who travels on and on before the calls have followed.
const maxFollowed = 4

// isFollowed reports whether another World goes on with the player's actors.
func (c *client) isFollowed() bool {
	f := c.follower
	return f != nil && (f.client.conn == nil || !f.client.conn.Table().Ended())
}

// awaited reports whether an actor of the player's hasn't gone on in another World.
func (c *client) awaited() bool {
	for _, m := range c.mirrors {
		if m != nil && m.counting() {
			return true
		}
	}
	for _, m := range c.over {
		if m.counting() {
			return true
		}
	}
	return false
}

// counting reports whether calls of the player's own actor may go on in another World.
func (m *mirror) counting() bool {
	return m.owned && m.moved == nil && (m.sent > 0 || m.heard > 0 || len(m.calls) > 0)
}

// own is what is known of an actor of the player's, apart from m, also when the actor or its connection is over.
func (c *client) own(m *mirror) *mirror {
	if o := c.over[m.guid]; o != nil && o.moved == nil {
		return o
	}
	if b := c.world.byGUID[m.guid]; b != nil && b.mirror != nil && b.mirror != m && b.mirror.owned && b.mirror.moved == nil {
		return b.mirror
	}
	return nil
}

// former is the actor in the Worlds that this one follows, the oldest first, from the one on where its calls were last known to go on.
func (m *mirror) former() (list []*mirror) {
	for f := m.world.client.follows; f != nil; f = f.client.follows {
		if o := f.client.own(m); o != nil {
			list = append([]*mirror{o}, list...)
			if o.stay != 0 {
				break
			}
		}
		if f == m.world {
			break // the player has come back
		}
	}
	return list
}

// resumeWithin is how long an actor's calls wait for what its server says of those at the former server.
const resumeWithin = 5 * time.Second

// awaits reports whether the actor's calls wait for that.
func (m *mirror) awaits() bool {
	w := m.world
	return m.stay == 0 && m.owned && w.client.follows != nil && w.now-m.openedAt < resumeWithin && len(m.former()) > 0
}

// resume goes on with the calls of another server: it has run so many of ours, and the next one to us has so many before it. When the actor has come to a further
// server since, it goes on there.
func (m *mirror) resume(stay uint32, before, ran uint64) {
	w := m.world
	m.heard, m.skip, m.stay = before, before, stay
	m.sent += ran
	former := m.former()
	if len(former) == 0 {
		return
	}
	m.moved = nil // it has come back
	if newest := former[len(former)-1]; newest.stay >= stay {
		m.moved = newest
		var calls []*call
		for _, k := range m.calls { // made here meanwhile
			calls = append(calls, newest.adopt(m, k)...)
		}
		w.unheld.dropFirst(m.calls, len(m.calls))
		m.calls = nil
		calls, newest.calls = append(newest.calls, calls...), nil
		newest.sendFirst(calls)
		return
	}
	var calls []*call
	first := former[0]
	m.skip = max(before, first.heard)
	kept := first.sent - uint64(len(first.unacked)) // calls before these
	for i, u := range first.unacked {
		if kept+uint64(i) >= ran {
			calls = append(calls, m.adopt(first, u.call)...)
		}
	}
	for n := ran; n < min(kept, ran+maxAcked); n++ { // forgotten above maxAcked
		w.tell(m.self, "", nil, ErrUnacked)
	}
	for _, f := range former {
		for _, k := range f.calls {
			calls = append(calls, m.adopt(f, k)...)
		}
		f.forget(len(f.unacked))
		f.world.unheld.dropFirst(f.calls, len(f.calls))
		f.calls, f.moved = nil, m
	}
	m.sendFirst(calls)
}

// sendFirst queues calls before those that wait.
func (m *mirror) sendFirst(calls []*call) {
	if m.calls = append(calls, m.calls...); len(m.calls) > 0 {
		m.world.client.speaking = append(m.world.client.speaking, m)
		m.speak()
	}
}

// adopt returns a call of the former World as one of this, none when its server lacks the procedure.
func (m *mirror) adopt(from *mirror, k *call) []*call {
	for i := range m.class.rpcs {
		if m.class.rpcs[i].name == from.class.rpcs[k.rpc].name && m.class.rpcs[i].local >= 0 {
			own := m.world.unheld.take()
			own.rpc, own.name, own.def, own.bits = i, k.name, k.def, k.bits
			own.data = append(own.data, k.data...)
			return []*call{own}
		}
	}
	m.world.Counters.CallsDropped++
	m.world.tell(m.self, k.name, nil, ErrNoProcedure)
	return nil
}

// heardCall counts a reliable call of the server, and reports whether it is a message of this file, or one that has run already.
func (m *mirror) heardCall(id int, params *bitio.Reader) (done bool, err error) {
	switch {
	case id == resumeCall:
		stay, before, ran := params.ReadUint32(), params.ReadBits(64), params.ReadBits(64)
		if params.Err() != nil || params.Remaining() > 0 || stay == 0 {
			return true, fmt.Errorf("%w: a resumption of calls", errFormat)
		}
		if m.stay == 0 && m.b != nil { // else the game has called Arrive twice, or the actor isn't here to go on with the calls
			m.resume(stay, before, ran)
		}
		return true, nil
	case m.moved != nil:
		return true, nil // it runs in the World where the player is
	}
	m.heard++
	return id == holeCall || m.heard <= m.skip, nil
}

// goneTo returns where a call is made of an actor that has gone on in another World.
func (m *mirror) goneTo(proc *procedure) (w *World, b *Base, id int, err error) {
	for m.moved != nil {
		m = m.moved
	}
	if m.b == nil || m.b.world != m.world {
		return nil, nil, 0, ErrNotThere
	}
	if id = m.b.class.rpc(proc.Procedure); id < 0 {
		return nil, nil, 0, ErrNoProcedure
	}
	return m.world, m.b, id, nil
}

// keepOver keeps what is under way of the player's own actor, whose channel is over, for the World that follows.
func (c *client) keepOver(m *mirror) bool {
	if !c.isFollowed() || !m.counting() || len(c.over) >= maxOver {
		return false
	}
	if c.over == nil {
		c.over = map[netguid.GUID]*mirror{}
	}
	c.over[m.guid] = m
	return true
}

// maxOver bounds a player's own actors of which calls are kept.
const maxOver = 64

// forget forgets the first n of the calls that are kept.
func (m *mirror) forget(n int) {
	m.unacked, m.acked = m.world.unheld.dropSent(m.unacked, n), max(0, m.acked-n)
}
