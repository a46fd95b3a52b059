package actorrep

import (
	"fmt"
	"math/bits"
	"reflect"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// mirror is a client's end of an actor. It handles the actor's channel, if there is one.
type mirror struct {
	world  *World
	guid   netguid.GUID
	ch     *channel.Channel // nil in a replay
	index  uint32           // the channel index by which records name the actor
	class  *remoteClass
	b      *Base // nil when we lack its class
	owned  bool
	asleep bool // dormant, without a channel; in a replay it keeps its place
	bad    bool
	born   int64         // server frame of its opening
	newest int64         // server frame of its newest values
	at     time.Duration // their server time, when timed is set
	timed  bool

	frames    []int64 // by the server's unit: frame of its newest value; 0 for none. nil when we lack its class
	history   *received
	note      int // number of its event for the next Step, from 1; 0 none
	calls     []*call
	unacked   []sentCall
	acked     int     // so many of these are acked, and kept
	bunches   int     // reliable bunches sent
	sent      uint64  // reliable calls sent, at this server and those before
	heard     uint64  // reliable calls of the server
	skip      uint64  // so many of them have run, in another World
	stay      uint32  // how many servers the actor has come to by Arrive; 0: these numbers began here
	moved     *mirror // where the calls go on in another World
	openedAt  time.Duration
	parent    netguid.GUID
	self      *Base  // b, kept after the actor is gone until nothing is to be told of its calls
	waiting   int    // received calls that run in the next Step
	leaving   bool   // removed once they have run
	finishing bool   // the connection closes in order
	parts     []part // bunches of an unfinished opening
	held      int    // their bytes
}

func (w *World) acceptActor(ch *channel.Channel) channel.Handler {
	if w.server {
		return nil
	}
	m := &mirror{world: w, ch: ch, index: ch.Index()}
	w.client.place(m)
	return m
}

// place stores a mirror under its channel index.
func (c *client) place(m *mirror) {
	for int(m.index) >= len(c.mirrors) {
		c.mirrors = append(c.mirrors, make([]*mirror, max(64, len(c.mirrors)))...)
	}
	if old := c.mirrors[m.index]; old != nil {
		c.forgetHistory(old) // no more records name it
	}
	c.mirrors[m.index] = m
}

func (m *mirror) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	w := m.world
	w.enter()
	defer w.exit()
	w.Counters.Received++
	if m.bad {
		return
	}
	if err := m.take(&in.Data); err != nil {
		m.bad = true
		m.dropParts()
		w.client.badBunch(fmt.Errorf("%w (on %v)", err, ch))
	}
}

func (m *mirror) open(r *bitio.Reader) error {
	w := m.world
	var o wire.Opening
	o.Read(r)
	id, parent, class, frame, again := netguid.GUID(o.GUID), netguid.GUID(o.Parent), o.Class, w.client.extend(o.Frame), o.Again
	switch {
	case r.Err() != nil:
		return fmt.Errorf("actorrep: spawn: %w", r.Err())
	case uint64(class) >= uint64(len(w.client.schema)) || !id.Valid():
		return fmt.Errorf("%w: spawn %v of class %d", errFormat, id, class)
	}
	m.openedAt = w.now
	old := w.byGUID[id]
	if old != nil && !w.client.keepOver(old.mirror) {
		old.mirror.forgetUnacked()
	}
	if again && old != nil && old.class != w.client.schema[class].local {
		return fmt.Errorf("%w: %v opens again as %s and is %s", ErrGUID, id, w.client.schema[class].name, old.class.name)
	}
	m.guid, m.parent, m.class, m.born = id, parent, w.client.schema[class], frame
	if m.class.local != nil {
		m.frames = make([]int64, len(m.class.units.Units))
	}
	switch {
	case again && old == nil, old != nil && old.mirror.born > frame:
		// A newer opening of the same actor, on another channel, has arrived before this one.
		w.Counters.Stale++
	case again: // the close that put it to sleep may still be in flight
		m.b, m.self, m.note = old, old, old.mirror.note
		old.mirror.b = nil // records of its last channel may still arrive
		old.mirror.letGo()
		old.mirror = m
		w.client.setMirror(m)
	default:
		if old != nil {
			w.client.leaveNow(old.mirror) // the close of its last channel is still in flight
		}
		if err := m.spawn(); err != nil {
			return err
		}
	}
	m.setRole(o.Owner, o.Autonomous)
	return m.values(r, frame, r.ReadBits(len(m.class.units.Units)))
}

