package lockstep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// Replay reads a replay file turn by turn, from its beginning or from one of its snapshots. It checks every byte before
// it uses it. Not safe for concurrent use.
type Replay struct {
	r           io.ReaderAt
	size        int64
	maxSnapshot int
	cfg         Config
	setup       []byte
	body        int64 // offset of the chunk after the header
	first, end  int64 // turns
	snapshots   []replaySnapshot
	whole       bool
	index       int64 // its offset, in a whole file

	at    int64 // offset of the next chunk
	next  int64 // turn
	turns wire.Reader
	chunk []byte
	turn  Turn

	delay  int // 0: not known yet
	active uint64
	begins bool // nothing was read since rewind: a snapshot says how things stand
}

// OpenReplay opens the file of size bytes in r. A file without its end, as after a crash, is read once and has the turns
// that are whole. maxSnapshot bounds a snapshot, in bytes; 0 is 1 MiB. A larger one gives ErrSnapshotSize, here or when
// it is reached. Errors wrap ErrReplay, or are r's.
func OpenReplay(r io.ReaderAt, size int64, maxSnapshot int) (*Replay, error) {
	if maxSnapshot <= 0 {
		maxSnapshot = 1 << 20
	}
	p := &Replay{r: r, size: size, maxSnapshot: maxSnapshot}
	var magic [len(replayMagic) + 1]byte
	if size < int64(len(magic)) {
		return nil, fmt.Errorf("%w: %d bytes are too few", ErrReplay, size)
	}
	if err := p.read(magic[:], 0); err != nil {
		return nil, err
	}
	if string(magic[:4]) != replayMagic || magic[4] != replayVersion {
		return nil, fmt.Errorf("%w: not a replay, or another version of one", ErrReplay)
	}
	typ, header, body, err := p.readChunk(int64(len(magic)), nil)
	if err != nil {
		return nil, err
	}
	var ok bool
	if p.cfg, p.setup, ok = readHeader(header); !ok || typ != chunkHeader {
		return nil, fmt.Errorf("%w: malformed header", ErrReplay)
	}
	p.body = body
	if !p.readIndex() {
		if err := p.scan(); err != nil {
			return nil, err
		}
	}
	if p.end < p.first {
		p.end = p.first
	}
	p.rewind()
	return p, nil
}

func (p *Replay) rewind() {
	p.at, p.next, p.turns, p.delay, p.active, p.begins = p.body, p.first, wire.Reader{}, 0, 0, true
}

func (p *Replay) read(b []byte, at int64) error {
	n, err := p.r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: cut off at %d", ErrReplay, at)
	}
	return err
}

// limit is the most bytes of the payload of a chunk at offset.
func (p *Replay) limit(typ byte, at int64) int64 {
	switch typ {
	case chunkHeader:
		return MaxSetup + 1<<16
	case chunkTurns:
		return turnsChunk + int64(p.cfg.maxRecord()) + 64
	case chunkSnapshot:
		return int64(p.maxSnapshot) + 32
	case chunkIndex:
		return (p.maxSnapshots(at) + 1) * 2 * binary.MaxVarintLen64
	}
	return -1
}

// maxSnapshots is how many there can be before offset.
func (p *Replay) maxSnapshots(at int64) int64 {
	const least = chunkHead + 3 + chunkTail
	return max(at-p.body, 0) / least
}

// readChunk reads the chunk at offset into buf, or another one, and checks it.
func (p *Replay) readChunk(at int64, buf []byte) (typ byte, payload []byte, next int64, err error) {
	var head [chunkHead]byte
	if at < 0 || at > p.size-chunkHead-chunkTail {
		return 0, nil, at, fmt.Errorf("%w: cut off at %d", ErrReplay, at)
	}
	if err := p.read(head[:], at); err != nil {
		return 0, nil, at, err
	}
	typ = head[0]
	size := int64(binary.LittleEndian.Uint32(head[1:]))
	if typ == chunkSnapshot && size > p.limit(typ, at) && p.sound(at, size) {
		return typ, nil, at, fmt.Errorf("%w: %w: %d bytes at %d, and OpenReplay's maxSnapshot is %d", ErrReplay, ErrSnapshotSize, size, at, p.maxSnapshot)
	}
	if size > p.limit(typ, at) {
		return typ, nil, at, fmt.Errorf("%w: a chunk of type %d with %d bytes at %d", ErrReplay, typ, size, at)
	}
	if size > p.size-at-chunkHead-chunkTail {
		return typ, nil, at, fmt.Errorf("%w: cut off at %d", ErrReplay, at)
	}
	total := chunkHead + size + chunkTail
	if int64(cap(buf)) < total {
		buf = make([]byte, total)
	}
	buf = buf[:total]
	if err := p.read(buf, at); err != nil {
		return typ, nil, at, err
	}
	sealed := buf[:chunkHead+size]
	if crc32.Checksum(sealed, castagnoli) != binary.LittleEndian.Uint32(buf[chunkHead+size:]) {
		return typ, nil, at, fmt.Errorf("%w: damaged at %d", ErrReplay, at)
	}
	return typ, sealed[chunkHead:], at + total, nil
}

