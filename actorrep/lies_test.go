package actorrep

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// A server that lies speaks the protocol: its bunches are well formed, and say what no honest server would.

// canary is memory behind an actor's fields that nothing may write.
type canary [8]uint64

type smallActor struct {
	Base
	N      uint8 `net:""`
	Canary canary
}

type largeActor struct {
	Base
	Words  [20]uint64             `net:""`
	Pos    struct{ X, Y float64 } `net:"q=0.01,notify=OnPos"`
	Text   string                 `net:"notify=OnText"`
	List   []struct{ S string }   `net:"notify=OnList"`
	Bag    fastarray.List[uint16] `net:""`
	Whom   netguid.GUID           `net:"notify=OnWhom"`
	Canary canary
}

func (*largeActor) OnPos(struct{ X, Y float64 })  {}
func (*largeActor) OnText(string)                 {}
func (*largeActor) OnList([]struct{ S string })   {}
func (*largeActor) OnWhom()                       {}
func (a *largeActor) Location() (x, y, z float64) { return a.Pos.X, a.Pos.Y, 0 }

var (
	liesAsk = ServerRPC(func(Call, *largeActor, struct {
		A []string
		B uint8
	}) error {
		return nil
	}, Reliable, RateLimit(5, 5))
	liesTell = ClientRPC(func(Call, *largeActor, struct{ A string }) error { return nil }, Reliable)
	liesShow = MulticastRPC(func(Call, *smallActor, int32) error { return nil })
)

func liesWorld(t testing.TB, server bool) *World {
	w := NewClient(Config{})
	if server {
		w = NewServer(Config{})
	}
	require.NoError(t, w.Register("small", (*smallActor)(nil), RPCs{"Show": liesShow}))
	require.NoError(t, w.Register("fuzzed", (*fuzzed)(nil), RPCs{"Call": fuzzCall, "Note": fuzzNote}))
	require.NoError(t, w.Register("large", (*largeActor)(nil), RPCs{"Ask": liesAsk, "Tell": liesTell}))
	return w
}

// dice takes decisions from bytes.
type dice struct {
	b    []byte
	rare int // how seldom something is plainly wrong
}

func (d *dice) over() bool { return len(d.b) == 0 }

// n is a number below n.
func (d *dice) n(n int) int {
	if len(d.b) == 0 {
		return 0
	}
	v := int(d.b[0]) % n
	d.b = d.b[1:]
	return v
}

// mostly is right but for one time in many.
func mostly[T any](d *dice, right T, wrong ...T) T {
	if d.n(d.rare) == 15 {
		return wrong[d.n(len(wrong))]
	}
	return right
}

// liar is a server that lies. Its classes are those of the client.
type liar struct {
	d       *dice
	world   *World
	actors  []Actor // by class: where values come from
	shadows []*layout.Shadow
	frame   uint32
	packet  int64
	classes map[uint32]int // by channel
	w       *bitio.Writer
}

func newLiar(t testing.TB, d *dice) *liar {
	l := &liar{d: d, world: liesWorld(t, true), frame: 1, classes: map[uint32]int{}, actors: []Actor{&smallActor{}, &fuzzed{}, &largeActor{}}}
	for _, c := range l.world.classes {
		l.shadows = append(l.shadows, c.layout.NewShadow())
	}
	return l
}

func (l *liar) begin() { l.w = bitio.NewWriter(make([]byte, 8<<10)) }

// change gives the values of a class others.
func (l *liar) change(class int) {
	switch a := l.actors[class].(type) {
	case *smallActor:
		a.N = uint8(l.d.n(256))
	case *fuzzed:
		a.Pos.X += float64(l.d.n(256)) / 16
		a.Name = string(bytes.Repeat([]byte{'x'}, l.d.n(20)))
		a.List = make([]struct{ A, B uint16 }, l.d.n(9))
		a.Bytes = make([]byte, l.d.n(9))
		_, _ = a.Bag.Add(uint16(l.d.n(256)))
	case *largeActor:
		a.Words[l.d.n(20)] = ^uint64(0)
		a.Pos.Y -= float64(l.d.n(256))
		a.Text = string(bytes.Repeat([]byte{'y'}, l.d.n(99)))
		a.List = make([]struct{ S string }, l.d.n(9))
		a.Whom = netguid.GUID(l.d.n(16))
		_, _ = a.Bag.Add(uint16(l.d.n(256)))
	}
	c := l.world.classes[class]
	c.layout.Compare(l.shadows[class], unsafePointer(l.actors[class]), c.layout.All())
}

