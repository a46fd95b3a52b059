package netconn

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

const widest = 1439

// wide is a lab whose ends try packets up to widest, with a channel of the first end.
type wide struct {
	*lab
	n, sent int
	talk    func()
}

func newWide(t *testing.T, set netsim.Settings, seed uint64, edit func(i int, c *Config)) *wide {
	w := &wide{}
	w.lab = newLab(t, both(set), seed, func(i int, c *Config) {
		c.LargestPacket, c.Controller = widest, adapt()
		if edit != nil {
			edit(i, c)
		}
	})
	w.join()
	ch := w.open(0)
	w.talk = func() { // 16 B to 9 kB
		for range 2 {
			if w.n++; ch.Room() > 20 {
				size := 16 + (w.n*7919)%9000
				_, err := ch.SendBunch(&bunch.Out{Data: labMsg(w.now, uint64(w.n), size), Reliable: true, NoMerge: w.n%3 == 0})
				require.NoError(t, err)
				w.sent += size
			}
		}
	}
	w.got = [2]int{}
	return w
}

func (w *wide) setMTU(t *testing.T, set netsim.Settings, mtu int) {
	set.MTU = mtu
	for _, l := range w.links {
		require.NoError(t, l.Set(set))
	}
}

// drain runs until everything reliable is acked, and checks that it arrived.
func (w *wide) drain(t *testing.T, seed uint64) {
	for end := w.now + 30*time.Second; w.now < end && w.conns[0].Table().Unacked() > 0; {
		w.run(100*time.Millisecond, nil)
	}
	require.Nil(t, w.res[0], "seed %d: %v", seed, w.res[0])
	require.Nil(t, w.res[1], "seed %d: %v", seed, w.res[1])
	require.Zero(t, w.conns[0].Table().Unacked(), "seed %d: stuck, %+v", seed, w.conns[0].search)
	require.Equal(t, w.sent, w.got[1], "seed %d", seed)
}

// TestPacketSizeIsFound: the size that the path carries is found, to a few bytes, with few probes.
func TestPacketSizeIsFound(t *testing.T) {
	for _, mtu := range []int{2000, widest, 1400, 1267, 1100, 1045, 1024} {
		w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond, MTU: mtu}, 1, nil)
		w.run(20*time.Second, w.talk)
		s := w.conns[0].Stats()
		most := min(mtu, widest)
		require.LessOrEqual(t, s.PacketSize, most)
		require.GreaterOrEqual(t, s.PacketSize, max(1024, most-searchStep-4), "a path of %d bytes", mtu)
		require.LessOrEqual(t, s.Packets.SizeProbes, uint64(18), "a path of %d bytes", mtu)
		require.Zero(t, s.Packets.Narrowed)
		require.Equal(t, s.Packets.PacketsLost, s.Packets.SizeProbesLost)
		w.drain(t, 1)
		for _, c := range w.conns {
			require.Zero(t, c.Counters.BadHeader)
		}
	}
}

// TestSizeOfASmallWindow: it is found, too, where the window is always full.
func TestSizeOfASmallWindow(t *testing.T) {
	for _, window := range []int{16, 64} {
		w := newWide(t, netsim.Settings{Lag: 150 * time.Millisecond}, 1, func(_ int, c *Config) {
			c.Protocol = Bunchnet()
			c.Protocol.PacketWindow = window
		})
		w.tick = 5 * time.Millisecond
		there, back := w.bulk(), w.talkers(bunch.Out{Data: make([]byte, 500), Reliable: true}, 0)
		w.run(5*time.Second, func() { there(); back() })
		require.InDelta(t, widest, w.conns[0].Stats().PacketSize, 4, "a window of %d", window)
	}
}

