package actorrep

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// client is a client's side of a world: what arrives sets values at once; the game is told in Step.
type client struct {
	world   *World
	schema  []*remoteClass
	mirrors []*mirror // by channel index
	frame   uint32    // of the newest values
	lastOf  []layout.Mask
	limits  []rateLimit
	common  [2]uint8 // packets of the baselines that a chunk names
	guess   []uint64

	events   []event
	told     []event
	pending  []pendingCall
	running  []pendingCall
	waiting  map[netguid.GUID][]unmapped // references to actors that aren't there
	nWaiting int
	speaking []*mirror
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

type pendingCall struct {
	m      *mirror
	proc   *procedure
	frame  uint32
	params unsafe.Pointer
}

// maxPendingCalls bounds the calls that wait for a Step.
const maxPendingCalls = 4096

// mirror is a client's end of an actor. It handles the actor's channel, when there is one.
type mirror struct {
	world  *World
	guid   netguid.GUID
	ch     *channel.Channel
	class  *remoteClass
	b      *Base // nil when its class isn't ours
	owned  bool
	asleep bool
	bad    bool
	born   uint32 // the frame in which it was opened

	frames  []uint32 // by unit of the server's: of its newest value
	history *received
	note    int // its event of this Step, counted from 1
	calls   []*call
}

// received is the numbers of an actor as its last records brought them: baselines. What is older than the baselines in
// use is forgotten.
type received struct {
	entries    []receivedEntry // a power of two
	words      []uint64
	width      int
	head, tail int
}

type receivedEntry struct {
	packet int64
	mask   layout.Mask
	frame  uint32
}

// maxReceived bounds the ring. It is more than a server's ring of snapshots, as resent values are records too.
const (
	minReceived = 8
	maxReceived = 64
)

func (h *received) at(i int) (*receivedEntry, []uint64) {
	i &= len(h.entries) - 1
	return &h.entries[i], h.words[i*h.width : (i+1)*h.width]
}

// find is a record by the low bits of its packet, for values in packet now. The two before it are kept from now on, and
// those after.
func (h *received) find(low uint8, now int64) (words []uint64, e *receivedEntry) {
	for i := h.tail - 1; i >= h.head; i-- {
		if e, words := h.at(i); uint8(e.packet) == low && now-e.packet < 1<<packetBits {
			h.head = max(h.head, i-2)
			return words, e
		}
	}
	return nil, nil
}

// push makes room for a record's numbers. With maxReceived of them the oldest goes.
func (h *received) push(packet int64, mask layout.Mask, frame uint32) []uint64 {
	if h.tail-h.head == len(h.entries) {
		if len(h.entries) < maxReceived {
			h.grow()
		} else {
			h.head++
		}
	}
	e, words := h.at(h.tail)
	h.tail++
	*e = receivedEntry{packet, mask, frame}
	return words
}

func (h *received) grow() {
	n := max(minReceived, 2*len(h.entries))
	bigger := received{entries: make([]receivedEntry, n), words: make([]uint64, n*h.width), width: h.width, head: h.head, tail: h.tail}
	for i := h.head; i < h.tail; i++ {
		from, old := h.at(i)
		to, words := bigger.at(i)
		*to = *from
		copy(words, old)
	}
	*h = bigger
}

// What a client can't make of a server's bunches.
var (
	ErrGUID     = errors.New("actorrep: the server named an actor that isn't there")
	ErrBaseline = errors.New("actorrep: the server built on values that never came")
)

func (w *World) acceptActor(ch *channel.Channel) channel.Handler {
	if w.server {
		return nil
	}
	m := &mirror{world: w, ch: ch}
	c := w.client
	for int(ch.Index()) >= len(c.mirrors) {
		c.mirrors = append(c.mirrors, make([]*mirror, max(64, len(c.mirrors)))...)
	}
	c.mirrors[ch.Index()] = m
	return m
}

func (w *World) acceptReplication(ch *channel.Channel) channel.Handler {
	if w.server {
		return nil
	}
	return &replicationHandler{w.client, ch}
}

// replicationHandler is a client's end of the replication channel.
type replicationHandler struct {
	*client
	ch *channel.Channel
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
	switch r.ReadBits(msgBits) {
	case msgSchema:
		list, err := h.world.readSchema(r)
		if list == nil {
			return err
		}
		h.client.schema, h.client.lastOf = list, make([]layout.Mask, len(list))
		if err == nil {
			return nil
		}
		w := bitio.NewWriter(make([]byte, maxRefusal+16))
		writeRefusal(w, err.Error())
		_, _ = h.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true}) // the server does without, too
		return err
	case msgGone:
		id, frame := netguid.GUID(r.ReadIntPacked()), r.ReadUint32()
		b := h.world.byGUID[id]
		if r.Err() == nil && b != nil && int32(b.mirror.born-frame) < 0 { // else it has come again since
			h.leave(b.mirror)
		}
		return r.Err()
	}
	return fmt.Errorf("%w: an unknown message", errFormat)
}

