package message

import (
	"sort"
	"time"
	"unsafe"
)

// inFlight remembers what packets carry until their fate is known, the oldest packet first. It grows with that, within what memory allows beyond the
// least size, and shrinks again.
//
// Invariant: packets.first..packets.next-1 have rising ids, and the first of them is open; their items stand in items in the same order.
type inFlight[T any] struct {
	packets fifo[flying]
	items   fifo[T]
	shrunk  time.Duration // when it was last looked whether the rings may shrink
}

// flying is a packet in flight.
type flying struct {
	id     int64
	credit int64 // told in it, 0 none
	at     time.Duration
	from   uint32 // its items in inFlight.items
	n      int32
}

// open reports whether the packet's fate matters and isn't known.
func (p *flying) open() bool { return p.n > 0 || p.credit > 0 }

// close says that its fate is known.
func (p *flying) close() { p.n, p.credit = 0, 0 }

const (
	// leastPackets and leastItems are what there is room for in any case.
	leastPackets, leastItems = 4, 16
	// maxPackets is how many packets are remembered: more than a connection has in flight.
	maxPackets = 8192
	// shrinkEvery is how often rings that are less than half full shrink: what varies within it allocates nothing.
	shrinkEvery = 8 * time.Second
)

// room is how many of n items one more packet may carry, if there is room for the packet. Memory m may be nil, for no bound.
func (f *inFlight[T]) room(m memory, n int) (items int, ok bool) {
	if f.packets.len() == maxPackets {
		f.drop() // it counts as lost
	}
	if !f.packets.grow(m, f.packets.len()+1, leastPackets) {
		return 0, false
	}
	if !f.items.grow(m, f.items.len()+n, leastItems) {
		n = len(f.items.slots) - f.items.len()
	}
	return n, true
}

// sent notes what a packet carries, for which there is room. Several calls with an id are one packet's; ids rise.
func (f *inFlight[T]) sent(id int64, at time.Duration, items ...T) *flying {
	if f.packets.len() == 0 || f.packets.at(f.packets.next-1).id != id {
		*f.packets.push() = flying{id: id, at: at, from: f.items.next}
	}
	p := f.packets.at(f.packets.next - 1)
	if !p.open() {
		p.from = f.items.next
	}
	for _, item := range items {
		*f.items.push() = item
	}
	p.n += int32(len(items))
	return p
}

// find is the open packet with an id, or nil.
func (f *inFlight[T]) find(id int64) *flying {
	i := sort.Search(f.packets.len(), func(i int) bool { return f.packets.at(f.packets.first+uint32(i)).id >= id })
	if i == f.packets.len() {
		return nil
	}
	if p := f.packets.at(f.packets.first + uint32(i)); p.id == id && p.open() {
		return p
	}
	return nil
}

// item is the i-th of a packet.
func (f *inFlight[T]) item(p *flying, i int32) T { return *f.items.at(p.from + uint32(i)) }

// settled forgets a packet whose fate is known.
func (f *inFlight[T]) settled(p *flying) {
	for p.close(); f.packets.len() > 0 && !f.packets.at(f.packets.first).open(); {
		f.drop()
	}
}

// drop forgets the oldest packet.
func (f *inFlight[T]) drop() {
	f.packets.first++
	f.items.first = f.items.next
	if f.packets.len() > 0 {
		f.items.first = f.packets.at(f.packets.first).from
	}
}

// shrink gives back memory that wasn't used for a while. It is called now and then.
func (f *inFlight[T]) shrink(m memory, now time.Duration) {
	if now-f.shrunk < shrinkEvery {
		return
	}
	f.shrunk = now
	f.packets.shrink(m, leastPackets)
	f.items.shrink(m, leastItems)
}

// fifo is a queue in a ring whose size is a power of two, or 0.
type fifo[T any] struct {
	slots       []T
	first, next uint32
	most        uint32 // that it held since shrink looked
}

func (f *fifo[T]) len() int        { return int(f.next - f.first) }
func (f *fifo[T]) at(i uint32) *T  { return &f.slots[i&uint32(len(f.slots)-1)] }
func (f *fifo[T]) bytes(n int) int { var t T; return n * int(unsafe.Sizeof(t)) }

// push adds one, for which there is room.
func (f *fifo[T]) push() *T {
	f.next++
	f.most = max(f.most, f.next-f.first)
	return f.at(f.next - 1)
}

// grow makes room for n, and reports whether there is. What is beyond the least counts in m.
func (f *fifo[T]) grow(m memory, n, least int) bool {
	size := max(len(f.slots), least)
	for size < n {
		size *= 2
	}
	if size == len(f.slots) {
		return true
	}
	if more := size - max(len(f.slots), least); m != nil && more > 0 && m.HoldSent(f.bytes(more)) != nil {
		return false
	}
	f.resize(size)
	return true
}

// shrink cuts the ring to twice what it held since the last call.
func (f *fifo[T]) shrink(m memory, least int) {
	size := least
	for size < 2*int(f.most) {
		size *= 2
	}
	f.most = f.next - f.first
	if len(f.slots) <= size {
		return
	}
	if m != nil {
		m.ReleaseSent(f.bytes(len(f.slots) - size))
	}
	f.resize(size)
}

func (f *fifo[T]) resize(size int) {
	old := *f
	f.slots = make([]T, size)
	for i := f.first; i != f.next; i++ {
		*f.at(i) = *old.at(i)
	}
}
