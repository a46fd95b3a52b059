package replay

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/hostile"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// guard is memory behind an actor's fields that nothing may write.
type guard [8]uint64

type small struct {
	actorrep.Base
	N     uint8 `net:""`
	Guard guard
}

type large struct {
	actorrep.Base
	Words [20]uint64             `net:""`
	Pos   struct{ X, Y float64 } `net:"q=0.01"`
	Text  string                 `net:""`
	List  []struct{ S string }   `net:""`
	Bag   fastarray.List[uint16] `net:""`
	Whom  netguid.GUID           `net:""`
	Guard guard
}

var (
	show = actorrep.MulticastRPC(func(actorrep.Call, *small, int32) error { return nil })
	say  = actorrep.MulticastRPC(func(actorrep.Call, *large, struct{ A string }) error { return nil }, actorrep.Reliable)
)

func liesWorld(t testing.TB, server bool) *actorrep.World {
	w := actorrep.NewClient(actorrep.Config{})
	if server {
		w = actorrep.NewServer(actorrep.Config{})
	}
	require.NoError(t, w.Register("small", (*small)(nil), actorrep.RPCs{"Show": show}))
	require.NoError(t, w.Register("large", (*large)(nil), actorrep.RPCs{"Say": say}))
	return w
}

// schemaOf is the description of a world's classes.
func schemaOf(w *actorrep.World) (data []byte, bits int) {
	return record(w, tape{&Recorder{}}, nil, false).Schema()
}

func newLiar(t testing.TB, d *hostile.Dice) *hostile.Server {
	a, b := &small{}, &large{}
	l, err := hostile.NewServer(d, hostile.Class{Actor: a, Change: func(d *hostile.Dice) { a.N = uint8(d.N(256)) },
		Procedures: []func(*hostile.Dice) any{func(d *hostile.Dice) any { return int32(d.N(256)) }}},
		hostile.Class{Actor: b, Change: func(d *hostile.Dice) {
			b.Words[d.N(20)] = ^uint64(0)
			b.Pos.Y -= float64(d.N(256))
			b.Text = strings.Repeat("y", d.N(99))
			b.List = make([]struct{ S string }, d.N(9))
			b.Whom = netguid.GUID(d.N(16))
			_, _ = b.Bag.Add(uint16(d.N(256)))
		}, Procedures: []func(*hostile.Dice) any{func(*hostile.Dice) any { return struct{ A string }{"say"} }}})
	require.NoError(t, err)
	return l
}

// sane checks what holds in a client's world whatever it was told.
func sane(t testing.TB, w *actorrep.World) {
	require.LessOrEqual(t, w.Len(), 16)
	for a := range w.All {
		switch a := a.(type) {
		case *small:
			require.Equal(t, "small", a.ClassName())
			require.Zero(t, a.Guard, "memory behind the fields was written")
			require.Same(t, a, w.Find(a.GUID()))
			_ = a.Owner() // no parent is its own
		case *large:
			require.Equal(t, "large", a.ClassName())
			require.Zero(t, a.Guard, "memory behind the fields was written")
			require.Same(t, a, w.Find(a.GUID()))
			_ = a.Owner()
		}
	}
}

const liesChannels = 8

// lies is decisions at random.
func lies(seed uint64) []byte { return hostile.Bytes(seed, 2000) }

