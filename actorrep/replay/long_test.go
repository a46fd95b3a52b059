package replay

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

// TestFullIndex: a recording whose index is full goes on with checkpoints, and a seek finds them.
func TestFullIndex(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	var out bytes.Buffer
	r, err := Record(w, &out, Config{Checkpoints: time.Second})
	require.NoError(t, err)
	now := time.Duration(0)
	step := func(n int) {
		for range n {
			now += 100 * time.Millisecond
			w.Step(now)
		}
	}
	step(21)
	first := r.file.checkpoints[0]
	require.Len(t, r.file.checkpoints, 2)
	for len(r.file.checkpoints) < maxCheckpoints { // as if it had lasted long
		r.file.checkpoints = append(r.file.checkpoints, r.file.checkpoints[1])
	}
	step(100)
	require.EqualValues(t, 12, r.Counters.Checkpoints)
	require.Len(t, r.file.checkpoints, maxCheckpoints/2+10)
	require.Equal(t, first, r.file.checkpoints[0])
	require.NoError(t, r.Close())

	f, err := Open(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	require.False(t, f.Truncated())
	require.Equal(t, maxCheckpoints/2+10, f.Checkpoints())
	require.NoError(t, f.Play(actorrep.NewClient(actorrep.Config{})))
	require.NoError(t, f.Seek(11500*time.Millisecond))
	require.Greater(t, f.Offset(), f.file.checkpoints[maxCheckpoints/2+8].offset)
}
