package actorrep

import (
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

// client is a client's side of a world: what arrives sets values at once; the game is told in Step.
type client struct {
	world   *World
	conn    channel.Conn   // that of the replication channel
	schema  []*remoteClass // nil until the server has told
	mirrors []*mirror      // by channel index
	frame   int64          // of the newest values; see extend. 0 for none
	chunk   uint32         // which one is read, for remoteClass.lastOf
	limits  []rateLimit
	at      time.Duration // of the server's Step of the newest chunk
	atFrame int64         // and its frame; 0 for none
	tick    time.Duration // a Step's length there, of the last two
	paths   wire.Paths    // of the chunk that is read
	past    layout.Past

	events    []event
	told      []event
	args      [2]reflect.Value // of a notify
	pending   []pendingCall
	running   []pendingCall
	waiting   map[netguid.GUID][]unmapped // references to actors that aren't there
	nWaiting  int
	speaking  []*mirror
	warned    bool      // that nobody asked for the channel types
	dropped   int       // calls that came when too many waited
	leaving   []*mirror // actors that go when their calls have run
	referring []*mirror // whose references have notifies
}

// event is something to tell in the next Step.
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

// oldField is a field that has changed since the last Step, and what it was then if its notify wants to know.
type oldField struct {
	field int
	old   reflect.Value
}

// unmapped is a reference whose actor hasn't come.
type unmapped struct {
	m     *mirror
	field int
}

// maxUnmapped bounds the references that wait for their actors.
const maxUnmapped = 4096

// What a client can't make of a server's bunches.
var (
	ErrGUID     = errors.New("actorrep: the server named an actor that isn't there")
	ErrBaseline = errors.New("actorrep: the server built on values that never came")
)

func (w *World) acceptReplication(ch *channel.Channel) channel.Handler {
	if w.server {
		return nil
	}
	w.client.conn = ch.Conn()
	return &replicationHandler{client: w.client, ch: ch}
}

// replicationHandler is a client's end of the replication channel.
type replicationHandler struct {
	*client
	ch   *channel.Channel
	told bool // it described the classes that the client knows
	read schemaReader
}

func (h *replicationHandler) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	h.world.Counters.Received++
	if !in.Reliable {
		if err := h.records(in); err != nil {
			h.world.failed(err)
		}
		return
	}
	for in.Data.Remaining() > 0 {
		if err := h.message(&in.Data); err != nil {
			h.world.failed(err)
			return
		}
	}
}

func (h *replicationHandler) message(r *bitio.Reader) error {
	switch kind := r.ReadBits(wire.KindBits); kind {
	case wire.Schema:
		if h.client.schema != nil {
			return fmt.Errorf("%w: the classes are described twice", errFormat)
		}
		held := r.Remaining() / 8
		if h.ch != nil && h.ch.Hold(held) != nil {
			return fmt.Errorf("%w: the classes", channel.ErrMemory)
		}
		done, err := h.read.read(h.world, r)
		if !done {
			return err
		}
		list := h.read.list
		err = errors.Join(h.read.errs...)
		h.client.schema, h.told, h.client.frame, h.client.atFrame = list, true, 0, 0
		clear(h.client.mirrors) // of a connection before
		err = errors.Join(append([]error{err}, missing(list)...)...)
		if h.ch == nil {
			return err
		}
		w := bitio.NewWriter(make([]byte, maxRefusal+maxClasses/8+16))
		writeAnswer(w, list, refusal(err))
		if _, sent := h.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true}); sent != nil && !errors.Is(sent, channel.ErrClosed) { // a connection that closes needs none
			return errors.Join(err, sent)
		}
		return err
	case wire.Gone, wire.Torn:
		id, frame := netguid.GUID(r.ReadIntPacked()), r.ReadUint32()
		b := h.world.byGUID[id]
		if r.Err() == nil && b != nil && b.mirror.born < h.client.extend(frame) { // else it has come again since
			if kind == wire.Torn {
				b.tearOff()
			} else {
				h.leave(b.mirror)
			}
		}
		return r.Err()
	}
	return fmt.Errorf("%w: an unknown message", errFormat)
}

