package rollback_test

import (
	"math/bits"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// still has machines stand still for d, and tick before they read what came meanwhile, which may be lost.
func (r *party) still(d time.Duration, lost bool, machines ...*machine) {
	for _, m := range machines {
		m.gone = true
	}
	r.run(d)
	for _, m := range machines {
		if lost {
			for to, w := range r.wires {
				for ok := r.machines[to[1]] == m; ok; {
					_, ok = w.link.Pop(r.now)
				}
			}
		}
		m.gone, m.next = false, r.now
		m.Tick(r.now)
	}
}

// some is how many seeds are played, with CI set all.
func some(few, all uint64) uint64 {
	if os.Getenv("CI") != "" {
		return all
	}
	return few
}

// TestClockFromAnywhere: the clock may begin hours before 0, as that of a match to come does, or count from 1970; who is dropped then knows it.
func TestClockFromAnywhere(t *testing.T) {
	for _, from := range []time.Duration{-10 * time.Hour, -3 * time.Second, 1_800_000_000 * time.Second} {
		r := newParty(t, 1, 3, netsim.Settings{Lag: 30 * time.Millisecond}, nil)
		r.now = from
		for _, m := range r.machines {
			m.next = r.now
			at := m.NextDeadline()
			require.LessOrEqual(t, at, r.now)
		}
		r.run(3 * time.Second)
		r.still(8*time.Second, true, r.machines[1])
		r.run(3 * time.Second)
		r.agree()
		require.ErrorIs(t, r.machines[1].err, rollback.ErrDropped, "%v", from)
		require.Greater(t, r.machines[0].Frame(), int64(60*7), "%v", from)

		there, back := &count{}, &count{}
		w, err := rollback.NewWatcher(rollback.Config{Session: 1, Players: 3, InputSize: 2}, 3, 0, &sums{}, there)
		require.NoError(t, err)
		w.Tick(r.now)
		require.Equal(t, 1, there.packets, "%v", from)
		require.NoError(t, r.machines[0].Connect(3, back))
		require.NoError(t, r.machines[0].Receive(r.now, 3, there.last))
		r.run(6 * time.Second) // without a word of the spectator's
		before := back.packets
		r.run(3 * time.Second)
		require.InDelta(t, 3, back.packets-before, 1, "%v", from)
	}
}

// count is a Transport that counts.
type count struct {
	packets int
	last    []byte
}

// Send is lockstep's.
func (c *count) Send(_ time.Duration, p []byte) error {
	c.packets, c.last = c.packets+1, append([]byte(nil), p...)
	return nil
}

// TestAllStandStill: machines that stand still together, as those of one host do, have missed nothing, and drop nobody.
func TestAllStandStill(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 6 * time.Second, time.Minute, 10 * time.Hour} {
		r := newParty(t, 1, 3, netsim.Settings{Lag: 30 * time.Millisecond}, nil)
		r.run(3 * time.Second)
		r.now += d
		for _, m := range r.machines {
			m.next = r.now
			m.Tick(r.now)
		}
		r.run(3 * time.Second)
		r.agree()
		for _, m := range r.machines {
			require.NoError(t, m.err, "%v", d)
			require.EqualValues(t, 0b111, m.Active(), "%v", d)
			require.Greater(t, m.Frame(), int64(60*5), "%v", d)
		}
	}
}

// TestBackFromStandingStill: a machine that stood still until the others had dropped it knows that, however far they have played on and whatever was
// lost.
func TestBackFromStandingStill(t *testing.T) {
	for seed := range some(6, 24) {
		players := 2 + int(seed%3)
		r := newParty(t, seed, players, netsim.Settings{Loss: 5, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond}, nil)
		r.run(3 * time.Second)
		r.still(6*time.Second+time.Duration(seed)*500*time.Millisecond, seed%2 == 0, r.machines[1])
		r.run(4 * time.Second)
		r.agree()
		for i, m := range r.machines {
			if i == 1 {
				require.ErrorIs(t, m.err, rollback.ErrDropped, "seed %d", seed)
				continue
			}
			require.NoError(t, m.err, "seed %d", seed)
			require.EqualValues(t, (1<<players-1)&^0b10, m.Active(), "seed %d", seed)
			require.Greater(t, m.Frame(), int64(60*7), "seed %d", seed)
		}
	}
}

// TestApart: players that were in two parts for longer than DropAfter have dropped each other. When they hear each other again one part plays on, and the
// other's know that it is over for them.
func TestApart(t *testing.T) {
	for seed := range some(8, 40) {
		players := 2 + int(seed%4)
		r := newParty(t, seed, players, netsim.Settings{Loss: 5, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond}, nil)
		r.run(3 * time.Second)
		all := uint8(1<<players - 1)
		part := uint8(1+seed/4*5%uint64(all-1)) & all
		for to, w := range r.wires {
			w.dark = part>>to[0]&1 != part>>to[1]&1
		}
		r.run(8*time.Second + time.Duration(seed)*300*time.Millisecond)
		for _, w := range r.wires {
			w.dark = false
		}
		r.run(4 * time.Second)
		r.agree()
		stay := part
		if a, b := bits.OnesCount8(part), bits.OnesCount8(all&^part); a < b || a == b && part&1 == 0 {
			stay = all &^ part
		}
		for i, m := range r.machines {
			if stay>>i&1 == 0 {
				require.ErrorIs(t, m.err, rollback.ErrDropped, "seed %d: %d of %b", seed, i, part)
				continue
			}
			require.NoError(t, m.err, "seed %d: %d of %b", seed, i, part)
			require.Equal(t, stay, m.Active(), "seed %d: %d of %b", seed, i, part)
			require.Greater(t, m.Frame(), int64(60*8), "seed %d: %d of %b", seed, i, part)
		}
	}
}

// TestDroppedSaysNothing: who knows that it is dropped ends nobody's game, when those who dropped it become fewer.
func TestDroppedSaysNothing(t *testing.T) {
	r := newParty(t, 1, 3, netsim.Settings{Lag: 30 * time.Millisecond}, nil)
	r.run(3 * time.Second)
	for to, w := range r.wires {
		w.dark = to[0] == 0 || to[1] == 0
	}
	r.run(8 * time.Second)
	for _, w := range r.wires {
		w.dark = false
	}
	r.run(2 * time.Second)
	require.ErrorIs(t, r.machines[0].err, rollback.ErrDropped)
	r.machines[2].gone = true
	require.NoError(t, r.machines[1].Drop(2))
	r.run(3 * time.Second)
	require.NoError(t, r.machines[1].err)
	require.EqualValues(t, 0b010, r.machines[1].Active())
}
