package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// newFull is a hand whose end 0 has a full window of 16, and end 1 the newest packet at most.
func newFull(t *testing.T) *hand {
	h := newHand(t, func(_ int, c *Config) {
		c.Protocol = Bunchnet()
		c.Protocol.PacketWindow, c.NetSpeed, c.Timeout = 16, 10_000_000, -1
	})
	for !h.conns[0].windowFull() {
		h.packet(0, true)
	}
	return h
}

// TestForceAt: an empty packet beyond a full window waits for KeepAlive or a part of the silence, three seconds at most in the first
// hour, and as long as it takes then; only for KeepAlive behind one with bunches, which can't leave again.
func TestForceAt(t *testing.T) {
	h := newFull(t)
	c := h.conns[0]
	for _, silence := range []time.Duration{0, time.Minute, 1000 * time.Hour} {
		c.newest().at = c.flow.lastFate + silence
		require.Equal(t, c.newest().at+200*time.Millisecond, c.forceAt(), "%v", silence)
	}
	c.newest().notes = 0
	for silence, want := range map[time.Duration]time.Duration{
		0:                       200 * time.Millisecond,
		256 * time.Second:       time.Second,
		768 * time.Second:       3 * time.Second,
		time.Hour - 1:           3 * time.Second,
		time.Hour:               time.Hour / 256,
		256 * 20 * time.Second:  20 * time.Second,
		256 * 20 * time.Minute:  20 * time.Minute,
		100 * time.Millisecond:  200 * time.Millisecond,
		256 * 200 * time.Second: 200 * time.Second,
	} {
		c.newest().at = c.flow.lastFate + silence
		require.Equal(t, c.newest().at+want, c.forceAt(), "%v", silence)
	}
	c.newest().at = c.flow.lastFate
	c.rtt.smoothed = time.Second
	require.Equal(t, c.flow.lastFate+time.Second, c.forceAt(), "over a long path acks come all the time")
	c.rtt.smoothed = time.Hour
	require.Equal(t, c.flow.lastFate+silentMost, c.forceAt())
}

// TestMayForce: at forceAt, and before that thirty-two times when the peer was heard after the newest packet left.
func TestMayForce(t *testing.T) {
	h := newFull(t)
	c := h.conns[0]
	at := c.forceAt()
	c.now = at - 1
	require.False(t, c.mayForce(), "what was heard is what the newest packet answers")
	h.give(1, h.packet(1, true))
	at = c.forceAt()
	c.now = at - 1
	for i := range maxForcedAnswers {
		require.True(t, c.mayForce(), "%d", i)
	}
	require.False(t, c.mayForce())
	c.now = at
	require.True(t, c.mayForce())
}

// TestMaySendAgain: not a packet with bunches, nor a sequence without a packet, nor one that measures the path.
func TestMaySendAgain(t *testing.T) {
	h := newFull(t)
	c := h.conns[0]
	for p, want := range map[sentPacket]bool{{}: true, {notes: 1}: false, {skipped: true}: false, {probe: true}: false} {
		*c.newest() = p
		require.Equal(t, want, c.maySendAgain(), "%+v", p)
	}
}

// TestSendAgain: with a full window the newest packet leaves once more, with the acks of now, under its own sequence; unless there are bunches in it.
func TestSendAgain(t *testing.T) {
	h := newFull(t)
	c, peer := h.conns[0], h.conns[1]
	h.now += 10 * time.Millisecond
	c.now = h.now
	c.oweAcks(0)
	c.FlushNet()
	require.Empty(t, h.sent[0], "the newest has a bunch")

	c.now = c.forceAt()
	h.now = c.now
	c.FlushNet() // a new one, empty
	require.Len(t, h.sent[0], 1)
	h.sent[0] = nil // lost
	next, before := c.notify.OutID(), c.Counters
	h.now += 100 * time.Millisecond
	p := h.packet(1, true)
	c.now = h.now
	h.give(1, p)
	c.flow.unanswered = false // so that no new one is allowed
	acked := peer.Counters.PacketsAcked
	c.FlushNet()
	require.Len(t, h.sent[0], 1)
	require.Equal(t, next, c.notify.OutID())
	require.Equal(t, before.AckOnly+1, c.Counters.AckOnly)
	require.False(t, c.flow.dirtyAcks)
	require.EqualValues(t, next-1, c.flow.owed, "the acks are in that packet")
	h.deliver(0)
	require.Equal(t, next-1, peer.notify.InID(), "the peer hadn't got it")
	require.Greater(t, peer.Counters.PacketsAcked, acked)
	require.Zero(t, peer.Table().Unacked())
	require.Zero(t, peer.Counters.BadHeader+peer.Counters.BadBunch)
	require.False(t, peer.Closed())
}

