package netconn

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// TestAPeerThatNaksEverything costs the controller's rate, is noticed, and ends with a reason of its own.
func TestAPeerThatNaksEverything(t *testing.T) {
	const rate = 100_000
	f := newFlood(t, 1, network{}, func(c *Config) { c.NetSpeed = rate })
	c := f.p.ends[0].conn
	f.send(1)
	f.drain()
	f.p.step()
	for range 250 {
		_, err := f.ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
		require.NoError(t, err)
	}
	bytes := 0
	c.cfg.LowLevelSend = func(p []byte) { bytes += len(p) + c.cfg.PacketOverhead }
	peer := packetnotify.Notify{}
	peer.Init(packetnotify.Config{}, 0, uint16(c.notify.InID()+1))
	began := f.p.now
	for f.p.now-began < 20*time.Second && !c.Closed() {
		f.p.now += testTick
		var buf [64]byte
		var w bitio.Writer
		w.Reset(buf[:])
		h := packetnotify.Header{Seq: uint16(c.notify.InID()+1) & (1<<14 - 1), AckedSeq: uint16(c.notify.OutID()-1) & (1<<14 - 1), Words: 8}
		h.Write(&w)
		w.WriteBool(false)
		w.WriteBool(true)
		_ = c.ReceivedPacket(f.p.now, w.Bytes()) // the last one ends it
		c.Tick(f.p.now)
		require.LessOrEqual(t, float64(bytes), 1.1*rate*(f.p.now-began).Seconds()+0.1*rate)
	}
	require.True(t, c.Closed())
	require.ErrorIs(t, c.Result().Err, errRefuses)
	require.LessOrEqual(t, f.p.now-began, 15*time.Second)
	require.Equal(t, 250, c.Result().Unacked, "and says what never arrived")
}

// TestNarrowLink: a burst over a slow link offers little more than its size, and takes little longer than it must.
func TestNarrowLink(t *testing.T) {
	const bytes, rate = 180_000, 50_000.0
	f := newFlood(t, 1, network{}, func(c *Config) { c.NetSpeed = rate })
	f.send(1)
	f.drain()
	c := f.p.ends[0].conn
	offered := 0
	var busy time.Duration
	lowLevelSend := c.cfg.LowLevelSend
	c.cfg.LowLevelSend = func(p []byte) {
		offered += len(p)
		busy = max(busy, f.p.now)
		if busy-f.p.now > 100*time.Millisecond {
			return // the queue is full
		}
		busy += time.Duration(float64(len(p)+c.cfg.PacketOverhead) / rate * float64(time.Second))
		f.p.net.delay = busy - f.p.now
		lowLevelSend(p)
		f.p.net.delay = 0
	}
	for range 200 {
		_, err := f.ch.SendBunch(&bunch.Out{Data: make([]byte, bytes/200), Reliable: true, NoMerge: true})
		require.NoError(t, err)
	}
	began := f.p.now
	f.any = true
	for c.Table().Unacked() > 0 {
		require.Less(t, f.p.now-began, time.Minute)
		f.p.step()
		f.alive()
	}
	ideal := time.Duration((bytes + 200*40) / rate * float64(time.Second))
	t.Logf("%d bytes offered for %d, %v for %v", offered, bytes, f.p.now-began, ideal)
	require.LessOrEqual(t, float64(offered), 1.3*bytes)
	require.LessOrEqual(t, f.p.now-began, time.Duration(1.15*float64(ideal)))
}

// TestReliableShare: a game that sends more unreliable bunches than the rate allows doesn't starve reliable ones.
func TestReliableShare(t *testing.T) {
	f := newFlood(t, 1, network{}, func(c *Config) { c.NetSpeed = 20_000 })
	f.send(1)
	f.drain()
	ch, err := f.p.ends[0].conn.Open(testName, channel.Nop{})
	require.NoError(t, err)
	f.any = true
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
	require.NoError(t, err)
	for range 60 {
		f.p.step()
	}
	acked := f.p.ends[0].conn.Table().Unacked()
	require.Zero(t, acked)
	begun := f.p.now
	for f.p.now-begun < 20*time.Second {
		for range 5 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 800), NoMerge: true}) // 240 kB/s
			require.NoError(t, err)
		}
		if f.ch.Room() > 200 {
			f.send(1)
		}
		f.p.step()
		f.alive()
	}
	require.Greater(t, f.sent, 400)
	require.Less(t, f.p.ends[0].conn.Table().Unacked(), 100)
}

