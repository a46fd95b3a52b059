package lockstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestHostThatPausesDropsNobody: a host that stands still again and again doesn't drop the player whom it waited for each time, the one with the longest path.
func TestHostThatPausesDropsNobody(t *testing.T) {
	for _, policy := range []StallPolicy{Wait, Substitute} {
		for _, after := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second} {
			for _, d := range []time.Duration{400 * ms, 1500 * ms, 8 * time.Second} {
				for _, ticksFirst := range []bool{false, true} {
					cfg := config(3)
					cfg.Stall, cfg.DropAfter = policy, after
					w := newWorld(t, 5, cfg, netsim.Settings{Lag: 20 * ms, Jitter: 5 * ms})
					w.setPath(w.players[2], netsim.Settings{Lag: 80 * ms, Jitter: 20 * ms})
					w.start()
					w.playTo(100, time.Minute)
					for range 20 {
						w.hostStill = true
						w.run(d)
						w.hostStill = false
						if ticksFirst {
							w.host.Tick(w.now)
						}
						w.run(2 * time.Second)
					}
					require.Zero(t, w.host.Stats().Drops, "%v, DropAfter %v, pauses of %v, before it reads: %v", policy, after, d, ticksFirst)
				}
			}
		}
	}
}

// TestShortTimeout: what a peer reads before a Tick counts however long it is after the one before, and a first Tick at any time ends nothing. A host that says
// nothing is given up in time, however seldom the peer has to send.
func TestShortTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{10 * ms, 100 * ms, 500 * ms, time.Second, 4 * time.Second} {
		cfg := config(2)
		cfg.TurnInterval = min(50*ms, max(timeout, 100*ms)/stillTurns)
		w := newWorld(t, 1, cfg, netsim.Settings{Lag: 20 * ms})
		w.now, w.timeout = time.Hour, max(timeout, 100*ms)
		w.start()
		w.playTo(40, time.Minute)
		for range 5 {
			w.now += 2 * time.Second // and what is on its way comes
			w.run(500 * ms)
		}
		for _, p := range w.players {
			require.NoError(t, p.peer.Err(), "%v", timeout)
		}

		turns := []time.Duration{min(50*ms, timeout/stillTurns)}
		if timeout == stillTurns*time.Second {
			turns = append(turns, time.Minute)
		}
		for _, turn := range turns {
			p, err := NewPeer(PeerConfig{Config: Config{Players: 2, TurnInterval: turn}, Timeout: timeout}, &box{})
			require.NoError(t, err)
			from := 1_800_000_000 * time.Second
			now := from
			for p.Tick(now); p.State() != Ended; p.Tick(now) {
				at, ok := p.NextDeadline()
				require.True(t, ok)
				require.Greater(t, at, now, "it spins")
				now = at
				require.LessOrEqual(t, now-from, 2*timeout+100*ms, "%v, turns of %v", timeout, turn)
			}
			require.ErrorIs(t, p.Err(), ErrTimeout)
			require.GreaterOrEqual(t, now-from, timeout, "%v, turns of %v", timeout, turn)
		}
	}
}

// TestTimeoutOfAFewTurns: a Timeout within which a host says nothing, or that one lost packet could use up, is an error which says why.
func TestTimeoutOfAFewTurns(t *testing.T) {
	for turn, least := range map[time.Duration]time.Duration{ms: 10 * ms, 50 * ms: 200 * ms, time.Second: 4 * time.Second, time.Minute: 4 * time.Second} {
		cfg := PeerConfig{Config: Config{Players: 2, TurnInterval: turn}, Timeout: least}
		_, err := NewPeer(cfg, &box{})
		require.NoError(t, err, "turns of %v", turn)
		cfg.Timeout--
		_, err = NewPeer(cfg, &box{})
		require.ErrorIs(t, err, ErrConfig, "turns of %v", turn)
		require.ErrorContains(t, err, "the host says something once in", "turns of %v", turn)
	}
}

// unready is a Transport that has no bandwidth for more than a packet in each turn.
type unready struct{ Transport }

func (unready) Ready() bool { return false }

// TestNarrowBeforeZero: with a clock that begins before 0 a packet goes out in each turn all the same where the transport has bandwidth for no more, and what isn't
// acked is repeated.
func TestNarrowBeforeZero(t *testing.T) {
	took := map[time.Duration]time.Duration{}
	for _, from := range []time.Duration{-10 * time.Hour, time.Hour} {
		w := newWorld(t, 1, config(2), netsim.Settings{Lag: 20 * ms, Loss: 20})
		w.now, w.connectWith = from, func(t Transport) Transport { return unready{t} }
		w.start()
		w.playTo(200, time.Minute)
		took[from] = w.now - from
		require.LessOrEqual(t, w.host.clients[0].repeatAt, w.now+time.Second)
	}
	require.InDelta(t, took[time.Hour].Seconds(), took[-10*time.Hour].Seconds(), 1)
}

// TestLongTurns: with turns of seconds to a minute players join at once, whatever is lost, none is taken for gone, and all play on with the default Timeout and DropAfter.
func TestLongTurns(t *testing.T) {
	for _, turn := range []time.Duration{5 * time.Second, 20 * time.Second, time.Minute} {
		cfg := config(3)
		cfg.TurnInterval = turn
		w := newWorld(t, 1, cfg, netsim.Settings{Lag: 20 * ms, Loss: 20})
		w.start()
		from := w.now
		for w.now < from+20*turn {
			w.now += 95 * ms
			w.step()
		}
		require.GreaterOrEqual(t, w.host.Turn(), int64(20), "%v", turn)
		require.Zero(t, w.host.Stats().Drops, "%v", turn)
		for _, p := range w.players {
			require.NoError(t, p.peer.Err(), "%v", turn)
			require.GreaterOrEqual(t, p.peer.Turn(), int64(18), "%v", turn)
		}
	}
}

// TestDarkForAboutTimeout: a peer to which the way was dark for almost its Timeout goes on, however long the turns are: the host says something twice a
// second at least, or once a turn or a second, though nothing is acked.
func TestDarkForAboutTimeout(t *testing.T) {
	for _, turn := range []time.Duration{50 * ms, 400 * ms, 900 * ms, 3 * time.Second} {
		cfg := config(2)
		cfg.TurnInterval, cfg.DropAfter = turn, 30*time.Second
		path := netsim.Settings{Lag: 20 * ms}
		w := newWorld(t, 1, cfg, path)
		w.start()
		w.run(4 * turn)
		down := w.players[1].down
		for _, timeout := range []time.Duration{30 * time.Second, max(4*min(turn, time.Second), 2*seldom)} {
			w.players[1].peer.cfg.Timeout = timeout
			require.NoError(t, down.Set(netsim.Settings{Loss: 100}))
			w.run(timeout - 2*max(min(turn, time.Second), seldom) - 50*ms)
			require.NoError(t, down.Set(path))
			from := w.players[1].peer.Turn()
			w.run(10*turn + 5*time.Second)
			require.NoError(t, w.players[1].peer.Err(), "%v", turn)
			require.Greater(t, w.players[1].peer.Turn(), from+5)
		}
	}
}
