package netconn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestNarrowPathUnderLoad: that the path loses all large packets is found out while nothing but large packets waits, at any rate; it
// isn't said of the peer.
func TestNarrowPathUnderLoad(t *testing.T) {
	for _, tick := range []time.Duration{time.Millisecond, testTick, 100 * time.Millisecond} {
		for _, speed := range []int{20_000, 100_000, 1_000_000, 0} {
			for _, keepAlive := range []time.Duration{200 * time.Millisecond, 5 * time.Second} {
				l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), 1, func(_ int, c *Config) {
					c.KeepAlive = keepAlive
					if c.NetSpeed = speed; speed == 0 {
						c.Controller = adapt()
					}
				})
				l.tick = tick
				l.control()
				l.run(time.Second, nil)
				ch := l.open(0)
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 20), Reliable: true})
				require.NoError(t, err)
				l.run(time.Second, nil)
				l.lose[0] = func(p []byte) bool { return len(p) > 500 }
				start := l.now
				l.run(40*time.Second, func() {
					for range 20 {
						if ch.Room() > 1 {
							_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
							require.NoError(t, err)
						}
					}
				})
				require.NotNil(t, l.res[0], "tick %v, %d bytes a second", tick, speed)
				t.Logf("tick %v, %d bytes a second: %v after %v", tick, speed, l.res[0], l.now-start)
				require.Equal(t, PathNarrow, l.res[0].Code)
				require.Less(t, l.now-start, 25*time.Second)
			}
		}
	}
}

// TestNarrowPathBesideUnreliable: the verdict is the path's, not one of a peer that refuses everything, where the peer refuses small reliable packets from far ahead, some are lost
// by chance, and unreliable bunches of about their size arrive.
func TestNarrowPathBesideUnreliable(t *testing.T) {
	for seed := range uint64(6) {
		l := newLab(t, both(netsim.Settings{Lag: 30 * time.Millisecond, Loss: float64(seed % 3 * 5)}), seed, func(_ int, c *Config) {
			c.Protocol, c.NetSpeed = Bunchnet(), 280_000
			c.Protocol.Bunch.MaxPacket = 576
		})
		l.join()
		ch := l.open(0)
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 20), Reliable: true})
		require.NoError(t, err)
		l.run(time.Second, nil)
		l.lose[0] = func(p []byte) bool { return len(p) > 435 }
		rng, start := rand.New(rand.NewPCG(seed, 2)), l.now
		l.run(time.Minute, func() {
			if ch.Room() > 100 && l.conns[0].Table().Waiting() < 20 {
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, rng.IntN(20_000)), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
			if l.conns[0].IsNetReady() {
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, rng.IntN(576))})
				require.NoError(t, err)
			}
		})
		require.NotNil(t, l.res[0], "seed %d", seed)
		require.Equal(t, PathNarrow, l.res[0].Code, "seed %d: %v", seed, l.res[0])
		require.Less(t, l.now-start, 25*time.Second, "seed %d", seed)
	}
}

// TestNarrowPathOfASmallWindow: that is found out, too, where the window is always full of large packets.
func TestNarrowPathOfASmallWindow(t *testing.T) {
	for _, window := range []int{16, 64} {
		l := newLab(t, both(netsim.Settings{Lag: 250 * time.Millisecond}), 1, func(_ int, c *Config) {
			c.Protocol, c.NetSpeed = Bunchnet(), 400_000
			c.Protocol.PacketWindow = window
		})
		l.tick = 100 * time.Millisecond
		l.join()
		ch := l.open(0)
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 20), Reliable: true})
		require.NoError(t, err)
		l.run(2*time.Second, nil)
		l.lose[0] = func(p []byte) bool { return len(p) > 500 }
		start := l.now
		l.run(40*time.Second, func() {
			for range 20 {
				if ch.Room() > 1 {
					_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
			}
		})
		require.NotNil(t, l.res[0], "a window of %d", window)
		require.Equal(t, PathNarrow, l.res[0].Code, "a window of %d: %v", window, l.res[0])
		require.Less(t, l.now-start, 25*time.Second)
	}
}

// TestLossIsNoNarrowPath: a path that loses most packets of all sizes, or has most of them come too late, isn't taken for one that loses
// large ones.
func TestLossIsNoNarrowPath(t *testing.T) {
	for name, set := range map[string]netsim.Settings{
		"loss":       {Lag: 20 * time.Millisecond, Loss: 95},
		"reordering": {LagMin: 5 * time.Millisecond, LagMax: 205 * time.Millisecond},
	} {
		for seed := range uint64(20) {
			l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), seed, func(_ int, c *Config) {
				c.KeepAlive = 10 * time.Millisecond
				c.OrderCache = -1
			})
			l.tick = 5 * time.Millisecond
			l.control()
			l.run(time.Second, nil)
			ch := l.open(0)
			for i := range l.links {
				require.NoError(t, l.links[i].Set(set))
			}
			l.run(60*time.Second, func() {
				for _, size := range []int{20, 900} {
					if ch.NumOutRec() < 16 {
						_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true, NoMerge: true})
						require.NoError(t, err)
					}
				}
			})
			require.Nil(t, l.res[0], "%s, seed %d", name, seed)
		}
	}
}

