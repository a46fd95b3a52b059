package actorrep_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

// sizes notes how much is written at a time.
type sizes struct{ all []int }

func (s *sizes) Write(b []byte) (int, error) {
	s.all = append(s.all, len(b))
	return len(b), nil
}

// recordedWorld is a server's world of so many actors of which some move each step, with a recording.
func recordedWorld(t testing.TB, n int, out io.Writer, cfg replay.Config) (server *actorrep.World, rec *replay.Recorder, step func(moving int)) {
	server = actorrep.NewServer(actorrep.Config{})
	require.NoError(t, server.Register("rock", (*rock)(nil)))
	require.NoError(t, server.Register("ship", (*ship)(nil), actorrep.Manual()))
	var ships []*ship
	for range n {
		s := &ship{Name: "ship", Armor: 100}
		require.NoError(t, server.Spawn(s))
		ships = append(ships, s)
	}
	if out != nil {
		var err error
		rec, err = replay.Record(server, out, cfg)
		require.NoError(t, err)
	}
	now, next := time.Duration(0), 0
	return server, rec, func(moving int) {
		for range moving {
			s := ships[next%n]
			s.Pos.X += 0.5
			s.Pos.Y += 0.25
			s.MarkDirty()
			next++
		}
		server.Step(now)
		now += tick
	}
}

// TestRecordBounds: neither the beginning nor a checkpoint makes a Step handle more actors than was said, and both come to their
// end, though actors are spawned all the time.
func TestRecordBounds(t *testing.T) {
	const n, most = 5000, 64
	out := &sizes{}
	server, rec, step := recordedWorld(t, n, out, replay.Config{Rate: -1, Checkpoints: 5 * time.Second, ActorsPerFrame: most})
	last := rec.Counters
	begun := 0
	for i := range 1200 {
		step(100)
		c := rec.Counters
		work := int(c.Opened + c.Snapshots - last.Opened - last.Snapshots)
		require.LessOrEqual(t, work, most)
		require.LessOrEqual(t, c.Frames-last.Frames, uint64(1))
		if c.Opened >= n && begun == 0 {
			begun = i
		}
		for range 10 {
			require.NoError(t, server.Spawn(&rock{Size: uint16(i)}))
		}
		last = c
	}
	require.LessOrEqual(t, begun, 2*n/most)
	require.GreaterOrEqual(t, rec.Counters.Checkpoints, uint64(2))
	require.Equal(t, most, rec.Counters.Busiest)
	require.NoError(t, rec.Close())
	require.Equal(t, most, rec.Counters.Busiest)
	for _, size := range out.all {
		require.Less(t, size, 2*64<<10)
	}
}

// TestAllocsRecord: a Step with a recording allocates nothing, checkpoints included.
func TestAllocsRecord(t *testing.T) {
	_, rec, step := recordedWorld(t, 500, io.Discard, replay.Config{Rate: -1, Checkpoints: time.Second, ActorsPerFrame: 32})
	for range 2000 {
		step(200)
	}
	was := rec.Counters
	require.Zero(t, testing.AllocsPerRun(200, func() { step(200) }))
	require.Greater(t, rec.Counters.Checkpoints, was.Checkpoints+2)
	require.Greater(t, rec.Counters.Blocks, was.Blocks)
}

// BenchmarkRecord is a Step of a world with a recording of every Step, as against one without.
func BenchmarkRecord(b *testing.B) {
	for _, c := range []struct {
		name           string
		actors, moving int
		record         bool
		checkpoints    time.Duration
	}{
		{"1000 actors, 100 move/alone", 1000, 100, false, 0},
		{"1000 actors, 100 move/recorded", 1000, 100, true, -1},
		{"1000 actors, all move/alone", 1000, 1000, false, 0},
		{"1000 actors, all move/recorded", 1000, 1000, true, -1},
		{"50000 actors, 500 move/alone", 50000, 500, false, 0},
		{"50000 actors, 500 move/recorded", 50000, 500, true, -1},
		{"50000 actors, 500 move/in a checkpoint", 50000, 500, true, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			var out io.Writer
			if c.record {
				out = io.Discard
			}
			_, rec, step := recordedWorld(b, c.actors, out, replay.Config{Rate: -1, Checkpoints: c.checkpoints, ActorsPerFrame: 512})
			for range c.actors/c.moving*4 + 100 {
				step(c.moving)
			}
			var was replay.Counters
			if c.record {
				was = rec.Counters
			}
			b.ReportAllocs()
			for b.Loop() {
				step(c.moving)
			}
			if c.record {
				b.ReportMetric(float64(rec.Counters.Bytes-was.Bytes)/float64(b.N), "B/Step")
				b.ReportMetric(float64(rec.Counters.Snapshots-was.Snapshots)/float64(b.N), "copies/Step")
			}
		})
	}
}
