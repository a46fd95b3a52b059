package actorrep

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/fastarray"
)

type folio struct {
	Base
	Pages [24]string `net:"cap=900"`
}

func (f *folio) write(with byte) {
	for i := range f.Pages {
		f.Pages[i] = strings.Repeat(string(with+byte(i%3)), 700)
	}
}

// newFolio is a server's and a client's world of pupils and a folio.
func newFolio(t *testing.T, rpcs RPCs) (p *pair, a, got *folio) {
	s, c := NewServer(Config{}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil), RPCs{"Poke": poke}))
		require.NoError(t, w.Register("folio", (*folio)(nil), rpcs))
	}
	p = &pair{s: s, c: c, l: addLane(t, s, c)}
	a = &folio{}
	require.NoError(t, s.Spawn(a))
	p.steps(9)
	p.l.scarce = true
	return p, a, c.Find(a.guid).(*folio)
}

// TestLargeChangesUseWhatIsLeft: while changes larger than a packet wait, and others take less than the bandwidth, no Step leaves any, whose turn it ever is.
func TestLargeChangesUseWhatIsLeft(t *testing.T) {
	p, a, got := newFolio(t, nil)
	var small []*pupil
	for range 5 {
		small = append(small, &pupil{})
		require.NoError(t, p.s.Spawn(small[len(small)-1]))
	}
	p.steps(9)
	a.write('a')
	p.steps(1)
	v, steps := p.l.peer.views[a.base()], 0
	for ; v.flags&inTurns != 0; steps++ {
		require.Less(t, steps, 2*len(a.Pages))
		for i, o := range small {
			o.N = int32(1000*steps + i)
		}
		p.steps(1)
		require.True(t, v.flags&inTurns == 0 || p.l.bits <= 0 || p.l.room(v) == 0, "%d bits are left in Step %d", p.l.bits, steps)
		for _, o := range small {
			require.Zero(t, p.l.peer.views[o.base()].flags&pending, "small changes don't wait")
		}
	}
	require.Greater(t, steps, 15)
	p.steps(4)
	require.Equal(t, a.Pages, got.Pages)
}

// TestCallsBesideLargeChanges: an unreliable call of an actor goes at once, while changes of it that are larger than a packet wait.
func TestCallsBesideLargeChanges(t *testing.T) {
	ran := 0
	hint := MulticastRPC(func(c Call, _ *folio, n uint8) error {
		if !c.World.server {
			ran++
		}
		return nil
	})
	p, a, got := newFolio(t, RPCs{"Hint": hint})
	a.write('a')
	p.steps(2)
	v := p.l.peer.views[a.base()]
	for n := range uint8(5) {
		require.NotZero(t, v.flags&inTurns, "the changes wait")
		require.NoError(t, hint.Call(a, n))
		calls := p.s.Counters.CallsSent
		p.steps(1)
		require.Equal(t, calls+1, p.s.Counters.CallsSent)
	}
	p.steps(60)
	p.c.Step(p.now)
	require.Equal(t, 5, ran)
	require.Equal(t, a.Pages, got.Pages)
}

// TestLossOfOldValues: a value isn't said to have waited for a loss when only an older one was lost, which a newer one had followed.
func TestLossOfOldValues(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a := p.newPupil(t)
	v := p.l.peer.views[a.base()]
	for i, lost := range []bool{true, false} {
		p.l.packet, p.l.drop, p.l.lost = p.l.packet+1, lost, lost
		a.N = int32(i + 1)
		p.steps(1)
	}
	for range 3 {
		p.l.deliver()
	}
	require.EqualValues(t, 1, p.s.Counters.Resent)
	require.Zero(t, v.dirty&v.allowed)
	a.N = 3
	p.s.Step(p.now + time.Second/30)
	require.NotEqual(t, ReasonLost, p.l.peer.sent.at(v.last).why)
	p.steps(4)
	require.EqualValues(t, 3, p.there(a).N)
}

type shelf struct {
	Base
	Words [90]uint32             `net:""`
	A, B  fastarray.List[uint32] `net:""`
}