func unsafePointer(a Actor) unsafe.Pointer { // Base is the first field
	return unsafe.Pointer(a.base())
}

// values writes a mask and the values of a class, against a base or not.
func (l *liar) values(class int, m layout.Mask, base *layout.Base) {
	c := l.world.classes[class].layout
	for i := range c.Units {
		if m>>i&1 != 0 {
			c.WriteUnit(l.w, l.shadows[class], i, base)
		}
	}
}

func (l *liar) mask(class int) layout.Mask {
	all := l.world.classes[class].layout.All()
	return mostly(l.d, all, layout.Mask(l.d.n(256))&all, 0)
}

// open is an opening bunch on a channel.
func (l *liar) open(ch uint32) {
	class := l.d.n(3)
	l.classes[ch] = class
	l.change(class)
	l.begin()
	l.w.WriteBool(mostly(l.d, false, true))
	l.w.WriteIntPacked(mostly(l.d, uint32(2+2*l.d.n(4)), 0, 1, 3, ^uint32(0)))
	l.w.WriteIntPacked(mostly(l.d, uint32(2*l.d.n(5)), ^uint32(0)))
	l.w.WriteIntPacked(mostly(l.d, uint32(class), 0, 1, 2, 3, 1<<31, ^uint32(0)))
	l.w.WriteUint32(mostly(l.d, l.frame, 0, l.frame+1<<31, ^uint32(0)))
	l.w.WriteBits(uint64(l.d.n(8)), 3) // owner, autonomous, again
	m := l.mask(class)
	l.w.WriteBits(m, len(l.world.classes[class].layout.Units))
	l.values(class, m, nil)
}

// call writes one.
func (l *liar) call() {
	l.w.WriteIntPacked(mostly(l.d, uint32(l.d.n(2)), 2, 256, 1<<31, ^uint32(0)))
	params := bitio.NewWriter(make([]byte, 64))
	for range l.d.n(6) {
		params.WriteUint8(uint8(l.d.n(256)))
	}
	l.w.WriteIntPacked(mostly(l.d, uint32(params.Len()), 0, 7, 1<<18, 1<<31, ^uint32(0)))
	l.w.WriteBitsFrom(params.Bytes(), 0, params.Len())
}

// messages is what follows on a channel.
func (l *liar) messages(ch uint32) {
	l.begin()
	for range 1 + l.d.n(3) {
		kind := l.d.n(4)
		l.w.WriteBits(uint64(kind), msgBits)
		switch kind {
		case msgProps:
			class := mostly(l.d, l.classes[ch], 0, 1, 2)
			l.change(class)
			l.w.WriteUint32(mostly(l.d, l.frame, 0, l.frame+1<<31))
			m := l.mask(class)
			l.w.WriteBits(m, len(l.world.classes[class].layout.Units))
			l.values(class, m, nil)
		case msgCall:
			l.w.WriteUint32(l.frame)
			l.call()
		case msgRole:
			l.w.WriteBits(uint64(l.d.n(4)), 2)
		}
	}
}

