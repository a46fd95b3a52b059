package netconn

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestFastPathWithJitter: where a hundred packets overtake one, it is waited for all the same, as long as the cache may
// hold so many; and where nothing is late, or little is in flight, there is room for few.
func TestFastPathWithJitter(t *testing.T) {
	const seed = 1
	for _, v := range []struct {
		perMs, cache int
		jitter       time.Duration
		slots        int
		stale        [2]float64 // share of the packets, at least and at most
	}{
		{6, 0, 10 * time.Millisecond, 128, [2]float64{0, 0.01}},
		{6, 32, 10 * time.Millisecond, 32, [2]float64{0.1, 1}},
		{6, 0, 0, 0, [2]float64{0, 0}},
		{1, 0, 5 * time.Millisecond, 32, [2]float64{0, 0.01}},
	} {
		l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond, LagVariance: v.jitter}), seed, func(i int, c *Config) {
			c.Controller, c.OrderCache = congestion.NewTokenBucket(20_000_000), v.cache
		})
		l.fine = time.Millisecond
		l.control()
		l.run(200*time.Millisecond, nil)
		ch := l.open(0)
		_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
		require.NoError(t, err)
		l.run(200*time.Millisecond, nil)
		data := make([]byte, 900)
		for end := l.now + 4*time.Second; l.now < end; {
			l.step(nil)
			for range v.perMs {
				_, err := ch.SendBunch(&bunch.Out{Data: data, NoMerge: true})
				require.NoError(t, err)
			}
			l.conns[0].FlushWritten(l.now)
		}
		n := l.conns[1].Counters
		share := float64(n.Stale) / float64(n.PacketsReceived)
		t.Logf("seed %d, %d packets a ms, jitter %v: %d of %d stale, room for %d", seed, v.perMs, v.jitter, n.Stale, n.PacketsReceived, len(l.conns[1].order.slots))
		require.GreaterOrEqual(t, share, v.stale[0])
		require.LessOrEqual(t, share, v.stale[1])
		require.Equal(t, v.slots, len(l.conns[1].order.slots))
		l.run(latenessLife+time.Second, nil)
		require.LessOrEqual(t, len(l.conns[1].order.slots), smallOrderCache, "what isn't needed is given back")
	}
}

// TestHeldPacketsHaveTheirOwnWindow: one that came later waits longer.
func TestHeldPacketsHaveTheirOwnWindow(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = 20 * time.Millisecond })
	c := h.conns[1]
	c.enableOrderCache()
	base := c.notify.InID()
	h.packet(0, false)
	second := h.packet(0, false)
	h.packet(0, false)
	fourth := h.packet(0, false)
	h.give(0, second)
	h.now += 5 * time.Millisecond
	h.give(0, fourth)
	h.now += 15 * time.Millisecond
	c.PostTickDispatch(h.now)
	require.Equal(t, base+2, c.notify.InID())
	require.Equal(t, 1, c.order.held)
	require.Equal(t, h.now-15*time.Millisecond, c.order.since)
	h.now += 5 * time.Millisecond
	c.PostTickDispatch(h.now)
	require.Equal(t, base+4, c.notify.InID())
}

// TestOldestHeldPacketGoesFirst: when some of the packets that are held back have had their turn, the window is that of the oldest of the others.
func TestOldestHeldPacketGoesFirst(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = 30 * time.Millisecond })
	c := h.conns[1]
	c.enableOrderCache()
	base := c.notify.InID()
	var p [8][]byte
	for i := 1; i < len(p); i++ {
		p[i] = h.packet(0, false)
	}
	for _, i := range []int{2, 4, 6} {
		h.give(0, p[i])
		h.now += 10 * time.Millisecond
	}
	h.give(0, p[1])
	require.Equal(t, base+2, c.notify.InID())
	require.Equal(t, 2, c.order.held)
	h.now += 10 * time.Millisecond // the fourth has waited for 30 ms, the sixth for 20
	c.PostTickDispatch(h.now)
	require.Equal(t, base+4, c.notify.InID())
	require.Equal(t, 1, c.order.held)
}

