package channel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// refusedChannels is channels of which n bunches each, of so many bytes, were lost refusedOften and wait for their turn. Their opens are acked.
func (s *stub) refusedChannels(count, n, size int) (chs []*Channel) {
	for range count {
		ch := s.open(stubGame)
		s.send(ch, 1)
		s.ack(len(s.sent) - 1)
		chs = append(chs, ch)
	}
	for _, ch := range chs {
		for range n {
			s.send(ch, size)
		}
	}
	for k := range refusedOften {
		for i := len(s.sent) - count*n; i < len(s.sent); i++ {
			s.lose(i)
		}
		if k < refusedOften-1 {
			s.m.Pump()
		}
	}
	for _, ch := range chs {
		require.True(s.t, ch.refused)
		require.EqualValues(s.t, n, ch.numRefused)
	}
	return chs
}

// order is the channels of what was written since.
func (s *stub) order(from int) (chs []*Channel) {
	for _, w := range s.sent[from:] {
		chs = append(chs, w.ch)
	}
	return chs
}

// TestRefusedShareNoPacket: a turn of a refused channel is a packet of its own, with as many of its oldest bunches as fit to the bit.
func TestRefusedShareNoPacket(t *testing.T) {
	for _, v := range []struct{ bits, each int }{{3 * (800 + bunch.MaxHeaderBits), 3}, {3*(800+bunch.MaxHeaderBits) - 1, 2}, {1, 1}} {
		s := newStub(t, false, noControl)
		s.refusedChannels(1, 6, 100)
		n := len(s.sent)
		s.packet = v.bits
		s.m.Pump()
		require.Len(t, s.sent, n+6)
		var want []int
		for i := 0; i < 6; i += v.each {
			want = append(want, n+i, n+i+v.each)
		}
		require.Equal(t, want, s.ends, "before and behind each turn")
		for i, w := range s.sent[n:] {
			require.EqualValues(t, s.sent[n].seq+int64(i), w.seq)
		}
		require.Zero(t, s.table.Waiting())
	}
}

// TestRefusedWaitForTheirPacket: when nothing more may be sent once the packet at hand is, the turn isn't over.
func TestRefusedWaitForTheirPacket(t *testing.T) {
	s := newStub(t, false, noControl)
	s.refusedChannels(1, 1, 100)
	n := len(s.sent)
	s.endFills = true
	s.m.Pump()
	require.Len(t, s.sent, n)
	require.Equal(t, 1, s.table.Waiting())
	s.slow, s.endFills = false, false
	s.m.Pump()
	require.Len(t, s.sent, n+1)
}

// TestLostOpensShareAPacket: one lost open doesn't mean that the peer refuses it. Its channel takes turns a bunch at a time, and ends no packet.
func TestLostOpensShareAPacket(t *testing.T) {
	s := newStub(t, false, noControl)
	ch, other := s.open(stubGame), s.open(stubGame)
	for range 3 {
		s.send(ch, 100)
	}
	s.packet, s.free = 1<<20, 1<<20
	s.slow = true
	for i := range 3 {
		s.lose(i)
		s.send(other, 100)
	}
	require.Equal(t, 6, s.table.Waiting())
	s.slow = false
	s.m.Pump()
	require.Equal(t, []*Channel{other, ch, other, ch, other, ch}, s.order(3))
	require.Empty(t, s.ends)
}

// TestRefusedTakeTurnsInARow: without news each has maxTurns, one after the other; then they wait for their oldest bunch's fate, and what
// waits so long counts as waiting for nothing that the connection could do.
func TestRefusedTakeTurnsInARow(t *testing.T) {
	s := newStub(t, false, noControl)
	chs := s.refusedChannels(3, 20, 100)
	n := len(s.sent)
	require.Equal(t, 60, s.table.Waiting())
	for i := range 3 * maxTurns {
		s.budget = len(s.sent) + 1
		s.m.Pump()
		require.Equal(t, []*Channel{chs[i%3]}, s.order(n+i))
		require.Len(t, s.table.refused.list[s.table.refused.head:], min(3, 3*maxTurns-1-i))
	}
	s.budget = 0
	require.Zero(t, s.table.Waiting())
	require.Zero(t, QueueLen(s.table))
	s.m.Pump()
	require.Len(t, s.sent, n+3*maxTurns)

	s.lose(n + 3) // the second bunch of the first channel
	require.Zero(t, s.table.Waiting(), "its oldest is still under way")
	require.Zero(t, QueueLen(s.table))
	s.lose(n)
	require.Equal(t, 20-maxTurns+2, s.table.Waiting())
	m := len(s.sent)
	s.m.Pump()
	require.Len(t, s.sent, m+maxTurns/2, "fewer each time")
	require.Equal(t, s.sent[n].seq, s.sent[m].seq)
	require.Zero(t, s.table.Waiting())
}

