package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/handler"
)

// marker is a packet handler's component with a prefix of three bits.
type marker struct{}

func (marker) ReservedBits() int           { return 3 }
func (marker) WritePrefix(w *bitio.Writer) { w.WriteBits(5, 3) }
func (marker) ReadPrefix(r *bitio.Reader) error {
	if r.ReadBits(3) != 5 {
		return ErrPacket
	}
	return nil
}

// TestPacketsThroughHandlers: packets of every size go through the handlers of both ends, and those without their prefix are refused.
func TestPacketsThroughHandlers(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.Handlers = handler.NewChain(marker{}) })
	server := h.conns[1]
	require.Equal(t, 4, server.proto.HandlerBits, "with the end mark")
	for n := 1; n < 1000; n += 7 {
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, n), NoMerge: true})
		require.NoError(t, err)
		h.conns[0].FlushWritten(h.now)
		for _, p := range h.sent[0] {
			require.EqualValues(t, 5, p[0]&7)
			require.LessOrEqual(t, len(p), 1024)
			require.NoError(t, server.ReceivedPacket(h.now, p))
		}
		h.sent[0] = nil
	}
	require.Zero(t, server.Counters.BadHandler)
	p := h.packet(0, false)
	p[0] ^= 1
	received := server.Counters.PacketsReceived
	require.ErrorIs(t, server.ReceivedPacket(h.now, p), ErrPacket)
	require.EqualValues(t, 1, server.Counters.BadHandler)
	require.Equal(t, received, server.Counters.PacketsReceived)
}

