package actorrep_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

// TestReplayCalls: multicasts are in a recording, those called between two frames too, in order; a seek doesn't run what it
// jumps over.
func TestReplayCalls(t *testing.T) {
	w := newTape(t, 1, replay.Config{Checkpoints: time.Second})
	p := &probe{on: true}
	require.NoError(t, w.server.Spawn(p))
	w.step()
	for i := range int32(90) {
		require.NoError(t, hit.Call(p, i+1))
		if i%2 == 0 {
			require.NoError(t, loud.Call(p, i+1))
		}
		w.step()
	}
	require.NoError(t, w.rec.Close())
	r, viewer := openTape(t, w.file.Bytes())
	require.NoError(t, r.SetSpeed(4))
	var seen []int32
	for now := time.Duration(0); !r.Done(); now += tick {
		require.NoError(t, r.Step(now))
		if a, ok := viewer.Find(p.GUID()).(*probe); ok {
			seen = a.hits
		}
	}
	require.GreaterOrEqual(t, len(seen), len(p.hits)-3, "all but those after the last frame")
	require.Equal(t, p.hits[:len(seen)], seen)
	require.NoError(t, r.Seek(time.Second))
	require.NoError(t, r.Seek(2*time.Second))
	require.Empty(t, viewer.Find(p.GUID()).(*probe).hits)
	require.NoError(t, r.Step(0))
	require.NoError(t, r.Step(tick))
	require.NotEmpty(t, viewer.Find(p.GUID()).(*probe).hits)
}

// TestReplaySpeed: time passes by the speed; a pause, and the end.
func TestReplaySpeed(t *testing.T) {
	w := newTape(t, 1, replay.Config{Note: "the map"})
	require.NoError(t, w.server.Spawn(&probe{}))
	for range 300 {
		w.step()
	}
	require.NoError(t, w.rec.Close())
	require.NoError(t, w.rec.Close(), "again")
	require.ErrorIs(t, w.rec.Err(), replay.ErrEnded)
	r, err := replay.Open(bytes.NewReader(w.file.Bytes()), int64(w.file.Len()))
	require.NoError(t, err)
	require.ErrorIs(t, r.Step(0), replay.ErrNotPlaying)
	require.ErrorIs(t, r.Seek(0), replay.ErrNotPlaying)
	require.ErrorIs(t, r.Play(w.server), replay.ErrWorld)
	viewer := newViewer(t)
	require.NoError(t, r.Play(viewer))
	require.ErrorIs(t, r.Play(viewer), replay.ErrWorld, "twice")
	require.Equal(t, "the map", r.Note())
	require.Equal(t, time.Second/10, r.Interval())
	require.Equal(t, 1.0, r.Speed())
	require.ErrorIs(t, r.SetSpeed(-1), replay.ErrSpeed)
	require.Equal(t, 1.0, r.Speed(), "it stays")
	require.NoError(t, r.Step(time.Hour))
	require.NoError(t, r.Step(time.Hour+time.Second))
	require.Equal(t, time.Second, r.Position())
	require.NoError(t, r.SetSpeed(4))
	require.Equal(t, 4.0, r.Speed())
	require.NoError(t, r.Step(time.Hour+2*time.Second))
	require.Equal(t, 5*time.Second, r.Position())
	require.Equal(t, r.Position(), viewer.Now())
	require.NoError(t, r.SetSpeed(0))
	require.NoError(t, r.Step(2*time.Hour))
	require.Equal(t, 5*time.Second, r.Position())
	require.False(t, r.Done())
	require.NoError(t, r.SetSpeed(1e6))
	require.NoError(t, r.Step(3*time.Hour))
	require.True(t, r.Done())
	require.Equal(t, r.Duration(), r.Position())
	require.NoError(t, r.Seek(-time.Second))
	require.Zero(t, r.Position())
	require.NoError(t, r.Seek(time.Hour))
	require.Equal(t, r.Duration(), r.Position())
}

