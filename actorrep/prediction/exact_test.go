package prediction_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestBounds: what is at a bound of a config is taken, and a model must have each of its functions.
func TestBounds(t *testing.T) {
	for i, m := range []func(m *prediction.Model[body, push]){
		func(m *prediction.Model[body, push]) { m.MaxDelta = time.Millisecond },
		func(m *prediction.Model[body, push]) { m.MaxDelta = time.Second },
		func(m *prediction.Model[body, push]) { m.Interval = time.Millisecond },
		func(m *prediction.Model[body, push]) { m.Interval = 125 * time.Millisecond },
	} {
		cfg := prediction.ClientConfig[body, push]{Model: model()}
		m(&cfg.Model)
		_, err := prediction.NewClient(cfg, body{}, 0)
		require.NoError(t, err, "case %d", i)
	}
	for i, m := range []func(m *prediction.Model[body, push]){
		func(m *prediction.Model[body, push]) { m.Simulate = nil },
		func(m *prediction.Model[body, push]) { m.Distance = nil },
		func(m *prediction.Model[body, push]) { m.WriteInput = nil },
		func(m *prediction.Model[body, push]) { m.ReadInput = nil },
		func(m *prediction.Model[body, push]) { m.WriteState = nil },
		func(m *prediction.Model[body, push]) { m.ReadState = nil },
		func(m *prediction.Model[body, push]) { m.WriteClaim = m.WriteState },
		func(m *prediction.Model[body, push]) { m.MaxDelta = time.Millisecond - 1 },
		func(m *prediction.Model[body, push]) { m.MaxDelta = time.Second + 1 },
		func(m *prediction.Model[body, push]) { m.Interval = time.Millisecond - time.Microsecond },
		func(m *prediction.Model[body, push]) { m.Interval = 125*time.Millisecond + time.Microsecond },
	} {
		cfg := prediction.ClientConfig[body, push]{Model: model()}
		m(&cfg.Model)
		_, err := prediction.NewClient(cfg, body{}, 0)
		require.ErrorIs(t, err, prediction.ErrConfig, "case %d", i)
	}
	for i, cfg := range []prediction.ClientConfig[body, push]{
		{Redundancy: 8}, {Redundancy: -1}, {SendInterval: time.Second / 120}, {SendInterval: 200 * ms}, {MaxMoves: 16}, {MaxMoves: 1024},
		{Smoothing: prediction.SmootherConfig{Time: ms}},
	} {
		cfg.Model = model()
		_, err := prediction.NewClient(cfg, body{}, 0)
		require.NoError(t, err, "case %d", i)
	}
	for i, cfg := range []prediction.ServerConfig[body, push]{
		{ForceAfter: -1}, {MaxForced: 3 * time.Second}, {MaxDiscrepancy: -1}, {Drift: -1}, {Drift: 0.1}, {PayBack: 1}, {MovesPerTick: 16}, {MovesPerTick: 4096},
	} {
		cfg.Model = model()
		_, err := prediction.NewServer(cfg, body{}, 0)
		require.NoError(t, err, "case %d", i)
	}
	_, err := prediction.NewServer(prediction.ServerConfig[body, push]{Model: model(), MaxForced: 3*time.Second + 1}, body{}, 0)
	require.ErrorIs(t, err, prediction.ErrConfig)
}