func (*replicationHandler) ReceivedAck(*channel.Channel, int64)          {}
func (*replicationHandler) ReceivedNak(*channel.Channel, int64)          {}
func (*replicationHandler) Closed(*channel.Channel, channel.CloseReason) {}

func (m *mirror) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	w := m.world
	w.Counters.Received++
	if m.bad {
		return
	}
	var err error
	if m.class == nil {
		err = m.open(&in.Data)
	} else {
		err = m.messages(&in.Data)
	}
	if err != nil {
		m.bad = true
		w.failed(fmt.Errorf("%w (on %v)", err, ch))
	}
}

func (m *mirror) open(r *bitio.Reader) error {
	w := m.world
	id, parent, class, frame := netguid.GUID(r.ReadIntPacked()), netguid.GUID(r.ReadIntPacked()), int(r.ReadIntPacked()), r.ReadUint32()
	owned, autonomous := readAudience(r)
	again := r.ReadBool()
	switch {
	case r.Err() != nil:
		return fmt.Errorf("actorrep: spawn: %w", r.Err())
	case class < 0 || class >= len(w.client.schema) || !id.Valid():
		return fmt.Errorf("%w: spawn %v of class %d", errFormat, id, class)
	}
	m.guid, m.class, m.born = id, w.client.schema[class], frame
	m.frames = make([]uint32, len(m.class.units.Units))
	old := w.byGUID[id]
	switch {
	case again && old == nil, old != nil && int32(old.mirror.born-frame) > 0:
		// A newer opening of the same actor, on another channel, has come before this one.
		w.Counters.Stale++
	case again: // the news that it sleeps may still be on its way
		m.b, m.note = old, old.mirror.note
		m.b.mirror = m
		w.client.setMirror(m)
	default:
		if old != nil {
			w.client.leave(old.mirror) // the close of its last channel is still on its way
		}
		m.spawn(id, parent)
	}
	m.setRole(owned, autonomous)
	return m.values(r, frame, r.ReadBits(len(m.class.units.Units)), again)
}

// setMirror has earlier notes of the actor lead here.
func (c *client) setMirror(m *mirror) {
	if m.note > 0 {
		c.events[m.note-1].m = m
	}
}

// spawn makes our actor, if we have its class.
func (m *mirror) spawn(id, parent netguid.GUID) {
	w, c := m.world, m.class.local
	if c == nil {
		return
	}
	a := reflect.New(c.typ).Interface().(Actor)
	w.add(a, c, id)
	m.b = a.base()
	m.b.mirror = m
	if p := w.byGUID[parent]; p != nil {
		m.b.parent = p
		p.children = append(p.children, m.b)
	} else if parent != 0 {
		w.client.wait(parent, unmapped{m, -1})
	}
	if n, ok := a.(Initializer); ok {
		n.Init()
	}
	w.Counters.Spawned++
	w.client.events = append(w.client.events, event{kind: eventSpawned, m: m, a: a})
	m.note = len(w.client.events)
	w.client.arrived(m.b)
}