// TestSeekTells: a short seek forward tells each change once, with the value before it; any other brings new actors.
func TestSeekTells(t *testing.T) {
	w := newTape(t, 1, replay.Config{Rate: -1, Checkpoints: 2 * time.Second})
	p, brief := &probe{Number: 100}, &probe{}
	require.NoError(t, w.server.Spawn(p))
	for i := range 200 {
		p.Number++
		if i == 30 {
			require.NoError(t, w.server.Spawn(brief))
		}
		if i == 40 {
			require.NoError(t, w.server.Destroy(brief))
		}
		w.step()
	}
	require.NoError(t, w.rec.Close())
	var came, went int
	viewer := actorrep.NewClient(actorrep.Config{Spawned: func(actorrep.Actor) { came++ }, Destroyed: func(actorrep.Actor) { went++ }})
	registerProbes(t, viewer)
	r, err := replay.Open(bytes.NewReader(w.file.Bytes()), int64(w.file.Len()))
	require.NoError(t, err)
	require.NoError(t, r.Play(viewer))
	require.NoError(t, r.Seek(10*tick))
	first := viewer.Find(p.GUID()).(*probe)
	require.EqualValues(t, 111, first.Number)
	require.Empty(t, first.olds)
	require.NoError(t, r.Seek(50*tick))
	require.Same(t, first, viewer.Find(p.GUID()))
	require.Equal(t, []int32{111}, first.olds)
	require.Equal(t, []int{1, 0}, []int{came, went}, "who came and went meanwhile isn't told of")
	require.NoError(t, r.Seek(5*time.Second))
	require.NotSame(t, first, viewer.Find(p.GUID()))
	require.Equal(t, []int{2, 1}, []int{came, went})
	require.NoError(t, r.Seek(35*tick))
	require.Equal(t, []int{4, 2}, []int{came, went})
	require.NotNil(t, viewer.Find(2+p.GUID()))
	require.Empty(t, viewer.Find(p.GUID()).(*probe).olds)
}

// Another build's classes.
type newProbe struct {
	actorrep.Base
	Pos    vec    `net:"q=0.1"` // another step is no other type
	Number int32  `net:""`
	Fresh  uint16 `net:""` // added; most others are removed
}

type badProbe struct {
	actorrep.Base
	Number string         `net:""`
	Prey   netguid.GUID   `net:""`
	List   []netguid.GUID `net:""`
}

// TestReplaySchema: fields that came or went since are left out; retyped ones are refused by name, and the rest is played. Of procedures that went it
// is told once.
func TestReplaySchema(t *testing.T) {
	w, _ := recordRandom(t, 3, replay.Config{Checkpoints: 2 * time.Second}, 300)
	lacking := 0
	open := func(a actorrep.Actor) (*replay.Replay, *actorrep.World, error) {
		r, err := replay.Open(bytes.NewReader(w.file.Bytes()), int64(w.file.Len()))
		require.NoError(t, err)
		viewer := actorrep.NewClient(actorrep.Config{Failed: func(err error) {
			lacking++
			require.ErrorIs(t, err, actorrep.ErrNoProcedure)
		}})
		require.NoError(t, viewer.Register("probe", a))
		require.NoError(t, viewer.Register("limb", (*limb)(nil)))
		return r, viewer, r.Play(viewer)
	}
	old, same := openTape(t, w.file.Bytes())
	r, viewer, err := open((*newProbe)(nil))
	require.NoError(t, err)
	for _, at := range []time.Duration{r.Duration(), r.Duration() / 3, r.Duration() / 2} {
		require.NoError(t, r.Seek(at))
		require.NoError(t, old.Seek(at))
		require.Equal(t, same.Len(), viewer.Len())
		for a := range same.All {
			if p, ok := a.(*probe); ok {
				q := viewer.Find(p.GUID()).(*newProbe)
				require.Equal(t, p.Number, q.Number)
				require.InDelta(t, p.Pos.X, q.Pos.X, 1e-9)
				require.Zero(t, q.Fresh)
			}
		}
	}
	require.Equal(t, 2, lacking, "Hit and Loud")
	r, viewer, err = open((*badProbe)(nil))
	require.ErrorIs(t, err, actorrep.ErrSchema)
	require.ErrorContains(t, err, "probe")
	require.ErrorContains(t, err, "Number")
	require.ErrorContains(t, err, "List")
	require.NotContains(t, err.Error(), "Prey")
	require.NoError(t, r.Seek(r.Duration()))
	require.NoError(t, old.Seek(r.Duration()))
	for a := range same.All {
		_, isLimb := a.(*limb)
		found := viewer.Find(a.(interface{ GUID() netguid.GUID }).GUID())
		require.Equal(t, isLimb, found != nil)
	}
}

