package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// busyBothWays plays ends that have something to say each millisecond, over a path that is longer than the ack history, for five seconds.
// Then it waits until all that is reliable has arrived.
func busyBothWays(t *testing.T, p Protocol, lag time.Duration, loss float64, seed uint64, each func(l *lab)) *lab {
	p.FirstFree = false
	l := newLab(t, both(netsim.Settings{LagMin: lag, LagMax: lag + 1, Loss: loss, Dup: loss}), seed, func(_ int, c *Config) {
		c.Protocol, c.KeepAlive, c.NetSpeed = p, 10*time.Millisecond, 10_000_000
		c.Redundancy.Copies = int(seed % 4)
	})
	l.tick = time.Millisecond
	l.control()
	l.run(4*time.Second, nil)
	chs := [2]*channel.Channel{l.open(0), l.open(1)}
	sent := 0
	talk := func() {
		for _, ch := range chs {
			if ch.Room() > 1 {
				if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 40), Reliable: true}); err == nil {
					sent += 40
				}
			}
			_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 15)})
		}
		each(l)
	}
	l.run(5*time.Second, talk)
	chs2 := func() int { return l.conns[0].Table().Unacked() + l.conns[1].Table().Unacked() }
	for end := l.now + time.Minute; chs2() > 0 && l.now < end; {
		l.step(func() { each(l) })
	}
	require.Zero(t, chs2(), "%v loss %v seed %d", lag, loss, seed)
	require.Nil(t, l.res[0])
	require.Nil(t, l.res[1])
	return l
}

// TestHistoryHoldsWhatIsInFlight: an end has no more packets in flight than its peer's history can tell about, so that no peer waits for a flush,
// however long the path, and none is told lost that arrived.
func TestHistoryHoldsWhatIsInFlight(t *testing.T) {
	for _, lag := range []time.Duration{20, 60, 110, 150, 250} {
		for seed, loss := range []float64{0, 8, 30} {
			waits := 0
			l := busyBothWays(t, Unreal53(true), lag*time.Millisecond, loss, uint64(seed), func(l *lab) {
				for _, c := range l.conns {
					if c.notify.WaitingForFlush() {
						waits++
					}
				}
			})
			require.Zero(t, waits, "lag %v ms, loss %v %%: waited for a flush", lag, loss)
			require.Zero(t, l.conns[0].Counters.NotProcessed+l.conns[1].Counters.NotProcessed)
		}
	}
}

// TestFatesAreToldAsTheyWere: with a window within the history what arrives isn't told lost, on no wire and on a path of any length.
func TestFatesAreToldAsTheyWere(t *testing.T) {
	for _, p := range []Protocol{Unreal427(), Unreal53(true)} {
		for _, lag := range []time.Duration{110, 150, 250} {
			l := busyBothWays(t, p, lag*time.Millisecond, 0, 1, func(*lab) {})
			require.Zero(t, l.conns[0].Counters.PacketsLost+l.conns[1].Counters.PacketsLost, "%s, lag %v ms", p.Name, lag)
		}
	}
}

// TestWindowFollowsTheHistory: where the peer refuses what its history has no room for, no more is in flight; what its ack is overdue for is sent
// all the same, and so is the ack of its close.
func TestWindowFollowsTheHistory(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) {
		c.Protocol = Unreal53(true)
		c.Protocol.FirstFree = false
		c.NetSpeed, c.Timeout, c.KeepAlive = 10_000_000, -1, 10*time.Millisecond
	})
	c := h.conns[0]
	require.Equal(t, 256, c.cfg.Protocol.PacketWindow)
	for !c.windowFull() {
		h.packet(0, false)
	}
	require.Equal(t, 252, c.notify.Unsettled())
	for range 90 {
		h.now += 10 * time.Millisecond
		c.oweAcks(0)
		c.Tick(h.now)
	}
	require.Equal(t, 256, c.notify.Unsettled())
	sent := len(h.sent[0])
	require.True(t, c.historyFull())
	require.False(t, c.mayForce())
	c.flow.unanswered = true
	require.False(t, c.mayForce(), "nor is what answers the peer")
	c.flow.unanswered = false
	require.False(t, c.maySendAgain(), "the peer may take it with these acks or with those of before")
	at, ok := c.NextDeadline()
	require.True(t, ok)
	require.Equal(t, c.overdueAt()+1, at)
	c.closer.controlGone = true
	require.True(t, c.mayForce())
	c.closer.controlGone = false
	c.Tick(at - 1)
	require.Len(t, h.sent[0], sent)
	c.Tick(at)
	require.Len(t, h.sent[0], sent+1)
	require.Equal(t, 257, c.notify.Unsettled())
}
