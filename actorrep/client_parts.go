package actorrep

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// part is one bunch of an opening in several.
type part struct {
	data []byte
	bits int
}

// maxOpening bounds the bytes of an opening in several bunches. It is twice what the values of a class can take. All
// unfinished openings of a connection count against its MaxMemory, those of a recording against maxActorBytes.
const maxOpening = 1 << 20

// partCost is what a part costs in memory besides its bytes.
const partCost = 64

// ErrOpening: a server sends an opening without end, or the client's connection has too little MaxMemory for it; see netconn.Config.MaxMemory. The connection ends with
// it. The errors that wrap it name the actor, how many bytes of its opening have come, and the setting.
var ErrOpening = errors.New("actorrep: an opening is too large")

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
	var err error
	switch {
	case m.held+n > maxOpening:
		err = fmt.Errorf("%w: %s has more than %d bytes", ErrOpening, m.unopened(), maxOpening)
	case m.ch == nil && m.world.client.held+n > maxActorBytes:
		err = fmt.Errorf("%w: %d bytes of the opening of %s aren't kept", ErrActors, m.held+n, m.unopened())
	case m.ch != nil && m.ch.Hold(n) != nil:
		err = fmt.Errorf("%w: %d bytes of %s have come, and the client's netconn.Config.MaxMemory has no room for more: %d bytes are for this, of which %d are taken by all channels; raise it",
			ErrOpening, m.held+n, m.unopened(), m.ch.MaxHold(), m.ch.Conn().Table().Held())
	}
	if err != nil {
		if m.ch != nil {
			m.ch.Conn().Fail(err, true)
		}
		return err
	}
	if m.held += n; m.ch == nil {
		m.world.client.held += n
	}
	p.data = make([]byte, n-partCost)
	r.ReadBitsTo(p.data, p.bits)
	m.parts = append(m.parts, p)
	return nil
}

// unopened names the actor whose opening isn't complete.
func (m *mirror) unopened() string {
	if len(m.parts) == 0 {
		return "an actor"
	}
	var o wire.Opening
	o.Read(bitio.NewReader(m.parts[0].data, m.parts[0].bits))
	name := "of an unknown class"
	if uint64(o.Class) < uint64(len(m.world.client.schema)) {
		name = m.world.client.schema[o.Class].name
	}
	return fmt.Sprintf("%s %v", bitio.Printable(name), netguid.GUID(o.GUID))
}

// dropParts drops the stored parts.
func (m *mirror) dropParts() {
	if m.ch != nil {
		m.ch.Release(m.held)
	} else {
		m.world.client.held -= m.held
	}
	m.parts, m.held = nil, 0
}
