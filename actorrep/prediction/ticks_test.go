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

// TestTicks: with an Interval each tick is simulated once, when its time has come, by its first input; when none has come by the last one, and by the zero input
// before the first one and after MaxForced; what comes late or too early changes nothing but a counter, and the player is told how late his inputs come.
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
	require.Equal(t, [2]int{0, 1}, *s.State(), "by the zero input: nothing has come yet")
	require.EqualValues(t, 1, s.Counters.Idle)
	require.Zero(t, s.Counters.Missed)
	send(time.Duration(tick)*interval, 103, 5, 104, 7, 103, 9, 103, 9) // 103 again, and otherwise
	w := bitio.NewWriter(make([]byte, 100))
	ok, err := s.Reply(time.Duration(tick)*interval, w)
	require.NoError(t, err)
	require.True(t, ok, "who sends moves hears how early they come")
	next()
	require.Equal(t, [2]int{0, 2}, *s.State(), "its time hasn't come")
	next()
	require.Equal(t, [2]int{5, 3}, *s.State(), "by what came first")
	next()
	require.Equal(t, [2]int{12, 4}, *s.State())
	next()
	next()
	require.Equal(t, [2]int{26, 6}, *s.State(), "by the last one")
	at, early, ok := s.Tightest()
	require.True(t, ok)
	require.Equal(t, 103*interval, at)
	require.Equal(t, 2*interval, early)
	send(time.Duration(tick)*interval+3*time.Millisecond, 105, 50)
	require.Equal(t, [2]int{26, 6}, *s.State(), "it is over")
	at, early, _ = s.Tightest()
	require.Equal(t, 105*interval, at)
	require.Equal(t, -interval-3*time.Millisecond, early)
	for range 5 {
		next()
	}
	require.Equal(t, [2]int{33, 11}, *s.State(), "MaxForced is over: by the zero input")
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
	require.EqualValues(t, 2+4, before.Idle)
	require.EqualValues(t, 7, before.Missed)
	require.EqualValues(t, 2, before.Late)
	for range 64 {
		next()
	}
	require.Equal(t, [2]int{34, 11 + 64}, *s.State())
	s.Tick(time.Duration(tick+100000) * interval)
	require.EqualValues(t, before.Moves+1, s.Counters.Moves)
	require.Equal(t, time.Duration(tick+100000)*interval, s.Timestamp(), "a server that stood still goes on from now")
	require.Equal(t, 11+64+128, s.State()[1], "and simulates MovesPerTick")
	tick += 100000
	count := s.Counters
	send(time.Duration(tick)*interval, tick+3, 1)
	s.Skip(time.Duration(tick+9) * interval)
	s.Tick(time.Duration(tick+10) * interval)
	require.Equal(t, [2]int{39, 11 + 64 + 128 + 2}, *s.State(), "of the ticks that Skip leaves out only that of a move is simulated; the next is forced")
	require.EqualValues(t, count.Missed+9, s.Counters.Missed)
	require.EqualValues(t, count.Forced+1, s.Counters.Forced)

	bad := steps()
	for _, bad.Interval = range []time.Duration{time.Nanosecond, time.Second, -1, interval + 1} {
		_, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: bad}, [2]int{}, 0)
		require.ErrorIs(t, err, prediction.ErrConfig)
	}
}

// TestTicksBeforeTheEpoch: a server's time may begin before 0: then its first tick is that of the first interval, and moves are simulated from then on as ever.
func TestTicksBeforeTheEpoch(t *testing.T) {
	for _, began := range []time.Duration{-time.Nanosecond, -interval, -3*interval - time.Millisecond, -time.Hour} {
		s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps(), MaxError: 10}, [2]int{}, began)
		require.NoError(t, err)
		require.Zero(t, s.Timestamp())
		for _, now := range []time.Duration{began, began / 2, -1, 0} {
			require.NoError(t, s.Receive(now, ticksOf(0, 0, interval, 2*interval)))
			s.Tick(now)
			_, err = s.Reply(now, bitio.NewWriter(make([]byte, 100)))
			require.NoError(t, err)
			require.Zero(t, s.State()[1])
		}
		for n := range 5 {
			now := time.Duration(n+1) * interval
			require.NoError(t, s.Receive(now-time.Millisecond, ticksOf(0, now)))
			s.Tick(now)
			require.Equal(t, [2]int{n + 1, n + 1}, *s.State())
		}
		require.Zero(t, s.Counters.Missed)
		require.Equal(t, prediction.Carried[[2]int, int]{State: [2]int{5, 5}, At: 5 * interval, Input: 1, Began: true, Early: s.Carry().Early}, s.Carry())
	}
}