func (m *mirror) setRole(owned, autonomous bool) {
	m.owned = owned
	if m.b == nil {
		return
	}
	m.b.role, m.b.autonomous = SimulatedProxy, autonomous
	if autonomous {
		m.b.role = AutonomousProxy
	}
}

// messages reads what follows the opening bunch.
func (m *mirror) messages(r *bitio.Reader) error {
	for r.Remaining() > 0 {
		var err error
		switch r.ReadBits(msgBits) {
		case msgProps:
			frame := r.ReadUint32()
			err = m.values(r, frame, r.ReadBits(len(m.class.units.Units)), true)
		case msgCall:
			frame := r.ReadUint32()
			err = m.receiveCall(r, frame)
		case msgRole:
			m.setRole(readAudience(r))
		case msgTornOff:
			if m.b != nil {
				m.b.tornOff, m.b.role = true, Authority
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

// values sets values that came reliably, unless newer ones are there.
func (m *mirror) values(r *bitio.Reader, frame uint32, mask layout.Mask, notify bool) error {
	for rest := mask; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		var v [layout.MaxNumbers]uint64
		m.unit(r, i, v[:], nil, frame, notify)
	}
	if r.Err() != nil {
		return fmt.Errorf("actorrep: values of %s: %w", m.class.name, r.Err())
	}
	m.world.client.seen(frame)
	return nil
}

func (c *client) seen(frame uint32) {
	if int32(frame-c.frame) > 0 {
		c.frame = frame
	}
}

// unit reads one unit into v, and into the actor unless newer is there.
func (m *mirror) unit(r *bitio.Reader, i int, v, base []uint64, frame uint32, notify bool) {
	fresh := int32(frame-m.frames[i]) >= 0 || m.frames[i] == 0
	if !fresh {
		m.world.Counters.Stale++
	}
	if m.b == nil || !fresh || m.class.local == nil {
		m.class.units.ReadUnit(r, i, v, base, nil)
		return
	}
	local := m.class.units.Units[i].Local
	if local < 0 {
		m.class.units.ReadUnit(r, i, v, base, nil)
		return
	}
	m.frames[i] = frame
	field := m.class.local.layout.Units[local].Field
	n := m.class.local.notify[field]
	remember := notify && (n.method >= 0 || n.fast) && !m.noted(field)
	var old reflect.Value
	if remember && n.withOld {
		old = m.copyField(field)
	}
	changed := m.class.units.ReadUnit(r, i, v, base, m.b.ptr)
	if changed && remember {
		m.noteChange(field, old)
	}
	if m.class.units.Refs>>i&1 != 0 {
		m.checkReference(netguid.GUID(v[0]), field)
	}
}

// noted reports whether a field's notify is due already.
func (m *mirror) noted(field int) bool {
	if m.note == 0 {
		return false
	}
	e := &m.world.client.events[m.note-1]
	if e.kind == eventSpawned {
		return true // it is told of as a whole
	}
	for i := range e.fields {
		if e.fields[i].field == field {
			return true
		}
	}
	return false
}

func (m *mirror) noteChange(field int, old reflect.Value) {
	c := m.world.client
	if m.note == 0 {
		c.events = append(c.events, event{kind: eventChanged, m: m, a: m.b.self})
		m.note = len(c.events)
		e := &c.events[m.note-1]
		e.fields = e.fields[:0]
	}
	e := &c.events[m.note-1]
	e.fields = append(e.fields, oldField{field, old})
}

// copyField is a copy of a field's value.
func (m *mirror) copyField(field int) reflect.Value {
	v := reflect.NewAt(m.b.class.typ, m.b.ptr).Elem().FieldByIndex(m.b.class.layout.Fields[field].Index)
	if reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[layout.Pusher]()) {
		v = reflect.NewAt(v.Type().Field(0).Type, unsafe.Pointer(v.Field(0).UnsafeAddr())).Elem()
	}
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	if v.Kind() == reflect.Slice { // its memory may be used again
		copied.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
	}
	return copied
}

// checkReference remembers a reference to an actor that isn't there.
func (m *mirror) checkReference(id netguid.GUID, field int) {
	if id.Valid() && m.world.byGUID[id] == nil {
		m.world.Counters.Unmapped++
		m.world.client.wait(id, unmapped{m, field})
	}
}

func (c *client) wait(id netguid.GUID, u unmapped) {
	if c.nWaiting >= maxUnmapped {
		return // the reference can still be looked up; only its notify isn't called again
	}
	if c.waiting == nil {
		c.waiting = map[netguid.GUID][]unmapped{}
	}
	c.waiting[id] = append(c.waiting[id], u)
	c.nWaiting++
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
			u.m.b.parent = b
			b.children = append(b.children, u.m.b)
		case u.m.class.local.notify[u.field].method >= 0 && !u.m.noted(u.field):
			u.m.noteChange(u.field, u.m.copyField(u.field))
		}
	}
}