func (*replicationHandler) ReceivedAck(*channel.Channel, int64) {}

func (*replicationHandler) ReceivedNak(*channel.Channel, int64) {}

// Closed lets another connection describe its classes.
func (h *replicationHandler) Closed(*channel.Channel, channel.CloseReason) {
	if h.told {
		h.client.schema = nil
	}
}

// setMirror has earlier notes of the actor lead here.
func (c *client) setMirror(m *mirror) {
	if m.note > 0 {
		c.events[m.note-1].m = m
	}
}

// maxDepth bounds how deep components of components go on a client.
const maxDepth = 64

// tearOff makes the actor the client's own.
func (b *Base) tearOff() { b.tornOff, b.role = true, Authority }

// adopt makes the actor a component of parent, unless parent is below it.
func (b *Base) adopt(parent *Base) {
	depth := 0
	for up := parent; up != nil; up = up.parent {
		if depth++; up == b || depth > maxDepth {
			return
		}
	}
	b.parent = parent
	parent.children = append(parent.children, b)
}

// seen notes the newest frame that the server wrote.
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

// timeOf is when a frame was, as far as chunks have told.
func (c *client) timeOf(frame int64) (at time.Duration, ok bool) {
	return c.at + time.Duration(frame-c.atFrame)*c.tick, c.atFrame != 0
}

// ServerTime is World.Now of the server in the Step from which the newest values are that came, to 66 µs: for interpolation.Timeline,
// whose Arrived wants it once for each. It stands still while nothing changes, and is false until something did. On a server it is Now.
func (w *World) ServerTime() (at time.Duration, ok bool) {
	if w.server {
		return w.now, true
	}
	return w.client.at, w.client.atFrame != 0
}

// ServerTime is World.Now of the server in the Step from which the actor's newest values are: for interpolation.Buffer, whose Push wants
// it with them, so that actors need no field for their time. What comes with an opening, or is larger than a packet, has its time by
// what Steps took around it; false is that nothing is known of these. On a server it is Now.
func (b *Base) ServerTime() (at time.Duration, ok bool) {
	switch {
	case b.world == nil:
		return 0, false
	case b.mirror == nil || b.world.server:
		return b.world.ServerTime()
	}
	return b.mirror.at, b.mirror.timed
}

// wait notes a reference to an actor that isn't there, or a component of it.
func (c *client) wait(id netguid.GUID, u unmapped) {
	if c.nWaiting >= maxUnmapped {
		c.forgetGone()
	}
	if c.nWaiting >= maxUnmapped {
		return // the reference can still be looked up; only its notify isn't called again
	}
	if slices.Contains(c.waiting[id], u) {
		return
	}
	if c.waiting == nil {
		c.waiting = map[netguid.GUID][]unmapped{}
	}
	c.waiting[id] = append(c.waiting[id], u)
	c.nWaiting++
}

// forgetGone drops what waits for an actor and is gone itself.
func (c *client) forgetGone() {
	for id, list := range c.waiting {
		n := len(list)
		list = slices.DeleteFunc(list, func(u unmapped) bool { return u.m.b == nil || u.m.b.mirror != u.m })
		c.nWaiting -= n - len(list)
		if c.waiting[id] = list; len(list) == 0 {
			delete(c.waiting, id)
		}
	}
}

// missReferences has references to an actor that goes wait for it, as it may come again.
func (c *client) missReferences(gone *mirror) {
	kept := c.referring[:0]
	for _, m := range c.referring {
		if m.b == nil || m.b.mirror != m {
			continue
		}
		kept = append(kept, m)
		for field := range m.class.local.layout.Fields {
			if m != gone && m.refersTo(gone.guid, field) {
				c.wait(gone.guid, unmapped{m, field})
			}
		}
	}
	clear(c.referring[len(kept):])
	c.referring = kept
}

