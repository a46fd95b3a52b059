package prediction_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// next is a server that continues one that has simulated 1000 ticks, at a time of its own.
func next(t *testing.T) (s *prediction.Server[[2]int, int], now time.Duration) {
	now = 50 * time.Hour
	s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps(), MaxError: 10, MaxForced: 3 * interval}, [2]int{}, now)
	require.NoError(t, err)
	s.Continue(prediction.Carried[[2]int, int]{State: [2]int{7, 1000}, At: 1000 * interval, Input: 3, Began: true, Early: 2 * interval}, now)
	return s, now
}

// moves sends moves of input 1 for ticks.
func moves(t *testing.T, s *prediction.Server[[2]int, int], now time.Duration, ticks ...int) {
	c, err := prediction.NewClient(prediction.ClientConfig[[2]int, int]{Model: steps()}, [2]int{}, 0)
	require.NoError(t, err)
	for _, tick := range ticks {
		c.Move(time.Duration(tick)*interval, 1)
	}
	w := bitio.NewWriter(make([]byte, 200))
	ok, err := c.Send(now, w)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, s.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
}

// TestContinue: the next server waits for the client's moves, then simulates those that are due at once, waits for one that is lost, and goes on in time.
func TestContinue(t *testing.T) {
	s, now := next(t)
	for range 10 {
		now += interval
		s.Tick(now)
		require.Equal(t, [2]int{7, 1000}, *s.State(), "it waits")
	}
	moves(t, s, now, 1001, 1002, 1003, 1005, 1006, 1007)
	s.Tick(now)
	require.Equal(t, [2]int{10, 1003}, *s.State(), "up to the one that is missing")
	_, _, ok := s.Tightest()
	require.False(t, ok, "how early these came says nothing")
	now += interval
	s.Tick(now)
	require.Equal(t, 1003, s.State()[1])
	moves(t, s, now, 1004)
	s.Tick(now)
	require.Equal(t, [2]int{13, 1006}, *s.State(), "1007 came two ticks before its own, as at the server before, and a tick has passed")
	for tick := 1007; tick < 1030; tick++ {
		moves(t, s, now, tick, tick+1)
		now += interval
		s.Tick(now)
		require.Equal(t, tick, s.State()[1])
	}
	require.Zero(t, s.Counters.Missed)
	_, early, ok := s.Tightest()
	require.True(t, ok)
	require.Equal(t, 2*interval, early, "as at the server before")
	now += interval
	s.Tick(now)
	s.Tick(now + interval)
	require.Equal(t, 1031, s.State()[1])
	require.EqualValues(t, 1, s.Counters.Missed, "it doesn't wait for ever")
}

// TestFollow: a client that follows another sends all moves that the server before hasn't simulated, again and again until they are acknowledged.
func TestFollow(t *testing.T) {
	cfg := prediction.ClientConfig[[2]int, int]{Model: steps()}
	from, err := prediction.NewClient(cfg, [2]int{}, 0)
	require.NoError(t, err)
	for tick := 981; tick <= 1030; tick++ {
		from.Move(time.Duration(tick)*interval, 1)
	}
	c, err := prediction.NewClient(cfg, [2]int{}, 0)
	require.NoError(t, err)
	require.False(t, c.Follow(0, from), "the server has told nothing yet")
	s, now := next(t)
	answer := func() {
		w := bitio.NewWriter(make([]byte, 200))
		ok, err := s.Reply(now, w)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, c.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
	}
	answer()
	require.True(t, c.Follow(now, from))
	require.Equal(t, [2]int{7 + 30, 1030}, *c.State())
	send := func(arrives bool) (messages int) {
		for {
			w := bitio.NewWriter(make([]byte, 200))
			ok, err := c.Send(now, w)
			require.NoError(t, err)
			if !ok {
				return messages
			}
			if messages++; arrives {
				require.NoError(t, s.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
			}
		}
	}
	require.Equal(t, 2, send(false), "both are lost")
	now += interval
	require.Equal(t, 2, send(true))
	for range 40 {
		now += interval
		s.Tick(now)
	}
	require.Zero(t, s.Counters.Bad)
	require.EqualValues(t, 30, s.Counters.Moves)
	answer()
	now += interval
	require.Zero(t, send(true), "the server has them")
}

// TestContinueSilent: when nothing comes, time goes on after a second, from where it was.
func TestContinueSilent(t *testing.T) {
	s, now := next(t)
	for range int(time.Second/interval) - 1 {
		now += interval
		s.Tick(now)
		require.Equal(t, [2]int{7, 1000}, *s.State())
	}
	for i := range 20 {
		now += interval
		s.Tick(now)
		require.Equal(t, 1000+i+1, s.State()[1])
	}
	require.Equal(t, 7+3*3, s.State()[0], "by the last input, for as long as at any time")
}

// TestContinueLies: whatever moves a client sends, it gains a quarter of a second at most.
func TestContinueLies(t *testing.T) {
	most := int(250*time.Millisecond/interval) + 1
	for name, lie := range map[string]func(s *prediction.Server[[2]int, int], now time.Duration){
		"all that are kept": func(s *prediction.Server[[2]int, int], now time.Duration) {
			at := int(s.Timestamp() / interval)
			for from := at + 1; from <= at+64; from += 16 {
				var list []int
				for i := from; i < from+16; i++ {
					list = append(list, i)
				}
				moves(t, s, now, list...)
			}
		},
		"the last": func(s *prediction.Server[[2]int, int], now time.Duration) {
			moves(t, s, now, int(s.Timestamp()/interval)+64)
		},
		"far ahead": func(s *prediction.Server[[2]int, int], now time.Duration) {
			moves(t, s, now, int(s.Timestamp()/interval)+5000)
		},
		"old": func(s *prediction.Server[[2]int, int], now time.Duration) { moves(t, s, now, 1, 2, 3) },
		"one by one": func(s *prediction.Server[[2]int, int], now time.Duration) {
			moves(t, s, now, int(s.Timestamp()/interval)+1)
		},
	} {
		s, now := next(t)
		for i := range 200 {
			lie(s, now)
			s.Tick(now)
			require.LessOrEqual(t, s.State()[1]-1000, i+most, name)
			now += interval
		}
	}
}
