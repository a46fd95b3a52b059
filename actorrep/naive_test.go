package actorrep

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn"
)

// changes are random changes of an actor, their snapshots, and of which the client has records.
type changes struct {
	view   *view
	frames map[int64]uint32 // by the number of the change
	masks  map[int64]layout.Mask
	has    map[int64]bool
}

func randomChanges(rng *rand.Rand, steady bool) *changes {
	c := &changes{frames: map[int64]uint32{}, masks: map[int64]layout.Mask{}, has: map[int64]bool{}}
	r := &replicated{snaps: &snapshots{}}
	for i := range r.snaps.counts {
		r.snaps.counts[i] = -1
	}
	b := &Base{rep: r, class: &class{layout: &layout.Layout{Deltas: 7}}}
	c.view = &view{b: b, base: noBaseline, allowed: 7}
	frame := uint32(math.MaxUint32 - 30)
	for range 20 + rng.IntN(60) {
		r.count++
		if frame++; !steady && rng.IntN(4) == 0 {
			frame += uint32(rng.IntN(3))
		}
		changed := layout.Mask(7)
		if rng.IntN(8) == 0 {
			changed = 1 + layout.Mask(rng.IntN(7))
		}
		r.snaps.note(r.count, frame, changed)
		c.frames[r.count], c.masks[r.count] = frame, changed
		switch n := rng.IntN(12); {
		case n == 0: // it was lost
		case n == 1: // not all of it was sent
			c.view.base.arrived(c.view, &record{mask: changed | 8, count: r.count, frame: frame + 1})
		case n == 2:
			c.view.base.arrived(c.view, &record{mask: changed &^ (changed & -changed), count: r.count, frame: frame})
		default:
			c.view.base.arrived(c.view, &record{mask: changed | 8, count: r.count, frame: frame, number: 9})
			c.has[r.count] = true
		}
	}
	return c
}

// TestWhatTheClientHas: a baseline knows of the last 32 changes which the client has, and a path goes by those that are in its Steps.
func TestWhatTheClientHas(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 14))
	found, fast := 0, 0
	for round := range 3000 {
		c := randomChanges(rng, round%2 == 0)
		v, snaps := c.view, c.view.b.rep.snaps
		for d := range int64(32) {
			if got, want := v.base.older>>d&1 != 0, c.has[v.base.count-d]; got != want {
				t.Fatalf("round %d: %d changes ago the client has %v, not %v", round, d, want, got)
			}
		}
		kept := func(count int64) bool { return count > 0 && count > v.b.rep.count-snapshotRing }
		b := basis{v.base.count, v.base.frame, v.base.older, 7, 1 + layout.Mask(rng.IntN(7))}
		if !kept(b.count) {
			continue
		}
		back := map[uint32]int64{} // Steps before the baseline to the change that the client has
		for count := b.count - 1; kept(count) && count > b.count-32; count-- {
			if c.has[count] {
				back[b.frame-c.frames[count]] = count
			}
		}
		for gap := -1; gap < 12; gap++ {
			nearest, some := 0, slices.Sorted(func(yield func(uint32) bool) {
				for n := range back {
					if !yield(n) {
						return
					}
				}
			})
			for _, n := range some {
				if nearest = int(n); nearest >= gap {
					break
				}
			}
			require.Equal(t, nearest, b.nearest(snaps, gap), "round %d, gap %d of %v", round, gap, some)
			for form := layout.Two; form <= layout.Twelve; form++ {
				age := 1 + rng.IntN(5)
				n, predicted := form.Times(), b.known&b.allowed
				ok := gap >= 1 && age+(n-1)*gap <= maxReach
				at := []int{}
				for i := 1; ok && i < n; i++ {
					count, there := back[uint32(i*gap)]
					ok = there
					predicted &= c.masks[count]
					at = append(at, int(count%snapshotRing))
				}
				past := &layout.Past{Age: age}
				got := follow(&b, snaps, gap, form, past)
				if ok = ok && predicted != 0; ok != got {
					t.Fatalf("round %d, gap %d, form %d: %v, want %v", round, gap, form, got, ok)
				}
				if !ok {
					continue
				}
				if found++; gap == 1 {
					fast++
				}
				require.Equal(t, at, past.At[1:n], "round %d, gap %d, form %d", round, gap, form)
				require.Equal(t, predicted, past.Predicted)
				require.Equal(t, []any{gap, form}, []any{past.Gap, past.Form})
			}
		}
	}
	require.Greater(t, fast, 500)
	require.Greater(t, found, 2*fast)
}