// TestCountersOfPackets: each packet that comes is counted, with what became of it.
func TestCountersOfPackets(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[1]
	c.Counters = Counters{}
	p := h.packet(0, true)
	h.give(0, p)
	h.give(0, p)
	require.Error(t, c.ReceivedPacket(h.now, []byte{0, 0}))
	require.Error(t, c.ReceivedPacket(h.now, []byte{9}))
	require.Error(t, c.ReceivedPacket(h.now, make([]byte, 1501)))
	require.Equal(t, Counters{PacketsReceived: 2, BytesReceived: uint64(2 * len(p)), Stale: 1, BadHandler: 1, BadHeader: 2}, c.Counters)
	h.packet(0, true)
	h.give(0, h.packet(0, true))
	require.EqualValues(t, 1, c.Counters.PacketsMissed)
	ch, err := h.conns[0].Open(testName, channel.Nop{})
	require.NoError(t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
	require.NoError(t, err)
	c.cfg.AllowOpen = func(*bunch.In) error { return ErrPacket }
	h.conns[0].FlushWritten(h.now)
	h.deliver(0)
	require.EqualValues(t, 1, c.Counters.Refused)
	require.EqualValues(t, 4, c.Counters.PacketsReceived)
}

// TestCloseOnce: the first Close and the first end count.
func TestCloseOnce(t *testing.T) {
	var results []CloseResult
	h := newHand(t, func(i int, c *Config) {
		if i == 0 {
			c.Closed = func(r CloseResult) { results = append(results, r) }
		}
	})
	c := h.conns[0]
	h.packet(0, true) // lost
	c.Close(h.now, "first")
	require.True(t, c.Closing())
	h.now += time.Second
	c.Close(h.now, "second")
	at, _ := c.timeoutAt()
	require.Equal(t, h.now+time.Second, at, "two seconds from the first")
	h.now += time.Second - 1
	c.Tick(h.now)
	require.False(t, c.Closed())
	h.now++
	c.Tick(h.now)
	require.True(t, c.Closed())
	require.Equal(t, [2]any{ClosedByUs, "first"}, [2]any{c.Result().Code, c.Result().Reason})
	require.NoError(t, c.Result().Err)
	sent := len(h.sent[0])
	c.Abort(h.now, "third")
	c.Fail(ErrPacket, true)
	c.LinkClosed(h.now, "fourth")
	c.Tick(h.now + time.Minute)
	c.FlushNet()
	require.Len(t, h.sent[0], sent)
	require.Len(t, results, 1)
	_, ok := c.NextDeadline()
	require.False(t, ok)
	require.Zero(t, c.Table().Len(), "its channels are gone")
}

// TestCloseIsTold: at once when nothing is unacked, by Close and by Abort; the peer acks it at once and says why.
func TestCloseIsTold(t *testing.T) {
	for _, abort := range []bool{false, true} {
		h := newHand(t, func(_ int, c *Config) { c.AckDelay = 500 * time.Millisecond })
		if abort {
			h.conns[0].Abort(h.now, "enough")
		} else {
			h.conns[0].Close(h.now, "enough")
			h.conns[0].FlushWritten(h.now)
		}
		require.NotEmpty(t, h.sent[0])
		h.conns[1].PeerReason("the peer's words")
		h.sent[1] = nil
		h.deliver(0)
		require.Equal(t, [2]any{ClosedByPeer, "the peer's words"}, [2]any{h.conns[1].Result().Code, h.conns[1].Result().Reason})
		require.NotEmpty(t, h.sent[1], "its ack")
		h.deliver(1)
		require.Equal(t, [2]any{ClosedByUs, "enough"}, [2]any{h.conns[0].Result().Code, h.conns[0].Result().Reason})
		if !abort {
			require.Zero(t, h.conns[0].Result().Unacked)
		}
	}
	h := newHand(t, nil)
	h.conns[1].LinkClosed(h.now, "the link's words")
	require.Equal(t, [2]any{ClosedByPeer, "the link's words"}, [2]any{h.conns[1].Result().Code, h.conns[1].Result().Reason})
	h = newHand(t, nil)
	h.packet(0, true)
	h.conns[0].Close(h.now, "ours")
	h.conns[0].LinkClosed(h.now, "the link's words")
	require.Equal(t, [2]any{ClosedByUs, "ours"}, [2]any{h.conns[0].Result().Code, h.conns[0].Result().Reason})
}

// TestLateCloseIsAnswered: until LingerTimeout is over and sixteen times at most, when there is nothing new in the packet.
func TestLateCloseIsAnswered(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.LingerTimeout = 3 * time.Second })
	c, peer := h.conns[0], h.conns[1]
	c.Close(h.now, "enough")
	c.FlushWritten(h.now)
	h.deliver(0)
	require.True(t, peer.Closed())
	h.sent[1] = nil // its ack is lost
	ended := h.now
	again := func() int {
		n := len(h.sent[1])
		c.channels.HurryControl()
		rec := c.Channel(0)
		require.NotNil(t, rec)
		h.now += 5 * time.Millisecond
		c.startPacket()
		c.repeat(9, true)
		c.sendPacket(0, false)
		for _, p := range h.sent[0] {
			h.give(0, p)
		}
		h.sent[0] = nil
		return len(h.sent[1]) - n
	}
	total := 0
	for range 30 {
		total += again()
	}
	require.Equal(t, maxAnswers, total)
	total = 0
	for range 200 { // empty ones each 10 ms
		h.now += 10 * time.Millisecond
		c.now = h.now
		n := len(h.sent[1])
		c.sendAckPacket()
		h.deliver(0)
		total += len(h.sent[1]) - n
	}
	require.Equal(t, 11, total, "one each 188 ms, from the last answer on, and sooner at first")
	peer.closer.answers = 0
	h.now = ended + 3*time.Second - 5*time.Millisecond
	require.Equal(t, 1, again())
	h.now++
	require.Zero(t, again(), "too late")
}

// TestSentPacketsKnowWhatTheyCarry: whether there are reliable bunches in them, and of channels that the peer may refuse.
func TestSentPacketsKnowWhatTheyCarry(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	kind := func() [2]bool { p := c.packetAt(c.next - 1); return [2]bool{p.reliable, p.opening} }
	h.packet(0, true)
	require.Equal(t, [2]bool{true, false}, kind())
	h.packet(0, false)
	require.Equal(t, [2]bool{false, false}, kind())
	ch, err := c.Open(testName, channel.Nop{})
	require.NoError(t, err)
	for range 2 {
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
		require.NoError(t, err)
		_, err = h.chs[0].SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
		require.NoError(t, err)
		c.FlushWritten(h.now)
		require.Equal(t, [2]bool{true, true}, kind())
	}
}

