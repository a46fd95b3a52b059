// Package bench measures the module from outside, one file per package. Run
//
//	go test ./bench -bench . -benchmem
//
// Each figure stands beside the simple way of doing the same.
package bench

import (
	"testing"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A bitLoop is the simple bit stream: one bit at a time.
type bitLoop struct {
	buf []byte
	pos int
}

func (b *bitLoop) write(v uint64, n int) {
	for i := range n {
		mask := byte(1) << uint(b.pos&7)
		if v>>uint(i)&1 != 0 {
			b.buf[b.pos>>3] |= mask
		} else {
			b.buf[b.pos>>3] &^= mask
		}
		b.pos++
	}
}

func (b *bitLoop) read(n int) (v uint64) {
	for i := range n {
		v |= uint64(b.buf[b.pos>>3]>>uint(b.pos&7)&1) << uint(i)
		b.pos++
	}
	return v
}

// The twelve fields of a bunch of an actor, more or less.
var fieldWidths = [12]int{1, 1, 1, 1, 8, 1, 1, 10, 13, 32, 16, 64}

func writeFields(w *bitio.Writer, v uint64) {
	w.WriteBool(v&1 != 0)
	w.WriteBool(v&2 != 0)
	w.WriteBool(v&4 != 0)
	w.WriteBool(v&8 != 0)
	w.WriteIntPacked(uint32(v & 0x7f))
	w.WriteBool(v&16 != 0)
	w.WriteBool(v&32 != 0)
	w.WriteInt(uint32(v&1023), 1024)
	w.WriteInt(uint32(v&8191), 8192)
	w.WriteUint32(uint32(v))
	w.WriteUint16(uint16(v))
	w.WriteUint64(v)
}

var sink uint64

func readFields(r *bitio.Reader) {
	var flags uint64
	for range 4 {
		if r.ReadBool() {
			flags++
		}
	}
	flags += uint64(r.ReadIntPacked())
	for range 2 {
		if r.ReadBool() {
			flags++
		}
	}
	sink += flags + uint64(r.ReadInt(1024)) + uint64(r.ReadInt(8192)) +
		uint64(r.ReadUint32()) + uint64(r.ReadUint16()) + r.ReadUint64()
}

func BenchmarkBitioWriteFields(b *testing.B) {
	buf := make([]byte, 1024)
	b.Run("bitio", func(b *testing.B) {
		b.ReportAllocs()
		var w bitio.Writer
		for i := 0; b.Loop(); i++ {
			w.Reset(buf)
			writeFields(&w, uint64(i)*0x9e3779b97f4a7c15)
		}
	})
	b.Run("bitloop", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			w, v := bitLoop{buf: buf}, uint64(i)*0x9e3779b97f4a7c15
			for _, n := range fieldWidths {
				w.write(v, n)
			}
		}
	})
}

func BenchmarkBitioReadFields(b *testing.B) {
	buf := make([]byte, 1024)
	w := bitio.NewWriter(buf)
	writeFields(w, 0x9e3779b97f4a7c15)
	b.Run("bitio", func(b *testing.B) {
		b.ReportAllocs()
		var r bitio.Reader
		for b.Loop() {
			r.Reset(buf, w.Len())
			readFields(&r)
		}
	})
	b.Run("bitloop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r := bitLoop{buf: buf}
			for _, n := range fieldWidths {
				sink += r.read(n)
			}
		}
	})
}

// Copies of a kilobyte by how source and destination lie.
var copyCases = []struct {
	name          string
	dstBit, srcOf int
}{
	{"aligned", 0, 0},
	{"dst+3", 3, 0},
	{"src+3", 0, 3},
	{"both+3", 3, 3},
	{"dst+3,src+5", 3, 5},
}

func BenchmarkBitioCopy(b *testing.B) {
	const bits = 1000 * 8
	src, dst := make([]byte, 1024), make([]byte, 1024)
	for i := range src {
		src[i] = byte(i * 7)
	}
	for _, c := range copyCases {
		b.Run("write/"+c.name, func(b *testing.B) {
			b.SetBytes(bits / 8)
			b.ReportAllocs()
			var w bitio.Writer
			for b.Loop() {
				w.Reset(dst)
				w.WriteBits(0, c.dstBit)
				w.WriteBitsFrom(src, c.srcOf, bits)
			}
		})
	}
	for _, i := range []int{0, 2} {
		c := copyCases[i]
		b.Run("read/"+c.name, func(b *testing.B) {
			b.SetBytes(bits / 8)
			b.ReportAllocs()
			var r bitio.Reader
			for b.Loop() {
				r.Reset(src, len(src)*8)
				r.Skip(c.srcOf)
				r.ReadBitsTo(dst, bits)
			}
		})
	}
	b.Run("bitloop", func(b *testing.B) {
		b.SetBytes(bits / 8)
		b.ReportAllocs()
		for b.Loop() {
			r, w := bitLoop{buf: src}, bitLoop{buf: dst}
			for range bits {
				w.write(r.read(1), 1)
			}
		}
	})
}
