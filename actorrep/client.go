package actorrep

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// client is the client's side of a world. Received values are set at once; the game is told in Step.
type client struct {
	world     *World
	conn      channel.Conn        // of the replication channel
	schema    []*remoteClass      // nil until the server has described its classes
	described *replicationHandler // who describes them, or has
	mirrors   []*mirror           // by channel index
	frame     int64               // server frame of the newest values, see extend; 0 for none
	chunk     uint32              // number of the current chunk, for remoteClass.lastOf
	limits    []rateLimit
	at        time.Duration // server time of the newest chunk
	atFrame   int64         // its server frame; 0 for none
	tick      time.Duration // length of a server's Step, from the last two chunks
	paths     wire.Paths    // of the current chunk
	set       layout.Mask   // units that were set by the record, or the message, that is being read
	past      layout.Past

	silent    bool // the game is told nothing
	events    []event
	told      []event
	args      [2]reflect.Value // of a notify
	pending   []pendingCall
	running   []pendingCall
	waiting   map[netguid.GUID][]unmapped // references to actors that aren't there
	waits     map[wait]bool               // the same ones; see waitAnew
	held      int                         // bytes of the actors' structs, of the numbers that records are predicted from, and of a recording's unfinished openings
	speaking  []*mirror
	warned    bool          // that ChannelTypes wasn't called, or nobody describes classes
	waited    time.Duration // how long no server has described its classes
	stepped   time.Duration // time of the last Step meanwhile
	dropped   int           // calls dropped because too many waited
	bad       flood         // bunches that can't be decoded
	untaken   flood         // values and calls that can't be taken
	refusals  flood
	leaving   []*mirror                 // actors that disappear once their calls have run
	crowded   bool                      // a reference came when maxUnmapped waited; see waitAnew
	orphaned  []*Base                   // gone, with components that look for a parent; see settleOrphans
	referring []*Base                   // with references that have notifies; see refer
	refs      []netguid.GUID            // for the references of a field
	ours      []*layout.Unit            // of those in set, when the world tells before it sets values
	missed    map[netguid.GUID]struct{} // actors that have disappeared since missReferences
	tidyAt    int                       // its length from which on those that are over are dropped first
	follows   *World                    // of the server that the player leaves
	follower  *World                    // that follows this one
	over      map[netguid.GUID]*mirror  // the player's own actors of a connection that has ended, for the World that follows
}

// event is something to tell the game in the next Step.
type event struct {
	kind   eventKind
	m      *mirror
	a      Actor
	fields []oldField
}

type eventKind uint8

const (
	eventSpawned eventKind = iota
	eventChanged
	eventDestroyed
)

// oldField is a field that has changed since the last Step, with its value before if its notify takes it.
type oldField struct {
	field int
	old   reflect.Value
}

// unmapped is a reference whose actor isn't there. It names whose it is by id, so that an actor that is gone isn't kept for it.
type unmapped struct {
	of    netguid.GUID
	field int // below 0: its parent
}

// wait is an unmapped reference and the actor that it waits for. Thousands may wait for the same one.
type wait struct {
	id netguid.GUID
	unmapped
}

// maxUnmapped bounds the references that wait for their actors. Components that wait for their parents aren't bounded: after a Step there are no more
// of them than actors.
const maxUnmapped = 4096

// ErrUsedWorld is given to a client's Config.Failed when its World, which has had a connection, gets another one: what the
// game and other packages know of the first, such as clocks, predictions and levels, doesn't go with it.
var ErrUsedWorld = errors.New("actorrep: a client's World has had another connection; make a new World for each dial")

// Errors of a server's bunches that a client can't decode. Config.Failed gets them.
var (
	ErrGUID     = errors.New("actorrep: the server named an actor that isn't there")
	ErrBaseline = errors.New("actorrep: the server built on values that never came")
	ErrActors   = fmt.Errorf("actorrep: the server's actors take more than %d MiB", maxActorBytes>>20)
)

