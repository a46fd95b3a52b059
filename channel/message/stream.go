package message

import (
	"errors"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// ErrRange is the error for a value outside its field's bounds.
var ErrRange = errors.New("message: value out of its bounds")

// Stream is what Serialize gets. It writes the fields, reads them, or only counts their bits. It keeps the first error.
type Stream struct {
	w     *bitio.Writer
	r     *bitio.Reader
	bits  int
	spare int // bytes of capacity that Bytes' slices don't need
	err   error
}

// Reading reports whether fields are being read.
func (s *Stream) Reading() bool { return s.r != nil }

// Err is the first error.
func (s *Stream) Err() error {
	switch {
	case s.err != nil:
		return s.err
	case s.r != nil:
		return s.r.Err()
	case s.w != nil:
		return s.w.Err()
	}
	return nil
}

// Fail sets the stream's error, unless there is one: for errors that Serialize itself finds.
func (s *Stream) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *Stream) fail() { s.Fail(ErrRange) }

// Bits serializes the low n bits of a number; n is 0 to 64.
func (s *Stream) Bits(v *uint64, n int) {
	switch {
	case s.r != nil:
		*v = s.r.ReadBits(n)
	case n < 64 && *v>>uint(n) != 0:
		s.fail()
	case s.w != nil:
		s.w.WriteBits(*v, n)
	default:
		s.bits += n
	}
}

// Bool serializes one bit.
func (s *Stream) Bool(v *bool) {
	b := uint64(0)
	if *v {
		b = 1
	}
	s.Bits(&b, 1)
	*v = b != 0
}

// Int serializes a number from lo to hi, in as many bits as that range needs.
func (s *Stream) Int(v *int32, lo, hi int32) {
	if s.r == nil && (*v < lo || *v > hi) {
		s.fail()
		return
	}
	n := 0
	for span := uint64(int64(hi) - int64(lo)); span>>uint(n) != 0; n++ {
	}
	u := uint64(int64(*v) - int64(lo))
	s.Bits(&u, n)
	if s.r != nil {
		if *v = int32(int64(u) + int64(lo)); *v < lo || *v > hi {
			*v = lo
			s.fail()
		}
	}
}

// Uint8 serializes 8 bits.
func (s *Stream) Uint8(v *uint8) { u := uint64(*v); s.Bits(&u, 8); *v = uint8(u) }

// Uint16 serializes 16 bits.
func (s *Stream) Uint16(v *uint16) { u := uint64(*v); s.Bits(&u, 16); *v = uint16(u) }

// Uint32 serializes 32 bits.
func (s *Stream) Uint32(v *uint32) { u := uint64(*v); s.Bits(&u, 32); *v = uint32(u) }

// Uint64 serializes 64 bits.
func (s *Stream) Uint64(v *uint64) { s.Bits(v, 64) }

// Bytes serializes up to limit bytes. Reading reuses the slice's capacity, which counts against MaxMemory as long as the message waits for Receive.
func (s *Stream) Bytes(v *[]byte, limit int) {
	n, ok := s.length(len(*v), limit)
	switch {
	case !ok:
	case s.r != nil:
		if cap(*v) < n {
			*v = make([]byte, n)
		}
		*v = (*v)[:n]
		s.spare += cap(*v) - n
		s.r.ReadBytes(*v)
	case s.w != nil:
		s.w.WriteBytes(*v)
	default:
		s.bits += n * 8
		s.spare += cap(*v) - n
	}
}

// String serializes a string of up to limit bytes.
func (s *Stream) String(v *string, limit int) {
	n, ok := s.length(len(*v), limit)
	switch {
	case !ok:
	case s.r != nil:
		b := make([]byte, n)
		s.r.ReadBytes(b)
		*v = string(b)
	case s.w != nil:
		for i := range n {
			s.w.WriteUint8((*v)[i])
		}
	default:
		s.bits += n * 8
	}
}

// length is the number of bytes that follow, up to limit, and whether that many may.
func (s *Stream) length(n, limit int) (_ int, ok bool) {
	l := int32(n)
	s.Int(&l, 0, int32(limit))
	if s.r != nil && int64(l)*8 > int64(s.r.Remaining()) {
		s.fail()
	}
	return int(l), s.Err() == nil
}