// lieInFile plays a recording whose checksums are right, and whose messages say what no recorder would.
func lieInFile(t testing.TB, b []byte) {
	d := hostile.NewDice(b, 200)
	l := newLiar(t, d)
	schema, bits := schemaOf(liesWorld(t, true))
	var file bytes.Buffer
	out := newFileWriter(&file)
	require.NoError(t, out.begin(schema, bits, 0, ""))
	var at int64
	frames, places := 0, map[uint32]bool{}
	for ; !d.Over() && frames < 100; frames++ {
		if frames == 5 {
			_, err := out.flush()
			require.NoError(t, err)
			at = out.offset
		}
		l.Frame += uint32(d.N(4))
		var messages []byte
		for range 1 + d.N(4) {
			id := uint32(hostile.Mostly(d, 1+d.N(liesChannels-1), 0, bridge.MaxPlaces-1))
			kind := bridge.Kind(d.N(int(bridge.Begin)))
			if !places[id] {
				kind = bridge.Open
			}
			var data []byte
			bits := 0
			switch kind = hostile.Mostly(d, kind, bridge.Open, bridge.Values, bridge.Copy, bridge.Sleeper, bridge.Begin, bridge.UpTo, bridge.End); kind {
			case bridge.Open, bridge.Copy, bridge.Sleeper:
				data, bits = l.Opening(id)
				places[id] = true
			case bridge.Values:
				data, bits = l.Messages(id)
			case bridge.Records:
				data, bits = l.Records(slices.Sorted(maps.Keys(places)))
				id = 0
			case bridge.Close:
				data, bits = []byte{uint8(d.N(6))}, 8
				places[id] = false
			}
			messages = appendMessage(messages, kind, id, data, bits)
		}
		out.add(frameHead{time: time.Duration(frames) * time.Second, world: l.Frame, number: uint32(frames + 1)}, messages)
	}
	_, err := out.flush()
	require.NoError(t, err)
	if at > 0 {
		out.checkpointed(at, 6*time.Second, 8*time.Second)
	}
	end := time.Duration(frames) * time.Second
	require.NoError(t, out.end(end))

	r, err := Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	w := liesWorld(t, false)
	require.NoError(t, r.Play(w))
	for i := range frames {
		_ = r.Step(time.Duration(i) * time.Second)
		sane(t, w)
	}
	for _, at := range []time.Duration{end, 0, 9 * time.Second, end / 2, time.Second} {
		_ = r.Seek(at)
		sane(t, w)
	}
}

// FuzzLyingFile plays recordings that pass the first checks.
func FuzzLyingFile(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(lies(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) { lieInFile(t, b) })
}

// TestLyingFiles: whatever a recording says, actors keep their classes, and nothing is written outside their fields.
func TestLyingFiles(t *testing.T) {
	for seed := range uint64(200) {
		lieInFile(t, lies(seed))
	}
}

// TestFileWithHugeSchema: a length of 32 bits isn't negative where ints have 32.
func TestFileWithHugeSchema(t *testing.T) {
	var file bytes.Buffer
	out := newFileWriter(&file)
	require.NoError(t, out.begin(nil, 0, 0, ""))
	b := file.Bytes()
	body := b[fileHead+blockHead:]
	binary.LittleEndian.PutUint32(body[8:], 1<<32-1)
	sumBlock(b[fileHead:])
	_, err := Open(bytes.NewReader(b), int64(len(b)))
	require.ErrorIs(t, err, ErrCorrupt)
}

// sumBlock mends the checksums of the block that b begins with.
func sumBlock(b []byte) {
	n := binary.LittleEndian.Uint32(b[8:])
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[blockHead:blockHead+n], castagnoli))
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:blockHead], castagnoli))
}

// countedReader counts the bytes that are read.
type countedReader struct {
	*bytes.Reader
	n int
}

func (r *countedReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := r.Reader.ReadAt(p, at)
	r.n += n
	return n, err
}

// TestIndexIsReadOnce: a server that ends its recording with a large index, and sends nothing more, doesn't have its spectators read that each time that they look.
func TestIndexIsReadOnce(t *testing.T) {
	var file bytes.Buffer
	w := fuzzWorld(t, true)
	rec, err := Record(w, &file, Config{Rate: -1})
	require.NoError(t, err)
	for i := range 40 {
		w.Step(time.Duration(i) * 50 * time.Millisecond)
	}
	require.NoError(t, rec.file.block(blockFrames))
	f := newFileWriter(&file)
	f.buf = append(f.buf, make([]byte, 1<<20)...)
	require.NoError(t, f.block(blockIndex))
	in := &countedReader{Reader: bytes.NewReader(file.Bytes())}
	r, err := Open(in, in.Size())
	require.NoError(t, err)
	require.NoError(t, r.Play(fuzzWorld(t, false)))
	in.n = 0
	for i := range 100 {
		require.NoError(t, r.Grow(in.Size()))
		require.NoError(t, r.Step(time.Duration(i)*50*time.Millisecond))
	}
	require.True(t, r.Done())
	require.Less(t, in.n, 1<<16)
}
