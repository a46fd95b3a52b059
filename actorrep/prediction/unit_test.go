package prediction_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

func newClient(t testing.TB, cfg prediction.ClientConfig[body, push]) *prediction.Client[body, push] {
	cfg.Model = model()
	c, err := prediction.NewClient(cfg, body{}, 0)
	require.NoError(t, err)
	return c
}

func newServer(t testing.TB, cfg prediction.ServerConfig[body, push]) *prediction.Server[body, push] {
	cfg.Model = model()
	s, err := prediction.NewServer(cfg, body{}, 0)
	require.NoError(t, err)
	return s
}

// replyOf writes a reply by hand.
func replyOf(correction bool, at time.Duration, number uint8, s body) *bitio.Reader {
	w := bitio.NewWriter(make([]byte, 64))
	w.WriteBool(correction)
	w.WriteBits(uint64(at/time.Microsecond), 52)
	if correction {
		w.WriteUint8(number)
		model().WriteState(w, &s)
	}
	return bitio.NewReader(w.Bytes(), w.Len())
}

// The client against a naive one that keeps every move for ever and computes its state anew from the last
// correction each time.
func TestClientModel(t *testing.T) {
	type made struct {
		at time.Duration
		in push
	}
	seeds := uint64(100)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 3))
		c := newClient(t, prediction.ClientConfig[body, push]{MaxMoves: 1024})
		var all []made
		base, baseAt, number, corrections := body{}, time.Duration(0), uint8(0), 0
		now, acked, newest, epoch := time.Duration(0), time.Duration(0), time.Duration(0), time.Duration(0)
		fresh := func() { // before the first move a reply says where timestamps begin
			if newest == 0 {
				epoch, newest = now-acked, acked
			}
		}
		for range 300 {
			what := rnd.IntN(5)
			if what == 1 && corrections == 4 {
				what = 4 // others would wait for a move
			}
			switch what {
			case 0: // an ack, sometimes of no move's timestamp
				acked = max(acked, newest-time.Duration(rnd.IntN(300))*ms)
				fresh()
				require.NoError(t, c.Receive(now, replyOf(false, acked, 0, body{})))
			case 1: // a correction
				acked = max(acked, newest+time.Duration(rnd.IntN(320)-300)*ms)
				fresh()
				corrections++
				base, baseAt, number = body{X: rnd.Float64(), VX: rnd.Float64()}, acked, number+1
				require.NoError(t, c.Receive(now, replyOf(true, baseAt, number, base)))
				newest = max(newest, baseAt)
				require.NoError(t, c.Receive(now, replyOf(true, baseAt, number, body{X: 99})), "a repeated one")
			default:
				corrections = 0
				now += time.Duration(rnd.IntN(200_000)) * time.Microsecond
				in := push{int8(rnd.IntN(3) - 1), 1}
				c.Move(now, in)
				if at := now - epoch; at > newest {
					all = append(all, made{at, in})
					newest = at
				}
			}
			want, at, unacked := base, baseAt, 0
			for _, m := range all {
				if m.at > at {
					simulate(&want, m.in, min(m.at-at, 125*ms))
					at = m.at
				}
				if m.at > acked {
					unacked++
				}
			}
			require.Equal(t, want, *c.State(), "seed %d", seed)
			require.Equal(t, unacked, c.Unacked(), "seed %d", seed)
			require.Equal(t, newest, c.Timestamp(), "seed %d", seed)
			require.Equal(t, acked, c.Acked(), "seed %d", seed)
		}
		require.NotZero(t, c.Counters.Replayed, "seed %d", seed)
	}
}

