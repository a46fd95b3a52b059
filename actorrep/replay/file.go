package replay

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/recording"
)

// A recording is little-endian:
//
//	8   "BUNCHREP"     2  version, 4     2  0
//	blocks: the schema, then frames, and last the index
//	8   where the index is     8  "BUNCHEND"
//
// A block is
//
//	4   CRC-32C of the rest of this head     4  CRC-32C of the body     4  bytes of the body
//	1   kind     1  flags: 1 its first frame begins a checkpoint, 2 its last ends one     2  0
//	8   time of the first frame, ns since the beginning     8  of the last     body
//
// and its body
//
//	schema   8 ns between frames, 0 for every Step | 4 bits of the schema | bytes | the game's note
//	frames   each: 8 time | 4 the world's frame | 4 number, from 1 | 4 bytes of its messages | messages
//	index    8 duration | for each checkpoint: 8 its first block | 8 time of its first frame | 8 of its last
//
// A message is
//
//	1   kind     uvarint  place     uvarint  bits     bytes
//
// with the bits of an opening bunch, of messages on an actor's channel, or of records in one chunk with the frame's
// number as its packet; see there. Its kinds are bridge.Kind.
const (
	fileMagic   = "BUNCHREP"
	fileEnd     = "BUNCHEND"
	fileVersion = 4
	fileHead    = 12
	fileTail    = 16
	blockHead   = recording.Head
	frameHeader = 20
	maxBlock    = 16 << 20

	blockSchema = 1
	blockFrames = recording.Frames
	blockIndex  = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendMessage(b []byte, kind bridge.Kind, id uint32, data []byte, bits int) []byte {
	b = append(b, byte(kind))
	b = binary.AppendUvarint(b, uint64(id))
	b = binary.AppendUvarint(b, uint64(bits))
	return append(b, data...)
}

// frameHead is the part of a frame before its messages.
type frameHead struct {
	time          time.Duration
	world, number uint32
}

// indexed is a checkpoint's entry in the index.
type indexed struct {
	offset   int64
	from, to time.Duration
}

// fileWriter writes blocks.
type fileWriter struct {
	out         io.Writer
	offset      int64  // of the current block
	buf         []byte // its head and its frames
	frames      int
	first, last time.Duration
	flags       uint8
	checkpoints []indexed
}

func newFileWriter(out io.Writer) fileWriter {
	return fileWriter{out: out, buf: make([]byte, blockHead, 2*blockBytes)}
}

// begin writes the part before the frames.
func (f *fileWriter) begin(schema []byte, bits int, interval time.Duration, note string) error {
	head := append(make([]byte, 0, fileHead), fileMagic...)
	head = binary.LittleEndian.AppendUint16(head, fileVersion)
	head = binary.LittleEndian.AppendUint16(head, 0)
	if err := f.write(head); err != nil {
		return err
	}
	f.buf = binary.LittleEndian.AppendUint64(f.buf, uint64(interval))
	f.buf = binary.LittleEndian.AppendUint32(f.buf, uint32(bits))
	f.buf = append(f.buf, schema...)
	f.buf = append(f.buf, note...)
	return f.block(blockSchema)
}

// add adds a frame to the block.
func (f *fileWriter) add(h frameHead, messages []byte) {
	if f.frames == 0 {
		f.first = h.time
	}
	f.last = h.time
	f.frames++
	f.buf = binary.LittleEndian.AppendUint64(f.buf, uint64(h.time))
	f.buf = binary.LittleEndian.AppendUint32(f.buf, h.world)
	f.buf = binary.LittleEndian.AppendUint32(f.buf, h.number)
	f.buf = binary.LittleEndian.AppendUint32(f.buf, uint32(len(messages)))
	f.buf = append(f.buf, messages...)
}

// full reports whether the block has the size to be written.
func (f *fileWriter) full() bool {
	return len(f.buf) >= blockBytes || f.frames > 0 && f.last-f.first >= blockTime
}

// flush writes the block, if it has frames, and returns its size in bytes.
func (f *fileWriter) flush() (int, error) {
	if f.frames == 0 {
		return 0, nil
	}
	n := len(f.buf)
	return n, f.block(blockFrames)
}

// checkpointed notes a finished checkpoint. When the index is full, every second one is left out of it: a seek then reads more.
func (f *fileWriter) checkpointed(at int64, from, to time.Duration) {
	if len(f.checkpoints) == maxCheckpoints {
		for i := range maxCheckpoints / 2 {
			f.checkpoints[i] = f.checkpoints[2*i]
		}
		f.checkpoints = f.checkpoints[:maxCheckpoints/2]
	}
	f.checkpoints = append(f.checkpoints, indexed{at, from, to})
}

// end writes the part after the frames.
func (f *fileWriter) end(duration time.Duration) error {
	at := f.offset
	f.buf = binary.LittleEndian.AppendUint64(f.buf, uint64(duration))
	for _, c := range f.checkpoints {
		f.buf = binary.LittleEndian.AppendUint64(f.buf, uint64(c.offset))
		f.buf = binary.LittleEndian.AppendUint64(f.buf, uint64(c.from))
		f.buf = binary.LittleEndian.AppendUint64(f.buf, uint64(c.to))
	}
	if err := f.block(blockIndex); err != nil {
		return err
	}
	return f.write(append(binary.LittleEndian.AppendUint64(nil, uint64(at)), fileEnd...))
}

// block writes the block in buf and begins the next.
func (f *fileWriter) block(kind uint8) error {
	h, body := f.buf[:blockHead], f.buf[blockHead:]
	binary.LittleEndian.PutUint32(h[4:], crc32.Checksum(body, castagnoli))
	binary.LittleEndian.PutUint32(h[8:], uint32(len(body)))
	h[recording.Kind], h[recording.Flags], h[14], h[15] = kind, f.flags, 0, 0
	binary.LittleEndian.PutUint64(h[16:], uint64(f.first))
	binary.LittleEndian.PutUint64(h[recording.Last:], uint64(f.last))
	binary.LittleEndian.PutUint32(h, crc32.Checksum(h[4:], castagnoli))
	err := f.write(f.buf)
	f.buf, f.frames, f.flags = f.buf[:blockHead], 0, 0
	return err
}

func (f *fileWriter) write(b []byte) error {
	n, err := f.out.Write(b)
	f.offset += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}