// maxActorBytes bounds the bytes of a client's actors: an opening of ten bytes may make one of kilobytes, and a server may leave it there asleep
// and open another on its channel. What their slices and strings hold had to be sent. The numbers of an actor's last records, which later ones are
// predicted from, count too: a record of a few bytes has the client keep all numbers of the class.
const maxActorBytes = 256 << 20

// mirrorCost is about what an actor takes at a client besides its struct.
const mirrorCost = 512

func (w *World) acceptReplication(ch *channel.Channel) channel.Handler {
	if w.server {
		return nil
	}
	if had := w.client.conn; had != nil && had != ch.Conn() {
		w.report(ErrUsedWorld)
	}
	w.client.conn = ch.Conn()
	w.expectStep(ch.Conn())
	return &replicationHandler{client: w.client, ch: ch}
}

// replicationHandler is a client's end of the replication channel.
type replicationHandler struct {
	*client
	ch   *channel.Channel
	read schemaReader
}

func (h *replicationHandler) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	h.world.enter()
	defer h.world.exit()
	h.world.Counters.Received++
	if !in.Reliable {
		if err := h.records(in); err != nil {
			h.badBunch(err)
		}
		return
	}
	for in.Data.Remaining() > 0 {
		if err := h.message(&in.Data); err != nil {
			h.badBunch(err)
			return
		}
	}
}

func (h *replicationHandler) message(r *bitio.Reader) error {
	switch kind := r.ReadBits(wire.KindBits); kind {
	case wire.Schema:
		if by := h.client.described; h.client.schema != nil || by != nil && by != h {
			return fmt.Errorf("%w: the classes are described twice; the server gives a connection to one World, by one AddConn", errFormat)
		}
		h.client.described = h
		held := r.Remaining() / 8
		if h.ch != nil && h.ch.Hold(held) != nil {
			err := fmt.Errorf("%w: the descriptions of the classes have %d bytes more; raise the client's netconn.Config.MaxMemory", channel.ErrMemory, held)
			h.ch.Conn().Fail(err, true) // without them nothing can come
			return err
		}
		done, err := h.read.read(h.world, r)
		if !done {
			return err
		}
		list := h.read.list
		err = errors.Join(h.read.errs...)
		h.client.schema, h.client.frame, h.client.atFrame = list, 0, 0
		h.client.forgetMirrors() // of an earlier connection
		err = errors.Join(append([]error{err}, missing(list)...)...)
		if h.ch == nil {
			return err
		}
		w := bitio.NewWriter(make([]byte, maxRefusal+maxClasses/8+16))
		writeAnswer(w, list, refusal(errors.Join(err, lacking(list))))
		if _, sent := h.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true}); sent != nil && !errors.Is(sent, channel.ErrClosed) { // a connection that closes needs none
			return errors.Join(err, sent)
		}
		return err
	case wire.Gone, wire.Torn:
		id, frame := netguid.GUID(r.ReadIntPacked()), r.ReadUint32()
		b := h.world.byGUID[id]
		if r.Err() == nil && b != nil && b.mirror.born < h.client.extend(frame) { // else it was opened again since
			if kind == wire.Torn {
				b.tearOff()
			} else {
				h.leave(b.mirror)
			}
		}
		return r.Err()
	case wire.Refused:
		var f wire.Refusal
		f.Read(r)
		return cmp.Or(r.Err(), h.refused(f))
	}
	return fmt.Errorf("%w: an unknown message", errFormat)
}

func (*replicationHandler) ReceivedAck(*channel.Channel, int64) {}

func (*replicationHandler) ReceivedNak(*channel.Channel, int64) {}

// Closed lets another connection describe its classes.
func (h *replicationHandler) Closed(*channel.Channel, channel.CloseReason) {
	if h.client.described == h {
		h.client.schema, h.client.described = nil, nil
	}
}

// setMirror has the event that waits for the next Step, and refers to the actor's old mirror, refer to this one.
func (c *client) setMirror(m *mirror) {
	if m.note > 0 {
		c.events[m.note-1].m = m
	}
}

// maxDepth bounds how deep components of components go.
const maxDepth = 64