// TestPathChanges: a path that becomes narrower and wide again, with loss: all that is reliable arrives, the size follows it down at once, and up again
// when it is time to look.
func TestPathChanges(t *testing.T) {
	seeds := uint64(21)
	if os.Getenv("CI") != "" {
		seeds = 105
	}
	downs := 0
	for seed := range seeds {
		set := netsim.Settings{Lag: 20 * time.Millisecond, Loss: float64(seed % 21), MTU: widest}
		w := newWide(t, set, seed, nil)
		w.run(2*time.Second, w.talk)
		if seed%21 == 0 {
			require.Greater(t, w.conns[0].Stats().PacketSize, widest-8)
		}
		w.setMTU(t, set, 1267)
		for range 20 {
			w.run(100*time.Millisecond, w.talk)
			if w.conns[0].Counters.Narrowed > 0 {
				downs++
				break
			}
		}
		w.run(2*time.Second, w.talk)
		require.LessOrEqual(t, w.conns[0].Stats().PacketSize, 1267, "seed %d", seed)
		w.setMTU(t, set, widest)
		w.run(time.Second, w.talk)
		w.drain(t, seed)
		require.Less(t, w.conns[0].Counters.SizeProbes, uint64(80), "seed %d", seed)
	}
	require.Greater(t, downs, int(seeds)*2/3)
}

// TestSizeRisesAgain: ten minutes after a search a larger size is tried again, at the latest.
func TestSizeRisesAgain(t *testing.T) {
	w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond, MTU: 1267}, 1, nil)
	w.run(10*time.Second, w.talk)
	require.InDelta(t, 1267, w.conns[0].Stats().PacketSize, searchStep+4)
	w.setMTU(t, netsim.Settings{Lag: 20 * time.Millisecond}, widest)
	w.drain(t, 1)
	w.tick = time.Second
	w.run(searchAgain, nil)
	w.tick = testTick
	w.run(time.Second, w.talk)
	require.InDelta(t, widest, w.conns[0].Stats().PacketSize, 4)
	w.drain(t, 1)
}

// bulk sends all the time, with a window of its own, so that the peer's memory is never full.
func (w *wide) bulk() func() {
	ch := w.open(0)
	return func() {
		for ch.NumOutRec() < 100 {
			w.n++
			size := 1000 + (w.n*7919)%8000
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true})
			require.NoError(w.t, err)
			w.sent += size
		}
	}
}

// TestBurstsKeepTheSize: losses that come in bursts, of packets of every size, say nothing about the path's width. Neither do darknesses.
func TestBurstsKeepTheSize(t *testing.T) {
	for name, set := range map[string]netsim.Settings{
		"6 packets":  {Lag: 20 * time.Millisecond, BurstLoss: 1, BurstLength: 6},
		"10 packets": {Lag: 20 * time.Millisecond, BurstLoss: 2, BurstLength: 10},
		"40 packets": {Lag: 20 * time.Millisecond, BurstLoss: 0.2, BurstLength: 40},
		"darkness":   {Lag: 20 * time.Millisecond},
	} {
		for seed := range uint64(2) {
			w := newWide(t, set, seed, nil)
			bulk := w.bulk()
			low := time.Duration(0)
			for w.now < 3*time.Minute {
				w.dark[0] = name == "darkness" && w.now%(3*time.Second) > 2200*time.Millisecond
				if w.step(bulk); w.conns[0].search == nil || w.conns[0].search.size < widest-searchStep {
					low += w.tick
				}
			}
			w.dark[0] = false
			require.Less(t, low, 90*time.Second, "%s, seed %d: narrowed %d times", name, seed, w.conns[0].Counters.Narrowed)
			w.drain(t, seed)
		}
	}
}

// TestProbesLostByChance: a size whose probes were lost by chance is tried again soon.
func TestProbesLostByChance(t *testing.T) {
	for first := range 3 { // of the sizes that the path carries
		w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond, MTU: 1300}, 1, nil)
		sizes, probes := map[int]bool{}, 0
		w.lose[0] = func(p []byte) bool {
			if len(p) <= max(1024, w.conns[0].Stats().PacketSize) || len(p) > 1300 {
				return false
			}
			if sizes[len(p)] = true; len(sizes) != first+1 || probes == searchTries {
				return false
			}
			probes++
			return true
		}
		bulk := w.bulk()
		w.run(60*time.Second, bulk)
		require.Equal(t, searchTries, probes)
		require.InDelta(t, 1300-searchStep/2, w.conns[0].Stats().PacketSize, searchStep/2+4)
		w.lose[0] = nil
		w.drain(t, 1)
	}
}

