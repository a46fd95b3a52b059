package actorrep

import (
	"bytes"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/hostile"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

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

// richActor has a field of each form of values.
type richActor struct {
	Base
	Whom   Ref[*smallActor]             `net:"notify=OnWhom"`
	Many   []Ref[*smallActor]           `net:"cap=5,notify=OnMany"`
	Map    fastarray.Map[uint8, string] `net:"notify=OnMap"`
	Turn   [4]float64                   `net:"quat=12"`
	Angles [3]float32                   `net:"rot=12"`
	Place  struct{ X, Y, Z float32 }    `net:"q=0.1"`
	When   time.Time                    `net:""`
	From   netip.AddrPort               `net:""`
	Worth  big.Int                      `net:"cap=20"`
	Item   *struct {
		Name string
		Of   []Ref[*richActor]
	} `net:"notify=OnItem"`
	ID      [16]byte    `net:""`
	Level   uint16      `net:"max=1000"`
	Secret  uint32      `net:"owner"`
	Team    uint32      `net:"group=red"`
	Numbers [80]int32   `net:""`
	Pushed  Var[string] `net:"cap=9"`
	Canary  canary
}

func (*richActor) OnWhom(Ref[*smallActor])   {}
func (*richActor) OnMany([]Ref[*smallActor]) {}
func (*richActor) OnMap()                    {}
func (*richActor) OnItem(*struct {
	Name string
	Of   []Ref[*richActor]
}) {
}

var (
	richAsk = ServerRPC(func(c Call, a *richActor, p struct {
		Whom Ref[*smallActor]
		Text []string `net:"cap=3"`
		At   time.Time
	}) error {
		_ = p.Whom.In(c.World)
		return nil
	}, Reliable, AnyClient, RateLimit(3, 3), Borrowed)
	richTell = MulticastRPC0(func(Call, *richActor) error { return nil }, Reliable, OnOverflow(Coalesce))
)

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
	require.NoError(t, w.Register("rich", (*richActor)(nil), RPCs{"Ask": richAsk, "Tell": richTell}, NotifyAtSpawn()))
	return w
}

// liesClasses is the classes of liesWorld as a liar has them.
func liesClasses() []hostile.Class {
	n := func(d *hostile.Dice) any { return int32(d.N(256)) }
	small, some, large, rich := &smallActor{}, &fuzzed{}, &largeActor{}, &richActor{}
	ref := func(d *hostile.Dice) Ref[*smallActor] { return Ref[*smallActor]{netguid.GUID(d.N(16))} }
	return []hostile.Class{
		{Actor: small, Procedures: []func(*hostile.Dice) any{n}, Change: func(d *hostile.Dice) { small.N = uint8(d.N(256)) }},
		{Actor: some, Procedures: []func(*hostile.Dice) any{func(d *hostile.Dice) any {
			return struct {
				A []uint8
				B string
			}{make([]uint8, d.N(5)), "call"}
		}, n}, Change: func(d *hostile.Dice) {
			some.Pos.X += float64(d.N(256)) / 16
			some.Name = strings.Repeat("x", d.N(20))
			some.List = make([]struct{ A, B uint16 }, d.N(9))
			some.Bytes = make([]byte, d.N(9))
			_, _ = some.Bag.Add(uint16(d.N(256)))
		}},
		{Actor: large, Procedures: []func(*hostile.Dice) any{func(d *hostile.Dice) any {
			return struct {
				A []string
				B uint8
			}{make([]string, d.N(5)), 1}
		}, func(*hostile.Dice) any { return struct{ A string }{"tell"} }}, Change: func(d *hostile.Dice) {
			large.Words[d.N(20)] = ^uint64(0)
			large.Pos.Y -= float64(d.N(256))
			large.Text = strings.Repeat("y", d.N(99))
			large.List = make([]struct{ S string }, d.N(9))
			large.Whom = netguid.GUID(d.N(16))
			_, _ = large.Bag.Add(uint16(d.N(256)))
		}},
		{Actor: rich, Procedures: []func(*hostile.Dice) any{func(d *hostile.Dice) any {
			return struct {
				Whom Ref[*smallActor]
				Text []string `net:"cap=3"`
				At   time.Time
			}{ref(d), make([]string, d.N(4)), time.Unix(int64(d.N(99)), 0)}
		}, func(*hostile.Dice) any { return struct{}{} }}, Change: func(d *hostile.Dice) {
			rich.Whom, rich.Many = ref(d), []Ref[*smallActor]{ref(d), ref(d)}[:d.N(3)]
			if d.N(3) == 0 {
				_ = rich.Map.Delete(uint8(d.N(8)))
			} else {
				_ = rich.Map.Set(uint8(d.N(8)), "map"[:d.N(4)])
			}
			a := float64(d.N(64)) / 10
			rich.Turn, rich.Angles[d.N(3)] = [4]float64{0, math.Sin(a), 0, math.Cos(a)}, float32(a)
			rich.Place.X += float32(a)
			rich.When, rich.From = time.Unix(int64(d.N(256)), 0), netip.AddrPortFrom(netip.AddrFrom4([4]byte{1, 2, 3, byte(d.N(9))}), 7)
			rich.Worth.SetInt64(int64(d.N(256)) << 40)
			if rich.Item = nil; d.N(2) == 0 {
				rich.Item = &struct {
					Name string
					Of   []Ref[*richActor]
				}{"item", []Ref[*richActor]{{netguid.GUID(d.N(16))}}}
			}
			rich.ID[d.N(16)]++
			rich.Level, rich.Secret, rich.Team = uint16(d.N(256))*3, uint32(d.N(9)), uint32(d.N(9))
			rich.Numbers[d.N(80)]--
			rich.Pushed.Set("pushed"[:d.N(7)])
		}},
	}
}