// refersTo reports whether a field that has a notify refers to an actor.
func (m *mirror) refersTo(id netguid.GUID, field int) bool {
	cl := m.class.local
	for rest := cl.tellsRefs & cl.layout.Fields[field].Mask; rest != 0; rest &= rest - 1 {
		for other := range cl.layout.References(m.b.ptr, bits.TrailingZeros64(rest)) {
			if other == id {
				return true
			}
		}
	}
	return false
}

// arrived resolves what waited for an actor.
func (c *client) arrived(b *Base) {
	list := c.waiting[b.guid]
	if list == nil {
		return
	}
	delete(c.waiting, b.guid)
	c.nWaiting -= len(list)
	for _, u := range list {
		switch {
		case u.m.b == nil || u.m.b.world != c.world || u.m.b.mirror != u.m:
		case u.field < 0:
			u.m.b.adopt(b)
		case u.m.refersTo(b.guid, u.field) && !u.m.noted(u.field):
			u.m.noteChange(u.field, u.m.copyField(u.field))
		}
	}
}

// leave takes an actor away when the calls that came for it have run, and tells of it in the next Step.
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
	c.missReferences(m)
	for _, child := range m.b.children { // which a parent that comes again takes back
		child.parent = nil
		c.wait(m.guid, unmapped{child.mirror, -1})
	}
	if i := m.note; i > 0 {
		e := &c.events[i-1]
		if e.kind == eventSpawned { // it came and went between two Steps
			e.m, e.a = nil, nil
		} else {
			e.fields = e.fields[:0]
		}
		m.note = 0
		if e.a == nil {
			c.world.remove(m.b)
			m.b = nil
			return
		}
	}
	c.world.remove(m.b)
	m.b = nil
	c.world.Counters.Destroyed++
	c.events = append(c.events, event{kind: eventDestroyed, a: a})
}

// leaveLate takes away the actors whose calls have run.
func (c *client) leaveLate() {
	for i, m := range c.leaving {
		if m.leaving {
			c.leaveNow(m)
		}
		c.leaving[i] = nil
	}
	c.leaving = c.leaving[:0]
}

// forgetCalls drops the calls that came and have not run.
func (c *client) forgetCalls() {
	for i := range c.pending {
		c.pending[i].m.waiting--
		c.pending[i] = pendingCall{}
	}
	c.pending = c.pending[:0]
	c.leaveLate()
}

// step tells what came since the last Step: who appeared, changed and went, in the order of arrival, with an actor's notifies
// in the order of its fields; then the calls, in theirs.
func (c *client) step() {
	if c.schema == nil && !c.world.typesAsked && !c.warned {
		c.warned = true
		c.world.failed(ErrNoChannelTypes)
	}
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
	for i := range c.events {
		c.tell(&c.events[i])
		c.events[i].m, c.events[i].a = nil, nil
	}
	c.events = c.events[:0]
	c.speak()
}

func (c *client) tell(e *event) {
	w := c.world
	switch e.kind {
	case eventSpawned:
		if e.a == nil {
			return
		}
		if cl := w.byType[reflect.TypeOf(e.a).Elem()]; cl.layout.Fasts != 0 {
			cl.layout.Tell(e.a.base().ptr, cl.layout.Fasts, false) // what is there at first is no change
		}
		if n, ok := e.a.(Notified); ok {
			n.Spawned()
		}
		if w.cfg.Spawned != nil {
			w.cfg.Spawned(e.a)
		}
		if len(e.fields) > 0 {
			c.notify(e)
		}
	case eventDestroyed:
		if n, ok := e.a.(Notified); ok {
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
	_ channel.Handler = (*mirror)(nil)
	_ channel.Handler = (*replicationHandler)(nil)
)