// hears counts what a channel's handler is told of packets.
type hears struct {
	channel.Nop
	acks, naks int
}

func (h *hears) ReceivedAck(*channel.Channel, int64) { h.acks++ }
func (h *hears) ReceivedNak(*channel.Channel, int64) { h.naks++ }

// TestEachChannelHearsOfThePacket: once, however many of its bunches are in it.
func TestEachChannelHearsOfThePacket(t *testing.T) {
	h := newHand(t, nil)
	var hs [2]hears
	var chs [2]*channel.Channel
	for i := range chs {
		ch, err := h.conns[0].Open(testName, &hs[i])
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
		require.NoError(t, err)
		chs[i] = ch
	}
	for range 3 {
		h.exchange()
	}
	hs = [2]hears{}
	for _, arrives := range []bool{true, false} {
		for i := range 6 {
			_, err := chs[i&1].SendBunch(&bunch.Out{Data: []byte("x"), NoMerge: true, Reliable: i > 3})
			require.NoError(t, err)
		}
		h.conns[0].FlushWritten(h.now)
		require.Len(t, h.sent[0], 1)
		if !arrives {
			h.sent[0] = nil
			h.packet(0, false)
			h.give(0, h.packet(0, false))
		}
		for range 3 {
			h.exchange()
		}
	}
	for i := range hs {
		require.Equal(t, hears{acks: hs[i].acks, naks: 1}, hs[i])
		require.Positive(t, hs[i].acks)
	}
}

// TestFatesAreMeasured: bytes acked, losses, the path and the round trip; an empty packet, for which nobody owes an ack, makes no round trip longer.
func TestFatesAreMeasured(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.KeepAlive, c.Timeout = time.Hour, -1 })
	for range 5 {
		h.exchange()
	}
	c := h.conns[0]
	acked := c.rates.outAcked
	p := h.packet(0, true)
	h.give(0, p)
	h.now += 80 * time.Millisecond
	before := c.rtt.smoothed
	h.conns[1].Tick(h.now)
	h.deliver(1)
	require.Equal(t, acked+uint64(len(p)), c.rates.outAcked)
	require.Equal(t, h.now, c.flow.lastFate)
	require.Equal(t, 80*time.Millisecond, c.rtt.last)
	require.NotEqual(t, before, c.rtt.smoothed)

	c.oweAcks(0)
	c.FlushNet() // empty
	h.deliver(0)
	h.now += 10 * time.Second
	before = c.rtt.smoothed
	h.give(1, h.packet(1, true))
	require.Equal(t, before, c.rtt.smoothed)
	require.Zero(t, c.notify.Outstanding())

	loss := c.rates.lossRate
	c.path = nil
	h.packet(0, true) // lost
	h.give(0, h.packet(0, false))
	h.now += 30 * time.Millisecond
	h.conns[1].Tick(h.now)
	h.deliver(1)
	require.Greater(t, c.rates.lossRate, loss)
	require.Equal(t, 1, c.path.lostN)
	require.Equal(t, h.now, c.flow.lastFate)
	loss = c.rates.lossRate
	h.give(0, h.packet(0, true))
	h.conns[1].Tick(h.now)
	h.deliver(1)
	require.Less(t, c.rates.lossRate, loss)
	require.Zero(t, c.path.lostN, "as large a one got through")
}

