package replay_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

type scorer struct {
	actorrep.Base
	Score uint16 `net:"notify=OnScore"`
}

func (s *scorer) OnScore(uint16) { within(s.World(), "notify") }

// within is what a world's game does in there.
func within(w *actorrep.World, where string) {
	if f, ok := w.User.(func(string)); ok {
		f(where)
	}
}

var over = actorrep.MulticastRPC(func(c actorrep.Call, s *scorer, n uint16) error {
	within(c.World, "call")
	return nil
}, actorrep.Reliable)

func scorers(t *testing.T, w *actorrep.World) *actorrep.World {
	require.NoError(t, w.Register("scorer", (*scorer)(nil), actorrep.RPCs{"over": over}))
	return w
}

func scores(w *actorrep.World) (s []string) {
	for a := range w.All {
		s = append(s, fmt.Sprint(a.(*scorer).GUID(), a.(*scorer).Score))
	}
	slices.Sort(s)
	return s
}

// TestWithin: a game that steps, seeks or plays its replay in what that calls, as to show the last seconds again when the match is over, is told, and the replay goes on as if it hadn't.
func TestWithin(t *testing.T) {
	server := scorers(t, actorrep.NewServer(actorrep.Config{}))
	var file bytes.Buffer
	rec, err := replay.Record(server, &file, replay.Config{Checkpoints: 2 * time.Second})
	require.NoError(t, err)
	var all []*scorer
	for i := range 600 {
		if i%60 == 0 {
			s := &scorer{}
			require.NoError(t, server.Spawn(s))
			if all = append(all, s); len(all) > 4 {
				require.NoError(t, server.Destroy(all[0]))
				all = all[1:]
			}
		}
		for _, s := range all {
			s.Score += uint16(i % 7 / 6)
		}
		if i%50 == 49 {
			require.NoError(t, over.Call(all[0], uint16(i)))
		}
		server.Step(time.Duration(i) * time.Second / 60)
	}
	require.NoError(t, rec.Close())
	open := func(cfg actorrep.Config) (*replay.Replay, *actorrep.World) {
		r, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
		require.NoError(t, err)
		w := scorers(t, actorrep.NewClient(cfg))
		require.NoError(t, r.Play(w))
		return r, w
	}
	for _, where := range []string{"spawned", "destroyed", "notify", "call"} {
		for what, do := range map[string]func(r *replay.Replay) error{
			"back": func(r *replay.Replay) error { return r.Seek(r.Position() - 3*time.Second) },
			"on":   func(r *replay.Replay) error { return r.Seek(r.Duration()) },
			"step": func(r *replay.Replay) error { return r.Step(time.Hour) },
			"play": func(r *replay.Replay) error { return r.Play(scorers(t, actorrep.NewClient(actorrep.Config{}))) },
			"next": func(r *replay.Replay) error { r.Next(); return replay.ErrWithin },
		} {
			t.Run(where+" "+what, func(t *testing.T) {
				var w *actorrep.World
				var r *replay.Replay
				tried := 0
				r, w = open(actorrep.Config{Failed: func(err error) { require.NoError(t, err) },
					Spawned: func(actorrep.Actor) { within(w, "spawned") }, Destroyed: func(actorrep.Actor) { within(w, "destroyed") }})
				w.User = func(now string) {
					if now == where {
						tried++
						require.ErrorIs(t, do(r), replay.ErrWithin)
					}
				}
				other, shown := open(actorrep.Config{})
				for i := range 100 {
					now := time.Duration(i) * 100 * time.Millisecond
					require.NoError(t, r.Step(now))
					require.NoError(t, other.Step(now))
					require.Equal(t, scores(shown), scores(w))
				}
				require.NoError(t, r.Seek(5*time.Second)) // it may be called again
				require.NoError(t, other.Seek(5*time.Second))
				require.Equal(t, scores(shown), scores(w))
				require.Greater(t, tried, 3)
			})
		}
	}
}
