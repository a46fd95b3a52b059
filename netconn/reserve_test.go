package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	msg "github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestReserve: copies leave twice what is used in a tick on average, or take what they are owed of ticks in which the game left nothing.
func TestReserve(t *testing.T) {
	var r reserve
	require.False(t, r.leaves(0, 0))
	r.used = 1000
	r.tick(time.Second, 200, 0, false)
	require.Equal(t, reserve{bytes: 1600, at: time.Second}, r)
	require.True(t, r.leaves(1650, 50))
	require.False(t, r.leaves(1649, 50))
	r.took(1650, 50)
	require.Zero(t, r.owed)
	r.used = 160
	r.tick(time.Second+reserveTime/2, 0, 0, true)
	require.Equal(t, reserve{bytes: 960, owed: 10, at: time.Second + reserveTime/2}, r)
	require.True(t, r.leaves(1, 10))
	require.False(t, r.leaves(1, 11))
	r.took(969, 10)
	require.Zero(t, r.owed)
	r.tick(3*time.Second, 0, 0, true)
	require.Zero(t, r.bytes)
	r.used = 2 * owedPart * mostOwed
	r.tick(3*time.Second, 0, 0, true)
	require.Equal(t, mostOwed, r.owed)
}

// TestReserveIsForTheGame: what packets with bunches take is the game's, and what acks and keep-alives take isn't.
func TestReserveIsForTheGame(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.Redundancy.Copies = 1 })
	c := h.conns[0]
	h.exchange()
	require.Zero(t, c.reserve.used)
	sent := c.Counters
	c.oweAcks(0)
	c.FlushNet()
	require.Equal(t, sent.PacketsSent+1, c.Counters.PacketsSent)
	require.Zero(t, c.reserve.used)
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, 100)})
	require.NoError(t, err)
	c.FlushNet()
	require.Equal(t, sent.PacketsSent+2, c.Counters.PacketsSent)
	require.InDelta(t, 100+c.cfg.PacketOverhead, c.reserve.used, 20)
}

type copiesSay struct{ Pad []byte }

func (m *copiesSay) Serialize(s *msg.Stream) { s.Bytes(&m.Pad, 200) }

// TestMessagesBesideCopies: ordered messages and a block, which all fit the bandwidth beside reliable bunches, arrive whether these have copies or not.
func TestMessagesBesideCopies(t *testing.T) {
	for speed, need := range map[int]float64{100_000: 35_000, 0: 52_000} {
		for _, copies := range []int{0, 2} {
			var reg msg.Registry
			kind := reg.Add("say", func() msg.Message { return new(copiesSay) })
			queue := func() *msg.Attached { return msg.Attach(msg.New(msg.Config{Kinds: &reg})) }
			to, had := queue(), 0
			in := msg.NewBlocks(msg.BlocksConfig{MaxBytes: 60_000, Received: func(int64, []byte) {}, Progress: func(int64, int, int) { had++ }})
			opened := 0
			l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond, Loss: 2, Bandwidth: 150_000 * 8, QueueDelay: 500 * time.Millisecond}), 3, func(i int, c *Config) {
				if c.NetSpeed = speed; speed == 0 {
					c.Controller, _ = congestion.NewAdaptive(congestion.AdaptiveConfig{})
				}
				c.Redundancy.Copies = copies
				if i == 1 {
					for j := range c.Channels {
						if accept := c.Channels[j].Accept; accept != nil && c.Channels[j].Name != bunch.Control {
							c.Channels[j].Accept = func(ch *channel.Channel) channel.Handler {
								switch opened++; opened {
								case 2:
									return to
								case 3:
									return in
								}
								return accept(ch)
							}
						}
					}
				}
			})
			l.control()
			rel := l.open(0)
			_, err := rel.SendBunch(&bunch.Out{Reliable: true})
			require.NoError(t, err)
			l.run(time.Second, nil)
			from := queue()
			_, err = l.conns[0].Open(testName, from)
			require.NoError(t, err)
			l.run(time.Second, nil)
			block := msg.NewBlocks(msg.BlocksConfig{MaxBytes: 60_000})
			_, err = l.conns[0].Open(testName, block)
			require.NoError(t, err)
			_, err = block.Send(make([]byte, 50_000))
			require.NoError(t, err)
			got, refused, owed := 0, 0, 0.0
			l.run(30*time.Second, func() {
				for owed += need * l.tick.Seconds(); owed >= 120; owed -= 120 {
					_, err := rel.SendBunch(&bunch.Out{Data: make([]byte, 120), Reliable: true, NoMerge: true})
					require.NoError(t, err)
					if from.Send(kind, &copiesSay{Pad: make([]byte, 100)}) != nil {
						refused++
					}
				}
				from.Tick(l.now)
				for m, k := to.Receive(); m != nil; m, k = to.Receive() {
					got++
					k.Free(m)
				}
				to.Tick(l.now)
			})
			require.Greater(t, got, 7000, "NetSpeed %d, %d copies, %d refused", speed, copies, refused)
			require.Equal(t, 56, had, "fragments at NetSpeed %d, %d copies", speed, copies)
		}
	}
}