// TestHeldBackOrNot: how many missing packets are waited for, with a window and without.
func TestHeldBackOrNot(t *testing.T) {
	for _, v := range []struct {
		window time.Duration
		most   int64
	}{{-1, 3}, {20 * time.Millisecond, 16}} { // half of the cache
		for _, gap := range []int64{v.most, v.most + 1} {
			h := newHand(t, func(_ int, c *Config) { c.ReorderWindow, c.OrderCache = v.window, 32 })
			c := h.conns[1]
			c.enableOrderCache()
			for range 3 {
				h.exchange()
			}
			var missing [][]byte
			for range gap {
				missing = append(missing, h.packet(0, false))
			}
			before := c.Counters
			h.give(0, h.packet(0, false))
			require.Equal(t, gap <= v.most, c.Counters.Cached == before.Cached+1, "%v, %d missing", v.window, gap)
			if gap > v.most {
				require.EqualValues(t, gap, c.Counters.PacketsMissed-before.PacketsMissed)
				continue
			}
			for _, p := range missing {
				h.give(0, p)
			}
			require.Equal(t, before.PacketsMissed, c.Counters.PacketsMissed)
			require.Zero(t, c.order.held)
			require.Positive(t, c.order.late.came, "they came in time")
		}
	}
}

// TestHeldLongestFirst: each packet that is held back has its own window.
func TestHeldLongestFirst(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = 20 * time.Millisecond })
	c := h.conns[1]
	c.enableOrderCache()
	for range 3 {
		h.exchange()
	}
	base := c.notify.InID()
	h.packet(0, false)
	second := h.packet(0, false)
	h.packet(0, false)
	fourth := h.packet(0, false)
	h.give(0, fourth)
	h.now += 5 * time.Millisecond
	h.give(0, second)
	h.give(0, second)
	require.EqualValues(t, 1, c.Counters.CacheDup)
	require.Equal(t, 2, c.order.held)
	require.Equal(t, h.now-5*time.Millisecond, c.order.since)
	h.now += 15 * time.Millisecond
	c.PostTickDispatch(h.now)
	require.Equal(t, base+4, c.notify.InID(), "the older ones can't wait longer than it")
	require.Zero(t, c.order.held)
}

// TestReliableOnesOfHeldPacketsAreTaken: also behind unreliable ones, and only when there is a window.
func TestReliableOnesOfHeldPacketsAreTaken(t *testing.T) {
	for _, window := range []time.Duration{-1, 20 * time.Millisecond} {
		h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = window })
		c := h.conns[1]
		c.enableOrderCache()
		for range 3 {
			h.exchange()
		}
		h.packet(0, false)
		for _, reliable := range []bool{false, true} {
			_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("x"), Reliable: reliable, NoMerge: true})
			require.NoError(t, err)
		}
		h.conns[0].FlushWritten(h.now)
		before := c.Table().Counters.ReceivedReliable
		h.deliver2(0)
		require.EqualValues(t, 1, c.Counters.Cached)
		require.Equal(t, window > 0, c.Table().Counters.ReceivedReliable == before+1)
	}
}

// deliver2 hands over what end i sent, without the end of the receive tick.
func (h *hand) deliver2(i int) {
	for _, p := range h.sent[i] {
		h.give(i, p)
	}
	h.sent[i] = nil
}

// TestEmptyPacketsWhileAllIsRefused: from sixty-four naks in a row on, one each KeepAlive, or each emptyInterval where that is longer, and no more.
func TestEmptyPacketsWhileAllIsRefused(t *testing.T) {
	for keepAlive, each := range map[time.Duration]time.Duration{100 * time.Millisecond: 100 * time.Millisecond, 10 * time.Second: emptyInterval} {
		h := newHand(t, func(_ int, c *Config) { c.KeepAlive = keepAlive })
		c := h.conns[0]
		empty := func() int {
			h.sent[0] = nil
			c.flow.lastSend = h.now // no keep-alive is due
			c.sendEmpty()
			return len(h.sent[0])
		}
		c.refusals.all.packets = emptyAfter - 1
		require.Zero(t, empty())
		c.refusals.all.packets++
		require.Equal(t, 1, empty())
		require.Zero(t, empty())
		h.now += each - 1
		c.Tick(h.now)
		require.Zero(t, empty())
		h.now++
		c.now = h.now
		require.Equal(t, 1, empty(), "KeepAlive %v", keepAlive)
		h.now += each
		c.now = h.now
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("x")})
		require.NoError(t, err)
		require.Zero(t, empty(), "a packet is under way anyway")
	}
}

