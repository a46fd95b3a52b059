package message

import "fmt"

// Encoded is an encoded message, made once for any number of queues with kinds of the same Registry: a broadcast.
type Encoded struct {
	kind *Kind
	bits int
	buf  []byte
	refs int // references: one of its maker, and one of each queue that holds it
}

// The unused Encodeds that a registry keeps for reuse.
const (
	maxFreeEncoded = 1024
	maxFreeBytes   = 1 << 20
)

// leastBits is what a message takes at least: many without fields would cost their reader much for nothing.
const leastBits = 8

// Encode encodes m, which the caller keeps. Call Release on the result after passing it to all queues. Errors: ErrKind when m isn't of
// the type that the kind's function makes, what Serialize gave to Stream.Fail, such as ErrRange, or ErrFormat when Serialize writes other bits
// than it measures.
func (k *Kind) Encode(m Message) (*Encoded, error) {
	if err := k.check(m); err != nil {
		return nil, err
	}
	r := k.reg
	s := &r.stream
	*s = Stream{}
	m.Serialize(s)
	if s.err != nil {
		return nil, fmt.Errorf("%w in a %s", s.err, k.name)
	}
	k.saw(s.bits, s.spare)
	bits := s.bits
	e := r.encoded((max(bits, leastBits) + 7) / 8)
	e.kind, e.bits, e.refs = k, max(bits, leastBits), 1
	r.w.Reset(e.buf)
	*s = Stream{w: &r.w}
	m.Serialize(s)
	if err := s.Err(); err != nil || r.w.Len() != bits {
		e.Release()
		return nil, fmt.Errorf("%w: a %s writes other bits than it measures", ErrFormat, k.name)
	}
	r.w.WriteBits(0, e.bits-bits)
	return e, nil
}

// Bits is the message's size in bits, 8 at least.
func (e *Encoded) Bits() int { return e.bits }

// Release gives up the caller's reference; the queues have their own. Call it once: a second call takes a queue's
// reference. It panics when there is no reference left.
func (e *Encoded) Release() {
	e.mustBeHeld()
	if e.refs--; e.refs > 0 {
		return
	}
	r := e.kind.reg
	if len(r.free) < maxFreeEncoded && r.freeBytes+cap(e.buf) <= maxFreeBytes {
		r.free = append(r.free, e)
		r.freeBytes += cap(e.buf)
	}
}

// encoded is one with room for n bytes.
func (r *Registry) encoded(n int) *Encoded {
	last := len(r.free) - 1
	if last < 0 {
		return &Encoded{buf: make([]byte, n, max(n, 32))}
	}
	e := r.free[last]
	r.free = r.free[:last]
	r.freeBytes -= cap(e.buf)
	if cap(e.buf) < n {
		e.buf = make([]byte, n, 2*n)
	}
	e.buf = e.buf[:n]
	return e
}

func (e *Encoded) mustBeHeld() {
	if e.refs <= 0 {
		panic("message: an Encoded was used after its Release")
	}
}
