package prediction_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Whatever comes: no panic, no more moves than a message may have, no time that goes back, no more
// simulated time than the guard allows.
func FuzzMoves(f *testing.F) {
	c := newClient(f, prediction.ClientConfig[body, push]{})
	c.Move(frame, push{1, 0})
	c.Move(2*frame, push{0, 1})
	w := bitio.NewWriter(make([]byte, 128))
	_, err := c.Send(time.Second, w)
	require.NoError(f, err)
	f.Add(w.Bytes(), uint16(20)) // as a client writes them
	f.Add([]byte{0, 255, 255, 255, 255, 255, 255, 255, 255}, uint16(1))
	f.Fuzz(func(t *testing.T, p []byte, after uint16) {
		total := time.Duration(0)
		m := model()
		m.Simulate = func(s *body, in push, dt time.Duration) {
			if in.X < -1 || in.X > 1 || dt <= 0 || dt > 125*ms {
				t.Fatalf("simulated %v for %v", in, dt)
			}
			total += dt
		}
		s, err := prediction.NewServer(prediction.ServerConfig[body, push]{Model: m}, body{}, 0)
		require.NoError(t, err)
		now, at := time.Duration(0), time.Duration(0)
		for range 4 {
			now += time.Duration(after) * ms
			err := s.Receive(now, bitio.NewReader(p, 8*len(p)))
			require.GreaterOrEqual(t, s.Timestamp(), at)
			if err != nil {
				require.Equal(t, at, s.Timestamp(), "something was done of a malformed message")
			}
			s.Tick(now)
			at = s.Timestamp()
			_, err = s.Reply(now, bitio.NewWriter(make([]byte, 64)))
			require.NoError(t, err)
		}
		require.LessOrEqual(t, s.Counters.Moves, uint64(64))
		require.LessOrEqual(t, total, now+now/200+500*ms)
	})
}

func FuzzReply(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 2}, uint16(3))
	f.Add([]byte{0, 0, 0, 0, 0}, uint16(90))
	f.Fuzz(func(t *testing.T, p []byte, moves uint16) {
		replayed := 0
		c := newClient(t, prediction.ClientConfig[body, push]{Corrected: func(x prediction.Correction) { replayed = x.Replayed }})
		n := int(moves % 200)
		for i := range n {
			c.Move(time.Duration(i+1)*frame, push{1, 0})
		}
		newest := c.Timestamp()
		err := c.Receive(time.Second, bitio.NewReader(p, 8*len(p)))
		require.Equal(t, err != nil, c.Counters.Malformed == 1)
		require.LessOrEqual(t, replayed, 96)
		require.GreaterOrEqual(t, c.Timestamp(), newest)
		if n > 0 {
			require.LessOrEqual(t, c.Timestamp(), newest+4*time.Second)
		} else { // the server says where timestamps begin
			require.LessOrEqual(t, c.Timestamp(), time.Microsecond<<51)
		}
		c.Move(time.Hour, push{})
		ok, err := c.Send(time.Hour, bitio.NewWriter(make([]byte, 256)))
		require.True(t, ok && err == nil)
	})
}

func TestAllocs(t *testing.T) {
	c := newClient(t, prediction.ClientConfig[body, push]{CanCombine: sameDirection,
		Important: func(a, b *push) bool { return *a != *b }, Position: func(b *body) [3]float64 { return [3]float64{b.X, b.Y, 0} },
		Corrected: func(prediction.Correction) {}})
	s := newServer(t, prediction.ServerConfig[body, push]{})
	buf := make([]byte, 256)
	w, r := bitio.NewWriter(buf), bitio.NewReader(nil, 0)
	now, i := time.Duration(0), 0
	require.Zero(t, testing.AllocsPerRun(500, func() {
		now += frame
		i++
		c.Move(now, push{int8(i % 2), 0})
		w.Reset(buf)
		if ok, err := c.Send(now, w); ok && err == nil {
			r.Reset(buf, w.Len())
			if err := s.Receive(now, r); err != nil {
				t.Fatal(err)
			}
		}
		if i%20 == 0 {
			s.State().X++
		}
		s.Tick(now)
		s.NextDeadline()
		w.Reset(buf)
		if ok, err := s.Reply(now, w); ok && err == nil {
			r.Reset(buf, w.Len())
			if err := c.Receive(now, r); err != nil {
				t.Fatal(err)
			}
		}
		c.Offset(now)
	}))
	require.NotZero(t, c.Counters.Corrections)
	require.NotZero(t, c.Counters.Acks)
}

// One player of a server: a message of three moves, the tick and what it answers.
func BenchmarkServer(b *testing.B) {
	c := newClient(b, prediction.ClientConfig[body, push]{})
	s := newServer(b, prediction.ServerConfig[body, push]{})
	buf := make([]byte, 256)
	w, r := bitio.NewWriter(buf), bitio.NewReader(nil, 0)
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += frame
		c.Move(now, push{1, 0})
		w.Reset(buf)
		if _, err := c.Send(now, w); err != nil {
			b.Fatal(err)
		}
		r.Reset(buf, w.Len())
		if err := s.Receive(now, r); err != nil {
			b.Fatal(err)
		}
		s.Tick(now)
		w.Reset(buf)
		if ok, _ := s.Reply(now, w); ok {
			r.Reset(buf, w.Len())
			if err := c.Receive(now, r); err != nil {
				b.Fatal(err)
			}
		}
	}
}