// TestKeepAliveIsExact: at lastSend + KeepAlive, which is what NextDeadline says.
func TestKeepAliveIsExact(t *testing.T) {
	h := newHand(t, nil)
	for range 20 {
		h.exchange()
	}
	c := h.conns[0]
	at, ok := c.NextDeadline()
	require.True(t, ok)
	require.Equal(t, c.flow.lastSend+200*time.Millisecond, at)
	c.Tick(at - 1)
	require.Empty(t, h.sent[0])
	c.Tick(at)
	require.Len(t, h.sent[0], 1)
}

// TestNarrowPathIsProbed: with packets of the size that is lost, a second apart, which carry nothing; five of them lost and ten seconds
// end the connection, one that arrives ends the suspicion.
func TestNarrowPathIsProbed(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		h := newHand(t, func(_ int, c *Config) { c.KeepAlive, c.Timeout, c.NetSpeed = 50*time.Millisecond, -1, 1_000_000 })
		c := h.conns[0]
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, 800), Reliable: true, NoMerge: true}) // never arrives
		require.NoError(t, err)
		c.path = &path{smallest: 850, biggest: 850, largest: 100, lostN: narrowLost, ackedN: narrowAcked, emptyN: narrowAcked, since: h.now}
		began := h.now
		var probes []time.Duration
		for h.now < began+15*time.Second && !c.Closed() {
			h.now += 50 * time.Millisecond
			c.Tick(h.now)
			sent := h.sent[0]
			h.sent[0] = nil
			for _, p := range sent {
				if len(p) < 850 || len(p) > 860 {
					if len(p) < 650 {
						h.give(0, p)
					}
					continue
				}
				probes = append(probes, h.now-began)
				require.True(t, c.packetAt(c.next-1).probe || len(sent) > 1)
				if arrives {
					received := h.conns[1].Table().Counters
					h.give(0, p)
					require.Greater(t, h.conns[1].Table().Counters.Received, received.Received)
				}
			}
			h.conns[1].Tick(h.now)
			h.deliver(1)
			if arrives && len(probes) > 0 {
				break
			}
		}
		require.NotEmpty(t, probes)
		require.GreaterOrEqual(t, probes[0], narrowTime/2)
		if arrives {
			require.Less(t, c.path.lostN, 5, "counted anew")
			continue
		}
		for i := 1; i < len(probes); i++ {
			require.GreaterOrEqual(t, probes[i]-probes[i-1], probeInterval)
		}
		require.Equal(t, PathNarrow, c.Result().Code)
		require.GreaterOrEqual(t, h.now-began, narrowTime)
		require.GreaterOrEqual(t, len(probes), narrowProbes)
	}
}

// TestSequencesAreLeftOut: after 512 to 2047 packets with bunches, never twice the same way; and only with a secret.
func TestSequencesAreLeftOut(t *testing.T) {
	for secret, want := range map[uint64]bool{0: false, 9: true} {
		h := newHand(t, func(_ int, c *Config) { c.Secret, c.NetSpeed = secret, 100_000_000 })
		c := h.conns[0]
		var gaps []int64
		last, lastSkip := c.notify.OutID(), c.notify.OutID()
		for range 12_000 {
			h.give(0, h.packet(0, false))
			if next := c.notify.OutID(); next != last+1 {
				require.Equal(t, last+2, next)
				gaps = append(gaps, next-lastSkip)
				lastSkip = next
			}
			last = c.notify.OutID()
			h.conns[1].Tick(h.now)
			h.deliver2(1)
		}
		require.Equal(t, want, len(gaps) > 4)
		if !want {
			continue
		}
		seen := map[int64]bool{}
		for _, g := range gaps[1:] {
			require.GreaterOrEqual(t, g, int64(minSkip))
			require.LessOrEqual(t, g, int64(minSkip+skipRange+1))
			require.False(t, seen[g])
			seen[g] = true
		}
		require.Zero(t, c.Counters.PacketsLost)
	}
}