// TestUnreliableBunchesOfHeldPackets: they come once, when their packet has its turn; reliable ones at once.
func TestUnreliableBunchesOfHeldPackets(t *testing.T) {
	var got collector
	h := newHand(t, func(_ int, c *Config) {
		c.ReorderWindow = 20 * time.Millisecond
		c.Channels = testTypes(func(*channel.Channel) channel.Handler { return &got })
	})
	c := h.conns[1]
	c.enableOrderCache()
	got.got = nil
	late := h.packet(0, false)
	h.give(0, h.packet(0, false))
	h.give(0, h.packet(0, true))
	require.Len(t, got.got, 1)
	h.give(0, late)
	require.Len(t, got.got, 3)
	require.Zero(t, c.order.held)
}

// packetIDs notes which packets its bunches came in.
type packetIDs struct {
	channel.Nop
	ids []int64
}

func (p *packetIDs) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	p.ids = append(p.ids, in.PacketID)
}

// TestEarlyBunchesKnowTheirPacket: a bunch that is taken from a packet before its turn has that packet's id.
func TestEarlyBunchesKnowTheirPacket(t *testing.T) {
	got := &packetIDs{}
	h := newHand(t, func(_ int, c *Config) {
		c.ReorderWindow = 20 * time.Millisecond
		c.Channels = testTypes(func(*channel.Channel) channel.Handler { return got })
	})
	c := h.conns[1]
	c.enableOrderCache()
	base := c.notify.InID()
	got.ids = nil
	late := h.packet(0, false)
	h.give(0, h.packet(0, true))
	h.give(0, h.packet(0, true))
	h.give(0, late)
	require.Equal(t, []int64{base + 2, base + 3, base + 1}, got.ids)
}

// TestWrittenBeforeAHeldClose: a close in a packet that is held back counts at once, so what was written on its channel leaves at once.
func TestWrittenBeforeAHeldClose(t *testing.T) {
	for _, v := range []struct {
		writes, closes bool
		leave          int // packets
	}{{true, true, 1}, {true, false, 0}, {false, true, 0}} {
		h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = 20 * time.Millisecond })
		c := h.conns[1]
		c.enableOrderCache()
		h.packet(0, false) // is late
		held := h.packet(0, true)
		if v.closes {
			require.NoError(t, h.chs[0].Close(bunch.Destroyed))
			h.give(0, held)
			h.conns[0].FlushWritten(h.now)
			held = h.sent[0][len(h.sent[0])-1]
		}
		if v.writes {
			_, err := h.chs[1].SendBunch(&bunch.Out{Data: []byte{1}})
			require.NoError(t, err)
		}
		before := len(h.sent[1])
		h.give(0, held)
		require.Positive(t, c.order.held)
		require.Equal(t, v.closes, h.conns[1].Channel(h.chs[0].Index()) == nil)
		require.Equal(t, before+v.leave, len(h.sent[1]), "%+v", v)
	}
}

// TestEarlyBunchesOfManyChannels: bunches are taken before their packets' turn on any number of channels over time.
func TestEarlyBunchesOfManyChannels(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = 20 * time.Millisecond; c.NetSpeed = 100_000_000 })
	c := h.conns[1]
	c.enableOrderCache()
	for i := range 100 {
		ch, err := h.conns[0].Open(testName, nil)
		require.NoError(t, err)
		h.chs[0] = ch
		h.packet(0, true) // opens it, and is lost
		late := h.packet(0, false)
		before := c.Table().Counters.ReceivedReliable
		p := h.packet(0, true)
		h.give(0, p)
		require.Equal(t, 1, c.order.held)
		require.Equal(t, before+1, c.Table().Counters.ReceivedReliable, "channel %d", i)
		h.give(0, late)
		for range 4 {
			h.exchange()
		}
		require.Zero(t, c.order.held)
		require.Zero(t, h.conns[0].Table().Unacked())
	}
}