// TestChangesBetweenLargeOnes: values that change while others of their actor, which were sent with them, are sent reliably come too: single words of an array
// and single elements of a list.
func TestChangesBetweenLargeOnes(t *testing.T) {
	s, c := NewServer(Config{}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("shelf", (*shelf)(nil)))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	a := &shelf{}
	require.NoError(t, s.Spawn(a))
	p.steps(9)
	p.l.scarce = true
	for i := range a.Words {
		a.Words[i] = uint32(i+1) << 24
	}
	for i := range uint32(150) {
		for _, l := range []*fastarray.List[uint32]{&a.A, &a.B} {
			_, err := l.Add(i << 24)
			require.NoError(t, err)
		}
	}
	v := p.l.peer.views[a.base()]
	touch := func(n uint32) {
		a.Words[5] = n
		for id := range a.A.All {
			require.NoError(t, a.A.Set(id, n))
			break
		}
	}
	for n, b := uint32(1), v.b.class.layout.FieldMask("B"); v.rest != b; n++ {
		require.Less(t, n, uint32(20))
		p.steps(1)
	}
	touch(7)
	p.steps(1) // the other list goes
	require.Zero(t, v.rest)
	require.NotZero(t, v.versions.promised)
	p.l.scarce, p.l.starved = false, true
	p.steps(6)
	require.Zero(t, v.versions.promised, "all is acked")
	require.NotZero(t, v.dirty&v.allowed, "and the newer changes weren't sent")
	p.l.starved = false
	p.steps(9)
	got := c.Find(a.guid).(*shelf)
	require.Equal(t, a.Words, got.Words)
	for _, l := range [][2]*fastarray.List[uint32]{{&a.A, &got.A}, {&a.B, &got.B}} {
		require.Equal(t, l[0].Len(), l[1].Len())
		for id, n := range l[0].All {
			there, _ := l[1].Find(id)
			require.Equal(t, n, there)
		}
	}
}

// TestHeldTakeNoShare: actors that wait for Release take nothing from what a Step opens for other connections.
func TestHeldTakeNoShare(t *testing.T) {
	s := NewServer(Config{Relevant: func(p *Peer, a Actor) bool { return p.User == a.(*pupil).N }})
	require.NoError(t, s.Register("pupil", (*pupil)(nil)))
	var lanes []*lane
	for n := range int32(2) {
		c := NewClient(Config{})
		require.NoError(t, c.Register("pupil", (*pupil)(nil)))
		l := addLane(t, s, c)
		l.peer.User = n
		lanes = append(lanes, l)
	}
	lanes[0].peer.Hold(func(Actor) bool { return true })
	now := time.Duration(0)
	step := func() {
		now += time.Second / 30
		s.Step(now)
		for _, l := range lanes {
			l.deliver()
		}
	}
	spawn := func(n int32, many int) {
		for range many {
			require.NoError(t, s.Spawn(&pupil{N: n}))
		}
	}
	spawn(0, 2*stepChannels)
	for range 6 {
		step()
	}
	require.Zero(t, lanes[0].peer.Len())
	spawn(1, stepChannels)
	step()
	require.Equal(t, stepChannels, lanes[1].peer.Len())
}

// TestOpeningsUseWhatIsLeft: likewise while many actors wait to be opened.
func TestOpeningsUseWhatIsLeft(t *testing.T) {
	p := newPair(t)
	var small []*pupil
	for range 5 {
		small = append(small, p.newPupil(t))
	}
	p.l.scarce = true
	for range 200 {
		a := &pupil{}
		for i := range uint32(20) {
			_, err := a.List.Add(i << 24)
			require.NoError(t, err)
		}
		require.NoError(t, p.s.Spawn(a))
	}
	for steps := 0; len(p.l.peer.opening) > 0 || steps == 0; steps++ {
		for i, o := range small {
			o.N = int32(1000*steps + i)
		}
		p.steps(1)
		require.True(t, len(p.l.peer.opening) == 0 || p.l.bits <= 0, "%d bits are left in Step %d", p.l.bits, steps)
		for _, o := range small {
			require.True(t, steps == 0 || p.l.peer.views[o.base()].flags&pending == 0, "small changes don't wait in Step %d", steps)
		}
	}
}

// TestLossInATurn: lost values of an actor whose changes larger than a packet are being sent go with these, however seldom it is updated.
func TestLossInATurn(t *testing.T) {
	p, a, got := newFolio(t, nil)
	v := p.l.peer.views[a.base()]
	a.Pages[20] = "lost"
	p.l.packet, p.l.drop, p.l.lost = p.l.packet+1, true, true
	p.steps(1)
	p.l.packet, p.l.drop, p.l.lost = p.l.packet+1, false, false
	for i := range 10 {
		a.Pages[i] = strings.Repeat("a", 700)
	}
	p.steps(1)
	require.NotZero(t, v.flags&inTurns)
	p.l.peer.SetUpdateEvery(a, MaxUpdateEvery)
	for steps := 0; v.flags&inTurns != 0; steps++ {
		require.Less(t, steps, 40)
		p.steps(1)
	}
	require.EqualValues(t, 1, p.s.Counters.Resent)
	p.steps(2)
	require.True(t, a.Pages == got.Pages)
}

