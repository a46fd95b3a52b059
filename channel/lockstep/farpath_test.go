package lockstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestTooFarIsToldOnce: a player whose path is longer than the delay may hide is dropped once, and joins again when its path is short enough; until then the game
// goes at its pace.
func TestTooFarIsToldOnce(t *testing.T) {
	for _, policy := range []StallPolicy{Wait, Substitute} {
		cfg := config(2)
		cfg.Stall, cfg.DropAfter = policy, 3*time.Second
		w := newWorld(t, 5, cfg, netsim.Settings{Lag: 20 * ms, Jitter: 5 * ms})
		p := w.players[1]
		path := func(lag time.Duration) { w.setPath(p, netsim.Settings{Lag: lag, Jitter: 10 * ms}) }
		path(250 * ms)
		w.start()
		w.until("drop", time.Minute, func() bool { return w.host.Stats().Drops == 1 })
		for _, again := range []bool{false, true} { // a new session is as far
			if again {
				w.connect(1, p.peer.Turn())
			}
			from := w.host.Turn()
			w.run(10 * time.Second)
			require.Greater(t, w.host.Turn(), from+9*20, "%v", policy)
			require.EqualValues(t, 1, w.host.Stats().Drops, "%v: %v", policy, w.events)
			require.InDelta(t, w.host.Turn(), p.peer.Turn(), 10, "%v: it looks on", policy)
		}
		path(30 * ms)
		w.connect(1, p.peer.Turn())
		w.until("join", 15*time.Second, func() bool { return p.peer.InGame() })
		before := w.host.Stats().Substituted
		w.run(5 * time.Second)
		require.EqualValues(t, 1, w.host.Stats().Drops, "%v: %v", policy, w.events)
		require.InDelta(t, before, w.host.Stats().Substituted, 10, "%v", policy)
	}
}

// TestFartherOfTwoIsToldOnce: so is the farther of two whose paths both are longer than the delay may hide, until it is as near as the other.
func TestFartherOfTwoIsToldOnce(t *testing.T) {
	for _, policy := range []StallPolicy{Wait, Substitute} {
		cfg := config(2)
		cfg.Stall, cfg.DropAfter = policy, 4*time.Second
		w := newWorld(t, 1, cfg, netsim.Settings{Lag: 500 * ms, Jitter: 10 * ms})
		p := w.players[1]
		path := func(lag time.Duration) { w.setPath(p, netsim.Settings{Lag: lag, Jitter: 10 * ms, Loss: 5}) }
		path(700 * ms)
		w.start()
		w.until("drop", 3*time.Minute, func() bool { return w.host.Stats().Drops == 1 })
		w.run(2 * time.Minute)
		require.EqualValues(t, 1, w.host.Stats().Drops, "%v: %v", policy, w.events)
		path(500 * ms)
		w.connect(1, p.peer.Turn())
		w.until("join", time.Minute, func() bool { return p.peer.InGame() })
	}
}

// TestFartherOfTwoIsToldOnceAtTheEdge: so is it where the nearer one's path is about as long as the delay may hide, and seems a little longer at times.
func TestFartherOfTwoIsToldOnceAtTheEdge(t *testing.T) {
	cfg := config(2)
	cfg.Stall = Substitute
	w := newWorld(t, 5, cfg, netsim.Settings{Lag: 400 * ms, Jitter: 10 * ms})
	w.setPath(w.players[1], netsim.Settings{Lag: 460 * ms, Jitter: 10 * ms})
	w.start()
	w.run(4 * time.Minute)
	require.EqualValues(t, 1, w.host.Stats().Drops, w.events)
}

// TestAllTooFar: where the paths of all are longer than the delay may hide, the game goes at their pace by either policy: nobody is dropped, and all commands are taken.
func TestAllTooFar(t *testing.T) {
	for _, policy := range []StallPolicy{Wait, Substitute} {
		for _, players := range []int{1, 2, 3} {
			if testing.Short() && (policy == Wait || players != 2) {
				continue
			}
			cfg := config(players)
			cfg.Stall = policy
			w := newWorld(t, 5, cfg, netsim.Settings{Lag: 500 * ms, Jitter: 10 * ms})
			w.start()
			w.until("turns", 30*time.Second, func() bool { return w.host.Turn() > 300 })
			require.Zero(t, w.host.Stats().Drops, "%v: %v", policy, w.events)
			require.Zero(t, w.host.Stats().Substituted, "%v", policy)
		}
	}
}