// TestHeldPacketsAreTakenUpToTheirFault: of a packet that is held back nothing is taken behind a bunch that is refused or breaks a rule.
func TestHeldPacketsAreTakenUpToTheirFault(t *testing.T) {
	for name, fault := range map[string]bunch.Header{
		"refused": {ChIndex: 5, Reliable: true, Open: true, Name: testName, WireSeq: 8},
		"broken":  {ChIndex: 32767, Reliable: true, Name: testName, WireSeq: 8},
	} {
		h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = 20 * time.Millisecond })
		c := h.conns[1]
		c.cfg.AllowOpen = func(*bunch.In) error { return ErrPacket }
		c.enableOrderCache()
		h.packet(0, false)
		p := h.raw(0, func(end *Conn) {
			end.appendBunch(&fault, nil)
			end.appendBunch(&bunch.Header{ChIndex: h.chs[0].Index(), Reliable: true, Name: testName, WireSeq: 9, Bits: 8}, []byte{1})
		})
		before := c.Table().Counters
		h.give(0, p)
		require.Equal(t, 1, c.order.held, name)
		require.Equal(t, before.Received+1, c.Table().Counters.Received, name)
		require.False(t, c.Closed(), name)
	}
}

// TestHeldPacketCutShort: of a bunch in a packet that is held back, of which not all is there, nothing is taken.
func TestHeldPacketCutShort(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = 20 * time.Millisecond })
	c := h.conns[1]
	c.enableOrderCache()
	h.packet(0, false)
	p := h.raw(0, func(end *Conn) {
		end.appendBunch(&bunch.Header{ChIndex: h.chs[0].Index(), Reliable: true, Name: testName, WireSeq: 8, Bits: 800}, make([]byte, 100))
	})
	p = append(p[:60], 1)
	before := c.Table().Counters
	h.give(0, p)
	require.Equal(t, 1, c.order.held)
	require.Equal(t, before, c.Table().Counters)
}

// TestLatenessSpan: the counts are halved when they span latenessSpan packets.
func TestLatenessSpan(t *testing.T) {
	var l lateness
	for range latenessSpan - 1 {
		l.count(&l.came)
	}
	require.Equal(t, latenessSpan-1, l.came)
	l.count(&l.lost)
	require.Equal(t, [2]int{(latenessSpan - 1) / 2, 0}, [2]int{l.came, l.lost})
}

// TestEdgeOfTheOrderCache: what has as many packets missing before it as the cache holds doesn't fit, so what is held goes first; unless the
// cache may grow.
func TestEdgeOfTheOrderCache(t *testing.T) {
	for _, most := range []int{smallOrderCache, 2 * smallOrderCache} {
		h := newHand(t, func(_ int, c *Config) {
			c.ReorderWindow, c.OrderCache, c.NetSpeed = 20*time.Millisecond, most, 10_000_000
		})
		c := h.conns[1]
		c.enableOrderCache()
		base := c.notify.InID()
		h.packet(0, false)
		h.give(0, h.packet(0, false))
		require.EqualValues(t, 1, c.Counters.Cached)
		for range smallOrderCache - 2 {
			h.packet(0, false)
		}
		h.give(0, h.packet(0, false))
		if most == smallOrderCache {
			require.EqualValues(t, 1, c.Counters.Cached)
			require.Equal(t, base+smallOrderCache+1, c.notify.InID())
			require.Zero(t, c.order.held)
			require.Zero(t, c.Counters.Stale)
			continue
		}
		require.EqualValues(t, 2, c.Counters.Cached)
		require.Len(t, c.order.slots, most)
		require.Equal(t, 2, c.order.held)
		require.Equal(t, base, c.notify.InID())
		h.now += 20 * time.Millisecond
		c.PostTickDispatch(h.now)
		require.Equal(t, base+smallOrderCache+1, c.notify.InID())
	}
}

// TestNothingIsHeldUntilOneIsLate: neither a lost packet nor one that comes twice shows that the network reorders.
func TestNothingIsHeldUntilOneIsLate(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[1]
	late, twice := h.packet(0, false), h.packet(0, false)
	for range 2 {
		h.give(0, twice)
		require.Zero(t, c.Counters.OutOfOrder)
		require.Nil(t, c.order.slots)
	}
	h.give(0, late)
	require.EqualValues(t, 1, c.Counters.OutOfOrder)
	require.NotNil(t, c.order.slots)
}

