package actorrep

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// received is an actor's numbers from its last records. Later ones are predicted from them.
type received struct {
	entries []receivedEntry // length is a power of two
	layout.History
	n int // records so far
}

type receivedEntry struct {
	frame int64
	mask  layout.Mask
}

const minReceived = 8

// place is the index of record i.
func (h *received) place(i int) int { return i & (len(h.entries) - 1) }

// find returns the newest record of a frame before record i, and its number; nil when there is none.
func (h *received) find(frame int64, i int) (*receivedEntry, int) {
	for i--; i >= max(h.n-len(h.entries), 0); i-- {
		if e := &h.entries[h.place(i)]; e.frame == frame {
			return e, i
		} else if e.frame < frame {
			break
		}
	}
	return nil, 0
}

// full reports whether the next record needs more memory.
func (h *received) full() bool { return len(h.entries) < layout.MaxRecords && h.n >= len(h.entries) }

// push reserves the slot for a record's numbers and returns it. With layout.MaxRecords records it overwrites the oldest.
func (h *received) push(frame int64, mask layout.Mask) (place int) {
	place = h.place(h.n)
	h.n++
	h.entries[place] = receivedEntry{frame, mask}
	return place
}

func (h *received) grow(units *layout.Remote) {
	n := len(h.entries)
	if n == 0 {
		h.entries, h.History = make([]receivedEntry, minReceived), units.NewHistory(minReceived)
		return
	}
	entries := make([]receivedEntry, 2*n)
	to := func(place int) int { // the new index of one of the last n records
		return (h.n - n + (place-h.n)&(n-1)) & (2*n - 1)
	}
	for i, e := range h.entries {
		entries[to(i)] = e
	}
	h.entries, h.History = entries, h.Grown(2*n, to)
}

// extend returns the frame with these low bits that is nearest to the newest known. A client's frames continue counting
// where the wire's wrap around.
func (c *client) extend(low uint32) int64 { return wire.Extend(c.frame, low) }

// records decodes a chunk of records.
func (c *client) records(in *bunch.In) error {
	r := &in.Data
	frame, at := wire.ReadTime(r, c.frame, c.at)
	if r.Err() == nil {
		c.heard(frame, at)
	}
	c.chunk++
	c.paths = wire.Paths{}
	id, gap := uint32(0), wire.NewChunk().Gap
	for r.Remaining() > 0 {
		step, plain := wire.ReadID(r, &gap)
		before := id
		id += step
		m := c.mirror(id)
		switch {
		case id <= before && r.Err() == nil: // else each bit could have the game told of the same actor once more
			return fmt.Errorf("%w: records of channel %d, then %d", errFormat, before, id)
		case m == nil || m.class == nil:
			return fmt.Errorf("%w: channel %d", ErrGUID, id)
		}
		if err := m.record(r, plain, frame, c); err != nil {
			return err
		}
	}
	if r.Err() != nil {
		return fmt.Errorf("actorrep: records: %w", r.Err())
	}
	c.seen(frame)
	return nil
}

// record decodes one record.
func (m *mirror) record(r *bitio.Reader, plain bool, frame int64, c *client) error {
	if !plain && r.ReadBool() {
		for n := int(r.ReadBits(3)) + 1; n > 0; n-- {
			if err := m.receiveCall(r, uint32(frame), false); err != nil {
				return err
			}
		}
	}
	units, last := m.class.units, m.class.lastOf(c.chunk)
	mask := *last
	if !plain {
		mask = wire.ReadMask(r, last, len(units.Units))
	}
	var past *layout.Past
	place := -1
	if mask&units.Deltas != 0 {
		t, predicted := c.paths.Last, true
		if !plain {
			if t = c.paths.Read(r); t.Gap != 0 {
				predicted = r.ReadBool()
			}
		}
		if t.Age != 0 {
			past = &c.past
			if !m.findPast(past, t, predicted, mask, frame) {
				return fmt.Errorf("%w: %s", ErrBaseline, m.class.name)
			}
		}
		var err error
		if place, err = m.remember(mask, frame); err != nil {
			return err
		}
	}
	if mask == 0 && r.Err() == nil {
		return nil // calls only
	}
	m.tellBefore()
	for rest := mask; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		var v [layout.MaxNumbers]uint64
		m.unit(r, i, v[:], past, frame, false)
		if place >= 0 {
			units.Remember(&m.history.History, place, i, v[:])
		}
	}
	if r.Err() != nil {
		return fmt.Errorf("actorrep: record of %s: %w", m.class.name, r.Err())
	}
	m.tellValues()
	return nil
}

// remember reserves the slot for a record's numbers, evicting the oldest when full.
func (m *mirror) remember(mask layout.Mask, frame int64) (place int, err error) {
	if m.history == nil {
		m.history = &received{}
	}
	if h, c := m.history, m.world.client; h.full() {
		more := max(len(h.entries), minReceived) * m.entryBytes()
		if c.held+more > maxActorBytes {
			return 0, fmt.Errorf("%w: the numbers of a %s aren't kept", ErrActors, m.class.name)
		}
		c.held += more
		h.grow(m.class.units)
	}
	return m.history.push(frame, mask), nil
}

// entryBytes is what a record in the history takes.
func (m *mirror) entryBytes() int {
	return int(unsafe.Sizeof(receivedEntry{})) + m.class.units.PlaceBytes()
}

// forgetHistory drops what an actor's records are predicted from, and of a recording the parts of its opening.
func (c *client) forgetHistory(m *mirror) {
	if m.ch == nil {
		m.dropParts()
	}
	if m.history != nil {
		c.held -= len(m.history.entries) * m.entryBytes()
		m.history = nil
	}
}

// forgetMirrors empties the table by which records name actors.
func (c *client) forgetMirrors() {
	for _, m := range c.mirrors {
		if m != nil {
			c.forgetHistory(m)
		}
	}
	clear(c.mirrors)
}

// findPast finds the numbers of the records on a path. It returns false when some never arrived.
func (m *mirror) findPast(p *layout.Past, t wire.Path, predicted bool, mask layout.Mask, frame int64) bool {
	p.Reset()
	if m.history == nil {
		return false
	}
	frame -= int64(t.Age)
	h := m.history
	e, i := h.find(frame, h.n)
	if e == nil || e.mask&mask&m.class.units.Deltas == 0 {
		return false
	}
	p.History, p.At[0], p.Mask, p.Age = &h.History, h.place(i), e.mask&mask&m.class.units.Deltas, int(t.Age)
	if t.Gap == 0 || !predicted {
		return true
	}
	p.Predicted, p.Gap, p.Form = p.Mask, int(t.Gap), layout.Form(t.Form)
	for n := 1; n < p.Form.Times(); n++ {
		frame -= int64(t.Gap)
		if e, i = h.find(frame, i); e == nil {
			return false
		}
		p.At[n] = h.place(i)
		p.Predicted &= e.mask
	}
	p.Prepare()
	return true
}
