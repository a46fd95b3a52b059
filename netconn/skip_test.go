package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// TestSkipIsSplitmix64: the first values of the generator are those that others publish for the seed 1234567.
func TestSkipIsSplitmix64(t *testing.T) {
	var s skip
	s.init(1234567)
	for _, v := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		require.Equal(t, minSkip+int(v%skipRange), s.left)
		s.choose()
	}
	s.state -= s.state + 0x9e3779b97f4a7c15
	s.choose()
	require.NotZero(t, s.state, "0 would leave out none")
	s.init(0)
	require.Zero(t, s.state)
}

// TestLeftOutSequenceIsTraced: after the packet that was the last before it.
func TestLeftOutSequenceIsTraced(t *testing.T) {
	var r recording
	h := newHand(t, func(_ int, c *Config) { c.Secret, c.Trace = 5, &r })
	c := h.conns[0]
	r, c.skip.left = recording{}, 1
	h.packet(0, false)
	require.Equal(t, []nettrace.Event{{At: h.now, Kind: nettrace.SequenceSkipped, PacketID: c.notify.OutID() - 1}}, r.of(nettrace.SequenceSkipped))
}

// TestNothingIsLeftOutOfAFullWindow: a left-out sequence takes a place in the window, so it waits until there is one.
func TestNothingIsLeftOutOfAFullWindow(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) {
		c.Protocol = Bunchnet()
		c.Protocol.PacketWindow, c.NetSpeed, c.Secret = 256, 10_000_000, 5
	})
	c := h.conns[0]
	for c.notify.Outstanding() < 256-windowMargin-1 {
		h.packet(0, true)
	}
	c.skip.left = 1
	next := c.notify.OutID()
	p := h.packet(0, true)
	require.True(t, c.windowFull())
	require.Equal(t, next+1, c.notify.OutID())
	require.Zero(t, c.skip.left)
	h.give(0, p)
	h.conns[1].FlushWritten(h.now)
	h.deliver(1)
	h.packet(0, false)
	require.Positive(t, c.skip.left, "another one has been chosen")
}

// TestSequencesAreLeftOutOfASmallWindow: also where it is always full.
func TestSequencesAreLeftOutOfASmallWindow(t *testing.T) {
	var r recording
	w := newWide(t, netsim.Settings{Lag: 150 * time.Millisecond}, 1, func(_ int, c *Config) {
		c.Protocol = Bunchnet()
		c.Protocol.PacketWindow, c.Secret, c.Trace = 64, 5, &r
	})
	w.tick = 5 * time.Millisecond
	there, back := w.bulk(), w.talkers(bunch.Out{Data: make([]byte, 500), Reliable: true}, 0)
	talk := func() { there(); back() }
	w.run(2*time.Second, talk)
	w.conns[0].skip.left = 1
	w.run(time.Second, talk)
	require.NotEmpty(t, r.of(nettrace.SequenceSkipped))
}