// TestFarAheadIsNotHeld: a packet with more than half of the cache missing before it isn't held back while none is, however long it may wait.
func TestFarAheadIsNotHeld(t *testing.T) {
	for missing, held := range map[int]int{smallOrderCache / 2: 1, smallOrderCache/2 + 1: 0} {
		h := newHand(t, func(_ int, c *Config) {
			c.ReorderWindow, c.OrderCache, c.NetSpeed = 20*time.Millisecond, smallOrderCache, 10_000_000
		})
		c := h.conns[1]
		c.enableOrderCache()
		for range missing {
			h.packet(0, false)
		}
		ahead := h.packet(0, false)
		h.give(0, ahead)
		require.Equal(t, held, c.order.held, "%d missing", missing)
		for i := range c.order.slots {
			require.LessOrEqual(t, len(c.order.slots[i].data), len(ahead), "no more than there was")
		}
	}
}

// TestLatenessIsMeasured: a packet that closes the gap before those that are held says how late packets are, by the one that is held longest.
func TestLatenessIsMeasured(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[1]
	c.enableOrderCache()
	was := lateness{window: 20 * time.Millisecond, seen: h.now, came: latenessSpan / 4}
	c.order.late = was
	late := h.packet(0, false)
	h.give(0, h.packet(0, false))
	h.now += 4 * time.Millisecond
	h.give(0, h.packet(0, false))
	require.Equal(t, was, c.order.late, "nothing has come late yet")
	h.now += 4 * time.Millisecond
	h.give(0, late)
	was.seen, was.came = h.now, was.came+1
	require.Equal(t, was, c.order.late, "8 ms, a quarter and a millisecond are more than half of the window")
	h.give(0, h.packet(0, false))
	require.Equal(t, was, c.order.late, "what has no gap before it says nothing")
	h.packet(0, false)
	late = h.packet(0, false)
	for range 2 {
		h.give(0, h.packet(0, false))
		h.now += 4 * time.Millisecond
	}
	h.give(0, late)
	was.seen, was.came = h.now, was.came+1
	require.Equal(t, was, c.order.late, "8 ms behind the first that overtook it, though it has another gap before it")
	require.Equal(t, 3, c.order.held)
}

// TestOrderCacheShrinks: to its first size when nothing is late any more, and it is the same memory from then on.
func TestOrderCacheShrinks(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.OrderCache = 2 * smallOrderCache })
	c := h.conns[1]
	c.order.slots = make([]cachedPacket, 2*smallOrderCache)
	c.order.late = lateness{window: 5 * time.Millisecond, seen: h.now, came: 1}
	c.PostTickDispatch(h.now)
	require.Len(t, c.order.slots, 2*smallOrderCache, "some are late")
	c.order.late.came = 0
	c.PostTickDispatch(h.now)
	require.Len(t, c.order.slots, smallOrderCache)
	first := &c.order.slots[0]
	c.PostTickDispatch(h.now)
	require.Same(t, first, &c.order.slots[0])
}

// TestReorderWindowAdapts: where packets overtake each other, unreliable bunches aren't lost to that, and where they
// don't, nothing waits.
func TestReorderWindowAdapts(t *testing.T) {
	for _, jitter := range []time.Duration{0, 60 * time.Millisecond} {
		f := newFlood(t, 1, network{delay: 20 * time.Millisecond, jitter: jitter}, nil)
		f.send(1)
		f.drain()
		got := f.p.ends[1].conn
		for range 60 * 5 {
			f.send(1)
			f.p.step()
			f.alive()
		}
		before := got.Counters
		for range 60 * 20 {
			f.send(1)
			f.p.step()
			f.alive()
		}
		stale := float64(got.Counters.Stale - before.Stale)
		all := float64(got.Counters.PacketsReceived - before.PacketsReceived)
		if jitter == 0 {
			require.Zero(t, got.Counters.Cached)
			require.Zero(t, got.reorderWindow())
			continue
		}
		require.NotZero(t, got.reorderWindow())
		require.Less(t, stale, 0.03*all)
	}
}

