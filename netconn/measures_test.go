package netconn

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/congestion"
)

// TestRTTIsRFC6298s: smoothed by an eighth, the variance by a quarter; the least and the last are kept.
func TestRTTIsRFC6298s(t *testing.T) {
	var r rtt
	r.sample(80*time.Millisecond, true)
	require.Equal(t, rtt{smoothed: 80 * time.Millisecond, variance: 40 * time.Millisecond, min: 80 * time.Millisecond, last: 80 * time.Millisecond}, r)
	r.sample(40*time.Millisecond, true)
	require.Equal(t, rtt{smoothed: 75 * time.Millisecond, variance: 40 * time.Millisecond, min: 40 * time.Millisecond, last: 40 * time.Millisecond}, r)
	r.sample(155*time.Millisecond, true)
	require.Equal(t, rtt{smoothed: 85 * time.Millisecond, variance: 50 * time.Millisecond, min: 40 * time.Millisecond, last: 155 * time.Millisecond}, r)
}

// TestJitterIsRFC3550s: a sixteenth of the difference between the spacing of two packets at departure and at arrival, across the
// wrap of the clock; not after a second of silence, of packets without a clock, or of what can't be jitter.
func TestJitterIsRFC3550s(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		name   string
		clocks [2]int
		apart  time.Duration
		want   time.Duration
	}{
		{"on time", [2]int{100, 120}, 20 * ms, 0},
		{"late", [2]int{100, 120}, 36 * ms, ms},
		{"early", [2]int{100, 120}, 4 * ms, ms},
		{"wrapped", [2]int{990, 10}, 36 * ms, ms},
		{"the same millisecond", [2]int{5, 5}, 16 * ms, ms},
		{"just below half a second", [2]int{5, 5}, 499 * ms, 499 * ms / 16},
		{"half a second", [2]int{5, 5}, 500 * ms, 0},
		{"just below a second", [2]int{0, 990}, 999 * ms, 9 * ms / 16},
		{"a second", [2]int{0, 990}, 1000 * ms, 0},
		{"no clock", [2]int{100, 1023}, 36 * ms, 0},
		{"no clock before", [2]int{1023, 120}, 36 * ms, 0},
		{"first of those without one", [2]int{100, 1000}, 936 * ms, 0},
		{"first of those without one, before", [2]int{1000, 100}, 136 * ms, 0},
	} {
		var r rtt
		r.lastClock = -1
		r.clock(time.Hour, c.clocks[0])
		require.Zero(t, r.jitter, c.name)
		r.clock(time.Hour+c.apart, c.clocks[1])
		require.Equal(t, c.want, r.jitter, c.name)
	}
	var r rtt
	for i := range 1000 { // 10 ms too late and too early in turn
		r.clock(time.Duration(i)*20*ms+time.Duration(i&1)*10*ms, i*20%1000)
	}
	require.InDelta(t, 10, r.jitter.Seconds()*1000, 0.1)
}

// TestLossIsMeasured: over 128 packets and over 1024, whichever is more; and apart, how likely a loss follows a loss.
func TestLossIsMeasured(t *testing.T) {
	var r rates
	for range 10_000 {
		r.loss(true)
	}
	loss, again := r.expect()
	require.InDelta(t, 1, loss, 0.01)
	require.InDelta(t, 1, again, 0.01)
	for range 1024 {
		r.loss(false)
	}
	require.InDelta(t, 0, r.lossRate, 0.001, "a thousand packets are eight of its spans")
	require.InDelta(t, 1/math.E, r.slowLoss, 0.01, "and one of its")
	loss, _ = r.expect()
	require.Equal(t, r.slowLoss, loss)

	r = rates{}
	for i := range 100_000 { // one packet in fifty, never two in a row
		r.loss(i%50 == 0)
	}
	loss, again = r.expect()
	require.InDelta(t, 0.02, r.slowLoss, 0.002)
	require.InDelta(t, 0, r.afterLoss, 0.001)
	require.Equal(t, loss, again)

	r = rates{}
	for i := range 100_000 { // the same rate in bursts of five
		r.loss(i%250 < 5)
	}
	loss, again = r.expect()
	require.InDelta(t, 0.02, r.slowLoss, 0.004)
	require.InDelta(t, 0.8, again, 0.1)
	require.Less(t, loss, 0.05)

	r = rates{}
	r.loss(true)
	require.InDelta(t, 0.2, r.slowLoss, 1e-9, "one packet proves little")
	require.False(t, math.IsNaN(r.afterLoss))

	v, n := 0.0, 0
	for range 100 {
		average(&v, 0, &n, 50)
	}
	average(&v, 1, &n, 50)
	require.InDelta(t, 1.0/50, v, 1e-9, "as many values as its span")
}