// TestSimulating: a model is told the timestamp of the move that it simulates, and whether it was simulated before; after a correction the next move is a new one.
// What a client did is counted.
func TestSimulating(t *testing.T) {
	type call struct {
		at    time.Duration
		again bool
	}
	var calls []call
	var c *prediction.Client[body, push]
	m := model()
	m.Simulate = func(s *body, in push, dt time.Duration) {
		at, again := c.Simulating()
		calls = append(calls, call{at, again})
		simulate(s, in, dt)
	}
	var done []prediction.Correction
	const epoch = 10 * time.Second
	c, err := prediction.NewClient(prediction.ClientConfig[body, push]{Model: m, MaxMoves: 16, CanCombine: func(_ *body, a, b *push) bool { return *a == *b },
		Corrected: func(c prediction.Correction) { done = append(done, c) }}, body{}, epoch)
	require.NoError(t, err)
	told := func(want ...call) {
		require.Equal(t, want, calls)
		calls = nil
	}
	c.Move(epoch+50*ms, push{1, 0})
	told(call{50 * ms, false})
	c.Move(epoch+125*ms, push{1, 0})
	told(call{125 * ms, true})
	c.Move(epoch+126*ms, push{1, 0})
	told(call{126 * ms, false})
	c.Move(epoch+130*ms, push{0, 1})
	told(call{130 * ms, false})
	require.Equal(t, prediction.ClientCounters{Moves: 3, Combined: 1}, c.Counters)
	require.NoError(t, c.Receive(epoch+200*ms, replyOf(true, 125*ms, 1, body{X: 3})))
	told(call{126 * ms, true}, call{130 * ms, true})
	require.Len(t, done, 1)
	require.Equal(t, 125*ms, done[0].At)
	require.Equal(t, 75*ms, done[0].Age)
	require.Equal(t, 2, done[0].Replayed)
	c.Move(epoch+210*ms, push{0, 1})
	told(call{210 * ms, false})
	require.Equal(t, prediction.ClientCounters{Moves: 4, Combined: 1, Corrections: 1, Replayed: 2}, c.Counters)
	require.NoError(t, c.Receive(epoch+220*ms, replyOf(false, 210*ms, 0, body{})))
	require.Equal(t, uint64(1), c.Counters.Acks)
	require.NoError(t, c.Receive(epoch+220*ms, replyOf(false, 210*ms+4*time.Second, 0, body{})), "as far ahead as may be")
	require.ErrorIs(t, c.Receive(epoch+220*ms, replyOf(false, 210*ms+4*time.Second+time.Microsecond, 0, body{})), prediction.ErrMessage)
	require.Equal(t, uint64(2), c.Counters.Acks)
	for i := range 20 {
		c.Move(epoch+time.Duration(300+i)*ms, push{int8(i%3 - 1), 0})
	}
	require.Equal(t, uint64(4), c.Counters.Forgotten)
	require.Equal(t, 16, c.Unacked())
	w := bitio.NewWriter(make([]byte, 400))
	ok, err := c.Send(epoch+time.Second, w)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, uint64(1), c.Counters.Messages)
	for i := range 6 {
		require.NoError(t, c.Receive(epoch+time.Second, replyOf(true, 210*ms+4*time.Second, uint8(2+i), body{})))
	}
	require.Equal(t, uint64(5), c.Counters.Corrections)
	require.Equal(t, uint64(2), c.Counters.Deferred)
}

// TestMessages: the next message goes SendInterval after the last and no earlier, repeats the moves of the two before it by default, and an important move where there
// is room.
func TestMessages(t *testing.T) {
	send := func(c *prediction.Client[body, push], now time.Duration, size int) (bits int) {
		w := bitio.NewWriter(make([]byte, size))
		ok, err := c.Send(now, w)
		require.NoError(t, err)
		if !ok {
			return 0
		}
		return w.Len()
	}
	c := newClient(t, prediction.ClientConfig[body, push]{})
	for i, again := range []uint64{0, 1, 3, 5} {
		now := time.Duration(i+1) * 16 * ms
		c.Move(now, push{1, 0})
		if i > 0 {
			require.Zero(t, send(c, now-time.Microsecond, 400))
		}
		require.NotZero(t, send(c, now, 400))
		require.Equal(t, again, c.Counters.SentAgain)
	}
	require.Equal(t, uint64(4), c.Counters.Messages)

	c = newClient(t, prediction.ClientConfig[body, push]{Redundancy: 1, Important: func(_, in *push) bool { return in.Y > 0 }})
	at := time.Duration(0)
	move := func(n int, in push) {
		for range n {
			at += ms
			c.Move(at, in)
		}
	}
	now := time.Second
	next := func() int {
		now += time.Second
		return send(c, now, 400)
	}
	move(1, push{1, 0})
	next()
	require.NoError(t, c.Receive(now, replyOf(false, at, 0, body{})))
	move(1, push{0, 1}) // important
	move(3, push{1, 0})
	next()
	move(8, push{1, 0})
	next()
	require.Equal(t, uint64(4), c.Counters.SentAgain)
	move(8, push{1, 0})
	next()
	require.Equal(t, uint64(4+8), c.Counters.SentAgain, "there is no room for more")
	move(1, push{1, 0})
	next()
	require.Equal(t, uint64(4+8+9), c.Counters.SentAgain, "the moves of the last message and the important one")
	move(1, push{1, 0})
	require.NotZero(t, send(c, now+time.Second, 43), "alone")
	require.Equal(t, uint64(4+8+9), c.Counters.SentAgain, "nothing but the new move fitted")
}