// TestMergingChangesTheLength: a bunch that grows past a power of two keeps its payload when packets aren't of such a size.
func TestMergingChangesTheLength(t *testing.T) {
	for _, size := range []int{1024, 1200, 1000} {
		var got collector
		p := newPair(t, 1, network{}, func(_ int, c *Config) {
			c.Protocol = Bunchnet()
			c.Protocol.Bunch.MaxPacket, c.NetSpeed = size, 10_000_000
			c.Channels = testTypes(func(*channel.Channel) channel.Handler { return &got })
		})
		ch, err := p.ends[0].conn.Open(bunch.Control, channel.Nop{})
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
		require.NoError(t, err)
		p.step()
		p.step()
		want := ""
		for i := range 2000 {
			b := []byte{byte(i), byte(i >> 3), byte(i * 5)}
			want += string(b)
			_, err = ch.SendBunch(&bunch.Out{Data: b, Reliable: true})
			require.NoError(t, err)
		}
		for range 20 {
			p.step()
		}
		text := ""
		for _, b := range got.got[1:] {
			text += string(b)
		}
		require.Equal(t, want, text, "packets of %d", size)
		require.Less(t, len(got.got), 20)
	}
}

// TestNextDeadlineOfEachReason: what was written leaves at once, what waits when the controller says, and the time-outs are among them.
func TestNextDeadlineOfEachReason(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) {
		c.NetSpeed, c.Timeout, c.KeepAlive = 10_000, 300*time.Millisecond, 150*time.Millisecond
	})
	for range 20 {
		h.exchange()
	}
	c := h.conns[0]
	at := func() time.Duration { d, _ := c.NextDeadline(); return d }
	c.flow.lastSend = c.now // the keep-alive is due in 150 ms
	c.flow.lastReceive = c.now - 200*time.Millisecond
	require.Equal(t, c.now+100*time.Millisecond, at(), "the time-out")
	c.cfg.Timeout = time.Hour
	require.Equal(t, c.now+150*time.Millisecond, at(), "the keep-alive")
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("x")})
	require.NoError(t, err)
	require.Equal(t, c.now, at(), "what was written")
	c.FlushNet()
	probe, ok := c.probeAt()
	require.True(t, ok)
	require.Equal(t, probe, at(), "nobody acked it yet")
	c.cfg.Controller.OnSent(c.now, 1, 1000) // 100 ms of the rate
	_, err = h.chs[0].SendBunch(&bunch.Out{Data: []byte("y"), Reliable: true})
	require.NoError(t, err)
	require.Equal(t, 1, c.Table().Waiting())
	ready, wait := c.cfg.Controller.NextDeadline(c.now)
	require.True(t, wait)
	require.Less(t, ready, probe)
	require.Equal(t, ready, at(), "the controller")
}

// TestWhoBroke: a bound of ours, or a rule that the peer broke.
func TestWhoBroke(t *testing.T) {
	for local, want := range map[bool]CloseCode{true: WeBroke, false: PeerBroke} {
		h := newHand(t, nil)
		h.conns[0].Fail(ErrPacket, local)
		require.Equal(t, want, h.conns[0].Result().Code)
		require.ErrorIs(t, h.conns[0].Result().Err, ErrPacket)
		require.NotEmpty(t, h.sent[0], "its last words")
		h.give(1, []byte{1})
		h.give(1, []byte{1})
		require.EqualValues(t, 2, h.conns[0].Counters.AfterClose)
	}
}

// TestNothingToFlush: without anything written or due, FlushNet sends nothing.
func TestNothingToFlush(t *testing.T) {
	h := newHand(t, nil)
	for range 20 {
		h.exchange()
	}
	c := h.conns[0]
	c.flow.lastSend = c.now
	before := c.Counters
	c.FlushNet()
	require.Equal(t, before, c.Counters)
	p := h.packet(0, false)
	require.Equal(t, before.BytesSent+uint64(len(p)), c.Counters.BytesSent)
	require.Equal(t, before.PacketsSent+1, c.Counters.PacketsSent)
}