// TestRefusedLeaveTheirPlace: a channel that has sent all it had has no place in the row, though more may not be sent now.
func TestRefusedLeaveTheirPlace(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.refusedChannels(1, 1, 100)[0]
	s.budget = len(s.sent) + 1
	s.m.Pump()
	require.Zero(t, QueueLen(s.table))
	require.False(t, ch.inTurn)
}

// TestAckedAmidATurn: a turn whose bunches have all come meanwhile is over.
func TestAckedAmidATurn(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.refusedChannels(1, 2, 100)[0]
	n := len(s.sent)
	for i := range 2 {
		s.m.Acked(ch, s.sent[n-2+i].seq, int64(1001+n-2+i)) // a copy
	}
	require.Zero(t, s.table.Waiting())
	require.True(t, ch.inTurn)
	s.m.Pump()
	require.Len(t, s.sent, n)
	require.Zero(t, QueueLen(s.table))
	require.False(t, ch.inTurn)
}

// TestRefusedShareWithWhatIsNew: what was never sent has as many bits as the last turn of a refused channel, however many of those there were.
func TestRefusedShareWithWhatIsNew(t *testing.T) {
	s := newStub(t, false, noControl)
	other := s.open(stubGame)
	s.send(other, 1)
	s.ack(0)
	ch := s.refusedChannels(1, 9, 100)[0]
	s.packet = 3 * (800 + bunch.MaxHeaderBits)
	s.budget = len(s.sent) + 4 // two turns, as a packet isn't parted
	s.m.Pump()
	n := len(s.sent)
	require.Equal(t, []*Channel{ch, ch, ch, ch, ch, ch}, s.order(n-6))
	for range 5 {
		s.send(other, 100)
	}
	s.budget = 0
	s.m.Pump()
	require.Equal(t, []*Channel{other, other, other, ch, ch, ch, other, other}, s.order(n))
}

// TestNewOnRefusedWaitsForOthers: what is new on a channel that is refused goes out when nothing is on those that aren't, in the order of the channels.
func TestNewOnRefusedWaitsForOthers(t *testing.T) {
	for _, more := range []int{0, 1} { // than are passed over
		s := newStub(t, false, noControl)
		refused := s.refusedChannels(mostPassed+more, 1, 100)
		s.table.refused = turns{} // their oldest bunch is on its way
		ch := s.open(stubGame)
		n := len(s.sent)
		s.slow = true
		for _, r := range refused {
			s.send(r, 100)
		}
		for range 3 {
			s.send(ch, 100)
		}
		s.slow = false
		s.m.Pump()
		var got, want []uint32
		for _, c := range s.order(n) {
			got = append(got, c.index)
		}
		if more > 0 {
			want = append(want, refused[mostPassed].index)
		}
		want = append(want, ch.index, ch.index, ch.index)
		for _, r := range refused[:mostPassed] {
			want = append(want, r.index)
		}
		require.Equal(t, want, got)
		s.table.fresh.holds(t, 0)
		require.Zero(t, s.table.fresh.waiting)
	}
}

// TestDueOfRefusedWaitForTheirTurn: bunches that were lost before their channel was found to be refused don't go at once.
func TestDueOfRefusedWaitForTheirTurn(t *testing.T) {
	s := newStub(t, false, noControl)
	ch, other := s.open(stubGame), s.open(stubGame)
	s.send(ch, 1)
	s.send(other, 1)
	s.ackFrom(0)
	s.send(ch, 100)
	for range refusedOften - 1 {
		s.lose(len(s.sent) - 1)
		s.m.Pump()
	}
	oldest := len(s.sent) - 1
	s.send(ch, 100)
	s.slow = true
	s.lose(oldest + 1)
	require.Equal(t, 1, s.table.due.len())
	s.lose(oldest)
	for range 3 {
		s.send(other, 100)
	}
	require.Equal(t, 5, s.table.Waiting())
	s.slow = false
	n := len(s.sent)
	s.m.Pump()
	require.Equal(t, []*Channel{other, ch, other, ch, other}, s.order(n))
	require.Equal(t, s.sent[oldest].seq, s.sent[n+1].seq)
	require.Zero(t, s.table.Waiting())
}

