package netconn

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// TestEndsAtItsTime: Close, Abort, LinkClosed and LinkLost are told the time, which Tick needn't have been; a time that has passed counts for nothing.
func TestEndsAtItsTime(t *testing.T) {
	for _, late := range []time.Duration{time.Second, -time.Second} {
		for name, end := range map[string]func(c *Conn, now time.Duration){
			"close": func(c *Conn, now time.Duration) { c.Close(now, "") },
			"abort": func(c *Conn, now time.Duration) { c.Abort(now, "") },
			"link":  func(c *Conn, now time.Duration) { c.LinkClosed(now, "") },
			"lost":  func(c *Conn, now time.Duration) { c.LinkLost(now, errLinkLost) },
		} {
			h := newHand(t, nil)
			c := h.conns[0]
			h.packet(0, true) // so that Close waits
			heard := c.flow.lastReceive
			end(c, h.now+late)
			now := h.now + max(late, 0)
			require.Equal(t, now, c.Now(), name)
			if name == "close" {
				require.Equal(t, now+c.cfg.LingerTimeout, c.closer.deadline)
			} else {
				require.Equal(t, now-heard, c.Result().Silence, name)
			}
		}
	}
}

var errLinkLost = errors.New("nobody answers")

// TestLinkLost: a peer that the link has lost hasn't left, unless it or the game has said so before. What was held back for a late packet is delivered.
func TestLinkLost(t *testing.T) {
	for name, said := range map[string]CloseCode{"": TimedOut, "the game": ClosedByUs, "the peer": ClosedByPeer} {
		h := newHand(t, nil)
		c := h.conns[0]
		h.packet(0, true)
		switch name {
		case "the game":
			c.Close(h.now, "bye")
		case "the peer":
			c.PeerReason("bye")
		}
		require.False(t, c.Closed(), name)
		c.LinkLost(h.now, errLinkLost)
		r := c.Result()
		require.Equal(t, said, r.Code, name)
		if said == TimedOut {
			require.Equal(t, errLinkLost, r.Err)
		} else {
			require.Equal(t, "bye", r.Reason, name)
		}
	}
}

// TestLinkLostHearsWhatIsHeld: what is held back for a late packet when the link loses the peer may have the game close, or say that the peer leaves: then nobody is waited for.
func TestLinkLostHearsWhatIsHeld(t *testing.T) {
	for _, want := range []CloseCode{TimedOut, ClosedByUs, ClosedByPeer} {
		l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), 1, func(_ int, c *Config) { c.ReorderWindow = -1 })
		l.control()
		l.run(time.Second, nil)
		c := l.conns[0]
		c.enableOrderCache()
		open := func() {
			_, err := l.open(1).SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true, NoMerge: true})
			require.NoError(t, err)
			l.conns[1].FlushNet()
		}
		l.lose[1] = func([]byte) bool { return true }
		open()
		l.lose[1] = nil
		open()
		l.now += 10 * time.Millisecond
		for p, ok := l.links[1].Pop(l.now); ok; p, ok = l.links[1].Pop(l.now) {
			_ = c.ReceivedPacket(l.now, p)
		}
		require.Equal(t, 1, c.order.held)
		l.accept[0] = func(*channel.Channel) {
			switch want {
			case ClosedByUs:
				c.Close(l.now, "bye")
			case ClosedByPeer:
				c.PeerReason("bye")
			}
		}
		c.LinkLost(l.now, errLinkLost)
		require.Equal(t, want, c.Result().Code)
	}
}

// lastSender sends on a channel when it hears that another is gone.
type lastSender struct {
	channel.Nop
	on   *channel.Channel
	errs []error
}

func (s *lastSender) Closed(*channel.Channel, channel.CloseReason) {
	_, err := s.on.SendBunch(&bunch.Out{Data: []byte("too late"), Reliable: true})
	s.errs = append(s.errs, err)
}

// TestNothingCanBeSentAfterTheEnd: also not by a handler that hears of it, on a channel that hasn't heard of it yet: who tries is told.
func TestNothingCanBeSentAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(h *hand, c *Conn){
		"abort":   func(h *hand, c *Conn) { c.Abort(h.now, "") },
		"rule":    func(_ *hand, c *Conn) { c.Fail(ErrPacket, false) },
		"link":    func(h *hand, c *Conn) { c.LinkClosed(h.now, "") },
		"silence": func(h *hand, c *Conn) { c.Tick(h.now + time.Hour) },
		"peer": func(h *hand, _ *Conn) {
			h.conns[1].Abort(h.now, "")
			h.deliver(1)
		},
	} {
		h := newHand(t, nil)
		c := h.conns[0]
		s := new(lastSender)
		_, err := c.Open(testName, s)
		require.NoError(t, err)
		s.on, err = c.Open(testName, channel.Nop{})
		require.NoError(t, err)
		_, err = s.on.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
		require.NoError(t, err)
		for range 5 {
			h.exchange()
		}
		end(h, c)
		require.True(t, c.Closed(), name)
		require.Equal(t, []error{channel.ErrClosed}, s.errs, name)
		require.Zero(t, c.Table().Unacked(), name)
	}
}

// TestControlIsNotOpenedAgain: when both ends close, the one that hears the other's close first doesn't open channel 0 anew for its own.
func TestControlIsNotOpenedAgain(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	h.give(0, h.packet(0, true))
	c.Close(h.now, "ours") // waits for the ack
	opened := c.Table().Counters.ChannelsOpened
	h.conns[1].Close(h.now, "theirs")
	h.conns[1].FlushWritten(h.now)
	require.False(t, c.Closed())
	h.deliver(1) // with the ack and the close
	require.Equal(t, ClosedByUs, c.Result().Code)
	require.Equal(t, opened, c.Table().Counters.ChannelsOpened)
}

