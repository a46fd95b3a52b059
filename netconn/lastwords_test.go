package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLastWordsArrive: a peer hears of a close whose time was too short for what waited, and of an abort, though packets get
// lost; it needn't time out.
func TestLastWordsArrive(t *testing.T) {
	for _, control := range []bool{true, false} {
		for _, abort := range []bool{true, false} {
			told := 0
			const seeds = 200
			for seed := range uint64(seeds) {
				l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond, Loss: 20}), seed, func(_ int, c *Config) {
					c.LingerTimeout = time.Second / 4
					if !control {
						c.Channels = c.Channels[1:]
					}
				})
				if control {
					l.control()
				}
				l.run(2*time.Second, nil)
				ch := l.open(1)
				for range 200 {
					_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
				l.run(time.Second/2, nil)
				if abort {
					l.conns[1].Abort(l.now, "enough")
				} else {
					l.conns[1].Close(l.now, "bye")
				}
				for end := l.now + time.Second; l.now < end; {
					l.step(nil)
				}
				require.NotNil(t, l.res[1])
				if l.res[0] != nil && l.res[0].Code == ClosedByPeer {
					told++
				}
			}
			t.Logf("control %v, abort %v: %d of %d were told", control, abort, told, seeds)
			require.GreaterOrEqual(t, told, seeds-2)
		}
	}
}

// TestLastWordsOfAFullWindow: as many packets in flight as may be keep nobody from being told of a close whose time was too short, or of an abort.
func TestLastWordsOfAFullWindow(t *testing.T) {
	for _, window := range []int{16, 256, 4096} {
		for _, abort := range []bool{true, false} {
			l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, func(_ int, c *Config) {
				c.NetSpeed, c.LingerTimeout, c.Protocol = 100_000_000, time.Second/4, Bunchnet()
				c.Protocol.PacketWindow = window
			})
			l.control()
			l.run(time.Second, nil)
			chs := []*channel.Channel{l.open(1), l.open(1)}
			l.dark[0] = true // so that nothing is acked
			for start := l.now; !l.conns[1].bunchesFull(0); {
				l.run(testTick, func() {
					for range 300 {
						for _, ch := range chs {
							_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: ch.NumOutRec() < 100, NoMerge: true})
						}
					}
				})
				require.Less(t, l.now-start, 10*time.Second)
			}
			if abort {
				l.conns[1].Abort(l.now, "enough")
			} else {
				l.conns[1].Close(l.now, "bye")
			}
			for end := l.now + time.Second; l.now < end; {
				l.step(nil)
			}
			require.NotNil(t, l.res[0], "window %d, abort %v", window, abort)
			require.Equal(t, ClosedByPeer, l.res[0].Code)
		}
	}
}

// TestLastWordsOfAnUnheardPeer: an end that isn't heard for a while, and so refuses packets until it is, with Unreal's rule of 5.3, hears of an abort
// all the same: it needn't time out. So does one whose peer ends because it hears nothing.
func TestLastWordsOfAnUnheardPeer(t *testing.T) {
	for _, busy := range []bool{true, false} {
		for _, dark := range []time.Duration{3 * time.Second, 10 * time.Second, 55 * time.Second, time.Minute} {
			for _, p := range []Protocol{Unreal51(), Unreal53(true), Bunchnet()} {
				p.FirstFree = false
				l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, func(_ int, c *Config) { c.Protocol, c.KeepAlive = p, 50*time.Millisecond })
				l.join()
				talk := l.talkers(bunch.Out{Data: make([]byte, 40), Reliable: true, NoMerge: true}, 20)
				l.run(time.Second, talk)
				if !busy {
					talk = nil
				}
				l.dark[0] = true
				l.run(dark, talk)
				if dark < time.Minute {
					require.Nil(t, l.res[1])
					l.conns[1].Abort(l.now, "enough")
				}
				for end := l.now + time.Second; l.now < end; {
					l.step(nil)
				}
				require.NotNil(t, l.res[1])
				require.NotNil(t, l.res[0], "%s, busy %v, %v", p.Name, busy, dark)
				require.Equal(t, ClosedByPeer, l.res[0].Code)
			}
		}
	}
}

