package netconn

import (
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/handler/coding"
)

// coded is packets of the client's, each but the first with a symbol over those before it that aren't acked.
func (h *hand) coded(n int) (sent [][]byte) {
	for len(sent) < n {
		sent = append(sent, h.packet(0, true))
	}
	return sent
}

// covers is how many packets the symbol of a packet covers.
func covers(t *testing.T, p []byte) int {
	t.Helper()
	_, trailer, ok := coding.Split(p)
	require.True(t, ok)
	return bits.OnesCount16(uint16(trailer.Covers))
}

// plain takes the symbols off a packet.
func plain(t testing.TB, p []byte) []byte {
	t.Helper()
	if !coding.Marked(p) {
		return p
	}
	packet, _, ok := coding.Split(p)
	require.True(t, ok)
	return packet
}

// begun has the server know symbols, so that it waits for what may be repaired.
func (h *hand) begun() {
	for range 3 {
		for _, p := range h.coded(3) {
			h.give(0, p)
		}
		h.exchange()
		h.exchange()
	}
	require.NotNil(h.t, h.conns[1].coder.dec)
	require.Positive(h.t, h.conns[1].coder.holds(h.now))
	h.tick(0)
	h.deliver(0)
}

// TestRepairedBehindTheLast: a late packet with which a later one is repaired has that processed at once, and not with the next packet or tick.
func TestRepairedBehindTheLast(t *testing.T) {
	h := codingHand(t)
	h.begun()
	sent := h.coded(5)
	require.GreaterOrEqual(t, covers(t, sent[3]), 3)
	server := h.conns[1]
	in, before := server.notify.InID(), server.Counters.Repaired
	h.give(0, sent[0])
	h.give(0, sent[3])
	require.Equal(t, in+1, server.notify.InID(), "one more of the two that are missing brings both")
	h.give(0, plain(t, sent[1])) // so the symbol in sent[3] misses sent[2] alone
	require.Equal(t, before+1, server.Counters.Repaired)
	require.Equal(t, in+4, server.notify.InID())
	require.Zero(t, server.order.held)
}

// TestLateContentRepairs: a packet that comes when it was given up already says what another one was, whose reliable bunches are taken.
func TestLateContentRepairs(t *testing.T) {
	h := codingHand(t)
	h.begun()
	server := h.conns[1]
	sent := h.coded(3)
	require.GreaterOrEqual(t, covers(t, sent[2]), 2)
	h.give(0, sent[2])
	late, in := server.Counters.RepairedLate, server.notify.InID()
	h.now += longestHold + time.Millisecond
	server.PostTickDispatch(h.now)
	require.Equal(t, in+3, server.notify.InID(), "both are given up")
	released := server.Table().Counters.ReceivedReliable
	h.give(0, plain(t, sent[1]))
	require.Equal(t, late+1, server.Counters.RepairedLate)
	require.Equal(t, released+1, server.Table().Counters.ReceivedReliable, "that of the first")
}

// TestAllLateOnesAtOnce: packets that were given up and are found together are taken together, and don't wait for the next packets.
func TestAllLateOnesAtOnce(t *testing.T) {
	const lost = 3
	h := codingHand(t)
	h.begun()
	server := h.conns[1]
	sent := h.coded(2 * lost)
	for i, p := range sent[lost:] {
		if i == lost-1 {
			h.now += longestHold + time.Millisecond
			server.PostTickDispatch(h.now)
			require.Zero(t, server.order.held)
			require.Zero(t, server.Counters.RepairedLate)
		}
		h.give(0, p)
	}
	require.EqualValues(t, lost, server.Counters.RepairedLate)
}

// TestHopelessHoldsNothingUp: packets that wait for one that no symbol covers go on as soon as that is known.
func TestHopelessHoldsNothingUp(t *testing.T) {
	h := codingHand(t)
	h.begun()
	server := h.conns[1]
	sent := h.coded(windowAlone + 4)
	last := len(sent) - 1
	require.Less(t, covers(t, sent[last]), last)
	in := server.notify.InID()
	for _, p := range sent[1:last] {
		h.give(0, plain(t, p))
	}
	require.Equal(t, in, server.notify.InID(), "the first may be repaired yet")
	h.give(0, sent[last])
	require.Equal(t, in+int64(len(sent)), server.notify.InID())
	require.Zero(t, server.order.held)
}

