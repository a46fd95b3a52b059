package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// flood keeps a reliable channel busy and checks what arrives: once, in order, intact.
type flood struct {
	channel.Nop
	t        *testing.T
	p        *pair
	ch       *channel.Channel
	sent     int
	received int
	any      bool // what comes isn't the flood's
}

func newFlood(t *testing.T, seed uint64, net network, edit func(c *Config)) *flood {
	f := &flood{t: t}
	f.p = newPair(t, seed, net, func(_ int, c *Config) {
		c.Channels = testTypes(func(*channel.Channel) channel.Handler { return f })
		if edit != nil {
			edit(c)
		}
	})
	ch, err := f.p.ends[0].conn.Open(bunch.Control, f)
	require.NoError(t, err)
	f.ch = ch
	t.Logf("seed %d", seed)
	return f
}

func (f *flood) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if f.any {
		return
	}
	b := make([]byte, in.Bits/8)
	in.Data.ReadBytes(b)
	require.Equal(f.t, message(f.received, 8), b)
	f.received++
}

func (f *flood) send(n int) {
	for range n {
		if f.ch.Room() == 0 {
			return
		}
		_, err := f.ch.SendBunch(&bunch.Out{Data: message(f.sent, 8), Reliable: true, NoMerge: true})
		require.NoError(f.t, err)
		f.sent++
	}
}

func (f *flood) alive() {
	f.t.Helper()
	require.Nil(f.t, f.p.ends[0].result)
	require.Nil(f.t, f.p.ends[1].result)
}

func (f *flood) drain() {
	f.t.Helper()
	for i := 0; f.received < f.sent; i++ {
		require.Less(f.t, i, 60*60, "%d of %d arrived; %+v", f.received, f.sent, f.p.ends[0].conn.Stats())
		f.p.step()
		f.alive()
	}
}

// TestSequencesWrap goes around the 14 bits of packets and the 10 of ChSequences more than twice.
func TestSequencesWrap(t *testing.T) {
	f := newFlood(t, 3, network{loss: 0.05, delay: 10 * time.Millisecond, jitter: 10 * time.Millisecond}, nil)
	for f.p.ends[0].conn.Counters.PacketsSent < 2*16384+100 {
		f.send(1)
		f.p.step()
		f.alive()
	}
	require.Greater(t, f.sent, 2*1024)
	f.drain()
}

// TestMinuteOf99PercentLoss recovers without a lost or doubled reliable bunch.
func TestMinuteOf99PercentLoss(t *testing.T) {
	for _, red := range []Redundancy{{}, {Copies: 3, Adaptive: true}} {
		for seed := range uint64(3) {
			f := newFlood(t, seed, network{delay: 20 * time.Millisecond}, func(c *Config) { c.Redundancy = red; c.Timeout = 2 * time.Minute })
			for range 60 {
				f.send(2)
				f.p.step()
			}
			f.p.net.loss = 0.99
			for range 60 * 60 {
				f.send(2)
				f.p.step()
				f.alive()
			}
			f.p.net.loss = 0
			f.drain()
			for range 600 {
				f.send(1)
				f.p.step()
			}
			f.drain()
		}
	}
}

func TestTimeoutAndKeepAlive(t *testing.T) {
	f := newFlood(t, 1, network{}, func(c *Config) { c.Timeout = time.Second })
	f.send(1)
	for range 60 * 5 {
		f.p.step()
	}
	f.alive() // keep-alives
	require.NotZero(t, f.p.ends[0].conn.Counters.KeepAlives)
	f.p.net.loss = 1
	f.send(3)
	for range 70 {
		f.p.step()
	}
	r := f.p.ends[0].result
	require.NotNil(t, r)
	require.Equal(t, TimedOut, r.Code)
	require.Equal(t, 3, r.Unacked)
	require.GreaterOrEqual(t, r.Silence, time.Second)
}

func TestCloseBothWays(t *testing.T) {
	for closer := range 2 {
		f := newFlood(t, 1, network{loss: 0.2}, nil)
		f.send(5)
		f.drain()
		f.p.ends[closer].conn.Close(f.p.now, "done")
		for range 120 {
			f.p.step()
		}
		require.Equal(t, ClosedByUs, f.p.ends[closer].result.Code)
		require.Equal(t, "done", f.p.ends[closer].result.Reason)
		require.Equal(t, ClosedByPeer, f.p.ends[1-closer].result.Code)
		require.ErrorIs(t, f.p.ends[closer].conn.ReceivedPacket(f.p.now, []byte{1}), ErrClosed)
	}
}