// TestTicksAfterSilence: after any time without a move the state is that of a thing that nobody moved, the client is told so, and moves go on as before; also when
// what is sent of timestamps has wrapped meanwhile.
func TestTicksAfterSilence(t *testing.T) {
	const whole = time.Duration(1<<32) * time.Microsecond // when 32 bits wrap: 71.6 min
	for _, pause := range []time.Duration{time.Second, 8 * time.Minute, 18 * time.Minute, 36 * time.Minute, whole - time.Second, whole, whole + time.Second, 72 * time.Hour, 10000 * time.Hour} {
		t.Run(pause.String(), func(t *testing.T) {
			pause -= pause % interval
			s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps(), ForceInput: func(int) int { return 7 }}, [2]int{}, interval)
			require.NoError(t, err)
			s.Correct()
			c, err := prediction.NewClient(prediction.ClientConfig[[2]int, int]{Model: steps()}, [2]int{}, 0)
			require.NoError(t, err)
			at := interval
			play := func(n int) {
				for range n {
					at += interval
					if c.Timestamp() > 0 { // it knows the time
						c.Move(at+2*interval, 1)
					}
					w := bitio.NewWriter(make([]byte, 100))
					ok, err := c.Send(at, w)
					require.NoError(t, err)
					if ok {
						require.NoError(t, s.Receive(at, bitio.NewReader(w.Bytes(), w.Len())))
					}
					s.Tick(at)
					w.Reset(make([]byte, 100))
					if ok, err = s.Reply(at, w); ok {
						require.NoError(t, c.Receive(at, bitio.NewReader(w.Bytes(), w.Len())))
					}
					require.NoError(t, err)
				}
			}
			for range 3 {
				play(100)
				before, count := *s.State(), s.Counters
				for range 50 { // its three moves are played, it is forced for a second, and is nobody's from then on
					at += interval
					s.Tick(at)
				}
				require.Equal(t, before[0]+2+7*48, s.State()[0])
				for range 10 {
					at += pause / 10
					s.Tick(at)
				}
				require.EqualValues(t, 50, s.Counters.Forced-count.Forced)
				require.Equal(t, before[0]+2+7*50, s.State()[0])
				require.EqualValues(t, s.Counters.Idle-count.Idle, s.State()[1]-before[1]-52)
				play(10)
				bad := s.Counters.Bad
				play(90)
				require.Equal(t, bad, s.Counters.Bad)
				require.Equal(t, s.State()[1]+2, c.State()[1], "it is two ticks ahead")
				require.Equal(t, s.State()[0]+2, c.State()[0])
				require.Zero(t, s.Counters.Malformed+c.Counters.Malformed)
			}
		})
	}
}

// TestLapses: a client simulates the ticks between the server's state and its own moves by the zero input, also again after a correction, 64 at most.
func TestLapses(t *testing.T) {
	for _, gap := range []int{0, 1, 9, 64, 65, 100000} {
		s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps()}, [2]int{}, interval)
		require.NoError(t, err)
		calls := 0
		model := steps()
		simulate := model.Simulate
		model.Simulate = func(s *[2]int, in int, dt time.Duration) { calls++; simulate(s, in, dt) }
		c, err := prediction.NewClient(prediction.ClientConfig[[2]int, int]{Model: model}, [2]int{}, 0)
		require.NoError(t, err)
		tell := func() {
			s.Correct()
			w := bitio.NewWriter(make([]byte, 100))
			ok, err := s.Reply(interval, w)
			require.NoError(t, err)
			require.True(t, ok)
			require.NoError(t, c.Receive(interval, bitio.NewReader(w.Bytes(), w.Len())))
		}
		tell()
		first := time.Duration(1+gap+1) * interval
		for i := range 3 {
			c.Move(first+time.Duration(i*(gap+1))*interval, 1)
		}
		most := min(gap, 64)
		require.Equal(t, [2]int{3, 3 + 3*most}, *c.State())
		calls = 0
		s.State()[1] = 1000
		tell()
		require.Equal(t, [2]int{3, 1003 + min(3*gap, 64)}, *c.State())
		require.Equal(t, 3+min(3*gap, 64), calls)
	}
	c, err := prediction.NewClient(prediction.ClientConfig[[2]int, int]{Model: steps()}, [2]int{}, 0)
	require.NoError(t, err)
	c.Move(100*interval, 1)
	require.Equal(t, [2]int{1, 1}, *c.State(), "nothing is known of the server's")
}

