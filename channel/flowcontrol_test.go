package channel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// counted checks that what channels with holes have sent is counted as recountAhead counts it, and returns it.
func counted(s *stub) int {
	ahead, blocked := recountAhead(s.t, s.table)
	require.Equal(s.t, ahead, s.table.ahead)
	require.Equal(s.t, blocked, s.table.blocked.waiting)
	return ahead
}

// TestBlockedByAHole: a channel with a lost bunch sends as much behind it as the peer has room for, and goes on when that arrives; others go on all the time.
func TestBlockedByAHole(t *testing.T) {
	s := newStub(t, false, func(c *Config) { noControl(c); c.PeerMemory = minMaxMemory })
	ch, other := s.open(stubGame), s.open(stubGame)
	s.send(ch, 800)
	s.ack(0)
	s.send(ch, 800)
	s.lose(1)
	s.m.Pump() // it goes again
	first := len(s.sent)
	for range 100 {
		s.send(ch, 800)
	}
	behind := len(s.sent) - first
	require.InDelta(t, s.table.peerRoom(), counted(s), 1500)
	require.Less(t, behind, 50)
	require.True(t, ch.isBlocked())
	require.Zero(t, s.table.Waiting())
	s.send(other, 800)
	require.Equal(t, first+behind+1, len(s.sent))
	require.False(t, other.isBlocked())
	for i := first; i < first+behind; i++ {
		s.ack(i) // the peer keeps them
	}
	counted(s)
	require.True(t, ch.isBlocked())
	s.ack(first - 1)
	require.Zero(t, counted(s))
	require.Positive(t, s.table.Waiting())
	s.m.Pump()
	require.Equal(t, first+100+1, len(s.sent))
	require.False(t, ch.isBlocked())
}

// blocked is so many channels that have something to send, and wait for room. Each has sent some before, of which the oldest was lost and is in flight again: where
// among all that was sent that is.
func (s *stub) blocked(count, sent, each int) (chs []*Channel, holes []int) {
	for range count {
		ch := s.open(stubGame)
		s.send(ch, 10)
		s.ack(len(s.sent) - 1)
		for range sent {
			s.send(ch, 800)
		}
		s.lose(len(s.sent) - sent)
		s.m.Pump()
		chs, holes = append(chs, ch), append(holes, len(s.sent)-1)
	}
	for _, ch := range chs {
		for range each {
			s.send(ch, 800)
		}
		require.True(s.t, ch.isBlocked())
	}
	return chs, holes
}

// TestBlockedBehindBlocked: a channel that may go on is waited for though others wait before it, and when it has gone, nobody is.
func TestBlockedBehindBlocked(t *testing.T) {
	s := newStub(t, false, func(c *Config) { noControl(c); c.PeerMemory = minMaxMemory })
	chs, holes := s.blocked(3, 24, 5)
	require.Zero(t, s.table.Waiting())
	first, _ := s.table.blocked.first()
	require.Equal(t, chs[0].index, first.index)
	s.slow = true
	s.ack(holes[1])
	require.Positive(t, s.table.Waiting(), "one may go")
	n := len(s.sent)
	s.slow = false
	s.m.Pump()
	require.Equal(t, n+5, len(s.sent))
	require.False(t, chs[1].isBlocked())
	require.True(t, chs[0].isBlocked() && chs[2].isBlocked())
	require.Zero(t, s.table.Waiting())
}

// TestUnblockedHaveTheirTurns: who may go on doesn't wait for all that others have to send.
func TestUnblockedHaveTheirTurns(t *testing.T) {
	s := newStub(t, false, func(c *Config) { noControl(c); c.PeerMemory = minMaxMemory })
	chs, holes := s.blocked(2, 25, 20)
	s.slow = true
	other := s.open(stubGame)
	for range 100 {
		s.send(other, 10)
	}
	s.ack(holes[0])
	s.ack(holes[1])
	n := len(s.sent)
	s.slow, s.budget = false, n+30
	s.m.Pump()
	turns := map[*Channel]int{}
	for _, w := range s.sent[n:] {
		turns[w.ch]++
	}
	require.Equal(t, []int{10, 10, 10}, []int{turns[chs[0]], turns[chs[1]], turns[other]})
}

// TestClosedWhileBlocked: entries of channels that the peer closes while they wait for it are dropped.
func TestClosedWhileBlocked(t *testing.T) {
	s := newStub(t, false, func(c *Config) { noControl(c); c.PeerMemory = minMaxMemory })
	chs, _ := s.blocked(3*maxStale, 1, 1)
	s.slow = true
	for i, ch := range chs {
		s.table.remove(ch, bunch.Destroyed)
		left := len(chs) - 1 - i
		require.LessOrEqual(t, s.table.blocked.len(), left+max(left, maxStale))
	}
}

// TestMergedAhead: what is merged into a bunch behind a lost one counts.
func TestMergedAhead(t *testing.T) {
	s := newStub(t, false, noControl)
	ch := s.open(stubGame)
	s.send(ch, 10)
	s.ack(0)
	s.send(ch, 10)
	s.lose(1)
	s.m.Pump()
	say := func(n int) {
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, n), Reliable: true})
		require.NoError(t, err)
	}
	say(100)
	before := counted(s)
	s.extends = true
	say(100)
	require.EqualValues(t, 1, s.table.Counters.Merged)
	require.Equal(t, before+128, counted(s))
}

// TestOnlyControl: reliable bunches of other channels wait until they may be sent, and then go in turns.
func TestOnlyControl(t *testing.T) {
	s := newStub(t, false, noControl)
	s.m.OnlyControl(true)
	var chs []*Channel
	for range 100 {
		ch := s.open(stubGame)
		s.send(ch, 10)
		s.send(ch, 10)
		chs = append(chs, ch)
	}
	require.NoError(t, chs[0].Close(bunch.Destroyed))
	_, err := chs[1].SendBunch(&bunch.Out{Data: []byte{1}})
	require.ErrorIs(t, err, ErrNotSent)
	s.m.Pump()
	require.Empty(t, s.sent)
	require.Zero(t, s.table.Waiting())
	s.m.OnlyControl(false)
	require.Positive(t, s.table.Waiting())
	s.m.Pump()
	require.Len(t, s.sent, 201)
	for i, ch := range chs {
		require.Same(t, ch, s.sent[i].ch)
	}
}

// TestPeerRoom: what a peer has for early bunches is three quarters of what half of its MaxMemory leaves besides the share for parts and the channels that this end opened. Bits beyond a
// byte count as one more.
func TestPeerRoom(t *testing.T) {
	s := newStub(t, false, noControl)
	require.Equal(t, 9<<20/4, s.table.peerRoom())
	s.m.SetPeerMemory(minMaxMemory)
	require.Equal(t, 48<<10, s.table.peerRoom())
	for range 50 {
		s.open(stubGame)
	}
	room := 64<<10 - 50*openCost
	require.Equal(t, room-room/4, s.table.peerRoom())
	for i := range uint32(50) {
		s.accepts(header(2+2*i, 1, stubGame, opening), "1")
	}
	require.Equal(t, room-room/4, s.table.peerRoom(), "its own channels cost it nothing")
	for range 100 {
		s.open(stubGame)
	}
	require.Equal(t, leastRoom, s.table.peerRoom())
	require.Equal(t, earlyCost+128, peerCost(&outRec{header: bunch.Header{Bits: 8*64 + 1}}))
}