// TestPacedPacketsAreFull: packets are full, too, where each waits for the controller, and where a header alone keeps the next bunch out.
func TestPacedPacketsAreFull(t *testing.T) {
	newPaced := func(rate int) *wide {
		return newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, func(_ int, c *Config) { c.Controller = congestion.NewTokenBucket(rate) })
	}
	w := newPaced(40_000) // two thirds of a packet a tick
	w.run(5*time.Second, w.bulk())
	require.InDelta(t, widest, w.conns[0].Stats().PacketSize, 4)
	w.drain(t, 1)

	w = newPaced(30_000) // less than a bunch
	ch := w.open(0)
	w.run(5*time.Second, func() {
		for ch.NumOutRec() < 100 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 505), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
	})
	require.Greater(t, w.conns[0].Stats().PacketSize, 1024)
}

// TestSizeFollowsThePath: a path that loses packets alone and in bursts, is dark now and then and changes its width. Whenever that has stayed as it is for a
// minute, the size is that, or was since, or so little above it that hardly any packet is too large: what fills a packet to the last byte is rare.
func TestSizeFollowsThePath(t *testing.T) {
	seeds := uint64(6)
	if os.Getenv("CI") != "" {
		seeds = 30
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 13))
		set := netsim.Settings{Lag: 20 * time.Millisecond, MTU: widest, Loss: float64(rng.IntN(3) * rng.IntN(6)), BurstLoss: float64(rng.IntN(2)) / 2, BurstLength: 1 + rng.IntN(20)}
		w := newWide(t, set, seed, nil)
		bulk := w.bulk()
		dark := rng.IntN(2) == 0
		for range 8 {
			mtu := 1024 + rng.IntN(500)
			w.setMTU(t, set, mtu)
			changed, before := w.now, w.links[0].Counters
			for found := false; !found; {
				w.dark[0] = dark && w.now%(7*time.Second) > 6500*time.Millisecond
				w.step(bulk)
				size, most, c := w.conns[0].Stats().PacketSize, min(mtu, widest), &w.links[0].Counters
				found = size <= most && size >= max(1024, most-searchStep-4)
				if w.now-changed > time.Minute-2*w.tick && w.conns[0].search.size > most && // a tail probe may be under way, with the base size
					1000*(c.TooBig-before.TooBig) < c.Pushed-before.Pushed {
					break
				}
				require.Less(t, w.now-changed, time.Minute, "seed %d: %d bytes on a path of %d; %+v", seed, size, mtu, w.conns[0].search)
			}
			w.run(time.Duration(rng.Int64N(int64(20*time.Second))), bulk)
		}
		w.dark[0] = false
		w.setMTU(t, set, widest)
		w.drain(t, seed)
	}
}

// TestSizeComesBack: where a burst of losses or a darkness had the size return to the base, the size before is tried first: one probe finds it again, and
// the search goes on from there.
func TestSizeComesBack(t *testing.T) {
	for _, mtu := range []int{1300, 2000} {
		w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond, MTU: mtu}, 1, nil)
		bulk := w.bulk()
		w.run(10*time.Second, bulk)
		c := w.conns[0]
		for range 5 {
			size, probes, narrowed := c.search.size, c.Counters.SizeProbes, c.Counters.Narrowed
			w.dark[0] = true
			w.run(500*time.Millisecond, bulk)
			w.dark[0] = false
			w.run(2*time.Second, bulk)
			require.Equal(t, narrowed+1, c.Counters.Narrowed, "a path of %d bytes", mtu)
			require.InDelta(t, size, c.search.size, 4, "a path of %d bytes", mtu)
			require.LessOrEqual(t, c.Counters.SizeProbes, probes+1+searchTries, "a path of %d bytes", mtu) // a look at a larger size may be due
			w.run(2*time.Minute, bulk)                                                                     // the next look is over
		}
		w.drain(t, 1)
	}
}

// TestSearchGoesOn: when a size has come back, the search goes on when it would have, but soon: after a minute of darkness at once, and within searchLook where it had ended.
func TestSearchGoesOn(t *testing.T) {
	const now = time.Minute
	for resume, want := range map[time.Duration]time.Duration{
		now - time.Second: now, now + time.Second: now + time.Second, now + searchLook: now + searchLook, now + searchAgain: now + searchLook,
	} {
		c := newWide(t, netsim.Settings{}, 1, nil).conns[0]
		c.now = now
		c.search = &search{size: c.basePacket(), probe: 7, bytes: 1300, before: 1300, beyond: 1400, resume: resume, wait: searchSoon, look: searchLook}
		c.sizeArrived(7, &sentPacket{bytes: 1300, probe: true})
		require.Equal(t, [3]int{1300, 1400, 0}, [3]int{c.search.size, c.search.failed, c.search.before})
		require.Equal(t, want, c.search.at, "it would have gone on at %v", resume)
	}
}

