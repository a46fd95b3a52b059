package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
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
		c.path = &path{smallest: size, largest: 100, lostN: narrowLost, ackedN: narrowAcked, since: h.now - narrowTime/2}
		c.probePath()
		require.Len(t, h.sent[0], 1)
		over := len(h.sent[0][0]) - int(size)
		least, most = min(least, over), max(most, over)
	}
	require.Zero(t, least)
	require.Less(t, most, 8)
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
	c.path = &path{smallest: 600, largest: 100, lostN: narrowLost, ackedN: narrowAcked, since: c.now - narrowTime/2}
	c.probePath()
	require.Equal(t, 1, sent)
}

// TestNarrowPathSaysWhatItMeasured: the packets lost, probes among them, their size, and what arrived meanwhile.
func TestNarrowPathSaysWhatItMeasured(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	h.packet(0, true)
	c.path = &path{smallest: 700, largest: 100, lostN: narrowLost + 6, ackedN: narrowAcked + 1, probes: narrowProbes, since: h.now - narrowTime}
	c.Tick(h.now)
	require.Equal(t, PathNarrow, c.Result().Code)
	require.ErrorContains(t, c.Result().Err, ": 75 packets of 700 bytes and more were lost in 10s, while 17 of up to 100 bytes arrived")
}

// TestProbesChannel: a probe rides on the first channel that the peer is known to have, which needn't be the first of all.
func TestProbesChannel(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	require.EqualValues(t, 0, c.ackedChannel().Index())
	require.NoError(t, c.Channel(0).Close(bunch.Destroyed))
	require.Equal(t, h.chs[0], c.ackedChannel())
}