// TestReplayUnclosed: a recording whose process died is played up to its last whole block, with its checkpoints.
func TestReplayUnclosed(t *testing.T) {
	w, states := recordRandom(t, 5, replay.Config{Rate: -1, Checkpoints: 2 * time.Second, ActorsPerFrame: 8}, 400)
	whole, _ := openTape(t, w.file.Bytes())
	for _, cut := range []int{1, 20, 100, w.file.Len() / 3, w.file.Len() / 2, w.file.Len() * 9 / 10} {
		file := w.file.Bytes()[:w.file.Len()-cut]
		r, viewer := openTape(t, file)
		require.True(t, r.Truncated())
		require.LessOrEqual(t, r.Duration(), whole.Duration())
		require.Greater(t, r.Duration()+2*time.Second, whole.Duration()*time.Duration(len(file))/time.Duration(w.file.Len())/2)
		if cut < 100 {
			require.Equal(t, whole.Checkpoints(), r.Checkpoints())
		}
		n := 0
		for _, s := range states {
			if s.at > r.Duration() {
				break
			}
			require.NoError(t, r.Step(s.at))
			if s.want != "" {
				require.Equal(t, s.want, state(viewer, s.torn, always(camera), false))
			}
			n++
		}
		for range 10 {
			s := states[w.rng.IntN(n)]
			require.NoError(t, r.Seek(s.at))
			if s.want != "" {
				require.Equal(t, s.want, state(viewer, s.torn, always(camera), false))
			}
		}
	}
}

// named reports whether an error is one of those a recording's reader has.
func named(err error) bool {
	return errors.Is(err, replay.ErrNotReplay) || errors.Is(err, replay.ErrVersion) || errors.Is(err, replay.ErrTruncated) ||
		errors.Is(err, replay.ErrCorrupt) || errors.Is(err, actorrep.ErrSchema)
}

// playAll plays a file as far as it goes, and seeks about.
func playAll(t *testing.T, file []byte, rng *rand.Rand) error {
	r, err := replay.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	viewer := newViewer(t)
	if err := r.Play(viewer); err != nil {
		return err
	}
	for range 3 {
		at := time.Duration(0)
		if d := r.Duration(); d > 0 {
			at = time.Duration(rng.Int64N(int64(d)))
		}
		err = errors.Join(err, r.Seek(at))
	}
	err = errors.Join(err, r.Seek(0))
	for now := time.Duration(0); now <= min(r.Duration(), time.Minute); now += time.Second / 2 {
		err = errors.Join(err, r.Step(now))
	}
	return err
}