// seldomTicked has the server send an unreliable bunch each tick, and bulk behind it, to a client that has only each nth tick. It returns what the client
// gets after 20 s, in the 30 s from then on.
func seldomTicked(t *testing.T, seed uint64, nth int, bulk bool, net netsim.Settings) *lab {
	l := newLab(t, both(net), seed, func(_ int, c *Config) { c.Controller = adapt() })
	l.join()
	ch := l.open(1)
	data := make([]byte, 900)
	_, err := ch.SendBunch(&bunch.Out{Reliable: true})
	require.NoError(t, err)
	for i := range 50 * 60 {
		if i == 20*60 {
			l.got[0], l.lat[0] = 0, nil
		}
		l.asleep[0] = i%nth > 0
		l.step(func() {
			binary.LittleEndian.PutUint64(data[8:], uint64(l.now))
			_, err := ch.SendBunch(&bunch.Out{Data: data[:16]})
			require.NoError(t, err)
			for bulk && err == nil && l.conns[1].Table().Waiting() < 200 {
				_, err = ch.SendBunch(&bunch.Out{Data: data, Reliable: true, NoMerge: true})
			}
		})
	}
	return l
}

// TestSlowTicksHoldNothing: what is behind a lost packet comes at the next tick of a peer of 1 to 5 Hz, and not at the one after it.
func TestSlowTicksHoldNothing(t *testing.T) {
	const ms = time.Millisecond
	for _, nth := range []int{12, 30, 60} {
		l := seldomTicked(t, 1, nth, false, netsim.Settings{Lag: 50 * ms, LagVariance: 10 * ms, Loss: 2})
		require.Greater(t, len(l.lat[0]), 30*60*95/100)
		require.Less(t, slices.Max(l.lat[0]), time.Duration(nth+1)*testTick+60*ms)
	}
}

// TestSlowTicksGetTheirBandwidth: nor do acks wait from one tick to the next, which looks like a queue.
func TestSlowTicksGetTheirBandwidth(t *testing.T) {
	const ms = time.Millisecond
	for _, v := range []struct {
		nth    int
		jitter time.Duration
		least  float64 // of the bandwidth
	}{{12, 10 * ms, 0.7}, {30, ms, 0.8}, {60, ms, 0.6}} {
		const bandwidth, seeds = 10e6, 4
		mean := 0.0
		for seed := range uint64(seeds) {
			l := seldomTicked(t, seed, v.nth, true, netsim.Settings{Lag: 20 * ms, LagVariance: v.jitter, Loss: 1, Bandwidth: bandwidth, QueueDelay: 500 * ms})
			mean += float64(l.got[0]) * 8 / 30 / bandwidth / seeds
		}
		t.Logf("one tick in %d: %.2f of the bandwidth", v.nth, mean)
		require.Greater(t, mean, v.least)
	}
}

// echo is the handler of an end that sends back what it gets.
type echo struct {
	channel.Nop
	l *lab
}

func (e *echo) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	e.l.got[0] += in.Bits / 8
	_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, in.Bits/8), Reliable: true, NoMerge: true}) // unless too many wait
}

// TestSlowTicksAckAllAtOnce: what a peer of 1 to 4 Hz sends while it reads doesn't take acks along of what it has read so far: those of the rest would seem to have
// waited in a queue.
func TestSlowTicksAckAllAtOnce(t *testing.T) {
	const ms = time.Millisecond
	for _, loss := range []float64{0, 1} {
		for _, nth := range []int{15, 30, 60} {
			const bandwidth, wanted, size = 10e6, 500_000, 740
			var l *lab
			l = newLab(t, both(netsim.Settings{Lag: 20 * ms, LagVariance: ms, Loss: loss, Bandwidth: bandwidth, QueueDelay: 500 * ms}), 1, func(i int, c *Config) {
				c.Controller = adapt()
				if i == 0 {
					c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return &echo{l: l} }
				}
			})
			l.join()
			ch := l.open(1)
			data, credit := make([]byte, size), 0
			for i := range 50 * 60 {
				if i == 20*60 {
					l.got[0] = 0
				}
				l.asleep[0] = i%nth > 0
				credit = min(credit+wanted/60, wanted)
				l.step(func() {
					for err := error(nil); err == nil && credit >= size; credit -= size {
						_, err = ch.SendBunch(&bunch.Out{Data: data, Reliable: true, NoMerge: true})
					}
				})
			}
			share := float64(l.got[0]) / 30 / wanted
			t.Logf("%v %% loss, one tick in %d: %.2f of what is wanted", loss, nth, share)
			require.Greater(t, share, 0.85)
		}
	}
}

