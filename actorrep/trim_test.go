package actorrep

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// TestSortViews: dense ids, sparse ones, few and many, sorted already or not.
func TestSortViews(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 18))
	k := newWorker()
	for range 2000 {
		n, spread := 1+rng.IntN(100), 1+rng.IntN(3*maxSpread)
		var views []*view
		for _, id := range rng.Perm(n * spread)[:n] {
			views = append(views, &view{id: uint32(id + 1)})
		}
		want := slices.Clone(views)
		slices.SortFunc(want, byID)
		if k.sort(views); !slices.Equal(want, views) {
			t.Fatalf("%d views of %d ids aren't sorted", n, n*spread)
		}
	}
	ids := func(ids ...uint32) (views []*view) {
		for _, id := range ids {
			views = append(views, &view{id: id})
		}
		return views
	}
	for i, c := range []struct {
		views []*view
		table bool // by id
	}{{ids(1, 2, 3, 4, 5, 6, 7, 8), false}, {ids(7, 6, 5, 4, 3, 2, 1), false}, {ids(8, 7, 6, 5, 4, 3, 2, 1), true},
		{ids(8*maxSpread-1, 7, 6, 5, 4, 3, 2, 1), true}, {ids(8*maxSpread, 7, 6, 5, 4, 3, 2, 1), false}} {
		of := newWorker()
		of.sort(c.views)
		require.True(t, slices.IsSortedFunc(c.views, byID), i)
		require.Equal(t, c.table, len(of.byID) > 0, "only many ids that are dense and not in order have a table: %d", i)
	}
	if len(k.ids) > len(k.byID)/32+1 {
		t.Errorf("%d words of marks for %d ids", len(k.ids), len(k.byID))
	}
	if slices.ContainsFunc(k.byID, func(v *view) bool { return v != nil }) {
		t.Error("views are kept")
	}
}

// TestSentRingKeepsWhatIsInFlight: whatever room it gets and gives back, records stay at their places.
func TestSentRingKeepsWhatIsInFlight(t *testing.T) {
	var s sentRing
	v := &view{last: -1}
	for round := range 200 {
		for range round * 7 % 500 {
			s.next().v = v
			s.at(s.tail).count = s.tail
			s.push()
		}
		for range round * 11 % 700 {
			if s.head < s.tail {
				s.head++
			}
		}
		most := int(s.tail - s.head)
		s.trim(most * (1 + round%3))
		if most > 64 && len(s.ring) > 16*most {
			t.Fatalf("room for %d, with %d at most", len(s.ring), most)
		}
		for i := s.head; i < s.tail; i++ {
			if r := s.at(i); r.count != i {
				t.Fatalf("place %d has the record of %d", i, r.count)
			}
		}
	}
	s.head = s.tail
	s.trim(0)
	if len(s.ring) > 0 {
		t.Errorf("an idle one keeps %d", len(s.ring))
	}
	s.next().v = v
	s.push()
	if s.at(s.tail-1).v != v {
		t.Error("it can't be used again")
	}
}

// TestSentRingIsMovedSeldom: a ring is halved while it is larger than 64 and than four times the most that was needed. The packets in flight are moved to the front when their
// list is full.
func TestSentRingIsMovedSeldom(t *testing.T) {
	for most, want := range map[int]int{1: 64, 15: 64, 16: 64, 17: 64, 32: 128, 33: 128, 64: 256, 65: 256, 127: 256, 128: 512, 200: 512} {
		s := sentRing{ring: make([]record, 512)}
		s.trim(most)
		require.Len(t, s.ring, want, "%d", most)
	}
	s := sentRing{packets: make([]sentPacket, 0, 4)}
	for i := range int64(3) {
		s.sent(i, 10*i+10)
	}
	for packet, first := range []int{1, 2} {
		require.EqualValues(t, 10*packet+10, s.settled(int64(packet)))
		require.Equal(t, first, s.first)
	}
	s.sent(3, 40)
	require.Equal(t, 2, s.first, "there is room behind them")
	s.sent(4, 50)
	require.Zero(t, s.first)
	require.Equal(t, []sentPacket{{2, 30}, {3, 40}, {4, 50}}, s.packets)
}