// TestCopiesLeaveTheGameItsRate: a game of reliable and unreliable bunches, which asks IsNetReady before the latter and needs seven tenths of
// its rate, sends nearly all of it with Redundancy too.
func TestCopiesLeaveTheGameItsRate(t *testing.T) {
	for _, r := range []Redundancy{{}, {Copies: 1}, {Copies: 2}, {Copies: 3}, {Copies: 3, Adaptive: true}} {
		l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond, Loss: 2}), 3, func(_ int, c *Config) {
			c.NetSpeed = 100_000
			c.Redundancy = r
		})
		l.control()
		rel, state := l.open(0), l.open(0)
		for _, ch := range []*channel.Channel{rel, state} {
			_, err := ch.SendBunch(&bunch.Out{Reliable: true})
			require.NoError(t, err)
		}
		l.run(time.Second, nil)
		sent, refused := 0, 0
		need := 0.0
		l.run(30*time.Second, func() {
			for need += 70_000 * l.tick.Seconds(); need >= 240; need -= 240 {
				_, err := rel.SendBunch(&bunch.Out{Data: make([]byte, 120), Reliable: true, NoMerge: true})
				require.NoError(t, err)
				if !l.conns[0].IsNetReady() {
					refused++
					continue
				}
				_, err = state.SendBunch(&bunch.Out{Data: make([]byte, 120), NoMerge: true})
				require.NoError(t, err)
				sent++
			}
		})
		require.Less(t, refused, sent/20, "%+v", r)
	}
}

// TestCopiesBesideBursts: where a game uses a part of its bandwidth, in ticks of which few have much, its reliable bunches have their copies at 5 % loss.
func TestCopiesBesideBursts(t *testing.T) {
	for _, c := range []struct {
		tick     time.Duration
		speed    int // 0: Adaptive
		snapshot int // unreliable bytes ten times a second
	}{{time.Second / 60, 0, 4000}, {time.Second / 60, 100_000, 4000}, {time.Millisecond, 100_000, 0}, {5 * time.Millisecond, 100_000, 1000}} {
		l := newLab(t, both(netsim.Settings{Lag: 50 * time.Millisecond, Loss: 5}), 1, func(_ int, cfg *Config) {
			cfg.Redundancy.Copies = 2
			if cfg.NetSpeed = c.speed; c.speed == 0 {
				cfg.Controller = adapt()
			}
		})
		l.tick, l.fine = c.tick, time.Millisecond
		l.control()
		events, state := l.open(0), l.open(0)
		_, err := state.SendBunch(&bunch.Out{Reliable: true})
		require.NoError(t, err)
		l.run(2*time.Second, nil)
		event, snapshot := l.now, l.now
		l.run(20*time.Second, func() {
			if l.now >= event {
				event += time.Second / 30
				_, err := events.SendBunch(&bunch.Out{Data: labMsg(l.now, 0, 64), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
			if l.now >= snapshot {
				snapshot += time.Second / 10
				for left := c.snapshot; left > 0; left -= 1000 {
					_, err := state.SendBunch(&bunch.Out{Data: make([]byte, 1000)})
					require.NoError(t, err)
				}
			}
		})
		require.Less(t, quant(l.rlat[1], 0.99), 125*time.Millisecond, "%+v", c)
	}
}

// TestCopiesOfASteadyGame: where a game uses half of its bandwidth or more, the same in each tick, its reliable bunches have the copies that fit the rest at 5 % loss.
func TestCopiesOfASteadyGame(t *testing.T) {
	for _, c := range []struct {
		speed int
		tick  time.Duration
		part  float64
	}{{100_000, 5 * time.Millisecond, 0.5}, {50_000, 16 * time.Millisecond, 0.65}, {100_000, 16 * time.Millisecond, 0.85}} {
		l := newLab(t, both(netsim.Settings{Lag: 50 * time.Millisecond, Loss: 5}), 1, func(_ int, cfg *Config) { cfg.Redundancy.Copies, cfg.NetSpeed = 2, c.speed })
		l.tick, l.fine = c.tick, time.Millisecond
		l.control()
		events, state := l.open(0), l.open(0)
		_, err := state.SendBunch(&bunch.Out{Reliable: true})
		require.NoError(t, err)
		l.run(2*time.Second, nil)
		event, last, need := l.now, l.now, 0.0
		l.run(15*time.Second, func() {
			for need += c.part * float64(c.speed) * (l.now - last).Seconds(); need >= 400; need -= 400 {
				_, err := state.SendBunch(&bunch.Out{Data: make([]byte, 390)})
				require.NoError(t, err)
			}
			for last = l.now; l.now >= event; event += time.Second / 30 {
				_, err := events.SendBunch(&bunch.Out{Data: labMsg(l.now, 0, 64), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
		})
		require.Less(t, quant(l.rlat[1], 0.99), 125*time.Millisecond, "%+v: %d copies", c, l.conns[0].Counters.Copies)
	}
}