// TestProbesThatDidNotArrive: a peer that acks probes which it hasn't got gains nothing: the size stays within its bound, what was lost goes again
// in smaller packets, and the lie is believed more and more seldom.
func TestProbesThatDidNotArrive(t *testing.T) {
	for seed := range uint64(3) {
		w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond, Loss: float64(10 * seed)}, seed, nil)
		w.lose[0] = func(p []byte) bool { return len(p) > 1024 && !w.conns[0].newest().probe } // the probes' acks come, as if the peer lied
		narrowed := uint64(0)
		for i := range 120 {
			w.run(time.Second, w.talk)
			require.LessOrEqual(t, w.conns[0].Stats().PacketSize, widest)
			if i == 59 {
				narrowed = w.conns[0].Counters.Narrowed
			}
		}
		require.Positive(t, narrowed)
		require.LessOrEqual(t, narrowed, uint64(7), "seed %d", seed)
		require.LessOrEqual(t, w.conns[0].Counters.Narrowed-narrowed, uint64(2), "seed %d", seed)
		w.drain(t, seed)
	}
}

// TestPeerWithoutLargePackets: an end that doesn't take larger packets, as one of an earlier version, drops the probes. One that only doesn't try
// any takes them.
func TestPeerWithoutLargePackets(t *testing.T) {
	off := func(i int, c *Config) {
		if i == 1 {
			c.LargestPacket = 0
		}
	}
	w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, off)
	w.run(10*time.Second, w.talk)
	require.InDelta(t, widest, w.conns[0].Stats().PacketSize, 4)
	w.drain(t, 1)

	w = newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, off)
	w.lose[0] = func(p []byte) bool { return len(p) > 1024 }
	w.run(10*time.Second, w.talk)
	s := w.conns[0].Stats()
	require.Less(t, s.PacketSize, 1024+searchStep)
	require.EqualValues(t, 6*searchTries, s.Packets.SizeProbes, "of 1439, 1231, 1127, 1075, 1049 and 1036 bytes")
	w.drain(t, 1)
}

// TestLargestReceived: an end that tries no larger packets takes them up to takenBytes, and looks into none beyond.
func TestLargestReceived(t *testing.T) {
	c := newWide(t, netsim.Settings{}, 1, func(_ int, c *Config) { c.LargestPacket = 0 }).conns[0]
	require.ErrorIs(t, c.ReceivedPacket(c.now, make([]byte, takenBytes)), ErrPacket)
	require.Equal(t, [2]uint64{1, 0}, [2]uint64{c.Counters.BadHandler, c.Counters.BadHeader}, "it has no end mark")
	require.ErrorIs(t, c.ReceivedPacket(c.now, make([]byte, takenBytes+1)), ErrPacket)
	require.Equal(t, [2]uint64{1, 1}, [2]uint64{c.Counters.BadHandler, c.Counters.BadHeader})
}

// TestNarrowForgets: what was lost above the base size doesn't count for a path that is too narrow for that.
func TestNarrowForgets(t *testing.T) {
	c := newWide(t, netsim.Settings{}, 1, nil).conns[0]
	c.search, c.path = &search{size: widest, wait: searchSoon}, &path{smallest: 1300, biggest: 1300, lostN: 9}
	c.narrow()
	require.Equal(t, path{}, *c.path)
}

// TestOneAsLargeArrives: what was lost before a packet as large as the smallest of it arrived was lost by chance, and what arrived before the first was lost says nothing.
func TestOneAsLargeArrives(t *testing.T) {
	c := newWide(t, netsim.Settings{}, 1, nil).conns[0]
	for _, step := range []struct{ run, bytes, wantRun, wantMost int }{{2, 1250, 2, 1250}, {2, 1300, 0, 0}, {0, 1250, 0, 0}} {
		c.search = &search{size: widest, probe: bunch.NoPacket, run: step.run, least: 1300}
		c.sizeArrived(5, &sentPacket{bytes: int32(step.bytes)})
		require.Equal(t, [2]int{step.wantRun, step.wantMost}, [2]int{c.search.run, c.search.most}, "%+v", step)
	}
	c.search = &search{size: widest, probe: bunch.NoPacket, most: 1300}
	c.sizeLost(5, &sentPacket{bytes: 1300})
	require.Zero(t, c.search.run, "one as large has arrived")
	c.sizeLost(6, &sentPacket{bytes: 1301})
	require.Equal(t, 1, c.search.run)
}