// TestFollowsOnly: a client takes over another's moves only when the server has told its state, it has none of its own, and there are some to take over that go on
// from that state.
func TestFollowsOnly(t *testing.T) {
	made := func(heard int, moves ...int) *prediction.Client[[2]int, int] {
		c, err := prediction.NewClient(prediction.ClientConfig[[2]int, int]{Model: steps()}, [2]int{}, 50*interval)
		require.NoError(t, err)
		if heard > 0 {
			w := bitio.NewWriter(make([]byte, 64))
			w.WriteBool(false)
			w.WriteBits(uint64(time.Duration(heard)*interval/time.Microsecond), 52)
			require.NoError(t, c.Receive(0, bitio.NewReader(w.Bytes(), w.Len())))
		}
		for _, m := range moves {
			c.Move(time.Duration(m)*interval, 1)
		}
		return c
	}
	require.Equal(t, 101*interval, made(0, 101).Timestamp(), "timestamps are the shared time, whenever the client was made")
	for _, c := range []struct {
		to, from *prediction.Client[[2]int, int]
		follows  bool
	}{
		{made(100), made(100, 101, 102), true},
		{made(102), made(100, 101, 102), true},
		{made(0), made(100, 101, 102), false},
		{made(100, 101), made(100, 101, 102), false},
		{made(100), made(100), false},
		{made(103), made(100, 101, 102), false},
		{made(99), made(100, 101, 102), false},
	} {
		require.Equal(t, c.follows, c.to.Follow(0, c.from))
		if c.follows {
			require.Equal(t, 102*interval, c.to.Timestamp())
		}
	}
	far := made(0)
	w := bitio.NewWriter(make([]byte, 64))
	w.WriteBool(false)
	w.WriteBits(1<<51, 52)
	require.NoError(t, far.Receive(0, bitio.NewReader(w.Bytes(), w.Len())))
	w = bitio.NewWriter(make([]byte, 64))
	w.WriteBool(false)
	w.WriteBits(1<<51+1, 52)
	require.ErrorIs(t, far.Receive(0, bitio.NewReader(w.Bytes(), w.Len())), prediction.ErrMessage)
}

// movesOf writes a message by hand: of moves at whole timestamps.
func movesOf(applied uint8, claim body, ats ...time.Duration) *bitio.Reader {
	w := bitio.NewWriter(make([]byte, 512))
	w.WriteUint8(applied)
	w.WriteInt(uint32(len(ats)-1), 16)
	w.WriteBool(true)
	w.WriteBits(uint64(ats[0]/time.Microsecond), 52)
	in := push{1, 0}
	for i, at := range ats {
		if i > 0 {
			w.WriteIntPacked64(uint64((at - ats[i-1]) / time.Microsecond))
		}
		model().WriteInput(w, &in)
	}
	model().WriteState(w, &claim)
	return bitio.NewReader(w.Bytes(), w.Len())
}

// TestGuardExactly: a client gets MaxDiscrepancy ahead and no further, is found once, and gets its share from then on until it is no longer ahead. A clock that goes
// back gives it nothing.
func TestGuardExactly(t *testing.T) {
	var got []time.Duration
	m := model()
	m.Simulate = func(s *body, in push, dt time.Duration) { got = append(got, dt) }
	s, err := prediction.NewServer(prediction.ServerConfig[body, push]{Model: m, MaxDiscrepancy: 250 * ms, Drift: -1, ForceAfter: -1}, body{}, 0)
	require.NoError(t, err)
	require.NoError(t, s.Receive(0, movesOf(0, body{}, 100*ms, 200*ms, 250*ms)))
	require.Zero(t, s.Counters.SpeedHacks)
	require.Zero(t, s.Counters.Cut)
	s.Tick(0)
	require.NoError(t, s.Receive(50*ms, movesOf(0, body{}, 350*ms, 450*ms)))
	require.Equal(t, []time.Duration{100 * ms, 100 * ms, 50 * ms, 50 * ms}, got, "of the last nothing")
	require.Equal(t, uint64(1), s.Counters.SpeedHacks)
	require.Equal(t, uint64(2), s.Counters.Cut)
	d, paying := s.Discrepancy()
	require.Equal(t, 250*ms, d)
	require.True(t, paying)
	s.Tick(150 * ms)
	require.NoError(t, s.Receive(150*ms, movesOf(0, body{}, 550*ms)))
	require.Equal(t, 50*ms, got[4], "half of what has passed")
	require.Equal(t, uint64(1), s.Counters.SpeedHacks)
	d, paying = s.Discrepancy()
	require.Equal(t, 200*ms, d)
	require.True(t, paying)
	s.Tick(100 * ms)
	d, _ = s.Discrepancy()
	require.Equal(t, 200*ms, d)
	s.Tick(549 * ms)
	_, paying = s.Discrepancy()
	require.True(t, paying)
	s.Tick(550 * ms)
	d, paying = s.Discrepancy()
	require.Equal(t, -200*ms, d)
	require.False(t, paying)
	require.Equal(t, uint64(3), s.Counters.Messages)
	require.Equal(t, uint64(6), s.Counters.Moves)

	s, err = prediction.NewServer(prediction.ServerConfig[body, push]{Model: model(), MaxDiscrepancy: -1}, body{}, 0)
	require.NoError(t, err)
	require.NoError(t, s.Receive(0, movesOf(0, body{}, time.Second, 2*time.Second, 3*time.Second)))
	require.Zero(t, s.Counters.SpeedHacks)
	require.ErrorIs(t, s.Receive(0, movesOf(0, body{}, time.Microsecond<<52-time.Microsecond, time.Microsecond<<52)), prediction.ErrMessage)
	require.NoError(t, s.Receive(0, movesOf(0, body{}, time.Microsecond<<52-2*time.Microsecond, time.Microsecond<<52-time.Microsecond)))
}