// TestPathsAreNearAndLong: the records that a path goes by are as many as the client has, and of gaps, as near to half of the age as there are.
func TestPathsAreNearAndLong(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 14))
	taken := map[layout.Form]int{}
	for round := range 2000 {
		c := randomChanges(rng, round%3 > 0)
		b := basis{c.view.base.count, c.view.base.frame, c.view.base.older, 7, 7}
		snaps, age := c.view.b.rep.snaps, 1+rng.IntN(20)
		if !snaps.has(b.count) {
			continue
		}
		var past layout.Past
		p := b.path(b.frame+uint32(age), snaps, &past)
		require.EqualValues(t, age, p.Age)
		require.Equal(t, int(b.count%snapshotRing), past.At[0])
		require.Equal(t, age, past.Age)
		taken[past.Form]++
		can := func(gap int, form layout.Form) bool { return follow(&b, snaps, gap, form, &layout.Past{Age: age}) }
		half, best := (age+1)/2, layout.Two
		for _, try := range []struct {
			gap  int
			form layout.Form
		}{{(age + 2) / 4, layout.Twelve}, {half, layout.Eight}, {min(half, (maxReach-age)/5), layout.Six}, {b.nearest(snaps, half), layout.Eight}, {b.nearest(snaps, half), layout.Six},
			{half + 1, layout.Six}, {half - 1, layout.Six}} {
			if can(try.gap, try.form) {
				best = try.form
				require.Equal(t, []int{try.gap, int(try.form)}, []int{int(p.Gap), int(p.Form)}, "round %d, age %d", round, age)
				break
			}
		}
		if gap := b.nearest(snaps, age); best == layout.Two && can(gap, layout.Two) {
			require.EqualValues(t, gap, p.Gap)
		} else if best == layout.Two {
			require.Zero(t, p.Gap)
		}
	}
	for form := layout.Two; form <= layout.Twelve; form++ {
		require.Greater(t, taken[form], 20, "form %d", form)
	}
	var past layout.Past
	require.Zero(t, (&basis{}).path(5, nil, &past), "nothing is known")
}

// TestRoomIsCounted: hasRoom is whether SendBunch takes a message now, or never will.
func TestRoomIsCounted(t *testing.T) {
	proto := netconn.Unreal51()
	proto.ReliableBuffer, proto.StrictControl = 8, false
	server := NewServer(Config{})
	c, err := netconn.New(netconn.Config{Protocol: proto, Server: true, NetSpeed: 1 << 30, Channels: server.ChannelTypes(), LowLevelSend: func([]byte) {}}, 0, 1, 1)
	require.NoError(t, err)
	p := server.AddConn(c)
	p.out.(*channelOutlet).introduce()
	ch, err := c.Table().Open(ReplicationName, p.out.(*channelOutlet))
	require.NoError(t, err)
	single := c.Table().SingleBits()
	part := single / 8 * 8
	for ch.Room() > 0 {
		for parts := 1; parts < 10; parts++ {
			most := parts * part
			if parts == 1 {
				most = single
			}
			for _, bits := range []int{most, most + 1} {
				needs := parts
				if bits > most {
					needs++
				}
				require.Equal(t, needs <= ch.Room() || needs > 7, hasRoom(ch, bits), "%d bits in %d bunches, room for %d", bits, needs, ch.Room())
			}
		}
		w := server.message()
		w.WriteUint32(1)
		require.True(t, p.out.(*channelOutlet).send(ch, w, true))
	}
	w := server.message()
	w.WriteUint32(1)
	require.False(t, p.out.(*channelOutlet).send(ch, w, true))
	require.False(t, c.Closed())
}

// TestRateLimits: a bucket of calls fills with time, and patience ends after a minute's worth of refused ones and the burst.
func TestRateLimits(t *testing.T) {
	d := &definition{rate: 2, burst: 3}
	var list []rateLimit
	calls := func(class, rpc int, now time.Duration, n int) (taken, until int) {
		for i := range n {
			ok, flood := take(&list, d, class, rpc, now)
			if ok {
				taken++
			}
			if flood {
				return taken, i + 1
			}
		}
		return taken, 0
	}
	taken, until := calls(0, 0, 0, 1000)
	require.Equal(t, []int{3, 3 + 2*60 + 3 + 1}, []int{taken, until})
	taken, until = calls(0, 1, 0, 3+2*60+3)
	require.Equal(t, []int{3, 0}, []int{taken, until}, "another procedure")
	taken, _ = calls(1, 0, 0, 5)
	require.Equal(t, 3, taken, "another class")
	taken, _ = calls(1, 0, time.Second, 5)
	require.Equal(t, 2, taken)
	taken, _ = calls(1, 0, 2*time.Second, 1)
	require.Equal(t, 1, taken)
	taken, _ = calls(1, 0, 3*time.Second, 5)
	require.Equal(t, 3, taken, "what wasn't used is kept, to the burst")
	taken, _ = calls(1, 0, 2*time.Second, 1)
	require.Zero(t, taken, "the clock went back")
	require.Len(t, list, 3)
	d.rate = 0
	taken, until = calls(0, 0, 0, 1000)
	require.Equal(t, []int{1000, 0}, []int{taken, until}, "no limit")
}

// TestKindsOnTheWire: no two kinds of procedures are the same there.
func TestKindsOnTheWire(t *testing.T) {
	seen, names := map[uint8]string{}, map[string]bool{}
	for kind := serverRPC; kind <= multicast; kind++ {
		for _, reliable := range []bool{false, true} {
			for _, any := range []bool{false, kind == serverRPC} {
				d := &definition{kind: kind, reliable: reliable, anyClient: any}
				name := fmt.Sprint(d.kindName(), reliable)
				if other := seen[d.wireKind()]; other != "" && other != name {
					t.Errorf("%s is %d, as is %s", name, d.wireKind(), other)
				}
				seen[d.wireKind()], names[name] = name, true
				require.Equal(t, kind != clientRPC, d.runsAt(true), name)
				require.Equal(t, kind != serverRPC, d.runsAt(false), name)
			}
		}
	}
	require.Len(t, seen, 8)
	require.Len(t, names, 8)
}