// TestRates: a second's bytes, packets and losses, as figures of the second after it.
func TestRates(t *testing.T) {
	c, err := New(Config{LowLevelSend: func([]byte) {}}, 10*time.Second, 1, 1)
	require.NoError(t, err)
	c.rates.base = Counters{PacketsSent: 100, BytesSent: 1000, PacketsReceived: 50, BytesReceived: 500, PacketsAcked: 90, PacketsLost: 10, PacketsMissed: 7}
	c.rates.ackedBase = 300
	c.Counters = Counters{PacketsSent: 140, BytesSent: 5000, PacketsReceived: 110, BytesReceived: 2500, PacketsAcked: 120, PacketsLost: 20, PacketsMissed: 27}
	c.rates.outAcked = 3300
	c.now = 11*time.Second - 1
	c.rates.tick(c)
	require.Zero(t, c.Stats().Rates, "the second isn't over")
	c.now = 12 * time.Second
	c.rates.tick(c)
	want := Rates{OutBytes: 2000, InBytes: 1000, AckedBytes: 1500, OutPackets: 20, InPackets: 30, OutLoss: 0.25, InLoss: 0.25}
	require.Equal(t, want, c.Stats().Rates)
	c.now = 13*time.Second - 1
	c.rates.tick(c)
	require.Equal(t, want, c.Stats().Rates)
	c.now = 13 * time.Second
	c.rates.tick(c)
	require.Zero(t, c.Stats().Rates, "nothing happened since")
}

// TestLatenessOfPackets: the window is a quarter and a millisecond more than packets were late, up to 50 ms; it goes after ten seconds
// without any, and when four times as many packets are lost as late.
func TestLatenessOfPackets(t *testing.T) {
	ms := time.Millisecond
	c := &Conn{now: time.Minute}
	l := &c.order.late
	window := func() time.Duration { return c.reorderWindow() }
	require.Zero(t, window())
	l.late(5, c.now)
	require.Zero(t, window(), "it was never missed")
	l.gap(5, c.now)
	l.late(5+maxGaps, c.now)
	require.Zero(t, window(), "another of the same place")
	l.late(5, c.now+20*ms)
	require.Equal(t, 26*ms, window())
	require.Equal(t, 1, l.came)
	l.late(5, c.now+30*ms)
	require.Equal(t, 26*ms, window(), "a duplicate")
	require.Equal(t, 1, l.came)

	l.filled(c.now, 10*ms)
	require.Equal(t, 26*ms, window(), "a shorter one")
	l.filled(c.now, 39200*time.Microsecond)
	require.Equal(t, 50*ms, window())
	require.Equal(t, 3, l.came)
	l.filled(c.now, 39300*time.Microsecond)
	require.Equal(t, 50*ms, window(), "too late to wait for")
	require.Equal(t, [2]int{3, 1}, [2]int{l.came, l.lost})

	seen := c.now
	c.now += latenessLife
	require.Equal(t, 50*ms, window())
	c.now++
	require.Zero(t, window(), "too long ago")
	l.filled(c.now, 8*ms)
	require.Equal(t, 11*ms, window(), "measured anew")
	require.Greater(t, l.seen, seen)

	l.window, l.seen = 40*ms, c.now
	c.now += 9 * time.Second
	l.filled(c.now, 15200*time.Microsecond) // 20 ms with its margin
	require.Equal(t, c.now, l.seen, "half of it: it is right so far")
	c.now += time.Second
	l.filled(c.now, 15*ms)
	require.NotEqual(t, c.now, l.seen)

	came, lost := l.came, l.lost
	for id := range int64(lateWorth*came - lost) { // packets that never come
		require.NotZero(t, window())
		l.gap(id, c.now)
		l.gap(id+maxGaps, c.now)
	}
	require.Equal(t, lateWorth*came, l.lost)
	require.Zero(t, window(), "most never come")

	*l = lateness{}
	for range 1000 {
		l.count(&l.lost)
	}
	require.Less(t, l.lost, latenessSpan)
	for range 2 * latenessSpan {
		l.count(&l.came)
	}
	require.Greater(t, l.came, l.lost, "what was long ago counts less")
	require.LessOrEqual(t, l.came+l.lost, latenessSpan)

	c.cfg.ReorderWindow = 7 * ms
	require.Equal(t, 7*ms, window())
	l.window, l.seen = 40*ms, c.now
	c.cfg.ReorderWindow = -1
	require.Zero(t, window())
}