// spawn makes the actor, if we have its class.
func (m *mirror) spawn() error {
	w, c := m.world, m.class.local
	switch {
	case c == nil:
		return nil
	case w.client.held+c.size() > maxActorBytes:
		return fmt.Errorf("%w: a %s isn't made", ErrActors, c.name)
	}
	a := reflect.New(c.typ).Interface().(Actor)
	w.add(a, c, m.guid)
	m.b, m.self = a.base(), a.base()
	m.b.mirror = m
	if m.parent != 0 {
		w.client.follow(m.b, m.parent)
	}
	w.Counters.Spawned++
	w.client.events = append(w.client.events, event{kind: eventSpawned, m: m, a: a})
	m.note = len(w.client.events)
	if n, ok := a.(Initializer); ok {
		n.Init()
	}
	if m.b == nil { // Init has destroyed its parent
		return nil
	}
	if c.tellsRefs != 0 {
		w.client.refer(m.b)
	}
	w.client.arrived(m.b)
	return nil
}

func (m *mirror) setRole(owned, autonomous bool) {
	m.owned = owned
	if m.b == nil || m.b.tornOff {
		return
	}
	m.b.role, m.b.autonomous = SimulatedProxy, autonomous
	if autonomous {
		m.b.role = AutonomousProxy
	}
}

// messages decodes the messages behind the opening.
func (m *mirror) messages(r *bitio.Reader) error {
	for r.Remaining() > 0 {
		var err error
		switch r.ReadBits(wire.KindBits) {
		case wire.Props:
			frame := m.world.client.extend(r.ReadUint32())
			err = m.values(r, frame, r.ReadBits(len(m.class.units.Units)))
		case wire.Call:
			frame := r.ReadUint32()
			err = m.receiveCall(r, frame, true)
		case wire.Role:
			m.setRole(wire.ReadRole(r))
		case wire.TornOff:
			if m.b != nil {
				m.b.tearOff()
			}
		}
		if err == nil {
			err = r.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// values sets values that were sent reliably, except those for which newer ones have arrived.
func (m *mirror) values(r *bitio.Reader, frame int64, mask layout.Mask) error {
	m.tellBefore()
	for rest := mask; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		var v [layout.MaxNumbers]uint64
		m.unit(r, i, v[:], nil, frame, true)
	}
	if r.Err() != nil {
		return fmt.Errorf("actorrep: values of %s: %w", m.class.name, r.Err())
	}
	m.world.client.seen(frame)
	m.tellValues()
	return nil
}

// tellBefore announces that the actor's values are about to be set.
func (m *mirror) tellBefore() {
	m.world.client.set, m.world.client.ours = 0, m.world.client.ours[:0]
	if m.b != nil && m.b.world == m.world {
		m.world.tellBefore(m.b)
	}
}

// tellValues announces that the actor has new values.
func (m *mirror) tellValues() {
	if m.b != nil && m.b.world == m.world {
		if set := m.world.client.set; set != 0 && m.world.observer != nil {
			m.world.observer.Set(m.world.Conn(), m.guid, set)
		}
		m.world.tellValues(m.b)
	}
}

// unit decodes one unit into v, and into the actor unless the actor's is newer. A reliable value of the same frame as
// one from a record may be the newer one.
func (m *mirror) unit(r *bitio.Reader, i int, v []uint64, past *layout.Past, frame int64, reliable bool) {
	units := m.class.units
	if m.frames == nil {
		units.ReadUnit(r, i, v, past, layout.Object{})
		return
	}
	fresh := frame > m.frames[i] || frame == m.frames[i] && reliable
	if !fresh {
		m.world.Counters.Stale++
	}
	group := units.Units[i].Kind == layout.Group
	own := units.Own(i)
	if m.b == nil || !fresh || own == nil && !group {
		units.ReadUnit(r, i, v, past, layout.Object{})
		return
	}
	m.world.client.set |= 1 << i
	if m.frames[i] = frame; frame > m.newest {
		m.newest = frame
		m.at, m.timed = m.world.client.timeOf(frame)
	}
	if group {
		m.group(r, i)
		return
	}
	m.sets(own)
	field := own.Field
	n := m.class.local.notify[field]
	remember := (n.method.IsValid() || n.fast) && !m.noted(field)
	var old reflect.Value
	if remember && n.withOld {
		old = m.copyField(field)
	}
	changed := units.ReadUnit(r, i, v, past, m.b.class.layout.Object(m.b.ptr))
	if changed && remember {
		m.noteChange(field, old)
	}
	if units.Clamped {
		units.Clamped = false
		m.clamped(own)
	}
	if units.Unread != nil {
		m.world.Counters.Unfit++
		m.world.client.untook(m.b, own.Path, fmt.Errorf("%w: %w", ErrUnread, units.Unread))
		units.Unread = nil
	}
	if own.Refers() {
		c := m.world.client
		c.refs = own.References(c.refs[:0], m.b.ptr, true)
		tells := m.b.tells(field)
		for _, id := range c.refs {
			m.checkReference(id, field, tells)
		}
	}
}

func (m *mirror) clamped(own *layout.Unit) {
	m.world.Counters.Unfit++
	m.world.client.untook(m.b, own.Path, ErrClamped)
}

// untook reports a value or call that can't be taken as the server sent it.
func (c *client) untook(b *Base, name string, err error) {
	if c.world.cfg.Failed != nil {
		c.untaken.add(c.world, b.failed(name, nil, err))
	}
}

// group sets the received parts of a group in the actor.
func (m *mirror) group(r *bitio.Reader, i int) {
	var old reflect.Value
	told := func(own *layout.Unit) bool { // it has a notify that isn't due yet
		return m.class.local.notify[own.Field].method.IsValid() && !m.noted(own.Field)
	}
	m.class.units.ReadGroup(r, i, m.b.class.layout.Object(m.b.ptr), func(own *layout.Unit) {
		m.sets(own)
		if old = (reflect.Value{}); told(own) && m.class.local.notify[own.Field].withOld {
			old = m.copyField(own.Field)
		}
	}, func(own *layout.Unit, changed, fits bool) {
		if changed && told(own) {
			m.noteChange(own.Field, old)
		}
		if !fits {
			m.clamped(own)
		}
	})
}

// sets notes a unit of ours that is set, for those who are told before.
func (m *mirror) sets(own *layout.Unit) {
	if len(m.world.before) > 0 {
		m.world.client.ours = append(m.world.client.ours, own)
	}
}

// noted reports whether a field's notify is due already.
func (m *mirror) noted(field int) bool {
	if m.note == 0 {
		return false
	}
	e := &m.world.client.events[m.note-1]
	if e.kind == eventSpawned && !m.class.local.notifySpawn {
		return true // the notify is for the whole field
	}
	for i := range e.fields {
		if e.fields[i].field == field {
			return true
		}
	}
	return false
}

// noteChange has the next Step call a field's notify. It reuses the memory of past events.
func (m *mirror) noteChange(field int, old reflect.Value) {
	c := m.world.client
	if m.note == 0 {
		if len(c.events) == cap(c.events) {
			c.events = append(c.events, event{})
		} else {
			c.events = c.events[:len(c.events)+1]
		}
		m.note = len(c.events)
		e := &c.events[m.note-1]
		*e = event{kind: eventChanged, m: m, a: m.b.self, fields: e.fields[:0]}
	}
	e := &c.events[m.note-1]
	e.fields = append(e.fields, oldField{field, old})
}

// copyField copies a field's value.
func (m *mirror) copyField(field int) reflect.Value {
	v := reflect.NewAt(m.b.class.typ, m.b.ptr).Elem().FieldByIndex(m.b.class.layout.Fields[field].Index)
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem() // unexported fields too
	if reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[layout.Pusher]()) {
		v = reflect.NewAt(v.Type().Field(0).Type, unsafe.Pointer(v.Field(0).UnsafeAddr())).Elem()
	}
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	unshare(copied)
	return copied
}

// unshare copies the slices within a value, because the memory of the originals is reused.
func unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		v.Set(own)
		if shares(v.Type().Elem()) {
			for i := range v.Len() {
				unshare(v.Index(i))
			}
		}
	case reflect.Array:
		for i := 0; i < v.Len() && shares(v.Type().Elem()); i++ {
			unshare(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); shares(f.Type()) {
				unshare(reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()) // unexported fields too
			}
		}
	}
}

