package prediction_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func sameDirection(_ *body, a, b *push) bool { return *a == *b }

// randomSetup is a network and a client of any kind that is honest.
func randomSetup(rnd *rand.Rand) setup {
	lag := time.Duration(rnd.IntN(120)) * ms
	s := setup{frame: time.Second / time.Duration(25+rnd.IntN(150)),
		link: netsim.Settings{Loss: float64(rnd.IntN(20)), Dup: float64(rnd.IntN(5)), LagMin: lag, LagMax: lag + time.Duration(rnd.IntN(60))*ms}}
	if rnd.IntN(4) == 0 {
		s.link.BurstLoss, s.link.BurstLength = 0.5, 12 // more than a second of replies
	}
	if rnd.IntN(2) == 0 {
		s.client.CanCombine = sameDirection
	}
	if rnd.IntN(3) == 0 {
		s.client.Redundancy = -1
		s.client.Important = func(acked, in *push) bool { return *acked != *in }
	}
	return s
}

// Whatever the network did: once the player stands, both ends are the same to the last bit.
func TestConverges(t *testing.T) {
	corrections, again := uint64(0), uint64(0)
	for seed := range uint64(120) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, seed, randomSetup(rnd))
		r.run(5 * time.Second)
		require.NotEqual(t, body{}, *r.s.State(), "seed %d: nothing moved", seed)
		r.stop()
		r.run(12 * time.Second)
		require.Equal(t, *r.s.State(), *r.c.State(), "seed %d", seed)
		require.Zero(t, r.s.Counters.SpeedHacks, "seed %d: an honest client was taken for a cheat", seed)
		require.Zero(t, r.s.Counters.Malformed+r.c.Counters.Malformed)
		corrections += r.c.Counters.Corrections
		again += r.c.Counters.SentAgain
	}
	require.NotZero(t, corrections)
	require.NotZero(t, again)
}

// Without loss the ends never differ, combined moves and uneven frames included.
func TestNoLossNoCorrections(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		s := setup{link: netsim.Settings{Lag: 100 * ms}, frame: time.Second / time.Duration(20+rnd.IntN(300))}
		s.client.CanCombine = sameDirection
		r := newRig(t, seed, s)
		r.run(5 * time.Second)
		require.Zero(t, r.c.Counters.Corrections, "seed %d: %+v", seed, r.s.Counters)
		require.NotZero(t, r.c.Counters.Acks)
		if r.frame < 5*ms {
			require.Greater(t, r.c.Counters.Combined, r.c.Counters.Moves, "seed %d", seed)
		}
		require.Less(t, r.c.Unacked(), 40, "seed %d", seed)
	}
}

// Moves that go along again make most losses unnoticed.
func TestRedundancy(t *testing.T) {
	run := func(redundancy int) (n uint64) {
		for seed := range uint64(10) {
			s := setup{link: netsim.Settings{Lag: 100 * ms, Loss: 5}}
			s.client.Redundancy = redundancy
			r := newRig(t, seed, s)
			r.run(10 * time.Second)
			n += r.c.Counters.Corrections
		}
		return n
	}
	without, with := run(-1), run(2)
	require.Greater(t, without, uint64(100))
	require.Less(t, with, without/10)
}

// The game pushes the server's state: the client takes it over, smoothly.
func TestPush(t *testing.T) {
	var seen []prediction.Correction
	s := setup{link: netsim.Settings{Lag: 100 * ms}}
	s.client.Corrected = func(c prediction.Correction) { seen = append(seen, c) }
	s.client.Position = func(b *body) [3]float64 { return [3]float64{b.X, b.Y, 0} }
	for _, tell := range []bool{true, false} {
		seen = nil
		r := newRig(t, 1, s)
		r.run(2 * time.Second)
		before := r.c.State().X
		r.s.State().X += 3
		if tell {
			r.s.Correct()
		}
		for len(seen) == 0 && r.now < 4*time.Second {
			before = r.c.State().X
			r.run(r.now + ms)
		}
		require.Len(t, seen, 1)
		require.InDelta(t, 3, seen[0].Size, 0.7)
		require.InDelta(t, float64(200*ms), float64(seen[0].Age), float64(80*ms))
		require.Greater(t, seen[0].Replayed, 8)
		require.InDelta(t, before, r.c.State().X+r.c.Offset(r.local())[0], 0.3, "it was drawn somewhere else")
		r.stop()
		r.run(6 * time.Second)
		require.Len(t, seen, 1, "one push, one correction")
		require.Greater(t, r.c.Counters.Repeated, uint64(0))
		require.Equal(t, *r.s.State(), *r.c.State())
		require.Zero(t, r.c.Offset(r.local()))
	}
}

// A client whose clock runs fast gets no more time than the server has.
func TestSpeedHack(t *testing.T) {
	for seed := range uint64(20) {
		for _, speed := range []float64{1.1, 1.5, 3, 10} {
			s := setup{link: netsim.Settings{LagMin: 20 * ms, LagMax: 90 * ms, Loss: 3}, speed: speed}
			r := newRig(t, seed, s)
			checkHeld(r, 500*ms, 0.005)
			r.run(10 * time.Second)
			require.NotZero(t, r.s.Counters.SpeedHacks, "seed %d, %v times as fast", seed, speed)
			require.NotZero(t, r.s.Counters.Cut)
			require.LessOrEqual(t, r.simTime, 10*time.Second+300*ms, "seed %d", seed)
		}
	}
	s := setup{speed: 2}
	s.server.MaxDiscrepancy = -1
	r := newRig(t, 1, s)
	r.run(10 * time.Second)
	require.Greater(t, r.simTime, 19*time.Second, "without the guard")
}