// TestWhatCountsAsRefused: a channel whose oldest bunch was lost refusedOften is, until that one is acked; not one whose other bunches were lost, nor
// the control channel.
func TestWhatCountsAsRefused(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.ack(0)
	s.send(ch, 100)
	s.send(ch, 100)
	for k := range 2 * refusedOften {
		s.lose(len(s.sent) - 1)
		require.False(t, ch.refused, "%d", k)
		s.m.Pump()
	}
	last := len(s.sent) - 1
	s.lose(1)
	for range refusedOften - 1 {
		require.False(t, ch.refused)
		s.m.Pump()
		h, _, _ := s.m.Copy(ch, s.sent[1].seq, 5)
		require.NotNil(t, h)
		s.lose(len(s.sent) - 1)
	}
	require.True(t, ch.refused)
	s.m.Pump()
	h, _, _ := s.m.Copy(ch, s.sent[1].seq, 5)
	require.Nil(t, h, "no copy of it spoils other packets")
	s.table.short = true
	s.ack(last)
	require.True(t, ch.refused, "the peer is short: the oldest is still under way")
	s.ack(len(s.sent) - 1)
	require.False(t, ch.refused)
	require.Zero(t, ch.out.len())

	s = newStub(t, false, nil)
	control, game := s.open(bunch.Control), s.open(stubGame)
	s.send(control, 1)
	s.send(game, 1)
	for range 2 * refusedOften {
		n := len(s.sent)
		s.slow = true
		s.lose(n - 2)
		s.lose(n - 1)
		require.False(t, control.refused)
		require.True(t, game.refused, "its open")
		s.slow = false
		s.m.Pump()
		require.Equal(t, []*Channel{control, game}, s.order(n))
	}
}

// TestLossIsNoRefusal: a channel isn't refused while the peer takes what comes early, however often its oldest bunch is lost. Parts of payloads
// that it takes say nothing.
func TestLossIsNoRefusal(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.ack(0)
	s.send(ch, 100)
	oldest := s.sent[1].seq
	early := len(s.sent)
	for range 3*lostMost + 1 {
		s.send(ch, 100)
	}
	part := len(s.sent)
	s.send(ch, 3000)
	require.True(t, s.sent[part].h.Partial)
	last := 1
	lose := func() {
		s.lose(last)
		if last = len(s.sent); ch.refused {
			return
		}
		s.m.Pump()
		require.Equal(t, oldest, s.sent[last].seq)
	}
	for range 3 * lostMost {
		lose()
		s.ack(early)
		early++
		require.False(t, ch.refused)
		require.Zero(t, ch.out.at(oldest).lost)
	}
	for range refusedOften {
		require.False(t, ch.refused)
		lose()
	}
	require.True(t, ch.refused, "nothing was acked meanwhile")
	s.ack(part)
	require.True(t, ch.refused, "parts say nothing")
	s.ack(early)
	require.False(t, ch.refused)
	s.m.Pump()
	require.Equal(t, oldest, s.sent[last].seq, "it doesn't wait for its turn")
}

// TestTakenSendsAllAtOnce: what waited for the turns of a channel goes at once when its oldest bunch has come, before what is new.
func TestTakenSendsAllAtOnce(t *testing.T) {
	s := newStub(t, false, noControl)
	other := s.open(stubGame)
	s.send(other, 1)
	s.ack(0)
	ch := s.refusedChannels(1, 20, 100)[0]
	n := len(s.sent)
	s.budget = n + 1
	s.m.Pump()
	s.send(other, 100)
	s.send(ch, 100)
	s.ack(n)
	require.Equal(t, 21, s.table.Waiting())
	s.budget = 0
	s.m.Pump()
	order := s.order(n + 1)
	require.Len(t, order, 21)
	for _, c := range order[:19] {
		require.Same(t, ch, c)
	}
	require.Contains(t, order[19:], other)
	require.Empty(t, s.ends[2:], "in packets with others")
}

// TestShortPeerTakesStepByStep: while the peer is short, two bunches of a channel are due for each that it takes, and one that it refuses then has
// all turns again, however often it was refused before.
func TestShortPeerTakesStepByStep(t *testing.T) {
	s := newStub(t, false, noControl)
	chs := s.refusedChannels(2, 20, 100)
	s.table.short, s.table.vain = true, mostVain
	for seq := chs[0].out.first; seq < chs[0].out.next; seq++ {
		chs[0].out.at(seq).lost = lostMost
	}
	n := len(s.sent)
	s.m.Pump()
	require.Same(t, chs[0], s.sent[n].ch, "a turn")
	n = len(s.sent)
	s.ack(n - 1)
	s.m.Pump()
	require.Equal(t, n+2, len(s.sent))
	require.Equal(t, 2, chs[0].holes(), "the peer has none of them")
	counted(s)
	s.ack(n)
	s.ack(n + 1)
	s.m.Pump()
	require.Equal(t, n+6, len(s.sent))
	for _, w := range s.sent[n:] {
		require.Same(t, chs[0], w.ch)
	}
	require.False(t, chs[0].refused)
	s.lose(n + 2)
	s.m.Pump()
	require.True(t, chs[0].refused)
	require.EqualValues(t, maxTurns, chs[0].turns)
	require.Equal(t, n+6, len(s.sent), "not before its turn")
	for i := n + 3; chs[0].out.len() > 0; i++ {
		s.now += mostVain * time.Millisecond
		s.m.Pump()
		require.Less(t, i, len(s.sent))
		s.ack(i)
	}
	require.Zero(t, chs[0].numRefused)
	require.Zero(t, s.table.Waiting())
}

