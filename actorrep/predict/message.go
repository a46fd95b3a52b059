package predict

import (
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// maxMessage is the bytes of a message of package prediction.
const maxMessage = 384

// message is one of those as a parameter.
type message struct {
	number uint8 // of the possession
	bits   int
	data   [maxMessage]byte
}

// WriteNet writes it.
func (m *message) WriteNet(w *bitio.Writer) {
	w.WriteUint8(m.number)
	w.WriteIntPacked(uint32(m.bits))
	w.WriteBitsFrom(m.data[:], 0, m.bits)
}

// ReadNet reads it.
func (m *message) ReadNet(r *bitio.Reader) error {
	m.number = r.ReadUint8()
	n := r.ReadIntPacked()
	if n > 8*maxMessage || int(n) > r.Remaining() {
		r.Fail(bitio.ErrFormat)
		return fmt.Errorf("predict: a message of %d bits", n)
	}
	m.bits = int(n)
	r.ReadBitsTo(m.data[:(m.bits+7)/8], m.bits)
	return r.Err()
}

// reader is a reader of a message that came.
func (c *Class[A, I]) reader(m *message) *bitio.Reader {
	c.got = *m
	c.r.Reset(c.got.data[:], m.bits)
	return &c.r
}