// TestDarknessTakesNoSequences: in a silence of any length the packets beyond a full window stay fewer than the
// sequences that can be told apart.
func TestDarknessTakesNoSequences(t *testing.T) {
	const waits = time.Hour // while a bunch waits for its ack
	for i, keepAlive := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 200 * time.Millisecond, 5 * time.Second, waits, time.Millisecond, 200 * time.Millisecond, waits} {
		n := maxWindow
		if i >= 5 {
			n = 1024
		}
		c := &Conn{cfg: Config{KeepAlive: keepAlive, Protocol: Protocol{PacketWindow: n}}, channels: new(channel.Machine)}
		if keepAlive == waits {
			c.carrying, keepAlive = 1, awaitedKeepAlive
		}
		for c.now = time.Duration(n) * time.Millisecond; c.now < math.MaxInt64-math.MaxInt64/50; n++ {
			c.sent(int64(n), 0)
			at := c.forceAt()
			require.GreaterOrEqual(t, at, c.now+keepAlive)
			till := maxWaitTill
			if c.cfg.Protocol.PacketWindow > silentWindow {
				till = wideTill
			}
			if silence := at; silence < till {
				require.LessOrEqual(t, at-c.now, max(keepAlive, maxWait))
			}
			c.now = at
			if at > 285*365*24*time.Hour {
				break
			}
		}
		require.Less(t, n+maxForcedAnswers, 8150, "KeepAlive %v", keepAlive)
	}
}

// TestBlackout: both ends come back from a darkness with a full window.
func TestBlackout(t *testing.T) {
	for _, preset := range []Protocol{Bunchnet(), Unreal51(), Unreal53(true)} {
		for _, way := range []int{1, 2, 3} { // bits: which ends aren't heard
			f := newFlood(t, 1, network{}, func(c *Config) { c.Protocol, c.Timeout, c.KeepAlive = preset, -1, 10*time.Millisecond })
			f.send(1)
			f.drain()
			dark := f.p.now + 700*time.Second
			for f.p.now < dark {
				for i, e := range f.p.ends {
					if way>>i&1 != 0 {
						e.flying = e.flying[:0]
					}
				}
				f.send(1)
				f.p.step()
				f.alive()
			}
			for _, e := range f.p.ends {
				e.flying = e.flying[:0]
			}
			back := f.p.now
			f.drain()
			require.LessOrEqual(t, f.p.now-back, 10*time.Second, "%s, dark %b", preset.Name, way)
		}
	}
}

// TestAcksBeforeTheyFallOut: many packets in one dispatch are all acked, as their acks go out before they fall out of
// the history.
func TestAcksBeforeTheyFallOut(t *testing.T) {
	f := newFlood(t, 1, network{}, func(c *Config) {
		c.Protocol = Bunchnet()
		c.NetSpeed, c.AckDelay = 100_000_000, 25*time.Millisecond
	})
	f.send(1)
	f.drain()
	for range 60 {
		f.p.step() // the open is acked
	}
	f.any = true
	c := f.p.ends[0].conn
	before := c.Counters
	for range 1000 {
		_, err := f.ch.SendBunch(&bunch.Out{Data: make([]byte, 900), NoMerge: true})
		require.NoError(t, err)
	}
	for range 60 {
		f.p.step()
	}
	require.GreaterOrEqual(t, c.Counters.PacketsAcked-before.PacketsAcked, uint64(1000))
	require.Equal(t, before.PacketsLost, c.Counters.PacketsLost)
}