// TestProceduresOfAnotherBuild: a procedure of another kind or with other parameters can't be called, and is named; the others and the class can.
func TestProceduresOfAnotherBuild(t *testing.T) {
	same := MulticastRPC(func(Call, *parcel, int8) error { return nil })
	for name, other := range map[string]Procedure{"kind": MulticastRPC(func(Call, *parcel, int8) error { return nil }, Reliable), "parameters": MulticastRPC(func(Call, *parcel, string) error { return nil })} {
		s, c := NewServer(Config{}), NewClient(Config{})
		require.NoError(t, s.Register("parcel", (*parcel)(nil), RPCs{"Same": same, "Other": same, "Gone": same}))
		require.NoError(t, c.Register("parcel", (*parcel)(nil), RPCs{"Same": same, "Other": other}))
		data, n := s.encodeSchema()
		r := bitio.NewReader(data, n)
		r.ReadBits(wire.KindBits)
		list, err := c.readSchema(r)
		require.ErrorIs(t, err, ErrSchema, name)
		require.ErrorContains(t, err, "procedure Other")
		require.NotContains(t, err.Error(), "Same")
		require.NotNil(t, list[0].local)
		for _, p := range list[0].rpcs {
			require.Equal(t, p.name == "Same", p.local >= 0, p.name)
			require.Equal(t, p.name == "Other", p.told, p.name)
		}
	}
}

// TestSpareMemory: what is kept for new calls stays within its bounds.
func TestSpareMemory(t *testing.T) {
	w := NewServer(Config{})
	for _, size := range []int{0, 100, 10000} {
		var calls []*call
		for range maxSpare + 10 {
			c := w.unheld.take()
			require.Equal(t, &call{data: c.data[:0], holders: 1}, c)
			c.data = append(c.data, make([]byte, size)...)
			calls = append(calls, c.held())
		}
		for _, c := range calls {
			w.unheld.drop(c)
		}
		require.Empty(t, w.unheld.list, "one reference is left")
		require.Empty(t, w.unheld.dropFirst(calls, len(calls)))
		w.Consistent(t)
		if size == 0 {
			require.Len(t, w.unheld.list, maxSpare)
		}
		for len(w.unheld.list) > 0 {
			w.unheld.take()
		}
		require.Zero(t, w.unheld.bytes)
	}
	rpc := MulticastRPC(func(Call, *parcel, string) error { return nil }, Borrowed)
	require.NoError(t, w.Register("parcel", (*parcel)(nil), RPCs{"R": rpc}))
	proc := &w.byType[w.classes[0].typ].rpcs[0]
	for _, most := range []int{maxSpare, 100} {
		var all []unsafe.Pointer
		for i := range maxSpare + 10 {
			p := proc.take()
			if most == 100 && i < 2*most {
				m := w.message()
				text := string(make([]byte, 10000))
				rpc.def.params.WriteValue(m, unsafe.Pointer(&text))
				require.NoError(t, m.Err())
				rpc.def.params.ReadValue(bitio.NewReader(m.Bytes(), m.Len()), p, proc.borrow(p))
			}
			all = append(all, p)
		}
		for _, p := range all {
			proc.give(p)
		}
		require.NotEmpty(t, proc.spare)
		w.Consistent(t)
		require.LessOrEqual(t, len(proc.spare), maxSpare)
	}
}

// TestWaitingReferences: references to actors that never come are bounded. Those of actors that are gone make room, in the next Step, for those that found none, again and
// again.
func TestWaitingReferences(t *testing.T) {
	o := newHonest(t)
	c, frame := o.client.client, uint32(0)
	open := func(n uint32) (all []*mirror) {
		for i := range n {
			frame++
			a := &richActor{}
			for k := range uint32(5) {
				a.Many = append(a.Many, Ref[*smallActor]{netguid.GUID(100000 + 10*frame + 2*k)})
			}
			all = append(all, o.openAs(wire.Opening{GUID: 2 + 2*i, Class: 3, Frame: frame}, i, a))
		}
		return all
	}
	waits := func(n int) {
		require.Len(t, c.waits, n)
		o.client.Consistent(t)
	}
	for now := range time.Duration(3) {
		all := open(900)
		waits(maxUnmapped)
		o.client.Step(4*now + 1)
		waits(maxUnmapped)
		for _, m := range all[:200] {
			m.Closed(nil, bunch.Destroyed)
		}
		o.client.Step(4*now + 2)
		waits(maxUnmapped)
		all[899].Closed(nil, bunch.Destroyed)
		open(1)
		require.Empty(t, c.waiting[100000+netguid.GUID(10*frame)])
		o.client.Step(4*now + 3)
		waits(5 * 700)
		require.Len(t, c.waiting[100000+netguid.GUID(10*frame)], 1)
	}
	require.Empty(t, o.failed)
}

// place is an actor with a location.
type place struct {
	Base
	x float64
	N int32 `net:""`
}

func (p *place) Location() (x, y, z float64) { return p.x, 2, 3 }

