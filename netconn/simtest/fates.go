package simtest

import "github.com/bunchnet/bunchnet/netconn/nettrace"

// Fates checks the packets of one end of a connection: each is acked or lost exactly once, in order. Compare checks it against the other end:
// no packet is acked that didn't arrive.
type Fates struct {
	// Acked and Lost count the packets that were acked and lost.
	Acked, Lost uint64

	world              *Simulation
	name               string
	first, next, known int64
	begun              bool
	acked, lost        idSet
	received           idSet
	skipped            idSet // sequences that no packet has
}

// NewFates returns a checker for one end of a connection. Set it as that connection's Trace.
func (w *Simulation) NewFates(name string) *Fates { return &Fates{world: w, name: name} }

// Trace handles an event of the connection. It makes Fates a nettrace.Sink.
func (f *Fates) Trace(e *nettrace.Event) {
	switch e.Kind {
	case nettrace.PacketSent:
		f.packetSent(e.PacketID)
	case nettrace.SequenceSkipped:
		f.packetSent(e.PacketID)
		f.skipped.set(e.PacketID)
	case nettrace.PacketAcked:
		f.fate(e.PacketID, true)
	case nettrace.PacketNak:
		f.fate(e.PacketID, false)
	case nettrace.PacketReceived:
		if f.received.get(e.PacketID) {
			f.world.Failf("fates", "%s processed packet %d twice", f.name, e.PacketID)
		}
		f.received.set(e.PacketID)
	}
}

func (f *Fates) packetSent(id int64) {
	if !f.begun {
		f.begun, f.first, f.next, f.known = true, id, id, id
	}
	if id != f.next {
		f.world.Failf("fates", "%s sent packet %d after %d", f.name, id, f.next-1)
	}
	f.next = id + 1
}

func (f *Fates) fate(id int64, acked bool) {
	if f.begun && f.skipped.get(f.known) {
		f.known++
	}
	if !f.begun || id != f.known || id >= f.next {
		f.world.Failf("fates", "%s heard of packet %d when %d of %d was next (acked %v)", f.name, id, f.known, f.next, acked)
		return
	}
	f.known = id + 1
	if acked {
		f.Acked++
		f.acked.set(id)
	} else {
		f.Lost++
		f.lost.set(id)
	}
}

// Sent returns the number of packets sent.
func (f *Fates) Sent() uint64 { return uint64(f.next - f.first) }

// Compare checks the acks of this end against the packets that the peer's end processed. refused is how many of those the peer refused. It is
// -1 if packets that arrived may count as lost.
func (f *Fates) Compare(peer *Fates, refused int) {
	wrong := 0
	for id := f.first; id < f.known; id++ {
		got := peer.received.get(id)
		if f.acked.get(id) && !got {
			f.world.Failf("fates", "%s: packet %d was acked, but %s never got it", f.name, id, peer.name)
			return
		}
		if f.lost.get(id) && got {
			wrong++
		}
	}
	if refused >= 0 && wrong > refused {
		f.world.Failf("fates", "%s: %d packets told as lost had arrived at %s, which refused only %d", f.name, wrong, peer.name, refused)
	}
}

// idSet is a set of packet ids near each other.
type idSet struct {
	base  int64
	words []uint64
}

func (b *idSet) get(id int64) bool {
	i := id/64 - b.base
	return i >= 0 && i < int64(len(b.words)) && b.words[i]>>(uint(id)%64)&1 != 0
}

func (b *idSet) set(id int64) {
	if len(b.words) == 0 {
		b.base = id / 64
	}
	for id/64 < b.base {
		b.base--
		b.words = append([]uint64{0}, b.words...)
	}
	for id/64-b.base >= int64(len(b.words)) {
		b.words = append(b.words, 0)
	}
	b.words[id/64-b.base] |= 1 << (uint(id) % 64)
}
