package channel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// finisher is a handler with so many bunches left.
type finisher struct {
	Nop
	t    *testing.T
	left int
}

func (f *finisher) Finish(ch *Channel) (done bool) {
	if f.left == 0 {
		return true
	}
	f.left--
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true, NoMerge: true})
	require.NoError(f.t, err)
	return f.left == 0
}

// TestFinishersSendWhatTheyHave: at an orderly end each Finisher of an open channel sends what it has left, wherever it stands among handlers that have nothing; until
// then that is undelivered, also when nothing waits for its ack.
func TestFinishersSendWhatTheyHave(t *testing.T) {
	s := newStub(t, false, noControl)
	open := func(h Handler) *Channel {
		ch, err := s.table.Open(stubGame, h)
		require.NoError(t, err)
		return ch
	}
	open(s)
	closing := open(&finisher{t: t, left: 5})
	s.send(closing, 1)
	require.NoError(t, closing.Close(bunch.Destroyed))
	first := open(&finisher{t: t, left: 1})
	open(s)
	second := open(&finisher{t: t, left: 2})
	for s.table.Unacked() > 0 {
		s.ackFrom(len(s.sent) - 2)
	}
	s.sent = nil
	s.m.Shut()
	require.Equal(t, []Undelivered{{first.Index(), stubGame, 1}, {second.Index(), stubGame, 1}}, s.m.Undelivered())
	_, err := first.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.ErrorIs(t, err, ErrClosed, "nobody else sends any more")
	require.False(t, s.m.Finish())
	require.Equal(t, []Undelivered{{first.Index(), stubGame, 1}, {second.Index(), stubGame, 2}}, s.m.Undelivered())
	require.True(t, s.m.Finish())
	require.True(t, s.m.Finish())
	require.Len(t, s.sent, 3)
	s.ackFrom(0)
	require.Empty(t, s.m.Undelivered())
}

// TestFinishersThatAreGone: a table without Finishers has nothing left, and nobody is asked whose channel closes or whose connection has ended.
func TestFinishersThatAreGone(t *testing.T) {
	s := newStub(t, false, noControl)
	s.open(stubGame)
	s.m.Shut()
	require.True(t, s.m.Finish())
	for _, gone := range []func(s *stub, ch *Channel){
		func(s *stub, ch *Channel) { s.m.End() },
		func(s *stub, ch *Channel) { ch.closing = true },
		func(s *stub, ch *Channel) { s.table.ended = true },
	} {
		s := newStub(t, false, noControl)
		f := &finisher{t: t, left: 1}
		ch, err := s.table.Open(stubGame, f)
		require.NoError(t, err)
		s.m.Shut()
		gone(s, ch)
		require.True(t, s.m.Finish())
		require.Equal(t, 1, f.left)
	}
}

// TestOpenWaitsNoLongerThanItMay: an unreliable bunch goes without a channel's open only while that one is in a packet that isn't known to be lost, or a copy has room; one that was lost
// refusedOften times is what the peer refuses.
func TestOpenWaitsNoLongerThanItMay(t *testing.T) {
	s := newStub(t, false, noControl)
	s.free = 8000
	ch := s.open(stubGame)
	s.send(ch, 1)
	small, large := &bunch.Header{Bits: 8}, &bunch.Header{}
	open := ch.opening()
	large.Bits = ch.table.single - open.header.Bits - bunch.MaxHeaderBits
	require.True(t, ch.mayRide(open, large), "to the bit")
	open.lost, open.waiting = 1, false
	require.False(t, ch.openWaits(large))
	large.Bits++
	require.False(t, ch.mayRide(open, large))
	require.True(t, ch.openWaits(large))
	open.lost = refusedOften - 1
	require.False(t, ch.openWaits(small))
	open.lost = refusedOften
	require.True(t, ch.openWaits(small))
	open.lost, open.waiting = 0, true
	require.True(t, ch.openWaits(small))
}

// TestOneThatWasShortGetsMoreSlowly: what is acked makes room for as much more, for an eighth once the peer was short, and for nothing while it is.
func TestOneThatWasShortGetsMoreSlowly(t *testing.T) {
	s := newStub(t, false, nil)
	tb := s.table
	tb.moreMayBegin(800)
	require.Equal(t, 800, tb.begunRoom)
	tb.wasShort = true
	tb.moreMayBegin(800)
	require.Equal(t, 900, tb.begunRoom)
	tb.short = true
	tb.moreMayBegin(800)
	require.Equal(t, 900, tb.begunRoom)
}

// answerer is a handler that has nothing left, and answers.
type answerer struct {
	Nop
	t       *testing.T
	answers int
}

func (*answerer) Finish(*Channel) bool { return true }

func (a *answerer) Answer(ch *Channel) {
	a.answers++
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.NoError(a.t, err)
}

// TestAnswersChannelsThatOpenedMeanwhile: channels that the peer opens after the orderly end began have answers as well, and those of them that it closes again take no memory.
func TestAnswersChannelsThatOpenedMeanwhile(t *testing.T) {
	a := &answerer{t: t}
	s := newStub(t, true, func(c *Config) {
		c.Types[1].Accept = func(*Channel) Handler { return a }
	})
	s.accepts(header(0, 1, bunch.Control, opening), "hello")
	s.m.Shut()
	require.True(t, s.m.Finish())
	require.NoError(t, s.m.CloseControl())
	for i := range 1000 {
		s.accepts(header(1, 2*i+1, stubGame, opening), "x")
		s.accepts(header(1, 2*i+2, stubGame, closes), "")
	}
	require.Less(t, cap(s.table.finishing.done), 20)
	s.accepts(header(3, 1, stubGame, opening), "x")
	require.True(t, s.m.Finish())
	require.Zero(t, a.answers, "nobody refuses the close")
	for range 2 {
		s.lose(len(s.sent) - 1)
		s.m.Pump()
	}
	require.True(t, s.m.Finish())
	require.Equal(t, 1, a.answers)
}
