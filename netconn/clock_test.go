package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestEndlessDurations: the largest durations there are don't wrap into the past: nothing times out, nobody waits for nothing, and a
// close waits for its acks.
func TestEndlessDurations(t *testing.T) {
	p := newPair(t, 1, network{delay: 50 * time.Millisecond}, func(_ int, c *Config) {
		c.Channels = testTypes(func(*channel.Channel) channel.Handler { return channel.Nop{} })
		c.KeepAlive, c.Timeout, c.LingerTimeout, c.AckDelay, c.ReorderWindow = maxKeepAlive, setting.Longest, maxLinger, maxAckDelay, maxReorderWindow
	})
	ch, err := p.ends[0].conn.Open(bunch.Control, channel.Nop{})
	require.NoError(t, err)
	for range 100 {
		p.step()
	}
	_, err = ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.NoError(t, err)
	for i := range 1000 {
		p.step()
		require.Nil(t, p.ends[0].result, "%d", i)
		require.Nil(t, p.ends[1].result, "%d", i)
	}
	require.Zero(t, p.ends[0].conn.Table().Unacked())
	at, ok := p.ends[0].conn.NextDeadline()
	require.True(t, ok)
	require.Greater(t, at, p.now+time.Hour/2)
	p.ends[0].conn.Close(p.now, "")
	p.step()
	require.Nil(t, p.ends[0].result, "its close isn't acked yet")
}

// A time far ahead that was told once, by mistake, costs no more than that mistake.
func TestClockJumpsOnce(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, nil)
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	l.conns[0].PostTickDispatch(l.now + 50*time.Second)
	l.run(100*time.Second, func() {
		if ch.Room() > 1 {
			_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 20), Reliable: true})
		}
	})
	t.Logf("%v %v", l.res[0], l.res[1])
	require.Nil(t, l.res[0])
	require.Nil(t, l.res[1])
}

// TestBackThoughClocksJump: the clocks of both ends jump by hundreds of hours, the path goes dark, and keep-alives and then bunches fill the windows, so
// that the newest packet is one with bunches. Both are back as soon as after any other darkness.
func TestBackThoughClocksJump(t *testing.T) {
	narrow := Bunchnet()
	narrow.PacketWindow = 64
	for _, p := range []Protocol{Bunchnet(), narrow, Unreal51(), Unreal53(true)} {
		p.FirstFree = false
		for way := range 3 {
			l := newLab(t, both(netsim.Settings{Lag: 30 * time.Millisecond}), 1, func(_ int, c *Config) { c.Protocol, c.Timeout, c.NetSpeed = p, -1, 1_000_000 })
			l.control()
			l.run(time.Second, nil)
			talk := l.talkers(bunch.Out{Data: make([]byte, 20), Reliable: true, NoMerge: true}, 0)
			l.run(3*time.Second, talk)
			l.dark = [2]bool{way != 1, way != 2}
			l.run(time.Second, nil)
			l.now += 500 * time.Hour
			l.next = l.now
			l.run(10*time.Second, nil)
			l.run(10*time.Second, talk)
			l.dark = [2]bool{}
			start, got := l.now, l.got
			for l.now-start < time.Minute && (l.got[0] <= got[0]+2000 || l.got[1] <= got[1]+2000) && l.res[0] == nil && l.res[1] == nil {
				l.step(talk)
			}
			t.Logf("%s, window %d, way %d: back after %v", p.Name, p.PacketWindow, way, l.now-start)
			require.Less(t, l.now-start, 3*time.Second, "%s, window %d, way %d: %v %v", p.Name, p.PacketWindow, way, l.res[0], l.res[1])
		}
	}
}