// sound reports whether a chunk that isn't read for its size is whole and undamaged.
func (p *Replay) sound(at, size int64) bool {
	if size > p.size-at-chunkHead-chunkTail {
		return false
	}
	sum := crc32.New(castagnoli)
	var tail [chunkTail]byte
	_, err := io.Copy(sum, io.NewSectionReader(p.r, at, chunkHead+size))
	return err == nil && p.read(tail[:], at+chunkHead+size) == nil && sum.Sum32() == binary.LittleEndian.Uint32(tail[:])
}

// readIndex reads what Close wrote, and reports whether it is there and sound.
func (p *Replay) readIndex() bool {
	var t [trailerBytes]byte
	if p.size < trailerBytes || p.read(t[:], p.size-trailerBytes) != nil || string(t[8:]) != replayTrailer {
		return false
	}
	at := binary.LittleEndian.Uint64(t[:])
	if at > uint64(p.size) {
		return false
	}
	typ, b, next, err := p.readChunk(int64(at), nil)
	if err != nil || typ != chunkIndex || next != p.size-trailerBytes {
		return false
	}
	r := wire.Reader{P: b}
	end, n := r.Count(), r.Count()
	if r.Bad || n > p.maxSnapshots(int64(at)) {
		return false
	}
	snapshots := make([]replaySnapshot, 0, n)
	last := replaySnapshot{-1, p.body - 1}
	for range n {
		s := replaySnapshot{r.Count(), r.Count()}
		if r.Bad || s.turn < last.turn || s.turn > end || s.offset <= last.offset || s.offset >= int64(at) {
			return false
		}
		snapshots = append(snapshots, s)
		last = s
	}
	if !r.Done() {
		return false
	}
	p.end, p.snapshots, p.whole, p.index = end, snapshots, true, int64(at)
	if len(snapshots) > 0 && snapshots[0].offset == p.body {
		p.first = snapshots[0].turn
	}
	return true
}

// scan finds the snapshots and the last whole turn of a file without an index.
func (p *Replay) scan() error {
	p.end, p.snapshots = 0, nil
	for at := p.body; ; {
		typ, b, next, err := p.readChunk(at, p.chunk)
		if err != nil {
			if errors.Is(err, ErrReplay) && !errors.Is(err, ErrSnapshotSize) {
				return nil // what is whole is good
			}
			return err
		}
		p.chunk = b[:0]
		r := wire.Reader{P: b}
		turn := r.Count()
		switch {
		case typ == chunkSnapshot && !r.Bad && (at == p.body || turn == p.end):
			p.snapshots = append(p.snapshots, replaySnapshot{turn, at})
			if at == p.body {
				p.first, p.end = turn, turn
			}
		case typ == chunkTurns && turn == p.end && !r.Bad:
			for len(r.P) > 0 {
				if r.Bytes(p.cfg.maxRecord()); r.Bad {
					return nil
				}
				if r.Uint64(); r.Bad {
					return nil
				}
				p.end++
			}
		default:
			return nil
		}
		at = next
	}
}

// Config is the game's. Its MaxPacket isn't in the file: ignore it.
func (p *Replay) Config() Config { return p.cfg }

// Setup is what the game began with; empty when there was none.
func (p *Replay) Setup() []byte { return p.setup }

// Turns is the range of turns in the file, [first, end). whole reports whether the file was closed (Recorder.Close).
func (p *Replay) Turns() (first, end int64, whole bool) { return p.first, p.end, p.whole }