// shares reports whether copies of a value of type t share the memory of slices.
func shares(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice:
		return true
	case reflect.Array:
		return shares(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if shares(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// checkReference notes a reference whose actor isn't there. It waits for it when a notify is to tell.
func (m *mirror) checkReference(id netguid.GUID, field int, tells bool) {
	if !id.Valid() || m.world.byGUID[id] != nil {
		return
	}
	m.world.Counters.Unmapped++
	if tells {
		m.world.client.wait(id, unmapped{m.guid, field})
	}
}

func (m *mirror) ReceivedAck(ch *channel.Channel, _ int64) { m.forgetAcked(ch) }

func (m *mirror) ReceivedNak(*channel.Channel, int64) {}

// Closed removes the actor, unless it is dormant or torn off. The mirror stays in the table until another takes its
// index: a close may overtake records that were sent before it, and the other actors' records behind these must be
// decoded.
func (m *mirror) Closed(_ *channel.Channel, reason channel.CloseReason) {
	c := m.world.client
	c.world.enter()
	defer c.world.exit()
	m.dropParts()
	if !c.keepOver(m) {
		m.forgetUnacked()
	}
	m.ch = nil
	switch {
	case m.b == nil || m.b.mirror != m:
		m.letGo()
	case reason == bunch.Dormancy:
		m.asleep = true
	case reason == bunch.TearOff: // also without room for the message that says so
		m.b.tearOff()
	case m.b.tornOff:
	default:
		c.leave(m)
	}
}

// letGo forgets what the actor was once it is gone and nothing is to be told of its calls: the mirror stays in the table.
func (m *mirror) letGo() {
	if m.b == nil && m.ch == nil && len(m.calls) == 0 && len(m.unacked) == 0 {
		m.self = nil
	}
}