// TestRefusedMoves: a client all of whose moves come too late for their ticks, or too early to wait for them, is corrected all the same: what it made of these
// moves doesn't stay.
func TestRefusedMoves(t *testing.T) {
	for _, early := range []int{-30, -5, -1, 66, 70, 300} { // ticks before the one of the move
		for _, lag := range []int{0, 1, 10} { // ticks each way
			s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps(), MaxForced: interval}, [2]int{}, 1000*interval)
			require.NoError(t, err)
			s.Correct()
			c, err := prediction.NewClient(prediction.ClientConfig[[2]int, int]{Model: steps()}, [2]int{}, 0)
			require.NoError(t, err)
			var up, down [][]byte // by tick
			n := 1000
			play := func(ticks, ahead, in int) {
				for range ticks {
					n++
					now := time.Duration(n) * interval
					if p := up[len(up)-1-lag]; p != nil {
						require.NoError(t, s.Receive(now, bitio.NewReader(p, 8*len(p))))
					}
					s.Tick(now)
					w := bitio.NewWriter(make([]byte, 512))
					ok, err := s.Reply(now, w)
					require.NoError(t, err)
					down = append(down, nil)
					if ok {
						down[len(down)-1] = w.Bytes()
					}
					if p := down[len(down)-1-lag]; p != nil {
						require.NoError(t, c.Receive(now, bitio.NewReader(p, 8*len(p))))
					}
					if c.Timestamp() > 0 {
						c.Move(now+time.Duration(ahead)*interval, in)
					}
					w = bitio.NewWriter(make([]byte, 512))
					ok, err = c.Send(now, w)
					require.NoError(t, err)
					up = append(up, nil)
					if ok {
						up[len(up)-1] = w.Bytes()
					}
				}
			}
			up, down = make([][]byte, lag+1), make([][]byte, lag+1)
			play(100, 2*lag+2, 1) // in time
			require.Greater(t, s.Counters.Moves, uint64(50))
			require.Greater(t, c.Counters.Acks, uint64(0))
			play(200, early+lag, 1)
			moves := s.Counters.Moves
			play(400, early+lag, 0)
			if early != 66 { // else the server has them from the next messages, which carry them again, but no claim
				require.Equal(t, moves, s.Counters.Moves, "%d ticks early, %d each way: they are refused", early, lag)
			}
			require.Equal(t, s.State()[0], c.State()[0], "%d ticks early, %d each way: %+v, %+v", early, lag, s.Counters, c.Counters)
		}
	}
}

// TestALongFrame: all moves that a client makes in one frame go at once, in as many messages as they need, and the server says how early the first of them came,
// which came last before its tick. After them the next message waits its time again.
func TestALongFrame(t *testing.T) {
	for _, n := range []int{1, 15, 16, 17, 32, 33, 60, 64} {
		c, err := prediction.NewClient(prediction.ClientConfig[[2]int, int]{Model: steps()}, [2]int{}, 0)
		require.NoError(t, err)
		s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps(), MaxError: 10}, [2]int{}, 100*interval)
		require.NoError(t, err)
		tick := 100
		send := func(now time.Duration) bool {
			due, waits := c.NextDeadline()
			w := bitio.NewWriter(make([]byte, 200))
			ok, err := c.Send(now, w)
			require.NoError(t, err)
			require.Equal(t, ok, waits && due <= now)
			if ok {
				require.NoError(t, s.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
			}
			return ok
		}
		for frame := range 4 {
			now := time.Duration(tick) * interval
			for i := range n {
				c.Move(time.Duration(tick+1+i)*interval, 1)
			}
			messages := 0
			for send(now) {
				messages++
			}
			require.Equal(t, (n+15)/16, messages, "%d moves", n)
			_, early, ok := s.Tightest()
			require.True(t, ok)
			require.Equal(t, interval, early, "%d moves", n)
			for range n {
				tick++
				s.Tick(time.Duration(tick) * interval)
			}
			require.EqualValues(t, (frame+1)*n, s.Counters.Moves, "%d moves", n)
		}
		require.Zero(t, s.Counters.Missed)
		now := time.Duration(tick) * interval
		c.Move(now+interval, 1)
		require.True(t, send(now))
		c.Move(now+2*interval, 1)
		require.False(t, send(now+time.Millisecond), "its time hasn't come")
	}
}