// TestReplayDamaged: cut anywhere, or with any byte changed, a file has an error by name, or is what it was.
func TestReplayDamaged(t *testing.T) {
	w, _ := recordRandom(t, 6, replay.Config{Checkpoints: time.Second}, 120)
	file := w.file.Bytes()
	rng := rand.New(rand.NewPCG(1, 1))
	require.NoError(t, playAll(t, file, rng))
	errs := 0
	for i := 0; i < len(file); i += 1 + i/40 {
		if err := playAll(t, file[:i], rng); err != nil {
			errs++
			require.True(t, named(err), "cut at %d: %v", i, err)
		}
		bad := slices.Clone(file)
		bad[i] ^= 1 << rng.IntN(8)
		if err := playAll(t, bad, rng); err != nil {
			errs++
			require.True(t, named(err), "byte %d changed: %v", i, err)
		}
	}
	require.Greater(t, errs, 20)
	_, err := replay.Open(bytes.NewReader(nil), 0)
	require.ErrorIs(t, err, replay.ErrTruncated)
	_, err = replay.Open(bytes.NewReader(make([]byte, 100)), 100)
	require.ErrorIs(t, err, replay.ErrNotReplay)
	next := slices.Clone(file)
	next[8]++
	_, err = replay.Open(bytes.NewReader(next), int64(len(next)))
	require.ErrorIs(t, err, replay.ErrVersion)
	_, err = replay.Open(bytes.NewReader(file[:60]), int64(len(file)))
	require.ErrorIs(t, err, replay.ErrTruncated, "a file shorter than was said")
}

// TestRecordConfig: impossible settings are refused, a client's world too.
func TestRecordConfig(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	for _, cfg := range []replay.Config{{Rate: 1e-9}, {ActorsPerFrame: 3}, {ActorsPerFrame: -1}, {Note: string(make([]byte, 5000))}} {
		_, err := replay.Record(w, io.Discard, cfg)
		require.ErrorIs(t, err, replay.ErrConfig, "%+v", cfg)
	}
	_, err := replay.Record(actorrep.NewClient(actorrep.Config{}), io.Discard, replay.Config{})
	require.ErrorIs(t, err, actorrep.ErrClient)
	_, err = replay.Record(w, &fullDisk{}, replay.Config{})
	require.ErrorIs(t, err, errFull)
}

// fullDisk takes so many bytes.
type fullDisk struct{ room int }

var errFull = errors.New("the disk is full")

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.room -= len(b); d.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// TestRecordFails: when its writer fails, the recording ends and the world goes on.
func TestRecordFails(t *testing.T) {
	server := actorrep.NewServer(actorrep.Config{})
	registerProbes(t, server)
	disk := &fullDisk{room: 5000}
	rec, err := replay.Record(server, disk, replay.Config{Rate: -1})
	require.NoError(t, err)
	var probes []*probe
	for i := range 300 {
		p := &probe{Number: int32(i)}
		require.NoError(t, server.Spawn(p))
		probes = append(probes, p)
		if i > 10 {
			require.NoError(t, server.Destroy(probes[i-10]))
			require.NoError(t, probes[i].SetDormant(true))
		}
		server.Step(time.Duration(i) * tick)
	}
	require.ErrorIs(t, rec.Err(), errFull)
	require.ErrorIs(t, rec.Flush(), errFull)
	require.ErrorIs(t, rec.Close(), errFull)
	require.NoError(t, rec.Close())
	n := 0
	server.Peers(func(*actorrep.Peer) bool { n++; return true })
	require.Zero(t, n)
}

// TestRecordFilter: what the filter doesn't want isn't in the file.
func TestRecordFilter(t *testing.T) {
	w := newTape(t, 1, replay.Config{Rate: -1, Filter: func(a actorrep.Actor) bool {
		p, ok := a.(*probe)
		return ok && p.Number%2 == 0
	}})
	for i := range int32(10) {
		p := &probe{Number: i, Text: fmt.Sprint("odd or even ", i)}
		require.NoError(t, w.server.Spawn(p))
		require.NoError(t, w.server.SpawnIn(p, &limb{Name: fmt.Sprint("limb of ", i)}))
	}
	for range 30 {
		w.step()
	}
	require.NoError(t, w.rec.Close())
	r, viewer := openTape(t, w.file.Bytes())
	require.NoError(t, r.Seek(r.Duration()))
	require.Equal(t, 10, viewer.Len(), "five, with their components")
	require.False(t, bytes.Contains(w.file.Bytes(), []byte("odd or even 3")))
	require.False(t, bytes.Contains(w.file.Bytes(), []byte("limb of 3")))
}
