package actorrep_test

import (
	"bytes"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

// recorded is what the recording should show from a time on.
type recorded struct {
	at    time.Duration
	want  string // the server's state
	shown string // what playing from the beginning shows, with everything
	torn  map[netguid.GUID]bool
}

// recordRandom runs a world at random and returns its recording, closed, with the states it went through.
func recordRandom(t *testing.T, seed uint64, cfg replay.Config, steps int) (*tape, []recorded) {
	w := newTape(t, seed, cfg)
	var states []recorded
	early := w.join()
	calm := 0
	for i := range steps {
		if i%150 == 100 {
			calm = 20
		}
		if calm == 0 && len(w.joined) <= 3*i/steps {
			w.join()
		}
		if calm == 0 {
			w.mutate()
		}
		was, delayed := w.rec.Counters.Frames, w.server.Counters.Delayed
		w.step()
		if calm > 0 {
			calm--
		}
		if w.rec.Counters.Frames == was {
			continue
		}
		s := recorded{at: w.rec.Duration(), torn: maps.Clone(w.torn)}
		if w.server.Counters.Delayed != delayed { // more actors woke than one frame opens while a checkpoint is made
			states = append(states, s)
			continue
		}
		s.want = state(w.server, s.torn, always(camera), false)
		states = append(states, s)
		if calm == 1 {
			for _, j := range w.joined {
				require.Equal(t, state(w.server, s.torn, j.eye, false), state(j.world, s.torn, j.eye, false), "a client at %v", w.now)
			}
			require.NotEmpty(t, early.world.Len())
		}
	}
	require.NoError(t, w.rec.Close())
	return w, states
}

func openTape(t testing.TB, file []byte) (*replay.Replay, *actorrep.World) {
	r, err := replay.Open(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	viewer := newViewer(t)
	require.NoError(t, r.Play(viewer))
	return r, viewer
}

// TestReplayRandom: at every frame a recording shows what the server had, and so do clients that joined early and late; a seek to
// any time, from any time, shows exactly what playing from the beginning does.
func TestReplayRandom(t *testing.T) {
	configs := map[string]replay.Config{
		"every step": {Rate: -1, Checkpoints: 2 * time.Second, ActorsPerFrame: 4},
		"10 Hz":      {Checkpoints: 3 * time.Second, ActorsPerFrame: 8},
		"rare":       {Rate: 3, Checkpoints: 7 * time.Second},
		"none":       {Checkpoints: -1},
	}
	for name, cfg := range configs {
		for seed := range actorrep.SeedsOf(4) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				w, states := recordRandom(t, seed, cfg, 900)
				r, viewer := openTape(t, w.file.Bytes())
				require.Equal(t, w.rec.Duration(), r.Duration())
				require.False(t, r.Truncated())
				require.Equal(t, w.rec.Counters.Checkpoints, uint64(r.Checkpoints()))
				require.Equal(t, cfg.Checkpoints > 0, r.Checkpoints() > 2)
				compared := 0
				for i := range states {
					require.NoError(t, r.Step(states[i].at))
					states[i].shown = state(viewer, states[i].torn, always(camera), true)
					if states[i].want == "" {
						continue
					}
					compared++
					require.Equal(t, states[i].want, state(viewer, states[i].torn, always(camera), false), "at %v", states[i].at)
				}
				require.Greater(t, compared, len(states)*3/4)
				for range 60 {
					s := states[w.rng.IntN(len(states))]
					require.NoError(t, r.Seek(s.at))
					require.Equal(t, s.shown, state(viewer, s.torn, always(camera), true), "after a seek to %v", s.at)
				}
				for range 20 { // and play on from there
					i := w.rng.IntN(len(states) - 10)
					require.NoError(t, r.Seek(states[i].at))
					now := time.Duration(w.rng.IntN(1000)) * time.Second
					require.NoError(t, r.Step(now))
					for _, s := range states[i : i+10] {
						require.NoError(t, r.Step(now+s.at-states[i].at))
						require.Equal(t, s.shown, state(viewer, s.torn, always(camera), true), "%v after a seek to %v", s.at, states[i].at)
					}
				}
			})
		}
	}
}

// TestUnknownWakes: an actor of a class that a client doesn't have may sleep and wake; a replay's too.
func TestUnknownWakes(t *testing.T) {
	bare := func() *actorrep.World {
		w := actorrep.NewClient(actorrep.Config{Failed: func(err error) { require.ErrorIs(t, err, actorrep.ErrNoClass) }})
		require.NoError(t, w.Register("limb", (*limb)(nil)))
		return w
	}
	w := newTape(t, 1, replay.Config{Rate: -1, Checkpoints: time.Second})
	j := w.joinAs(bare())
	p, l := &probe{Number: 1}, &limb{Length: 1}
	require.NoError(t, w.server.Spawn(p))
	require.NoError(t, w.server.SpawnIn(p, l))
	for i := range 300 {
		if i%50 == 20 {
			require.NoError(t, p.SetDormant(i%100 == 20))
			require.NoError(t, l.SetDormant(i%100 == 20))
		}
		if i%7 == 0 && !p.Dormant() {
			p.Number++
			l.Length++
		}
		w.step()
	}
	require.NoError(t, w.rec.Close())
	require.Equal(t, l.Length, j.world.Find(l.GUID()).(*limb).Length)
	r, err := replay.Open(bytes.NewReader(w.file.Bytes()), int64(w.file.Len()))
	require.NoError(t, err)
	viewer := bare()
	require.NoError(t, r.Play(viewer))
	for _, at := range []time.Duration{r.Duration(), 0, r.Duration() / 2, r.Duration()} {
		require.NoError(t, r.Seek(at))
	}
	require.Equal(t, l.Length, viewer.Find(l.GUID()).(*limb).Length)
	require.Equal(t, 1, viewer.Len())
}
