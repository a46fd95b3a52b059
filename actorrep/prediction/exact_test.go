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
	}{{interval, 200 * ms, false}, {interval, 220 * ms, true}, {interval, time.Second, true}, {60 * ms, 230 * ms, false}, {60 * ms, 300 * ms, true}} {
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