// TestSkippedSequence: an honest peer takes a sequence that was left out for lost, and nothing else is.
func TestSkippedSequence(t *testing.T) {
	f := newFlood(t, 1, network{}, func(c *Config) { c.Secret = 7 })
	c := f.p.ends[0].conn
	for f.sent < 5000 {
		f.send(1)
		f.p.step()
		f.alive()
	}
	f.drain()
	require.Zero(t, c.Counters.PacketsLost)
	require.Greater(t, f.p.ends[1].conn.Counters.PacketsMissed, uint64(1))
	g := newFlood(t, 1, network{}, func(c *Config) { c.Secret, c.Protocol = 7, Unreal51() })
	require.Zero(t, g.p.ends[0].conn.skip.state, "never with Unreal's own")
}

// TestAckOfSkippedIsNoticed acks a sequence that no packet has.
func TestAckOfSkippedIsNoticed(t *testing.T) {
	f := newFlood(t, 1, network{}, nil)
	c := f.p.ends[0].conn
	f.send(1)
	f.drain()
	id := c.notify.Skip()
	c.sentNothing(id)
	lost, first := c.Counters.PacketsLost, c.sentPackets.first
	(*fates)(c).PacketLost(id)
	require.Equal(t, lost, c.Counters.PacketsLost, "it isn't a loss of the path")
	require.False(t, c.skip.acked)
	require.Equal(t, first+1, c.sentPackets.first, "its fate is known")
	id = c.notify.Skip()
	c.sentNothing(id)
	(*fates)(c).PacketAcked(id)
	require.True(t, c.skip.acked)
	f.send(1)
	f.p.step()
	f.p.step()
	f.p.step()
	require.ErrorIs(t, c.Result().Err, errOptimistic)
	require.Equal(t, PeerBroke, c.Result().Code)
}

// TestHalfAProtocol: a few fields without a preset are no wire format. One with a name keeps its settings.
func TestHalfAProtocol(t *testing.T) {
	p := Protocol{PacketWindow: 512, ReliableBuffer: 128}
	_, err := New(Config{Protocol: p, LowLevelSend: func([]byte) {}}, 0, 1, 1)
	require.ErrorIs(t, err, ErrConfig)
	p.Name = "mine"
	c, err := New(Config{Protocol: p, LowLevelSend: func([]byte) {}}, 0, 1, 1)
	require.NoError(t, err)
	require.Equal(t, 512, c.cfg.Protocol.PacketWindow)
	require.Equal(t, 128, c.cfg.Protocol.ReliableBuffer)
}

// TestImpossibleSettings are told where they are given.
func TestImpossibleSettings(t *testing.T) {
	for name, edit := range map[string]func(*Config){
		"KeepAlive":     func(c *Config) { c.KeepAlive = -1 },
		"LingerTimeout": func(c *Config) { c.LingerTimeout = -1 },
		"AckDelay":      func(c *Config) { c.AckDelay = -1 },
		"OrderCache":    func(c *Config) { c.OrderCache = 512 },
		"PacketWindow":  func(c *Config) { c.Protocol = Bunchnet(); c.Protocol.PacketWindow = 8192 },
		"MaxMemory":     func(c *Config) { c.MaxMemory = 1 },
		"NetSpeed":      func(c *Config) { c.NetSpeed = -1 },
		"Name":          func(c *Config) { c.Channels = []channel.Type{{Name: bunch.Name{Text: string(make([]byte, 70))}}} },
		"index 0":       func(c *Config) { c.Channels = []channel.Type{{Name: testName, Static: true}} },
	} {
		cfg := Config{LowLevelSend: func([]byte) {}}
		edit(&cfg)
		_, err := New(cfg, 0, 1, 1)
		require.Error(t, err, name)
	}
}

