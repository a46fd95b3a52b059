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

// answerer is a finisher that the peer needs answers of, one bunch each time.
type answerer struct {
	finisher
	answers int
}

func (a *answerer) Answer(ch *Channel) {
	a.answers++
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{2}, Reliable: true, NoMerge: true})
	require.NoError(a.t, err)
}

// TestAnswerersGoOn: who has nothing left answers while another has, and later when the close of the connection was lost twice, which is how a peer refuses it; otherwise nobody who
// goes on holds up the end. Who has something left isn't asked for answers, nor is a Finisher that gives none or one whose channel closes.
func TestAnswerersGoOn(t *testing.T) {
	s := newStub(t, false, noControl)
	all := []*answerer{}
	for _, left := range []int{1, 0, 3} {
		all = append(all, &answerer{finisher: finisher{t: t, left: left}})
	}
	var chs []*Channel
	for _, h := range []Handler{all[0], all[1], all[2], &finisher{t: t, left: 1}} {
		ch, err := s.table.Open(stubGame, h)
		require.NoError(t, err)
		s.send(ch, 1)
		chs = append(chs, ch)
	}
	s.ackFrom(0)
	s.m.Shut()
	answers := func(want ...int) {
		t.Helper()
		for i, a := range all {
			require.Equal(t, want[i], a.answers, "%d", i)
		}
	}
	require.False(t, s.m.Finish())
	answers(1, 1, 0)
	require.False(t, s.m.Finish())
	answers(2, 2, 0)
	require.True(t, s.m.Finish(), "what was sent isn't acked")
	answers(3, 3, 1)
	_, err := chs[0].SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.ErrorIs(t, err, ErrClosed, "only in Answer")
	s.ackFrom(4)
	require.True(t, s.m.Finish(), "there is no channel 0")
	answers(3, 3, 1)
	require.NoError(t, s.m.CloseControl())
	for lost := range 3 {
		require.True(t, s.m.Finish(), "lost %d times", lost)
		n := 3 + max(0, lost-1)
		answers(n, n, n-2)
		i := len(s.sent) - 1
		for ; s.sent[i].ch.Index() != 0; i-- {
			s.ack(i)
		}
		s.lose(i)
		s.m.Pump()
	}
	chs[1].closing = true
	require.True(t, s.m.Finish())
	answers(5, 4, 3)
}

// TestAnswersBesideAnOpenControl: an open channel 0 of which much was lost is no close that is refused.
func TestAnswersBesideAnOpenControl(t *testing.T) {
	s := newStub(t, false, nil)
	a := &answerer{finisher: finisher{t: t}}
	ch, err := s.table.Open(stubGame, a)
	require.NoError(t, err)
	s.send(ch, 1)
	s.send(s.open(bunch.Control), 1)
	for range 5 {
		s.lose(len(s.sent) - 1)
		s.m.Pump()
	}
	s.m.Shut()
	s.table.finishers().answers = 2 // as many as aren't acked
	require.True(t, s.m.Finish())
	require.Zero(t, a.answers)
}

// TestAnswersWhileAnythingIsUnacked: who has nothing left answers while what was to be sent isn't acked, and then no more, so that a peer that goes on doesn't hold up the end.
func TestAnswersWhileAnythingIsUnacked(t *testing.T) {
	s := newStub(t, false, nil)
	a := &answerer{finisher: finisher{t: t}}
	ch, err := s.table.Open(stubGame, a)
	require.NoError(t, err)
	s.send(s.open(bunch.Control), 1)
	for range 3 {
		s.send(ch, 1)
	}
	s.m.Shut()
	for i := range 5 {
		require.True(t, s.m.Finish())
		require.Equal(t, i+1, a.answers)
	}
	for i := range 4 {
		s.ack(i)
	}
	for range 3 {
		require.True(t, s.m.Finish())
		require.Equal(t, 5, a.answers, "only answers aren't acked")
		require.False(t, s.m.Drained())
	}
	s.ackFrom(4)
	require.True(t, s.m.Drained())
	require.Equal(t, 5, a.answers)
}