// TestSeveralLostInARowAreToldAtOnce: nothing waits for a repair that one more symbol doesn't bring.
func TestSeveralLostInARowAreToldAtOnce(t *testing.T) {
	for lost := 1; lost <= 4; lost++ {
		h := codingHand(t)
		h.begun()
		server := h.conns[1]
		sent := h.coded(6)
		in, repaired := server.notify.InID(), server.Counters.Repaired
		h.give(0, sent[0])
		h.give(0, sent[1+lost])
		switch lost {
		case 1:
			require.Equal(t, repaired+1, server.Counters.Repaired)
			require.Equal(t, in+3, server.notify.InID())
		case 2:
			require.Equal(t, in+1, server.notify.InID(), "the next symbol may tell")
		default:
			require.Equal(t, in+int64(lost)+2, server.notify.InID())
			require.Zero(t, server.order.held)
			require.Equal(t, repaired, server.Counters.Repaired)
		}
	}
}

// TestTailOfNothing: symbols that are owed over packets which are all acked by now cost one packet at most.
func TestTailOfNothing(t *testing.T) {
	h := codingHand(t)
	h.begun()
	client := h.conns[0]
	for _, p := range h.coded(2) {
		h.give(0, plain(t, p))
	}
	h.exchange()
	h.exchange()
	client.coder.enc.Forget(client.notify.OutID())
	client.coder.credit, client.coder.uncovered = 2, 2 // as when the ack came as the symbols were due
	before := client.Counters.PacketsSent
	for range 4 { // sooner than keep-alives
		h.now += tailRepair + time.Millisecond
		client.Tick(h.now)
	}
	require.Equal(t, before+1, client.Counters.PacketsSent)
	require.Zero(t, client.coder.uncovered)
}

// TestWhatIsToldOfRepairs: the repairs among the last 24 packets that are acked are told until the newest has been told twice; what isn't acked yet waits.
func TestWhatIsToldOfRepairs(t *testing.T) {
	var k telling
	for _, id := range []int64{75, 76, 77, 99, 101} {
		k.repair(id)
	}
	for _, c := range []struct {
		acked int64
		bits  uint32
	}{{100, 1<<23 | 1<<1}, {101, 1 | 1<<2}, {109, 1<<8 | 1<<10}, {110, 0}} {
		require.Equal(t, c.bits, k.told(c.acked), "%d", c.acked)
	}
	k.repair(500)
	require.Equal(t, uint32(0), k.told(499), "101 is long forgotten")
	require.Equal(t, uint32(1), k.told(500))
	h := codingHand(t)
	require.False(t, newCoder(&h.conns[0].cfg).wasRepaired(0))
}

// TestRepairsAloneWait: symbols don't go in a packet of their own while another one is begun, nor when the connection has ended, and one that has nothing to
// cover is sent once.
func TestRepairsAloneWait(t *testing.T) {
	h := codingHand(t)
	h.begun()
	c := h.conns[0]
	require.True(t, c.mayRepair())
	c.coder.enc.Forget(c.notify.OutID())
	c.coder.full, c.coder.credit = true, 3
	before := c.Counters.PacketsSent
	c.sendRepairs()
	require.LessOrEqual(t, c.Counters.PacketsSent, before+2)
	require.False(t, c.coder.full)
	require.False(t, c.coder.alone)
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte{1}})
	require.NoError(t, err)
	require.False(t, c.mayRepair(), "a packet is begun")
	c.FlushWritten(h.now)
	require.True(t, c.mayRepair())
	c.Abort(h.now, "")
	require.False(t, c.mayRepair())
}

// TestNothingIsOwedIntoAQueue: while the path's queue grows no symbols are sent, and none are owed for that time.
func TestNothingIsOwedIntoAQueue(t *testing.T) {
	h := codingHand(t)
	h.begun()
	k := h.conns[0].coder
	k.credit, k.uncovered, k.full = 2, 2, true
	k.queue = pathQueue{base: time.Millisecond, n: len(k.queue.recent)}
	for i := range k.queue.recent {
		k.queue.recent[i] = time.Second
	}
	h.packet(0, true)
	require.Zero(t, k.credit)
	require.Zero(t, k.uncovered)
	require.False(t, k.full)

	var q pathQueue
	q.sample(time.Second, 100*time.Millisecond, 0)
	require.Equal(t, 100*time.Millisecond, q.base)
	q.sample(2*time.Second, 50*time.Millisecond, 0)
	require.Equal(t, 50*time.Millisecond, q.base)

	q = pathQueue{}
	for _, want := range []struct {
		rtt   time.Duration
		grown bool
	}{{800 * time.Millisecond, false}, {920 * time.Millisecond, false}, {930 * time.Millisecond, true}} { // 25 ms and an eighth
		for range q.recent {
			q.sample(time.Second, want.rtt, 0)
		}
		require.Equal(t, want.grown, q.grown(), "%v", want.rtt)
	}
}