// TestAfterALargeChange: what changes after a change larger than a packet doesn't look as if it had waited as that has, and the loss of an older record has nothing sent again.
func TestAfterALargeChange(t *testing.T) {
	say := MulticastRPC(func(Call, *folio, uint8) error { return nil }, Reliable)
	p, a, got := newFolio(t, RPCs{"Say": say})
	v := p.l.peer.views[a.base()]
	a.Pages[0] = "old"
	p.l.packet, p.l.drop, p.l.lost = p.l.packet+1, true, true
	p.steps(1)
	p.l.packet, p.l.drop, p.l.lost = p.l.packet+1, false, false
	p.l.scarce = false
	for i := range 10 {
		a.Pages[i] = strings.Repeat("a", 700)
	}
	p.s.Step(p.now)
	require.Zero(t, v.flags&inTurns)
	require.NotEqual(t, -1, v.last)
	sent := p.s.Counters.Updates
	p.steps(4)
	require.EqualValues(t, 1, p.s.Counters.Resent)
	require.Equal(t, sent, p.s.Counters.Updates)
	require.True(t, a.Pages == got.Pages)
	large := func() {
		p.l.scarce = true
		a.write('b')
		p.steps(1)
		p.l.scarce = false
		for steps := 0; v.flags&inTurns != 0; steps++ {
			require.Less(t, steps, 20)
			p.steps(1)
		}
	}
	called := func() {
		p.l.starved = true
		a.Pages[2] = "called"
		p.steps(1)
		require.NoError(t, say.Call(a, 1))
		p.steps(1)
		p.l.starved = false
	}
	for i, sends := range []func(){large, called} {
		sends()
		require.Zero(t, v.dirty&v.allowed)
		a.Pages[1] = strings.Repeat("n", i)
		p.s.Step(p.now)
		require.Equal(t, ReasonSent, p.l.peer.sent.at(v.last).why, "%d", i)
		p.steps(4)
	}
}

// TestNoRoomIsOver: Explain says what an actor waits for now, not what it waited for before.
func TestNoRoomIsOver(t *testing.T) {
	p := newPair(t)
	p.steps(4)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	p.l.full = true
	p.steps(2)
	require.Equal(t, ReasonNoRoom, p.s.Explain(p.l.peer, a).Reason)
	p.l.full, p.l.starved = false, true
	p.steps(1)
	require.Equal(t, ReasonWaiting, p.s.Explain(p.l.peer, a).Reason)

	p, f, _ := newFolio(t, nil)
	f.write('a')
	p.steps(1)
	v := p.l.peer.views[f.base()]
	p.l.flying[v] += laneRoom
	p.steps(1)
	require.Equal(t, ReasonNoRoom, p.s.Explain(p.l.peer, f).Reason)
	p.l.flying[v] -= laneRoom
	p.l.scarce, p.l.starved = false, true
	p.steps(1)
	require.Equal(t, ReasonStarved, p.s.Explain(p.l.peer, f).Reason)
}

// TestLongWaits: an observer is told of a change that has waited for bandwidth for six Steps, whether it fits a packet or is larger.
func TestLongWaits(t *testing.T) {
	p, f, _ := newFolio(t, nil)
	small := &pupil{}
	require.NoError(t, p.s.Spawn(small))
	p.steps(9)
	f.write('a')
	p.steps(1)
	small.N++
	p.l.scarce, p.l.starved = false, true
	for step := range 2 * longWait {
		p.steps(1)
		for i, b := range []*Base{small.base(), f.base()} {
			v := p.l.peer.views[b]
			require.Equal(t, [...]viewFlags{pending, inTurns}[i], v.flags&(pending|inTurns))
			require.Equal(t, step+i >= longWait, v.lacks(), "%d in Step %d", i, step)
		}
	}
}