// TestWidestIsLookedAtSeldom: a search that found the largest size has another one after searchAgain.
func TestWidestIsLookedAtSeldom(t *testing.T) {
	c := newWide(t, netsim.Settings{}, 1, nil).conns[0]
	c.search = &search{size: widest, look: searchLook}
	c.settleSize()
	require.Equal(t, c.now+searchAgain, c.search.at)
}

// TestHeldForAMinute: after a size that was held for longer than that, larger packets that are lost are as at first.
func TestHeldForAMinute(t *testing.T) {
	for held, want := range map[time.Duration]time.Duration{searchHeld: 4 * searchSoon, searchHeld + 1: searchSoon} {
		c := newWide(t, netsim.Settings{}, 1, nil).conns[0]
		c.now = time.Hour
		c.search = &search{size: widest, wait: 2 * searchSoon, raised: c.now - held}
		c.narrow()
		require.Equal(t, want, c.search.wait, "held for %v", held)
	}
}

// lossy is a controller that notes what it is told of losses.
type lossy struct {
	congestion.Controller
	lost []int
}

func (l *lossy) OnLost(now time.Duration, id int64, bytes int) {
	l.lost = append(l.lost, bytes)
	l.Controller.OnLost(now, id, bytes)
}

// TestLostProbeIsNoCongestion: neither the controller nor the measured loss hear of a lost probe.
func TestLostProbeIsNoCongestion(t *testing.T) {
	told := &lossy{Controller: adapt()}
	w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond, MTU: 1100}, 1, func(i int, c *Config) {
		if i == 0 {
			c.Controller = told
		}
	})
	w.run(5*time.Second, w.talk)
	require.Positive(t, w.conns[0].Counters.SizeProbesLost)
	require.Empty(t, told.lost)
	require.Zero(t, w.conns[0].Stats().LossRate)
	w.drain(t, 1)
}

// TestNobodyAsksForLargerPackets: without full packets, with coding, and with a protocol of Unreal's, none is tried.
func TestNobodyAsksForLargerPackets(t *testing.T) {
	w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, nil)
	ch := w.open(0)
	w.run(5*time.Second, func() {
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true})
		require.NoError(t, err)
	})
	require.Zero(t, w.conns[0].Counters.SizeProbes)
	for name, edit := range map[string]func(c *Config){
		"coding": func(c *Config) { c.Coding.Repairs = 1 },
		"unreal": func(c *Config) { c.Protocol = Unreal51() },
	} {
		w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, func(_ int, c *Config) { edit(c) })
		w.run(2*time.Second, w.talk)
		require.Zero(t, w.conns[0].Counters.SizeProbes, name)
		w.drain(t, 1)
	}
}

// TestPartsAndProbes: a probe never comes between the parts of an unreliable payload, which must be in packets that follow each other.
func TestPartsAndProbes(t *testing.T) {
	w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, nil)
	ch := w.open(0)
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 16), Reliable: true})
	require.NoError(t, err)
	w.run(time.Second, nil)
	w.got = [2]int{}
	sent := 0
	w.run(3*time.Second, func() {
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 5000)})
		require.NoError(t, err)
		sent += 5000
	})
	w.run(time.Second, nil)
	require.Equal(t, sent, w.got[1])
	require.InDelta(t, widest, w.conns[0].Stats().PacketSize, 4)
}