// TestManyCorrectionsAtOnce: of corrections that come at once a few apply, and the newest with the next Move or Send: a server can't make a client simulate all
// its moves again as often as it likes.
func TestManyCorrectionsAtOnce(t *testing.T) {
	const frame = 16 * ms
	for _, send := range []bool{false, true} {
		c := newClient(t, prediction.ClientConfig[body, push]{})
		for i := range 20 {
			c.Move(time.Duration(i+1)*frame, push{1, 0})
		}
		for round := range 3 {
			n := c.Counters
			for i := range 100 {
				x := float64(i) / 100
				require.NoError(t, c.Receive(0, replyOf(true, 10*frame, uint8(round*100+i+1), body{X: x})))
				require.NoError(t, c.Receive(0, replyOf(true, 9*frame, uint8(round*100+i+1), body{X: 9})), "overtaken")
			}
			applied := uint64(4 - min(round, 1)) // one is that which waited
			require.Equal(t, applied, c.Counters.Corrections-n.Corrections)
			require.LessOrEqual(t, c.Counters.Replayed-n.Replayed, 4*uint64(c.Unacked()))
			require.NotZero(t, c.Counters.Deferred)
			if send {
				_, err := c.Send(time.Duration(round)*time.Second, bitio.NewWriter(make([]byte, 200)))
				require.NoError(t, err)
			} else {
				c.Move(time.Duration(21+round)*frame, push{1, 0})
			}
			require.Equal(t, applied+1, c.Counters.Corrections-n.Corrections)
			want := body{X: 0.99}
			for at := 10 * frame; at < c.Timestamp(); at += frame {
				simulate(&want, push{1, 0}, frame)
			}
			require.Equal(t, want, *c.State(), "the newest")
		}
	}
}

func TestStaleReplies(t *testing.T) {
	c := newClient(t, prediction.ClientConfig[body, push]{})
	for i := range 20 {
		c.Move(time.Duration(i+1)*frame, push{1, 0})
	}
	require.NoError(t, c.Receive(0, replyOf(true, 10*frame, 2, body{X: 5})))
	x := c.State().X
	require.NoError(t, c.Receive(0, replyOf(true, 9*frame, 1, body{X: 50})))
	require.NoError(t, c.Receive(0, replyOf(true, 11*frame, 1, body{X: 50})))
	require.NoError(t, c.Receive(0, replyOf(false, 3*frame, 1, body{})))
	require.Equal(t, x, c.State().X)
	require.Equal(t, uint64(2), c.Counters.StaleReplies)
	require.Equal(t, uint64(1), c.Counters.Repeated)
	require.ErrorIs(t, c.Receive(0, replyOf(true, time.Minute, 3, body{})), prediction.ErrMessage)
	require.ErrorIs(t, c.Receive(0, replyOf(false, -time.Minute, 3, body{})), prediction.ErrMessage)
	require.ErrorIs(t, c.Receive(0, bitio.NewReader([]byte{1, 2, 3}, 24)), prediction.ErrMessage)
	require.Equal(t, uint64(3), c.Counters.Malformed)
}

