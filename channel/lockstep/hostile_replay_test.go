package lockstep

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forgery is a replay file made by hand: every checksum is right, and what is in the chunks is whatever the test likes.
type forgery struct {
	cfg  Config
	file []byte
}

func forge(cfg Config) *forgery {
	f := &forgery{cfg: cfg, file: append([]byte(replayMagic), replayVersion)}
	f.chunk(chunkHeader, appendHeader(nil, &cfg, []byte("map")))
	return f
}

// chunk appends a sealed chunk and is its offset.
func (f *forgery) chunk(typ byte, payload []byte) int64 {
	at := len(f.file)
	f.file = append(f.file, seal(append(make([]byte, chunkHead), payload...), typ)...)
	return int64(at)
}

// turns appends a chunk of turns, of which first is the number of the first.
func (f *forgery) turns(first int64, records ...[]byte) int64 {
	p := uvarints(first)
	for _, rec := range records {
		p = append(binary.AppendUvarint(p, uint64(len(rec))), rec...)
		p = binary.LittleEndian.AppendUint64(p, 7)
	}
	return f.chunk(chunkTurns, p)
}

func (f *forgery) snapshot(turn int64, delay byte, active uint64) int64 {
	return f.chunk(chunkSnapshot, append(binary.AppendUvarint(append(uvarints(turn), delay), active), "state"...))
}

// close appends an index of pairs of turn and offset, and the trailer.
func (f *forgery) close(end, count int64, snapshots ...int64) *forgery {
	at := f.chunk(chunkIndex, append(uvarints(end, count), uvarints(snapshots...)...))
	f.file = append(binary.LittleEndian.AppendUint64(f.file, uint64(at)), replayTrailer...)
	return f
}

func uvarints(vs ...int64) (p []byte) {
	for _, v := range vs {
		p = binary.AppendUvarint(p, uint64(v))
	}
	return p
}

// record is a turn with events.
func record(events ...Event) []byte {
	return (&Turn{Events: events}).append(nil)
}

// played is all that a file says when it is opened and played to its end.
func (f *forgery) played() (turns string, r *Replay, err error) {
	r, err = OpenReplay(bytes.NewReader(f.file), int64(len(f.file)), 1000)
	for err == nil {
		var turn *Turn
		var hash uint64
		if turn, hash, err = r.Next(); err == nil {
			turns += fmt.Sprint(turn.N, turn.Delay, turn.Events, turn.present, turn.Substituted, hash, "\n")
		}
	}
	if err == io.EOF {
		err = r.Verify()
	}
	return turns, r, err
}