// TestLastWordsLeaveSeveralTimes: one packet with the close of channel 0, and that packet again lastCopies times; of more than one packet
// each leaves at most twice.
func TestLastWordsLeaveSeveralTimes(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	var sent recording
	c.SetTrace(&sent)
	c.Abort(h.now, "")
	require.Len(t, h.sent[0], 1+lastCopies)
	closes := sent.of(nettrace.BunchSent)
	require.Len(t, closes, 1+lastCopies)
	for _, e := range closes {
		require.Zero(t, e.ChIndex)
		require.NotZero(t, e.A&nettrace.Close)
		require.Equal(t, closes[0].ChSequence, e.ChSequence)
	}

	h = newHand(t, func(_ int, c *Config) { c.NetSpeed = 10_000_000 })
	c = h.conns[0]
	for range 10 {
		_, err := c.Channel(0).SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
		require.NoError(t, err)
	}
	c.FlushNet()
	h.sent[0] = nil
	c.Abort(h.now, "")
	require.LessOrEqual(t, len(h.sent[0]), 1+11)
}

// TestUnrealHearsOfNoOtherControl: to an end that has no control channel Unreal's protocol can't say that the connection ends, and
// nothing is opened for it.
func TestUnrealHearsOfNoOtherControl(t *testing.T) {
	sent := 0
	c, err := New(Config{Protocol: Unreal51(), LowLevelSend: func([]byte) { sent++ }, Channels: testTypes(nil)}, time.Second, 7, 9)
	require.NoError(t, err)
	c.Abort(time.Second, "")
	require.Equal(t, ClosedByUs, c.Result().Code)
	require.Zero(t, sent)
	require.Zero(t, c.Table().Counters.ChannelsOpened)
}

// TestWrittenBeforeTheEnd: what waits for the end of the tick leaves when the connection ends before that.
func TestWrittenBeforeTheEnd(t *testing.T) {
	for name, end := range map[string]func(h *hand, c *Conn){
		"abort":   func(h *hand, c *Conn) { c.Abort(h.now, "") },
		"rule":    func(_ *hand, c *Conn) { c.Fail(ErrPacket, false) },
		"silence": func(h *hand, c *Conn) { c.Tick(h.now + time.Hour) },
		"path": func(h *hand, c *Conn) {
			h.packet(0, true)
			c.path = &path{smallest: 700, biggest: 700, largest: 100, lostN: narrowLost, ackedN: narrowAcked, emptyN: narrowAcked, probes: narrowProbes, since: h.now - narrowTime}
			_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("last")})
			require.NoError(h.t, err)
			c.Tick(h.now)
		},
	} {
		h := newHand(t, nil)
		c := h.conns[0]
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("last")})
		require.NoError(t, err)
		end(h, c)
		require.True(t, c.Closed(), name)
		require.NotEmpty(t, h.sent[0], name)
		received := h.conns[1].Table().Counters.Received
		h.deliver(0)
		require.Greater(t, h.conns[1].Table().Counters.Received, received, name)
		require.Zero(t, c.out.Len(), name)
	}
}

// panicker panics with each bunch while there is a bug.
type panicker struct {
	channel.Nop
	bug *bool
}

func (p panicker) ReceivedBunch(*channel.Channel, *bunch.In) {
	if *p.bug {
		panic("a bug of the game")
	}
}

// TestPanickingHandler: a connection whose handler has panicked within a packet ends in the next call when the game recovers, whichever that is, and both ends are told: the rest of the packet is lost.
func TestPanickingHandler(t *testing.T) {
	for name, next := range map[string]func(c *Conn, now time.Duration){
		"receive":  func(c *Conn, now time.Duration) { require.ErrorIs(t, c.ReceivedPacket(now, nil), ErrClosed) },
		"dispatch": func(c *Conn, now time.Duration) { c.PostTickDispatch(now) },
		"tick":     func(c *Conn, now time.Duration) { c.Tick(now) },
		"closed":   func(c *Conn, now time.Duration) { c.LinkClosed(now, "gone") },
		"lost":     func(c *Conn, now time.Duration) { c.LinkLost(now, errors.New("no link")) },
	} {
		bug := false
		h := newHand(t, func(i int, c *Config) {
			if i == 1 {
				c.Channels = testTypes(func(*channel.Channel) channel.Handler { return panicker{bug: &bug} })
			}
		})
		c := h.conns[1]
		bug = true
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("boom"), Reliable: true})
		require.NoError(t, err)
		h.tick(50 * time.Millisecond)
		require.PanicsWithValue(t, "a bug of the game", func() { h.deliver(0) }, name)
		require.False(t, c.Closed(), "%s: not amid the packet", name)
		at, ok := c.NextDeadline()
		require.True(t, ok, name)
		require.Equal(t, h.now, at, "%s: a loop that sleeps must call it", name)
		next(c, h.now)
		require.True(t, c.Closed(), name)
		require.Equal(t, WeBroke, c.Result().Code, name)
		require.ErrorIs(t, c.Result().Err, errPanicked, name)
		h.deliver(1)
		require.True(t, h.conns[0].Closed(), name)
		require.Equal(t, ClosedByPeer, h.conns[0].Result().Code, name)
	}
}