// TestSilentExactly: a silent client is moved on after ForceAfter in steps of MaxDelta, each of which is told its timestamp, and counted; NextDeadline says when.
func TestSilentExactly(t *testing.T) {
	var s *prediction.Server[body, push]
	var ats, steps []time.Duration
	m := model()
	m.Simulate = func(_ *body, _ push, dt time.Duration) { ats, steps = append(ats, s.Simulating()), append(steps, dt) }
	s, err := prediction.NewServer(prediction.ServerConfig[body, push]{Model: m, MaxError: 1e9}, body{}, 0)
	require.NoError(t, err)
	_, due := s.NextDeadline()
	require.False(t, due, "before the first move")
	s.Tick(time.Second)
	require.Empty(t, ats)
	require.NoError(t, s.Receive(time.Second, movesOf(0, body{}, 10*ms)))
	at, due := s.NextDeadline()
	require.True(t, due)
	require.Zero(t, at, "an ack")
	ok, err := s.Reply(time.Second, bitio.NewWriter(make([]byte, 64)))
	require.NoError(t, err)
	require.True(t, ok)
	at, due = s.NextDeadline()
	require.True(t, due)
	require.Equal(t, 1250*ms+time.Microsecond, at)
	s.Tick(1250 * ms)
	require.Len(t, ats, 1)
	s.Tick(1450 * ms)
	require.Equal(t, []time.Duration{10 * ms, 135 * ms, 210 * ms}, ats)
	require.Equal(t, []time.Duration{10 * ms, 125 * ms, 75 * ms}, steps)
	require.Equal(t, 210*ms, s.Timestamp())
	require.Equal(t, uint64(2), s.Counters.Forced)
	at, _ = s.NextDeadline()
	require.Equal(t, 1450*ms+time.Microsecond, at)
	s.Tick(time.Minute)
	require.Equal(t, 1010*ms, s.Timestamp(), "MaxForced")
	_, due = s.NextDeadline()
	require.False(t, due)

	s, err = prediction.NewServer(prediction.ServerConfig[body, push]{Model: m, ForceAfter: -1}, body{}, 0)
	require.NoError(t, err)
	require.NoError(t, s.Receive(0, movesOf(0, body{}, 10*ms)))
	_, err = s.Reply(0, bitio.NewWriter(make([]byte, 64)))
	require.NoError(t, err)
	_, due = s.NextDeadline()
	require.False(t, due, "never forced")
}