// TestNarrowPathIsAMeasurement: enough large packets lost, enough small ones arrived, for long enough; any packet of the size
// that arrives proves the opposite.
func TestNarrowPathIsAMeasurement(t *testing.T) {
	const began = time.Minute
	lost := &sentPacket{bytes: 900, reliable: true}
	suspicious := func() *path {
		p := new(path)
		for range narrowLost {
			p.lost(began, lost)
		}
		for range narrowAcked {
			p.acked(0, &sentPacket{bytes: 300})
		}
		return p
	}
	p := suspicious()
	require.Equal(t, path{smallest: 900, biggest: 900, largest: 300, recent: 300, lostN: narrowLost, ackedN: narrowAcked, emptyN: narrowAcked, since: began}, *p)
	require.True(t, p.suspect(began+narrowTime/2))
	require.False(t, p.suspect(began+narrowTime/2-1))
	p.lostN--
	require.False(t, p.suspect(began+narrowTime))
	p.lostN++
	p.ackedN--
	require.False(t, p.suspect(began+narrowTime))

	p = new(path)
	p.lost(began, lost)
	p.lost(began, &sentPacket{bytes: 400, reliable: true})
	require.EqualValues(t, 400, p.smallest)
	p.acked(0, &sentPacket{bytes: 450})
	require.Equal(t, path{smallest: 900, biggest: 900, largest: 450, recent: 450, lostN: 2, ackedN: 1, emptyN: 1, since: began}, *p, "that was chance, or a refusal")
	p.lost(began, &sentPacket{bytes: 350, reliable: true})
	require.Zero(t, p.missedN, "it may have been refused")
	p.acked(0, &sentPacket{bytes: 300, reliable: true})
	require.Equal(t, [2]int{2, 1}, [2]int{p.ackedN, p.emptyN})
	p.lost(began, &sentPacket{bytes: 500, reliable: true})
	p.lost(began, &sentPacket{bytes: 500, probe: true})
	p.acked(0, &sentPacket{bytes: 38})
	require.Equal(t, [2]int{1, 500}, [2]int{p.probes, int(p.smallest)})
	p.acked(0, &sentPacket{bytes: 600})
	require.Equal(t, [2]int{0, 900}, [2]int{p.probes, int(p.smallest)}, "what was probed arrives")

	p = suspicious()
	p.lost(began, &sentPacket{bytes: 300, reliable: true})
	require.EqualValues(t, 900, p.smallest, "as small as what arrives: chance")
	p.lost(began, &sentPacket{bytes: 950})
	require.Equal(t, narrowLost, p.lostN, "nothing waits for it")
	p.lost(began, &sentPacket{bytes: 850, probe: true})
	require.Equal(t, [3]int{narrowLost, 0, 900}, [3]int{p.lostN, p.probes, int(p.smallest)}, "it may be dark, and what is suspected stays as it is")
	p.acked(0, &sentPacket{bytes: 38})
	p.acked(0, &sentPacket{bytes: 38})
	require.Equal(t, 1, p.probes, "what left behind it arrived")
	p.lost(began, &sentPacket{bytes: 850, probe: true})
	p.lost(began, &sentPacket{bytes: 38})
	p.acked(0, &sentPacket{bytes: 38})
	require.Equal(t, 1, p.probes, "what left behind it was lost too")
	p.lost(began, &sentPacket{bytes: 300, probe: true})
	p.acked(0, &sentPacket{bytes: 38})
	require.Equal(t, 1, p.probes, "as small as what arrives")
	p.lost(began+time.Second, &sentPacket{bytes: 860, reliable: true})
	require.Equal(t, [2]int{narrowLost + 1, 900}, [2]int{p.lostN, int(p.smallest)})
	require.Equal(t, began, p.since)
	p.acked(0, &sentPacket{bytes: 849})
	require.EqualValues(t, 849, p.largest)
	p.acked(0, &sentPacket{bytes: 200})
	require.EqualValues(t, 849, p.largest)
	p.acked(0, &sentPacket{bytes: 900})
	require.Equal(t, path{}, *p, "that size gets through")
	p.acked(0, &sentPacket{bytes: 1})
	require.Equal(t, path{}, *p, "nothing is suspected")
}

