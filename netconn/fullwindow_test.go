package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestAcksAndKeepAlivesLeaveRoomForBunches: where so many acks or keep-alives leave in a round trip that they alone would fill the packet window,
// reliable and unreliable bunches go on all the same.
func TestAcksAndKeepAlivesLeaveRoomForBunches(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		protocol        Protocol
		window          int
		tick, trip      time.Duration // trip: one way
		keepAlive       time.Duration
		talk            bool // the peer sends in each tick
		reliable, other int  // bunches a second that arrive at least
	}{
		{Bunchnet(), 16, testTick, 200 * ms, 200 * ms, true, 20, 0},
		{Bunchnet(), 16, testTick, 400 * ms, 10 * ms, false, 10, 0},
		{Bunchnet(), 64, testTick, 750 * ms, 10 * ms, true, 20, 0},
		{Bunchnet(), 256, ms, 200 * ms, ms, false, 300, 0},
		{Unreal53(true), 256, ms, 200 * ms, ms, false, 300, 0},
		{Unreal53(true), 256, ms, 200 * ms, 200 * ms, true, 300, 0},
		{Bunchnet(), 16, testTick, 400 * ms, 10 * ms, false, 0, 10},
	} {
		var got [2]collector
		p := newPair(t, 1, network{delay: test.trip}, func(i int, c *Config) {
			c.Protocol, c.KeepAlive, c.NetSpeed = test.protocol, test.keepAlive, 100_000_000
			c.Protocol.FirstFree, c.Protocol.CloseOnOverflow, c.Protocol.PacketWindow = false, false, test.window
			c.Channels = testTypes(func(*channel.Channel) channel.Handler { return &got[i] })
		})
		step := func() {
			p.now += test.tick - testTick
			p.step()
		}
		ctl, err := p.ends[0].conn.Open(bunch.Control, channel.Nop{})
		require.NoError(t, err)
		_, err = ctl.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
		require.NoError(t, err)
		for p.now < 3*time.Second {
			step()
		}
		var chs [2]*channel.Channel
		for i, e := range p.ends {
			chs[i], err = e.conn.Open(testName, channel.Nop{})
			require.NoError(t, err)
			_, err = chs[i].SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
			require.NoError(t, err)
		}
		came := 0
		for s := range 8 {
			if s == 3 {
				came = len(got[1].got)
			}
			for end := p.now + time.Second; p.now < end; {
				step()
				_, _ = chs[0].SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: test.reliable > 0, NoMerge: true})
				if test.talk {
					_, _ = chs[1].SendBunch(&bunch.Out{Data: []byte{2}, NoMerge: true})
				}
			}
		}
		rate := (len(got[1].got) - came) / 5
		t.Logf("%s, window %d, tick %v, round trip %v, keep-alive %v: %d a second", test.protocol.Name, test.window, test.tick, 2*test.trip, test.keepAlive, rate)
		assert.GreaterOrEqual(t, rate, max(test.reliable, test.other))
		require.Nil(t, p.ends[0].result)
		require.Nil(t, p.ends[1].result)
	}
}