// TestAnswersOfBeforeDontCount: what was answered while another had something left is no reason to answer no more while that isn't acked.
func TestAnswersOfBeforeDontCount(t *testing.T) {
	s := newStub(t, false, noControl)
	a, f := &answerer{finisher: finisher{t: t}}, &finisher{t: t, left: 10}
	for _, h := range []Handler{a, f} {
		ch, err := s.table.Open(stubGame, h)
		require.NoError(t, err)
		s.send(ch, 1)
	}
	s.ackFrom(0)
	s.m.Shut()
	for range 10 {
		s.m.Finish()
	}
	require.Equal(t, 10, a.answers)
	require.Len(t, s.sent, 22)
	for i := 2; i <= 15; i++ { // seven of each
		s.ack(i)
	}
	require.True(t, s.m.Finish())
	require.Equal(t, 11, a.answers)
}

// TestDrained: all is sent and acked, or while only the control channel may send, what it has sent.
func TestDrained(t *testing.T) {
	s := newStub(t, false, nil)
	s.m.OnlyControl(true)
	f := &finisher{t: t, left: 1}
	game, err := s.table.Open(stubGame, f)
	require.NoError(t, err)
	s.send(game, 1)
	require.True(t, s.m.Drained(), "without a channel 0")
	s.send(s.open(bunch.Control), 1)
	require.Len(t, s.sent, 1)
	require.False(t, s.m.Drained())
	s.ack(0)
	require.True(t, s.m.Drained())
	s.m.Shut()
	require.True(t, s.m.Drained())
	require.Equal(t, 1, f.left, "nobody is asked")

	s.m.OnlyControl(false)
	s.m.Pump()
	s.ackFrom(1)
	require.Zero(t, s.table.Unacked())
	f.left = 2
	require.False(t, s.m.Drained(), "one has something left, though all is acked")
	require.Zero(t, s.table.Unacked()-1)
	s.ack(len(s.sent) - 1)
	require.False(t, s.m.Drained())
	require.Zero(t, f.left)
	require.False(t, s.m.Drained(), "all have sent what they had, which isn't acked")
	s.ack(len(s.sent) - 1)
	require.True(t, s.m.Drained())
}

// TestPeersCloseWaits: the peer's close is refused while a Finisher has something left, though all is acked, and taken then.
func TestPeersCloseWaits(t *testing.T) {
	s := newStub(t, false, nil)
	s.send(s.open(bunch.Control), 1)
	f := &finisher{t: t, left: 2}
	game, err := s.table.Open(stubGame, f)
	require.NoError(t, err)
	s.send(game, 1)
	s.ackFrom(0)
	s.m.Shut()
	for left := 1; left >= 0; left-- {
		nak, err := s.receive(header(0, 1, bunch.Control, closes), "")
		require.NoError(t, err)
		require.True(t, nak)
		require.Zero(t, s.controlEnded)
		require.Equal(t, left == 0, s.m.Finish())
		s.ack(len(s.sent) - 1)
	}
	s.accepts(header(0, 1, bunch.Control, closes), "")
	require.Equal(t, 1, s.controlEnded)
}

