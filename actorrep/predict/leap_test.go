package predict_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// leaps are of clocks: within what the server keeps moves for, beyond it, beyond what a server reports, and for long.
var leaps = []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 900 * time.Millisecond, 2 * time.Second, 9 * time.Second, 11 * time.Second, 5 * time.Minute, 100 * time.Hour}

// TestLeapsOfTheClock: a client whose game's clock leaps ahead is in step again within a second, a round trip and 24 ticks, besides a leap of less than 64 ticks, and one whose clock goes back loses no more than by jitter.
// It sends no more messages than otherwise, and the server simulates no more ticks than pass.
func TestLeapsOfTheClock(t *testing.T) {
	for _, rate := range []float64{10, 60, 240} {
		for _, leap := range leaps {
			for _, way := range []string{"ahead", "back"} {
				for seed := range min(seeds(3), 24) {
					lag := []time.Duration{50 * time.Millisecond, 150 * time.Millisecond}[seed%2]
					s := newCourseOf(t, uint64(seed), netsim.Settings{Lag: lag, LagVariance: 10 * time.Millisecond}, config{Rate: rate})
					s.leapt = 1000 * time.Hour
					s.run(10 * time.Second)
					before, sent := s.server.Counters().Server, s.client.Counters().Client.Messages
					if s.leapt += leap; way == "back" {
						s.leapt -= 2 * leap
					}
					settles := time.Second + 2*lag + time.Duration(24/rate*float64(time.Second))
					if leap.Seconds() < 64/rate {
						settles += leap // the server has kept the moves that are ahead
					}
					s.run(settles)
					after := s.server.Counters().Server
					require.LessOrEqual(t, after.Moves+after.Missed-before.Moves-before.Missed, uint64(rate*settles.Seconds())+6, "%s by %v at %v: ticks", way, leap, rate)
					require.LessOrEqual(t, s.client.Counters().Client.Messages-sent, uint64(90*settles.Seconds()), "%s by %v at %v: messages", way, leap, rate)
					if way != "ahead" {
						require.LessOrEqual(t, after.Missed, before.Missed+1+uint64(rate*settles.Seconds()/100), "%s by %v at %v", way, leap, rate) // what jitter costs at any time
					}
					missed, wait := s.figures(leap%(10*time.Second) + 2*time.Second)
					require.LessOrEqual(t, missed, 5.0, "%s by %v at %v: %v", way, leap, rate, s.server.Counters().Server)
					require.Less(t, wait, time.Duration(32/rate*float64(time.Second))+200*time.Millisecond, "%s by %v at %v", way, leap, rate)
				}
			}
		}
	}
}

// TestLeapsOfAGroupsClock: a group is, within 2.3 s at a round trip of 300 ms.
func TestLeapsOfAGroupsClock(t *testing.T) {
	for _, leap := range leaps {
		for _, back := range []bool{false, true} {
			s := newRink(t, 1, netsim.Settings{Lag: 150 * time.Millisecond}, predict.GroupConfig{})
			s.inputs = func(a *skater) keys { return keys{X: int8(a.Ticks/50%3) - 1} }
			l := s.join()
			s.skate(l, vec{-4, 0})
			s.drop(vec{2, 1}, vec{1, 0})
			l.Ahead = 1000 * time.Hour
			frames := func(d time.Duration) {
				for end := s.Now + d; s.Now < end; {
					require.NoError(t, s.group.Tick(s.Now))
					s.Step()
					require.NoError(t, s.ends[l.World].group.Tick(s.Now+l.Ahead))
				}
			}
			frames(5 * time.Second)
			if l.Ahead += leap; back {
				l.Ahead -= 2 * leap
			}
			frames(2300 * time.Millisecond)
			before := s.skaters.Counters().Server
			frames(4 * time.Second)
			after := s.skaters.Counters().Server
			require.Equal(t, before.Missed, after.Missed, "%v, back %v: %+v", leap, back, after)
			require.InDelta(t, 240, after.Moves-before.Moves, 4, "%v, back %v", leap, back)
		}
	}
}

// TestCorrectionsFadeWhenTheClockGoesBack: a correction is hidden for no longer than otherwise, and as well.
func TestCorrectionsFadeWhenTheClockGoesBack(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, right())
	l := s.join()
	l.Ahead = time.Hour
	frames := func(n int) {
		for range n {
			require.NoError(t, s.class.Tick(s.Now))
			s.Step()
			require.NoError(t, s.clients[l.World].Tick(s.Now+l.Ahead))
		}
	}
	server := &runner{}
	require.NoError(t, s.Server.Spawn(server))
	require.NoError(t, s.class.Possess(server, l.Peer, s.Now))
	frames(60)
	mine := own(l.World)
	off := func() float64 { return s.clients[l.World].Offset(mine, s.Now+l.Ahead)[1] }
	server.Pos.Y += 2
	frames(4)
	require.InDelta(t, -1.5, off(), 0.5)
	l.Ahead = 0
	before := off()
	frames(1)
	require.InDelta(t, before*0.72, off(), 0.1, "a frame of 33 ms")
	frames(40)
	require.Zero(t, off())
}

// TestSpawnsWhenTheClockGoesBack: what waits for the server's actor waits no longer than before.
func TestSpawnsWhenTheClockGoesBack(t *testing.T) {
	denied := 0
	s := newStage(t, 1, netsim.Settings{}, right())
	spawns := predict.NewSpawns(s.class, time.Second, func(predict.Key, int) { denied++ })
	require.NoError(t, spawns.Add(1, 7)) // of a possession that has ended
	spawns.Tick(time.Hour)
	spawns.Tick(time.Second)
	require.Equal(t, 1, spawns.Len())
	spawns.Tick(2 * time.Second)
	require.Equal(t, 1, denied)
}