// TestRepliesExactly: when acks and corrections are due again, how large corrections and their distances are told, and that a reply that doesn't fit stays due and
// leaves nothing behind.
func TestRepliesExactly(t *testing.T) {
	reply := func(s *prediction.Server[body, push], now time.Duration) {
		w := bitio.NewWriter(make([]byte, 2))
		ok, err := s.Reply(now, w)
		require.ErrorIs(t, err, prediction.ErrRoom)
		require.False(t, ok)
		require.NoError(t, w.Err())
		ok, err = s.Reply(now, bitio.NewWriter(make([]byte, 64)))
		require.NoError(t, err)
		require.True(t, ok)
	}
	none := func(s *prediction.Server[body, push], now time.Duration) {
		ok, err := s.Reply(now, bitio.NewWriter(make([]byte, 64)))
		require.NoError(t, err)
		require.False(t, ok)
	}
	for _, large := range []float64{0, 5, 4.99} {
		s := newServer(t, prediction.ServerConfig[body, push]{LargeError: large, ForceAfter: -1, MaxError: 0.5})
		require.NoError(t, s.Receive(time.Second, movesOf(0, body{}, 10*ms)))
		now := time.Second
		reply(s, now)
		is := *s.State()
		s.State().X += 5
		is.X = s.State().X - 5
		now += 10 * ms
		s.Tick(now)
		held := *s.State()
		simulate(&held, push{1, 0}, ms)
		claim := held
		claim.X -= 5
		require.NoError(t, s.Receive(now, movesOf(0, claim, 11*ms)))
		n, apart := s.LastCorrection()
		require.Equal(t, uint8(1), n)
		require.InDelta(t, 5, apart, 1e-9)
		reply(s, now)
		at, due := s.NextDeadline()
		require.True(t, due)
		require.Equal(t, now+time.Second, at, "the client has been silent since")
		require.NoError(t, s.Receive(now+ms, movesOf(0, body{}, 12*ms)))
		at, _ = s.NextDeadline()
		if large == 4.99 {
			require.Equal(t, now+50*ms, at)
		} else {
			require.Equal(t, now+100*ms, at)
		}
		none(s, at-1)
		s.Correct()
		_, apart = s.LastCorrection()
		require.Zero(t, apart)
		require.Equal(t, uint64(1), s.Counters.Corrections)
	}
	s := newServer(t, prediction.ServerConfig[body, push]{MaxError: 1e9, ForceAfter: -1})
	require.NoError(t, s.Receive(0, movesOf(0, body{}, 10*ms)))
	reply(s, 0)
	require.NoError(t, s.Receive(ms, movesOf(0, body{}, 11*ms)))
	none(s, 99*ms)
	reply(s, 100*ms)
	require.Equal(t, uint64(2), s.Counters.Acks)
	s.Correct()
	require.NoError(t, s.Receive(100*ms, movesOf(1, body{}, 12*ms)), "it has applied the first")
	for range 300 {
		s.Correct()
	}
	n, _ := s.LastCorrection()
	require.Equal(t, uint8(101), n, "100 more than the client has")
}

// TestSmootherExactly: an offset of just Max or Snap is within it, and one that has faded to less than a ten thousandth is gone.
func TestSmootherExactly(t *testing.T) {
	s, err := prediction.NewSmoother(prediction.SmootherConfig{Time: ms, Max: 10, Snap: 100})
	require.NoError(t, err)
	s.Jump(0, [3]float64{10}, [3]float64{})
	require.Equal(t, [3]float64{10}, s.Offset(0))
	require.NotZero(t, s.Offset(9*ms))
	require.Zero(t, s.Offset(19*ms))
	s, err = prediction.NewSmoother(prediction.SmootherConfig{Snap: 100})
	require.NoError(t, err)
	s.Jump(0, [3]float64{100}, [3]float64{})
	require.Equal(t, [3]float64{100}, s.Offset(0))
	_, err = prediction.NewSmoother(prediction.SmootherConfig{Max: math.NaN()})
	require.ErrorIs(t, err, prediction.ErrConfig)
}

// ticksOf writes a message of moves of whole ticks by hand; a claim of the last is that of nobody.
func ticksOf(applied uint8, ats ...time.Duration) *bitio.Reader {
	m := steps()
	w := bitio.NewWriter(make([]byte, 512))
	w.WriteUint8(applied)
	w.WriteInt(uint32(len(ats)-1), 16)
	w.WriteBool(true)
	w.WriteBits(uint64(ats[0]/time.Microsecond), 52)
	in, claim := 1, [2]int{}
	for i, at := range ats {
		if i > 0 {
			w.WriteIntPacked64(uint64((at - ats[i-1]) / time.Microsecond))
		}
		m.WriteInput(w, &in)
	}
	m.WriteState(w, &claim)
	return bitio.NewReader(w.Bytes(), w.Len())
}