// tearOff makes the actor the client's own.
func (b *Base) tearOff() { b.tornOff, b.role = true, Authority }

// adopt makes the actor a component of parent, unless parent is below it or components of components would go too deep.
func (b *Base) adopt(parent *Base) {
	depth := int(b.height)
	for up := parent; up != nil; up = up.above() {
		if depth++; up == b || depth > maxDepth {
			return
		}
	}
	parent.addChild(b)
	for up, height := parent, b.height+1; up != nil && up.height < height; up = up.above() {
		up.height = height
		height++
	}
}

// follow makes the actor a component of the one with this id, as soon as that is there.
func (c *client) follow(b *Base, parent netguid.GUID) {
	if p := c.world.byGUID[parent]; p != nil {
		b.adopt(p)
	} else {
		c.wait(parent, unmapped{b.guid, -1})
	}
}

// settleOrphans gives the components of actors that disappeared since the last Step to those that appeared under the same ids since. The others wait for
// them. A server may have an actor with thousands of components disappear and appear again and again, so it is done once for all.
func (c *client) settleOrphans() {
	for i, gone := range c.orphaned {
		for child := range gone.components {
			child.parent = nil
			c.follow(child, gone.guid)
		}
		gone.children, gone.gaps = nil, 0
		c.orphaned[i] = nil
	}
	c.orphaned = c.orphaned[:0]
}

// seen updates the newest frame.
func (c *client) seen(frame int64) { c.frame = max(c.frame, frame) }

// heard notes the time of a frame.
func (c *client) heard(frame int64, at time.Duration) {
	if n := frame - c.atFrame; c.atFrame != 0 && n > 0 && at > c.at {
		c.tick = (at - c.at) / time.Duration(n)
	}
	if frame >= c.atFrame {
		c.at, c.atFrame = at, frame
	}
}

// timeOf is the time of a frame, estimated from the chunks that have arrived.
func (c *client) timeOf(frame int64) (at time.Duration, ok bool) {
	return c.at + time.Duration(frame-c.atFrame)*c.tick, c.atFrame != 0
}

// ServerTime is, on a client, the server time of the newest values received: World.Now in the server's Step that they
// are from. Its resolution is 66 µs. Pass each new one to interpolation.Timeline.Arrived. It doesn't advance while
// nothing changes. ok is false until something has arrived. On a server it is Now.
func (w *World) ServerTime() (at time.Duration, ok bool) {
	if w.server {
		return w.now, true
	}
	return w.client.at, w.client.atFrame != 0
}

// ServerTime is, on a client, the server time of the actor's newest values: World.Now in the server's Step that they are
// from. Pass it to interpolation.Buffer.Push with the values; no field is needed for it. For values from an opening, or
// too large for one packet, it is estimated from the Steps before and after; ok is false when none are known. On a
// server it is World.Now.
func (b *Base) ServerTime() (at time.Duration, ok bool) {
	switch {
	case b.world == nil:
		return 0, false
	case b.mirror == nil || b.world.server:
		return b.world.ServerTime()
	}
	return b.mirror.at, b.mirror.timed
}

// wait notes that a reference waits for its actor.
func (c *client) wait(id netguid.GUID, u unmapped) {
	if _, waits := c.waits[wait{id, u}]; waits {
		return
	}
	if len(c.waits) >= maxUnmapped {
		if c.crowded = true; u.field >= 0 {
			return // unless the Step finds room, its notify isn't called again; it can still be looked up
		}
	}
	if c.waiting == nil {
		c.waiting, c.waits = map[netguid.GUID][]unmapped{}, map[wait]bool{}
	}
	c.waiting[id] = append(c.waiting[id], u)
	c.waits[wait{id, u}] = false
}

