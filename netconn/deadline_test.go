package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// gate is a controller whose budget and deadline are set by hand.
type gate struct {
	congestion.Controller
	budget int
	at     time.Duration
	wait   bool
}

func (g *gate) Budget(time.Duration) int { return g.budget }

func (g *gate) NextDeadline(time.Duration) (time.Duration, bool) { return g.at, g.wait }

// shut closes the gate of end 0 until at.
func (h *hand) shut(at time.Duration) *gate {
	g := &gate{Controller: h.conns[0].cfg.Controller, at: at, wait: true}
	h.conns[0].cfg.Controller = g
	return g
}

// TestNextDeadlineOfTheController: what waits for the controller is due when that says, at once when there is budget, and not before an
// ack when only an ack can bring some: a loop that sleeps until NextDeadline doesn't spin.
func TestNextDeadlineOfTheController(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[0]
	g := h.shut(h.now + 30*time.Millisecond)
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.NoError(t, err)
	require.Equal(t, 1, c.Table().Waiting())
	at := func() time.Duration { d, _ := c.NextDeadline(); return d }
	require.Equal(t, g.at, at())
	g.wait = false
	require.Equal(t, c.flow.lastSend+c.cfg.KeepAlive, at(), "only an ack can open it")
	g.budget = 1
	require.Equal(t, c.now, at())
}

// TestNextDeadlineOfABlockedProbe: a probe that is due waits for the controller as everything else does.
func TestNextDeadlineOfABlockedProbe(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.KeepAlive = 30 * time.Second })
	c := h.conns[0]
	h.packet(0, true) // lost
	due, ok := c.probeAt()
	require.True(t, ok)
	g := h.shut(due + 10*time.Millisecond)
	at := func() time.Duration { d, _ := c.NextDeadline(); return d }
	require.Equal(t, g.at, at())
	g.at = due - 1
	require.Equal(t, due, at())
	c.now = due
	g.wait = false
	require.Equal(t, c.flow.lastSend+awaitedKeepAlive, at(), "only an ack can open it, and a keep-alive asks for one")
	g.budget = 1
	require.Equal(t, due, at())
}

// TestNextDeadlineOfAFullWindow: what waits for the window is due with the ack, which nobody can foresee. Until then empty packets
// leave: the newest once more each KeepAlive if it is empty, or a new one, more and more rarely.
func TestNextDeadlineOfAFullWindow(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) {
		c.Protocol = Bunchnet()
		c.Protocol.PacketWindow, c.NetSpeed, c.Timeout = 16, 10_000_000, -1
	})
	c := h.conns[0]
	for !c.bunchesFull(0) {
		h.packet(0, true)
	}
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
	require.NoError(t, err)
	require.Equal(t, 1, c.Table().Waiting())
	at := func() time.Duration { d, _ := c.NextDeadline(); return d }
	require.Equal(t, h.now+c.cfg.KeepAlive, at())
	c.now += time.Minute
	c.newest().at = c.now - c.cfg.KeepAlive/2
	c.flow.lastSend = c.now - c.cfg.KeepAlive // an empty packet is due, but it is too early for a new one
	require.False(t, c.maySendAgain())
	require.Greater(t, c.forceAt(), c.now)
	require.Equal(t, c.forceAt(), at())
	c.newest().notes = 0
	require.True(t, c.maySendAgain())
	require.Equal(t, c.now, at())
}

// Driven by NextDeadline alone, as doc.go says, a connection sleeps between what it has to do.
func TestNextDeadlineDoesNotSpin(t *testing.T) {
	for name, speed := range map[string]int{"slow": 2000, "fast": 1_000_000} {
		l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, func(_ int, c *Config) { c.NetSpeed = speed })
		l.control()
		l.run(time.Second, nil)
		ch := l.open(0)
		for range 40 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true})
			require.NoError(t, err)
		}
		l.dark[1] = true // no acks
		wakes, end := 0, l.now+20*time.Second
		for l.now < end {
			at, ok := l.conns[0].NextDeadline()
			require.True(t, ok)
			l.now = max(l.now+time.Microsecond, at)
			l.conns[0].Tick(l.now)
			wakes++
			if wakes > 100_000 {
				break
			}
		}
		t.Logf("%s: %d wakes in 20 s, %d packets", name, wakes, l.packets[0])
		require.Less(t, wakes, 5000, name)
	}
}
