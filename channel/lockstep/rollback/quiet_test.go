package rollback_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep"
	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// counter is a Transport that counts.
type counter struct{ packets, bytes int }

// Send is lockstep's.
func (c *counter) Send(_ time.Duration, p []byte) error {
	c.packets++
	c.bytes += len(p)
	return nil
}

// TestGoneOnesGetLittle: a player and a spectator that aren't heard any more get a packet a second, and all again once they are.
func TestGoneOnesGetLittle(t *testing.T) {
	for _, dropAfter := range []time.Duration{0, -1} {
		r := newParty(t, 1, 3, netsim.Settings{Lag: 20 * time.Millisecond}, func(_ int, c *rollback.Config) { c.DropAfter = dropAfter })
		r.run(time.Second)
		m := r.machines[0]
		var up sink
		var watching, player counter
		w, err := rollback.NewWatcher(rollback.Config{Session: 1, Players: 3, InputSize: 2}, 10, 0, &sums{}, &up)
		require.NoError(t, err)
		require.NoError(t, m.Connect(10, &watching))
		require.NoError(t, m.Connect(2, &player))
		ask := func() {
			w.Tick(r.now)
			require.NoError(t, m.Receive(r.now, 10, up.p))
		}
		ask()
		r.machines[2].gone = true
		r.run(6 * time.Second)
		require.Greater(t, watching.packets, 200)
		watching, player = counter{}, counter{}
		r.run(60 * time.Second)
		require.InDelta(t, 60, watching.packets, 2)
		require.InDelta(t, 60, player.packets, 2)
		watching = counter{}
		ask()
		r.run(time.Second)
		require.Greater(t, watching.packets, 50)
	}
}

// kept is a Transport that keeps what it carries.
type kept struct {
	lockstep.Transport
	packets [][]byte
}

// Send is lockstep's.
func (k *kept) Send(now time.Duration, p []byte) error {
	k.packets = append(k.packets, append([]byte(nil), p...))
	return k.Transport.Send(now, p)
}

// TestOvertakenPacketsSetNobodyBack: a packet that comes late doesn't make its sender look far behind.
func TestOvertakenPacketsSetNobodyBack(t *testing.T) {
	r := newParty(t, 1, 2, netsim.Settings{Lag: 20 * time.Millisecond}, nil)
	ours, theirs := &kept{Transport: r.wires[[2]int{0, 1}]}, &kept{Transport: r.wires[[2]int{1, 0}]}
	require.NoError(t, r.machines[0].Connect(1, ours))
	require.NoError(t, r.machines[1].Connect(0, theirs))
	r.run(2 * time.Second)
	lead := func() int64 {
		rest := ours.packets[len(ours.packets)-1][6:]
		_, n := binary.Uvarint(rest)
		ahead, _ := binary.Varint(rest[n:])
		return ahead
	}
	before := lead()
	require.NoError(t, r.machines[0].Receive(r.now, 1, theirs.packets[5]))
	r.machines[0].Tick(r.now + time.Second/60)
	require.InDelta(t, before, lead(), 2)
}

// TestBalanceStopsInTime: who is some frames ahead waits for as many, and not on while the average of its lead comes down.
func TestBalanceStopsInTime(t *testing.T) {
	for hang := 2; hang <= 6; hang++ {
		r := newParty(t, 1, 2, netsim.Settings{Lag: 10 * time.Millisecond}, nil)
		r.run(time.Second)
		r.machines[1].next += time.Duration(hang) * time.Second / 60
		before := r.machines[0].Stats().Balanced
		r.run(8 * time.Second)
		require.InDelta(t, hang, r.machines[0].Stats().Balanced-before, 1)
		require.Zero(t, r.machines[1].Stats().Balanced)
	}
}

// TestDroppedOnesAreTold: a dropped player that still says something gets eight packets a second, however much it says: it may not know.
func TestDroppedOnesAreTold(t *testing.T) {
	r := newParty(t, 1, 3, netsim.Settings{Lag: 20 * time.Millisecond}, nil)
	r.run(time.Second)
	m := r.machines[0]
	var player counter
	require.NoError(t, m.Connect(2, &player))
	r.wires[[2]int{1, 2}].dark = true
	require.NoError(t, m.Drop(2))
	r.run(5 * time.Second)
	for _, d := range []time.Duration{3 * time.Second, 10 * time.Second} { // it hears nobody, and says less from then on
		player = counter{}
		r.run(d)
		require.InDelta(t, 8*d.Seconds(), player.packets, 8)
	}
	r.machines[2].gone = true
	r.run(3 * time.Second)
	player = counter{}
	r.run(10 * time.Second)
	require.InDelta(t, 10, player.packets, 2)
}
