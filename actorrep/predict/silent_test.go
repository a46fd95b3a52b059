package predict_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestSilentPlayer: an actor whose player never sends an input, or stops after a while, is simulated in every tick: with ForceInput for MaxForced, and with the zero
// input otherwise.
func TestSilentPlayer(t *testing.T) {
	for _, plays := range []time.Duration{0, time.Second, 10 * time.Second} {
		s := newStage(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, config{Input: right().Input, MaxForced: 500 * time.Millisecond})
		l := s.JoinOther(s.register)
		server := &runner{Pos: vec{X: -20}}
		require.NoError(t, s.Server.Spawn(server))
		require.NoError(t, s.class.Possess(server, l.Peer, s.Now))
		for s.Now < plays {
			s.step()
		}
		x, before := server.Pos.X, s.class.Counters().Server
		for range 30 * 10 { // the client doesn't call Tick
			require.NoError(t, s.class.Tick(s.Now))
			s.Step()
		}
		ticks := uint64((s.Now - rig.Tick) / (time.Second / 60).Truncate(time.Microsecond)) // of the last frame
		after := s.class.Counters().Server
		require.InDelta(t, ticks, server.Steps, 1, "%+v", after)
		require.EqualValues(t, server.Steps, after.Moves+after.Forced+after.Idle)
		if plays == 0 {
			require.Equal(t, -20.0, server.Pos.X)
			require.Zero(t, after.Missed+after.Forced)
			continue
		}
		require.Less(t, before.Idle, uint64(30), "before the first input")
		require.InDelta(t, 30, after.Forced-before.Forced, 1, "ticks of MaxForced")
		require.Equal(t, after.Missed-before.Missed, after.Forced+after.Idle-before.Forced-before.Idle)
		require.InDelta(t, min(x+5*(0.5+0.15), 20), server.Pos.X, 0.5, "as far as ForceInput, and what was in the buffer, go; or to the wall")
	}
}

// TestFirstInput: the ticks between a possession and its player's first input are the same at both ends, so there is nothing to correct.
func TestFirstInput(t *testing.T) {
	for _, lag := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		corrected := 0
		s := newStage(t, 1, netsim.Settings{Lag: lag}, config{Input: right().Input, Corrected: func(*runner, prediction.Correction) { corrected++ }})
		l := s.join()
		for range 40 {
			s.step() // so that the round trip is known
		}
		server, mine := s.spawn(l, vec{X: -20})
		for range 60 {
			s.step()
		}
		require.Greater(t, s.class.Counters().Server.Idle, uint64(0))
		require.Equal(t, 1, corrected, "%v: the first state", lag)
		require.Zero(t, s.class.Counters().Server.Bad)
		require.Greater(t, mine.Steps, server.Steps)
	}
}

// TestBackFromSilence: a player whose inputs don't arrive for a while, because the client or its uplink stands still, is where the server has simulated his actor
// one second after he is back, and plays on without a missed tick. What he did meanwhile counts for nothing.
func TestBackFromSilence(t *testing.T) {
	for _, pause := range []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, 20 * time.Second} {
		for _, who := range []string{"client", "uplink", "held uplink"} {
			t.Run(fmt.Sprint(who, " ", pause), func(t *testing.T) {
				way := netsim.Settings{Lag: 40 * time.Millisecond}
				now := keys{}
				s := newStage(t, 1, way, config{Input: func(*runner) keys { return now }, ForceInput: func(keys) keys { return keys{} }})
				l := s.join()
				server, mine := s.spawn(l, vec{X: -10})
				frames := func(d time.Duration, client bool) {
					for end := s.Now + d; s.Now < end; {
						require.NoError(t, s.class.Tick(s.Now))
						s.Step()
						if client {
							require.NoError(t, s.clients[l.World].Tick(s.Now))
						}
					}
				}
				frames(2*time.Second, true)
				steps, began := server.Steps, s.Now
				switch who {
				case "uplink":
					require.NoError(t, l.Up.Set(netsim.Settings{Loss: 100}))
				case "held uplink":
					require.NoError(t, l.Up.Set(netsim.Settings{Lag: pause}))
				}
				frames(way.Lag, true)
				now.X = 1
				frames(pause-way.Lag, who != "client")
				require.Equal(t, -10.0, server.Pos.X, "nothing of it has arrived")
				now.X = 0
				if who == "held uplink" {
					frames(pause, true) // they arrive, one by one and too late; those of the ticks before the end of the silence
				}
				require.NoError(t, l.Up.Set(way))
				frames(time.Second, true)
				x := server.Pos.X
				require.InDelta(t, -10, x, 0.8, "what he did meanwhile counts for nothing, but for the last ticks, whose inputs are in time")
				require.InDelta(t, (s.Now-began).Seconds()*60, server.Steps-steps, 1.5, "each tick is simulated once")
				require.InDelta(t, server.Pos.X, mine.Pos.X, 1e-6, "corrected")
				before := s.class.Counters().Server
				now.X = 1
				frames(2*time.Second, true)
				now.X = 0
				frames(time.Second, true)
				after := s.class.Counters().Server
				require.Zero(t, after.Missed-before.Missed, "%+v", after)
				require.Zero(t, after.Bad-before.Bad, "%+v", after)
				require.InDelta(t, 10, server.Pos.X-x, 0.5+0.3, "but for what the clock runs faster or slower")
				require.InDelta(t, server.Pos.X, mine.Pos.X, 1e-6)
			})
		}
	}
}

