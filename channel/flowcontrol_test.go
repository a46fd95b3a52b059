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