// records reads a chunk of changed values.
func (c *client) records(in *bunch.In) error {
	r := &in.Data
	frame := c.frame + uint32(int16(uint16(r.ReadBits(frameBits))-uint16(c.frame)))
	c.common = [2]uint8{uint8(r.ReadBits(packetBits)), uint8(r.ReadBits(packetBits))}
	clear(c.lastOf)
	id, gap := uint32(0), newChunk.gap
	for r.Remaining() > 0 {
		id += readID(r, &gap)
		if int(id) >= len(c.mirrors) || c.mirrors[id] == nil || c.mirrors[id].class == nil {
			return fmt.Errorf("%w: channel %d", ErrGUID, id)
		}
		if err := c.mirrors[id].record(r, in.PacketID, frame, c); err != nil {
			return err
		}
	}
	if r.Err() != nil {
		return fmt.Errorf("actorrep: records: %w", r.Err())
	}
	c.seen(frame)
	return nil
}

// record reads one.
func (m *mirror) record(r *bitio.Reader, packet int64, frame uint32, c *client) error {
	if r.ReadBool() {
		for n := int(r.ReadBits(3)) + 1; n > 0; n-- {
			if err := m.receiveCall(r, frame); err != nil {
				return err
			}
		}
	}
	units := m.class.units
	mask := readMask(r, &c.lastOf[m.class.id], len(units.Units))
	var base, words []uint64
	known := layout.Mask(0)
	if mask&units.Deltas != 0 {
		var err error
		if base, known, err = m.baseline(r, mask, packet, frame, c); err != nil {
			return err
		}
		words = m.remember(packet, mask, frame)
	}
	for rest := mask; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		var v [layout.MaxNumbers]uint64
		var from []uint64
		if known>>i&1 != 0 {
			from = base[units.First(i):]
		}
		m.unit(r, i, v[:], from, frame, true)
		if words != nil {
			copy(words[units.First(i):], v[:units.Units[i].N])
		}
	}
	if r.Err() != nil {
		return fmt.Errorf("actorrep: record of %s: %w", m.class.name, r.Err())
	}
	return nil
}

// remember makes room for the numbers of a record. A baseline that is about to be overwritten is the oldest.
func (m *mirror) remember(packet int64, mask layout.Mask, frame uint32) []uint64 {
	if m.history == nil {
		m.history = &received{width: m.class.units.Words()}
	}
	return m.history.push(packet, mask, frame)
}