// TestSilentInALongFrame: after a server's pause a silent player's actor is simulated in as many ticks as the others are.
func TestSilentInALongFrame(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{}, right())
	l := s.join()
	host, silent := &runner{}, &runner{}
	require.NoError(t, s.Server.Spawn(host))
	require.NoError(t, s.Server.Spawn(silent))
	require.NoError(t, s.class.Possess(host, s.Server.Local(), 0))
	require.NoError(t, s.class.Possess(silent, l.Peer, 0))
	for _, at := range []time.Duration{0, 200 * time.Millisecond, 10 * time.Second, 11 * time.Second} {
		require.NoError(t, s.class.Tick(at))
		require.Equal(t, host.Steps, silent.Steps, "%v", at)
	}
	late := &runner{}
	require.NoError(t, s.Server.Spawn(late))
	require.NoError(t, s.class.Possess(late, l.Peer, 0), "another time than Tick's")
	require.NoError(t, s.class.Tick(11*time.Second+100*time.Millisecond))
	require.EqualValues(t, 6, late.Steps)
}

// TestSilentMember: a group's member whose player is silent slides on and is pushed like any other, and the others predict that.
func TestSilentMember(t *testing.T) {
	for _, plays := range []int{0, 90} {
		s := newRink(t, 1, netsim.Settings{Lag: 40 * time.Millisecond}, predict.GroupConfig{})
		s.inputs = func(a *skater) (k keys) {
			if a.Pos.X < 0 {
				k.X = 1 // the silent one, while he plays
			}
			return k
		}
		s.force = func(k keys) keys { k.Y = -1; return k } // the zero input of who is silent for longer isn't an earlier one
		silent, watcher := s.JoinOther(s.registerClient), s.join()
		a := s.skate(silent, vec{-4, 0})
		s.skate(watcher, vec{4, 6})
		w := s.ends[watcher.World]
		step := func(n int) {
			for range n {
				require.NoError(t, s.group.Tick(s.Now))
				s.Step()
				require.NoError(t, w.group.Tick(s.Now))
				if plays > 0 {
					require.NoError(t, s.ends[silent.World].group.Tick(s.Now))
					plays--
				}
			}
		}
		step(90 + 60) // and MaxForced is over
		ticks, count := a.Ticks, s.group.Counters.Ticks
		b := s.drop(vec{a.Pos.X - 2, a.Pos.Y}, vec{4, 0})
		step(15)
		rewinds := w.group.Counters.Rewinds
		step(300)
		require.EqualValues(t, s.group.Counters.Ticks-count, a.Ticks-ticks, "it is simulated in each tick")
		require.Greater(t, a.Pos.X-b.Pos.X, 0.0)
		require.InDelta(t, 0, a.Vel.X, 0.01, "it was pushed and has slid out")
		require.LessOrEqual(t, w.group.Counters.Rewinds-rewinds, uint64(3), "the others predict it: %+v", w.group.Counters)
		require.Empty(t, s.agree(watcher))
	}
}

// TestMembersInALongFrame: in a frame of many ticks, also after a pause, a group's member is simulated in each, whether it has no player, has had one since before, or
// has one since the end of the frame.
func TestMembersInALongFrame(t *testing.T) {
	s := newRink(t, 1, netsim.Settings{}, predict.GroupConfig{})
	l := s.join()
	nobodys, silent, later := s.skate(nil, vec{-4, 0}), s.skate(l, vec{0, 0}), s.skate(nil, vec{4, 0})
	for i, at := range []time.Duration{0, 500 * time.Millisecond, time.Second, 10 * time.Second} {
		if i == 2 {
			require.NoError(t, s.skaters.Possess(later, l.Peer, at))
		}
		require.NoError(t, s.group.Tick(at))
		require.EqualValues(t, []uint32{0, 30, 60, 124}[i], nobodys.Ticks)
		require.Equal(t, nobodys.Ticks, silent.Ticks, "%v", at)
		require.Equal(t, nobodys.Ticks, later.Ticks, "%v", at)
	}
}