func TestSaturation(t *testing.T) {
	f := newFlood(t, 1, network{}, func(c *Config) { c.NetSpeed = 10_000 })
	f.send(1)
	f.p.step()
	for range 30 {
		f.p.step()
	}
	c := f.p.ends[0].conn
	require.True(t, c.IsNetReady())
	for range 5 {
		_, err := f.ch.SendBunch(&bunch.Out{Data: make([]byte, 900), NoMerge: true})
		require.NoError(t, err)
	}
	f.received = -1000 // those are no messages of the flood's
	require.False(t, c.IsNetReady(), "4500 bytes at 10 kB/s are 450 ms ahead")
}

func TestRTTAndLossFigures(t *testing.T) {
	f := newFlood(t, 1, network{loss: 0.1, delay: 50 * time.Millisecond}, nil)
	for range 60 * 20 {
		f.send(1)
		f.p.step()
	}
	s := f.p.ends[0].conn.Stats()
	require.InDelta(t, 120, s.RTT.Milliseconds(), 40)
	require.InDelta(t, 0.1, float64(s.Packets.PacketsLost)/float64(s.Packets.PacketsLost+s.Packets.PacketsAcked), 0.04)
	require.Greater(t, s.Rates.OutBytes, 500.0)
	f.drain()
}

// TestOrderCache delivers packets that are only out of order without a single resend.
func TestOrderCache(t *testing.T) {
	f := newFlood(t, 5, network{delay: 20 * time.Millisecond, jitter: 2 * testTick}, func(c *Config) { c.ReorderWindow = 3 * testTick })
	for range 600 {
		f.send(1)
		f.p.step()
	}
	f.drain()
	s := f.p.ends[1].conn.Stats()
	require.NotZero(t, s.Packets.Cached)
	require.Less(t, f.p.ends[0].conn.Table().Counters.Resent, uint64(30))
}

type nullHandler struct {
	channel.Nop
	n int
}

func (h *nullHandler) ReceivedBunch(*channel.Channel, *bunch.In) { h.n++ }

// TestAllocsSteadyState sends and receives without allocating.
func TestAllocsSteadyState(t *testing.T) {
	for _, size := range []int{100, 1000} {
		for _, reliable := range []bool{false, true} {
			var conns [2]*Conn
			h := &nullHandler{}
			for i := range conns {
				peer := &conns[1-i]
				c, err := New(Config{Server: i == 1, Channels: testTypes(func(*channel.Channel) channel.Handler { return h }),
					LowLevelSend: func(p []byte) {
						if err := (*peer).ReceivedPacket((*peer).Now(), p); err != nil {
							t.Error(err)
						}
					}}, 0, [2]uint16{9, 7}[i], [2]uint16{7, 9}[i])
				require.NoError(t, err)
				conns[i] = c
			}
			ch, err := conns[0].Open(bunch.Control, h)
			require.NoError(t, err)
			open := bunch.Out{Data: []byte{1}, Reliable: true}
			_, err = ch.SendBunch(&open)
			require.NoError(t, err)
			out := bunch.Out{Data: make([]byte, size), Reliable: reliable}
			now := time.Duration(0)
			step := func() {
				now += testTick
				if _, err := ch.SendBunch(&out); err != nil {
					t.Fatalf("%v: %d bytes, reliable %v: %+v, %+v", err, size, reliable, conns[0].Stats(), conns[1].Stats())
				}
				conns[0].Tick(now)
				conns[1].Tick(now)
			}
			for range 600 {
				step()
			}
			require.Zero(t, testing.AllocsPerRun(300, step), "%d bytes, reliable %v", size, reliable)
			require.Greater(t, h.n, 800)
		}
	}
}

// TestOversizedPacket: a packet larger than those that an end takes is refused before anything, whether it would be held back or not.
func TestOversizedPacket(t *testing.T) {
	f := newFlood(t, 1, network{}, nil)
	f.send(1)
	f.drain()
	server := f.p.ends[1].conn
	server.enableOrderCache()
	f.send(2)
	f.p.now += testTick
	f.p.ends[0].conn.Tick(f.p.now)
	for _, size := range []int{1501, 9000, 65535} {
		p := make([]byte, size)
		copy(p, f.p.ends[0].flying[0].data)
		p[size-1] = 1
		require.ErrorIs(t, server.ReceivedPacket(f.p.now, p), ErrPacket)
	}
	f.drain()
}
