package bitio

import (
	"encoding/binary"
	"math"
	"testing"
)

// A codec is one way to write a number, and to read it. The value it stands for is
// norm(v); bits is what it must take.
type codec struct {
	write func(w *Writer, v uint64)
	read  func(r *Reader) uint64
	norm  func(v uint64) uint64
	bits  func(v uint64) int
}

func fixed(n int, write func(*Writer, uint64), read func(*Reader) uint64) codec {
	return codec{write, read, func(v uint64) uint64 { return v & (1<<n - 1) }, func(uint64) int { return n }}
}

func bounded(limit uint32) codec {
	return codec{
		func(w *Writer, v uint64) { w.WriteInt(uint32(v), limit) },
		func(r *Reader) uint64 { return uint64(r.ReadInt(limit)) },
		func(v uint64) uint64 { return v % uint64(limit) },
		func(v uint64) int { return IntBits(uint32(v), limit) },
	}
}

var codecs = []codec{
	fixed(1, func(w *Writer, v uint64) { w.WriteBool(v != 0) }, func(r *Reader) uint64 {
		if r.ReadBool() {
			return 1
		}
		return 0
	}),
	fixed(8, func(w *Writer, v uint64) { w.WriteUint8(uint8(v)) }, func(r *Reader) uint64 { return uint64(r.ReadUint8()) }),
	fixed(16, func(w *Writer, v uint64) { w.WriteUint16(uint16(v)) }, func(r *Reader) uint64 { return uint64(r.ReadUint16()) }),
	fixed(32, func(w *Writer, v uint64) { w.WriteUint32(uint32(v)) }, func(r *Reader) uint64 { return uint64(r.ReadUint32()) }),
	fixed(64, func(w *Writer, v uint64) { w.WriteUint64(v) }, func(r *Reader) uint64 { return r.ReadUint64() }),
	fixed(37, func(w *Writer, v uint64) { w.WriteBits(v, 37) }, func(r *Reader) uint64 { return r.ReadBits(37) }),
	fixed(0, func(w *Writer, v uint64) { w.WriteBits(v, 0) }, func(r *Reader) uint64 { return r.ReadBits(0) }),
	fixed(32, func(w *Writer, v uint64) { w.WriteFloat32(math.Float32frombits(uint32(v))) },
		func(r *Reader) uint64 { return uint64(math.Float32bits(r.ReadFloat32())) }),
	fixed(64, func(w *Writer, v uint64) { w.WriteFloat64(math.Float64frombits(v)) },
		func(r *Reader) uint64 { return math.Float64bits(r.ReadFloat64()) }),
	bounded(1), bounded(2), bounded(3), bounded(15), bounded(1000), bounded(1024), bounded(8192), bounded(1<<31 + 1), bounded(math.MaxUint32),
	{func(w *Writer, v uint64) { w.WriteIntPacked(uint32(v)) }, func(r *Reader) uint64 { return uint64(r.ReadIntPacked()) },
		func(v uint64) uint64 { return v & math.MaxUint32 }, PackedBits},
	{func(w *Writer, v uint64) { w.WriteIntPacked64(v) }, func(r *Reader) uint64 { return r.ReadIntPacked64() },
		func(v uint64) uint64 { return v }, PackedBits},
}

// Each nine bytes of input are one field: which codec, and the value.
func FuzzWriteRead(f *testing.F) {
	all := []byte{}
	for i := range codecs {
		all = append(all, byte(i), 1, 2, 3, 4, 5, 6, 7, 8)
		f.Add([]byte{byte(i), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1})
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, program []byte) {
		w := NewWriter(make([]byte, len(program)*2+16))
		each := func(do func(c *codec, v uint64)) {
			for p := program; len(p) >= 9; p = p[9:] {
				c := &codecs[int(p[0])%len(codecs)]
				do(c, c.norm(binary.LittleEndian.Uint64(p[1:])))
			}
		}
		each(func(c *codec, v uint64) {
			before := w.Len()
			c.write(w, v)
			if got, want := w.Len()-before, c.bits(v); got != want || w.Err() != nil {
				t.Fatalf("%#x took %d bits, want %d (%v)", v, got, want, w.Err())
			}
		})
		r := NewReader(w.Bytes(), w.Len())
		each(func(c *codec, v uint64) {
			if got := c.read(r); got != v {
				t.Fatalf("read %#x, wrote %#x", got, v)
			}
		})
		if r.Err() != nil || r.Remaining() != 0 {
			t.Fatal(r.Err(), r.Remaining())
		}
	})
}

// Any reads of any bits: nothing panics, the position stays within, and after an
// error all is zero.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}, []byte("\x05\x00\x00\x00abcd\x00 and more of it"), uint16(200))
	f.Add([]byte{20, 21, 18, 19}, []byte{0xfd, 0xff, 0xff, 0xff, 0x3d, 0xd8, 0, 0xde, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff}, uint16(120))
	f.Fuzz(func(t *testing.T, program, data []byte, nbits uint16) {
		r := NewReader(data, int(nbits))
		total := r.Remaining()
		for i, op := range program {
			if r.Err() != nil && r.Remaining() != 0 {
				t.Fatal("bits left after an error")
			}
			failed := r.Err() != nil
			if got := fuzzRead(t, r, int(op), i); failed && got != 0 {
				t.Fatalf("op %d read %#x after an error", op, got)
			}
			if r.Pos() < 0 || r.Pos() > total || r.Remaining() > total-r.Pos() {
				t.Fatalf("at %d of %d, %d left", r.Pos(), total, r.Remaining())
			}
		}
	})
}

func fuzzRead(t *testing.T, r *Reader, op, i int) uint64 {
	if op %= len(codecs) + 6; op < len(codecs) {
		return codecs[op].read(r)
	}
	switch op - len(codecs) {
	case 0:
		s := r.ReadString(16)
		if len(s) > 16*3 {
			t.Fatalf("a string of %d bytes", len(s))
		}
		return uint64(len(s))
	case 1:
		dst := make([]byte, i%40)
		r.ReadBitsTo(dst, max(0, len(dst)*8-i%8))
		return bitsOfBytes(dst)[:min(64, len(dst)*8)].value()
	case 2:
		sub := r.Sub(i)
		return sub.ReadBits(i % 65)
	case 3:
		r.StripTerminator()
	case 4:
		r.Align()
	default:
		r.Skip(i - 2)
	}
	return 0
}

// A string comes back as it was, except for what UTF-8 doesn't allow.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a", "/Game/Maps/Arena?listen", "é", "世界", "😀😀", "\xff\xfe", "\x00"} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, s string, lead uint8) {
		w := NewWriter(make([]byte, len(s)*2+64))
		w.WriteBits(0, int(lead%64))
		w.WriteString(s)
		if w.Err() != nil {
			if w.Err() != ErrValue {
				t.Fatal(w.Err())
			}
			return
		}
		r := NewReader(w.Bytes(), w.Len())
		r.Skip(int(lead % 64))
		if got, want := r.ReadString(len(s)), string([]rune(s)); got != want || r.Err() != nil || r.Remaining() != 0 {
			t.Fatalf("read %q of %q (%v)", got, want, r.Err())
		}
	})
}