// TestFewerPackets: what a found size is for. Payloads of 32 KiB go in a third fewer packets, and one of 1200 bytes in one.
func TestFewerPackets(t *testing.T) {
	for size, most := range map[int]float64{32 << 10: 25, 1200: 1.1} {
		w := newWide(t, netsim.Settings{Lag: 5 * time.Millisecond}, 1, nil)
		ch := w.open(0)
		send := func() {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		w.run(2*time.Second, send)
		w.run(time.Second, nil)
		packets, n := w.conns[0].Counters.PacketsSent, 0
		w.run(time.Second, func() { send(); n++ })
		packets = w.conns[0].Counters.PacketsSent - packets
		require.LessOrEqual(t, float64(packets)/float64(n), most, "payloads of %d bytes", size)
	}
}

// TestPartsFindRoom: payloads are cut into as few parts as before where a channel has no room for more.
func TestPartsFindRoom(t *testing.T) {
	w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, func(_ int, c *Config) {
		c.Protocol = Bunchnet()
		c.Protocol.ReliableBuffer = 64
	})
	w.run(2*time.Second, w.talk)
	w.drain(t, 1)
	require.InDelta(t, widest, w.conns[0].Stats().PacketSize, 4)
	for _, before := range []int{0, 10, 20} {
		ch := w.open(0)
		for range before {
			_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 32<<10), Reliable: true})
		require.NoError(t, err)
		require.Equal(t, before+map[int]int{0: 48, 10: 48, 20: 35}[before], ch.NumOutRec())
		w.run(time.Second, nil)
	}
}

// TestLossKeepsTheSize: on a path that loses packets of all sizes, the largest are found, and stay.
func TestLossKeepsTheSize(t *testing.T) {
	for _, loss := range []float64{2, 10, 20} {
		widestFound := 0
		for seed := range uint64(5) {
			w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond, Loss: loss}, seed, nil)
			w.run(5*time.Second, w.talk)
			require.LessOrEqual(t, w.conns[0].Counters.Narrowed, uint64(2), "%v %%, seed %d", loss, seed)
			if w.conns[0].search.size > widest-5 {
				widestFound++
			}
			w.drain(t, seed)
		}
		require.GreaterOrEqual(t, widestFound, 4, "%v %%", loss)
	}
}

// TestTailAfterTheChange: one payload in a packet that has become too large arrives by the first tail probe.
func TestTailAfterTheChange(t *testing.T) {
	w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, nil)
	w.run(2*time.Second, w.talk)
	w.drain(t, 1)
	w.setMTU(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1100)
	ch := w.open(0)
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 1200), Reliable: true})
	require.NoError(t, err)
	start, before := w.now, w.conns[0].Counters.PacketsLost
	for ch.NumOutRec() > 0 && w.now < start+5*time.Second {
		w.step(nil)
	}
	require.EqualValues(t, 1, w.conns[0].Counters.PacketsLost-before)
	require.Less(t, w.now-start, 400*time.Millisecond)
}

// broke is a controller that allows nothing.
type broke struct{ congestion.Controller }

func (broke) Budget(time.Duration) int { return 0 }

// TestSizeProbeAsksTheController: a probe waits for the budget.
func TestSizeProbeAsksTheController(t *testing.T) {
	w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, nil)
	c := w.conns[0]
	c.search = &search{size: 1024, probe: bunch.NoPacket, full: searchFull}
	c.cfg.Controller = broke{c.cfg.Controller}
	w.run(time.Second, nil)
	require.Zero(t, c.Counters.SizeProbes)
	c.cfg.Controller = c.cfg.Controller.(broke).Controller
	w.run(100*time.Millisecond, nil)
	require.EqualValues(t, 1, c.Counters.SizeProbes)
	require.InDelta(t, widest, c.Stats().PacketSize, 4)
}

// TestSizesOfAllKinds: whatever the base size and the largest one, what is sent arrives, and the largest is found.
func TestSizesOfAllKinds(t *testing.T) {
	for _, base := range []int{256, 1024, 1400, 8192} {
		for _, most := range []int{base + 1, base + 100, 1500, 4000, 8192} {
			w := newWide(t, netsim.Settings{Lag: 5 * time.Millisecond}, 1, func(_ int, c *Config) {
				c.Protocol = Bunchnet()
				c.Protocol.Bunch.MaxPacket, c.LargestPacket = base, min(max(most, base), 8192)
			})
			w.run(2*time.Second, w.talk)
			require.InDelta(t, max(base, min(most, 8192)), w.conns[0].Stats().PacketSize, 4, "%d and %d bytes", base, most)
			w.drain(t, 1)
		}
	}
}