// TestNarrowPathThatLoses: that large packets get lost is found out on a path that loses a third of the small ones too.
func TestNarrowPathThatLoses(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond, Loss: 33}), 1, nil)
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 20), Reliable: true})
	require.NoError(t, err)
	l.run(time.Second, nil)
	l.lose[0] = func(p []byte) bool { return len(p) > 500 }
	start := l.now
	l.run(60*time.Second, func() {
		if ch.Room() > 1 && l.res[0] == nil {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
	})
	require.NotNil(t, l.res[0])
	require.Equal(t, PathNarrow, l.res[0].Code)
	t.Logf("%v after %v", l.res[0], l.now-start)
}

// TestProbeOfTheSize: a packet that measures the path is as large as the smallest that was lost, or a bunch's header larger.
func TestProbeOfTheSize(t *testing.T) {
	least, most := 100, 0
	for size := int32(600); size < 700; size++ {
		h := newHand(t, nil)
		h.packet(0, true)
		c := h.conns[0]
		c.path = &path{smallest: size, biggest: size, largest: 100, lostN: narrowLost, ackedN: narrowAcked, emptyN: narrowAcked, since: h.now - narrowTime/2}
		c.probePath()
		require.Len(t, h.sent[0], 2)
		require.Less(t, len(h.sent[0][1]), 50, "an empty one leaves behind it")
		over := len(h.sent[0][0]) - int(size)
		least, most = min(least, over), max(most, over)
	}
	require.Zero(t, least)
	require.Less(t, most, 8)
}

// TestProbeOfAFullPacket: it is a little shorter than the packet, and says all the same that packets of the size arrive.
func TestProbeOfAFullPacket(t *testing.T) {
	for short := range int32(4) {
		h := newHand(t, nil)
		h.packet(0, true)
		c := h.conns[0]
		size := int32(c.basePacket()) - short
		c.path = &path{smallest: size, biggest: size, largest: 100, lostN: narrowLost, ackedN: narrowAcked, emptyN: narrowAcked, since: h.now - narrowTime/2}
		c.probePath()
		require.Len(t, h.sent[0], 2)
		c.path.acked(h.now, &sentPacket{bytes: int32(len(h.sent[0][0])), probe: true})
		require.Zero(t, c.path.lostN, "%d of %d bytes", len(h.sent[0][0]), size)
	}
}

// TestNobodyToProbeWith: without a channel that the peer has nothing can be sent that it would take.
func TestNobodyToProbeWith(t *testing.T) {
	sent := 0
	c, err := New(Config{LowLevelSend: func([]byte) { sent++ }, Channels: testTypes(nil)}, time.Minute, 7, 9)
	require.NoError(t, err)
	ch, err := c.Open(bunch.Control, nil)
	require.NoError(t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.NoError(t, err)
	c.FlushNet()
	c.path = &path{smallest: 600, biggest: 600, largest: 100, lostN: narrowLost, ackedN: narrowAcked, emptyN: narrowAcked, since: c.now - narrowTime/2}
	c.probePath()
	require.Equal(t, 1, sent)
}

// TestNarrowPathSaysWhatItMeasured: the packets lost, probes among them, their size, and what arrived meanwhile.
func TestNarrowPathSaysWhatItMeasured(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	h.packet(0, true)
	c.path = &path{smallest: 700, biggest: 700, largest: 100, lostN: narrowLost + 6, ackedN: narrowAcked + 1, emptyN: narrowAcked + 1, probes: narrowProbes, since: h.now - narrowTime}
	c.Tick(h.now)
	require.Equal(t, PathNarrow, c.Result().Code)
	require.ErrorContains(t, c.Result().Err, ": 75 packets of up to 700 bytes were lost in 10s, while 17 of up to 100 bytes arrived")
}

// TestProbesChannel: a probe rides on the first channel that the peer is known to have, which needn't be the first of all.
func TestProbesChannel(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	require.EqualValues(t, 0, c.ackedChannel().Index())
	require.NoError(t, c.channels.CloseControl())
	require.Equal(t, h.chs[0], c.ackedChannel())
}

// A blackout in which small reliable bunches rode with large unreliable ones. All that is reliable arrives after it, packed closer;
// then the game has only little to say. Nothing waits, so the path isn't too narrow.
func TestBlackoutIsNoNarrowPath(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, nil)
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	talk := func(voice int) func() {
		return func() {
			_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
			require.NoError(t, err)
			if voice > 0 {
				_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, voice)})
			}
		}
	}
	l.run(time.Second, talk(800))
	l.dark[0] = true
	l.run(1500*time.Millisecond, talk(800))
	l.dark[0] = false
	l.run(30*time.Second, talk(0))
	require.Zero(t, l.conns[0].Table().Waiting())
	require.Nil(t, l.res[0], "%v", l.res[0])
}