// TestShareOfTheRate: what doesn't ask the controller gives reliable bunches as much as it took beyond the budget, up to a quarter of the
// rate and a packet, until the next tick; a hitch counts as a second.
func TestShareOfTheRate(t *testing.T) {
	c, err := New(Config{NetSpeed: 2000, LowLevelSend: func([]byte) {}}, 0, 7, 9)
	require.NoError(t, err)
	p := &c.pace
	for _, step := range []struct {
		after     time.Duration
		overdrawn float64
		share     float64
	}{
		{100 * time.Millisecond, 1e6, 50},
		{100 * time.Millisecond, 20, 70},
		{100 * time.Millisecond, 0, 0},
		{10 * time.Second, 1e6, 500},
		{10 * time.Second, 1e6, 1000},
		{10 * time.Second, 1e6, float64(c.proto.PacketBits() / 8)},
	} {
		p.wrote(false, int(step.overdrawn))
		c.now += step.after
		p.tick(c)
		require.Equal(t, step.share, p.share)
		require.Zero(t, p.overdrawn)
	}
	p.wrote(true, 24)
	require.Equal(t, float64(c.proto.PacketBits()/8-24), p.share)
	p.wrote(true, c.proto.PacketBits()/8)
	require.Equal(t, -24.0, p.share, "a whole packet may leave")
	for _, share := range []float64{-19, -14, -9, -4, 0} { // at a quarter of the rate
		c.now += 10 * time.Millisecond
		p.tick(c)
		require.Equal(t, share, p.share)
	}
	p.wrote(true, 24)
	require.Equal(t, []float64{0, 24}, []float64{p.share, p.overdrawn}, "one that has no share rides with others, and counts as they do")
	p.overdrawn = 0

	p.empty(c)
	require.Zero(t, p.overdrawn, "within the budget")
	c.cfg.Controller.OnSent(c.now, 0, 1e6)
	p.empty(c)
	require.Equal(t, 28.0+16, p.overdrawn)
}

// TestBudgetCountsThePacketAtHand: what is written and hasn't left counts already.
func TestBudgetCountsThePacketAtHand(t *testing.T) {
	f := newFlood(t, 1, network{}, nil)
	f.send(1)
	f.drain()
	c := f.p.ends[0].conn
	before := c.Budget()
	_, err := f.ch.SendBunch(&bunch.Out{Data: make([]byte, 500)})
	require.NoError(t, err)
	require.InDelta(t, before-500, c.Budget(), 30)
}

// TestPacketsWithBunchesInFlight: without acks, PacketWindow less 4 packets with bunches leave, the one at hand included; but when no ack
// comes for a second no more than 1020.
func TestPacketsWithBunchesInFlight(t *testing.T) {
	for _, window := range []int{16, 256, 1024, 4096} {
		for _, tick := range []time.Duration{100 * time.Microsecond, testTick} {
			f := newFlood(t, 1, network{}, func(c *Config) {
				c.Protocol = Bunchnet()
				c.Protocol.PacketWindow, c.KeepAlive, c.Timeout = window, time.Hour, -1
			})
			f.send(1)
			f.drain()
			c := f.p.ends[0].conn
			var err error
			for range window + 10 {
				for range 3 {
					_, err = f.ch.SendBunch(&bunch.Out{Data: make([]byte, 400)})
				}
				f.p.now += tick
				c.Tick(f.p.now)
			}
			require.ErrorIs(t, err, channel.ErrNotSent)
			want := window - 4
			if tick == testTick {
				want = min(want, 1020)
			}
			require.Equal(t, want, c.carrying)
		}
	}
}

// TestWindowIsWideAgain: after a silence the window is as wide as before when acks come.
func TestWindowIsWideAgain(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 100 * time.Millisecond}), 1, func(_ int, c *Config) { c.NetSpeed = 1e9 })
	l.tick = time.Millisecond
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	most := 0
	fill := func() {
		for range 30 {
			if ch.Room() == 0 {
				break
			}
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		most = max(most, l.conns[0].notify.Outstanding())
	}
	l.dark[1] = true
	l.run(5*time.Second, nil)
	l.run(5*time.Second, func() { fill() })
	require.LessOrEqual(t, most, 1060, "and keep-alives")
	l.dark[1] = false
	l.run(2*time.Second, func() { fill() })
	require.Equal(t, maxWindow-windowMargin, most)
}

