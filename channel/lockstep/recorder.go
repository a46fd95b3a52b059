package lockstep

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// Recorder writes a game's turns into a replay file, as a Peer executes them. A file that isn't closed, as after a crash,
// is readable; Close adds an index. After an error of the writer all calls return it. Not safe for concurrent use.
type Recorder struct {
	cfg       Config
	w         io.Writer
	err       error
	at        int64 // bytes written
	chunk     []byte
	record    []byte
	first     int64 // turn of the chunk
	next      int64
	began     bool
	delay     int
	active    uint64
	snapshots []replaySnapshot
}

// NewRecorder begins a file for a game with Config c. The file gets setup, which may be empty. To record a game from its
// middle on, call Snapshot first. Errors: ErrConfig, ErrSetup for a setup over MaxSetup, or the writer's.
func NewRecorder(w io.Writer, c Config, setup []byte) (*Recorder, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	if len(setup) > MaxSetup {
		return nil, ErrSetup
	}
	r := &Recorder{cfg: c, w: w, chunk: make([]byte, 0, turnsChunk+c.maxRecord()+chunkTail)}
	r.write(append([]byte(replayMagic), replayVersion))
	r.write(seal(appendHeader(make([]byte, chunkHead), &c, setup), chunkHeader))
	return r, r.err
}

// seal fills the head of a chunk, which has room for it, and adds its checksum.
func seal(p []byte, typ byte) []byte {
	p[0] = typ
	binary.LittleEndian.PutUint32(p[1:], uint32(len(p)-chunkHead))
	return binary.LittleEndian.AppendUint32(p, crc32.Checksum(p, castagnoli))
}

func (r *Recorder) write(p []byte) {
	if r.err == nil {
		_, r.err = r.w.Write(p)
		r.at += int64(len(p))
	}
}

// Turn adds the turn that Peer.Next returned, with the hashes that Done will get. Call it before Done. Errors: ErrParts,
// ErrReplayOrder, or the writer's.
func (r *Recorder) Turn(t *Turn, sums ...uint64) error {
	hash, err := r.cfg.Hash(sums...)
	switch {
	case r.err != nil:
		return r.err
	case err != nil:
		return err
	case t.N != r.next:
		return ErrReplayOrder
	}
	if len(r.chunk) == 0 {
		r.chunk = binary.AppendUvarint(append(r.chunk, make([]byte, chunkHead)...), uint64(t.N))
		r.first = t.N
	}
	r.record = t.append(r.record[:0])
	r.chunk = append(binary.AppendUvarint(r.chunk, uint64(len(r.record))), r.record...)
	r.chunk = binary.LittleEndian.AppendUint64(r.chunk, hash)
	r.next++
	r.began, r.delay = true, t.Delay
	for i := range t.Events {
		switch e := &t.Events[i]; e.Kind {
		case Joined:
			r.active |= 1 << e.Player
		case Dropped:
			r.active &^= 1 << e.Player
		}
	}
	if len(r.chunk) >= turnsChunk {
		r.flush()
	}
	return r.err
}

func (r *Recorder) flush() {
	if len(r.chunk) > 0 {
		r.write(seal(r.chunk, chunkTurns))
		r.chunk = r.chunk[:0]
	}
}

// Snapshot adds the game's state before the next turn: Peer.Resume's result, with State set. Replay.SeekTurn can begin
// there. A recording from the middle of a game begins with one. Errors: ErrReplayOrder, or the writer's.
func (r *Recorder) Snapshot(at Resume) error {
	switch {
	case r.err != nil:
		return r.err
	case !r.began:
		r.next, r.delay, r.active, r.began = at.Turn, at.Delay, at.Active, true
	case at.Turn != r.next:
		return ErrReplayOrder
	}
	r.flush()
	r.snapshots = append(r.snapshots, replaySnapshot{r.next, r.at})
	p := binary.AppendUvarint(make([]byte, chunkHead), uint64(r.next))
	p = binary.AppendUvarint(append(p, byte(r.delay)), r.active)
	r.write(seal(append(p, at.State...), chunkSnapshot))
	return r.err
}

// Close writes the index, which ends the file. It doesn't close the writer.
func (r *Recorder) Close() error {
	r.flush()
	at := r.at
	p := binary.AppendUvarint(make([]byte, chunkHead), uint64(r.next))
	p = binary.AppendUvarint(p, uint64(len(r.snapshots)))
	for _, s := range r.snapshots {
		p = binary.AppendUvarint(binary.AppendUvarint(p, uint64(s.turn)), uint64(s.offset))
	}
	r.write(seal(p, chunkIndex))
	r.write(append(binary.LittleEndian.AppendUint64(nil, uint64(at)), replayTrailer...))
	if r.err == nil {
		r.err = io.ErrClosedPipe
		return nil
	}
	return r.err
}