// baseline reads which earlier record the values build on, and finds its numbers.
func (m *mirror) baseline(r *bitio.Reader, mask layout.Mask, packet int64, frame uint32, c *client) (base []uint64, known layout.Mask, err error) {
	low, has := readBaseline(r, c.common[0])
	if !has {
		return nil, 0, nil
	}
	if m.history == nil {
		return nil, 0, fmt.Errorf("%w: %s", ErrBaseline, m.class.name)
	}
	base, e := m.history.find(low, packet)
	if base == nil || e.mask&mask&m.class.units.Deltas == 0 {
		return nil, 0, fmt.Errorf("%w: %s", ErrBaseline, m.class.name)
	}
	known = e.mask & mask & m.class.units.Deltas
	if !r.ReadBool() {
		return base, known, nil
	}
	older, o := m.history.find(c.common[1], packet)
	if older == nil {
		return nil, 0, fmt.Errorf("%w: %s", ErrBaseline, m.class.name)
	}
	num, den := frame-e.frame, e.frame-o.frame
	if den < 1 || den > layout.MaxExtrapolation || num > layout.MaxExtrapolation {
		return nil, 0, fmt.Errorf("%w: %s", ErrBaseline, m.class.name)
	}
	if len(c.guess) < len(base) {
		c.guess = make([]uint64, len(base))
	}
	guess := c.guess[:len(base)]
	copy(guess, base)
	m.class.units.Extrapolate(guess, known&o.mask, base, older, int64(num), int64(den))
	return guess, known, nil
}

func readBaseline(r *bitio.Reader, common uint8) (low uint8, has bool) {
	switch {
	case r.ReadBool():
		return common, true
	case !r.ReadBool():
		return 0, false
	case !r.ReadBool():
		return common + 1, true
	}
	return uint8(r.ReadBits(packetBits)), true
}

// receiveCall keeps a call for Step.
func (m *mirror) receiveCall(r *bitio.Reader, frame uint32) error {
	id, params, err := readCall(r)
	if err != nil {
		return err
	}
	w := m.world
	w.Counters.CallsReceived++
	if id >= len(m.class.rpcs) {
		return fmt.Errorf("%w: %s has no procedure %d", errFormat, m.class.name, id)
	}
	local := m.class.rpcs[id].local
	if m.b == nil || local < 0 || len(w.client.pending) >= maxPendingCalls {
		w.Counters.CallsDropped++
		return nil
	}
	proc := &m.class.local.rpcs[local]
	if proc.definition().kind == serverRPC {
		return fmt.Errorf("%w: %s.%s is for servers", errFormat, m.class.name, proc.name)
	}
	value := proc.decode(&params)
	if params.Err() != nil || params.Remaining() > 0 {
		return fmt.Errorf("%w: parameters of %s.%s", errFormat, m.class.name, proc.name)
	}
	w.client.pending = append(w.client.pending, pendingCall{m, proc, frame, value})
	return nil
}

func (m *mirror) ReceivedAck(*channel.Channel, int64) {}
func (m *mirror) ReceivedNak(*channel.Channel, int64) {}

// Closed takes the actor away, unless it sleeps or was left to us.
func (m *mirror) Closed(_ *channel.Channel, reason channel.CloseReason) {
	c := m.world.client
	if i := int(m.ch.Index()); c.mirrors[i] == m {
		c.mirrors[i] = nil
	}
	m.ch, m.history = nil, nil
	switch {
	case m.b == nil || m.b.mirror != m:
	case reason == bunch.Dormancy:
		m.asleep = true
	case m.b.tornOff:
	default:
		c.leave(m)
	}
}

// leave takes an actor away, and tells of it in the next Step.
func (c *client) leave(m *mirror) {
	if m == nil || m.b == nil || m.b.world != c.world {
		return
	}
	a := m.b.self
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
	for _, child := range m.b.children {
		child.parent = nil
	}
	c.world.remove(m.b)
	m.b = nil
	c.world.Counters.Destroyed++
	c.events = append(c.events, event{kind: eventDestroyed, a: a})
}

// step tells what came since the last Step: who appeared, changed and went, in the order of arrival and by actor the
// notifies in order of declaration; then the calls, in theirs.
func (c *client) step() {
	c.told, c.events = c.events, c.told[:0]
	for i := range c.told {
		if m := c.told[i].m; m != nil {
			m.note = 0
		}
	}
	for i := range c.told {
		c.tell(&c.told[i])
		c.told[i].m, c.told[i].a = nil, nil
	}
	c.running, c.pending = c.pending, c.running[:0]
	for i := range c.running {
		c.run(&c.running[i])
		c.running[i] = pendingCall{}
	}
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
			if n.method < 0 {
				continue
			}
			var args []reflect.Value
			if n.withOld {
				args = []reflect.Value{e.fields[i].old}
			}
			v.Method(n.method).Call(args)
		}
	}
}

