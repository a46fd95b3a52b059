package main

import (
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel/message"
)

// The types of queues of the other modes.
var (
	unorderedName = bunch.Name{Index: 304}
	sequencedName = bunch.Name{Index: 305}
)

// queueModes is the modes of the types of queues.
var queueModes = map[bunch.Name]message.Mode{queueName: message.Ordered, unorderedName: message.Unordered, sequencedName: message.Sequenced}

// liesOf is a deviation that has f write what the data of a bunch becomes, from what it was; f returns false to leave it.
func liesOf(f func(k *turncoat, b *lie, name bunch.Name, r *bitio.Reader, w *bitio.Writer) bool) func(k *turncoat, p *rewritten) {
	return func(k *turncoat, p *rewritten) {
		for i := range p.lies {
			b := &p.lies[i]
			if b.Bits == 0 || b.Partial || b.Open || k.nameOf == nil {
				continue
			}
			name, ok := k.nameOf(b.ChIndex)
			if !ok {
				continue
			}
			w := bitio.NewWriter(make([]byte, 1100))
			if !f(k, b, name, bitio.NewReader(b.data, b.Bits), w) || w.Err() != nil {
				continue
			}
			b.data, b.Bits = append([]byte(nil), w.Bytes()...), w.Len()
		}
	}
}

// oneOf is one of a list.
func oneOf[T any](k *turncoat, list ...T) T { return list[k.rng.IntN(len(list))] }

// liarWindow is the Window of the queues.
const liarWindow = 64

// falseMessages writes messages of which everything may be false.
func falseMessages(k *turncoat, b *lie, name bunch.Name, r *bitio.Reader, w *bitio.Writer) bool {
	mode, ok := queueModes[name]
	if !ok {
		return false
	}
	credit, first := uint16(0), uint32(0)
	if mode == message.Ordered && r.ReadBool() {
		credit = r.ReadUint16()
	}
	if n := r.ReadInt(65); n > 0 && mode == message.Ordered {
		first = uint32(r.ReadUint16())
	} else if n > 0 && mode == message.Sequenced {
		first = r.ReadUint32()
	}
	if mode == message.Ordered {
		tell := k.rng.IntN(2) == 0 && !k.mild
		w.WriteBool(tell)
		if tell {
			w.WriteUint16(credit + oneOf[uint16](k, 0, 1, 16, liarWindow, liarWindow+1, 1<<15, 1<<16-1, 1<<16-liarWindow, uint16(k.rng.Uint32())))
		}
	}
	n := oneOf[uint32](k, 0, 1, 2, 63, 64)
	w.WriteInt(n, 65)
	for i := range n {
		switch {
		case mode == message.Unordered || mode == message.Sequenced && i > 0:
		case mode == message.Sequenced:
			w.WriteUint32(first + oneOf[uint32](k, 0, 1, 1<<31-1, 1<<31, 1<<32-1, 1000, k.rng.Uint32()))
		case i > 0 && k.rng.IntN(2) == 0:
			w.WriteBool(true)
		default:
			if i > 0 {
				w.WriteBool(false)
			}
			id := uint16(first) + oneOf[uint16](k, 0, 1, 2, 1<<16-1, liarWindow-1, liarWindow, 1<<15-1, 1<<15, uint16(k.rng.IntN(liarWindow)), uint16(k.rng.IntN(liarWindow)))
			if k.mild {
				id = uint16(first) + uint16(k.rng.IntN(liarWindow/4))
			}
			w.WriteUint16(id)
		}
		k.falseMessage(w)
		if w.Len() > 8000 {
			break
		}
	}
	return true
}

// falseMessage writes one of the busybodies' messages.
func (k *turncoat) falseMessage(w *bitio.Writer) {
	kind := uint32(k.rng.IntN(busyKinds))
	w.WriteInt(kind, busyKinds)
	if kind == 1 {
		w.WriteUint64(k.rng.Uint64())
		return
	}
	size := oneOf(k, 0, 1, 1, 1, 10, 100, 599, 600, 601, 1023)
	if k.mild {
		size = min(size, 600)
		w.WriteBits(uint64(size), 10)
		w.WriteBytes(make([]byte, size))
		return
	}
	w.WriteBits(uint64(size), 10)
	for range oneOf(k, size, size, size, 0, size/2) {
		w.WriteUint8(uint8(k.rng.Uint32()))
	}
}

// floods writes as many of the smallest messages as there may be, in order.
func floods(k *turncoat, _ *lie, name bunch.Name, r *bitio.Reader, w *bitio.Writer) bool {
	mode, ok := queueModes[name]
	if !ok {
		return false
	}
	if mode == message.Ordered {
		if r.ReadBool() {
			r.ReadUint16()
		}
		w.WriteBool(false)
	}
	first := uint32(0)
	n := r.ReadInt(65)
	w.WriteInt(64, 65)
	switch mode {
	case message.Ordered:
		if first = uint32(r.ReadUint16()); n == 0 {
			first = k.flood
		}
		w.WriteUint16(uint16(first))
	case message.Sequenced:
		if first = r.ReadUint32(); n == 0 {
			first = k.flood
		}
		w.WriteUint32(first)
	}
	k.flood = first + 64
	for i := range 64 {
		if i > 0 && mode == message.Ordered {
			w.WriteBool(true)
		}
		w.WriteInt(0, busyKinds)
		w.WriteBits(0, 10)
	}
	return true
}

