package interp_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

// TestReplays: a recording is drawn evenly, also right after a seek, forth and back.
func TestReplays(t *testing.T) {
	var file bytes.Buffer
	server := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, server.Register("Walker", (*walker)(nil), actorrep.UpdateFrequency(20)))
	rec, err := replay.Record(server, &file, replay.Config{Checkpoints: 5 * time.Second})
	require.NoError(t, err)
	w := &walker{}
	require.NoError(t, server.Spawn(w))
	for i := range 60 * 60 {
		now := time.Duration(i) * step
		circle(0, w, now)
		server.Step(now)
	}
	require.NoError(t, rec.Close())

	replay, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	client := actorrep.NewClient(actorrep.Config{})
	require.NoError(t, client.Register("Walker", (*walker)(nil)))
	in, err := interp.New(client, interp.Config{})
	require.NoError(t, err)
	class, err := walkers(in)
	require.NoError(t, err)
	require.NoError(t, replay.Play(client))
	now := time.Duration(0)
	for _, to := range []time.Duration{0, 40 * time.Second, 10 * time.Second, 12 * time.Second} {
		require.NoError(t, replay.Seek(to))
		var drawn, before walker
		for i := range 150 {
			now += frame
			require.NoError(t, replay.Step(now))
			in.Tick(now)
			for a := range client.All {
				before.Pos = drawn.Pos
				class.At(a.(*walker), &drawn)
				require.InDelta(t, 5, vec{}.to(drawn.Pos), 0.1)
				if i > 30 {
					require.Less(t, before.Pos.to(drawn.Pos), 1.7*5*frame.Seconds(), "to %v, frame %d", to, i)
					at, ok := class.Time(a.(*walker))
					require.True(t, ok)
					require.InDelta(t, math.Mod(at.Seconds(), 2*math.Pi), math.Mod(math.Atan2(drawn.Pos.Y, drawn.Pos.X)+2*math.Pi, 2*math.Pi), 0.03)
					require.InDelta(t, (to + time.Duration(i)*frame).Seconds(), at.Seconds(), 0.4)
				}
			}
		}
	}
}