// TestMiddlingPacketsHideNothing: on a path that has become narrower, full packets that get lost are noticed although others above the base size arrive
// between them.
func TestMiddlingPacketsHideNothing(t *testing.T) {
	for seed := range uint64(4) {
		set := netsim.Settings{Lag: 20 * time.Millisecond, Loss: float64(5 * seed)}
		w := newWide(t, set, seed, nil)
		w.run(3*time.Second, w.talk)
		w.drain(t, seed)
		ch := w.open(0)
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 8), Reliable: true})
		require.NoError(t, err)
		w.run(2*time.Second, nil)
		w.setMTU(t, set, 1300)
		n, before, start := 0, w.conns[0].Counters.Narrowed, w.now
		for w.conns[0].Counters.Narrowed == before && w.now < start+5*time.Second {
			w.step(func() {
				n++
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 1380-230*(n%2)), Reliable: n%2 == 0})
				require.NoError(t, err, "seed %d, after %v", seed, w.now-start)
				w.conns[0].FlushNet()
			})
		}
		require.Less(t, w.now-start, 1500*time.Millisecond, "seed %d", seed)
	}
}

// TestChanceHidesNothing: one full packet lost by chance, a smaller one that arrives then, and all of that size lost later: that is noticed.
func TestChanceHidesNothing(t *testing.T) {
	w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, nil)
	w.run(2*time.Second, w.talk)
	w.drain(t, 1)
	ch := w.open(0)
	send := func(size int) {
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true})
		require.NoError(t, err)
		w.conns[0].FlushNet()
	}
	lose := true
	w.lose[0] = func(p []byte) bool { was := lose; lose = false; return was }
	send(1380)
	for range 30 {
		w.run(50*time.Millisecond, nil)
		send(1150)
	}
	require.Zero(t, w.conns[0].Counters.Narrowed)
	w.setMTU(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1100)
	w.run(time.Second, func() { send(1150) })
	require.EqualValues(t, 1, w.conns[0].Counters.Narrowed)
}

// TestFullQueueIsCongestion: a queue that overflows loses many packets in a row, as a path that has become narrower does. The size stays, as large ones
// arrive behind them. The controller hears of all of them.
func TestFullQueueIsCongestion(t *testing.T) {
	for _, queue := range []time.Duration{40, 100} {
		w := newWide(t, netsim.Settings{Lag: 30 * time.Millisecond, Bandwidth: 2e6, QueueDelay: queue * time.Millisecond}, 1, nil)
		ch := w.open(0)
		w.run(30*time.Second, func() {
			for ch.Room() > 20 && w.conns[0].Table().Waiting() < 10 {
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 4000), Reliable: true})
				require.NoError(t, err)
			}
		})
		s := w.conns[0].Stats().Packets
		require.Zero(t, s.Narrowed)
		require.Less(t, float64(s.PacketsLost)/float64(s.PacketsSent), 0.12, "a queue of %v", queue*time.Millisecond)
	}
}

// TestAllTooLarge: a path becomes narrower than every packet that is sent, so that nothing arrives that could tell of losses: the size is smaller
// soon.
func TestAllTooLarge(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, nil)
		w.run(2*time.Second, w.talk)
		w.drain(t, 1)
		chs := [2]*channel.Channel{w.open(0), w.open(1)}
		send := func(size int, reliable bool) {
			for _, ch := range chs {
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: reliable})
				require.NoError(t, err)
			}
		}
		send(8, true)
		w.run(10*time.Second, func() { send(1380, reliable) })
		w.setMTU(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1300)
		w.run(2*time.Second, func() { send(1380, reliable) })
		for i, c := range w.conns {
			require.LessOrEqual(t, c.Stats().PacketSize, 1300, "end %d", i)
		}
		w.got = [2]int{}
		w.run(time.Second, func() { send(1380, reliable) })
		for i, got := range w.got {
			require.Greater(t, got, 50*1380, "end %d", i)
		}
	}
}