// records is a chunk of them, of channels in order.
func (l *liar) records(channels int) {
	l.begin()
	l.writeChunkHead()
	gap, last, paths := newChunk.gap, map[int]*layout.Mask{}, pathList{}
	for id := uint32(1 + l.d.n(2)); id < uint32(channels); id += uint32(1 + l.d.n(3)) {
		class := mostly(l.d, l.classes[id], 0, 1, 2)
		if last[class] == nil {
			last[class] = new(layout.Mask)
		}
		l.change(class)
		plain := l.d.n(3) == 0
		writeID(l.w, mostly(l.d, 1, 0, 2, 1<<31, ^uint32(0)), &gap, plain)
		if plain {
			l.values(class, *last[class], l.base(class, *last[class], paths.last, paths.last.gap != 0))
			continue
		}
		calls := l.d.n(3)
		l.w.WriteBool(calls > 0)
		if calls > 0 {
			l.w.WriteBits(uint64(calls-1), 3)
		}
		for range calls {
			l.call()
		}
		c := l.world.classes[class].layout
		m := l.mask(class)
		writeMask(l.w, m, last[class], len(c.Units))
		t, predicted := path{}, false
		if m&c.Deltas != 0 {
			switch l.d.n(4) {
			case 0: // none
			case 1:
				t = paths.last
			default:
				t = path{uint8(mostly(l.d, 1+l.d.n(4), 0, 255)), uint8(mostly(l.d, 1+l.d.n(2), 0, 31)), l.d.n(2) == 0}
				t.full = t.full && t.gap != 0
			}
			if paths.write(l.w, t); t.gap != 0 {
				predicted = l.d.n(3) > 0
				l.w.WriteBool(predicted)
			}
		}
		base := l.base(class, m, t, predicted)
		l.values(class, m, base)
	}
}

// base makes the values of a record take the form of a path's, whatever the client has.
func (l *liar) base(class int, m layout.Mask, t path, predicted bool) *layout.Base {
	if t.age == 0 {
		return nil
	}
	past := &layout.Past{Mask: m, Age: int(t.age), Gap: int(t.gap), Full: t.full}
	for i := range past.At {
		past.At[i] = make([]uint64, 64)
		for j := range past.At[i] {
			past.At[i][j] = uint64(l.d.n(256))
		}
	}
	c := l.world.classes[class].layout
	past.Mask &= c.Deltas
	if predicted {
		past.Predicted = past.Mask
		c.Predict(l.shadows[class], past)
	}
	return &layout.Base{Past: past}
}

func (l *liar) writeChunkHead() {
	writeTime(l.w, l.frame, time.Duration(l.frame)*time.Second+mostly(l.d, 0, 1<<62, -1<<62, time.Hour), l.d.n(2) == 0)
}

// spoil takes some of a message away, adds to it or turns a bit, now and then.
func (l *liar) spoil() (data []byte, bits int) {
	data, bits = bytes.Clone(l.w.Bytes()), l.w.Len()
	switch l.d.n(l.d.rare + 8) {
	case 12:
		bits = bits * l.d.n(16) / 16
	case 13:
		if len(data) > 0 {
			data[l.d.n(len(data))] ^= 1 << l.d.n(8)
		}
	case 14:
		data = append(data, 0xff, 0xff, byte(l.d.n(256)))
		bits = len(data) * 8
	}
	return data, bits
}

const liesChannels = 8

// lieToClient plays a server's lies to a client's world.
func lieToClient(t testing.TB, b []byte) {
	l := newLiar(t, &dice{b, 16})
	client := liesWorld(t, false)
	schema, n := l.world.encodeSchema()
	h := &replicationHandler{client: client.client}
	deliver := func(reliable bool) *bunch.In {
		in := &bunch.In{}
		data, bits := l.spoil()
		in.Data.Reset(data, bits)
		in.Reliable, in.PacketID = reliable, l.packet
		return in
	}
	require.NoError(t, h.message(bitio.NewReader(schema, n)))
	mirrors := make([]*mirror, liesChannels)
	for !l.d.over() {
		l.packet++
		l.frame += uint32(l.d.n(4))
		at := 1 + l.d.n(liesChannels-1)
		m := mirrors[at]
		switch l.d.n(10) {
		case 0, 1:
			if m == nil || m.ch == nil && l.d.n(2) == 0 {
				m = &mirror{world: client, index: uint32(at)}
				client.client.place(m)
				mirrors[at] = m
				l.open(uint32(at))
				m.ReceivedBunch(nil, deliver(true))
			}
		case 2, 3:
			if m != nil {
				l.messages(uint32(at))
				m.ReceivedBunch(nil, deliver(true))
			}
		case 4, 5, 6:
			l.records(liesChannels)
			h.ReceivedBunch(nil, deliver(false))
		case 7:
			l.begin()
			if mostly(l.d, msgGone, msgSchema) == msgGone {
				l.w.WriteBits(msgGone, msgBits)
				l.w.WriteIntPacked(mostly(l.d, uint32(2+2*l.d.n(4)), 0, ^uint32(0)))
				l.w.WriteUint32(mostly(l.d, l.frame, 0, ^uint32(0)))
			} else {
				l.w.WriteBitsFrom(schema, 0, n) // once more
			}
			h.ReceivedBunch(nil, deliver(true))
		case 8:
			if m != nil {
				m.Closed(nil, []channel.CloseReason{bunch.Destroyed, bunch.Dormancy, bunch.Relevancy, bunch.TearOff}[l.d.n(4)])
			}
		case 9:
			client.Step(time.Duration(l.packet) * time.Millisecond)
		}
	}
	client.Step(time.Hour)
	sane(t, client)
}

