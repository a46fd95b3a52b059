package predict_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestStallsAreGotOver: after frames of up to several seconds at both ends, as on a machine that can't keep up, the player's moves come in time again and both ends
// agree within ten seconds.
func TestStallsAreGotOver(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var now keys
		s := newStage(t, seed, netsim.Settings{Lag: 5 * time.Millisecond}, config{Input: func(*runner) keys { return now }})
		l := s.join()
		server := &runner{Pos: vec{3, -4}}
		require.NoError(t, s.Server.Spawn(server))
		require.NoError(t, s.class.Possess(server, l.Peer, s.Now)) // the stalls are there from the beginning
		for i := range 500 {
			if rnd.IntN(8) == 0 {
				s.Now += time.Duration(rnd.ExpFloat64() * 0.7 * float64(time.Second))
			}
			now = keys{X: int8(i/30%3 - 1), Y: int8(i/40%3 - 1), Look: 45}
			s.step()
		}
		for end := s.Now + 10*time.Second; s.Now < end; {
			now.X = -now.X
			s.step()
		}
		now = keys{}
		before := s.class.Counters().Server
		for end := s.Now + 2*time.Second; s.Now < end; {
			s.step()
		}
		after, mine := s.class.Counters().Server, own(l.World)
		require.InDelta(t, server.Pos.X, mine.Pos.X, 1e-3, "seed %d: %+v", seed, after)
		require.InDelta(t, server.Pos.Y, mine.Pos.Y, 1e-3, "seed %d: %+v", seed, after)
		require.Equal(t, before.Ahead, after.Ahead, "seed %d", seed)
		require.Less(t, after.Missed-before.Missed, uint64(3), "seed %d", seed)
	}
}

// TestClockThatLeaps: a player whose clock leaps ahead of what the server keeps moves for is told so, and comes back into step.
func TestClockThatLeaps(t *testing.T) {
	for _, leap := range []time.Duration{time.Second, 3 * time.Second, 8 * time.Second} {
		s := newStage(t, 1, netsim.Settings{Lag: 30 * time.Millisecond, Loss: 5}, config{Input: func(*runner) keys { return keys{X: 1} }})
		l := s.join()
		server, _ := s.spawn(l, vec{-20, 0})
		ahead := time.Duration(0)
		frames := func(d time.Duration) {
			for end := s.Now + d; s.Now < end; {
				require.NoError(t, s.class.Tick(s.Now))
				s.Step()
				require.NoError(t, s.clients[l.World].Tick(s.Now+ahead))
			}
		}
		frames(time.Second)
		ahead = leap
		frames(2*leap + 3*time.Second)
		before := s.class.Counters().Server
		frames(3 * time.Second)
		after := s.class.Counters().Server
		require.Equal(t, before.Ahead, after.Ahead, "%v", leap)
		require.Less(t, after.Missed-before.Missed, uint64(3), "%v", leap)
		require.InDelta(t, own(l.World).Pos.X, server.Pos.X, 2)
	}
}

// stalls lets a course's client stand still for a while after every 10 frames.
func (s *course) stalls(d, stall time.Duration) {
	for until := s.Now + d; s.Now < until; {
		s.run(10 * s.frame)
		s.clientAt += stall
		s.run(stall)
	}
}

// TestShortStalls: a client that stands still for a fifth of a second more often than an answer takes knows the time nevertheless: when its clock has leaped, four of
// five inputs come in time again within a minute. When each stall made it forget what it had sent, none did.
func TestShortStalls(t *testing.T) {
	for _, leap := range []time.Duration{0, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		missed, all := uint64(0), uint64(0)
		for seed := range uint64(5) {
			s := newCourse(t, seed, netsim.Settings{Lag: 500 * time.Millisecond, LagVariance: 50 * time.Millisecond, Loss: 3})
			s.run(10 * time.Second)
			s.behind -= leap
			s.stalls(2*leap+40*time.Second, 190*time.Millisecond)
			before := s.server.Counters().Server
			s.stalls(20*time.Second, 190*time.Millisecond)
			after := s.server.Counters().Server
			missed += after.Missed - before.Missed
			all += after.Missed - before.Missed + after.Moves - before.Moves
		}
		t.Logf("a leap of %v: %d ticks of %d without an input", leap, missed, all)
		require.Less(t, missed, all/5, "a leap of %v", leap)
	}
}
