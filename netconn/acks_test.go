package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// TestAckDelay sends both ways, a few milliseconds apart: delayed acks ride with what is sent
// anyway, and the news of a loss doesn't wait.
func TestAckDelay(t *testing.T) {
	for _, delay := range []time.Duration{0, 2 * testTick} {
		f := newFlood(t, 1, network{}, func(c *Config) { c.AckDelay = delay })
		f.send(1)
		for range 100 {
			f.send(1)
			f.p.step()
			f.p.step()
		}
		empty := f.p.ends[1].conn.Counters.AckOnly
		f.p.ends[0].flying = nil
		f.p.net.loss = 1
		f.send(1)
		f.p.step()
		f.p.net.loss = 0
		f.send(1)
		f.p.step()
		before := f.p.ends[1].conn.Counters.AckOnly
		f.p.step()
		require.Equal(t, before+1, f.p.ends[1].conn.Counters.AckOnly, "of the loss at once")
		if delay == 0 {
			require.Greater(t, empty, uint64(90), "one a packet")
		} else {
			require.Less(t, empty, uint64(60), "one for two")
		}
	}
}

// TestNextDeadlineOfAcks is when the delayed acks are due.
func TestNextDeadlineOfAcks(t *testing.T) {
	f := newFlood(t, 1, network{}, func(c *Config) { c.AckDelay = 30 * time.Millisecond })
	f.send(1)
	f.p.step()
	f.p.step()
	at, ok := f.p.ends[1].conn.NextDeadline()
	require.True(t, ok)
	require.Equal(t, f.p.now+30*time.Millisecond, at)
	require.Zero(t, f.p.ends[1].conn.Counters.AckOnly)
	f.p.ends[1].conn.Tick(at)
	require.EqualValues(t, 1, f.p.ends[1].conn.Counters.AckOnly)
}

// TestFlushWritten sends bunches at once, and nothing when there are none.
func TestFlushWritten(t *testing.T) {
	f := newFlood(t, 1, network{}, nil)
	c := f.p.ends[0].conn
	c.FlushWritten(time.Millisecond)
	require.Zero(t, c.Counters.PacketsSent)
	_, err := f.ch.SendBunch(&bunch.Out{Data: message(0, 8), Reliable: true})
	require.NoError(t, err)
	c.FlushWritten(2 * time.Millisecond)
	require.EqualValues(t, 1, c.Counters.PacketsSent)
}

// TestManyAcksAreDue: acks don't wait for AckDelay once 16 packets are owed one, or half of the window.
func TestManyAcksAreDue(t *testing.T) {
	for _, v := range []struct{ window, due int }{{256, 16}, {24, 12}} {
		h := newHand(t, func(_ int, c *Config) {
			c.AckDelay, c.Protocol = 500*time.Millisecond, Bunchnet()
			c.Protocol.PacketWindow = v.window
		})
		c := h.conns[1]
		c.oweAcks(0)
		c.FlushNet() // what was before
		for i := range v.due {
			h.give(0, h.packet(0, false))
			require.Equal(t, i == v.due-1, c.acksDue(), "a window of %d, packet %d", v.window, i)
		}
	}
}