// TestPacketsCountAgainstMaxMemory: what isn't acked, and what remembers the packets in flight, take half of MaxMemory at most.
func TestPacketsCountAgainstMaxMemory(t *testing.T) {
	for _, most := range []int{256 << 10, 1 << 20, 8 << 20} {
		l := newLab(t, both(netsim.Settings{}), 1, func(_ int, c *Config) { c.MaxMemory, c.NetSpeed = most, 1e9 })
		l.tick = 100 * time.Microsecond
		l.control()
		l.run(time.Second, nil)
		c := l.conns[0]
		l.dark[1] = true
		var chs []*channel.Channel
		for range 64 {
			chs = append(chs, l.open(0))
		}
		l.run(500*time.Millisecond, func() {
			for _, ch := range chs {
				if c.Table().Waiting() == 0 {
					_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 1), Reliable: true, NoMerge: true}) // until it is full
				}
			}
			_, _ = chs[0].SendBunch(&bunch.Out{Data: make([]byte, 900)}) // until the window is
			c.FlushNet()
		})
		s := &c.sentPackets
		rings := cap(s.packets) * int(unsafe.Sizeof(sentPacket{})+8)
		require.LessOrEqual(t, c.Table().Held()+rings, most/2, "MaxMemory %d", most)
		require.Greater(t, c.Table().Held()+rings, most*3/8, "MaxMemory %d", most)
	}
}

// TestNotesAreBounded: what remembers the bunches in flight is an eighth of MaxMemory at most, of however many unreliable ones and copies a peer acks nothing;
// when it is heard again, all goes on.
func TestNotesAreBounded(t *testing.T) {
	for _, unreliable := range []int{0, 200} {
		const most = 256 << 10
		l := newLab(t, both(netsim.Settings{}), 1, func(i int, c *Config) {
			c.NetSpeed, c.KeepAlive, c.Redundancy = 1e9, 10*time.Millisecond, Redundancy{Copies: 16}
			if i == 0 {
				c.MaxMemory = most
			}
		})
		l.join()
		var chs []*channel.Channel
		for range 200 {
			l.step(nil)
			ch := l.open(0)
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 1), Reliable: true})
			require.NoError(t, err)
			chs = append(chs, ch)
		}
		l.run(2*time.Second, nil)
		c := l.conns[0]
		require.Zero(t, c.Table().Unacked())
		l.dark[1] = true
		sent, refused := 0, 0
		game := func() {
			for _, ch := range chs[:unreliable] {
				if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 1)}); err == nil {
					sent++
				} else {
					require.ErrorIs(t, err, channel.ErrNotSent)
					refused++
				}
			}
			if c.Table().Waiting() == 0 {
				for range 20 {
					_, _ = chs[0].SendBunch(&bunch.Out{Data: make([]byte, 1), Reliable: true, NoMerge: true})
				}
			}
			require.LessOrEqual(t, len(c.notes)*int(unsafe.Sizeof(note{})), most/8)
		}
		l.run(10*time.Second, game)
		t.Logf("%d sent, %d refused, %d notes", sent, refused, c.noteTail-c.noteHead)
		require.Greater(t, int(c.noteTail-c.noteHead), len(c.notes)*3/4, "most of that is used")
		require.Greater(t, 2*len(c.notes)*int(unsafe.Sizeof(note{})), most/8)
		require.Equal(t, unreliable > 0, refused > 0)
		l.dark[1] = false
		l.run(2*time.Second, nil)
		require.Zero(t, c.Table().Unacked())
		sent, refused = 0, 0
		game()
		require.Zero(t, refused)
	}
}

// TestNothingIsTakenWithinTheBudget: unreliable bunches within the budget take nothing of the share of reliable ones, unless one of these waits.
func TestNothingIsTakenWithinTheBudget(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.NetSpeed = 1_000_000 })
	c := h.conns[0]
	say := func(reliable bool) {
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, 500), Reliable: reliable, NoMerge: true})
		require.NoError(t, err)
	}
	say(false)
	require.True(t, c.IsNetReady())
	require.Zero(t, c.pace.overdrawn)
	c.cfg.Controller.OnSent(h.now, 0, 1_000_000)
	say(true)
	require.Equal(t, 1, c.Table().Waiting())
	require.Zero(t, c.pace.overdrawn)
	c.cfg.Controller.OnSent(h.now, 0, -2_000_000)
	require.True(t, c.IsNetReady())
	say(false)
	require.Greater(t, c.pace.overdrawn, 500.0)
}
