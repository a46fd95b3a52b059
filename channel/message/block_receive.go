package message

import (
	"errors"
	"hash/crc32"
	"slices"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// inBlock is a block of which fragments have come.
type inBlock struct {
	id     int64
	total  int
	sum    uint32
	count  uint32
	whole  []*fragment          // those before the first that is missing
	beyond map[uint32]*fragment // those behind it, at most ahead
	bytes  int
	failed bool // its channel closed
}

type fragment [fragmentBytes]byte

// What a block that is being received and each of its fragments cost, with maps and slices.
const (
	blockCost    = 512
	fragmentCost = fragmentBytes + 128
)

// next is the first fragment that is missing.
func (blk *inBlock) next() uint32 { return uint32(len(blk.whole)) }

// cost is what the block counts against MaxMemory.
func (blk *inBlock) cost() int { return blockCost + (len(blk.whole)+len(blk.beyond))*fragmentCost }

// size is that of a fragment.
func (blk *inBlock) size(f uint32) int { return min(fragmentBytes, blk.total-int(f)*fragmentBytes) }

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
	if id < b.oldest || id < b.oldest+idWindow && b.over[id%idWindow] != 0 {
		b.Counters.Duplicate++
		return nil
	}
	blk, err := b.find(id, int64(total), sum, uint32(n))
	if err == nil {
		err = b.store(blk, f, r)
	}
	if err != nil {
		b.Counters.Refused++
	}
	if errors.Is(err, ErrRoom) {
		_ = b.finish(id, noteRefused) // find has checked it
		b.broken(id, ErrRoom)
		return nil
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
	if id >= b.oldest+idWindow || total > b.ours.bytes || int64(len(b.receiving)) >= b.ours.blocks || claimed > b.ours.held {
		return nil, ErrBounds
	}
	if !b.hold(blockCost) {
		return nil, ErrRoom
	}
	blk := &inBlock{id: id, total: int(total), sum: sum, count: n}
	b.receiving = append(b.receiving, blk)
	return blk, nil
}

// hold counts bytes within the connection's MaxMemory.
func (b *Blocks) hold(n int) bool { return b.ch == nil || b.ch.Hold(n) == nil }

func (b *Blocks) store(blk *inBlock, f uint32, r *bitio.Reader) error {
	switch {
	case f < blk.next() || blk.beyond[f] != nil:
		b.Counters.Duplicate++
		return nil
	case f >= blk.next()+ahead:
		return ErrBounds
	case !b.hold(fragmentCost):
		return ErrRoom
	}
	data := new(fragment)
	r.ReadBytes(data[:blk.size(f)])
	if f == blk.next() {
		blk.whole = append(blk.whole, data)
		for next := blk.beyond[blk.next()]; next != nil; next = blk.beyond[blk.next()] {
			delete(blk.beyond, blk.next())
			blk.whole = append(blk.whole, next)
		}
	} else {
		if blk.beyond == nil {
			blk.beyond = map[uint32]*fragment{}
		}
		blk.beyond[f] = data
	}
	blk.bytes += blk.size(f)
	b.held += blk.size(f)
	if b.cfg.Progress != nil {
		b.cfg.Progress(blk.id, blk.bytes, blk.total)
	}
	if blk.next() == blk.count && !blk.failed { // Progress may have closed the channel
		b.complete(blk)
	}
	return nil
}

// join is the block's data.
func (blk *inBlock) join() []byte {
	whole := make([]byte, 0, blk.total)
	for f, data := range blk.whole {
		whole = append(whole, data[:blk.size(uint32(f))]...)
	}
	return whole
}

func (b *Blocks) complete(blk *inBlock) {
	whole := blk.join()
	if crc32.Checksum(whole, castagnoli) != blk.sum {
		_ = b.finish(blk.id, noteDamaged) // an id that is known is within the window
		b.broken(blk.id, ErrChecksum)
		return
	}
	_ = b.finish(blk.id, noteDone)
	b.Counters.Received++
	if b.cfg.Received != nil {
		b.cfg.Received(blk.id, whole)
	}
}

// finish notes that nothing more of a block is wanted, lets go of what has come of it, and tells the peer by the note of a kind.
func (b *Blocks) finish(id int64, kind byte) error {
	if id < b.oldest {
		return nil
	}
	if id >= b.oldest+idWindow {
		return ErrBounds
	}
	if i := slices.IndexFunc(b.receiving, func(blk *inBlock) bool { return blk.id == id }); i >= 0 {
		blk := b.receiving[i]
		b.held -= blk.bytes
		if b.ch != nil {
			b.ch.Release(blk.cost())
		}
		b.receiving = slices.Delete(b.receiving, i, i+1) // which keeps no pointer to it
	}
	switch over := &b.over[id%idWindow]; {
	case *over != 0: // a peer that withdraws what it has sent
	case kind == told:
		*over = told
		b.advance()
	default:
		*over = kind
		if b.untold++; b.untold == 1 || id < b.from {
			b.from = id
		}
		b.sendNotes()
	}
	return nil
}
