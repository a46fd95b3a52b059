package actorrep

import (
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// part is one bunch of an opening in several.
type part struct {
	data []byte
	bits int
}

// maxOpening bounds the bytes of an opening in several bunches. It is twice what the values of a class can take. All
// unfinished openings of a connection count against its MaxMemory.
const maxOpening = 1 << 20

// partCost is what a part costs in memory besides its bytes.
const partCost = 64

// ErrOpening: a server sends an opening without end, or the client's connection has too little MaxMemory for it.
var ErrOpening = fmt.Errorf("actorrep: an opening is larger than %d bytes, or than the connection's MaxMemory has room for", maxOpening)

// take handles a bunch on the actor's channel: a part of its opening, then messages.
func (m *mirror) take(r *bitio.Reader) error {
	switch {
	case m.class != nil:
		return m.messages(r)
	case r.ReadBool():
		return m.keepPart(r)
	case m.parts == nil:
		return m.open(r)
	}
	parts := m.parts
	m.dropParts()
	for i := range parts {
		first := bitio.NewReader(parts[i].data, parts[i].bits)
		read := m.messages
		if i == 0 {
			read = m.open
		}
		if err := read(first); err != nil {
			return err
		}
	}
	return m.messages(r)
}

// keepPart stores the rest of a bunch until the opening is complete.
func (m *mirror) keepPart(r *bitio.Reader) error {
	p := part{bits: r.Remaining()}
	n := (p.bits+7)/8 + partCost
	if r.Err() != nil {
		return r.Err()
	}
	if m.held+n > maxOpening || m.ch != nil && m.ch.Hold(n) != nil {
		if m.ch != nil {
			m.ch.Conn().Fail(ErrOpening, true)
		}
		return ErrOpening
	}
	m.held += n
	p.data = make([]byte, n-partCost)
	r.ReadBitsTo(p.data, p.bits)
	m.parts = append(m.parts, p)
	return nil
}

// dropParts drops the stored parts.
func (m *mirror) dropParts() {
	if m.ch != nil {
		m.ch.Release(m.held)
	}
	m.parts, m.held = nil, 0
}