func newLiar(t testing.TB, d *hostile.Dice) *hostile.Server {
	l, err := hostile.NewServer(d, liesClasses()...)
	require.NoError(t, err)
	return l
}

// liesSchema is the description of a liar's classes.
func liesSchema(t testing.TB) (data []byte, bits int) { return liesWorld(t, true).encodeSchema() }

// bunchOf is a bunch with these bits.
func bunchOf(data []byte, bits int, reliable bool) *bunch.In {
	in := &bunch.In{}
	in.Data.Reset(data, bits)
	in.Reliable = reliable
	return in
}

const liesChannels = 8

// lieToClient plays a server's lies to a client's world.
func lieToClient(t testing.TB, b []byte) *World {
	d := hostile.NewDice(b, 16)
	l := newLiar(t, d)
	client := liesWorld(t, false)
	schema, n := liesSchema(t)
	h := &replicationHandler{client: client.client}
	require.NoError(t, h.message(bitio.NewReader(schema, n)))
	mirrors, packet := make([]*mirror, liesChannels), int64(0)
	deliver := func(handler channel.Handler, reliable bool, data []byte, bits int) {
		in := bunchOf(data, bits, reliable)
		in.PacketID = packet
		handler.ReceivedBunch(nil, in)
	}
	for !d.Over() {
		packet++
		l.Frame += uint32(d.N(4))
		at := uint32(1 + d.N(liesChannels-1))
		m := mirrors[at]
		switch d.N(11) {
		case 0, 1:
			if m == nil || m.ch == nil && d.N(2) == 0 {
				m = &mirror{world: client, index: at}
				client.client.place(m)
				mirrors[at] = m
				data, bits := l.Opening(at)
				deliver(m, true, data, bits)
			}
		case 2, 3:
			if m != nil {
				data, bits := l.Messages(at)
				deliver(m, true, data, bits)
			}
		case 4, 5, 6:
			var known []uint32
			for i, m := range mirrors[1:] {
				if m != nil || d.N(64) == 15 {
					known = append(known, uint32(i+1))
				}
			}
			data, bits := l.Records(known)
			deliver(h, false, data, bits)
		case 7:
			data, bits := l.Gone()
			if d.N(8) == 0 {
				data, bits = schema, n // once more
			}
			deliver(h, true, data, bits)
		case 8:
			if m != nil {
				m.Closed(nil, []channel.CloseReason{bunch.Destroyed, bunch.Dormancy, bunch.Relevancy, bunch.TearOff}[d.N(4)])
			}
		case 9:
			data, bits := l.Refused()
			deliver(h, true, data, bits)
		case 10:
			client.Step(time.Duration(packet) * time.Millisecond)
		}
	}
	client.Step(time.Hour)
	sane(t, client)
	return client
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
		case *richActor:
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
func lies(seed uint64) []byte { return hostile.Bytes(seed, 2000) }

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

// honest is a server's end of a client, without a connection: it writes one message at a time.
type honest struct {
	world  *World
	client *World
	h      *replicationHandler
	failed []error
}

func newHonest(t *testing.T) *honest {
	o := &honest{world: liesWorld(t, true), client: liesWorld(t, false)}
	o.client.cfg.Failed = func(err error) { o.failed = append(o.failed, err) }
	o.h = &replicationHandler{client: o.client.client}
	schema, n := o.world.encodeSchema()
	require.NoError(t, o.h.message(bitio.NewReader(schema, n)))
	return o
}

// open opens an actor with all its values.
func (o *honest) open(channel uint32, class int, again bool, a Actor) *mirror {
	return o.openAs(wire.Opening{GUID: 2, Class: uint32(class), Frame: channel, Again: again}, channel, a)
}

// openAs opens the actor that head says.
func (o *honest) openAs(head wire.Opening, channel uint32, a Actor) *mirror {
	m := &mirror{world: o.client, index: channel}
	o.client.client.place(m)
	w := bitio.NewWriter(make([]byte, 8<<10))
	w.WriteBool(false)
	head.Write(w)
	l := o.world.classes[head.Class].layout
	shadow := l.NewShadow()
	l.Compare(shadow, unsafe.Pointer(a.base()), l.All()) // Base is the first field
	w.WriteBits(l.All(), len(l.Units))
	for i := range l.Units {
		l.WriteUnit(w, shadow, i, nil)
	}
	m.ReceivedBunch(nil, bunchOf(w.Bytes(), w.Len(), true))
	return m
}

// TestAgainWithAnotherClass: an actor that opens again as another class is refused, and keeps its values.
func TestAgainWithAnotherClass(t *testing.T) {
	o := newHonest(t)
	o.open(1, 0, false, &smallActor{N: 5})
	m := o.open(2, 2, true, &largeActor{Words: [20]uint64{0: ^uint64(0), 19: ^uint64(0)}})
	require.Len(t, o.failed, 1)
	require.ErrorIs(t, o.failed[0], ErrGUID)
	require.Nil(t, m.b)
	require.EqualValues(t, 5, o.client.Find(2).(*smallActor).N)
	sane(t, o.client)
}

// TestMessagesCutShort: a message behind an opening that ends early is refused, whatever kind it is of.
func TestMessagesCutShort(t *testing.T) {
	for kind := range uint64(1 << wire.KindBits) {
		o := newHonest(t)
		m := o.open(1, 0, false, &smallActor{N: 5})
		w := bitio.NewWriter(make([]byte, 8))
		w.WriteBits(kind, wire.KindBits)
		m.ReceivedBunch(nil, bunchOf(w.Bytes(), w.Len(), true))
		want := uint64(1)
		if kind == wire.TornOff { // says it all
			want = 0
		}
		require.Equal(t, want, o.client.Counters.Bad, "%d", kind)
		require.EqualValues(t, want, len(o.failed), "%d", kind)
	}
}

// TestNobodyDescribesClassesToAServer: a client that opens the replication channel at a server is refused.
func TestNobodyDescribesClassesToAServer(t *testing.T) {
	require.Nil(t, liesWorld(t, true).acceptReplication(nil))
}

// TestNoRoomForNames: a class whose names the clients' bound doesn't hold is refused where it is registered, and costs nothing.
func TestNoRoomForNames(t *testing.T) {
	w := NewServer(Config{})
	w.paths = maxPaths
	require.ErrorIs(t, w.Register("place", (*place)(nil)), ErrManyNames)
	require.Equal(t, maxPaths, w.paths)
}

// TestClassesTwice: a server that describes its classes a second time is refused, and those that it described first go on.
func TestClassesTwice(t *testing.T) {
	o := newHonest(t)
	o.open(1, 0, false, &smallActor{N: 5})
	schema, n := o.world.encodeSchema()
	err := o.h.message(bitio.NewReader(schema, n))
	require.ErrorIs(t, err, errFormat)
	require.ErrorContains(t, err, "twice")
	require.EqualValues(t, 5, o.client.Find(2).(*smallActor).N)
	require.NotNil(t, o.client.client.mirrors[1])
	sane(t, o.client)
}

// TestOldOpeningComesLate: an actor that went out of sight and came back while packets were lost is opened on two channels, and the newer opening may come first:
// the older one and its close change nothing then.
func TestOldOpeningComesLate(t *testing.T) {
	o := newHonest(t)
	newer := o.open(2, 0, false, &smallActor{N: 7})
	a := o.client.Find(2)
	older := o.open(1, 0, false, &smallActor{N: 5})
	require.EqualValues(t, 1, o.client.Counters.Stale)
	require.EqualValues(t, 1, o.client.Counters.Spawned)
	require.Same(t, a, o.client.Find(2))
	require.EqualValues(t, 7, a.(*smallActor).N)
	older.Closed(nil, bunch.Destroyed)
	require.Same(t, a, o.client.Find(2))
	newer.Closed(nil, bunch.Destroyed)
	require.Nil(t, o.client.Find(2))
	require.Empty(t, o.failed)
	sane(t, o.client)
}

// TestGoneBeforeItOpened: what a server says of an actor's end in the Step in which the actor opens again is of the one before; in a later Step it is of this one.
func TestGoneBeforeItOpened(t *testing.T) {
	for _, kind := range []uint64{wire.Gone, wire.Torn} {
		o := newHonest(t)
		ends := func(frame uint32) {
			w := bitio.NewWriter(make([]byte, 16))
			w.WriteBits(kind, wire.KindBits)
			w.WriteIntPacked(2)
			w.WriteUint32(frame)
			require.NoError(t, o.h.message(bitio.NewReader(w.Bytes(), w.Len())))
		}
		o.open(5, 0, false, &smallActor{N: 7})
		for frame := range uint32(6) {
			ends(frame)
			require.False(t, o.client.Find(2).(*smallActor).TornOff(), "frame %d", frame)
		}
		ends(6)
		if a := o.client.Find(2); kind == wire.Gone {
			require.Nil(t, a)
		} else {
			require.True(t, a.(*smallActor).TornOff())
		}
		require.Empty(t, o.failed)
	}
}

// TestWokenElsewhere: an actor that slept and woke on another channel isn't kept by the mirror of the first one, which stays in the table.
func TestWokenElsewhere(t *testing.T) {
	o := newHonest(t)
	before := o.open(1, 0, false, &smallActor{N: 5})
	before.Closed(nil, bunch.Dormancy)
	now := o.open(2, 0, true, &smallActor{N: 6})
	require.Same(t, o.client.Find(2).(*smallActor).base(), now.self)
	require.Same(t, before, o.client.client.mirrors[1])
	require.Nil(t, before.b)
	require.Nil(t, before.self)
	require.Empty(t, o.failed)
	o.client.Consistent(t)
}

// TestOrphansThatSlept: a component that came before its parent is the parent's when that comes, though it slept and woke meanwhile, and
// however many references wait.
func TestOrphansThatSlept(t *testing.T) {
	o := newHonest(t)
	id := netguid.GUID(100000)
	for i := range uint32(maxUnmapped) {
		if i%5 == 0 {
			a := &richActor{}
			for range 5 {
				id += 2
				a.Many = append(a.Many, Ref[*smallActor]{id})
			}
			o.openAs(wire.Opening{GUID: 100 + 2*i, Class: 3, Frame: 1}, 100+i, a)
		}
	}
	require.Len(t, o.client.client.waits, maxUnmapped)
	o.openAs(wire.Opening{GUID: 4, Parent: 2, Frame: 1}, 1, &smallActor{}).Closed(nil, bunch.Dormancy)
	o.openAs(wire.Opening{GUID: 4, Parent: 2, Frame: 2, Again: true}, 2, &smallActor{})
	child := o.client.Find(4).(*smallActor)
	require.Nil(t, child.Parent())
	for frame := range uint32(3) {
		m := o.openAs(wire.Opening{GUID: 2, Frame: 3 + frame}, 3, &smallActor{})
		require.Same(t, o.client.Find(2), child.Parent())
		m.Closed(nil, bunch.Destroyed)
		require.Nil(t, child.Parent())
		o.client.Consistent(t)
	}
	require.Empty(t, o.failed)
}

// TestSecondSchema: a server that describes its classes twice is refused, and what came before goes on.
func TestSecondSchema(t *testing.T) {
	o := newHonest(t)
	o.open(1, 2, false, &largeActor{})
	require.Empty(t, o.failed)

	none := bitio.NewWriter(make([]byte, 8))
	none.WriteBits(wire.Schema, wire.KindBits)
	none.WriteIntPacked(0)
	o.h.ReceivedBunch(nil, bunchOf(none.Bytes(), none.Len(), true))
	schema, n := o.world.encodeSchema()
	o.h.ReceivedBunch(nil, bunchOf(schema, n, true))
	require.Len(t, o.failed, 2, "refused")
	require.ErrorIs(t, o.failed[1], errFormat)
	o.failed = o.failed[:1]

	w := bitio.NewWriter(make([]byte, 8<<10))
	wire.WriteTime(w, 2, time.Second, false)
	gap := wire.NewChunk().Gap
	wire.WriteID(w, 1, &gap, false)
	w.WriteBool(false)
	wire.WriteMask(w, 1, new(layout.Mask), len(o.world.classes[2].layout.Units))
	w.WriteBool(false) // of the group's twenty parts a list: one, the first
	w.WriteBits(1, 4)
	w.WriteBits(0, 5)
	w.WriteIntPacked64(77)
	in := bunchOf(w.Bytes(), w.Len(), false)
	in.PacketID = 3
	o.h.ReceivedBunch(nil, in)
	require.Len(t, o.failed, 1)
	require.EqualValues(t, 77, o.client.Find(2).(*largeActor).Words[0])
}

// TestEndlessOpening: a server that doesn't end an opening is refused at its bound, once, and nothing is kept of it.
func TestEndlessOpening(t *testing.T) {
	client := liesWorld(t, false)
	var failed []error
	client.cfg.Failed = func(err error) { failed = append(failed, err) }
	for _, size := range []int{0, 1, 1000, 60000, maxOpening} {
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
		if size < maxOpening {
			require.Greater(t, most, maxOpening*9/10)
		} else {
			require.ErrorContains(t, failed[0], "an actor has more than", "nothing is known of it")
		}
		require.Zero(t, m.held)
		require.Nil(t, m.parts)
	}
}

// TestActorsWithoutEnd: a server that opens actor after actor, and leaves each asleep, is refused at the bound, with what is still open going on;
// and there is room again when some have gone.
func TestActorsWithoutEnd(t *testing.T) {
	o := newHonest(t)
	size := o.client.byType[reflect.TypeFor[largeActor]()].size()
	require.Greater(t, size, int(unsafe.Sizeof(largeActor{})))
	open := func(guid uint32, channel uint32) *mirror {
		return o.openAs(wire.Opening{GUID: guid, Class: 2, Frame: guid}, channel, &largeActor{})
	}
	for i := range uint32(100) {
		open(2*i+2, 1).Closed(nil, bunch.Dormancy)
	}
	o.client.Consistent(t)
	require.Equal(t, 100*size, o.client.client.held)
	open(1000, 2)
	o.client.client.held += maxActorBytes - 102*size
	last := open(1002, 3)
	require.Empty(t, o.failed)
	open(1004, 4)
	require.Len(t, o.failed, 1)
	require.ErrorIs(t, o.failed[0], ErrActors)
	require.Nil(t, o.client.Find(1004))
	last.Closed(nil, bunch.Destroyed)
	open(1006, 5)
	require.Len(t, o.failed, 1)
	require.NotNil(t, o.client.Find(1006))
	require.NotNil(t, o.client.Find(1000))
	o.client.client.held -= maxActorBytes - 102*size
	o.client.Consistent(t)
}

// lieToServer plays a client's lies on an actor's channel.
func lieToServer(t testing.TB, b []byte) {
	d := hostile.NewDice(b, 16)
	l, err := hostile.NewClient(d, liesClasses()...)
	require.NoError(t, err)
	w := liesWorld(t, true)
	p := w.newPeer()
	p.out = noOutlet{}
	var views []*view
	for _, a := range []Actor{&smallActor{}, &fuzzed{}, &largeActor{}, &richActor{}} {
		require.NoError(t, w.Spawn(a))
		a.base().SetOwner(p)
		views = append(views, newView(p, a.base()))
	}
	for !d.Over() {
		class := d.N(4)
		data, bits := l.Calls(class)
		_ = p.receiveCalls(views[class], bitio.NewReader(data, bits), nil)
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

// TestLiesGetFar: half of the bunches of liars are taken, so that what they say reaches everything behind the first checks.
func TestLiesGetFar(t *testing.T) {
	spawned, stale, bad, received := uint64(0), uint64(0), uint64(0), uint64(0)
	for seed := range uint64(50) {
		c := lieToClient(t, lies(seed)).Counters
		spawned, stale, bad, received = spawned+c.Spawned, stale+c.Stale, bad+c.Bad, received+c.Received
	}
	require.Greater(t, spawned, uint64(50))
	require.Greater(t, received, 2*bad)
	t.Logf("%d bunches, %d of them refused, %d actors, %d stale values", received, bad, spawned, stale)
}

// record sends new values of an actor, which build on none.
func (o *honest) record(channel, frame uint32, class int, a Actor, m layout.Mask) {
	l := o.world.classes[class].layout
	shadow := l.NewShadow()
	l.Compare(shadow, unsafe.Pointer(a.base()), l.All())
	w := bitio.NewWriter(make([]byte, 8<<10))
	wire.WriteTime(w, frame, time.Duration(frame)*time.Second, false)
	chunk := wire.NewChunk()
	wire.WriteID(w, channel, &chunk.Gap, false)
	w.WriteBool(false)
	wire.WriteMask(w, m, new(layout.Mask), len(l.Units))
	chunk.Paths.Write(w, wire.Path{})
	for i := range l.Units {
		if m>>i&1 != 0 {
			l.WriteUnit(w, shadow, i, nil)
		}
	}
	o.h.ReceivedBunch(nil, bunchOf(w.Bytes(), w.Len(), false))
}

// TestPredictionsWithoutEnd: the numbers of an actor's last records, which later ones are predicted from, count among the bytes that a server may have its client keep,
// also of a class that the client lacks; they are given back with the channel, and what is kept goes on at the bound.
func TestPredictionsWithoutEnd(t *testing.T) {
	o := newHonest(t)
	c := o.client.client
	a := &largeActor{}
	pos := o.world.classes[2].layout.FieldMask("Pos")
	open := func(channel uint32) *mirror {
		return o.openAs(wire.Opening{GUID: 2 * channel, Class: 2, Frame: 1}, channel, a)
	}
	before := 0
	for channel := uint32(1); channel <= 2; channel++ {
		m := open(channel)
		before = c.held
		for frame := range uint32(2 * layout.MaxRecords) {
			a.Pos.X = float64(frame)
			o.record(channel, frame+2, 2, a, pos)
			o.client.Consistent(t)
			require.InDelta(t, a.Pos.X, m.b.self.(*largeActor).Pos.X, 0.01)
		}
		require.Len(t, m.history.entries, layout.MaxRecords)
		require.Equal(t, before+layout.MaxRecords*m.entryBytes(), c.held)
		require.Greater(t, m.entryBytes(), 16+2*8)
	}
	m := open(3)
	before = c.held
	fill := maxActorBytes - c.held - minReceived*m.entryBytes() + 1
	c.held += fill
	require.Empty(t, o.failed)
	o.record(3, 100, 2, a, pos)
	require.Len(t, o.failed, 1)
	require.ErrorIs(t, o.failed[0], ErrActors)
	require.Equal(t, before+fill, c.held)
	a.Pos.X = 5
	o.record(2, 101, 2, a, pos)
	require.EqualValues(t, 5, o.client.Find(4).(*largeActor).Pos.X, "who has them goes on")
	require.Len(t, o.failed, 1)
	c.mirrors[1].Closed(nil, bunch.Destroyed)
	o.openAs(wire.Opening{GUID: 8, Frame: 1}, 1, &smallActor{})
	o.record(3, 102, 2, a, pos)
	require.Len(t, o.failed, 1, "there is room again")
	c.held -= fill
	o.client.Consistent(t)

	lacking := &mirror{world: o.client, index: 9, class: c.schema[2]}
	lacking.frames = make([]int64, len(lacking.class.units.Units))
	c.place(lacking)
	before = c.held
	o.record(9, 103, 2, a, pos)
	require.Equal(t, before+minReceived*lacking.entryBytes(), c.held)
	c.forgetMirrors()
	require.Equal(t, 2*o.world.classes[2].size()+o.world.classes[0].size(), c.held)
}

// TestFloodOfRefusals: a server that says without end that it refused calls has its client told of so many in a second, and then of how many more there were.
func TestFloodOfRefusals(t *testing.T) {
	o := newHonest(t)
	o.open(1, 2, false, &largeActor{})
	step := time.Second
	o.client.Step(step)
	for range 3 {
		o.failed = nil
		for i := range uint32(1000) {
			w := bitio.NewWriter(make([]byte, 64))
			f := wire.Refusal{Count: 1}
			if i%2 == 0 {
				f = wire.Refusal{GUID: 2, Why: wire.TooMany, Count: 1}
			}
			f.Write(w)
			require.NoError(t, o.h.message(bitio.NewReader(w.Bytes(), w.Len())))
		}
		require.Len(t, o.failed, mostRefused)
		step += time.Second
		o.client.Step(step)
		require.Len(t, o.failed, mostRefused+1)
		require.ErrorContains(t, o.failed[mostRefused], "744 more procedures")
		var last *RefusedError
		require.ErrorAs(t, o.failed[mostRefused], &last)
	}
	require.EqualValues(t, 3000, o.client.Counters.CallsRefused)
	require.Zero(t, o.client.Counters.Bad)
}

// TestRefusedAreOwnCalls: a client is told of refused calls of procedures that it calls, not of those that the server calls and of those there aren't, which
// only a liar or a damaged packet names. What the client can't call, its game doesn't expect to hear of.
func TestRefusedAreOwnCalls(t *testing.T) {
	o := newHonest(t)
	o.open(1, 2, false, &largeActor{})
	o.client.Step(time.Second)
	message := func(procedure uint32) error {
		w := bitio.NewWriter(make([]byte, 64))
		f := wire.Refusal{GUID: 2, Procedure: procedure, Why: wire.TooMany, Count: 1}
		f.Write(w)
		return o.h.message(bitio.NewReader(w.Bytes(), w.Len()))
	}
	require.NoError(t, message(0))
	require.Len(t, o.failed, 1)
	require.ErrorContains(t, o.failed[0], "large.Ask")
	for _, procedure := range []uint32{1, 2, math.MaxUint32} {
		require.ErrorIs(t, message(procedure), errFormat, "%d", procedure)
	}
	require.Len(t, o.failed, 1)
	require.EqualValues(t, 1, o.client.Counters.CallsRefused)
}

// bulky is large at a client, and small on the wire.
type bulky struct {
	Base
	N     uint8          `net:""`
	Whom  []Ref[*bulky]  `net:"cap=1000,notify=OnWhom"`
	Local [64 << 10]byte // not replicated
}

func (*bulky) OnWhom() {}

// bulkyHonest is an honest server with the class of bulky actors, which are class 0.
func bulkyHonest(t *testing.T) *honest {
	o := &honest{world: NewServer(Config{}), client: NewClient(Config{})}
	o.client.cfg.Failed = func(err error) { o.failed = append(o.failed, err) }
	require.NoError(t, o.world.Register("bulky", (*bulky)(nil)))
	require.NoError(t, o.client.Register("bulky", (*bulky)(nil)))
	o.h = &replicationHandler{client: o.client.client}
	schema, n := o.world.encodeSchema()
	require.NoError(t, o.h.message(bitio.NewReader(schema, n)))
	return o
}

// TestNothingIsKeptOfThoseGone: an actor that is gone takes no memory at a client, neither while its place among the channels isn't used again, nor for what it
// waited for.
func TestNothingIsKeptOfThoseGone(t *testing.T) {
	o := bulkyHonest(t)
	var all []weak.Pointer[Base]
	for i := range uint32(300) {
		m := o.openAs(wire.Opening{GUID: 2*i + 4, Parent: 2, Frame: i + 1}, i+1, &bulky{N: 1, Whom: []Ref[*bulky]{{id: netguid.GUID(1_000_000 + 2*i)}}})
		all = append(all, weak.Make(m.b))
		m.Closed(nil, []channel.CloseReason{bunch.Destroyed, bunch.Dormancy}[i%2])
		if i%3 == 0 {
			o.client.Step(time.Duration(i))
		}
	}
	for a := range o.client.All { // those that sleep
		o.client.client.leave(a.base().mirror)
	}
	o.client.Step(time.Hour)
	o.client.Consistent(t)
	require.Zero(t, o.client.Len())
	require.Empty(t, o.failed)
	runtime.GC()
	kept := 0
	for _, p := range all {
		if p.Value() != nil {
			kept++
		}
	}
	require.LessOrEqual(t, kept, 3, "of %d", len(all)) // the stack may have some
	runtime.KeepAlive(o)
}

// TestFlickersCostLittle: a server that has an actor go and come again and again between two Steps, to which thousands of others refer and belong, has its client
// look at these once. The components are its own all the while, and a Step tells of the references.
func TestFlickersCostLittle(t *testing.T) {
	o := bulkyHonest(t)
	const others = 500
	refers := &bulky{N: 1}
	for range 100 {
		refers.Whom = append(refers.Whom, Ref[*bulky]{id: 2})
	}
	frame := uint32(0)
	open := func(id, parent, channel uint32, a *bulky) *mirror {
		frame++
		return o.openAs(wire.Opening{GUID: id, Parent: parent, Frame: frame}, channel, a)
	}
	open(2, 0, 1, &bulky{N: 1})
	for i := range uint32(others) {
		open(2*i+4, 2, i+2, refers)
	}
	o.client.Step(time.Second)
	c := o.client.client
	for round := range 5 {
		for range 20 {
			m := open(2, 0, 1, &bulky{N: uint8(round + 1)})
			require.Same(t, o.client.Find(2), o.client.Find(4).base().Parent())
			m.Closed(nil, bunch.Destroyed)
			require.Nil(t, o.client.Find(4).base().Parent())
			open(2, 0, 1, &bulky{N: uint8(round + 1)})
			require.Len(t, c.orphaned, 1, "it is put off")
			require.Len(t, c.missed, 1)
			require.Empty(t, c.waits)
		}
		o.client.Consistent(t)
		if round%2 == 0 { // else the Step does it
			n := 0
			for a := range o.client.Find(2).base().Children {
				require.Same(t, o.client.Find(2), a.base().Parent())
				n++
			}
			require.Equal(t, others, n)
		}
		told := 0
		for _, m := range c.mirrors[2 : others+2] {
			require.Zero(t, m.note)
		}
		before := append([]event(nil), c.events...)
		gone := append([]*Base(nil), c.orphaned...)
		c.settleOrphans()
		for _, b := range gone {
			require.Nil(t, b.children, "a game that keeps it keeps no others")
		}
		c.missReferences()
		for _, e := range c.events[len(before):] {
			require.Equal(t, eventChanged, e.kind)
			told++
		}
		require.Equal(t, others, told)
		o.client.Step(time.Duration(round+2) * time.Second)
		o.client.Consistent(t)
		require.Empty(t, c.waits)
	}
	require.Empty(t, o.failed)
}

// TestComponentsTooDeep: components of components go as deep at a client as at a server, whatever order they come in, and none is below itself.
func TestComponentsTooDeep(t *testing.T) {
	for _, down := range []bool{false, true} {
		o := newHonest(t)
		for i := range uint32(3 * maxDepth) {
			id := 2*i + 2
			if !down {
				id = 6*maxDepth - 2*i
			}
			o.openAs(wire.Opening{GUID: id, Parent: id - 2, Frame: i + 1}, i+1, &smallActor{})
		}
		o.client.Step(time.Second)
		most := 0
		for a := range o.client.All {
			depth := 0
			for p := a.base().Parent(); p != nil; p = p.base().Parent() {
				depth++
			}
			most = max(most, depth)
		}
		require.Equal(t, maxDepth, most, "%v", down)
		o.client.Consistent(t)
	}

	w := liesWorld(t, true)
	above := Actor(&smallActor{})
	require.NoError(t, w.Spawn(above))
	for range maxDepth {
		a := &smallActor{}
		require.NoError(t, w.SpawnIn(above, a))
		above = a
	}
	require.ErrorIs(t, w.SpawnIn(above, &smallActor{}), ErrDeep)
	require.ErrorIs(t, w.SpawnAs(&smallActor{}, above, 1001), ErrDeep)
}

// TestBelowItself: a server that has an actor come back as a component of one that was its own has neither above the other.
func TestBelowItself(t *testing.T) {
	o := newHonest(t)
	o.openAs(wire.Opening{GUID: 2, Frame: 1}, 1, &smallActor{}).Closed(nil, bunch.Dormancy)
	o.openAs(wire.Opening{GUID: 4, Parent: 2, Frame: 2}, 2, &smallActor{})
	o.client.client.leave(o.client.byGUID[2].mirror)
	o.openAs(wire.Opening{GUID: 2, Parent: 4, Frame: 3}, 3, &smallActor{})
	for range 2 {
		up := o.client.Find(4).base().Parent()
		require.Same(t, o.client.Find(2), up)
		require.Nil(t, up.base().Parent())
		o.client.Consistent(t)
		o.client.Step(time.Second)
	}
}

// TestResumeOfNobody: a server that goes on with the calls of an actor which its client hasn't has them stay where they were.
func TestResumeOfNobody(t *testing.T) {
	for _, lacks := range []bool{false, true} {
		from, former := errands(t, 2, 1, 2)
		former.calls = []*call{errandCall(t, from, 3)}
		w, m := errands(t, 0)
		w.cfg.Failed = func(error) {}
		w.remove(m.b)
		m.b, m.self = nil, nil // it opened again, and wasn't there; or its class isn't
		if lacks {
			m.class = &remoteClass{name: "other", rpcs: []remoteRPC{{name: "Errand", local: -1}}}
		}
		w.Follow(from)
		bw := bitio.NewWriter(make([]byte, 40))
		bw.WriteUint32(1)
		bw.WriteBits(0, 64)
		bw.WriteBits(0, 64)
		done, err := m.heardCall(resumeCall, bitio.NewReader(bw.Bytes(), bw.Len()))
		require.True(t, done)
		require.NoError(t, err)
		w.Step(time.Second)
		require.Len(t, former.unacked, 2)
		require.Len(t, former.calls, 1)
		require.Nil(t, former.moved)
	}
}

// TestDescribedOnManyChannels: a server that begins to describe its classes on another channel before it has ended on the first is refused there, so that a client keeps one
// unfinished description. The first goes on; once its channel has closed another one may begin.
func TestDescribedOnManyChannels(t *testing.T) {
	o := newHonest(t)
	c := o.client.client
	o.h.Closed(nil, bunch.Destroyed)
	part := func(h *replicationHandler, first, last int) error {
		w := bitio.NewWriter(make([]byte, 8<<10))
		o.world.writeSchema(w, first, last)
		return h.message(bitio.NewReader(w.Bytes(), w.Len()))
	}
	begun, other := &replicationHandler{client: c}, &replicationHandler{client: c}
	require.NoError(t, part(begun, 0, 1))
	require.ErrorIs(t, part(other, 0, 1), errFormat)
	require.Empty(t, other.read.list)
	other.Closed(nil, bunch.Destroyed)
	require.ErrorIs(t, part(&replicationHandler{client: c}, 0, 1), errFormat)
	require.NoError(t, part(begun, 1, 2))
	begun.Closed(nil, bunch.Destroyed)
	require.Nil(t, c.schema)
	last := &replicationHandler{client: c}
	require.NoError(t, part(last, 0, 3))
	require.NoError(t, part(last, 3, 4))
	require.Len(t, c.schema, 4)
}

// TestOpeningsWithoutEndInARecording: the parts of openings that a recording doesn't end count among the bytes that a client keeps of it, up to the bound. They are given back
// when the place closes or sleeps, when the opening ends, when it is damaged, and when the recording is left.
func TestOpeningsWithoutEndInARecording(t *testing.T) {
	server, w := liesWorld(t, true), liesWorld(t, false)
	schema, n := server.encodeSchema()
	p := newPlayer(w)
	ok, err := p.Describe(bitio.NewReader(schema, n))
	require.True(t, ok)
	require.NoError(t, err)
	message := func(kind bridge.Kind, place uint32, b ...byte) error {
		return p.Message(kind, place, bitio.NewReader(b, len(b)*8))
	}
	opening := func() []byte {
		b := bitio.NewWriter(make([]byte, 100))
		b.WriteBool(true)
		o := wire.Opening{GUID: 2, Frame: 1}
		o.Write(b)
		b.WriteBits(0, 1) // no values
		return b.Bytes()
	}()
	half := append([]byte{1}, make([]byte, 1000)...)
	c := w.client
	for place := uint32(1); place <= 5; place++ {
		require.NoError(t, message(bridge.Open, place, half...))
	}
	require.NoError(t, message(bridge.Sleeper, 6, half...))
	require.ErrorIs(t, message(bridge.Values, 6, 0), ErrGUID)
	require.NoError(t, message(bridge.Values, 2, half...))
	require.Equal(t, 6*(1000+partCost), c.held-6)
	w.Consistent(t)
	require.NoError(t, message(bridge.Close, 1, uint8(bunch.Destroyed)))
	require.Error(t, message(bridge.Values, 2, 0), "no opening")
	require.Equal(t, 3*(1001+partCost), c.held)
	p.Reset()
	require.Zero(t, c.held)

	require.NoError(t, message(bridge.Open, 1, opening...))
	require.NotZero(t, c.held)
	require.NoError(t, p.Message(bridge.Values, 1, bitio.NewReader([]byte{0}, 1))) // ends it
	require.NotNil(t, w.Find(2))
	require.Equal(t, w.Find(2).base().class.size(), c.held)
	fill := maxActorBytes - c.held - 1001 - partCost
	c.held += fill
	require.NoError(t, message(bridge.Open, 2, half...))
	require.ErrorIs(t, message(bridge.Open, 3, half...), ErrActors)
	c.held -= fill
	w.Consistent(t)
	p.Reset()
	require.Zero(t, c.held)
}

// TestRoleOfTornOff: what a server says late, or against its word, of an actor that it has torn off doesn't take it from the client.
func TestRoleOfTornOff(t *testing.T) {
	o := newHonest(t)
	m := o.open(1, 0, false, &smallActor{N: 5})
	w := bitio.NewWriter(make([]byte, 8))
	w.WriteBits(wire.TornOff, wire.KindBits)
	w.WriteBits(wire.Role, wire.KindBits)
	wire.WriteRole(w, true, true)
	m.ReceivedBunch(nil, bunchOf(w.Bytes(), w.Len(), true))
	a := o.client.Find(2).(*smallActor)
	require.Equal(t, Authority, a.Role())
	o.open(2, 0, true, &smallActor{N: 6})
	require.Equal(t, Authority, a.Role())
	require.True(t, a.base().tornOff)
	require.Empty(t, o.failed)
	o.client.Consistent(t)
}

// TestRecordsRise: a chunk's records are of rising channels. A server that names one again, in a bit each, or goes back, is refused there; and the game's code that keeps
// values isn't told of a record that has none.
func TestRecordsRise(t *testing.T) {
	o := newHonest(t)
	o.open(1, 0, false, &smallActor{N: 5})
	o.openAs(wire.Opening{GUID: 4, Frame: 1}, 2, &smallActor{N: 6})
	told := 0
	o.client.OnValues(func(Actor) { told++ })
	for _, steps := range [][]uint32{{1, 0}, {2, 1<<32 - 1}, {0}} {
		o.failed, told = nil, 0
		w := bitio.NewWriter(make([]byte, 2048))
		wire.WriteTime(w, 9, time.Second, false)
		gap, last := wire.NewChunk().Gap, new(layout.Mask)
		for _, step := range steps {
			wire.WriteID(w, step, &gap, false)
			w.WriteBool(false)
			wire.WriteMask(w, 0, last, 1)
		}
		for w.Len() < 8*1200 {
			w.WriteBool(true) // as the last
		}
		o.h.ReceivedBunch(nil, bunchOf(w.Bytes(), w.Len(), false))
		require.Len(t, o.failed, 1, "%d", steps)
		require.ErrorIs(t, o.failed[0], errFormat)
		require.Zero(t, told)
	}
	o.client.Consistent(t)
}