// TestTurnsAreShares: over many Steps each kind has what it wants, or three fifths of what those have that have most, and no bandwidth is left while one wants more. No
// kind waits later for what it had when others wanted less.
func TestTurnsAreShares(t *testing.T) {
	const bandwidth, steps = 1000, 600
	for _, wants := range [][kinds]int{
		{100, 5000, 0}, {300, 5000, 5000}, {600, 5000, 0}, {950, 5000, 0}, {1000, 5000, 5000}, {950, 0, 5000}, {5000, 100, 0}, {5000, 0, 400}, {5000, 5000, 5000}, {300, 200, 100},
	} {
		var s turns
		var had, waiting [kinds]int
		for step := range 2 * steps {
			if step == steps {
				had = [kinds]int{}
			}
			left := bandwidth
			serve := func(kind int) {
				n := min(waiting[kind], left)
				left, waiting[kind], had[kind], s.had[kind] = left-n, waiting[kind]-n, had[kind]+n, s.had[kind]+n
			}
			for kind := range kinds {
				waiting[kind] += wants[kind]
			}
			waiting[updates] = wants[updates] // a value that changes again is sent once
			for _, kind := range []int{openings, halves} {
				if s.first(kind) {
					serve(kind)
				}
			}
			serve(updates)
			rest := []int{openings, halves}
			if s.ahead[halves] < s.ahead[openings] {
				slices.Reverse(rest)
			}
			for _, kind := range rest {
				serve(kind)
			}
			for kind := range kinds {
				s.short[kind] = waiting[kind] > 0
			}
			s.end()
			require.LessOrEqual(t, slices.Max(s.ahead[:]), 2*bandwidth, "%d in Step %d: %d", wants, step, s.ahead)
		}
		sum, most := 0, slices.Max(had[:])
		for kind, n := range had {
			sum += n
			require.True(t, n >= wants[kind]*steps*19/20 || n >= most*3/5, "of %d, %d have %d", kind, wants, had)
		}
		require.GreaterOrEqual(t, sum, min(bandwidth, wants[updates]+wants[openings]+wants[halves])*steps*99/100, "%d", wants)
	}
}

// TestLargeChangesBesideOpenings: beside openings that would take all there is, and no updates, a change larger than a packet has about half, and they have the rest.
func TestLargeChangesBesideOpenings(t *testing.T) {
	p, a, got := newFolio(t, nil)
	a.write('a')
	p.steps(1)
	v, was, has, steps := p.l.peer.views[a.base()], p.l.peer.views[a.base()].total, 0, 0
	for ; v.flags&inTurns != 0; steps++ {
		require.Less(t, steps, 150, "%d bits of it", v.total-was)
		for range 40 {
			require.NoError(t, p.s.Spawn(&pupil{}))
		}
		p.steps(1)
	}
	for b := range p.s.All {
		if p.l.peer.Has(b) {
			has++
		}
	}
	require.Greater(t, has, 10*steps/2)
	p.steps(4)
	require.Equal(t, a.Pages, got.Pages)
	require.True(t, p.l.peer.turns.short[openings])
	for b := range p.s.All {
		if !p.l.peer.Has(b) {
			require.NoError(t, p.s.Destroy(b))
		}
	}
	p.steps(1)
	require.False(t, p.l.peer.turns.short[openings], "none waits any more")
}

// TestSmallBesideALargeChange: values behind a change that is larger than a packet don't wait for it.
func TestSmallBesideALargeChange(t *testing.T) {
	p, a, _ := newFolio(t, nil)
	p.l.scarce = false
	small := &pupil{}
	require.NoError(t, p.s.Spawn(small))
	p.steps(9)
	a.write('a')
	small.N++
	p.steps(1)
	require.NotZero(t, p.l.peer.views[a.base()].flags&inTurns)
	require.Zero(t, p.l.peer.views[small.base()].flags&pending)
}

// TestAfterALargeRecord: a record that is much smaller than its actor's last one leaves the rest of the bandwidth, and of the packet, to other actors, unless that is little
// beside another chunk's head.
func TestAfterALargeRecord(t *testing.T) {
	for _, c := range []struct {
		bytes, packet int
		all           bool
	}{{1, 400, true}, {180, lanePacket, true}, {194, lanePacket, false}} {
		p, a, got := newFolio(t, nil)
		p.l.scarce = false
		var small []*pupil
		for range 12 {
			small = append(small, &pupil{})
			require.NoError(t, p.s.Spawn(small[len(small)-1]))
		}
		p.steps(9)
		a.Pages[0] = strings.Repeat("a", 700)
		p.steps(1)
		p.l.scarce, p.l.narrow, p.l.free, p.l.chunks = true, c.packet, c.packet, nil
		a.Pages[0] = strings.Repeat("b", c.bytes)
		for i, o := range small {
			o.N = int32(i + 1)
		}
		saturated := p.s.Counters.Saturated
		p.steps(1)
		for _, o := range small {
			require.Equal(t, c.all, p.l.peer.views[o.base()].flags&pending == 0)
		}
		sum := p.l.chunks[0]
		if c.all {
			sum += p.l.chunks[1] + bunchMargin
		}
		require.LessOrEqual(t, sum, c.packet)
		require.Equal(t, c.all, p.s.Counters.Saturated == saturated)
		p.steps(4)
		require.Equal(t, a.Pages, got.Pages)
	}
}
