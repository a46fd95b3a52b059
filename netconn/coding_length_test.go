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

// usualLab is a client that sends a bunch of 64 bytes a tick, for two seconds.
func usualLab(t *testing.T, edit func(i int, c *Config)) (l *lab, ch *channel.Channel) {
	l = newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 1, edit)
	l.control()
	ch = l.open(0)
	l.run(2*time.Second, func() { l.say(ch, 64, false) })
	return l, ch
}

func (l *lab) say(ch *channel.Channel, size int, noMerge bool) {
	_, err := ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 1, size), Reliable: true, NoMerge: noMerge})
	require.NoError(l.t, err)
}

// packetsOf is how many packets the client sends of what is written in one tick, and the longest of them, without its symbols.
func (l *lab) packetsOf(write func()) (packets, longest int) {
	l.lose[0] = func(p []byte) bool {
		packets, longest = packets+1, max(longest, len(plain(l.t, p)))
		return false
	}
	l.step(write)
	l.lose[0] = nil
	return packets, longest
}

// TestLongTicksLeaveInSeveralPackets: with coding, what is longer than a tick's usual content, whether its bunches are merged or not, and in five packets at most.
func TestLongTicksLeaveInSeveralPackets(t *testing.T) {
	for _, noMerge := range []bool{false, true} {
		for bunches, want := range map[int]int{1: 1, 2: 2, 5: 5, 9: 1 + mostEnded} {
			l, ch := usualLab(t, func(_ int, c *Config) { c.Coding.Repairs, c.NetSpeed = 1, 10_000_000 })
			for range 2 {
				packets, longest := l.packetsOf(func() {
					for range bunches {
						l.say(ch, 64, noMerge)
					}
				})
				require.Equal(t, want, packets, "%d bunches", bunches)
				if bunches <= 1+mostEnded {
					require.Less(t, longest, 64+40)
				}
				l.run(2*time.Second, func() { l.say(ch, 64, false) })
			}
			require.Zero(t, l.conns[0].Counters.PacketsLost)
		}
	}
}

// TestUsualLengthFollows: a game that sends five times as much from now on has packets of that length again within four times lengthTicks.
func TestUsualLengthFollows(t *testing.T) {
	l, ch := usualLab(t, func(_ int, c *Config) { c.Coding.Repairs, c.NetSpeed = 1, 10_000_000 })
	more := func() {
		for range 5 {
			l.say(ch, 64, true)
		}
	}
	for i := 0; ; i++ {
		if packets, _ := l.packetsOf(more); packets == 1 {
			break
		}
		require.Less(t, i, 4*lengthTicks)
	}
	var usual lengths
	usual.sent(time.Second, 100)
	for i := range time.Duration(50) {
		usual.tick(2*time.Second + i)
	}
	require.EqualValues(t, 100, usual.usual, "ticks without bunches don't count")
}

// TestUsualLengthIsOfCoding: without symbols a tick's bunches leave in one packet.
func TestUsualLengthIsOfCoding(t *testing.T) {
	for name, edit := range map[string]func(i int, c *Config){
		"off":             func(int, *Config) {},
		"a clean path":    func(_ int, c *Config) { c.Coding = Coding{Repairs: 2, Adaptive: true} },
		"one end without": func(i int, c *Config) { c.Coding.Repairs = float64(1 - i) },
	} {
		l, ch := usualLab(t, func(i int, c *Config) {
			edit(i, c)
			c.NetSpeed = 10_000_000
		})
		packets, _ := l.packetsOf(func() {
			for range 5 {
				l.say(ch, 64, true)
			}
		})
		require.Equal(t, 1, packets, name)
	}
}

// TestNewChannelsStayTogether: an unreliable bunch leaves in one packet with the open of its channel, as the peer would refuse it otherwise.
func TestNewChannelsStayTogether(t *testing.T) {
	l, _ := usualLab(t, func(_ int, c *Config) { c.Coding.Repairs, c.NetSpeed = 1, 10_000_000 })
	refused := l.conns[1].Counters.Refused
	rng := rand.New(rand.NewPCG(1, 1))
	l.lose[0] = func([]byte) bool { return rng.IntN(3) == 0 }
	l.run(time.Second, func() {
		ch := l.open(0)
		l.say(ch, 64, false)
		_, err := ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 1, 64)})
		require.NoError(t, err)
	})
	require.Equal(t, refused, l.conns[1].Counters.Refused)
}

// TestWhatIsntEndedEarly: where symbols don't ride, losses come in bursts, or the budget or the window has no packet more, nor parts.
func TestWhatIsntEndedEarly(t *testing.T) {
	h := codingHand(t)
	for range 2 * lengthTicks {
		h.give(0, h.packet(0, true))
		h.exchange()
	}
	c := h.conns[0]
	gate := h.shut(h.now + time.Second)
	gate.budget = 1 << 20
	for name, no := range map[string]func(c *Conn){
		"a packet that isn't begun": func(c *Conn) { c.out.Truncate(c.contentPos) },
		"a peer without coding":     func(c *Conn) { c.coder.peer = false },
		"no symbols":                func(c *Conn) { c.coder.cfg.Repairs = 0 },
		"bursts":                    func(c *Conn) { c.rates.afterLoss = 1 },
		"no budget":                 func(*Conn) { gate.budget = 0 },
		"no window":                 func(c *Conn) { c.cfg.Protocol.PacketWindow = windowMargin },
	} {
		c.startPacket()
		c.out.Truncate(c.contentPos)
		c.out.WriteBits(1, 40)
		require.True(t, c.tooLong(8*64))
		was, coder := *c, *c.coder
		no(c)
		require.False(t, c.tooLong(8*64), name)
		*c, *c.coder = was, coder
		gate.budget = 1 << 20
	}
	long := bunch.Header{Bits: 8 * 64}
	long.Partial = true
	require.False(t, c.endLong(&long, h.chs[0]))
	long.Partial = false
	require.True(t, c.endLong(&long, h.chs[0]))
}