// TestLean: what is kept has the same contents, and at most twice the room of the most that was needed.
func TestLean(t *testing.T) {
	s := append(make([]int, 0, 1000), 1, 2, 3)
	if got := lean(s, 300); cap(got) != 1000 {
		t.Errorf("room for %d of 1000 was taken that a third of them needed", cap(got))
	}
	if got := lean(s, 100); len(got) != 3 || got[2] != 3 || cap(got) != 200 {
		t.Errorf("%v, %d", got, cap(got))
	}
	if got := lean(s, 0); len(got) != 3 || cap(got) > 64 {
		t.Errorf("%v, %d", got, cap(got))
	}
}

// TestFewGaps: as long as few of many actors have gone the others keep their places in the list, so that one end doesn't cost as much as all actors.
func TestFewGaps(t *testing.T) {
	w := NewServer(Config{})
	require.NoError(t, w.Register("place", (*place)(nil)))
	var all []*place
	for range 200 {
		all = append(all, &place{})
		require.NoError(t, w.Spawn(all[len(all)-1]))
	}
	for i, a := range all[:100] {
		require.NoError(t, w.Destroy(a))
		require.Equal(t, 199, all[199].slot, "%d have gone", i+1)
	}
	require.NoError(t, w.Destroy(all[100]))
	require.Equal(t, 98, all[199].slot)
	require.Len(t, w.actors, 99)
	w.Consistent(t)
}

// TestRoomForFates: a connection on several cores keeps room for as many fates of packets as it was told of in a Step lately, and no more.
func TestRoomForFates(t *testing.T) {
	p := newPair(t)
	l := p.l.peer
	told := func(n int) int {
		for i := range n {
			l.fates = append(l.fates, fate{packet: int64(i), lost: i%2 == 0})
		}
		l.learnFates()
		l.peaks.steps = trimEvery - 1
		l.trim()
		return cap(l.fates)
	}
	most := told(400)
	require.GreaterOrEqual(t, most, 400)
	require.Equal(t, most, told(300))
	require.Less(t, told(1), 100)
}

// TestFramesThatWrapShareNothing: what was encoded 2^32 Steps ago isn't taken for what is encoded now.
func TestFramesThatWrapShareNothing(t *testing.T) {
	w := NewServer(Config{})
	require.NoError(t, w.Register("place", (*place)(nil)))
	a := &place{}
	require.NoError(t, w.Spawn(a))
	k := newWorker()
	for _, frame := range []uint32{1, 2} {
		w.frame = frame
		k.begin(w)
		k.cache[a.slot] = cached{frame, 1}
		require.EqualValues(t, 1, k.first(a.base()))
	}
	for _, frame := range []uint32{1<<32 - 1, 2} {
		w.frame = frame
		k.begin(w)
		require.Zero(t, k.first(a.base()))
	}
}

// TestPromisedVersions: the ack of a reliable bunch says nothing of the groups that are sent reliably after it.
func TestPromisedVersions(t *testing.T) {
	v := &view{b: &Base{class: &class{layout: &layout.Layout{Groups: 0b110, Fasts: 1}}}}
	v.versions = newVersions(v.b.class.layout)
	s := v.versions
	s.promised, s.sent[0], s.later[0] = 0b011, 5, 4
	v.keep()
	require.Equal(t, []int64{5, 0}, s.known)
	require.EqualValues(t, 4, s.keys[0])
	s.sent[0], s.sent[1], s.later[0] = 9, 9, 8
	v.keep()
	require.Equal(t, []int64{5, 0}, s.known)
	require.EqualValues(t, 4, s.keys[0])
	s.promised = 0b100
	v.keep()
	require.Equal(t, []int64{5, 9}, s.known)
}

// TestOnlyReferencesAreLookedThrough: when actors come and go a client looks through the references that have a notify, and nothing else.
func TestOnlyReferencesAreLookedThrough(t *testing.T) {
	p := newPair(t)
	for _, c := range p.c.classes {
		require.NotZero(t, c.tellsRefs)
		require.Zero(t, c.tellsRefs&^c.layout.Referring)
	}
	require.NoError(t, p.c.Register("place", (*place)(nil)))
	require.Zero(t, p.c.classes[1].tellsRefs)
}