// TestWhoSeesWhat is the table of an actor's settings, with what is said of them.
func TestWhoSeesWhat(t *testing.T) {
	w := NewServer(Config{})
	require.NoError(t, w.Register("place", (*place)(nil), CullDistance(100)))
	require.NoError(t, w.Register("parcel", (*parcel)(nil)))
	p, other := w.newPeer(), w.newPeer()
	for _, o := range []*Peer{p, other} {
		o.out = removedOutlet{}
		w.peers = append(w.peers, o)
	}
	a, plain := &place{}, &parcel{}
	require.NoError(t, w.Spawn(a))
	require.NoError(t, w.Spawn(plain))
	plain.SetCullDistance(100)
	p.out, other.out = &lane{}, &lane{}
	at := func(x float64) func() { return func() { a.x = x } }
	for _, c := range []struct {
		do    func()
		a     Actor
		sees  bool
		words string
	}{
		{at(1e6), a, true, "seen at any distance, whatever its cull distance: the connection has no viewpoint; call Peer.SetViewTarget or SetViewpoint"},
		{func() { p.SetViewpoint(0, 2, 3) }, plain, true, "seen at any distance, whatever its cull distance: it has no method Location"},
		{at(100), a, true, "within range: 100 away, seen within 100"},
		{at(-100.01), a, false, "out of range by 0.01: 100 away, seen within 100"},
		{func() { p.SetViewpoint(0, 62, 83) }, a, false, "out of range by 41.43: 141.4 away, seen within 100"},
		{at(0), a, true, "within range: 100 away, seen within 100"},
		{func() { p.SetViewpoint(0, 2, 3); p.want(a.base()); a.x = 110 }, a, true, "out of range by 10: 110 away, seen within 100"},
		{at(110.1), a, false, "out of range by 10.1: 110.1 away, seen within 100"},
		{func() { a.SetCullDistance(0) }, a, true, "seen at any distance"},
		{func() { a.SetCullDistance(50); a.SetOwner(p) }, a, true, "always seen"},
		{func() { a.SetOwner(other); a.SetOnlyOwner(true); a.x = 0 }, a, false, "only its owner sees it"},
		{func() { p.SetViewTarget(a) }, a, true, "always seen"},
		{func() { p.SetViewTarget(nil); a.SetAlwaysRelevant(true) }, a, true, "always seen"},
		{func() { a.SetAlwaysRelevant(false); p.replay = true }, a, true, "always seen"},
	} {
		c.do()
		require.Equal(t, c.sees, p.Sees(c.a), c.words)
		require.Equal(t, c.words, p.ExplainSight(c.a))
	}
	// A view target is where the player looks from, and where it was once it is destroyed.
	target := &place{x: 7}
	require.NoError(t, w.Spawn(target))
	p.SetViewTarget(target)
	x, _, _, ok := p.Viewpoint()
	require.Equal(t, []any{7., true}, []any{x, ok})
	p.SetViewTarget(plain)
	x, _, _, ok = p.Viewpoint()
	require.Equal(t, []any{0., true}, []any{x, ok}, "it has no location")
	p.SetViewTarget(target)
	require.NoError(t, w.Destroy(target))
	x, _, _, ok = p.Viewpoint()
	require.Equal(t, []any{7., true}, []any{x, ok})
	require.Nil(t, p.ViewTarget())
	_, _, _, ok = other.Viewpoint()
	require.False(t, ok, "it looked from elsewhere")
}

// TestPriorities is the table of what makes an actor more urgent than another.
func TestPriorities(t *testing.T) {
	w := NewServer(Config{})
	w.frame = 10
	p := &Peer{world: w}
	a := &place{}
	a.Base = Base{world: w, self: a, priority: 3, cull: 100}
	v := &view{peer: p, b: a.base(), since: 10}
	for _, c := range []struct {
		do   func()
		want float64
	}{
		{func() {}, 3 * 2},
		{func() { v.since = 8 }, 9 * 2},
		{func() { a.x = 24.99 }, 9 * 2},
		{func() { a.x = 25 }, 9},
		{func() { a.x = 50 }, 9},
		{func() { a.x = 50.01 }, 9 * 0.4},
		{func() { a.cull = 0 }, 9},
		{func() { v.aud = layout.Owner }, 36},
		{func() { p.replay = true }, 9},
		{func() { p.viewTarget = a }, 36},
	} {
		c.do()
		require.InDelta(t, c.want, v.priority(0, 2, 3, true), 1e-5)
	}
	p.viewTarget, a.cull, a.x = nil, 100, 0
	require.InDelta(t, 9, v.priority(0, 2, 3, false), 1e-5, "no viewpoint")
	require.InDelta(t, 9*0.4, v.priority(0, 102, 3, true), 1e-5)
	require.InDelta(t, 9*0.4, v.priority(0, 2, 103, true), 1e-5)
}

// TestSnapshotsOfWhatMoves: an actor that changes in four Steps, each four behind the last at most, has its numbers kept.
func TestSnapshotsOfWhatMoves(t *testing.T) {
	for _, c := range []struct {
		gaps []int
		kept bool
	}{{[]int{1, 1, 1}, false}, {[]int{1, 1, 1, 1}, true}, {[]int{4, 4, 4, 4}, true}, {[]int{4, 4, 5, 4, 4}, false}, {[]int{4, 4, 5, 4, 4, 4}, true}} {
		w := NewServer(Config{})
		require.NoError(t, w.Register("place", (*place)(nil)))
		require.NoError(t, w.Register("parcel", (*parcel)(nil)))
		a, plain := &parcel{}, &place{}
		require.NoError(t, w.Spawn(a))
		require.NoError(t, w.Spawn(plain))
		a.Line[0], plain.N = 1, 1
		now := time.Duration(0)
		steps := func(n int) {
			for range n {
				now += time.Second / 30
				w.Step(now)
			}
		}
		w.frame = 100
		steps(1)
		for _, gap := range c.gaps[1:] {
			steps(gap - 1)
			a.Line[0]++
			plain.N++
			steps(1)
		}
		require.Equal(t, c.kept, a.rep.snaps != nil, "%v", c.gaps)
		require.Nil(t, plain.rep.snaps, "it has nothing to predict")
		require.EqualValues(t, len(c.gaps), a.rep.count)
		if s := a.rep.snaps; s != nil {
			require.True(t, s.has(a.rep.count))
			require.False(t, s.has(a.rep.count+1))
			require.False(t, s.has(-1))
			require.Equal(t, a.rep.count, s.change(w.frame, a.rep.count))
			require.Equal(t, a.rep.count-1, s.change(w.frame-1, a.rep.count))
		}
	}
}

