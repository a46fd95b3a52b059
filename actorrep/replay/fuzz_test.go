package replay

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
)

type fuzzed struct {
	actorrep.Base
	Pos   struct{ X, Y, Z float64 } `net:"q=0.01"`
	Name  string                    `net:""`
	List  []struct{ A, B uint16 }   `net:""`
	Bytes []byte                    `net:""`
	Few   uint8                     `net:"max=7"`
	Rot   [3]float32                `net:"rot=16"`
	V     actorrep.Var[int32]       `net:""`
	More  bool                      `net:""`
	Bag   fastarray.List[uint16]    `net:""`
}

var fuzzNote = actorrep.MulticastRPC(func(actorrep.Call, *fuzzed, int32) error { return nil })

func fuzzWorld(t testing.TB, server bool) *actorrep.World {
	w := actorrep.NewClient(actorrep.Config{})
	if server {
		w = actorrep.NewServer(actorrep.Config{})
	}
	require.NoError(t, w.Register("fuzzed", (*fuzzed)(nil), actorrep.RPCs{"Note": fuzzNote}))
	return w
}

// fuzzRecording is a small recording of everything: values, calls, sleepers, components, tear-off, a checkpoint.
func fuzzRecording(t testing.TB) []byte {
	var file bytes.Buffer
	w := fuzzWorld(t, true)
	rec, err := Record(w, &file, Config{Rate: -1, Checkpoints: 200 * time.Millisecond, ActorsPerFrame: 4})
	require.NoError(t, err)
	var all []*fuzzed
	for i := range 20 {
		a := &fuzzed{Name: "fuzzed", List: []struct{ A, B uint16 }{{1, 2}}}
		if i%3 == 2 {
			require.NoError(t, w.SpawnIn(all[0], a))
		} else {
			require.NoError(t, w.Spawn(a))
		}
		all = append(all, a)
		for _, b := range all {
			b.Pos.X += 0.5
		}
		require.NoError(t, fuzzNote.Call(all[i/2], int32(i)))
		switch i {
		case 8:
			require.NoError(t, all[3].SetDormant(true))
		case 12:
			require.NoError(t, all[4].TearOff())
		case 14:
			all[3].FlushDormancy()
		case 16:
			require.NoError(t, w.Destroy(all[6]))
		}
		w.Step(time.Duration(i) * 50 * time.Millisecond)
	}
	require.NoError(t, rec.Close())
	return file.Bytes()
}

// playAnyhow plays a file wherever it leads, and seeks about.
func playAnyhow(t *testing.T, file []byte) {
	r, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return
	}
	w := fuzzWorld(t, false)
	if r.Play(w) != nil {
		return
	}
	d := r.Duration()
	_ = r.Step(0)
	_ = r.Step(d / 2)
	for _, at := range []time.Duration{d, 0, d / 2, d / 3} {
		_ = r.Seek(at)
		for a := range w.All { // no parent is its own
			_ = a.(*fuzzed).Owner()
		}
	}
	if r.world.Len() > len(file) {
		t.Fatal("actors from nowhere")
	}
}

// FuzzReplayFile plays arbitrary files.
func FuzzReplayFile(f *testing.F) {
	file := fuzzRecording(f)
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Fuzz(func(t *testing.T, b []byte) { playAnyhow(t, b) })
}

// FuzzReplayFrames plays files whose checksums are right, and whose frames are arbitrary: a checkpoint from the second to the
// third.
func FuzzReplayFrames(f *testing.F) {
	var r replayFile
	file := fuzzRecording(f)
	r.in = bytes.NewReader(file)
	require.NoError(f, r.open(int64(len(file))))
	require.NotEmpty(f, r.checkpoints)
	var messages [][]byte
	for at := r.begin; at < r.end; {
		b, err := r.block(at, r.end)
		require.NoError(f, err)
		at += blockHead + int64(b.length)
		for body := r.body; len(body) > 0; {
			n := frameHeader + int(body[16]) + int(body[17])<<8
			messages = append(messages, bytes.Clone(body[frameHeader:n]))
			body = body[n:]
		}
	}
	require.Len(f, messages, 20)
	for i := 2; i < len(messages); i++ {
		f.Add(messages[0], messages[i-1], messages[i])
	}
	f.Fuzz(func(t *testing.T, one, two, three []byte) {
		var file bytes.Buffer
		w := fuzzWorld(t, true)
		schema, bits := schemaOf(w)
		out := newFileWriter(&file)
		require.NoError(t, out.begin(schema, bits, 0, ""))
		var at int64
		for i, m := range [][]byte{one, two, three} {
			if i == 1 {
				at = out.offset
			}
			out.add(frameHead{time: time.Duration(i) * time.Second, world: uint32(i), number: uint32(i + 1)}, m)
			_, err := out.flush()
			require.NoError(t, err)
		}
		out.checkpointed(at, time.Second, 2*time.Second)
		require.NoError(t, out.end(3*time.Second))
		playAnyhow(t, file.Bytes())
	})
}