// waitAnew drops what waits no more: references of actors that are gone or refer to others by now, and components that have a parent or another one to wait for.
// If there is room then, references that found none wait. It looks at all of them, so a Step does it once.
func (c *client) waitAnew() {
	for w := range c.waits {
		b := c.world.byGUID[w.of]
		c.waits[w] = w.field < 0 && b != nil && b.parent == nil && b.mirror.parent == w.id
	}
	for b, field := range c.fieldsThatRefer {
		for _, id := range c.references(b, field) {
			w := wait{id, unmapped{b.guid, field}}
			if _, waits := c.waits[w]; waits {
				c.waits[w] = true
			}
		}
	}
	for id, list := range c.waiting {
		list = slices.DeleteFunc(list, func(u unmapped) bool {
			w := wait{id, u}
			past := !c.waits[w]
			if past {
				delete(c.waits, w)
			}
			return past
		})
		if c.waiting[id] = list; len(list) == 0 {
			delete(c.waiting, id)
		}
	}
	for b, field := range c.fieldsThatRefer {
		if len(c.waits) >= maxUnmapped {
			break
		}
		c.waitForField(b, field)
	}
	c.crowded = false
}

// waitForField has a field's references to actors that aren't there wait for them.
func (c *client) waitForField(b *Base, field int) {
	for _, id := range c.references(b, field) {
		if id.Valid() && c.world.byGUID[id] == nil {
			c.wait(id, unmapped{b.guid, field})
		}
	}
}

// fieldsThatRefer loops over the fields of which the game is told when an actor comes to which they refer.
func (c *client) fieldsThatRefer(yield func(b *Base, field int) bool) {
	c.referring = slices.DeleteFunc(c.referring, func(b *Base) bool { return b.world != c.world })
	for _, b := range c.referring {
		for field := range b.class.layout.Fields {
			if b.tells(field) && !yield(b, field) {
				return
			}
		}
	}
}

// miss notes that an actor disappears, for missReferences.
func (c *client) miss(id netguid.GUID) {
	if len(c.referring) == 0 {
		return
	}
	if c.missed == nil {
		c.missed = map[netguid.GUID]struct{}{}
	}
	if c.missed[id] = struct{}{}; len(c.missed) >= maxUnmapped {
		c.missReferences()
	}
}

// missReferences has the references to actors that have disappeared wait for them, because they may appear again, and calls for the notifies of those to actors that
// have already. It looks at all references, so it is called once for many: in the next Step.
func (c *client) missReferences() {
	if len(c.missed) == 0 {
		return
	}
	for b, field := range c.fieldsThatRefer {
		for _, id := range c.references(b, field) {
			if _, gone := c.missed[id]; !gone {
				continue
			}
			if c.world.byGUID[id] == nil {
				c.wait(id, unmapped{b.guid, field})
				continue
			}
			b.elementsOf(id, field)
			b.mirror.noteCame(field)
		}
	}
	clear(c.missed)
}

// references is what a field refers to of which the game may be told. It is valid until the next call.
func (c *client) references(b *Base, field int) []netguid.GUID {
	c.refs = c.refs[:0]
	for rest := b.class.tellsRefs & b.class.layout.Fields[field].Mask; rest != 0; rest &= rest - 1 {
		c.refs = b.class.layout.References(c.refs, b.ptr, bits.TrailingZeros64(rest))
	}
	return c.refs
}

// tells reports whether the game is told when an actor comes to which a field refers: by its notify, or by a fast array's callback.
func (b *Base) tells(field int) bool {
	m := b.class.tellsRefs & b.class.layout.Fields[field].Mask
	return m != 0 && (b.class.notify[field].method.IsValid() || b.class.layout.Listens(b.ptr, m))
}

// came has the next Step tell that an actor has come, if a field refers to it.
func (b *Base) came(id netguid.GUID, field int) {
	if b.elementsOf(id, field) || !b.mirror.noted(field) && slices.Contains(b.world.client.references(b, field), id) {
		b.mirror.noteCame(field)
	}
}

// elementsOf has the elements of a field's fast arrays that refer to an actor told of in the next Step. It reports whether there are any.
func (b *Base) elementsOf(id netguid.GUID, field int) bool {
	return b.class.layout.Arrived(b.ptr, b.class.tellsRefs&b.class.layout.Fields[field].Mask, id)
}