// TestTicksExactly: a move that is no tick's is refused and counted; how long moves waited is told and counted; a tick without its move corrects the player, however
// far its last claim was off; a move that came too early is told until one comes that didn't.
func TestTicksExactly(t *testing.T) {
	var s *prediction.Server[[2]int, int]
	type call struct {
		at, waited time.Duration
		in         int
	}
	var calls []call
	m := steps()
	m.Simulate = func(_ *[2]int, in int, _ time.Duration) { calls = append(calls, call{s.Simulating(), s.Waited(), in}) }
	s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: m, MaxError: 10}, [2]int{}, 100*interval+7*ms)
	require.NoError(t, err)
	require.Equal(t, 100*interval, s.Timestamp())
	require.NoError(t, s.Receive(100*interval+7*ms, ticksOf(0, 101*interval, 102*interval, 102*interval+ms, 103*interval)))
	require.Equal(t, uint64(1), s.Counters.Ahead)
	s.Tick(101 * interval)
	s.Tick(103 * interval)
	require.Equal(t, []call{{101 * interval, 13 * ms, 1}, {102 * interval, 53 * ms, 1}, {103 * interval, 53 * ms, 1}}, calls)
	require.Equal(t, uint64((13+53+53)*1000), s.Counters.Waited)
	require.Equal(t, uint64(3), s.Counters.Moves)
	require.Equal(t, uint64(1), s.Counters.Good)
	n, _ := s.LastCorrection()
	require.Zero(t, n)
	s.Tick(104 * interval)
	require.Equal(t, call{104 * interval, 0, 1}, calls[3], "forced")
	n, apart := s.LastCorrection()
	require.Equal(t, uint8(1), n)
	require.Zero(t, apart)

	require.NoError(t, s.Receive(104*interval, ticksOf(1, 104*interval)))
	require.Equal(t, uint64(1), s.Counters.Old)
	require.Equal(t, uint64(1), s.Counters.Late)
	require.NoError(t, s.Receive(104*interval, ticksOf(1, 104*interval)))
	require.Equal(t, uint64(2), s.Counters.Old)
	require.Equal(t, uint64(1), s.Counters.Late, "told once")
	require.NoError(t, s.Receive(104*interval, ticksOf(1, 168*interval)))
	require.Equal(t, uint64(1), s.Counters.Ahead)
	require.NoError(t, s.Receive(104*interval, ticksOf(1, 169*interval)))
	require.Equal(t, uint64(2), s.Counters.Ahead)
	at, early, ok := s.Tightest()
	require.True(t, ok)
	require.Equal(t, 169*interval, at)
	require.Equal(t, 65*interval, early)
	require.NoError(t, s.Receive(104*interval, ticksOf(1, 105*interval)))
	at, early, _ = s.Tightest()
	require.Equal(t, 168*interval, at, "of the last ticks")
	require.Equal(t, 64*interval, early)

	plain := newServer(t, prediction.ServerConfig[body, push]{})
	_, _, ok = plain.Tightest()
	require.False(t, ok)
	plain.Skip(time.Hour)
}

// TestStoodStill: how early moves come says nothing of the path when this end stood still, for the ticks before it went on; a frame of 200 ms, and one that is no
// longer than those before it, is no standstill.
func TestStoodStill(t *testing.T) {
	for _, c := range []struct {
		frame, pause time.Duration
		stood        bool
	}{{60 * ms, 240*ms - 28, false}, {60 * ms, 240*ms - 27, true}, {interval, 200 * ms, false}, {interval, 220 * ms, true}, {interval, time.Second, true}, {60 * ms, 230 * ms, false}, {60 * ms, 300 * ms, true}} {
		s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps(), MaxError: 10}, [2]int{}, 0)
		require.NoError(t, err)
		now := time.Duration(0)
		for range 200 {
			now += c.frame
			s.Tick(now)
		}
		before := now
		now += c.pause
		require.NoError(t, s.Receive(now, ticksOf(0, before-before%interval+interval)))
		_, early, ok := s.Tightest()
		require.Equal(t, !c.stood, ok, "a frame of %v after those of %v: %v", c.pause, c.frame, early)
		s.Tick(now)
		next := now - now%interval + 2*interval
		require.NoError(t, s.Receive(now, ticksOf(0, next)))
		if c.stood {
			at, early, ok := s.Tightest()
			require.True(t, ok)
			require.Equal(t, next, at)
			require.Equal(t, next-now, early)
		}
	}
}