// TestRareSymbolsCoverAll: a symbol for each ten packets covers all ten.
func TestRareSymbolsCoverAll(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.Coding.Repairs, c.NetSpeed = 0.1, 10_000_000 })
	symbols := 0
	for _, p := range h.coded(40) {
		if coding.Marked(p) {
			symbols++
			require.GreaterOrEqual(t, covers(t, p), 10)
		}
	}
	require.GreaterOrEqual(t, symbols, 3)
}

// TestSymbolsAreWhatIsLeft: none leave when the rate is used up or the window is full, and those that are owed meanwhile have a bound.
func TestSymbolsAreWhatIsLeft(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.Coding.Repairs, c.NetSpeed = 1, 10_000 })
	h.begun()
	h.tick(time.Second)
	c := h.conns[0]
	require.True(t, c.mayRepair())
	for c.IsNetReady() {
		h.packet(0, false)
	}
	require.False(t, c.mayRepair(), "the rate is used up")
	before := c.Counters.Repairs
	c.coder.credit = 2 * maxCredit
	h.packet(0, false)
	require.Equal(t, before, c.Counters.Repairs)
	require.Equal(t, maxCredit, c.coder.credit)

	h = newHand(t, func(_ int, c *Config) {
		c.Coding.Repairs, c.NetSpeed, c.Protocol = 1, 10_000_000, Bunchnet()
		c.Protocol.PacketWindow = 16
	})
	for c = h.conns[0]; !c.windowFull(); {
		require.True(t, c.hasRoomForRepairs())
		h.packet(0, false)
	}
	require.False(t, c.hasRoomForRepairs())
}

// TestHoldsAsLongAsSymbolsAreApart: packets behind a missing one wait for the mean time between symbols and 4 ms, 50 ms at most, and not when none has come for 250 ms. A pause
// without symbols, and several of one moment, don't change that mean.
func TestHoldsAsLongAsSymbolsAreApart(t *testing.T) {
	const tick = 16 * time.Millisecond
	h := codingHand(t)
	h.begun()
	packet, trailer, ok := coding.Split(h.coded(3)[2])
	require.True(t, ok)
	c := h.conns[1]
	k := c.coder
	k.gap, k.lastSymbol = tick, c.now
	for _, d := range []time.Duration{tick, 0, tick, time.Hour, tick} {
		c.now += d
		c.takeSymbols(c.notify.InID()+1, packet, &trailer)
		require.Equal(t, tick, k.gap)
		require.Equal(t, c.now, k.lastSymbol)
	}
	require.Equal(t, tick+4*time.Millisecond, k.holds(c.now))
	require.Equal(t, tick+4*time.Millisecond, k.holds(c.now+250*time.Millisecond))
	require.Zero(t, k.holds(c.now+250*time.Millisecond+1))
	k.gap = time.Second
	require.Equal(t, 50*time.Millisecond, k.holds(c.now))
}

// TestSymbolsForALoss: how many symbols the adaptive setting sends at each loss, and how many packets each covers where losses are apart and where they come together.
func TestSymbolsForALoss(t *testing.T) {
	h := codingHand(t)
	c := h.conns[0]
	c.coder.cfg = Coding{Repairs: 3, Adaptive: true}
	for _, v := range []struct{ loss, want float64 }{{0, 0}, {0.0019, 0}, {0.0021, 0.5}, {0.019, 0.5}, {0.021, 1}, {0.069, 1}, {0.071, 2}, {0.24, 2}, {0.26, 3}} {
		c.rates = rates{lossRate: v.loss}
		require.Equal(t, v.want, c.repairs(c.notify.OutID()), "%v", v.loss)
	}
	c.coder.cfg.Repairs = 1.5
	require.Equal(t, 1.5, c.repairs(c.notify.OutID()))
	for i := range c.coder.queue.recent { // but none into a queue
		c.coder.queue.recent[i] = time.Second
	}
	c.coder.queue.base, c.coder.queue.n = time.Millisecond, 8
	require.Zero(t, c.repairs(c.notify.OutID()))
	c.coder.queue.recent[5] = 20 * time.Millisecond
	require.Equal(t, 1.5, c.repairs(c.notify.OutID()), "the least of the last counts")

	c.rates = rates{lossRate: 0.1, afterLoss: 0.2}
	require.Equal(t, windowAlone, c.codingWindow())
	c.rates.afterLoss = 0.5
	require.Equal(t, windowBursts, c.codingWindow())
	require.Zero(t, new(Config).codingMemory(), "it is off")
	require.Equal(t, 8*40, Config{Coding: Coding{Repairs: 1}}.filled().Protocol.Bunch.HandlerBits)
}