// falseFragments changes the fields of a fragment.
func falseFragments(k *turncoat, b *lie, name bunch.Name, r *bitio.Reader, w *bitio.Writer) bool {
	if name != blockName || b.Reliable {
		return false
	}
	id, total, sum, f := r.ReadUint16(), r.ReadUint32(), r.ReadUint32(), r.ReadUint32()
	size := r.Remaining() / 8
	which := k.rng.IntN(8)
	if k.mild {
		which = oneOf(k, 5, 5, 8, 9, 10)
	}
	switch which {
	case 8: // of the others, a part
		id, total, f, size = id+uint16(1+k.rng.IntN(3)), 20_000, 1+uint32(k.rng.IntN(20)), 896
	case 9: // the same for ever
		f, size = 0, int(min(total, 896))
	case 10: // one that is done, or will be, with a false sum
		id, total, f, size, sum = id+uint16(k.flood%3), 1, 0, 1, uint32(k.rng.Uint32())
		k.flood++
	case 0:
		id += oneOf[uint16](k, 1, 2, 3, 4, 5, 1023, 1024, 1<<15, 1<<16-1)
	case 1:
		total = oneOf(k, 0, 1, 895, 896, 897, total-1, total+1, total+896, 100_000, 100_001, 1<<31-1, 1<<31, 1<<32-1, 1<<30)
	case 2:
		sum++
	case 3:
		f += oneOf[uint32](k, 1, 2, 4095, 4096, 4097, 1<<31, 1<<32-1)
	case 4: // always another block's, and never all of it
		id, total, f, size = uint16(k.rng.IntN(1<<16)), 100_000, uint32(k.rng.IntN(111)), 896
	case 5: // many small blocks, whole
		id, total, f = id+uint16(k.flood), uint32(size), 0
		k.flood++
	case 6:
		size += oneOf(k, -1, 1)
	case 7: // what isn't the first
		id, total, f, size = id+uint16(k.rng.IntN(4)), 100_000, 1+uint32(k.rng.IntN(110)), 896
	}
	w.WriteUint16(id)
	w.WriteUint32(total)
	w.WriteUint32(sum)
	w.WriteUint32(f)
	for range size {
		w.WriteUint8(1)
	}
	return true
}

// falseNotes changes notes, and makes some of what is none.
func falseNotes(k *turncoat, b *lie, name bunch.Name, _ *bitio.Reader, w *bitio.Writer) bool {
	if name != blockName || !b.Reliable {
		return false
	}
	kind := oneOf[uint8](k, 0, 1, 1, 2, 3, 4, 4, 5)
	if k.mild {
		kind = oneOf[uint8](k, 1, 2, 4)
	}
	w.WriteUint8(kind)
	if kind == 0 {
		w.WriteUint32(oneOf[uint32](k, 0, 1, 896, 100_000, 1<<32-1))
		w.WriteUint32(oneOf[uint32](k, 0, 1, 4, 512, 1<<32-1))
		w.WriteUint64(oneOf[uint64](k, 0, 1, 100_000, 1<<63, 1<<64-1))
		return true
	}
	w.WriteUint16(oneOf(k, uint16(k.rng.IntN(8)), uint16(k.rng.IntN(8)), 1023, 1024, uint16(k.rng.Uint32())))
	return true
}

func init() {
	deviations["false messages"] = liesOf(falseMessages)
	deviations["floods of messages"] = liesOf(floods)
	deviations["false fragments"] = liesOf(falseFragments)
	deviations["false notes"] = liesOf(falseNotes)
	deviations["all reliable"] = func(k *turncoat, p *rewritten) {
		p.each(func(b *lie) {
			if !b.Reliable && !b.Partial && k.nameOf != nil {
				if name, ok := k.nameOf(b.ChIndex); ok && name != dataName {
					b.Reliable, b.Name = true, name
					b.WireSeq = k.proto.Sequences().Truncate(int64(k.lastReliable[b.ChIndex]) + 1)
					k.lastReliable[b.ChIndex]++
				}
			}
		})
	}
	deviations["messages in parts"] = func(k *turncoat, p *rewritten) {
		var list []lie
		for _, b := range p.lies {
			if b.Reliable || b.Partial || b.Bits < 64 || b.Close || b.Open {
				list = append(list, b)
				continue
			}
			first, second := b, b
			n := 8 * (1 + k.rng.IntN(b.Bits/8-1))
			first.Partial, first.PartialInitial, first.Bits, first.data = true, true, n, b.data[:n/8]
			if second.PartialFinal = k.mild || k.rng.IntN(3) > 0; !second.PartialFinal {
				b.Bits = b.Bits / 8 * 8
			}
			second.Partial, second.Bits, second.data = true, b.Bits-n, b.data[n/8:]
			if list = append(list, first); k.rng.IntN(4) > 0 {
				list = append(list, second)
			}
		}
		p.lies = list
	}
	deviations["closes and reopens"] = func(k *turncoat, p *rewritten) {
		p.each(func(b *lie) {
			if b.Reliable && b.ChIndex != 0 && !b.Partial && k.rng.IntN(2) == 0 {
				if b.Close = !b.Open; b.Close {
					return
				}
				b.Name = oneOf(k, dataName, queueName, blockName, unorderedName, sequencedName)
			}
		})
	}
	deviations["grows unasked"] = func(k *turncoat, p *rewritten) { // opens of every type
		for range k.rng.IntN(3) {
			i := uint32(100 + k.rng.IntN(200))
			b := lie{bunch.Header{ChIndex: i, Name: oneOf(k, dataName, queueName, blockName, unorderedName, sequencedName), Open: true, Reliable: true, Bits: 8,
				WireSeq: k.proto.Sequences().Truncate(k.first + 1)}, []byte{0}}
			p.lies = append(p.lies, b)
		}
	}
}