// noteCame has the next Step call a field's notify since an actor has come to which it refers.
func (m *mirror) noteCame(field int) {
	if m.noted(field) {
		return
	}
	var old reflect.Value
	if m.b.class.notify[field].withOld {
		old = m.copyField(field)
	}
	m.noteChange(field, old)
}

// waitForElements has the references of fast arrays wait whose callbacks the game may have set since their elements came.
func (c *client) waitForElements(b *Base) {
	for field, n := range b.class.notify {
		if n.fast && b.tells(field) {
			c.waitForField(b, field)
		}
	}
}

// refer notes that an actor has references with notifies.
func (c *client) refer(b *Base) {
	if len(c.referring) >= c.tidyAt {
		c.referring = slices.DeleteFunc(c.referring, func(b *Base) bool { return b.world != c.world })
		c.tidyAt = 2*len(c.referring) + leastReferring
	}
	c.referring = append(c.referring, b)
}

const leastReferring = 16

// arrived calls for the notifies of references that waited for an actor.
func (c *client) arrived(b *Base) {
	list := c.waiting[b.guid]
	if list == nil {
		return
	}
	delete(c.waiting, b.guid)
	for _, u := range list {
		delete(c.waits, wait{b.guid, u})
	}
	for _, u := range list {
		of := c.world.byGUID[u.of] // it may be another one than the one that waited, under the same id
		switch {
		case of == nil:
		case u.field < 0:
			if of.parent == nil && of.mirror.parent == b.guid {
				of.adopt(b)
			}
		case u.field < len(of.class.layout.Fields):
			of.came(b.guid, u.field)
		}
	}
}

// leave removes an actor once its waiting calls have run. The next Step tells the game.
func (c *client) leave(m *mirror) {
	switch {
	case m == nil || m.waiting == 0:
		c.leaveNow(m)
	case !m.leaving:
		m.leaving = true
		c.leaving = append(c.leaving, m)
	}
}

func (c *client) leaveNow(m *mirror) {
	if m == nil || m.b == nil || m.b.world != c.world {
		return
	}
	m.leaving = false
	a := m.b.self
	c.miss(m.guid)
	if len(m.b.children) > 0 { // a parent that appears again takes them back
		c.orphaned = append(c.orphaned, m.b)
	}
	if i := m.note; i > 0 {
		e := &c.events[i-1]
		if e.kind == eventSpawned { // it appeared and disappeared between two Steps
			e.m, e.a = nil, nil
		} else {
			clear(e.fields)
			e.fields = e.fields[:0]
		}
		m.note = 0
		if e.a == nil {
			c.forgetActor(m)
			return
		}
	}
	c.forgetActor(m)
	c.world.Counters.Destroyed++
	c.events = append(c.events, event{kind: eventDestroyed, a: a})
}

// forgetActor removes a mirror's actor.
func (c *client) forgetActor(m *mirror) {
	c.world.remove(m.b)
	m.b = nil
	m.letGo()
}

// drop removes an actor and its components at once. The next Step tells the game.
func (c *client) drop(b *Base) {
	for len(b.children) > 0 {
		c.drop(b.children[len(b.children)-1])
	}
	c.leaveNow(b.mirror)
}

// leaveLate removes the actors whose calls have run.
func (c *client) leaveLate() {
	for i, m := range c.leaving {
		if m.leaving {
			c.leaveNow(m)
		}
		c.leaving[i] = nil
	}
	c.leaving = c.leaving[:0]
}

// forgetCalls drops the calls that haven't run yet.
func (c *client) forgetCalls() {
	for i := range c.pending {
		c.pending[i].m.waiting--
		c.pending[i] = pendingCall{}
	}
	c.pending = c.pending[:0]
	c.leaveLate()
}

// classesTimeout is how long a client may be without a server's classes: longer than dials take until they give up.
const classesTimeout = 30 * time.Second

// badBunch reports a bunch that can't be decoded.
func (c *client) badBunch(err error) {
	c.world.Counters.Bad++
	c.bad.add(c.world, err)
}