// TestAHelloHasItsTime: Tick is wanted when one is due, and at once when the peer asks.
func TestAHelloHasItsTime(t *testing.T) {
	c := codingHand(t).conns[0]
	c.coder.peer, c.coder.hello = false, hello{at: time.Minute}
	require.Equal(t, time.Minute, c.codingDeadline(time.Hour))
	c.coder.peer = true
	require.Equal(t, time.Hour, c.codingDeadline(time.Hour))
	c.coder.hello.owed = true
	require.Zero(t, c.codingDeadline(time.Hour))
}

// TestTheTailHasItsTime: symbols that no packet takes along are due 25 ms after the last packet, and Repairs counts them.
func TestTheTailHasItsTime(t *testing.T) {
	h := codingHand(t)
	h.begun()
	c := h.conns[0]
	before := c.Counters.Repairs
	h.packet(0, true)
	c.coder.uncovered, c.coder.credit = 1, 1
	at, ok := c.repairTailAt()
	require.True(t, ok)
	require.Equal(t, c.flow.lastSend+tailRepair, at)
	require.Equal(t, at, c.codingDeadline(time.Hour))
	c.coder.uncovered = 0
	require.Greater(t, c.codingDeadline(time.Hour), at)
	c.coder.uncovered, c.now = 1, at
	sent := c.Counters.Repairs
	c.repairTail()
	require.Equal(t, sent+1, c.Counters.Repairs)
	require.LessOrEqual(t, c.Counters.Repairs-before, uint64(3))
}

// TestQueueOrLongerPath: round trips that stay longer are a longer path within 20 s when no more is lost than before, and within two minutes otherwise; a queue that overflows is
// one for a minute at least.
func TestQueueOrLongerPath(t *testing.T) {
	for _, c := range []struct {
		loss        float64
		least, most time.Duration
	}{{0.05, 10 * time.Second, 20 * time.Second}, {0.12, 10 * time.Second, 20 * time.Second}, {0.2, time.Minute, 2 * time.Minute}} {
		var q pathQueue
		began := 33 * time.Second
		for now := time.Duration(0); ; now += 20 * time.Millisecond {
			rtt, loss := 60*time.Millisecond, 0.05
			if now > began {
				rtt, loss = 300*time.Millisecond, min(c.loss, loss+(now-began).Seconds()/10) // it is an average
			}
			q.sample(now, rtt, loss)
			if took := now - began; took > time.Second && !q.grown() {
				require.GreaterOrEqual(t, took, c.least, "%v", c.loss)
				require.LessOrEqual(t, took, c.most, "%v", c.loss)
				break
			}
		}
	}
}

// TestHellosGetRarer: an end whose peer never says hello does so maxHellos times, each twice as long after the one before, and not while nothing is heard.
func TestHellosGetRarer(t *testing.T) {
	h := codingHand(t)
	c := h.conns[0]
	c.coder.peer, c.coder.hello.sent, c.coder.hello.at, c.coder.hello.owed = false, 0, 0, false
	begin, bytes := h.now, c.Counters.BytesSent
	var at []time.Duration
	run := func(d time.Duration, heard bool) {
		for end := h.now + d; h.now < end; h.now += 10 * time.Millisecond {
			if heard {
				c.flow.lastReceive = h.now
			}
			c.now, h.sent[0] = h.now, nil
			c.sendHello()
			if len(h.sent[0]) > 0 {
				at = append(at, h.now-begin)
			}
		}
	}
	run(50*time.Millisecond, true)
	require.Len(t, at, 1)
	c.flow.lastReceive = begin + at[0]
	run(time.Minute, false)
	require.Len(t, at, 1, "nothing was heard since")
	begin = h.now
	run(time.Minute, true)
	require.Len(t, at, maxHellos)
	for i := 2; i < maxHellos-1; i++ {
		require.InDelta(t, 2, float64(at[i+1]-at[i])/float64(at[i]-at[i-1]), 0.3, "%v", at)
	}
	require.Equal(t, bytes+maxHellos*coding.HelloBytes, c.Counters.BytesSent)
}

