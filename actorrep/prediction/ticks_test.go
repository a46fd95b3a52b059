package prediction_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

const interval = 20 * time.Millisecond

// steps is a model that counts: by what it was moved, and how often.
func steps() prediction.Model[[2]int, int] {
	return prediction.Model[[2]int, int]{
		Interval: interval,
		Simulate: func(s *[2]int, in int, dt time.Duration) { s[0] += in * int(dt/interval); s[1]++ },
		Distance: func(a, b *[2]int) float64 {
			if *a == *b {
				return 0
			}
			return 1
		},
		WriteInput: func(w *bitio.Writer, in *int) { w.WriteUint8(uint8(*in)) },
		ReadInput:  func(r *bitio.Reader, in *int) { *in = int(r.ReadUint8()) },
		WriteState: func(w *bitio.Writer, s *[2]int) { w.WriteUint32(uint32(s[0])); w.WriteUint32(uint32(s[1])) },
		ReadState:  func(r *bitio.Reader, s *[2]int) { s[0], s[1] = int(r.ReadUint32()), int(r.ReadUint32()) },
	}
}

// TestTicks: with an Interval each tick is simulated once, when its time has come, by its first input, or by the last one when none has come; what comes
// late or too early changes nothing but a counter, and the player is told how late his inputs come.
func TestTicks(t *testing.T) {
	const began = 100 * interval
	s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps(), MaxError: 10, MaxForced: 3 * interval}, [2]int{}, began)
	require.NoError(t, err)
	tick := 100
	send := func(now time.Duration, moves ...int) { // pairs of a tick and its input
		for i := 0; i < len(moves); i += 2 {
			c, err := prediction.NewClient(prediction.ClientConfig[[2]int, int]{Model: steps()}, [2]int{}, 0)
			require.NoError(t, err)
			c.Move(time.Duration(moves[i])*interval, moves[i+1])
			w := bitio.NewWriter(make([]byte, 100))
			ok, err := c.Send(now, w)
			require.NoError(t, err)
			require.True(t, ok)
			require.NoError(t, s.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
		}
	}
	next := func() {
		tick++
		s.Tick(time.Duration(tick) * interval)
		require.Equal(t, time.Duration(tick)*interval, s.Timestamp())
	}
	next()
	require.Zero(t, s.State()[1], "nothing has come yet")
	require.Zero(t, s.Counters.Missed)
	send(time.Duration(tick)*interval, 103, 5, 104, 7, 103, 9, 103, 9) // 103 again, and otherwise
	w := bitio.NewWriter(make([]byte, 100))
	ok, err := s.Reply(time.Duration(tick)*interval, w)
	require.NoError(t, err)
	require.True(t, ok, "who sends moves hears how early they come")
	next()
	require.Zero(t, s.State()[1], "its time hasn't come")
	next()
	require.Equal(t, [2]int{5, 1}, *s.State(), "by what came first")
	next()
	require.Equal(t, [2]int{12, 2}, *s.State())
	next()
	next()
	require.Equal(t, [2]int{26, 4}, *s.State(), "by the last one")
	at, early, ok := s.Tightest()
	require.True(t, ok)
	require.Equal(t, 103*interval, at)
	require.Equal(t, 2*interval, early)
	send(time.Duration(tick)*interval+3*time.Millisecond, 105, 50)
	require.Equal(t, [2]int{26, 4}, *s.State(), "it is over")
	at, early, _ = s.Tightest()
	require.Equal(t, 105*interval, at)
	require.Equal(t, -interval-3*time.Millisecond, early)
	for range 5 {
		next()
	}
	require.Equal(t, [2]int{33, 5}, *s.State(), "MaxForced is over")
	w = bitio.NewWriter(make([]byte, 100))
	ok, err = s.Reply(time.Duration(tick)*interval, w)
	require.NoError(t, err)
	require.True(t, ok)
	require.True(t, bitio.NewReader(w.Bytes(), w.Len()).ReadBool(), "who has missed ticks is corrected")
	send(time.Duration(tick)*interval, tick+64, 1, tick+65, 1, tick+1000000, 1, 3, 1)
	before := s.Counters
	require.EqualValues(t, 2, before.Ahead)
	require.EqualValues(t, 2, before.Moves)
	require.EqualValues(t, 3, before.Forced)
	require.EqualValues(t, 7, before.Missed)
	require.EqualValues(t, 2, before.Late)
	for range 64 {
		next()
	}
	require.Equal(t, [2]int{34, 6}, *s.State())
	s.Tick(time.Duration(tick+100000) * interval)
	require.EqualValues(t, before.Moves+1, s.Counters.Moves)
	require.Equal(t, time.Duration(tick+100000)*interval, s.Timestamp(), "a server that stood still goes on from now")

	bad := steps()
	for _, bad.Interval = range []time.Duration{time.Nanosecond, time.Second, -1, interval + 1} {
		_, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: bad}, [2]int{}, 0)
		require.ErrorIs(t, err, prediction.ErrConfig)
	}
}