// eager is the handler of an end that sends all it may whenever it gets something.
type eager struct {
	channel.Nop
	l *lab
}

func (e *eager) ReceivedBunch(ch *channel.Channel, _ *bunch.In) {
	for err := error(nil); err == nil && e.l.conns[0].IsNetReady() && ch.Room() > 10; {
		_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 500), Reliable: true, NoMerge: true})
	}
}

// TestSlowTicksKeepToTheBudget: what waits for the end of such a tick is spent, so that who sends while IsNetReady says so in a handler doesn't fill the buffer.
func TestSlowTicksKeepToTheBudget(t *testing.T) {
	var l *lab
	l = newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 1, func(i int, c *Config) {
		c.NetSpeed = 100_000
		if i == 0 {
			c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return &eager{l: l} }
		}
	})
	l.join()
	ch := l.open(1)
	most := 0
	for i := range 20 * 60 {
		l.asleep[0] = i%15 > 0
		l.step(func() {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 200), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		})
		most = max(most, l.conns[0].Table().Unacked())
	}
	require.Greater(t, l.got[1], 20*70_000, "bytes came")
	require.Less(t, most, 400)
}

// TestHitchLosesNothing: a packet that is late where a receive tick was, once, or where nothing was received before, is waited for as ever.
func TestHitchLosesNothing(t *testing.T) {
	const ms = time.Millisecond
	for name, v := range map[string]struct {
		gaps []time.Duration // between receive ticks
		held bool            // one waits through the last of them
	}{
		"hitch":              {[]time.Duration{16 * ms, 16 * ms, 16 * ms, 200 * ms}, true},
		"leap of the clock":  {[]time.Duration{16 * ms, 16 * ms, 16 * ms, 8 * time.Second}, true},
		"sleeps until woken": {[]time.Duration{500 * ms, 500 * ms, 500 * ms, 500 * ms}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHand(t, nil)
			c := h.conns[1]
			c.enableOrderCache()
			const window = 20 * ms
			c.order.late = lateness{window: window, seen: h.now, came: latenessSpan / 2}
			before := c.Counters
			var late []byte
			for i, gap := range v.gaps {
				h.now += gap
				if late != nil {
					h.give(0, late)
					late = nil
				}
				if left := len(v.gaps) - 1 - i; left == 0 || left == 1 && v.held {
					late = h.packet(0, false)
				}
				h.give(0, h.packet(0, false))
				c.PostTickDispatch(h.now)
				c.PostTickDispatch(h.now)
			}
			require.Equal(t, 1, c.order.held)
			c.Tick(h.now)
			at, _ := c.NextDeadline()
			require.Equal(t, h.now+window, at)
			h.now = at
			h.give(0, late)
			c.PostTickDispatch(h.now)
			require.Zero(t, c.order.held)
			require.Equal(t, before.PacketsMissed, c.Counters.PacketsMissed)
			require.Equal(t, before.Stale, c.Counters.Stale)
		})
	}
}