// TestPausesExactly: after a pause of up to one tick more than MovesPerTick all of its ticks are simulated, once each; after a longer one the last MovesPerTick.
func TestPausesExactly(t *testing.T) {
	for _, ticks := range []int{1, 2, 126, 127, 128, 129, 130, 131, 500} {
		for _, more := range []time.Duration{0, 1, 7 * ms, interval - 1} {
			s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps()}, [2]int{}, 0)
			require.NoError(t, err)
			s.Tick(1000 * interval)
			require.Equal(t, 1000*interval, s.Timestamp())
			before := s.State()[1]
			s.Tick(time.Duration(1000+ticks)*interval + more)
			want := ticks
			if ticks > 129 || ticks == 129 && more > 0 {
				want = 128
			}
			require.Equal(t, want, s.State()[1]-before, "a pause of %d ticks and %v", ticks, more)
			require.Equal(t, time.Duration(1000+ticks)*interval, s.Timestamp())
		}
	}
}

// TestFramesOfManyMessages: messages that are read in one frame make it no shorter: a long one as ever is no standstill.
func TestFramesOfManyMessages(t *testing.T) {
	s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps(), MaxError: 10}, [2]int{}, 0)
	require.NoError(t, err)
	now := time.Duration(0)
	for range 100 {
		now += 260 * ms
		for range 20 {
			require.NoError(t, s.Receive(now, ticksOf(0, interval)))
		}
		s.Tick(now)
	}
	before := now
	now += 260 * ms
	require.NoError(t, s.Receive(now, ticksOf(0, before-before%interval+2*interval)))
	at, _, ok := s.Tightest()
	require.True(t, ok)
	require.Equal(t, before-before%interval+2*interval, at)
}

// TestRefusedExactly: a client all of whose moves have been refused for more than 24 ticks, and which says that it has applied the last correction, gets another one; one whose
// newest move waits for its tick doesn't, nor one that has another correction to apply, or none.
func TestRefusedExactly(t *testing.T) {
	m := steps()
	m.Distance = func(_, _ *[2]int) float64 { return 0 }
	s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: m}, [2]int{}, 1000*interval)
	require.NoError(t, err)
	now, number := 1000*interval, uint8(1)
	receive := func(want uint8, why string, applied uint8, ats ...time.Duration) {
		t.Helper()
		require.NoError(t, s.Receive(now, ticksOf(applied, ats...)))
		got, _ := s.LastCorrection()
		require.Equal(t, want, got, why)
	}
	old := now - 10*interval
	receive(0, "it has nothing to apply", 0, old)
	s.Correct()
	receive(1, "there was no time yet", 1, old)
	for range 24 {
		now += interval
		s.Tick(now)
		receive(1, "24 ticks", 1, old)
	}
	now += interval
	s.Tick(now)
	receive(1, "it hasn't applied the last", 0, old)
	receive(1, "its newest move is in time", 1, now+interval)
	receive(2, "the first is in time, and the newest isn't", 1, now+interval, now+200*interval)
	receive(3, "too early alone", 2, now+200*interval)
	for number = 3; number < 130; number++ {
		receive(number+1, "again", number, old)
	}
	s.Correct()
	got, _ := s.LastCorrection()
	require.Equal(t, number+1, got, "numbers go on")
	now += interval
	s.Tick(now)
	require.NoError(t, s.Receive(now, ticksOf(got, now+interval)))
	now += interval
	s.Tick(now)
	for range 30 {
		now += interval
		require.NoError(t, s.Receive(now-interval, ticksOf(got, now)))
		s.Tick(now)
	}
	after, _ := s.LastCorrection()
	for range 3 {
		receive(after, "it has nothing to apply", after, old)
	}
}

// TestAcksOfMoves: whoever sends moves is answered, also before their ticks.
func TestAcksOfMoves(t *testing.T) {
	s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps()}, [2]int{}, 100*interval)
	require.NoError(t, err)
	w := bitio.NewWriter(make([]byte, 100))
	ok, err := s.Reply(100*interval, w)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, s.Receive(100*interval, ticksOf(0, 103*interval)))
	ok, err = s.Reply(100*interval, w)
	require.NoError(t, err)
	require.True(t, ok)
	require.False(t, bitio.NewReader(w.Bytes(), w.Len()).ReadBool(), "it is no correction")
}