// TestDepartures: views leave in the order of their times, those that came back meanwhile at their last.
func TestDepartures(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 14))
	var d departures
	var views []*view
	type entry struct {
		v  *view
		at time.Duration
	}
	var want []entry
	for now := time.Duration(0); now < 3000; now++ {
		switch v := (*view)(nil); rng.IntN(4) {
		case 0, 1:
			if len(views) > 10 && rng.IntN(2) == 0 {
				v = views[rng.IntN(len(views))]
			} else {
				v = &view{}
				views = append(views, v)
			}
			v.relevant, v.leaveAt = false, now+20
			d.push(v)
			want = append(want, entry{v, v.leaveAt})
		case 2:
			if len(views) > 0 {
				v = views[rng.IntN(len(views))]
				if v.relevant = true; rng.IntN(3) == 0 {
					v.state = ended
				}
			}
		}
		overdue := 0
		for _, e := range want {
			if e.at <= now {
				overdue++
			}
		}
		require.Equal(t, overdue, d.overdue(now))
		require.Equal(t, overdue > 0, d.due(now))
		for now%3 == 0 {
			got, next := d.pop(now), (*view)(nil)
			for len(want) > 0 && want[0].at <= now && next == nil {
				if e := want[0]; e.v.state != ended && !e.v.relevant && e.v.leaveAt == e.at {
					next = e.v
				}
				want = want[1:]
			}
			if got != next {
				t.Fatalf("at %d", now)
			}
			if got == nil {
				break
			}
		}
		require.Equal(t, len(want), len(d.list)-d.head)
	}
	require.Less(t, cap(d.list), 200)

	d = departures{list: make([]departure, 0, 8)}
	for range 3 {
		d.push(&view{leaveAt: 1})
	}
	d.pop(1)
	d.push(&view{leaveAt: 2})
	require.Equal(t, 1, d.head, "while there is room nothing is moved")
}

// TestShares: all connections do as much of what waits as there is in a Step, and none more than another that has more left.
func TestShares(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 14))
	for range 300 {
		w := &World{}
		waits, total := map[*Peer]int{}, 0
		for range 1 + rng.IntN(20) {
			p := &Peer{}
			waits[p] = rng.IntN(1 << rng.IntN(12))
			total += waits[p]
			w.peers = append(w.peers, p)
		}
		share, most, done, least := w.share(total, func(p *Peer) int { return waits[p] }), max(stepChannels, total/waitingPart), 0, 0
		for _, n := range waits {
			done += min(n, share)
			least += min(n, share-1)
		}
		if total <= most {
			require.Equal(t, total, done)
			continue
		}
		require.True(t, done <= most || share == 1, "%d of %d", done, most)
		more := 0
		for _, n := range waits {
			more += min(n, share+1)
		}
		require.Greater(t, more, most, "%d of %d", done, most)
	}
}

// TestWhoSharesAStep: recordings, and clients that haven't answered, take no part in what a Step opens and closes; nor do actors that wait for Release.
func TestWhoSharesAStep(t *testing.T) {
	w := &World{mayOpen: 5, mayClose: 6, now: 10}
	p := &Peer{world: w, ready: true, opening: make([]*view, 9), holding: 2, leaving: make([]*view, 3)}
	for at := range time.Duration(20) {
		p.going.push(&view{leaveAt: at})
	}
	require.Equal(t, []int{7, 3 + 11, 5, 6}, []int{p.unopened(), p.unclosed(), p.mayOpen(), p.mayClose()})
	p.holding = 10
	require.Zero(t, p.unopened())
	p.ready = false
	require.Equal(t, []int{0, 0}, []int{p.unopened(), p.unclosed()})
	p.ready, p.holding, p.replay = true, 0, true
	require.Equal(t, []int{0, 0, math.MaxInt, math.MaxInt}, []int{p.unopened(), p.unclosed(), p.mayOpen(), p.mayClose()})
}

// TestForgottenCalls: what is due in all Steps of a second, and in more than 30 Steps, is told once.
func TestForgottenCalls(t *testing.T) {
	told := errors.New("forgotten")
	for _, step := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		var failed []error
		w := NewServer(Config{Failed: func(err error) { failed = append(failed, err) }})
		due := false
		w.watch(func() bool { return due }, told)
		now, steps := time.Duration(0), 0
		run := func(until func() bool) {
			for steps = 0; !until() && steps < 3000; steps++ {
				now += step
				w.Step(now)
			}
		}
		run(func() bool { return steps == 40 })
		due = true
		want := max(forgottenSteps+1, int(forgottenAfter/step)+2)
		run(func() bool { return steps == want-1 })
		due = false
		run(func() bool { return steps == 1 })
		require.Empty(t, failed, "it was due for one Step less than a second")
		due = true
		run(func() bool { return len(failed) > 0 })
		require.Equal(t, want, steps, "%v", step)
		run(func() bool { return steps == 200 })
		require.Equal(t, []error{told}, failed)
	}
}

func follow(b *basis, snaps *snapshots, gap int, form layout.Form, past *layout.Past) bool {
	var path wire.Path
	ok := b.follow(snaps, gap, form, past, &path)
	return ok && int(path.Gap) == gap && path.Form == uint8(form)
}

