package message

import (
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Send begins to send data and returns the block's id. data must not change until Sent or Failed is called. The connection's Tick sends its fragments, with the
// bandwidth that the game leaves. To stop a block close the channel: all of its blocks fail with ErrNoChan then. Errors: ErrEmpty, ErrBlockBig, ErrNoChan, ErrBlocks.
func (b *Blocks) Send(data []byte) (int64, error) {
	switch {
	case len(data) == 0:
		return 0, ErrEmpty
	case len(data) > b.cfg.MaxBytes:
		return 0, fmt.Errorf("%w: %d bytes, MaxBytes is %d", ErrBlockBig, len(data), b.cfg.MaxBytes)
	case b.known && int64(len(data)) > b.bounds.bytes:
		return 0, b.tooBig(len(data))
	case b.ch == nil || b.ch.Closing():
		return 0, ErrNoChan
	case len(b.sending) >= b.cfg.MaxBlocks:
		return 0, ErrBlocks
	}
	n := uint32((len(data) + fragmentBytes - 1) / fragmentBytes)
	o := &outBlock{id: b.nextID, data: data, sum: crc32.Checksum(data, castagnoli), count: n, acked: newBitmap(n)}
	b.nextID++
	b.sending = append(b.sending, o)
	b.arm()
	return o.id, nil
}

// tooBig is the error of a block that is too large for the peer.
func (b *Blocks) tooBig(n int) error {
	return fmt.Errorf("%w: %d bytes, the peer takes %d, by its MaxBytes, MaxHeld and its connection's MaxMemory", ErrBlockBig, n, b.bounds.bytes)
}

// Progress is how many fragments of a block being sent are acked, and how many it has; 0, 0 for other ids. BlocksConfig's Progress counts bytes.
func (b *Blocks) Progress(id int64) (arrived, total int) {
	for _, o := range b.sending {
		if o.id == id {
			return int(o.ackedNum), int(o.count)
		}
	}
	return 0, 0
}

// withdraw fails the blocks that are too large for the peer, whose bounds were not known when they were given to Send.
func (b *Blocks) withdraw() {
	for i := 0; i < len(b.sending); {
		o := b.sending[i]
		if int64(len(o.data)) <= b.bounds.bytes {
			i++
			continue
		}
		b.forget(o)
		b.withdrew = true
		b.tell(note{noteWithdrawn, o.id})
		b.fail(o.id, b.tooBig(len(o.data)))
	}
}

// activate lets blocks begin, in order, as far as the peer's bounds allow.
func (b *Blocks) activate() {
	active, held, oldest := int64(0), int64(0), int64(0)
	if len(b.sending) > 0 && !b.withdrew {
		oldest = b.sending[0].id
	}
	for _, o := range b.sending {
		if !o.active && (active >= b.bounds.blocks || held+int64(len(o.data)) > b.bounds.held || o.id >= oldest+idWindow) {
			return
		}
		o.active = true
		active++
		held += int64(len(o.data))
	}
}

// arm has send called in the connection's next Tick, and from then on in each: nothing else has fragments sent, or notes when there is memory for them again.
func (b *Blocks) arm() {
	if b.arming != nil {
		return
	}
	a, t := &arming{b}, b.ch.Conn().Table()
	b.arming = a
	var each func()
	each = func() {
		if a.b != nil {
			t.Later(each)
			a.b.send()
		}
	}
	t.Later(each)
}

// arming is all that what runs later keeps of a Blocks whose channel is closed: a peer may open and close many before it runs.
type arming struct{ b *Blocks }

// send sends fragments of all blocks in turn, as far as the connection's packet window and the bandwidth allow that the game leaves in this tick.
func (b *Blocks) send() {
	if b.ch.Closing() || !b.ch.OpenAcked() {
		return
	}
	b.flying.shrink(b.ch, b.ch.Conn().Now())
	b.sendNotes()
	if !b.known {
		return
	}
	b.activate()
	for idle := 0; idle < len(b.sending) && b.ch.Conn().IsNetReady(); {
		b.turn = (b.turn + 1) % len(b.sending)
		o := b.sending[b.turn]
		f, ok := o.due()
		if !ok {
			idle++
			continue
		}
		idle = 0
		if !b.sendFragment(o, f) {
			o.lost = append(o.lost, f)
			return
		}
	}
}

// due is the next fragment to send: lost ones first.
func (o *outBlock) due() (uint32, bool) {
	for n := len(o.lost); n > 0; n = len(o.lost) {
		f := o.lost[n-1]
		o.lost = o.lost[:n-1]
		if !o.acked.get(f) {
			return f, true
		}
	}
	if o.active && o.next < o.count && o.next < o.missing+ahead {
		o.next++
		return o.next - 1, true
	}
	return 0, false
}

func (b *Blocks) sendFragment(o *outBlock, f uint32) bool {
	if n, _ := b.flying.room(b.ch, 1); n == 0 {
		return false // until the fate of others is known
	}
	var w bitio.Writer
	w.Reset(b.buf[:])
	w.WriteUint16(uint16(o.id))
	w.WriteUint32(uint32(len(o.data)))
	w.WriteUint32(o.sum)
	w.WriteUint32(f)
	start := int(f) * fragmentBytes
	w.WriteBytes(o.data[start:min(start+fragmentBytes, len(o.data))])
	r, err := b.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), NoMerge: true, StayUnreliable: true})
	if err != nil {
		return false
	}
	b.Counters.Fragments++
	b.flying.sent(r.Last, 0, fragmentSent{o.id, f})
	return true
}

// settle calls f for each fragment that a packet carried of a block still under way.
func (b *Blocks) settle(packetID int64, f func(o *outBlock, frag uint32)) {
	p := b.flying.find(packetID)
	if p == nil {
		return
	}
	for i := range p.n {
		s := b.flying.item(p, i)
		for _, o := range b.sending {
			if o.id == s.block {
				f(o, s.frag)
				break
			}
		}
	}
	b.flying.settled(p)
}

// ackFragment notes that a fragment arrived. It is called once for each: a fragment is sent again only when its packet was lost, so it is in
// one packet at a time.
func (b *Blocks) ackFragment(o *outBlock, f uint32) {
	o.acked.set(f)
	o.ackedNum++
	for o.missing < o.count && o.acked.get(o.missing) {
		o.missing++
	}
}

func (b *Blocks) loseFragment(o *outBlock, f uint32) {
	b.Counters.Resent++
	o.lost = append(o.lost, f)
}

// forget ends the sending of a block.
func (b *Blocks) forget(o *outBlock) {
	if i := slices.Index(b.sending, o); i >= 0 {
		b.sending = slices.Delete(b.sending, i, i+1) // which keeps no pointer to it
	}
	b.turn = 0
}