// TestBeyondTheBudget: what unreliable bunches and empty packets take then counts, with what the network adds.
func TestBeyondTheBudget(t *testing.T) {
	h := newHand(t, nil)
	for range 20 {
		h.exchange()
	}
	c := h.conns[0]
	c.cfg.Controller.OnSent(c.now, 1, 1e6)
	require.False(t, c.IsNetReady())
	c.pace.overdrawn = 0
	for i := range 2 {
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, 100), NoMerge: true})
		require.NoError(t, err)
		if i == 0 {
			require.InDelta(t, (c.out.Len()+7)/8+28, c.pace.overdrawn, 0.1)
		}
	}
	require.InDelta(t, (c.out.Len()+7)/8+28, c.pace.overdrawn, 1.1, "one packet")
	c.FlushNet()
	c.pace.overdrawn = 0
	c.oweAcks(0)
	c.FlushNet()
	require.InDelta(t, 44, c.pace.overdrawn, 0.1)
}

// TestLastRoomOfTheWindow: the packet under construction is the last one, and takes what fits it.
func TestLastRoomOfTheWindow(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	o := (*outlet)(c)
	for c.notify.Outstanding() < c.cfg.Protocol.PacketWindow-windowMargin-1 {
		c.sent(c.notify.Skip(), 0)
	}
	require.True(t, o.HasRoom(7000))
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, 100)})
	require.NoError(t, err)
	full := c.Counters.WindowFull
	free := c.out.Free() - bunch.MaxHeaderBits
	require.True(t, o.HasRoom(free))
	require.Equal(t, full, c.Counters.WindowFull)
	require.False(t, o.HasRoom(free+1))
	require.Equal(t, full+1, c.Counters.WindowFull)
	c.FlushNet()
	require.False(t, o.HasRoom(1))
}

// TestSuspicionEndsWithWhatWaits: a path isn't narrow when nothing is unacked any more.
func TestSuspicionEndsWithWhatWaits(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	require.Zero(t, c.Table().Unacked())
	c.path = &path{smallest: 700, biggest: 700, largest: 100, lostN: narrowLost, ackedN: narrowAcked, emptyN: narrowAcked, since: h.now}
	c.Tick(h.now)
	require.Equal(t, path{}, *c.path)
}

// TestCloseInAHeldPacket: a close of the connection that is read before its packet's turn counts when that comes, so that the packet is
// acked.
func TestCloseInAHeldPacket(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = 20 * time.Millisecond })
	c := h.conns[1]
	c.enableOrderCache()
	for range 3 {
		h.exchange()
	}
	missing := h.packet(0, false)
	h.conns[0].Close(h.now, "done")
	h.conns[0].FlushWritten(h.now)
	h.sent[1] = nil
	h.deliver2(0)
	require.EqualValues(t, 1, c.Counters.Cached)
	require.False(t, c.Closed())
	h.give(0, missing)
	require.Equal(t, ClosedByPeer, c.Result().Code)
	h.deliver(1)
	require.Equal(t, ClosedByUs, h.conns[0].Result().Code)
	require.Zero(t, h.conns[0].Result().Unacked)
}

// TestCloseBeforeAHeldPacket: a close of the connection in its packet's turn counts then, whatever later packets were read before theirs and are still held back.
func TestCloseBeforeAHeldPacket(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = time.Second })
	c := h.conns[1]
	c.enableOrderCache()
	for range 3 {
		h.exchange()
	}
	h.conns[0].Close(h.now, "done")
	h.conns[0].FlushWritten(h.now)
	closing := h.sent[0]
	h.sent[0] = nil
	h.conns[0].sendAckPacket()
	h.sent[0] = nil // that one is lost
	h.conns[0].sendAckPacket()
	h.deliver(0)
	require.EqualValues(t, 1, c.Counters.Cached)
	for _, p := range closing {
		h.give(0, p)
	}
	require.Equal(t, ClosedByPeer, c.Result().Code)
}

