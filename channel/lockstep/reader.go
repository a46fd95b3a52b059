package lockstep

import (
	"encoding/binary"
	"math"
)

// reader takes fields off p. After a failure bad is set and all fields are zero.
type reader struct {
	p   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.p) {
		r.bad = true
		return nil
	}
	b := r.p[:n:n]
	r.p = r.p[n:]
	return b
}

func (r *reader) uint8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.p)
	if r.bad || n <= 0 {
		r.bad = true
		return 0
	}
	r.p = r.p[n:]
	return v
}

// count is a uvarint that sums of a few can't overflow.
func (r *reader) count() int64 {
	v := r.uvarint()
	if v > math.MaxInt64/8 {
		r.bad = true
		return 0
	}
	return int64(v)
}

// bytes is a length of at most limit and so many bytes.
func (r *reader) bytes(limit int) []byte {
	n := r.uvarint()
	if n > uint64(limit) {
		r.bad = true
		return nil
	}
	return r.take(int(n))
}