// TestCopiesThatAreOwed: as long as nothing else is sent, what has copies to come leaves again a tick later, so often, and only then do the
// probes begin; what is being written is nothing to probe for.
func TestCopiesThatAreOwed(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.Redundancy.Copies, c.KeepAlive, c.NetSpeed = 2, 30*time.Second, 1_000_000 })
	c := h.conns[0]
	_, ok := c.probeAt()
	require.False(t, ok)
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.NoError(t, err)
	_, ok = c.probeAt()
	require.False(t, ok, "it hasn't left")
	c.FlushNet()
	for i := range 3 {
		h.sent[0] = nil
		at, ok := c.probeAt()
		require.True(t, ok)
		if i < 2 {
			require.Equal(t, c.flow.lastSend+repeatInterval, at)
		} else {
			require.Equal(t, c.flow.lastSend+c.rtt.smoothed+4*c.rtt.variance, at)
		}
		c.Tick(at - time.Millisecond)
		require.Empty(t, h.sent[0])
		c.Tick(at)
		require.Len(t, h.sent[0], 1)
		require.EqualValues(t, 1, c.newest().notes, "%d", i)
	}
}

// TestKeepAlivesPutOffNoProbe: what is lost is sent once more a round trip and some after it left, however many empty packets leave meanwhile, and then twice as late
// each time.
func TestKeepAlivesPutOffNoProbe(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.KeepAlive, c.NetSpeed = 2*time.Millisecond, 1_000_000 })
	c := h.conns[0]
	h.packet(0, true) // lost
	left, wait := c.now, c.rtt.smoothed+4*c.rtt.variance
	require.Greater(t, wait, 4*c.cfg.KeepAlive)
	var probes []time.Duration
	for c.now < left+20*wait {
		before := c.Counters
		deadline, _ := c.NextDeadline()
		c.Tick(deadline)
		if c.Counters.Copies > before.Copies {
			probes = append(probes, c.now-left)
		}
	}
	require.Greater(t, c.Counters.KeepAlives, uint64(20))
	require.Equal(t, []time.Duration{wait, 3 * wait, 7 * wait}, probes)
}

// TestRefusalsEndTheConnection: whether of all packets or only of those with reliable bunches; of these only when it isn't the path that
// loses them.
func TestRefusalsEndTheConnection(t *testing.T) {
	for _, v := range []struct {
		all, reliable, probing, closes, ends bool
	}{{}, {all: true, ends: true}, {reliable: true, ends: true}, {reliable: true, probing: true}, {all: true, probing: true, ends: true},
		{reliable: true, closes: true}, {all: true, closes: true, ends: true}} {
		h := newHand(t, nil)
		c := h.conns[0]
		run := nakRun{packets: refusalPackets, rounds: refusalRounds, lasted: refusalTime}
		if v.all {
			c.refusals.all = run
		}
		if v.reliable {
			c.refusals.reliable = run
		}
		if v.probing {
			h.packet(0, true)
			c.path = &path{smallest: 700, biggest: 700, largest: 100, lostN: narrowLost, ackedN: narrowAcked, emptyN: narrowAcked, since: h.now - narrowTime/2}
		}
		c.closer.closing, c.closer.deadline = v.closes, h.now+time.Hour
		c.Tick(h.now)
		require.Equal(t, v.ends, c.Closed(), "%+v", v)
		if v.ends {
			require.Equal(t, PeerBroke, c.Result().Code)
			require.ErrorIs(t, c.Result().Err, errRefuses)
			require.ErrorContains(t, c.Result().Err, ": 1024 packets in 10s")
			require.Len(t, h.sent[0], 1+lastCopies, "nothing follows its last words")
		}
	}
}

// TestOnlyTheCloseWaits: our close is what a peer that closes as well refuses, with what an Answerer sent since, and before it one bunch; a connection that doesn't close, and what
// is sent before the close, are judged.
func TestOnlyTheCloseWaits(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	send := func(ch *channel.Channel) {
		_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true, NoMerge: true})
		require.NoError(t, err)
	}
	require.False(t, c.onlyCloses())
	send(h.chs[0])
	require.False(t, c.onlyCloses())
	c.closer.closing = true
	require.True(t, c.onlyCloses())
	send(h.chs[0])
	require.EqualValues(t, 2, c.Table().Unacked())
	require.False(t, c.onlyCloses())
	require.NoError(t, c.channels.CloseControl())
	require.True(t, c.onlyCloses())

	c = newAlone(t, Protocol{})
	ch, err := c.Open(testName, channel.Nop{})
	require.NoError(t, err)
	send(ch)
	send(ch)
	c.closer.closing = true
	require.Nil(t, c.Channel(0))
	require.False(t, c.onlyCloses())
}

// newAlone is a client without channels, whose peer is out of reach.
func newAlone(t *testing.T, p Protocol) *Conn {
	cfg := Config{LowLevelSend: func([]byte) {}, Channels: testTypes(nil), Protocol: p}
	bucketed(&cfg)
	c, err := New(cfg, time.Second, 9, 7)
	require.NoError(t, err)
	return c
}