// sane checks what holds in a client's world whatever it was told.
func sane(t testing.TB, w *World) {
	require.LessOrEqual(t, w.Len(), 16)
	for a := range w.All {
		b := a.base()
		require.Same(t, b.class, b.mirror.class.local, "an actor and its mirror are of one class")
		require.Same(t, b, w.byGUID[b.guid])
		_ = b.Owner() // no parent is its own
		switch a := a.(type) {
		case *smallActor:
			require.Zero(t, a.Canary, "memory behind the fields was written")
		case *largeActor:
			require.Zero(t, a.Canary, "memory behind the fields was written")
		}
	}
}

// FuzzLyingServer plays lies that pass the first checks.
func FuzzLyingServer(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(lies(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) { lieToClient(t, b) })
}

// lies is decisions at random.
func lies(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, 2000)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// seedsOf is how many seeds a test has: with -short a third of n.
func seedsOf(n uint64) uint64 {
	if testing.Short() {
		return (n + 2) / 3
	}
	return n
}

// TestLyingServers: whatever a server says, a client's actors keep their classes, and nothing is written outside their
// fields.
func TestLyingServers(t *testing.T) {
	for seed := range seedsOf(300) {
		lieToClient(t, lies(seed))
	}
}

// TestAgainWithAnotherClass: an actor that opens again as another class is refused, and keeps its values.
func TestAgainWithAnotherClass(t *testing.T) {
	client := liesWorld(t, false)
	var failed []error
	client.cfg.Failed = func(err error) { failed = append(failed, err) }
	l := newLiar(t, &dice{rare: 16})
	schema, n := l.world.encodeSchema()
	h := &replicationHandler{client: client.client}
	require.NoError(t, h.message(bitio.NewReader(schema, n)))
	open := func(index uint32, class int, again bool) *mirror {
		m := &mirror{world: client, index: index}
		client.client.place(m)
		l.begin()
		l.w.WriteBool(false)
		for _, v := range []uint32{2, 0, uint32(class)} {
			l.w.WriteIntPacked(v)
		}
		l.w.WriteUint32(index)
		l.w.WriteBits(0, 2)
		l.w.WriteBool(again)
		all := l.world.classes[class].layout.All()
		l.w.WriteBits(all, len(l.world.classes[class].layout.Units))
		l.values(class, all, nil)
		in := &bunch.In{}
		in.Reliable = true
		in.Data.Reset(l.w.Bytes(), l.w.Len())
		m.ReceivedBunch(nil, in)
		return m
	}
	l.actors[0].(*smallActor).N = 5
	l.change(2)
	l.world.classes[0].layout.Compare(l.shadows[0], unsafePointer(l.actors[0]), 1)
	l.actors[2].(*largeActor).Words = [20]uint64{0: ^uint64(0), 19: ^uint64(0)}
	l.change(2)
	open(1, 0, false)
	m := open(2, 2, true)
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], ErrGUID)
	require.Nil(t, m.b)
	require.EqualValues(t, 5, client.Find(2).(*smallActor).N)
	sane(t, client)
}

