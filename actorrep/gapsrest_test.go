package actorrep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/channel"
)

// TestOthersOpenBesideOneThatEnds: an actor whose last channel isn't closed yet has nobody wait who is to be opened behind it.
func TestOthersOpenBesideOneThatEnds(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a, b := &pupil{}, &pupil{}
	require.NoError(t, p.s.Spawn(a))
	require.NoError(t, p.s.Spawn(b))
	p.l.peer.ending = map[netguid.GUID]*channel.Channel{a.guid: {}}
	p.s.Step(p.now + time.Second/30)
	require.False(t, p.l.peer.Has(a))
	require.True(t, p.l.peer.Has(b))
}

// TestUnwantedBeforeItOpened: nothing is kept of an actor that wasn't opened when it is no longer relevant, however long others stay.
func TestUnwantedBeforeItOpened(t *testing.T) {
	p := newPair(t)
	p.s.cfg.RelevantTimeout = time.Hour
	p.serves(t, 4)
	p.l.peer.Hold(func(Actor) bool { return true })
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	p.serve(t)
	require.NotNil(t, p.l.peer.views[a.base()])
	p.l.peer.SetRelevant(a, false)
	require.Nil(t, p.l.peer.views[a.base()])
	p.s.Consistent(t)
}

// cutting is a tape that counts the bits of its records, and has no room for closes when it is shut.
type cutting struct {
	strip
	bits int
	shut bool
}

func (c *cutting) Put(kind bridge.Kind, place uint32, data []byte, bits int) bool {
	if kind == bridge.Records {
		c.bits += bits
	}
	return (!c.shut || kind != bridge.Close) && c.strip.Put(kind, place, data, bits)
}

// newCutting records a world of one pupil with a list.
func newCutting(t *testing.T) (p *pair, r *recording, tape *cutting, a *pupil) {
	p = newPair(t)
	tape = &cutting{strip: strip{t: t, s: p.s, to: p.l.to, copied: map[uint32]bridge.Kind{}}}
	p.s.RemoveConn(p.l.peer)
	r = newRecording(p.s, tape, nil, true).(*recording)
	a = &pupil{}
	for i := range uint32(200) {
		_, err := a.List.Add(i)
		require.NoError(t, err)
	}
	require.NoError(t, p.s.Spawn(a))
	p.record(4)
	return p, r, tape, a
}

func (p *pair) record(frames int) {
	for range frames {
		p.now += time.Second / 30
		p.s.Step(p.now)
	}
}

// TestRecordedListChanges: when a list of an actor changes an element, a recording that has the actor gets that element, not all.
func TestRecordedListChanges(t *testing.T) {
	p, _, tape, a := newCutting(t)
	seen := p.c.Find(a.guid).(*pupil)
	require.Equal(t, 200, seen.List.Len())
	for id := range a.List.All {
		tape.bits = 0
		require.NoError(t, a.List.Set(id, 5000))
		p.record(1)
		now, _ := seen.List.Find(id)
		require.EqualValues(t, 5000, now)
		require.Less(t, tape.bits, 400)
		break
	}
}

// TestCopyTellsOfAnEnd: for a copy the end of an actor for which frames had no room is recorded first.
func TestCopyTellsOfAnEnd(t *testing.T) {
	p, r, tape, a := newCutting(t)
	place := r.ids[a.guid]
	tape.shut = true
	require.NoError(t, p.s.Destroy(a))
	_, ok := r.Copy(place)
	require.False(t, ok)
	tape.shut = false
	copied, ok := r.Copy(place)
	require.True(t, ok)
	require.False(t, copied)
	require.Nil(t, p.c.Find(a.guid))
}

// TestRecordOfAWholePacket: a record that has exactly the bits of a packet goes in one.
func TestRecordOfAWholePacket(t *testing.T) {
	p := newPair(t)
	a := p.newPupil(t)
	p.serves(t, 6)
	for i := range uint8(4) {
		a.Push.Set(i + 1)
		p.l.chunks = nil
		p.serve(t)
		require.Len(t, p.l.chunks, 1)
		if i == 2 { // the next is as long
			p.l.narrow = p.l.chunks[0]
			p.l.free = p.l.narrow
		}
	}
	require.Equal(t, p.l.narrow, p.l.chunks[0])
	require.Zero(t, p.s.Counters.Large)
}

type quiver struct {
	Base
	Bag fastarray.List[Ref[*pupil]] `net:""`
}

// TestNobodyWaitsUntold: references of a list without callbacks don't wait for an actor that has gone, which nobody would be told of.
func TestNobodyWaitsUntold(t *testing.T) {
	s, c := NewServer(Config{RelevantTimeout: -1}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil), RPCs{"Poke": poke}))
		require.NoError(t, w.Register("quiver", (*quiver)(nil)))
	}
	l, now := addLane(t, s, c), time.Duration(0)
	serves := func() {
		for range 5 {
			now += time.Second / 30
			s.Step(now)
			for range 3 {
				l.deliver()
			}
			c.Step(now)
		}
	}
	a, q := &pupil{}, &quiver{}
	require.NoError(t, s.Spawn(a))
	_, err := q.Bag.Add(RefTo(a))
	require.NoError(t, err)
	require.NoError(t, s.Spawn(q))
	serves()
	heard := 0
	for _, listens := range []bool{false, true} {
		if mine := c.Find(q.guid).(*quiver); listens {
			mine.Bag.OnAdd = func(fastarray.ID, Ref[*pupil]) { heard++ }
			mine.Bag.OnChange = func(fastarray.ID, Ref[*pupil], Ref[*pupil]) { heard++ }
		}
		l.peer.SetRelevant(a, false)
		s.cfg.Relevant = func(_ *Peer, o Actor) bool { return o != Actor(a) }
		serves()
		require.Nil(t, c.Find(a.guid))
		require.Equal(t, listens, len(c.client.waits) == 1)
		s.cfg.Relevant = nil
		l.peer.SetRelevant(a, true)
		serves()
		require.NotNil(t, c.Find(a.guid))
		require.Empty(t, c.client.waits)
	}
	require.Positive(t, heard)
}