// TestSchemaInParts: each bunch describes as many classes as fit, one at least.
func TestSchemaInParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 14))
	for range 200 {
		w := &World{}
		for range rng.IntN(10) {
			w.classes = append(w.classes, &class{description: make([]byte, rng.IntN(1200))})
		}
		for first, most := 0, 1+rng.IntN(3000); first < len(w.classes); {
			want, n := first+1, len(w.classes[first].description)
			for want < len(w.classes) && n+len(w.classes[want].description) <= most {
				n += len(w.classes[want].description)
				want++
			}
			require.Equal(t, want, w.schemaPart(first, most))
			first = want
		}
	}
}

// TestSchemaBounds: a World takes as many names as it can describe, to the byte.
func TestSchemaBounds(t *testing.T) {
	w := NewServer(Config{})
	require.NoError(t, w.Register("parcel", (*parcel)(nil)))
	for _, c := range []struct {
		described, paths int
		err              error
	}{{0, 0, nil}, {1, 0, ErrManyNames}, {0, 1, ErrManyNames}} {
		o := NewServer(Config{})
		o.described, o.paths = maxSchema-classBytes-w.described+c.described, maxPaths-w.paths+c.paths
		require.ErrorIs(t, o.Register("parcel", (*parcel)(nil)), c.err)
	}
}

// TestAnswerToASchema: which classes a client lacks; an answer to as many others is none.
func TestAnswerToASchema(t *testing.T) {
	bw := bitio.NewWriter(make([]byte, 100))
	writeAnswer(bw, []*remoteClass{{local: &class{}}, {}, {local: &class{}}}, "no")
	for n := range 6 {
		lacks, text, err := readAnswer(bitio.NewReader(bw.Bytes(), bw.Len()), n)
		if n != 3 {
			require.ErrorIs(t, err, errFormat, "%d", n)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []bool{false, true, false}, lacks)
		require.Equal(t, "no", text)
	}
	_, _, err := readAnswer(bitio.NewReader(bw.Bytes(), 4), 3)
	require.Error(t, err)
}

// TestAdaptiveFrequency: the class's own frequency for 2 s without a change, and in 5 s from there to the slowest; after a change, half of the time since the last.
func TestAdaptiveFrequency(t *testing.T) {
	c := &class{interval: 100 * time.Millisecond, slowest: 1100 * time.Millisecond}
	for _, at := range []struct {
		quiet, want int // ms
		changed     bool
	}{{2000, 100, false}, {3000, 300, false}, {4500, 600, false}, {7000, 1100, false}, {90000, 1100, false}, {150, 100, true}, {1000, 500, true}, {90000, 1100, true}} {
		r := &replicated{interval: c.interval, fastest: c.interval, lastChange: time.Second}
		require.False(t, r.adapt(time.Second+time.Duration(at.quiet)*time.Millisecond, c, at.changed))
		require.Equal(t, time.Duration(at.want)*time.Millisecond, r.interval.Round(time.Millisecond), "%+v", at)
	}
}

// TestTimesOfFrames: the length of a Step is known from the last two chunks of which both say more.
func TestTimesOfFrames(t *testing.T) {
	c := &client{}
	_, ok := c.timeOf(10)
	require.False(t, ok)
	for _, h := range []struct{ frame, at, of, want int64 }{
		{10, 100, 10, 100}, {12, 200, 14, 300}, {13, 200, 14, 250}, {11, 150, 14, 250}, {13, 200, 12, 150}, {17, 240, 18, 250}, {16, 900, 17, 240},
	} {
		c.heard(h.frame, time.Duration(h.at))
		at, ok := c.timeOf(h.of)
		require.True(t, ok)
		require.EqualValues(t, h.want, at, "%+v", h)
	}
}

// TestWaitingCalls: whatever waits, each policy of a full queue does what it says, and no call is lost without being counted.
func TestWaitingCalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 14))
	for round := range 25 {
		w := NewServer(Config{})
		type entry struct {
			n, rpc int
			may    bool // be dropped
		}
		var queue []*call
		var want []entry
		most := 1 + rng.IntN(2)*(MaxWaitingCalls+20)
		for n := range 2 * most {
			def := &definition{kind: multicast, reliable: true, overflow: Overflow(rng.IntN(4))}
			c := w.unheld.take()
			c.rpc, c.bits, c.def = rng.IntN(3), n, def
			full := rng.IntN(4) == 0
			ended, dropped := 0, w.Counters.CallsDropped
			got, err := w.await(queue, c, full, "clerk", func(err error) {
				ended++
				require.ErrorIs(t, err, ErrFull)
				require.ErrorContains(t, err, "clerk")
			})
			waits, over, drops := len(want) >= MaxWaitingCalls, false, 0
			add := entry{n, c.rpc, def.overflow == DropOldest}
			switch {
			case def.overflow == Refuse && full, def.overflow == CloseConn && (full || waits), def.overflow == Refuse && waits:
				over = true
			case def.overflow == Coalesce && (full || waits):
				i := slices.IndexFunc(want, func(e entry) bool { return e.rpc == c.rpc })
				if over = i < 0 && waits; i >= 0 {
					want, drops = append(slices.Delete(want, i, i+1), add), 1
				} else if !over {
					want = append(want, add)
				}
			case waits: // the oldest that may be dropped goes
				i := slices.IndexFunc(want, func(e entry) bool { return e.may })
				if over = i < 0; !over {
					want, drops = append(slices.Delete(want, i, i+1), add), 1
				}
			default:
				want = append(want, add)
			}
			require.EqualValues(t, drops, w.Counters.CallsDropped-dropped, "round %d", round)
			if over {
				require.ErrorIs(t, err, ErrFull)
			} else {
				require.NoError(t, err)
				queue = got
			}
			if def.overflow == CloseConn && full {
				require.Equal(t, 1, ended)
			} else {
				require.Zero(t, ended)
			}
			w.unheld.drop(c)
			same := len(want) == len(queue)
			for i, o := range queue {
				same = same && want[i] == entry{o.bits, o.rpc, o.def.overflow == DropOldest} && o.holders == 1
			}
			if !same {
				t.Fatalf("round %d: %d calls after %v, want %v", round, len(queue), def.overflow, want)
			}
		}
		require.Empty(t, w.unheld.dropFirst(queue, len(queue)))
		w.Consistent(t)
	}
}