// TestSecondSchema: a server that describes its classes twice is refused, and what came before goes on.
func TestSecondSchema(t *testing.T) {
	client := liesWorld(t, false)
	var failed []error
	client.cfg.Failed = func(err error) { failed = append(failed, err) }
	l := newLiar(t, &dice{lies(1), 16})
	schema, n := l.world.encodeSchema()
	h := &replicationHandler{client: client.client}
	require.NoError(t, h.message(bitio.NewReader(schema, n)))
	m := &mirror{world: client, index: 1}
	client.client.place(m)
	l.begin()
	l.w.WriteBool(false)
	for _, v := range []uint32{2, 0, 2} {
		l.w.WriteIntPacked(v)
	}
	l.w.WriteUint32(1)
	l.w.WriteBits(0, 3+len(l.world.classes[2].layout.Units))
	in := &bunch.In{}
	in.Reliable = true
	in.Data.Reset(l.w.Bytes(), l.w.Len())
	m.ReceivedBunch(nil, in)
	require.Empty(t, failed)

	none := bitio.NewWriter(make([]byte, 8))
	none.WriteBits(msgSchema, msgBits)
	none.WriteIntPacked(0)
	in.Data.Reset(none.Bytes(), none.Len())
	h.ReceivedBunch(nil, in)
	require.Len(t, failed, 1, "refused")

	l.begin()
	l.writeChunkHead()
	gap := newChunk.gap
	writeID(l.w, 1, &gap, false)
	l.w.WriteBool(false)
	writeMask(l.w, 1, new(layout.Mask), len(l.world.classes[2].layout.Units))
	l.w.WriteBool(false) // of the group's twenty parts a list: one, the first
	l.w.WriteBits(1, 4)
	l.w.WriteBits(0, 5)
	l.w.WriteIntPacked64(77)
	in = &bunch.In{PacketID: 3}
	in.Data.Reset(l.w.Bytes(), l.w.Len())
	h.ReceivedBunch(nil, in)
	require.Len(t, failed, 1)
	require.EqualValues(t, 77, client.Find(2).(*largeActor).Words[0])
}

// TestEndlessOpening: a server that doesn't end an opening is refused at its bound, once, and nothing is kept of it.
func TestEndlessOpening(t *testing.T) {
	client := liesWorld(t, false)
	var failed []error
	client.cfg.Failed = func(err error) { failed = append(failed, err) }
	for _, size := range []int{0, 1, 1000, 60000} {
		failed = nil
		m := &mirror{world: client, index: 1}
		client.client.place(m)
		data := bytes.Repeat([]byte{1}, size+1) // the first bit says that more follows
		most := 0
		for range maxOpening/(size+partCost) + 100 {
			in := &bunch.In{}
			in.Reliable = true
			in.Data.Reset(data, 1+8*size)
			m.ReceivedBunch(nil, in)
			most = max(most, m.held)
		}
		require.Len(t, failed, 1)
		require.ErrorIs(t, failed[0], ErrOpening)
		require.LessOrEqual(t, most, maxOpening)
		require.Greater(t, most, maxOpening*9/10)
		require.Zero(t, m.held)
		require.Nil(t, m.parts)
	}
}

// lieToServer plays a client's lies on an actor's channel.
func lieToServer(t testing.TB, b []byte) {
	l := newLiar(t, &dice{b, 16})
	w := liesWorld(t, true)
	p := w.newPeer()
	p.out = noOutlet{}
	var views []*view
	for _, a := range []Actor{&smallActor{}, &fuzzed{}, &largeActor{}} {
		require.NoError(t, w.Spawn(a))
		a.base().SetOwner(p)
		views = append(views, newView(p, a.base()))
	}
	for !l.d.over() {
		l.begin()
		for range 1 + l.d.n(3) {
			l.w.WriteBits(uint64(mostly(l.d, msgCall, msgProps, msgRole, msgTornOff)), msgBits)
			l.call()
		}
		data, bits := l.spoil()
		_ = p.receiveCalls(views[l.d.n(3)], bitio.NewReader(data, bits))
	}
}

// FuzzLyingClient plays calls that pass the first checks.
func FuzzLyingClient(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(lies(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) { lieToServer(t, b) })
}