// TestTicksApart: of receive ticks from one to the next of which packets are held, the shorter of two gaps counts, and a short one at once.
func TestTicksApart(t *testing.T) {
	const ms = time.Millisecond
	for _, v := range []struct {
		kept  bool
		gaps  []time.Duration
		apart time.Duration
	}{
		{true, []time.Duration{500 * ms}, 0},
		{true, []time.Duration{500 * ms, 400 * ms}, 400 * ms},
		{true, []time.Duration{400 * ms, 500 * ms, 0, 500 * ms}, 500 * ms},
		{true, []time.Duration{500 * ms, 500 * ms, 16 * ms}, 16 * ms},
		{true, []time.Duration{16 * ms, time.Hour, 16 * ms}, 16 * ms},
		{false, []time.Duration{500 * ms, 500 * ms}, 0},
	} {
		now := -time.Second
		x := ticks{at: now, kept: v.kept}
		for _, gap := range v.gaps {
			now += gap
			x.end(now)
		}
		require.Equal(t, v.apart, x.apart, "%v", v.gaps)
	}
}

// TestSlowTicksAndSettings: who sets a ReorderWindow has it, and with Coding packets wait for repairs.
func TestSlowTicksAndSettings(t *testing.T) {
	for _, v := range []struct {
		window time.Duration
		coding Coding
		slow   bool
	}{{slow: true}, {window: -1}, {window: time.Second}, {coding: Coding{Repairs: 0.5}}} {
		h := newHand(t, func(_ int, c *Config) { c.ReorderWindow, c.Coding = v.window, v.coding })
		c := h.conns[1]
		for _, apart := range []time.Duration{slowTicks, slowTicks + 1} {
			c.order.ticks.apart = apart
			require.Equal(t, v.slow && apart > slowTicks, c.ticksSlowly(), "%+v", v)
			if v.slow {
				require.Equal(t, apart > slowTicks, c.maxMissing() > maxMissingPackets)
			}
		}
	}
}

// TestOrderCacheWhileRefusing: an end that refuses packets until the peer has heard its acks (Notify.WaitForFlush) goes on holding back those that
// others may still precede: they stay at their places, newer than the newest processed one and no further ahead than the cache is long, and afterwards all goes on.
func TestOrderCacheWhileRefusing(t *testing.T) {
	refusing, held := 0, 0
	for seed := range uint64(4) {
		l := newLab(t, both(netsim.Settings{Lag: 40 * time.Millisecond, LagVariance: 20 * time.Millisecond, Loss: 3, Order: 20, OrderDelay: 40 * time.Millisecond}), seed, func(_ int, c *Config) {
			c.Protocol, c.KeepAlive, c.ReorderWindow = Unreal53(true), 10*time.Millisecond, 50*time.Millisecond
			c.Protocol.FirstFree = false
		})
		l.join()
		talk := l.talkers(bunch.Out{Data: make([]byte, 20), Reliable: true, NoMerge: true}, 200)
		game := func() {
			talk()
			for i, c := range l.conns {
				o, n := &c.order, 0
				for k := range o.slots {
					p := &o.slots[k]
					if !p.held {
						continue
					}
					n++
					ahead := p.id - c.notify.InID()
					require.True(t, ahead > 0 && ahead <= int64(len(o.slots)), "seed %d, end %d: packet %d is held, %d ahead", seed, i, p.id, ahead)
					require.Same(t, p, o.at(p.id))
				}
				require.Equal(t, o.held, n)
				if c.notify.WaitingForFlush() {
					refusing++
					held += min(n, 1)
				}
			}
		}
		for range 4 {
			l.run(2*time.Second, game)
			l.dark[1] = true // the client hears no acks
			l.run(6*time.Second, game)
			l.dark[1] = false
		}
		got := l.got
		l.run(5*time.Second, game)
		require.Nil(t, l.res[0])
		require.Nil(t, l.res[1])
		require.Greater(t, l.got[0], got[0], "seed %d", seed)
		require.Greater(t, l.got[1], got[1], "seed %d", seed)
	}
	t.Logf("an end refused packets in %d steps, and held some back meanwhile in %d", refusing, held)
	require.Positive(t, held)
}