// TestReceivedRecords: of a client's last records of an actor the one of a frame is found, with its numbers where they were put.
func TestReceivedRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 14))
	s := NewServer(Config{})
	require.NoError(t, s.Register("place", (*parcel)(nil)))
	c := NewClient(Config{})
	require.NoError(t, c.Register("place", (*parcel)(nil)))
	data, n := s.encodeSchema()
	r := bitio.NewReader(data, n)
	r.ReadBits(wire.KindBits)
	list, err := c.readSchema(r)
	require.NoError(t, err)
	type entry struct {
		frame int64
		place int
		mask  layout.Mask
	}
	for range 50 {
		var h received
		var all []entry
		frame := int64(100)
		for range rng.IntN(2 * layout.MaxRecords) {
			frame += int64(rng.IntN(3)) // at times two of a frame
			mask := layout.Mask(rng.IntN(8))
			if h.full() {
				h.grow(list[0].units)
			}
			at := h.push(frame, mask)
			all = append(all, entry{frame, at, mask})
			require.Equal(t, len(all), h.n)
			require.LessOrEqual(t, len(h.entries), layout.MaxRecords)
			require.Less(t, at, len(h.entries))
		}
		kept := all
		if len(h.entries) < len(all) {
			require.Len(t, h.entries, layout.MaxRecords)
			kept = all[len(all)-layout.MaxRecords:]
		}
		for range 100 {
			of, before := frame-int64(rng.IntN(2*layout.MaxRecords)), h.n
			if len(kept) > 0 && rng.IntN(2) == 0 {
				before = h.n - rng.IntN(len(kept))
			}
			var want *entry
			number := 0
			for i := len(all) - len(kept); i < before; i++ {
				if all[i].frame == of {
					want, number = &all[i], i
				}
			}
			e, i := h.find(of, before)
			if want == nil {
				require.Nil(t, e)
				continue
			}
			require.NotNil(t, e)
			require.Equal(t, number, i)
			require.Equal(t, receivedEntry{want.frame, want.mask}, *e)
		}
	}
}

// TestPastOfAPath: a path is found when its records have come and have units that are in the record, and predicts those that are in all of them.
func TestPastOfAPath(t *testing.T) {
	m := &mirror{class: &remoteClass{units: &layout.Remote{}}}
	m.class.units.Deltas = 0b1110
	p := &layout.Past{}
	require.False(t, m.findPast(p, wire.Path{Age: 1}, true, 0b1111, 10), "nothing has come")
	m.history = &received{entries: make([]receivedEntry, 8)}
	for _, e := range []receivedEntry{{1, 0b0110}, {3, 0b1111}, {5, 0b1110}, {7, 0b1011}, {8, 0b0001}} {
		m.history.entries[m.history.n] = e
		m.history.n++
	}
	for _, c := range []struct {
		age, gap        uint8
		form            layout.Form
		predicted       bool
		mask            layout.Mask
		ok              bool
		units, foreseen layout.Mask
		at              []int
	}{
		{3, 0, 0, true, 0b1111, true, 0b1010, 0, []int{3}},
		{2, 0, 0, true, 0b1111, false, 0, 0, nil}, // its units have no delta form
		{3, 0, 0, true, 0b0100, false, 0, 0, nil}, // it hasn't the unit
		{3, 0, 0, true, 0b0001, false, 0, 0, nil},
		{4, 0, 0, true, 0b1111, false, 0, 0, nil}, // none of that frame
		{3, 2, layout.Two, true, 0b1111, true, 0b1010, 0b1010, []int{3, 2}},
		{3, 2, layout.Two, false, 0b1111, true, 0b1010, 0, []int{3}},
		{3, 4, layout.Two, true, 0b1111, true, 0b1010, 0b1010, []int{3, 1}},
		{3, 6, layout.Two, true, 0b1111, true, 0b1010, 0b0010, []int{3, 0}},
		{5, 4, layout.Two, true, 0b0111, true, 0b0110, 0b0110, []int{2, 0}},
		{3, 3, layout.Two, true, 0b1111, false, 0, 0, nil},
	} {
		if ok := m.findPast(p, wire.Path{Age: c.age, Gap: c.gap, Form: uint8(c.form)}, c.predicted, c.mask, 10); ok != c.ok || !ok {
			require.Equal(t, c.ok, ok, "%+v", c)
			continue
		}
		require.Equal(t, []layout.Mask{c.units, c.foreseen}, []layout.Mask{p.Mask, p.Predicted}, "%+v", c)
		require.Equal(t, int(c.age), p.Age)
		require.Equal(t, c.at, p.At[:len(c.at)])
		if c.foreseen != 0 {
			require.Equal(t, []any{int(c.gap), c.form}, []any{p.Gap, p.Form})
		}
	}
}