// The same where the peer closes the channel during the blackout, so that what was lost isn't sent again.
func TestClosedChannelIsNoNarrowPath(t *testing.T) {
	var theirs *channel.Channel
	l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, nil)
	l.accept[0] = func(ch *channel.Channel) { theirs = ch }
	l.control()
	l.run(time.Second, nil)
	ch := l.open(1)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("pawn"), Reliable: true})
	require.NoError(t, err)
	l.run(time.Second, nil)
	require.NotNil(t, theirs)
	l.dark[0] = true
	l.run(2*time.Second, func() { _, _ = theirs.SendBunch(&bunch.Out{Data: make([]byte, 60), Reliable: true}) })
	require.NoError(t, ch.Close(bunch.Destroyed))
	l.run(500*time.Millisecond, func() { _, _ = theirs.SendBunch(&bunch.Out{Data: make([]byte, 60), Reliable: true}) })
	l.dark[0] = false
	l.run(30*time.Second, nil)
	require.Nil(t, l.res[0], "%v", l.res[0])
}

// A path that loses all large packets for a while, as after a change of route, then takes them again.
func TestWideAgain(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, nil)
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	narrow := false
	l.lose[0] = func(p []byte) bool { return narrow && len(p) > 500 }
	talk := func() {
		if ch.Room() > 1 {
			_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 700), Reliable: true, NoMerge: true})
		}
	}
	l.run(time.Second, talk)
	narrow = true
	l.run(8*time.Second, talk)
	narrow = false
	l.run(30*time.Second, talk)
	require.Nil(t, l.res[0], "%v", l.res[0])
}

// TestWideAgainAfterManyLosses: a path that loses large packets until a thousand with reliable bunches are lost in a row, and carries them then, isn't
// taken for a peer that refuses everything.
func TestWideAgainAfterManyLosses(t *testing.T) {
	now := 20 * time.Second
	big := sentPacket{bytes: 1000, reliable: true}
	c := &Conn{now: now, path: new(path)}
	for range 2 * refusalPackets {
		c.refusals.lost(now, &big)
		c.path.lost(now-refusalTime/2, &big)
	}
	for range narrowAcked {
		c.path.acked(0, &sentPacket{bytes: 100})
	}
	c.refusals.all.packets = 0 // small ones arrive
	require.True(t, c.path.probing(now))
	c.refusals.reliable.rounds, c.refusals.reliable.lasted = refusalRounds, refusalTime
	require.True(t, c.refusals.reliable.tooLong(0), "probing puts the verdict off")
	h := newHand(t, nil)
	end := h.conns[0]
	h.now += 20 * time.Second
	end.path, end.refusals = c.path, c.refusals
	end.path.since = h.now - narrowTime/2
	p := h.packet(0, false)
	end.newest().probe, end.newest().bytes = true, 1000 // a packet of that size
	h.give(0, p)
	h.conns[1].Tick(h.now)
	h.deliver(1)
	require.False(t, end.path.probing(h.now))
	for range emptyAfter - 1 {
		end.refusals.lost(h.now, &big)
		end.checkRefusals()
		require.False(t, end.Closed(), "%v", end.Result())
	}
	end.refusals.lost(h.now, &big)
	end.checkRefusals()
	require.ErrorIs(t, end.Result().Err, errRefuses)
}

// TestDarknessEachWayIsNoNarrowPath: an hour in which the peer hears and isn't heard ends with news of a history only, of empty packets: all that is large
// counts as lost. Then it is dark the other way, while probes leave and the window fills. That isn't a path that loses large packets.
func TestDarknessEachWayIsNoNarrowPath(t *testing.T) {
	for _, keepAlive := range []time.Duration{200 * time.Millisecond, 5 * time.Second} {
		l := newLab(t, both(netsim.Settings{Lag: 30 * time.Millisecond}), 1, func(_ int, c *Config) { c.Timeout, c.KeepAlive = -1, keepAlive })
		l.control()
		l.run(time.Second, nil)
		talk := l.talkers(bunch.Out{Data: make([]byte, 20), Reliable: true, NoMerge: true}, 15)
		l.run(3*time.Second, talk)
		l.dark = [2]bool{false, true}
		l.run(20*time.Second, talk)
		l.tick = time.Second / 2
		l.run(time.Hour, talk)
		l.dark = [2]bool{true, false}
		l.run(time.Minute, talk) // so little leaves room for probes
		l.tick = testTick
		l.run(15*time.Second, talk)
		require.True(t, l.conns[0].windowFull(), "the first packet to arrive is an empty one")
		l.dark = [2]bool{}
		got := l.got
		l.run(20*time.Second, talk)
		require.Nil(t, l.res[0], "%v", l.res[0])
		require.Nil(t, l.res[1], "%v", l.res[1])
		require.Greater(t, l.got[0], got[0])
		require.Greater(t, l.got[1], got[1])
	}
}