// TestStalePacketsAreNotRead: what comes in a sequence that had its turn is stale, whatever is in it.
func TestStalePacketsAreNotRead(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[1]
	p := h.packet(0, true)
	h.give(0, p)
	for i := len(p) - 8; i < len(p)-1; i++ {
		p[i] = 0xff
	}
	before := c.Counters
	h.give(0, p)
	require.Equal(t, before.Stale+1, c.Counters.Stale)
	require.Zero(t, c.Counters.BadBunch)
	require.False(t, c.Closed())
}

// TestTwiceWhileOneIsHeld: the newest once more is stale, and not held back.
func TestTwiceWhileOneIsHeld(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = 20 * time.Millisecond })
	c := h.conns[1]
	c.enableOrderCache()
	for range 3 {
		h.exchange()
	}
	newest := h.packet(0, false)
	h.give(0, newest)
	h.packet(0, false)
	h.give(0, h.packet(0, false))
	before := c.Counters
	h.give(0, newest)
	require.Equal(t, before.Stale+1, c.Counters.Stale)
	require.Equal(t, before.Cached, c.Counters.Cached)
	h.now += 20 * time.Millisecond
	c.PostTickDispatch(h.now)
	late := c.Counters.OutOfOrder
	lost := h.packet(0, false)
	h.give(0, h.packet(0, false))
	h.now += 20 * time.Millisecond
	c.PostTickDispatch(h.now)
	h.give(0, lost)
	require.Equal(t, late+1, c.Counters.OutOfOrder)
}

// TestManyPacketsAreAckedSoon: delayed acks are due in this tick once sixteen packets are owed one, or half of a small window.
func TestManyPacketsAreAckedSoon(t *testing.T) {
	for window, soon := range map[int]int{16: 8, 31: 15, 32: acksSoon, 6144: acksSoon} {
		h := newHand(t, func(_ int, c *Config) { c.KeepAlive = 30 * time.Second })
		for range 5 {
			h.exchange()
		}
		c := h.conns[1]
		c.cfg.AckDelay, c.cfg.Protocol.PacketWindow = time.Second, window
		for i := 1; i <= soon; i++ {
			h.give(0, h.packet(0, true))
			require.Equal(t, i == soon, c.acksDue(), "window %d, %d packets", window, i)
		}
	}
}

// TestUnreliableOnesOfTwoChannels: both hear what became of the packet with nothing else of theirs.
func TestUnreliableOnesOfTwoChannels(t *testing.T) {
	h := newHand(t, nil)
	var hs [2]hears
	var chs [2]*channel.Channel
	for i := range chs {
		ch, err := h.conns[0].Open(testName, &hs[i])
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
		require.NoError(t, err)
		chs[i] = ch
	}
	for range 3 {
		h.exchange()
	}
	hs = [2]hears{}
	for _, ch := range chs {
		for range 3 {
			_, err := ch.SendBunch(&bunch.Out{Data: []byte("x"), NoMerge: true})
			require.NoError(t, err)
		}
	}
	require.EqualValues(t, 2, h.conns[0].pending, "noted once")
	for range 3 {
		h.exchange()
	}
	require.Equal(t, [2]hears{{acks: 1}, {acks: 1}}, hs)
}

// TestFirstPacketIsNoJitter: there is nothing to compare it with, however soon after the begin of time it comes.
func TestFirstPacketIsNoJitter(t *testing.T) {
	c, err := New(Config{LowLevelSend: func([]byte) {}}, 0, 1, 1)
	require.NoError(t, err)
	c.rtt.clock(300*time.Millisecond, 20)
	require.Zero(t, c.Stats().Jitter)
	c.rtt.clock(400*time.Millisecond, 104)
	require.Equal(t, time.Millisecond, c.Stats().Jitter)
	require.True(t, Unreal53(true).Bunch.CustomExportsFinal)
	require.False(t, Unreal53(false).Bunch.CustomExportsFinal)
}