// TestLastWordsAtATimeout: a peer from which nothing is heard any more may hear us, and is told of the end, unless it may not have the channel 0 that is to be closed; where there is
// none one is opened for it, but not with Unreal's protocols.
func TestLastWordsAtATimeout(t *testing.T) {
	sent := func(c *Conn) uint64 {
		before := c.Counters.PacketsSent
		at, ok := c.timeoutAt()
		require.True(t, ok)
		c.Tick(at)
		require.Equal(t, TimedOut, c.Result().Code)
		return c.Counters.PacketsSent - before
	}
	for _, p := range []Protocol{Bunchnet(), Unreal53(true)} {
		words := uint64(1 + lastCopies)
		require.Equal(t, words, sent(newHand(t, func(_ int, c *Config) { c.Protocol = p }).conns[0]))
		c := newAlone(t, p)
		ch, err := c.Open(bunch.Control, channel.Nop{})
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
		require.NoError(t, err)
		c.FlushNet()
		require.Zero(t, sent(c), "its open isn't acked")
		if p.Unreal {
			words = 0
		}
		require.Equal(t, words, sent(newAlone(t, p)), "without a channel 0")
	}
}

// TestEmptyPacketsWhileNothingIsTold: the peer is heard, but for a second it tells the fate of nothing; then empty packets leave.
func TestEmptyPacketsWhileNothingIsTold(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	h.packet(0, true)
	c.flow.lastFate = c.now
	empty := func(at time.Duration) int {
		h.sent[0] = nil
		c.now, c.refusals.lastEmpty = at, 0
		c.sendEmpty()
		return len(h.sent[0])
	}
	told := c.flow.lastFate
	c.flow.lastReceive = told
	require.Zero(t, empty(told+time.Hour), "nothing was heard either")
	c.flow.lastReceive = told + 1
	require.Zero(t, empty(told+fateLate-1))
	keepAlives := c.Counters.KeepAlives
	require.Equal(t, 1, empty(told+fateLate))
	require.Equal(t, keepAlives+1, c.Counters.KeepAlives)
}

// TestProbeWithNothingToCarry: of unreliable bunches only the fate is wanted, so the probe is empty and counts as a keep-alive; a reliable
// bunch behind them rides in it.
func TestProbeWithNothingToCarry(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		h := newHand(t, func(_ int, c *Config) { c.KeepAlive = 30 * time.Second })
		c := h.conns[0]
		h.packet(0, false)
		h.packet(0, reliable) // both are lost
		at, ok := c.probeAt()
		require.True(t, ok)
		before := c.Counters
		c.Tick(at)
		require.Len(t, h.sent[0], 1)
		want := before.KeepAlives + 1
		if reliable {
			want--
		}
		require.Equal(t, want, c.Counters.KeepAlives)
		require.Equal(t, reliable, c.newest().notes == 1)
		next, ok := c.probeAt()
		require.True(t, ok)
		require.Equal(t, at+2*(c.rtt.smoothed+4*c.rtt.variance), next, "twice as late")
	}
}

// A path of no delay at all, as in one process: the loss of the last packet is noticed before the keep-alive.
func TestTailProbeWithoutDelay(t *testing.T) {
	l := newLab(t, both(netsim.Settings{}), 1, func(_ int, c *Config) { c.KeepAlive = 5 * time.Second })
	l.fine = time.Millisecond
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("a"), Reliable: true})
	require.NoError(t, err)
	l.run(time.Second, nil)
	got := l.got[1]
	l.dark[0] = true
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("b"), Reliable: true})
	require.NoError(t, err)
	l.run(2*l.tick, nil)
	l.dark[0] = false
	start := l.now
	for l.got[1] == got && l.now-start < 10*time.Second {
		l.step(nil)
	}
	t.Logf("%v, smoothed %v", l.now-start, l.conns[0].rtt.smoothed)
	require.Less(t, l.now-start, time.Second)
}

// TestRepeatsCarryAcks: where both windows are full and each end has the other's newest packet, that packet once more, with the acks of now, is enough
// for the other to go on, whatever the time. It is a sign of life, and asks for no new packet.
func TestRepeatsCarryAcks(t *testing.T) {
	h := newFull(t)
	h.sent = [2][][]byte{}
	c, peer := h.conns[0], h.conns[1]
	for !peer.windowFull() {
		h.packet(1, true) // all lost
	}
	h.now += 72 * time.Hour
	empty := func(i int) []byte {
		h.sent[i] = nil
		h.conns[i].now = h.now
		h.conns[i].sendAckPacket()
		p := h.sent[i][0]
		h.sent[i] = nil
		return p
	}
	a, b := empty(0), empty(1) // they cross
	h.give(0, a)
	h.give(1, b)
	require.True(t, c.windowFull() && peer.windowFull())
	for _, end := range h.conns { // nothing new may leave for a while
		end.flow.answers, end.flow.lastFate = maxForcedAnswers, 0
		require.Greater(t, end.forceAt(), h.now+15*time.Minute)
	}
	h.now += time.Second
	peer.flow.unanswered = false
	c.Tick(h.now)
	require.Len(t, h.sent[0], 1)
	next := peer.notify.InID()
	h.deliver(0)
	require.Equal(t, next, peer.notify.InID(), "it was there before")
	require.Zero(t, peer.notify.Outstanding())
	require.Equal(t, h.now, peer.flow.lastReceive)
	require.False(t, peer.flow.unanswered)
	h.now += peer.cfg.KeepAlive
	peer.Tick(h.now)
	h.deliver(1)
	require.False(t, c.windowFull())
}