// TestCodedPacketsAreCounted: those that come, as on other connections, and those that are broken; a packet with a trailer shows that the peer understands
// it, and what is repaired by the packet that comes has its turn before that one.
func TestCodedPacketsAreCounted(t *testing.T) {
	h := codingHand(t)
	h.begun()
	c := h.conns[1]
	c.coder.peer = false
	sent := h.coded(2)
	before := c.Counters
	h.give(0, sent[1]) // and the first is repaired
	require.Equal(t, before.PacketsReceived+1, c.Counters.PacketsReceived)
	require.Equal(t, before.Repaired+1, c.Counters.Repaired)
	require.Equal(t, before.Cached, c.Counters.Cached)
	require.True(t, c.coder.peer)
	require.ErrorIs(t, c.ReceivedPacket(h.now, []byte{1, 2, 0}), ErrPacket)
	require.Equal(t, before.BadHandler+1, c.Counters.BadHandler)
	require.ErrorIs(t, c.ReceivedPacket(h.now, []byte{1}), ErrPacket)
}

// TestHelloLeavesRoom: for what the link puts before and behind it.
func TestHelloLeavesRoom(t *testing.T) {
	var sent [][]byte
	c, err := New(Config{Coding: Coding{Repairs: 1}, Headroom: 9, Tailroom: 16, LowLevelSend: func(p []byte) { sent = append(sent, p) }}, 0, 0, 0)
	require.NoError(t, err)
	c.Tick(time.Millisecond)
	require.NotEmpty(t, sent)
	p := sent[0]
	require.Len(t, p, 9+coding.HelloBytes)
	require.GreaterOrEqual(t, cap(p), len(p)+16)
	_, ok := coding.Hello(p[9:])
	require.True(t, ok)
}

// TestLastPacketIsCovered: the last packet before a pause is repaired by a symbol in a packet of its own, and so is a full one at once.
func TestLastPacketIsCovered(t *testing.T) {
	for _, size := range []int{3, 900} {
		h := codingHand(t)
		h.begun()
		c, server := h.conns[0], h.conns[1]
		c.coder.credit, c.coder.uncovered = 0, 0
		h.sent[0] = nil
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true, NoMerge: true})
		require.NoError(t, err)
		c.FlushWritten(h.now)
		require.EqualValues(t, 1, c.coder.credit+float64(len(h.sent[0])-1), "of one packet")
		if size == 3 {
			require.Len(t, h.sent[0], 1)
			h.now += tailRepair
			at, ok := c.NextDeadline()
			require.True(t, ok)
			require.LessOrEqual(t, at, h.now)
			c.Tick(h.now)
		}
		require.Len(t, h.sent[0], 2)
		before := server.Counters.Repaired
		h.give(0, h.sent[0][1]) // the first is lost
		require.Equal(t, before+1, server.Counters.Repaired, "%d bytes", size)
	}
}

// TestSymbolsWaitForBunches: symbols that are owed don't wake a loop while bunches wait for an ack, as they come after those.
func TestSymbolsWaitForBunches(t *testing.T) {
	h := codingHand(t)
	h.begun()
	c := h.conns[0]
	h.packet(0, true)
	c.mostNotes = mostNotes(8 * 16) // records of one bunch
	require.True(t, c.notesFull())
	require.False(t, c.windowFull())
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
	require.NoError(t, err)
	require.Equal(t, 1, c.Table().Waiting())
	c.coder.uncovered, c.coder.credit, c.flow.probes = 1, 1, maxProbes
	at, ok := c.NextDeadline()
	require.True(t, ok)
	require.Greater(t, at, c.flow.lastSend+tailRepair)
	c.Tick(c.flow.lastSend + tailRepair)
	require.Equal(t, 1, c.coder.uncovered)
}

// asksHeard asks which packet was heard when it hears of an ack.
type asksHeard struct {
	channel.Nop
	o     *outlet
	heard []int64
}

func (a *asksHeard) ReceivedAck(*channel.Channel, int64) { a.heard = append(a.heard, a.o.Heard()) }

// TestHeardWithTheAck: with Coding a packet is heard before its acks are told: a channel that goes with them takes nothing that comes late from before it.
func TestHeardWithTheAck(t *testing.T) {
	for _, repairs := range []float64{0, 1} {
		h := newHand(t, func(_ int, c *Config) { c.Coding.Repairs, c.NetSpeed = repairs, 10_000_000 })
		c := h.conns[0]
		asks := &asksHeard{o: (*outlet)(c)}
		ch, err := c.Open(testName, asks)
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
		require.NoError(t, err)
		for len(asks.heard) == 0 {
			h.exchange()
		}
		if repairs == 0 {
			require.Zero(t, asks.heard[0])
		} else {
			require.Equal(t, c.notify.InID(), asks.heard[0])
		}
	}
}
