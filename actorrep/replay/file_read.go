package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/recording"
)

// Errors of Open, Step and Seek.
var (
	// ErrNotReplay: the file isn't a recording.
	ErrNotReplay = errors.New("replay: not a recording")
	// ErrVersion: the recording has a format that this build doesn't know.
	ErrVersion = errors.New("replay: a recording of another version")
	// ErrTruncated: the recording ends before the description of its classes does.
	ErrTruncated = errors.New("replay: the recording is cut off")
	// ErrCorrupt: the recording is damaged.
	ErrCorrupt = errors.New("replay: the recording is damaged")
)

// block is a block's head.
type block struct {
	length      int
	kind, flags uint8
	first, last time.Duration
}

// replayFile reads blocks.
type replayFile struct {
	in         io.ReaderAt
	begin, end int64 // of the frames' blocks
	head       [blockHead]byte
	body       []byte // of the block read last

	schema      []byte
	schemaBits  int
	interval    time.Duration
	note        string
	checkpoints []indexed
	duration    time.Duration
	cut         bool    // the file has no index
	unfinished  indexed // the checkpoint that has begun, of a file without an index
	ended       bool    // its index was seen behind its last block: nothing follows
}

// open reads everything except the frames.
func (f *replayFile) open(size int64) error {
	head := make([]byte, fileHead)
	if err := f.readAt(head, 0, size); err != nil {
		return err
	}
	switch v := binary.LittleEndian.Uint16(head[len(fileMagic):]); {
	case string(head[:len(fileMagic)]) != fileMagic:
		return ErrNotReplay
	case v != fileVersion:
		return fmt.Errorf("%w: %d, not %d", ErrVersion, v, fileVersion)
	}
	b, err := f.block(fileHead, size)
	if err != nil {
		return err
	}
	if b.kind != blockSchema || len(f.body) < 12 {
		return f.corrupt(fileHead, "no schema")
	}
	f.interval = time.Duration(binary.LittleEndian.Uint64(f.body))
	schemaBits := int64(binary.LittleEndian.Uint32(f.body[8:]))
	n := (schemaBits + 7) / 8
	if n > int64(len(f.body)-12) || int64(len(f.body)-12)-n > maxNote {
		return f.corrupt(fileHead, "a schema longer than its block")
	}
	f.schemaBits = int(schemaBits)
	f.schema = append([]byte(nil), f.body[12:12+n]...)
	f.note = string(f.body[12+n:])
	f.begin = fileHead + blockHead + int64(b.length)
	if f.readIndex(size) {
		return nil
	}
	f.cut = true
	f.scan(size)
	return nil
}

// readIndex reads the index and reports whether there is one.
func (f *replayFile) readIndex(size int64) bool {
	tail := make([]byte, fileTail)
	if size < f.begin+fileTail || f.readAt(tail, size-fileTail, size) != nil || string(tail[8:]) != fileEnd {
		return false
	}
	at := int64(binary.LittleEndian.Uint64(tail))
	if at < f.begin {
		return false
	}
	b, err := f.block(at, size-fileTail)
	if err != nil || b.kind != blockIndex || len(f.body) < 8 || (len(f.body)-8)%24 != 0 {
		return false
	}
	f.end, f.duration, f.checkpoints = at, time.Duration(binary.LittleEndian.Uint64(f.body)), nil
	if f.duration < 0 {
		return false
	}
	last := time.Duration(0)
	for e := f.body[8:]; len(e) > 0; e = e[24:] {
		c := indexed{int64(binary.LittleEndian.Uint64(e)), time.Duration(binary.LittleEndian.Uint64(e[8:])), time.Duration(binary.LittleEndian.Uint64(e[16:]))}
		if c.offset < f.begin || c.offset >= f.end || c.from < last || c.to < c.from || len(f.checkpoints) >= maxCheckpoints {
			return false
		}
		f.checkpoints, last = append(f.checkpoints, c), c.to
	}
	return true
}

// scan makes the index from the blocks of a file that wasn't closed, up to the first incomplete one.
func (f *replayFile) scan(size int64) {
	f.end, f.duration, f.checkpoints, f.unfinished, f.ended = f.begin, 0, nil, indexed{}, false
	_ = f.scanOn(size) // a damaged file is of use up to there
}

// scanOn continues the scan. It returns an error unless only the rest of a block is missing.
func (f *replayFile) scanOn(size int64) error {
	open := &f.unfinished
	for !f.ended { // else the index would be read again each time
		b, err := f.block(f.end, size)
		switch {
		case errors.Is(err, ErrTruncated):
			return nil
		case err != nil:
			return err
		case b.kind == blockIndex: // it is closed
			f.ended = true
			return nil
		case b.kind != blockFrames || b.first < f.duration || b.last < b.first:
			return f.corrupt(f.end, "a block of another kind or time")
		}
		if b.flags&recording.Begins != 0 {
			*open = indexed{offset: f.end, from: b.first}
		}
		if b.flags&recording.Ends != 0 && open.offset != 0 && len(f.checkpoints) < maxCheckpoints {
			open.to = b.last
			f.checkpoints = append(f.checkpoints, *open)
			open.offset = 0
		}
		f.duration = b.last
		f.end += blockHead + int64(b.length)
	}
	return nil
}

// block reads the block at an offset into f.body. It ends before limit.
func (f *replayFile) block(at, limit int64) (b block, err error) {
	h := f.head[:]
	if err := f.readAt(h, at, limit); err != nil {
		return b, err
	}
	if crc32.Checksum(h[4:], castagnoli) != binary.LittleEndian.Uint32(h) {
		return b, f.corrupt(at, "the checksum of a block's head is wrong")
	}
	n := int64(binary.LittleEndian.Uint32(h[8:]))
	if n > maxBlock {
		return b, f.corrupt(at, "a block of more than 16 MiB")
	}
	if n > limit-at-blockHead {
		return b, fmt.Errorf("%w: a block at %d of %d bytes", ErrTruncated, at, n)
	}
	if int64(cap(f.body)) < n {
		f.body = make([]byte, n)
	}
	f.body = f.body[:n]
	if err := f.readAt(f.body, at+blockHead, limit); err != nil {
		return b, err
	}
	if crc32.Checksum(f.body, castagnoli) != binary.LittleEndian.Uint32(h[4:]) {
		return b, f.corrupt(at, "the checksum of a block is wrong")
	}
	return block{
		length: int(n), kind: h[recording.Kind], flags: h[recording.Flags],
		first: time.Duration(binary.LittleEndian.Uint64(h[16:])), last: time.Duration(binary.LittleEndian.Uint64(h[24:])),
	}, nil
}

// readAt fills b from an offset.
func (f *replayFile) readAt(b []byte, at, limit int64) error {
	if at < 0 || at > limit-int64(len(b)) {
		return fmt.Errorf("%w: at %d", ErrTruncated, at)
	}
	n, err := f.in.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: at %d", ErrTruncated, at+int64(n))
	}
	return fmt.Errorf("replay: reading the recording: %w", err)
}

func (f *replayFile) corrupt(at int64, what string) error {
	return fmt.Errorf("%w: at %d: %s", ErrCorrupt, at, what)
}