// expectClasses reports, once, why there is no server's description of its classes. Of the time between two Steps only mostSilence counts.
func (c *client) expectClasses() {
	w := c.world
	switch {
	case !w.typesAsked:
		c.warned = true
		w.failed(ErrNoChannelTypes)
	case c.conn == nil:
		c.waited += min(w.now-c.stepped, mostSilence)
		if c.stepped = w.now; c.waited > classesTimeout {
			c.warned = true
			w.report(ErrNoClasses)
		}
	}
}

// step tells the game what has arrived since the last Step. First come actors that appeared, changed or disappeared, in
// order of arrival, with an actor's notifies in the order of its fields. Then the calls run, in order of arrival.
func (c *client) step() {
	if c.schema == nil && !c.warned {
		c.expectClasses()
	}
	for _, f := range []*flood{&c.bad, &c.untaken, &c.refusals} {
		f.tell(c.world)
	}
	c.settleOrphans()
	c.missReferences()
	c.told, c.events = c.events, c.told[:0]
	for i := range c.told {
		if m := c.told[i].m; m != nil {
			m.note = 0
		}
	}
	for i := range c.told {
		c.tell(&c.told[i])
		c.told[i].m, c.told[i].a = nil, nil
		clear(c.told[i].fields)
	}
	c.running, c.pending = c.pending, c.running[:0]
	for i := range c.running {
		c.run(&c.running[i])
		c.running[i] = pendingCall{}
	}
	if c.dropped > 0 {
		c.world.failed(fmt.Errorf("%w: %d were dropped", ErrCallsPending, c.dropped))
		c.dropped = 0
	}
	c.leaveLate()
	for i := 0; i < len(c.events); i++ { // the game may destroy more meanwhile
		c.tell(&c.events[i])
		c.events[i].m, c.events[i].a = nil, nil
	}
	c.events = c.events[:0]
	if c.crowded {
		c.waitAnew()
	}
	c.speak()
}

func (c *client) tell(e *event) {
	w := c.world
	if c.silent {
		return
	}
	switch e.kind {
	case eventSpawned:
		if e.a == nil {
			return
		}
		if cl := w.byType[reflect.TypeOf(e.a).Elem()]; cl.layout.Fasts != 0 {
			cl.layout.Tell(e.a.base().ptr, cl.layout.Fasts, false) // first elements aren't changes
		}
		if n, ok := e.a.(interface{ Spawned() }); ok {
			n.Spawned()
		}
		if w.cfg.Spawned != nil {
			w.cfg.Spawned(e.a)
		}
		if b := e.a.base(); b.world == w && b.class.tellsRefs&b.class.layout.Fasts != 0 {
			c.waitForElements(b)
		}
		if len(e.fields) > 0 {
			c.notify(e)
		}
	case eventDestroyed:
		if n, ok := e.a.(interface{ Destroyed() }); ok {
			n.Destroyed()
		}
		if w.cfg.Destroyed != nil {
			w.cfg.Destroyed(e.a)
		}
	case eventChanged:
		c.notify(e)
	}
}

// notify calls an actor's notifies in the order of its fields.
func (c *client) notify(e *event) {
	v := reflect.ValueOf(e.a)
	cl := c.world.byType[v.Type().Elem()]
	for field, n := range cl.notify {
		for i := range e.fields {
			if e.fields[i].field != field {
				continue
			}
			if e.a.base().world != c.world { // the game has destroyed it meanwhile
				return
			}
			if n.fast {
				cl.layout.Tell(e.a.base().ptr, cl.layout.Fields[field].Mask, true)
			}
			if !n.method.IsValid() {
				continue
			}
			args := append(c.args[:0], v)
			if n.withOld {
				args = append(args, e.fields[i].old)
			}
			n.method.Call(args)
			clear(args)
		}
	}
}

var (
	_ channel.Handler  = (*mirror)(nil)
	_ channel.Finisher = (*mirror)(nil)
	_ channel.Handler  = (*replicationHandler)(nil)
)