// TestNoLastWordsBeforeTheOpen: an end that times out and whose control channel the peer may not have says nothing: a close without the open before it
// would look as if it broke the protocol.
func TestNoLastWordsBeforeTheOpen(t *testing.T) {
	for _, p := range []Protocol{Unreal51(), Unreal53(true), Bunchnet()} {
		for heard := range 8 { // in so many of its last ticks
			l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, func(i int, c *Config) {
				c.Protocol, c.Timeout, c.KeepAlive = p, time.Duration(3+3*i)*time.Second, 50*time.Millisecond
			})
			l.dark = [2]bool{true, true}
			l.control()
			for l.res[0] == nil {
				at, _ := l.conns[0].timeoutAt()
				l.dark[0] = l.now+time.Duration(heard)*l.tick < at
				l.step(nil)
			}
			require.Equal(t, TimedOut, l.res[0].Code)
			for range 30 {
				l.step(nil)
			}
			require.True(t, l.res[1] == nil || l.res[1].Code != PeerBroke, "%s, heard for %d ticks: %v", p.Name, heard, l.res[1])
		}
	}
}

// TestTheCloseIsAcked: an end whose peer has heard its close doesn't wait for LingerTimeout, though packets get lost and the link forgets the
// peer's end at once.
func TestTheCloseIsAcked(t *testing.T) {
	const seeds = 200
	for _, busy := range []bool{false, true} {
		waited := 0
		for seed := range uint64(seeds) {
			l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond, Loss: 10}), seed, nil)
			l.control()
			l.run(time.Second, nil)
			if busy {
				ch := l.open(1) // so that the packet that acks has something else in it
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
			l.lose[0] = func([]byte) bool { return l.res[1] != nil }
			l.conns[0].Close(l.now, "bye")
			began := l.now
			for l.res[0] == nil {
				l.step(nil)
			}
			require.NotNil(t, l.res[1])
			if l.now-began >= 2*time.Second {
				waited++
			}
		}
		t.Logf("busy %v: %d of %d waited", busy, waited, seeds)
		require.LessOrEqual(t, waited, 1)
	}
}

// TestKeepAlivesLeaveAnswers: over a long path the closing end keeps alive many times before it hears that its close arrived. That leaves
// answers to the close itself, which comes again as all acks of it were lost.
func TestKeepAlivesLeaveAnswers(t *testing.T) {
	for _, p := range []Protocol{Bunchnet(), Unreal53(true)} {
		p.FirstFree = false
		l := newLab(t, both(netsim.Settings{Lag: 300 * time.Millisecond}), 1, func(_ int, c *Config) {
			c.Protocol, c.KeepAlive, c.LingerTimeout, c.Timeout = p, 10*time.Millisecond, 10*time.Second, -1
		})
		l.tick = time.Millisecond
		l.control()
		l.run(3*time.Second, nil)
		start := l.now
		l.conns[0].Close(start, "done")
		l.run(time.Second, nil)
		require.NotNil(t, l.res[1])
		ended := l.conns[1].closer.endedAt
		l.dark[1] = true // only its last words and answers leave now, and what left before is lost
		link, err := netsim.NewLink(netsim.Settings{Lag: 300 * time.Millisecond}, 9)
		require.NoError(t, err)
		l.links[1] = link
		for l.now < ended+500*time.Millisecond {
			l.step(nil)
		}
		l.dark[1] = false
		for l.res[0] == nil {
			l.step(nil)
		}
		t.Log(p.Name, l.now-start, l.res[0])
		require.Less(t, l.now-start, 4*time.Second, p.Name)
		require.Zero(t, l.res[0].Unacked)
	}
}

// TestHushBeforeLastWords: in the last 250 ms of a close, or an eighth of LingerTimeout, nothing is sent while what isn't acked takes more than 32 KiB, but the last words themselves.
func TestHushBeforeLastWords(t *testing.T) {
	const ms = time.Millisecond
	for name, v := range map[string]struct {
		linger, left time.Duration
		bytes        int
		closes, last bool
		hushed       bool
	}{
		"before":           {4 * time.Second, 250 * ms, 40_000, true, false, false},
		"hush":             {4 * time.Second, 250*ms - 1, 40_000, true, false, true},
		"of a short close": {time.Second, 125 * ms, 40_000, true, false, false},
		"an eighth":        {time.Second, 125*ms - 1, 40_000, true, false, true},
		"little":           {4 * time.Second, 10 * ms, 10_000, true, false, false},
		"no close":         {4 * time.Second, 10 * ms, 40_000, false, false, false},
		"last words":       {4 * time.Second, 10 * ms, 40_000, true, true, false},
	} {
		h := newHand(t, func(_ int, c *Config) { c.LingerTimeout, c.NetSpeed = v.linger, 100_000_000 })
		c := h.conns[0]
		for range v.bytes / 1000 {
			_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, 1000), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		if v.closes {
			c.Close(h.now, "")
			require.Equal(t, h.now+v.linger, c.closer.deadline)
		}
		c.now, c.closer.lastWords = h.now+v.linger-v.left, v.last
		used, _ := c.Table().Unreleased()
		require.Equal(t, v.bytes > hushAbove, used > hushAbove, name)
		require.Equal(t, v.hushed, c.hushed(), name)
		require.Equal(t, !v.hushed, (*outlet)(c).MaySend(100), name)
	}
}