// TestASecondClientGoesOn: a client made anew, when the server has another's timestamps, goes on from these with its first reply, and moves at
// once.
func TestASecondClientGoesOn(t *testing.T) {
	s := newServer(t, prediction.ServerConfig[body, push]{})
	buf := make([]byte, 256)
	for i, began := range []time.Duration{0, time.Hour, 2*time.Hour + 3*time.Second} {
		way := push{int8(1 - 2*(i&1)), 0}
		c := newClient(t, prediction.ClientConfig[body, push]{})
		now := began
		turn := func() {
			if w := bitio.NewWriter(buf); true {
				ok, err := c.Send(now, w)
				require.NoError(t, err)
				if ok {
					require.NoError(t, s.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
				}
			}
			s.Tick(now)
			w := bitio.NewWriter(buf)
			ok, err := s.Reply(now, w)
			require.NoError(t, err)
			if ok {
				require.NoError(t, c.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
			}
			now += frame
		}
		s.Correct()
		turn()
		x, moves := s.State().X, s.Counters.Moves
		for range 60 {
			c.Move(now, way)
			turn()
		}
		require.Greater(t, s.Counters.Moves, moves+55)
		require.NotEqual(t, x, s.State().X)
		require.InDelta(t, s.State().X, c.State().X, 1e-9)
	}
}

// Timestamps go round after 71 minutes; nobody notices.
func TestTimestampsWrap(t *testing.T) {
	c := newClient(t, prediction.ClientConfig[body, push]{})
	s := newServer(t, prediction.ServerConfig[body, push]{})
	buf := make([]byte, 256)
	for now := 30 * time.Minute; now < 5*time.Hour; now += 10 * time.Minute {
		c.Move(now, push{1, 1})
		w := bitio.NewWriter(buf)
		ok, err := c.Send(now, w)
		require.True(t, ok && err == nil)
		require.NoError(t, s.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
		require.Equal(t, now, s.Timestamp())
		s.Tick(now)
		w = bitio.NewWriter(buf)
		ok, err = s.Reply(now, w)
		require.True(t, ok && err == nil)
		require.NoError(t, c.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
		require.Equal(t, now, c.Acked())
	}
	require.Zero(t, c.Counters.Corrections)
	require.Equal(t, *s.State(), *c.State())
}

// A message of more moves than the writer has room for does without the repeated ones; moves that are
// too many for one message go with the next.
func TestRoom(t *testing.T) {
	c := newClient(t, prediction.ClientConfig[body, push]{Redundancy: 8})
	send := func(now time.Duration, size int) (int, error) {
		w := bitio.NewWriter(make([]byte, size))
		ok, err := c.Send(now, w)
		require.Equal(t, err == nil, ok)
		require.NoError(t, w.Err(), "a failed send leaves nothing behind")
		return w.Len(), err
	}
	for i := range 30 {
		c.Move(time.Duration(i+1)*frame, push{1, 0})
	}
	_, err := send(time.Second, 20)
	require.ErrorIs(t, err, prediction.ErrRoom)
	require.ErrorIs(t, err, bitio.ErrOverflow)
	s := newServer(t, prediction.ServerConfig[body, push]{})
	deliver := func(now time.Duration, size int) {
		buf := make([]byte, size)
		w := bitio.NewWriter(buf)
		ok, err := c.Send(now, w)
		require.True(t, ok && err == nil)
		require.NoError(t, s.Receive(now, bitio.NewReader(buf, w.Len())))
	}
	deliver(time.Second, 256)
	require.Equal(t, uint64(16), s.Counters.Moves)
	require.Equal(t, uint64(1), s.Counters.Good, "the claim is that of the last move sent")
	deliver(2*time.Second, 256)
	require.Equal(t, uint64(30), s.Counters.Moves)
	require.Equal(t, uint64(2), s.Counters.Good)
	require.Equal(t, *c.State(), *s.State())
	require.Equal(t, uint64(2), c.Counters.SentAgain)
	c.Move(3*time.Second, push{1, 0})
	deliver(3*time.Second, 60)
	require.Equal(t, uint64(2), c.Counters.SentAgain, "none fitted")
	_, waits := c.NextDeadline()
	require.False(t, waits)
	require.Equal(t, uint64(3), s.Counters.Good)
}

func TestImportantMoves(t *testing.T) {
	c := newClient(t, prediction.ClientConfig[body, push]{Redundancy: -1,
		Important: func(acked, in *push) bool { return *acked != *in }})
	s := newServer(t, prediction.ServerConfig[body, push]{})
	buf := make([]byte, 256)
	exchange := func(i int, in push, lost bool) {
		now := time.Duration(i) * frame
		c.Move(now, in)
		w := bitio.NewWriter(buf)
		ok, err := c.Send(now, w)
		require.True(t, ok && err == nil)
		if lost {
			return
		}
		require.NoError(t, s.Receive(now, bitio.NewReader(buf, w.Len())))
		s.Tick(now)
		w = bitio.NewWriter(buf)
		if ok, err := s.Reply(now, w); ok && err == nil {
			require.NoError(t, c.Receive(now, bitio.NewReader(buf, w.Len())))
		}
	}
	for i := 1; i <= 20; i++ {
		exchange(i, push{1, 0}, false)
	}
	require.Zero(t, c.Counters.SentAgain)
	exchange(21, push{0, 1}, true) // a tap, lost
	moves := s.Counters.Moves
	exchange(22, push{1, 0}, false)
	require.Equal(t, uint64(1), c.Counters.SentAgain)
	require.Equal(t, moves+2, s.Counters.Moves)
	require.Zero(t, s.Counters.Bad)
	require.Equal(t, *c.State(), *s.State())
}

// What the server refuses: times that don't go on, floods, claims that aren't numbers.
func TestServerRefuses(t *testing.T) {
	s := newServer(t, prediction.ServerConfig[body, push]{MovesPerTick: 16, MaxError: 1e9})
	message := func(applied uint8, from, step time.Duration, n int, claim body) error {
		w := bitio.NewWriter(make([]byte, 256))
		w.WriteUint8(applied)
		w.WriteInt(uint32(n-1), 16)
		w.WriteBool(false) // low bits of a timestamp
		w.WriteBits(uint64(from/time.Microsecond), 31)
		in := push{1, 0}
		for i := range n {
			if i > 0 {
				w.WriteIntPacked(uint32(step / time.Microsecond))
			}
			model().WriteInput(w, &in)
		}
		model().WriteState(w, &claim)
		return s.Receive(0, bitio.NewReader(w.Bytes(), w.Len()))
	}
	require.NoError(t, message(0, 10*ms, 10*ms, 3, body{}))
	require.NoError(t, message(0, 10*ms, 10*ms, 3, body{}))
	require.Equal(t, uint64(3), s.Counters.Old)
	require.ErrorIs(t, message(0, 10*ms, 0, 3, body{}), prediction.ErrMessage)
	require.NoError(t, message(0, -10*ms, ms, 3, body{}))
	require.Equal(t, 30*ms, s.Timestamp())
	require.NoError(t, message(0, 40*ms, ms, 16, body{}))
	require.Equal(t, uint64(3), s.Counters.Flooded)
	require.Equal(t, 52*ms, s.Timestamp())
	require.Equal(t, uint64(1), s.Counters.Good, "a claim isn't compared unless its move was simulated")
	s.Tick(0)
	require.NoError(t, message(0, 60*ms, ms, 1, body{X: math.NaN()}))
	require.Equal(t, uint64(1), s.Counters.Bad)
	require.NoError(t, message(7, 61*ms, ms, 1, body{}))
	require.Equal(t, uint64(1), s.Counters.Good, "a correction is under way")
	require.NoError(t, message(1, 62*ms, ms, 1, body{}))
	require.Equal(t, uint64(2), s.Counters.Good)
	require.Equal(t, uint64(1), s.Counters.Malformed)
}

// How often acks and corrections go.
func TestReplyPacing(t *testing.T) {
	for _, large := range []bool{false, true} {
		s := newServer(t, prediction.ServerConfig[body, push]{LargeError: 5})
		c := newClient(t, prediction.ClientConfig[body, push]{})
		acks := 0
		for i := 1; i <= 600; i++ {
			now := time.Duration(i) * 5 * ms
			c.Move(now, push{1, 0})
			w := bitio.NewWriter(make([]byte, 256))
			if ok, _ := c.Send(now, w); ok {
				require.NoError(t, s.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
			}
			if i == 301 {
				s.State().X -= 1
				if large {
					s.State().X -= 10
				}
			}
			s.Tick(now)
			at, due := s.NextDeadline()
			w = bitio.NewWriter(make([]byte, 256))
			_, err := s.Reply(now, bitio.NewWriter(make([]byte, 2)))
			ok, err2 := s.Reply(now, w)
			require.NoError(t, err2)
			require.Equal(t, ok, err != nil, "what doesn't fit stays due")
			require.True(t, due && (!ok || at <= now), "at %v: deadline %v", now, at)
			if i == 300 {
				acks = int(s.Counters.Acks)
			}
		}
		require.Equal(t, 15, acks)
		want := 15
		if large {
			want = 30
		}
		require.InDelta(t, want, s.Counters.Corrections, 1)
	}
}

func TestSmoother(t *testing.T) {
	s, err := prediction.NewSmoother(prediction.SmootherConfig{Max: 10, Snap: 100})
	require.NoError(t, err)
	s.Jump(0, [3]float64{4, 0, 0}, [3]float64{1, 0, 0})
	require.Equal(t, [3]float64{3, 0, 0}, s.Offset(0))
	require.InDelta(t, 3/math.E, s.Offset(100 * ms)[0], 1e-9)
	require.InDelta(t, 3/math.E/math.E, s.Offset(200 * ms)[0], 1e-9)
	require.Equal(t, s.Offset(200*ms), s.Offset(50*ms), "time doesn't go back")
	require.Zero(t, s.Offset(time.Hour))
	s.Jump(time.Hour, [3]float64{0, 30, 40}, [3]float64{})
	require.InDeltaSlice(t, []float64{0, 6, 8}, sliceOf(s.Offset(time.Hour)), 1e-9)
	s.Jump(time.Hour, [3]float64{0, 0, 100}, [3]float64{})
	require.Zero(t, s.Offset(time.Hour))
	s.Jump(time.Hour, [3]float64{math.NaN()}, [3]float64{})
	require.Zero(t, s.Offset(time.Hour))
}

func sliceOf(v [3]float64) []float64 { return v[:] }

func TestConfigs(t *testing.T) {
	bad := func(change func(*prediction.Model[body, push])) prediction.Model[body, push] {
		m := model()
		change(&m)
		return m
	}
	for i, m := range []prediction.Model[body, push]{
		{}, bad(func(m *prediction.Model[body, push]) { m.Distance = nil }),
		bad(func(m *prediction.Model[body, push]) { m.ReadState = nil }),
		bad(func(m *prediction.Model[body, push]) { m.ReadClaim = m.ReadState }),
		bad(func(m *prediction.Model[body, push]) { m.MaxDelta = 1 }),
	} {
		_, err := prediction.NewClient(prediction.ClientConfig[body, push]{Model: m}, body{}, 0)
		require.ErrorIs(t, err, prediction.ErrConfig, "case %d", i)
		_, err = prediction.NewServer(prediction.ServerConfig[body, push]{Model: m}, body{}, 0)
		require.ErrorIs(t, err, prediction.ErrConfig, "case %d", i)
	}
	for i, cfg := range []prediction.ClientConfig[body, push]{
		{Redundancy: 9}, {Redundancy: -2}, {SendInterval: ms}, {SendInterval: time.Second}, {MaxMoves: 8}, {MaxMoves: 2000},
		{Smoothing: prediction.SmootherConfig{Time: 1}}, {Smoothing: prediction.SmootherConfig{Max: -1}},
	} {
		cfg.Model = model()
		_, err := prediction.NewClient(cfg, body{}, 0)
		require.ErrorIs(t, err, prediction.ErrConfig, "case %d", i)
	}
	for i, cfg := range []prediction.ServerConfig[body, push]{
		{MaxError: -1}, {MaxError: math.NaN()}, {LargeError: -1}, {AckInterval: -1}, {CorrectionInterval: -1}, {ForceAfter: -2}, {MaxForced: 4 * time.Second},
		{MaxDiscrepancy: -2}, {Drift: 0.2}, {PayBack: 1.1}, {MovesPerTick: 4}, {MovesPerTick: 5000},
	} {
		cfg.Model = model()
		_, err := prediction.NewServer(cfg, body{}, 0)
		require.ErrorIs(t, err, prediction.ErrConfig, "case %d", i)
	}
}