// TestPathBecomesNarrowerLater: what arrived before the path became narrower says nothing of what is lost after that.
func TestPathBecomesNarrowerLater(t *testing.T) {
	p := new(path)
	now := time.Minute
	p.lost(now, &sentPacket{bytes: 1000, reliable: true})
	p.acked(now, &sentPacket{bytes: 900})
	for range 3 {
		p.lost(now, &sentPacket{bytes: 800, reliable: true})
		require.Equal(t, 1, p.lostN, "chance")
		now += narrowTime/2 - 1
		p.acked(now, &sentPacket{bytes: 900})
	}
	now += narrowTime / 2
	p.acked(now, &sentPacket{bytes: 100})
	now += narrowTime / 2
	p.acked(now, &sentPacket{bytes: 100})
	require.EqualValues(t, 100, p.largest)
	p.lost(now, &sentPacket{bytes: 800, reliable: true})
	require.Equal(t, [2]int{2, 800}, [2]int{p.lostN, int(p.smallest)})
}

// TestPathIsProbed: from when it is suspected until so many probes are lost and the time is over.
func TestPathIsProbed(t *testing.T) {
	const since = time.Minute
	var p *path
	require.False(t, p.probing(since+narrowTime))
	for _, v := range []struct {
		probes int
		after  time.Duration
		want   bool
	}{
		{0, narrowTime/2 - 1, false}, {0, narrowTime / 2, true}, {narrowProbes - 1, 2 * narrowTime, true},
		{narrowProbes, narrowTime - 1, true}, {narrowProbes, narrowTime, false}, {narrowProbes + 1, narrowTime / 2, true},
	} {
		p := &path{smallest: 700, biggest: 700, largest: 100, lostN: narrowLost, ackedN: narrowAcked, emptyN: narrowAcked, probes: v.probes, since: since}
		require.Equal(t, v.want, p.probing(since+v.after), "%+v", v)
	}
}

// TestRefusalsInARow: a thousand naks in ten seconds, at 64 times or more and without an ack between them, are too many: of all packets, or of those with reliable
// bunches of channels that the peer has.
func TestRefusalsInARow(t *testing.T) {
	const began = time.Minute
	open, opening, bare := &sentPacket{reliable: true}, &sentPacket{reliable: true, opening: true}, &sentPacket{}
	run := func(p *sentPacket, n int, gap time.Duration) *refusals {
		r := new(refusals)
		for i := range n {
			r.lost(began+time.Duration(i)*gap, p)
		}
		return r
	}
	const gap = 10 * time.Millisecond
	r := run(open, refusalPackets, gap)
	want := nakRun{packets: refusalPackets, rounds: refusalPackets, lasted: (refusalPackets - 1) * gap, last: began + (refusalPackets-1)*gap}
	require.Equal(t, refusals{all: want, reliable: want}, *r)
	require.True(t, r.all.tooLong(0))
	r.all.lasted = refusalTime
	require.True(t, r.all.tooLong(0))
	r.all.lasted--
	require.False(t, r.all.tooLong(0))
	for trip, least := range map[time.Duration]time.Duration{time.Second: refusalTrips * time.Second, time.Hour: refusalTrips * silentMost} {
		r.all.lasted = least - 1
		require.False(t, r.all.tooLong(trip), "at a round trip of %v", trip)
		r.all.lasted++
		require.True(t, r.all.tooLong(trip), "at a round trip of %v", trip)
	}
	r = new(refusals)
	for i := range refusalRounds { // a peer that is heard once a second, with thousands of naks each time
		for range refusalPackets {
			r.lost(began+time.Duration(i)*time.Second, open)
		}
		require.Equal(t, i == refusalRounds-1, r.all.tooLong(0), i)
	}
	r = run(open, 2*refusalPackets, 0) // all at once, as after a darkness
	require.False(t, r.all.tooLong(0))
	for i := range 9 {
		r.lost(began+time.Duration(i)*time.Hour, open)
		require.False(t, r.all.tooLong(0), "only what is told counts")
	}
	r = run(open, refusalPackets, gap/2)
	r.lost(began+time.Hour, open)
	require.False(t, r.all.tooLong(0), "an hour without a nak counts a second")
	r = run(open, refusalPackets, gap)
	r.acked(bare)
	require.Equal(t, [2]int{0, refusalPackets}, [2]int{r.all.packets, r.reliable.packets}, "an empty packet has nothing to be refused for")
	r.acked(opening)
	require.Equal(t, refusalPackets, r.reliable.packets)
	r.acked(open)
	require.Zero(t, r.reliable.packets)
	r = run(open, refusalPackets-1, time.Second)
	require.False(t, r.all.tooLong(0))
	r.lost(began+time.Hour, open)
	require.True(t, r.all.tooLong(0))
	for _, p := range []*sentPacket{opening, bare} {
		r = run(p, 5, gap)
		require.Equal(t, [2]int{5, 0}, [2]int{r.all.packets, r.reliable.packets})
	}
}