// TestLyingClients: whatever a client calls, the server stands.
func TestLyingClients(t *testing.T) {
	for seed := range seedsOf(100) {
		lieToServer(t, lies(seed))
	}
}

// lieInFile plays a recording whose checksums are right, and whose messages say what no recorder would.
func lieInFile(t testing.TB, b []byte) {
	l := newLiar(t, &dice{b, 200})
	schema, bits := l.world.encodeSchema()
	var file bytes.Buffer
	out := newFileWriter(&file)
	require.NoError(t, out.begin(schema, bits, 0, ""))
	var at int64
	frames, places := 0, map[uint32]bool{}
	for ; !l.d.over() && frames < 100; frames++ {
		if frames == 5 {
			_, err := out.flush()
			require.NoError(t, err)
			at = out.offset
		}
		l.frame += uint32(l.d.n(4))
		l.packet = int64(frames + 1)
		var messages []byte
		put := func(kind messageKind, id uint32, some bool) {
			if some {
				data, bits := l.spoil()
				data = data[:(bits+7)/8]
				messages = appendMessage(messages, kind, id, data, bits)
			} else {
				messages = appendMessage(messages, kind, id, nil, 0)
			}
		}
		for range 1 + l.d.n(4) {
			id := uint32(mostly(l.d, 1+l.d.n(liesChannels-1), 0, maxRecorded-1))
			kind := messageKind(l.d.n(int(messageBegin)))
			if !places[id] {
				kind = messageOpen
			}
			switch kind = mostly(l.d, kind, messageOpen, messageValues, messageCopy, messageSleeper, messageBegin, messageUpTo, messageEnd); kind {
			case messageOpen, messageCopy, messageSleeper:
				l.open(id)
				put(kind, id, true)
				places[id] = true
			case messageValues:
				l.messages(id)
				put(kind, id, true)
			case messageRecords:
				l.records(1 + len(places))
				put(kind, 0, true)
			case messageClose:
				l.begin()
				reason := uint8(l.d.n(6))
				l.w.WriteUint8(reason)
				put(kind, id, true)
				places[id] = false
			default:
				put(kind, id, false)
			}
		}
		out.add(frameHead{time: time.Duration(frames) * time.Second, world: l.frame, number: uint32(frames + 1)}, messages)
	}
	_, err := out.flush()
	require.NoError(t, err)
	if at > 0 {
		out.checkpointed(at, 6*time.Second, 8*time.Second)
	}
	end := time.Duration(frames) * time.Second
	require.NoError(t, out.end(end))

	r, err := OpenReplay(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	w := liesWorld(t, false)
	require.NoError(t, r.Play(w))
	for i := range frames {
		_ = r.Step(time.Duration(i) * time.Second)
		sane(t, w)
	}
	for _, at := range []time.Duration{end, 0, 9 * time.Second, end / 2, time.Second} {
		_ = r.Seek(at)
		sane(t, w)
	}
}

// FuzzLyingFile plays recordings that pass the first checks.
func FuzzLyingFile(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(lies(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) { lieInFile(t, b) })
}

// TestLyingFiles: whatever a recording says, actors keep their classes, and nothing is written outside their fields.
func TestLyingFiles(t *testing.T) {
	for seed := range seedsOf(200) {
		lieInFile(t, lies(seed))
	}
}

// TestFileWithHugeSchema: a length of 32 bits isn't negative where ints have 32.
func TestFileWithHugeSchema(t *testing.T) {
	var file bytes.Buffer
	out := newFileWriter(&file)
	require.NoError(t, out.begin(nil, 0, 0, ""))
	b := file.Bytes()
	body := b[fileHead+blockHead:]
	binary.LittleEndian.PutUint32(body[8:], 1<<32-1)
	sumBlock(b[fileHead:])
	_, err := OpenReplay(bytes.NewReader(b), int64(len(b)))
	require.ErrorIs(t, err, ErrReplayCorrupt)
}

// sumBlock mends the checksums of the block that b begins with.
func sumBlock(b []byte) {
	n := binary.LittleEndian.Uint32(b[8:])
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[blockHead:blockHead+n], castagnoli))
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:blockHead], castagnoli))
}