// SeekTurn goes to the newest snapshot at or before turn, or to the beginning when there is none, where State is nil. Load
// the State, then execute Next's turns up to turn. Generation is 0: a Host that resumes the game there sends its State to
// each peer that has turns. Errors: ErrReplayTurn, ErrReplay, or r's.
func (p *Replay) SeekTurn(turn int64) (at Resume, err error) {
	if turn < p.first || turn > p.end {
		return at, ErrReplayTurn
	}
	best := -1
	for i, s := range p.snapshots {
		if s.turn <= turn {
			best = i
		}
	}
	p.rewind()
	if best < 0 {
		return Resume{Turn: p.first}, nil
	}
	s := p.snapshots[best]
	typ, b, next, err := p.readChunk(s.offset, nil)
	if err != nil {
		return at, err
	}
	r := wire.Reader{P: b}
	if typ != chunkSnapshot || r.Count() != s.turn || !p.snapshotHead(&r) {
		return at, fmt.Errorf("%w: no snapshot of turn %d at %d", ErrReplay, s.turn, s.offset)
	}
	p.at, p.next = next, s.turn
	return Resume{Turn: s.turn, Delay: p.delay, Active: p.active, State: r.P}, nil
}

// snapshotHead reads what follows the turn, and reports whether it can be so after the turns before it.
func (p *Replay) snapshotHead(r *wire.Reader) bool {
	delay, active := int(r.Uint8()), r.Uvarint()
	if r.Bad || delay > p.cfg.MaxDelay || active&^p.cfg.mask() != 0 {
		return false
	}
	if !p.begins && (p.delay != 0 && delay != p.delay || active != p.active) {
		return false
	}
	p.delay, p.active, p.begins = delay, active, false
	return true
}

// Next returns the next turn and its recorded hash (Config.Hash of the parts); after the last turn the error is io.EOF. The
// turn is valid until the next call. When the game computes another hash, it differs from the one that was recorded.
func (p *Replay) Next() (*Turn, uint64, error) {
	for len(p.turns.P) == 0 {
		if p.next >= p.end && (!p.whole || p.at == p.index) {
			return nil, 0, io.EOF
		}
		typ, b, next, err := p.readChunk(p.at, p.chunk)
		if err != nil {
			return nil, 0, err
		}
		p.chunk, p.at = b[:0], next
		r := wire.Reader{P: b}
		if turn := r.Count(); r.Bad || turn != p.next || typ != chunkTurns && typ != chunkSnapshot {
			return nil, 0, fmt.Errorf("%w: turn %d isn't where it must be", ErrReplay, p.next)
		}
		if typ == chunkTurns {
			p.turns = r
		} else if !p.snapshotHead(&r) {
			return nil, 0, fmt.Errorf("%w: malformed snapshot of turn %d", ErrReplay, p.next)
		}
	}
	rec := p.turns.Bytes(p.cfg.maxRecord())
	hash := p.turns.Uint64()
	if p.turns.Bad || p.next >= p.end || !p.turn.parse(rec, &p.cfg) {
		p.turns = wire.Reader{}
		return nil, 0, fmt.Errorf("%w: malformed turn %d", ErrReplay, p.next)
	}
	for i := range p.turn.Events {
		switch e := &p.turn.Events[i]; e.Kind {
		case DelayChanged:
			p.delay = int(e.Value)
		case Joined:
			p.active |= 1 << e.Player
		case Dropped:
			p.active &^= 1 << e.Player
		}
	}
	p.begins = false
	p.turn.N, p.turn.Delay = p.next, p.delay
	p.next++
	return &p.turn, hash, nil
}

// Verify reads the file from its first turn to its last, as Next does, and compares the index with it. Errors wrap
// ErrReplay, or are r's.
func (p *Replay) Verify() error {
	p.rewind()
	for {
		switch _, _, err := p.Next(); {
		case err == io.EOF:
			err = p.verifySnapshots()
			p.rewind()
			return err
		case err != nil:
			return err
		}
	}
}

// verifySnapshots reads the heads of all chunks: the snapshots are where the index says, and no others.
func (p *Replay) verifySnapshots() error {
	left := p.snapshots
	for at := p.body; p.whole && at < p.index; {
		var head [chunkHead + binary.MaxVarintLen64]byte // the index and the trailer are longer than what may follow a head
		if err := p.read(head[:], at); err != nil {
			return err
		}
		if head[0] == chunkSnapshot {
			turn, _ := binary.Uvarint(head[chunkHead:])
			if len(left) == 0 || left[0] != (replaySnapshot{int64(turn), at}) {
				return fmt.Errorf("%w: the index doesn't know the snapshot of turn %d at %d", ErrReplay, turn, at)
			}
			left = left[1:]
		}
		at += chunkHead + int64(binary.LittleEndian.Uint32(head[1:])) + chunkTail
	}
	if p.whole && len(left) > 0 {
		return fmt.Errorf("%w: no snapshot of turn %d at %d", ErrReplay, left[0].turn, left[0].offset)
	}
	return nil
}