// TestShareOfReliableBunches: a quarter of the rate, up to what others took and to a packet, and only after they did.
func TestShareOfReliableBunches(t *testing.T) {
	c, err := New(Config{LowLevelSend: func([]byte) {}, NetSpeed: 8000}, 0, 1, 1)
	require.NoError(t, err)
	p := &c.pace
	c.now = 100 * time.Millisecond
	p.tick(c)
	require.Zero(t, p.share)
	p.wrote(false, 5000)
	c.now += 100 * time.Millisecond
	p.tick(c)
	require.InDelta(t, 200, p.share, 1e-6)
	require.Zero(t, p.overdrawn)
	p.wrote(true, 150)
	require.InDelta(t, 50, p.share, 1e-6)
	p.wrote(false, 30)
	p.wrote(false, 10)
	c.now += 100 * time.Millisecond
	p.tick(c)
	require.InDelta(t, 90, p.share, 1e-6, "no more than they took")
	p.wrote(false, 1e6)
	c.now += 20 * time.Second
	p.tick(c)
	require.InDelta(t, float64(c.proto.PacketBits()/8), p.share, 1e-6)
	p.wrote(true, 1e6)
	require.InDelta(t, float64(c.proto.PacketBits()/8)-1e6, p.share, 1e-6, "it is owed")
	p.share = 7
	p.tick(c)
	require.Zero(t, p.share, "nobody takes more than the budget")

	p.overdrawn = 0
	p.empty(c)
	require.Zero(t, p.overdrawn, "there is budget for it")
	c.cfg.Controller.OnSent(c.now, 1, 1e6)
	p.empty(c)
	require.InDelta(t, 44, p.overdrawn, 1e-6)
	p.empty(c)
	require.InDelta(t, 88, p.overdrawn, 1e-6)
}

// TestAdaptiveCopies: none on a clean link, more the more is lost, up to Copies.
func TestAdaptiveCopies(t *testing.T) {
	c := &Conn{cfg: Config{Redundancy: Redundancy{Copies: 6, Adaptive: true}}}
	for _, v := range []struct {
		loss float64
		want int
	}{{0, 0}, {0.0019, 0}, {0.002, 1}, {0.007, 1}, {0.0072, 2}, {0.1, 4}, {0.5, 6}, {0.99, 6}} {
		c.rates.lossRate = v.loss
		require.Equal(t, v.want, c.copies(), "%v", v.loss)
	}
	c.rates.lossRate, c.rates.afterLoss = 0.02, 0.5
	require.Equal(t, 6, c.copies(), "in bursts")
	c.cfg.Redundancy.Adaptive = false
	c.rates = rates{}
	require.Equal(t, 6, c.copies())
}

// heardTrips is a controller that notes the round trips that it is told of.
type heardTrips struct {
	congestion.Controller
	trips []time.Duration
}

func (h *heardTrips) OnAck(_ time.Duration, _ int64, _ int, rtt time.Duration) {
	h.trips = append(h.trips, rtt)
}

// TestLateAcksOfEmptyPacketsAreNoRoundTrips: nobody owes an ack for an empty packet, so the controller hears of no longer round trip than usual by one.
func TestLateAcksOfEmptyPacketsAreNoRoundTrips(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{50 * time.Millisecond: 0, 20 * time.Millisecond: 20 * time.Millisecond} {
		h := newHand(t, nil)
		c := h.conns[0]
		h.exchange()
		told := &heardTrips{Controller: c.cfg.Controller}
		c.cfg.Controller, c.rtt.smoothed = told, 30*time.Millisecond
		c.sendAckPacket()
		c.now += late
		(*fates)(c).PacketAcked(c.notify.OutID() - 1)
		require.Equal(t, []time.Duration{want}, told.trips)
	}
}
