package message

import (
	"hash/crc32"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// inBlock is a block of which fragments have come.
type inBlock struct {
	id     int64
	total  int
	sum    uint32
	count  uint32
	whole  []byte            // the fragments below next
	next   uint32            // first fragment that is missing
	beyond map[uint32][]byte // fragments behind it, at most ahead
	bytes  int
	failed bool // its channel closed
}

// receiveFragment takes a fragment. An error is a rule that the peer broke.
func (b *Blocks) receiveFragment(r *bitio.Reader) error {
	wire, total, sum, f := r.ReadUint16(), r.ReadUint32(), r.ReadUint32(), r.ReadUint32()
	n := (int64(total) + fragmentBytes - 1) / fragmentBytes
	if r.Err() != nil || total == 0 || int64(f) >= n {
		b.Counters.Refused++
		return ErrFormat
	}
	size := min(fragmentBytes, int(int64(total)-int64(f)*fragmentBytes))
	if r.Remaining() != size*8 {
		b.Counters.Refused++
		return ErrFormat
	}
	id := expandID(wire, b.oldest)
	if id < b.oldest || id < b.oldest+idWindow && b.over[id%idWindow] {
		b.Counters.Duplicate++
		return nil
	}
	blk, err := b.find(id, int64(total), sum, uint32(n))
	if err == nil {
		err = b.store(blk, f, size, r)
	}
	if err != nil {
		b.Counters.Refused++
	}
	return err
}

// find is the block that a fragment belongs to, begun when it is new.
func (b *Blocks) find(id, total int64, sum, n uint32) (*inBlock, error) {
	claimed := total
	for _, blk := range b.receiving {
		if blk.id != id {
			claimed += int64(blk.total)
			continue
		}
		if int64(blk.total) != total || blk.sum != sum {
			return nil, ErrFormat
		}
		return blk, nil
	}
	if id >= b.oldest+idWindow || total > int64(b.cfg.MaxBytes) || len(b.receiving) >= b.cfg.MaxBlocks || len(b.notes) >= 2*maxBlocks || claimed > int64(b.cfg.MaxHeld) {
		return nil, ErrBounds
	}
	blk := &inBlock{id: id, total: int(total), sum: sum, count: n}
	b.receiving = append(b.receiving, blk)
	return blk, nil
}

func (b *Blocks) store(blk *inBlock, f uint32, size int, r *bitio.Reader) error {
	if f < blk.next || blk.beyond[f] != nil {
		b.Counters.Duplicate++
		return nil
	}
	if f >= blk.next+ahead {
		return ErrBounds
	}
	if f == blk.next {
		start := len(blk.whole)
		blk.grow(size)
		r.ReadBytes(blk.whole[start:])
		blk.next++
		for next := blk.beyond[blk.next]; next != nil; next = blk.beyond[blk.next] {
			start := len(blk.whole)
			blk.grow(len(next))
			copy(blk.whole[start:], next)
			delete(blk.beyond, blk.next)
			blk.next++
		}
	} else {
		if blk.beyond == nil {
			blk.beyond = map[uint32][]byte{}
		}
		data := make([]byte, size)
		r.ReadBytes(data)
		blk.beyond[f] = data
	}
	blk.bytes += size
	b.held += size
	if b.cfg.Progress != nil {
		b.cfg.Progress(blk.id, blk.bytes, blk.total)
	}
	if blk.next == blk.count && !blk.failed { // Progress may have closed the channel
		b.complete(blk)
	}
	return nil
}

// grow makes the whole part longer. Its room is never more than twice that, nor more than the block.
func (blk *inBlock) grow(n int) {
	need := len(blk.whole) + n
	if need > cap(blk.whole) {
		whole := make([]byte, len(blk.whole), min(max(2*cap(blk.whole), need), blk.total))
		copy(whole, blk.whole)
		blk.whole = whole
	}
	blk.whole = blk.whole[:need]
}

func (b *Blocks) complete(blk *inBlock) {
	_ = b.finish(blk.id) // an id that is known is within the window
	if crc32.Checksum(blk.whole, castagnoli) != blk.sum {
		b.tell(note{noteDamaged, blk.id})
		b.fail(blk.id, ErrChecksum)
		return
	}
	b.tell(note{noteDone, blk.id})
	b.Counters.Received++
	if b.cfg.Received != nil {
		b.cfg.Received(blk.id, blk.whole)
	}
}

// finish notes that nothing more of a block is wanted, and lets go of what has come of it.
func (b *Blocks) finish(id int64) error {
	if id < b.oldest {
		return nil
	}
	if id >= b.oldest+idWindow {
		return ErrBounds
	}
	for i, blk := range b.receiving {
		if blk.id == id {
			b.held -= blk.bytes
			b.receiving = append(b.receiving[:i], b.receiving[i+1:]...)
			break
		}
	}
	b.over[id%idWindow] = true
	for b.over[b.oldest%idWindow] {
		b.over[b.oldest%idWindow] = false
		b.oldest++
	}
	return nil
}