// TestFinishersNearTheEnd: in the last 250 ms of a close Finishers may send while 6 KiB haven't left in packets of all kinds, the one that is being written included, and nothing once its time is over.
func TestFinishersNearTheEnd(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.LingerTimeout, c.NetSpeed = 4*time.Second, 100_000_000 })
	c := h.conns[0]
	h.reliable(1, 8)
	c.Close(h.now, "")
	c.FlushNet()
	require.Zero(t, c.out.Len())
	end := c.closer.deadline
	c.now = end - hush
	for range 2 {
		require.True(t, c.IsNetReady())
		c.Counters.BytesSent += 2 * hushLeaves
	}
	c.now++
	require.True(t, c.IsNetReady())
	c.startPacket()
	written := c.out.Len() / 8
	require.Positive(t, written)
	c.Counters.BytesSent += uint64(hushLeaves - written - 1)
	require.True(t, c.IsNetReady())
	c.Counters.BytesSent++
	require.False(t, c.IsNetReady())
	c.Counters.BytesSent--
	c.now = end
	require.False(t, c.IsNetReady())
	c.flow.atOnce = true
	require.False(t, c.IsNetReady(), "nor in what a slow tick reads at once")
	require.Positive(t, c.Budget())
	c.now--
	require.True(t, c.IsNetReady())
}

// TestLastWordsBehindOthersOfControl: an end that ends at once, or whose close nobody has acked until LingerTimeout, tells its peer, though dozens of bunches of channel 0 aren't acked.
func TestLastWordsBehindOthersOfControl(t *testing.T) {
	for _, bunches := range []int{1, 16, 17, 40, 200} {
		for _, dark := range []bool{false, true} {
			l := newLab(t, both(netsim.Settings{Lag: 30 * time.Millisecond}), 1, func(_ int, c *Config) { c.LingerTimeout = 2 * time.Second })
			ctl := l.control()
			l.run(time.Second, nil)
			for range bunches {
				_, err := ctl.SendBunch(&bunch.Out{Data: make([]byte, min(300, 8000/bunches)), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
			if dark {
				l.dark[0] = true
				l.conns[0].Close(l.now, "bye")
				l.run(1990*time.Millisecond, nil)
				l.dark[0] = false
			} else {
				l.conns[0].Abort(l.now, "bye")
			}
			for end := l.now + time.Second; l.now < end; {
				l.step(nil)
			}
			require.NotNil(t, l.res[1], "%d bunches, dark %v", bunches, dark)
			require.Equal(t, ClosedByPeer, l.res[1].Code)
		}
	}
}

// TestLongWordsInSmallPackets: so does one behind a payload of as much as a reason of the driver's, wherever that takes dozens of packets.
func TestLongWordsInSmallPackets(t *testing.T) {
	for _, size := range []int{256, 400, 1024} {
		l := newLab(t, both(netsim.Settings{Lag: 30 * time.Millisecond}), 1, func(_ int, c *Config) {
			c.Protocol = Bunchnet()
			c.Protocol.Bunch.MaxPacket = size
		})
		ctl := l.control()
		l.run(time.Second, nil)
		_, err := ctl.SendBunch(&bunch.Out{Data: make([]byte, 8200), Reliable: true, NoMerge: true})
		require.NoError(t, err)
		l.conns[0].Abort(l.now, "bye")
		for end := l.now + time.Second; l.now < end; {
			l.step(nil)
		}
		require.NotNil(t, l.res[1], "packets of %d bytes", size)
		require.Equal(t, ClosedByPeer, l.res[1].Code)
	}
}