// TestHalves: the first half of some units, at last none; and messages of so many bunches stay within the most that one may carry.
func TestHalves(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 14))
	for range 500 {
		m := layout.Mask(rng.Uint64())
		if rng.IntN(3) == 0 {
			m = 1 << rng.IntN(64)
		}
		n := bits.OnesCount64(m)
		got := half(m)
		require.Equal(t, n/2, bits.OnesCount64(got))
		require.Zero(t, got&^m)
		require.Less(t, got, m&^got, "those behind are left out")
		if n > 1 && got != 0 && rng.IntN(50) > 0 {
			continue
		}
		bw := bitio.NewWriter(make([]byte, valueBytes*2))
		several := valueBytes * []int{16, 4}[rng.IntN(2)]
		limitValues(bw, m, valueBytes*16, several)
		for bw.WriteBits(0, 32); bw.Err() == nil; bw.WriteBits(0, 32) {
		}
		if n > 1 {
			require.Equal(t, min(several, valueBytes*8), bw.Len())
		} else {
			require.Equal(t, valueBytes*16, bw.Len())
		}
	}
	p := &Peer{out: &lane{}}
	require.Equal(t, []int{0, lanePacket, 3 * lanePacket}, []int{p.most(0), p.most(1), p.most(3)})
	whole := bunch.MaxPayload * 8
	require.Equal(t, whole/lanePacket*lanePacket, p.most(whole/lanePacket))
	require.Equal(t, whole, p.most(whole/lanePacket+1))
	require.Equal(t, whole, p.most(math.MaxInt32))
}

// TestOldValuesAreCopies: the old value that a notify gets shares no memory with the new one, however deep its slices are.
func TestOldValuesAreCopies(t *testing.T) {
	type leaf struct {
		Text string
		Of   []int
	}
	type tree struct {
		n     int
		List  []leaf
		Array [2][]leaf
		Deep  [2]struct{ More [][]int }
		Plain [3]int
		None  []int
		own   []leaf
	}
	grow := func(n int) (v tree) {
		leaves := func() []leaf { return []leaf{{"a", []int{n, n}}, {"b", []int{n}}} }
		v = tree{n: n, List: leaves(), Array: [2][]leaf{leaves(), leaves()}, own: leaves(), Plain: [3]int{n, n, n}}
		v.Deep[1].More = [][]int{{n}, {n, n}}
		return v
	}
	v := grow(1)
	copied := v
	unshare(reflect.ValueOf(&copied).Elem())
	require.Equal(t, grow(1), copied)
	for _, l := range [][]leaf{v.List, v.Array[0], v.Array[1], v.own} {
		for i := range l {
			for j := range l[i].Of {
				l[i].Of[j] = 9
			}
			l[i].Text = "c"
		}
	}
	for _, l := range v.Deep[1].More {
		for j := range l {
			l[j] = 9
		}
	}
	require.Equal(t, grow(1), copied)
	require.Nil(t, copied.None)
	for _, c := range []struct {
		v      any
		shares bool
	}{{1, false}, {"a", false}, {[]int{}, true}, {[2]int{}, false}, {[2][]int{}, true}, {struct{ A, B int }{}, false}, {struct {
		A int
		B [1][]int
	}{}, true}} {
		require.Equal(t, c.shares, shares(reflect.TypeOf(c.v)), "%T", c.v)
	}
}

// TestCallHeads: a call says no more than there is, and no procedure that isn't.
func TestCallHeads(t *testing.T) {
	w := NewServer(Config{})
	for _, c := range []struct {
		rpc, bits uint32
		has       int
		ok        bool
	}{{0, 0, 0, true}, {0, 5, 5, true}, {255, 5, 6, true}, {0, 6, 5, false}, {holeCall, 0, 0, true}, {holeCall + 1, 0, 0, false},
		{0, maxParams * 8, maxParams * 8, true}, {0, maxParams*8 + 1, maxParams*8 + 1, false}, {math.MaxUint32, 0, 0, false}, {0, math.MaxUint32, 99, false}} {
		bw := bitio.NewWriter(make([]byte, maxParams+20))
		bw.WriteIntPacked(c.rpc)
		bw.WriteIntPacked(c.bits)
		for i := 0; i < c.has; i += 8 {
			bw.WriteBits(0xa5>>max(0, 8-(c.has-i)), min(8, c.has-i))
		}
		r := bitio.NewReader(bw.Bytes(), bw.Len())
		id, params, err := w.readCall(r)
		if !c.ok {
			require.ErrorIs(t, err, errFormat, "%+v", c)
			continue
		}
		require.NoError(t, err, "%+v", c)
		require.EqualValues(t, c.rpc, id)
		require.EqualValues(t, c.bits, params.Remaining())
		require.Equal(t, c.has-int(c.bits), r.Remaining())
	}
	r := bitio.NewReader(nil, 0)
	_, _, err := w.readCall(r)
	require.ErrorIs(t, err, errFormat)
	for _, rpc := range []int{0, 127, 128, 255} {
		c := &call{rpc: rpc, data: make([]byte, 100), bits: 713}
		bw := bitio.NewWriter(make([]byte, 200))
		c.write(bw)
		require.Equal(t, bw.Len(), c.size())
	}
}