// TestWhenAPeerIsShort: from manyVain turns in vain on, of oldest bunches that were lost most, until few enough are; and what that changes.
func TestWhenAPeerIsShort(t *testing.T) {
	s := newStub(t, false, noControl)
	chs := s.refusedChannels(2, 3, 100)
	tb := s.table
	require.Zero(t, tb.vain, "they were lost refusedOften only")
	tb.begunRoom = 1000
	for i := 1; i < manyVain; i++ {
		tb.inVain()
		require.Equal(t, i, tb.vain)
		require.False(t, tb.short)
	}
	require.Equal(t, 1000, tb.begunRoom)
	tb.turned(100)
	require.Equal(t, 100, tb.freshTurn)
	_, ok := s.m.NextTurn()
	require.False(t, ok)
	tb.inVain()
	require.True(t, tb.short && tb.wasShort)
	require.Zero(t, tb.begunRoom)

	tb.turned(100)
	require.Equal(t, 100*vainShare, tb.freshTurn)
	at, ok := s.m.NextTurn()
	require.True(t, ok)
	require.Equal(t, s.now+manyVain*time.Millisecond, at)
	waiting := tb.refused.waiting
	tb.refused.waiting = 0
	_, ok = s.m.NextTurn()
	require.False(t, ok, "none waits")
	tb.refused.waiting = waiting
	s.now = at
	_, ok = s.m.NextTurn()
	require.False(t, ok, "it is now")

	ch := chs[0]
	tb.vain = 40
	tb.refuse(ch, ch.out.at(ch.out.first+1))
	require.Equal(t, 40, tb.vain, "not its oldest bunch")
	tb.refuse(ch, ch.out.at(ch.out.first))
	require.Equal(t, 41, tb.vain)
	tb.vain = 40
	tb.notInVain()
	require.Equal(t, 29, tb.vain)
	require.True(t, tb.short)
	tb.notInVain()
	require.Zero(t, tb.vain, "none is refused any more")
	require.False(t, tb.short)
}

// TestRefusedAndClosed: a peer that refuses channels and closes them doesn't make their queue long, nor its count wrong.
func TestRefusedAndClosed(t *testing.T) {
	s := newStub(t, false, noControl)
	var chs []*Channel
	for range 3 * maxStale {
		ch := s.open(stubGame)
		s.send(ch, 1)
		chs = append(chs, ch)
	}
	keep := s.refusedChannels(1, 1, 100)[0]
	s.slow = true
	for i, ch := range chs {
		s.lose(i)
		require.True(t, ch.inTurn)
		require.Equal(t, 2, s.table.Waiting())
		s.table.remove(ch, bunch.Destroyed)
		require.Equal(t, 1, s.table.Waiting())
		require.LessOrEqual(t, QueueLen(s.table), 2+maxStale)
		require.EqualValues(t, QueueLen(s.table)-1, s.table.refused.stale)
	}
	require.Positive(t, s.table.refused.stale)
	s.slow = false
	n := len(s.sent)
	s.m.Pump()
	require.Equal(t, []*Channel{keep}, s.order(n))
	require.Zero(t, s.table.refused.stale)
	require.Zero(t, QueueLen(s.table))
}

// TestClosedAmidTheirTurns: channels that are closed while it is the turn of the refused ones hold up nobody.
func TestClosedAmidTheirTurns(t *testing.T) {
	s := newStub(t, false, noControl)
	refused, other := s.open(stubGame), s.open(stubGame)
	s.send(refused, 1)
	s.send(other, 1)
	s.ack(1)
	s.slow = true
	s.lose(0)
	for range 3 {
		s.send(other, 100)
	}
	s.slow = false
	s.budget = len(s.sent) + 1
	s.m.Pump()
	require.Equal(t, []*Channel{other}, s.order(2))
	require.Negative(t, s.table.freshTurn)
	s.table.remove(refused, bunch.Destroyed)
	s.budget = 0
	s.m.Pump()
	require.Equal(t, []*Channel{other, other, other}, s.order(2))
}