// TestForgedReplays: files whose checksums are right and whose fields lie are refused, at the latest by Verify.
func TestForgedReplays(t *testing.T) {
	cfg, err := config(3).Config.filled()
	require.NoError(t, err)
	cfg.Parts = []string{"units"}
	joined := []Event{{Kind: DelayChanged, Value: 2}, {Kind: Joined, Player: 0, Value: 1}, {Kind: Joined, Player: 1, Value: 2}}
	begin := func() *forgery { f := forge(cfg); f.turns(0, record(joined...), record()); return f }
	opening, _, err := begin().close(2, 0).played()
	require.NoError(t, err)
	huge := binary.AppendUvarint(nil, 1<<62)
	for _, c := range []struct {
		name string
		file func() *forgery
		good bool
	}{
		{"an honest one", func() *forgery {
			f := begin()
			s := f.snapshot(2, 2, 3)
			f.turns(2, record())
			return f.close(3, 1, 2, s)
		}, true},
		{"an honest one that ends with a snapshot", func() *forgery { f := begin(); s := f.snapshot(2, 2, 3); return f.close(2, 1, 2, s) }, true},

		{"a turn with a length beyond the chunk", func() *forgery {
			f := begin()
			f.chunk(chunkTurns, append(uvarints(2, 200), 0))
			return f.close(3, 0)
		}, false},
		{"a turn with a huge length", func() *forgery { f := begin(); f.chunk(chunkTurns, append(uvarints(2), huge...)); return f.close(3, 0) }, false},
		{"an empty turn", func() *forgery { f := begin(); f.turns(2, nil); return f.close(3, 0) }, false},
		{"bytes after a turn's record", func() *forgery { f := begin(); f.turns(2, []byte{0, 0}); return f.close(3, 0) }, false},
		{"unknown flags", func() *forgery { f := begin(); f.turns(2, []byte{0x80}); return f.close(3, 0) }, false},
		{"no hash", func() *forgery { f := begin(); f.chunk(chunkTurns, uvarints(2, 1, 0)); return f.close(3, 0) }, false},
		{"turns going back", func() *forgery { f := begin(); f.turns(1, record()); return f.close(3, 0) }, false},
		{"turns left out", func() *forgery { f := begin(); f.turns(3, record()); return f.close(4, 0) }, false},
		{"a huge turn number", func() *forgery { f := begin(); f.turns(1<<60-1, record()); return f.close(3, 0) }, false},
		{"a header in the middle", func() *forgery {
			f := begin()
			f.chunk(chunkHeader, appendHeader(nil, &cfg, nil))
			f.turns(2, record())
			return f.close(3, 0)
		}, false},
		{"an index in the middle", func() *forgery {
			f := begin()
			f.chunk(chunkIndex, uvarints(2, 0))
			f.turns(2, record())
			return f.close(3, 0)
		}, false},
		{"a chunk of an unknown type", func() *forgery { f := begin(); f.chunk(9, uvarints(2, 0)); f.turns(2, record()); return f.close(3, 0) }, false},

		{"a player beyond the last", func() *forgery {
			f := begin()
			f.turns(2, record(Event{Kind: Joined, Player: 3}))
			return f.close(3, 0)
		}, false},
		{"an event of an unknown kind", func() *forgery { f := begin(); f.turns(2, record(Event{Kind: 99})); return f.close(3, 0) }, false},
		{"a delay above MaxDelay", func() *forgery {
			f := begin()
			f.turns(2, record(Event{Kind: DelayChanged, Value: 61}))
			return f.close(3, 0)
		}, false},
		{"too many events", func() *forgery { f := begin(); f.turns(2, record(make([]Event, 100)...)); return f.close(3, 0) }, false},
		{"a huge count of events", func() *forgery { f := begin(); f.turns(2, append([]byte{hasEvents}, huge...)); return f.close(3, 0) }, false},
		{"a split with players who aren't", func() *forgery {
			f := begin()
			f.turns(2, record(Event{Kind: Split, Who: 1 << 3}))
			return f.close(3, 0)
		}, false},
		{"a difference in parts that aren't", func() *forgery { f := begin(); f.turns(2, record(Event{Kind: Differs, Who: 2})); return f.close(3, 0) }, false},
		{"commands of a player beyond the last", func() *forgery { f := begin(); f.turns(2, []byte{hasInputs, 1 << 3, 2, 1, 'x'}); return f.close(3, 0) }, false},
		{"substitutes of a player beyond the last", func() *forgery { f := begin(); f.turns(2, []byte{hasSubstitutes, 1 << 3}); return f.close(3, 0) }, false},
		{"a command longer than its input", func() *forgery { f := begin(); f.turns(2, []byte{hasInputs, 1, 2, 9, 'x'}); return f.close(3, 0) }, false},
		{"an input over MaxInput", func() *forgery {
			f := begin()
			in := append(uvarints(int64(cfg.MaxInput+1), int64(cfg.MaxInput-1)), make([]byte, cfg.MaxInput-1)...)
			f.turns(2, append([]byte{hasInputs, 1}, in...))
			return f.close(3, 0)
		}, false},

		{"a snapshot of another turn", func() *forgery {
			f := begin()
			s := f.snapshot(1, 2, 3)
			f.turns(2, record())
			return f.close(3, 1, 1, s)
		}, false},
		{"a snapshot with another delay", func() *forgery {
			f := begin()
			s := f.snapshot(2, 5, 3)
			f.turns(2, record())
			return f.close(3, 1, 2, s)
		}, false},
		{"a snapshot with other players", func() *forgery {
			f := begin()
			s := f.snapshot(2, 2, 7)
			f.turns(2, record())
			return f.close(3, 1, 2, s)
		}, false},
		{"a snapshot with players beyond the last", func() *forgery {
			f := forge(cfg)
			s := f.snapshot(2, 2, 1<<40)
			f.turns(2, record())
			return f.close(3, 1, 2, s)
		}, false},
		{"a snapshot with a delay above MaxDelay", func() *forgery {
			f := forge(cfg)
			s := f.snapshot(2, 200, 3)
			f.turns(2, record())
			return f.close(3, 1, 2, s)
		}, false},

		{"an index that ends early", func() *forgery { f := begin(); return f.close(1, 0) }, false},
		{"an index that ends early at a chunk", func() *forgery { f := begin(); f.turns(2, record()); return f.close(2, 0) }, false},
		{"an index that ends late", func() *forgery { f := begin(); return f.close(3, 0) }, false},
		{"an index with a huge end", func() *forgery { f := begin(); return f.close(1<<60-1, 0) }, false},
		{"an index without the snapshot", func() *forgery { f := begin(); f.snapshot(2, 2, 3); f.turns(2, record()); return f.close(3, 0) }, false},
		{"an index with a snapshot that isn't", func() *forgery { f := begin(); s := f.turns(2, record()); return f.close(3, 1, 2, s) }, false},
		{"an index with another turn for the snapshot", func() *forgery {
			f := begin()
			s := f.snapshot(2, 2, 3)
			f.turns(2, record())
			return f.close(3, 1, 1, s)
		}, false},
		{"an index that points into a snapshot, where other chunks are", func() *forgery {
			f := begin()
			other := forge(cfg)
			other.file = nil
			other.snapshot(2, 2, 3)
			other.turns(2, record(Event{Kind: Dropped, Player: 0, Value: 1}))
			head := append(binary.AppendUvarint(append(uvarints(2), 2), 3), 'x')
			s := f.chunk(chunkSnapshot, append(head, other.file...))
			f.turns(2, record())
			return f.close(3, 1, 2, s+chunkHead+int64(len(head)))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := c.file()
			turns, r, err := f.played()
			if c.good {
				require.NoError(t, err)
				_, _, whole := r.Turns()
				require.True(t, whole)
				return
			}
			if err == nil { // an index that lies where it can be seen is none; then the file has the turns that are whole
				_, _, whole := r.Turns()
				require.False(t, whole)
				require.True(t, strings.HasPrefix(turns, opening), turns)
				return
			}
			require.ErrorIs(t, err, ErrReplay)
		})
	}
}

// TestForgedCountsTakeNoMemory: counts and sizes in a small file have nothing allocated, and large files no more than a
// small multiple of what is read.
func TestForgedCountsTakeNoMemory(t *testing.T) {
	cfg, err := config(3).Config.filled()
	require.NoError(t, err)
	const size = 8 << 20
	for name, f := range map[string]*forgery{
		"a count of snapshots":      forge(cfg).close(0, 1<<59),
		"an index that is the file": forge(cfg).close(0, size, make([]int64, size)...),
		"a record": func() *forgery {
			f := forge(cfg)
			f.chunk(chunkTurns, binary.AppendUvarint(uvarints(0), 1<<62))
			return f.close(1, 0)
		}(),
		"turns": func() *forgery { f := forge(cfg); f.chunk(chunkTurns, make([]byte, size)); return f.close(size, 0) }(),
		"a header": func() *forgery {
			f := forge(cfg)
			f.file = f.file[:5]
			f.chunk(chunkHeader, make([]byte, size))
			return f
		}(),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := f.played()
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), name)
		if err != nil {
			require.True(t, errors.Is(err, ErrReplay), name)
		}
	}
}
