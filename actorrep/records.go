package actorrep

import (
	"fmt"
	"math/bits"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// received is the numbers of an actor as its last records brought them: baselines. What is older than the baselines in
// use is forgotten.
type received struct {
	entries    []receivedEntry // a power of two
	words      []uint64
	width      int
	head, tail int
}

type receivedEntry struct {
	packet int64
	mask   layout.Mask
	frame  int64
}

const (
	minReceived = 8
	// maxReceived bounds the ring. It is more than a server's ring of snapshots, as resent values are records too.
	maxReceived = 64
)

func (h *received) at(i int) (*receivedEntry, []uint64) {
	i &= len(h.entries) - 1
	return &h.entries[i], h.words[i*h.width : (i+1)*h.width]
}

// find is a record by the low bits of its packet, for values in packet now. The two before it are kept from now on, and
// those after.
func (h *received) find(low uint8, now int64) (words []uint64, e *receivedEntry, place int) {
	for i := h.tail - 1; i >= h.head; i-- {
		if e, words := h.at(i); uint8(e.packet) == low && now-e.packet < 1<<packetBits {
			return words, e, i
		}
	}
	return nil, nil, 0
}

// push makes room for a record's numbers. With maxReceived of them the oldest goes.
func (h *received) push(packet int64, mask layout.Mask, frame int64) []uint64 {
	if h.tail-h.head == len(h.entries) {
		if len(h.entries) < maxReceived {
			h.grow()
		} else {
			h.head++
		}
	}
	e, words := h.at(h.tail)
	h.tail++
	*e = receivedEntry{packet, mask, frame}
	return words
}

func (h *received) grow() {
	n := max(minReceived, 2*len(h.entries))
	bigger := received{entries: make([]receivedEntry, n), words: make([]uint64, n*h.width), width: h.width, head: h.head, tail: h.tail}
	for i := h.head; i < h.tail; i++ {
		from, old := h.at(i)
		to, words := bigger.at(i)
		*to = *from
		copy(words, old)
	}
	*h = bigger
}

// writeFrame writes the frame of a chunk. A near one is written by its low bits.
func writeFrame(w *bitio.Writer, frame uint32, near bool) {
	w.WriteBool(!near)
	if near {
		w.WriteBits(uint64(frame), frameBits)
	} else {
		w.WriteUint32(frame)
	}
}

// readFrame reads it.
func (c *client) readFrame(r *bitio.Reader) int64 {
	if r.ReadBool() {
		return c.extend(r.ReadUint32())
	}
	const shift = 64 - frameBits
	return c.frame + (int64(r.ReadBits(frameBits))-c.frame)<<shift>>shift
}

// extend is the frame with these low bits that is nearest to the newest known. Frames of a client count on where those of
// the wire wrap.
func (c *client) extend(low uint32) int64 {
	if c.frame == 0 {
		return 1<<32 + int64(low)
	}
	return c.frame + int64(int32(low-uint32(c.frame)))
}

// skipChunkHead skips what precedes the records of a chunk.
func skipChunkHead(r *bitio.Reader) {
	n := frameBits
	if r.ReadBool() {
		n = 32
	}
	r.Skip(n + 2*packetBits)
}

// records reads a chunk of changed values.
func (c *client) records(in *bunch.In) error {
	r := &in.Data
	frame := c.readFrame(r)
	c.common = [2]uint8{uint8(r.ReadBits(packetBits)), uint8(r.ReadBits(packetBits))}
	c.chunk++
	id, gap := uint32(0), newChunk.gap
	for r.Remaining() > 0 {
		id += readID(r, &gap)
		m := c.mirror(id)
		if m == nil || m.class == nil {
			return fmt.Errorf("%w: channel %d", ErrGUID, id)
		}
		if err := m.record(r, in.PacketID, frame, c); err != nil {
			return err
		}
	}
	if r.Err() != nil {
		return fmt.Errorf("actorrep: records: %w", r.Err())
	}
	c.seen(frame)
	return nil
}

// record reads one.
func (m *mirror) record(r *bitio.Reader, packet, frame int64, c *client) error {
	if r.ReadBool() {
		for n := int(r.ReadBits(3)) + 1; n > 0; n-- {
			if err := m.receiveCall(r, uint32(frame)); err != nil {
				return err
			}
		}
	}
	units := m.class.units
	mask := readMask(r, m.class.lastOf(c.chunk), len(units.Units))
	var base, words []uint64
	known := layout.Mask(0)
	if mask&units.Deltas != 0 {
		var err error
		if base, known, err = m.baseline(r, mask, packet, frame, c); err != nil {
			return err
		}
		words = m.remember(packet, mask, frame)
	}
	for rest := mask; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		var v [layout.MaxNumbers]uint64
		var from []uint64
		if known>>i&1 != 0 {
			from = base[units.First(i):]
		}
		m.unit(r, i, v[:], from, frame, false, true)
		if words != nil {
			copy(words[units.First(i):], v[:units.Units[i].N])
		}
	}
	if r.Err() != nil {
		return fmt.Errorf("actorrep: record of %s: %w", m.class.name, r.Err())
	}
	return nil
}

// remember makes room for the numbers of a record. A baseline that is about to be overwritten is the oldest.
func (m *mirror) remember(packet int64, mask layout.Mask, frame int64) []uint64 {
	if m.history == nil {
		m.history = &received{width: m.class.units.Words()}
	}
	return m.history.push(packet, mask, frame)
}

// baseline reads which earlier record the values build on, and finds its numbers.
func (m *mirror) baseline(r *bitio.Reader, mask layout.Mask, packet, frame int64, c *client) (base []uint64, known layout.Mask, err error) {
	low, has := readBaseline(r, c.common[0])
	if !has {
		return nil, 0, nil
	}
	if m.history == nil {
		return nil, 0, fmt.Errorf("%w: %s", ErrBaseline, m.class.name)
	}
	base, e, _ := m.history.find(low, packet)
	if base == nil || e.mask&mask&m.class.units.Deltas == 0 {
		return nil, 0, fmt.Errorf("%w: %s", ErrBaseline, m.class.name)
	}
	known = e.mask & mask & m.class.units.Deltas
	if !r.ReadBool() {
		return base, known, nil
	}
	older, o, place := m.history.find(c.common[1], packet)
	if older == nil {
		return nil, 0, fmt.Errorf("%w: %s", ErrBaseline, m.class.name)
	}
	num, den := frame-e.frame, e.frame-o.frame
	if den < 1 || den > layout.MaxExtrapolation || num < 0 || num > layout.MaxExtrapolation {
		return nil, 0, fmt.Errorf("%w: %s", ErrBaseline, m.class.name)
	}
	m.history.head = place // a server's baselines never go back
	if len(c.guess) < len(base) {
		c.guess = make([]uint64, len(base))
	}
	guess := c.guess[:len(base)]
	copy(guess, base)
	m.class.units.Extrapolate(guess, known&o.mask, base, older, num, den)
	return guess, known, nil
}

func readBaseline(r *bitio.Reader, common uint8) (low uint8, has bool) {
	switch {
	case r.ReadBool():
		return common, true
	case !r.ReadBool():
		return 0, false
	case !r.ReadBool():
		return common + 1, true
	}
	return uint8(r.ReadBits(packetBits)), true
}
