package migrate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/migrate"
)

// TestNoCheckpointForBusyCandidates: while all candidates are still being sent the checkpoint before, none is made: each that is made is sent to somebody.
func TestNoCheckpointForBusyCandidates(t *testing.T) {
	made := 0
	r := newRig(t, 3, 3, path, func(r *rig) {
		r.save, r.cfg.Rate = 20_000, 5000 // about four seconds for each
		r.saved = func(a actorrep.Actor) {
			if a == nil {
				made++
			}
		}
	})
	r.until(20 * time.Second)
	host := r.machines[0].server.host.Counters
	require.Greater(t, host.Bytes, uint64(19_000))
	require.Positive(t, host.Delivered)
	require.LessOrEqual(t, host.Checkpoints, host.Delivered+2, "two candidates, of which each may still be sent one")
	require.EqualValues(t, host.Checkpoints, made)
	require.Positive(t, host.Skipped)
	for _, m := range r.machines[1:] {
		require.Positive(t, m.follower.Counters.Checkpoints)
	}
}

// BenchmarkCheckpoint is a checkpoint of 300 actors of three classes, into the memory of the one before.
func BenchmarkCheckpoint(b *testing.B) {
	w := actorrep.NewServer(actorrep.Config{})
	register(b, w)
	for i := range 100 {
		require.NoError(b, w.Spawn(&pawn{Name: "somebody", Steps: uint32(i)}))
		require.NoError(b, w.Spawn(&flag{Color: uint8(i)}))
		require.NoError(b, w.Spawn(&clock{Count: uint32(i)}))
	}
	save := func(_ actorrep.Actor, dst []byte) []byte { return append(dst, 1, 2, 3, 4) }
	var into []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if into, err = migrate.Checkpoint(into[:0], w, save); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(into)), "B/checkpoint")
}
