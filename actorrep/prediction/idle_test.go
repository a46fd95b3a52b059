package prediction_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestIdleWithoutMoves: after any time without a move, moves go on as before, also when those before the pause and the replies
// to them were lost.
func TestIdleWithoutMoves(t *testing.T) {
	const whole = time.Duration(1<<32) * time.Microsecond // when 32 bits wrap: 71.6 min
	for _, lossy := range []bool{false, true} {
		for _, pause := range []time.Duration{8 * time.Minute, 10 * time.Minute, 17 * time.Minute, 18 * time.Minute, 35 * time.Minute, 36 * time.Minute, 40 * time.Minute,
			whole - time.Second, whole, whole + time.Second, 80 * time.Minute, 72 * time.Hour, 10000 * time.Hour} {
			t.Run(fmt.Sprint(lossy, pause), func(t *testing.T) {
				c, err := prediction.NewClient(prediction.ClientConfig[body, push]{Model: model(), Redundancy: 3}, body{}, 0)
				require.NoError(t, err)
				s := newServer(t, prediction.ServerConfig[body, push]{})
				now := time.Duration(0)
				play := func(moves int, lost bool) {
					for i := range moves {
						now += frame
						c.Move(now, push{1, int8(i % 2)})
						exchange(t, c, s, now, lost)
					}
				}
				for range 3 {
					play(30, false)
					play(5, lossy)
					for range 100 { // silent, and the server ticks
						now += pause / 100
						exchange(t, c, s, now, false)
					}
					play(60, false)
					require.Equal(t, c.Timestamp(), s.Timestamp())
					require.Zero(t, s.Counters.Malformed+c.Counters.Malformed)
					require.LessOrEqual(t, c.Unacked(), 30)
					require.Equal(t, *c.State(), *s.State())
				}
			})
		}
	}
}

// exchange lets both ends send what they have, and the network lose it.
func exchange(t *testing.T, c *prediction.Client[body, push], s *prediction.Server[body, push], now time.Duration, lost bool) {
	w := bitio.NewWriter(make([]byte, 512))
	ok, err := c.Send(now, w)
	require.NoError(t, err)
	if ok && !lost {
		require.NoError(t, s.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
	}
	s.Tick(now)
	w = bitio.NewWriter(make([]byte, 512))
	ok, err = s.Reply(now, w)
	require.NoError(t, err)
	if ok && !lost {
		require.NoError(t, c.Receive(now, bitio.NewReader(w.Bytes(), w.Len())))
	}
}

// TestPlayWhileTimestampsWrap: a client that plays while the low bits of its timestamps wrap.
func TestPlayWhileTimestampsWrap(t *testing.T) {
	for bits := 29; bits <= 33; bits++ {
		r := newRig(t, uint64(bits), setup{})
		r.now = time.Duration(1<<bits)*time.Microsecond - 5*time.Second
		r.now = r.now.Truncate(ms)
		r.frames = int(r.now / frame)
		r.run(r.now + 10*time.Second)
		r.stop()
		r.run(r.now + 5*time.Second)
		require.Greater(t, r.s.Counters.Good, uint64(100), "%d bits", bits)
		require.Zero(t, r.s.Counters.Malformed+r.c.Counters.Malformed, "%d bits", bits)
		require.Equal(t, *r.c.State(), *r.s.State(), "%d bits", bits)
	}
}

// TestManyCorrections: the number of a correction, 8 bits, wraps.
func TestManyCorrections(t *testing.T) {
	c, err := prediction.NewClient(prediction.ClientConfig[body, push]{Model: model()}, body{}, 0)
	require.NoError(t, err)
	s := newServer(t, prediction.ServerConfig[body, push]{})
	for i := range 3000 {
		now := time.Duration(i+1) * frame
		c.Move(now, push{1, 0})
		if i%5 == 0 && i < 2900 {
			s.State().X -= 1
			s.Correct()
		}
		exchange(t, c, s, now, false)
	}
	require.Greater(t, c.Counters.Corrections, uint64(300))
	require.Equal(t, *c.State(), *s.State())
}
