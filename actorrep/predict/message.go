package predict

import (
	"fmt"
	"hash/fnv"
	"reflect"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// maxMessage is the largest size in bytes of a message of package prediction.
const maxMessage = 384

// message is such a message as a procedure's parameter. The actors are A, the inputs I.
type message[A, I any] struct {
	number uint8 // of the possession
	bits   int
	data   [maxMessage]byte
}

// NetForm hashes what both ends must agree on to decode each other's messages: the predicted numbers with their
// tolerances, and the input.
func (*message[A, I]) NetForm() (uint32, error) {
	state, err := stateOf(reflect.TypeFor[A]().Elem())
	if err != nil {
		return 0, err
	}
	input, err := layout.BuildValue(reflect.TypeFor[I]())
	if err != nil {
		return 0, err
	}
	h := fnv.New32a()
	for i := range state {
		n := &state[i]
		fmt.Fprintf(h, "%s %d %v %v;", n.Name, n.form(), n.tolerance, n.turn)
	}
	fmt.Fprintf(h, "%x", input.Hash())
	return h.Sum32(), nil
}

// WriteNet writes it.
func (m *message[A, I]) WriteNet(w *bitio.Writer) {
	w.WriteUint8(m.number)
	w.WriteIntPacked(uint32(m.bits))
	w.WriteBitsFrom(m.data[:], 0, m.bits)
}

// ReadNet reads it.
func (m *message[A, I]) ReadNet(r *bitio.Reader) error {
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

// reader returns a reader of a received message.
func (c *Class[A, I]) reader(m *message[A, I]) *bitio.Reader {
	c.got = *m
	c.r.Reset(c.got.data[:], m.bits)
	return &c.r
}