// TestStrictControlUnderJitter: with StrictControl a client that waits for the ack of its control channel's open breaks no rule, whatever the jitter, the loss and the
// ReorderWindow; one that doesn't wait does, as soon as a packet overtakes the open.
func TestStrictControlUnderJitter(t *testing.T) {
	const ms = time.Millisecond
	broke := map[bool]int{}
	for _, waits := range []bool{true, false} {
		for _, window := range []time.Duration{-1, 0, 20 * ms} {
			for seed := range uint64(50) {
				l := newLab(t, both(netsim.Settings{Lag: 50 * ms, LagVariance: 30 * ms, Loss: 10}), seed, func(_ int, c *Config) { c.Protocol, c.ReorderWindow = Unreal51(), window })
				control := l.control()
				var ch *channel.Channel
				l.run(3*time.Second, func() {
					if ch == nil && (!waits || control.OpenAcked()) {
						ch = l.open(0)
					}
					if ch != nil && ch.Room() > 100 {
						_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 16), Reliable: true, NoMerge: true})
						require.NoError(t, err)
					}
				})
				if l.res[1] != nil {
					require.ErrorIs(t, l.res[1].Err, channel.ErrNoControl, "window %v, seed %d", window, seed)
					broke[waits]++
				}
			}
		}
	}
	t.Logf("%d of 150 broke the rule without waiting", broke[false])
	require.Zero(t, broke[true])
	require.Positive(t, broke[false])
}

// countsWaiting is a handler that counts the bunches that wait while it gets something.
type countsWaiting struct {
	channel.Nop
	c       *Conn
	waiting []int
}

func (w *countsWaiting) ReceivedBunch(*channel.Channel, *bunch.In) {
	if w.c != nil {
		w.waiting = append(w.waiting, w.c.Table().Waiting())
	}
}

// TestSlowTicksReadFirst: where nothing was read and no receive tick was for longer than slowTicks, all that has gathered is read before a packet leaves: what doesn't fit the packet at hand waits for the end of the tick, and is spent. What
// waited before goes into that packet.
func TestSlowTicksReadFirst(t *testing.T) {
	for name, v := range map[string]struct {
		read, tick time.Duration // since
		slow       bool
	}{
		"slow":          {slowTicks + 1, slowTicks + 1, true},
		"read lately":   {slowTicks, slowTicks + 1, false},
		"ticked lately": {slowTicks + 1, slowTicks, false},
	} {
		h := newHand(t, func(_ int, c *Config) { c.NetSpeed = 10_000_000 })
		c, first, second := h.conns[1], h.packet(0, true), h.packet(0, true)
		h.now += time.Second
		c.flow.readAt, c.order.ticks.at = h.now-v.read, h.now-v.tick
		h.give(0, first)
		require.Equal(t, v.slow, c.flow.atOnce, name)
		h.give(0, second)
		require.Equal(t, v.slow, c.flow.atOnce, "%s: all of it", name)
		sent, budget := c.Counters.PacketsSent, c.Budget()
		for range 3 {
			_, err := h.chs[1].SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		if v.slow {
			require.Equal(t, sent, c.Counters.PacketsSent, name)
			require.InDelta(t, budget-2700, c.Budget(), 100, name)
		} else {
			require.Equal(t, sent+2, c.Counters.PacketsSent, name)
		}
		c.PostTickDispatch(h.now)
		require.Equal(t, sent+2, c.Counters.PacketsSent, name)
		require.False(t, c.flow.atOnce, name)
	}

	var handler countsWaiting
	h := newHand(t, func(i int, c *Config) {
		if i == 1 {
			c.Controller = adapt()
			accept := c.Channels[1].Accept
			c.Channels[1].Accept = func(ch *channel.Channel) channel.Handler {
				accept(ch) // so that there is one to send on
				return &handler
			}
		}
	})
	c, p := h.conns[1], h.packet(0, true)
	handler.c = c
	for c.IsNetReady() {
		_, err := h.chs[1].SendBunch(&bunch.Out{Data: make([]byte, 500), NoMerge: true})
		require.NoError(t, err)
	}
	c.FlushNet()
	_, err := h.chs[1].SendBunch(&bunch.Out{Data: make([]byte, 500), Reliable: true, NoMerge: true})
	require.NoError(t, err)
	require.Equal(t, 1, c.Table().Waiting())
	h.now += time.Second
	h.give(0, p)
	require.Equal(t, []int{0}, handler.waiting)
}