// TestManyLargeAreLost: where half of the packets above the base size are lost, and no smaller ones, the base size is better.
func TestManyLargeAreLost(t *testing.T) {
	for _, smallest := range []int{1025, 1300} {
		w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond}, 1, nil)
		w.run(3*time.Second, w.talk)
		w.drain(t, 1)
		w.setMTU(t, netsim.Settings{Lag: 20 * time.Millisecond, Loss: 50, LossMinSize: smallest}, 0)
		bytes, sent := w.conns[0].Counters.BytesSent, w.sent
		w.run(10*time.Second, w.talk)
		w.drain(t, 1)
		require.Less(t, float64(w.conns[0].Counters.BytesSent-bytes)/float64(w.sent-sent), 1.2, "%d bytes and more", smallest)
	}
}

// TestBoundRightAboveTheBase: a bound of so few bytes above the base size that a probe isn't larger than others ends the search.
func TestBoundRightAboveTheBase(t *testing.T) {
	for base := 1024; base < 1032; base++ {
		for more := range 6 {
			w := newWide(t, netsim.Settings{Lag: 20 * time.Millisecond, MTU: base + more/2}, 1, func(_ int, c *Config) {
				c.Protocol = Bunchnet()
				c.Protocol.Bunch.MaxPacket, c.LargestPacket = base, base+1+more
			})
			w.run(3*time.Second, w.talk)
			require.Equal(t, bunch.NoPacket, w.conns[0].search.probe, "%d bytes above %d", 1+more, base)
			require.Greater(t, w.conns[0].search.at, searchLook, "%d bytes above %d", 1+more, base)
			w.drain(t, 1)
		}
	}
}

// TestSearchEnds: a search is over when it is close enough to the largest size, or to one that was lost. Then it looks again after searchAgain, or for one that was lost after a time that doubles until that. A path that has become narrow has it go on later where it was.
func TestSearchEnds(t *testing.T) {
	const largest = 1400
	for name, v := range map[string]struct {
		size, failed int
		ends         bool
		at, look     time.Duration // from now on
	}{
		"far from the largest": {largest - searchStep - 1, 0, false, 0, searchLook},
		"close to it":          {largest - searchStep, 0, true, searchAgain, searchLook},
		"far from one lost":    {1200, 1200 + searchStep + 1, false, 0, searchLook},
		"close to one lost":    {1200, 1200 + searchStep, true, searchLook, 2 * searchLook},
	} {
		h := newHand(t, func(_ int, c *Config) { c.LargestPacket = largest })
		c := h.conns[0]
		c.filled()
		c.filled()
		s := c.search
		require.Equal(t, 1, s.full, "%s: one packet", name)
		s.size, s.failed, s.at = v.size, v.failed, c.now
		c.settleSize()
		require.Equal(t, v.ends, s.full == 0, name)
		require.Equal(t, []time.Duration{v.at, v.look}, []time.Duration{s.at - c.now, s.look}, name)
		for range 20 {
			c.settleSize()
		}
		if v.failed > 0 && v.ends {
			require.Equal(t, []time.Duration{searchAgain, searchAgain}, []time.Duration{s.at - c.now, s.look}, name)
		}
		resume := s.at
		c.narrow()
		require.Equal(t, []int{c.basePacket(), 0, 0, v.size, v.failed}, []int{s.size, s.failed, s.full, s.before, s.beyond}, name)
		require.Equal(t, []time.Duration{resume, searchLook}, []time.Duration{s.resume, s.look}, name)
		c.narrow()
		require.Equal(t, v.size, s.before, "%s: where it was is remembered", name)
	}
}

// TestSearchSilence: packets are of the base size when larger ones left and no fate came for long, until one comes. The least size that was lost in a row is remembered.
func TestSearchSilence(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.LargestPacket = 1400 })
	c := h.conns[0]
	c.filled()
	s := c.search
	c.now += time.Minute
	s.size, c.rtt.smoothed, c.rtt.variance = 1300, 100*time.Millisecond, 10*time.Millisecond
	s.since = c.now - searchSilence - 280*time.Millisecond
	require.Equal(t, 1300, c.packetBytes())
	s.since--
	require.Equal(t, c.basePacket(), c.packetBytes())
	c.sizeLost(5, &sentPacket{bytes: 100})
	require.Equal(t, 1300, c.packetBytes())
	require.Zero(t, s.run, "small ones tell nothing")
	for i, least := range []int{1290, 1250} {
		c.sizeLost(6, &sentPacket{bytes: []int32{1290, 1250}[i]})
		require.Equal(t, []int{i + 1, least}, []int{s.run, s.least})
	}
}