func (c *client) run(p *pendingCall) {
	if p.m.b == nil {
		c.world.Counters.CallsDropped++
		return
	}
	if err := p.proc.run(Call{World: c.world, Frame: p.frame}, p.m.b.self, p.params); err != nil {
		c.world.Counters.CallErrors++
		if c.world.cfg.Failed != nil {
			c.world.cfg.Failed(fmt.Errorf("%s.%s: %w", p.m.class.name, p.proc.name, err))
		}
	}
}

// call sends a server procedure.
func (c *client) call(b *Base, proc Procedure, id int, params unsafe.Pointer) error {
	m, d := b.mirror, proc.definition()
	remote := -1
	for i := range m.class.rpcs {
		if m.class.rpcs[i].local == id {
			remote = i
		}
	}
	switch {
	case !m.owned:
		return ErrNotOwner
	case remote < 0:
		return ErrNoProcedure
	case m.ch == nil:
		return ErrNotThere
	case !take(&c.limits, d, b.class.id, id, c.world.now):
		return ErrRateLimited
	case !proc.check(Call{World: c.world, Frame: c.frame}, b.self, params):
		return ErrInvalid
	}
	k, err := encodeCall(d, remote, 0, params, c.world.scratch)
	if err != nil {
		return err
	}
	if !d.reliable {
		if !m.ch.Conn().IsNetReady() {
			return ErrSaturated
		}
		return m.send(k)
	}
	return m.queue(k)
}

func (m *mirror) send(k *call) error {
	var w bitio.Writer
	w.Reset(m.world.scratch)
	w.WriteBits(msgCall, msgBits)
	k.write(&w)
	if w.Err() != nil {
		return fmt.Errorf("%w: %w", ErrTooLarge, w.Err())
	}
	_, err := m.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: k.def.reliable})
	if err == nil {
		m.world.Counters.CallsSent++
	}
	return err
}

// queue sends a reliable call, or does what its overflow policy says.
func (m *mirror) queue(k *call) error {
	if len(m.calls) == 0 && m.ch.Room() > 0 {
		err := m.send(k)
		if err == nil || !errors.Is(err, channel.ErrReliableFull) {
			return err
		}
	}
	switch k.def.overflow {
	case Refuse:
		return ErrFull
	case CloseConn:
		m.ch.Conn().Fail(fmt.Errorf("%w: %s", ErrFull, m.class.name), true)
		return ErrFull
	case Coalesce:
		for i, o := range m.calls {
			if o.rpc == k.rpc {
				m.calls[i] = k
				m.world.Counters.CallsDropped++
				return nil
			}
		}
	}
	if len(m.calls) >= MaxWaitingCalls {
		if k.def.overflow != DropOldest {
			return ErrFull
		}
		m.calls = append(m.calls[:0], m.calls[1:]...)
		m.world.Counters.CallsDropped++
	}
	if len(m.calls) == 0 {
		m.world.client.speaking = append(m.world.client.speaking, m)
	}
	m.calls = append(m.calls, k)
	return nil
}

// speak sends calls that waited for room.
func (c *client) speak() {
	kept := c.speaking[:0]
	for _, m := range c.speaking {
		for len(m.calls) > 0 && m.ch != nil && m.ch.Room() > 0 && m.send(m.calls[0]) == nil {
			m.calls = append(m.calls[:0], m.calls[1:]...)
		}
		if m.ch == nil {
			c.world.Counters.CallsDropped += uint64(len(m.calls))
			m.calls = nil
		}
		if len(m.calls) > 0 {
			kept = append(kept, m)
		}
	}
	clear(c.speaking[len(kept):])
	c.speaking = kept
}

var _ channel.Handler = (*mirror)(nil)
var _ channel.Handler = (*replicationHandler)(nil)