// TestSkipAfterContinue: Skip takes this server's time, that of the ticks may be another one's.
func TestSkipAfterContinue(t *testing.T) {
	s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps()}, [2]int{}, 0)
	require.NoError(t, err)
	s.Continue(prediction.Carried[[2]int, int]{At: 50 * interval}, 1000*interval)
	s.Tick(1049 * interval)
	require.Equal(t, 50*interval, s.Timestamp())
	s.Skip(1055 * interval)
	s.Tick(1060 * interval)
	require.Equal(t, 61*interval, s.Timestamp())
	require.Equal(t, 5, s.State()[1])
	ok, err := s.Reply(1060*interval, bitio.NewWriter(make([]byte, 100)))
	require.NoError(t, err)
	require.True(t, ok)
	at, ok := s.NextDeadline()
	require.True(t, ok)
	require.Equal(t, 1061*interval, at, "the next tick, by this server's time")
}

// TestCarryExactly: what is carried of how early moves come is the earliest of the last 24 ticks; four ticks when none came in time.
func TestCarryExactly(t *testing.T) {
	s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps()}, [2]int{}, 100*interval)
	require.NoError(t, err)
	require.Equal(t, 4*interval, s.Carry().Early)
	require.NoError(t, s.Receive(100*interval+ms, ticksOf(0, 99*interval)))
	require.Equal(t, 4*interval, s.Carry().Early, "it came too late")
	require.NoError(t, s.Receive(100*interval+ms, ticksOf(0, 101*interval)))
	require.Equal(t, interval-ms, s.Carry().Early)
	require.NoError(t, s.Receive(100*interval+ms, ticksOf(0, 103*interval)))
	for tick := 104 * interval; tick < 130*interval; tick += interval {
		require.NoError(t, s.Receive(tick-interval, ticksOf(0, tick)))
		want := interval
		if tick < 127*interval {
			want = 3*interval - ms
		}
		require.Equal(t, want, s.Carry().Early, "at %v", tick)
	}
	plain := newServer(t, prediction.ServerConfig[body, push]{})
	require.Zero(t, plain.Carry().Early)
}

// TestMissedIsNoDistance: a correction for a tick without its move has no distance, and isn't large, whatever the one before was.
func TestMissedIsNoDistance(t *testing.T) {
	m, off := steps(), 5.0
	m.Distance = func(_, _ *[2]int) float64 { return off }
	s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: m, MaxError: 1, LargeError: 2, LargeInterval: 50 * ms, CorrectionInterval: 300 * ms}, [2]int{}, 100*interval)
	require.NoError(t, err)
	require.NoError(t, s.Receive(100*interval, ticksOf(0, 101*interval)))
	s.Tick(101 * interval)
	n, apart := s.LastCorrection()
	require.Equal(t, []any{uint8(1), 5.0}, []any{n, apart})
	off = 0
	require.NoError(t, s.Receive(101*interval, ticksOf(1, 102*interval)))
	s.Tick(102 * interval)
	n, apart = s.LastCorrection()
	require.Equal(t, []any{uint8(1), 5.0}, []any{n, apart})
	s.Tick(103 * interval)
	n, apart = s.LastCorrection()
	require.Equal(t, []any{uint8(2), 0.0}, []any{n, apart})
	ok, err := s.Reply(103*interval, bitio.NewWriter(make([]byte, 100)))
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, s.Receive(103*interval+ms, ticksOf(0, 104*interval)))
	at, ok := s.NextDeadline()
	require.True(t, ok)
	require.Equal(t, 104*interval, at)
	for _, after := range []time.Duration{50 * ms, 299 * ms, 300 * ms} {
		ok, err = s.Reply(103*interval+after, bitio.NewWriter(make([]byte, 100)))
		require.NoError(t, err)
		require.Equal(t, after == 300*ms, ok, "%v later", after)
	}
}

// TestTightestOfTheLast: the tightest move is looked for among the last 24 ticks.
func TestTightestOfTheLast(t *testing.T) {
	s, err := prediction.NewServer(prediction.ServerConfig[[2]int, int]{Model: steps()}, [2]int{}, 100*interval)
	require.NoError(t, err)
	for n := range 30 {
		tick := time.Duration(101 + n)
		now := 100*interval + 10*ms + time.Duration(n)*ms
		require.NoError(t, s.Receive(now, ticksOf(0, tick*interval)))
		at, early, ok := s.Tightest()
		require.True(t, ok)
		want := max(101, tick-23) * interval
		require.Equal(t, want, at, "at %d", n)
		require.Equal(t, want-(100*interval+10*ms+(want/interval-101)*ms), early)
	}
}