// checkHeld makes the rig check, over every window of its ticks, that the time simulated is the
// server's time plus a bound.
func checkHeld(r *rig, slack time.Duration, drift float64) {
	least := time.Duration(1 << 62) // of simulated - allowed, so far
	r.each = func() {
		ahead := r.simTime - time.Duration((1+drift)*float64(r.now))
		least = min(least, ahead)
		require.LessOrEqual(r.t, ahead-least, slack+time.Microsecond, "seed %d at %v", r.seed, r.now)
	}
}

// A client that makes its messages by hand, of any times, any number, in any rhythm, gets no more
// either: over no window of ticks.
func TestLiar(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		r := newRig(t, seed, setup{})
		checkHeld(r, 500*ms, 0.005)
		at := uint32(0)
		for range 600 {
			for range rnd.IntN(1 + rnd.IntN(6)) {
				w := bitio.NewWriter(make([]byte, 512))
				n := 1 + rnd.IntN(16)
				w.WriteUint8(uint8(rnd.IntN(4)))
				w.WriteInt(uint32(n-1), 16)
				w.WriteBool(true) // a whole timestamp
				w.WriteBits(uint64(at)+uint64(rnd.IntN(200_000)), 52)
				for i := range n {
					if i > 0 {
						w.WriteIntPacked(1 + uint32(rnd.IntN(1<<(1+rnd.IntN(22)))))
					}
					model().WriteInput(w, &push{1, 0})
				}
				model().WriteState(w, r.s.State())
				require.NoError(t, r.s.Receive(r.now, bitio.NewReader(w.Bytes(), w.Len())), "seed %d", seed)
				at = uint32(r.s.Timestamp() / time.Microsecond)
			}
			r.now += time.Duration(1+rnd.IntN(1<<rnd.IntN(10))) * ms
			r.s.Tick(r.now)
			r.each()
		}
		require.NotZero(t, r.s.Counters.SpeedHacks, "seed %d", seed)
	}
}

// Clocks that differ as clocks do are no cheats, though they come to differ by a second and more.
func TestDrift(t *testing.T) {
	for _, speed := range []float64{1.004, 0.996} {
		r := newRig(t, 1, setup{link: netsim.Settings{LagMin: 20 * ms, LagMax: 60 * ms}, speed: speed})
		r.run(5 * time.Minute)
		require.Zero(t, r.s.Counters.SpeedHacks+r.s.Counters.Cut, "speed %v", speed)
	}
}

// A silent client moves on, but not for ever, and is corrected when it is back.
func TestForced(t *testing.T) {
	r := newRig(t, 1, setup{link: netsim.Settings{Lag: 50 * ms}})
	r.input = func(time.Duration) push { return push{1, 0} }
	r.run(2 * time.Second)
	require.Zero(t, r.s.Counters.Forced)
	require.NoError(t, r.up.Set(netsim.Settings{Loss: 100}))
	before := r.simTime
	r.run(2350 * ms)
	require.InDelta(t, float64(120*ms), float64(r.simTime-before), float64(60*ms))
	r.run(5 * time.Second)
	require.InDelta(t, float64(1050*ms), float64(r.simTime-before), float64(60*ms))
	forced := r.s.Counters.Forced
	_, waits := r.s.NextDeadline()
	require.False(t, waits, "there is nothing more to force")
	r.run(6 * time.Second)
	require.Equal(t, forced, r.s.Counters.Forced)
	require.NotZero(t, r.c.Counters.Forgotten, "three seconds of moves don't fit")
	require.Equal(t, 96, r.c.Unacked())
	require.NoError(t, r.up.Set(netsim.Settings{Lag: 50 * ms}))
	r.stop()
	r.run(9 * time.Second)
	require.NotZero(t, r.c.Counters.Corrections)
	require.Equal(t, *r.s.State(), *r.c.State())
}

// What a silent client is moved on with is the game's to say, and whether it is at all.
func TestForceInput(t *testing.T) {
	s := setup{link: netsim.Settings{Lag: 10 * ms}}
	s.server.ForceInput = func(push) push { return push{} }
	r := newRig(t, 1, s)
	r.input = func(time.Duration) push { return push{1, 0} }
	r.run(1 * time.Second)
	require.NoError(t, r.up.Set(netsim.Settings{Loss: 100}))
	r.run(3 * time.Second)
	require.Less(t, r.s.State().VX, 0.01, "it goes on with no input, so it stands")
	s.server.ForceAfter = -1
	r = newRig(t, 1, s)
	r.run(1 * time.Second)
	require.NoError(t, r.up.Set(netsim.Settings{Loss: 100}))
	r.run(3 * time.Second)
	require.Zero(t, r.s.Counters.Forced)
}

// The server stands still for a second: nobody is a cheat for that, nobody was silent.
func TestServerHitch(t *testing.T) {
	c := newClient(t, prediction.ClientConfig[body, push]{})
	s := newServer(t, prediction.ServerConfig[body, push]{})
	waiting := [][]byte{}
	for i := 1; i <= 300; i++ {
		now := time.Duration(i) * frame
		c.Move(now, push{1, int8(i/20%3 - 1)})
		buf := make([]byte, 128)
		w := bitio.NewWriter(buf)
		_, err := c.Send(now, w)
		require.NoError(t, err)
		waiting = append(waiting, w.Bytes())
		if i > 100 && i <= 160 {
			continue
		}
		for _, p := range waiting {
			require.NoError(t, s.Receive(now, bitio.NewReader(p, 8*len(p))))
		}
		waiting = waiting[:0]
		s.Tick(now)
	}
	require.Equal(t, *s.State(), *c.State())
	require.Zero(t, s.Counters.Cut+s.Counters.Forced+s.Counters.Flooded+s.Counters.Bad)
}