// TestAllAreLate: by Substitute nobody's commands are left out while none have come. Who is later than the first is waited for from then on, for StallAfter, and
// where nobody is heard the game goes on.
func TestAllAreLate(t *testing.T) {
	cfg := config(2)
	cfg.Stall, cfg.StallAfter, cfg.DropAfter = Substitute, 120*ms, time.Minute
	w := newWorld(t, 5, cfg, netsim.Settings{Lag: 20 * ms})
	w.start()
	w.playTo(40, time.Minute)
	run := func(d time.Duration) {
		for end := w.now + d; w.now < end; {
			w.step()
			if due, ok := w.host.NextDeadline(); w.host.Waiting() == 0b11 {
				require.True(t, ok && due > w.now, "a host that waits for all sleeps")
			}
		}
	}
	pause := func(both, more time.Duration) {
		at, late := w.host.Turn()+int64(w.host.Delay()), [2]time.Duration{w.now + both, w.now + both + more}
		for i, p := range w.players {
			p.inputsTo = func() int64 {
				if w.now < late[i] {
					return at
				}
				return 1 << 62
			}
		}
		run(time.Second)
		if more == 0 { // as if all had been waited for until just now
			for i := range w.players {
				c := &w.host.clients[i]
				c.lagging, c.stall.pausedAt = true, w.host.lastTurn
			}
		}
		run(both + time.Second)
	}
	pause(5*time.Second, 100*ms)
	require.Zero(t, w.host.Stats().Substituted)
	pause(3*time.Minute, 0)
	require.Zero(t, w.host.Stats().Substituted+w.host.Stats().Drops, "longer than DropAfter")
	pause(5*time.Second, 150*ms)
	before := w.host.Stats().Substituted
	require.NotZero(t, before)
	for _, p := range w.players {
		p.offline = true
	}
	run(3 * time.Second)
	require.Greater(t, w.host.Stats().Substituted, before+20)
}

// TestMoreThanAPacketUnderWay: where the commands of a round trip don't fit a packet the game goes on at its pace, and at most of it where packets get lost.
func TestMoreThanAPacketUnderWay(t *testing.T) {
	for _, c := range []struct {
		packet, input, rate int
		lag, loss           int
		turns               int64
	}{
		{255, 150, 150, 150, 0, 355}, {255, 150, 50, 150, 5, 355}, {1100, 500, 200, 150, 5, 355},
		{255, 150, 150, 150, 1, 325}, {255, 150, 150, 150, 5, 270}, {1100, 500, 500, 150, 5, 290},
	} {
		cfg := config(2)
		cfg.MaxPacket, cfg.MaxInput, cfg.InputRate = c.packet, c.input, c.rate
		w := newWorld(t, 1, cfg, netsim.Settings{Lag: time.Duration(c.lag) * ms, Loss: float64(c.loss)})
		w.start()
		for _, p := range w.players {
			p.stuffed = true
		}
		from := w.host.Turn()
		w.run(20 * time.Second)
		require.GreaterOrEqual(t, w.host.Turn()-from, c.turns, "%+v", c)
	}
}

// TestCommandsBehindALoss: a packet of commands behind a lost one is no breach of the player's budget, though turns that are missing have earned it.
func TestCommandsBehindALoss(t *testing.T) {
	cfg := config(2)
	cfg.MaxPacket, cfg.MaxInput, cfg.InputRate = 255, 150, 60
	w := newWorld(t, 1, cfg, netsim.Settings{Lag: 150 * ms, Loss: 20})
	w.start()
	for end := w.now + 20*time.Second; w.now < end; w.step() { // the world's host refuses no packet
		for _, p := range w.players {
			p.stuffed, p.every = p.g.turn%2 == 0, 1<<30
		}
	}
	require.Zero(t, w.host.Stats().RefusedOversize)
}

// TestHashesBehindDarkness: with a delay of as many turns as may be, a player whose way to the host was dark isn't told as one without hashes.
func TestHashesBehindDarkness(t *testing.T) {
	for seed := range uint64(8) {
		cfg := config(2)
		cfg.MaxDelay, cfg.Delay, cfg.InitialDelay, cfg.TurnInterval = 32, FixedDelay(32), 32, 20*ms
		path := netsim.Settings{LagMin: 50 * ms, LagMax: 90 * ms, Loss: 25}
		w := newWorld(t, seed, cfg, path)
		w.start()
		w.playTo(80, time.Minute)
		require.NoError(t, w.players[1].up.Set(netsim.Settings{Loss: 100}))
		w.run(2 * time.Second)
		require.NoError(t, w.players[1].up.Set(path))
		w.playTo(240, time.Minute)
		require.Zero(t, w.host.Stats().Unhashed+w.host.Stats().Drops, "seed %d: %v", seed, w.events)
	}
}

// TestHashesBehindALoss: hashes of turns are there in the end, though packets of commands that fill them get lost, and though those of a round trip don't fit beside
// the commands.
func TestHashesBehindALoss(t *testing.T) {
	for _, c := range []struct {
		packet, input, rate, of int
		turn, lag               time.Duration
		loss                    float64
	}{{255, 100, 70, 5, 16 * ms, 60 * ms, 5}, {155, 50, 50, 1, 50 * ms, 150 * ms, 0}, {128, 32, 30, 40, 10 * ms, 200 * ms, 0}} {
		cfg := config(2)
		cfg.MaxPacket, cfg.MaxInput, cfg.InputRate, cfg.TurnInterval, cfg.MaxDelay = c.packet, c.input, c.rate, c.turn, 32
		w := newWorld(t, 1, cfg, netsim.Settings{Lag: c.lag, Jitter: 5 * ms, Loss: c.loss})
		w.start()
		for end := w.now + 15*time.Second; w.now < end; w.step() {
			for _, p := range w.players {
				p.stuffed, p.every = p.g.turn%40 < int64(40/c.of), 1<<30
			}
		}
		require.Zero(t, w.host.Stats().Unhashed, "%+v", c)
		require.Greater(t, w.host.Stats().HashesCompared, w.host.Stats().Turns*17/10, "%+v", c)
	}
}
