package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestNothingComesBetweenTheParts: on a perfect path all unreliable payloads of several packets arrive, whatever else there is to send: copies
// that have no room, symbols, and sequences that are left out.
func TestNothingComesBetweenTheParts(t *testing.T) {
	for name, edit := range map[string]func(c *Config){
		"alone":              func(c *Config) { c.Secret = 0 },
		"left-out sequences": func(*Config) {},
		"two copies":         func(c *Config) { c.Redundancy.Copies = 2 },
		"sixteen copies":     func(c *Config) { c.Redundancy.Copies = 16 },
		"symbols":            func(c *Config) { c.Coding.Repairs = 3 },
		"copies and symbols": func(c *Config) { c.Redundancy.Copies, c.Coding.Repairs = 2, 1 },
		"small packets": func(c *Config) {
			c.Protocol, c.Redundancy.Copies, c.Coding.Repairs = Bunchnet(), 1, 1
			c.Protocol.Bunch.MaxPacket = 256
		},
	} {
		for _, before := range []bool{true, false} {
			l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 3, func(_ int, c *Config) {
				c.NetSpeed, c.Secret = 20_000_000, 77
				edit(c)
			})
			l.control()
			ch, small := l.open(0), l.open(0)
			for _, ch := range []*channel.Channel{ch, small} {
				_, err := ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
				require.NoError(t, err)
			}
			l.run(time.Second, nil)
			sent, size := 0, 7*l.conns[0].FreeBits()/16 // four packets
			say := func() {
				_, err := ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 1, size)})
				require.NoError(t, err)
				sent++
			}
			l.run(40*time.Second, func() {
				if before {
					say()
				}
				for range 10 {
					_, err := small.SendBunch(&bunch.Out{Data: make([]byte, 30), Reliable: true})
					require.NoError(t, err)
				}
				if !before {
					say()
				}
			})
			l.run(time.Second, nil)
			require.Equal(t, sent, len(l.lat[1]), "%s, before the small ones %v", name, before)
			require.Zero(t, l.conns[0].Counters.PacketsLost, name)
			require.Equal(t, l.conns[0].cfg.Redundancy.Copies > 0, l.conns[0].Counters.Copies > 0)
			require.Equal(t, l.conns[0].cfg.Coding.Repairs > 0, l.conns[0].Counters.Repairs > 0)
		}
	}
}

// TestAcksWaitForTheLastPart: acks without room in the header of a begun packet leave behind the last part.
func TestAcksWaitForTheLastPart(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.NetSpeed = 10_000_000 })
	c := h.conns[0]
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("begins a packet")})
	require.NoError(t, err)
	for range 40 {
		h.give(1, h.packet(1, true))
	}
	require.Empty(t, h.sent[0], "the packet is still open")
	before := c.Counters
	_, err = h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, 1500)})
	require.NoError(t, err)
	require.Equal(t, 1, len(h.sent[0]), "the first part fits")
	require.Equal(t, before.AckOnly, c.Counters.AckOnly)
	h.tick(0)
	require.Equal(t, 2, len(h.sent[0]), "the second part's packet has the acks")
	h.deliver(0)
	require.Zero(t, h.conns[1].Table().Counters.Refused)
	require.Zero(t, h.conns[1].notify.Outstanding())
}