// TestAnswersChannelsThatOpenedMeanwhile: channels that the peer opens after the orderly end began have answers as well, and those of them that it closes again take no memory.
func TestAnswersChannelsThatOpenedMeanwhile(t *testing.T) {
	a := &answerer{finisher: finisher{t: t}}
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

// greedy is a finisher that sends as long as there is bandwidth.
type greedy struct{ finisher }

func (g *greedy) Finish(ch *Channel) (done bool) {
	for g.left > 0 && ch.Conn().IsNetReady() {
		g.finisher.Finish(ch)
	}
	return g.left == 0
}

// TestFinishersAreFirstInTurn: of those that want more than the bandwidth each is first in turn. Nobody loses his place while there is enough, or while there was none from the beginning.
func TestFinishersAreFirstInTurn(t *testing.T) {
	s := newStub(t, false, noControl)
	var chs []*Channel
	for range 3 {
		ch, err := s.table.Open(stubGame, &greedy{finisher{t: t, left: 5}})
		require.NoError(t, err)
		s.send(ch, 1)
		chs = append(chs, ch)
	}
	one, err := s.table.Open(stubGame, &finisher{t: t, left: 6})
	require.NoError(t, err)
	s.send(one, 1)
	s.ackFrom(0)
	s.m.Shut()
	turn := func(bunches int, want ...int) {
		t.Helper()
		s.sent, s.readyFor = nil, bunches
		require.False(t, s.m.Finish())
		for i, n := range want {
			got := 0
			for _, w := range s.sent {
				if w.ch == chs[i] {
					got++
				}
			}
			require.Equal(t, n, got, "channel %d", i)
		}
		s.ackFrom(0)
	}
	turn(2, 2, 0, 0)
	turn(2, 0, 2, 0)
	turn(2, 0, 0, 2)
	s.readyFor = 1
	s.sent = make([]written, 1) // there is no bandwidth
	require.False(t, s.m.Finish())
	s.sent = s.sent[1:]
	s.ackFrom(0)
	turn(1, 0, 0, 0) // the last one's turn, which takes no more than it has
	turn(4, 3, 1, 0)
}

// TestOpenedIntoTheEnd: who is no Answerer, and is opened by the peer after the orderly end began, is left alone, and before that an Answerer isn't noted twice.
func TestOpenedIntoTheEnd(t *testing.T) {
	handlers := []Handler{&answerer{finisher: finisher{t: t, left: 1}}, Nop{}}
	s := newStub(t, true, func(c *Config) {
		c.Types[1].Accept = func(*Channel) Handler {
			h := handlers[0]
			handlers = handlers[1:]
			return h
		}
	})
	s.accepts(header(0, 1, bunch.Control, opening), "hello")
	s.accepts(header(1, 1, stubGame, opening), "x")
	require.Nil(t, s.table.finishing)
	s.m.Shut()
	s.accepts(header(3, 1, stubGame, opening), "x")
	require.Len(t, s.table.finishing.left, 1)
	require.Empty(t, s.table.finishing.done)
	require.True(t, s.m.Finish())
}

// granter is a handler that has something to say to the peer when it is asked, as a stream's credit.
type granter struct {
	Nop
	finished, answered []error
}

func (*granter) say(ch *Channel) error {
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	return err
}

func (g *granter) Finish(ch *Channel) bool {
	g.finished = append(g.finished, g.say(ch))
	return g.finished[len(g.finished)-1] == nil
}

func (g *granter) Answer(ch *Channel) { g.answered = append(g.answered, g.say(ch)) }

// TestWhatOpensMeanwhileHoldsNothingUp: a peer that goes on to open channels, as it hasn't heard of the end, doesn't put it off.
func TestWhatOpensMeanwhileHoldsNothingUp(t *testing.T) {
	g := &granter{}
	s := newStub(t, true, func(c *Config) {
		c.Types[1].Accept = func(*Channel) Handler { return g }
	})
	s.accepts(header(0, 1, bunch.Control, opening), "hello")
	s.m.Shut()
	for i := range uint32(50) {
		s.accepts(header(2*i+1, 1, stubGame, opening), "x")
		require.Len(t, g.finished, int(i)+1)
		require.ErrorIs(t, g.finished[i], ErrClosed)
		require.True(t, s.m.Drained())
	}
	require.Empty(t, g.answered)
	require.NoError(t, s.m.CloseControl())
	for range 2 {
		s.lose(len(s.sent) - 1)
		s.m.Pump()
	}
	require.True(t, s.m.Finish())
	require.Len(t, g.answered, 50)
	require.NoError(t, g.answered[49])
}

// leaver is a finisher that never sends, and notes NumOutRec as its channel is closed.
type leaver struct {
	Nop
	counts *[]int
}

func (*leaver) Finish(*Channel) (done bool) { return false }

func (l *leaver) Closed(ch *Channel, _ CloseReason) { *l.counts = append(*l.counts, ch.NumOutRec()) }

// TestWhatWasNeverSentIsLeft: what Finishers have left at the end counts as one of each channel, in the list alone; that costs a channel that is closed meanwhile, and the end, no
// look at each of the others.
func TestWhatWasNeverSentIsLeft(t *testing.T) {
	s := newStub(t, true, func(c *Config) {
		noControl(c)
		c.MaxChannels = 32767
	})
	var counts []int
	const n = 10_000
	for range n {
		_, err := s.table.Open(stubGame, &leaver{counts: &counts})
		require.NoError(t, err)
	}
	s.m.Shut()
	require.False(t, s.m.Finish())
	list := s.m.Undelivered()
	require.Len(t, list, n)
	require.Equal(t, Undelivered{Index: 2, Name: stubGame, Bunches: 1}, list[0])
	require.Equal(t, Undelivered{Index: 2 * n, Name: stubGame, Bunches: 1}, list[n-1])
	s.m.End()
	require.Len(t, counts, n)
	require.NotContains(t, counts, 1, "nothing was sent")
}
