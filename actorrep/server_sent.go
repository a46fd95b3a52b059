package actorrep

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// record is an update in flight.
type record struct {
	v      *view
	mask   layout.Mask
	due    layout.Mask   // units to send again if the packet is lost: those of the record that weren't sent reliably since
	count  int64         // number of the actor's changes so far
	prev   int64         // place of the view's previous record, which may be acked or lost
	at     time.Duration // time of its Step
	frame  uint32
	number uint16 // number of the view's records with numbers that have a delta form
	why    Reason // that the values hadn't been sent before
	deltas bool   // it has such numbers
	keys   [layout.MaxFast]uint32
}

// sentRing is the records in flight of a connection, oldest first. Places count from 1 and are never reused. At the end,
// until write, are the records of the Step's batch.
type sentRing struct {
	ring       []record // a power of two
	head, tail int64    // places
	packets    []sentPacket
	first      int // of packets: the oldest in flight
}

// sentPacket says which packet carries the records up to a place.
type sentPacket struct{ packet, end int64 }

// maxInFlight bounds the records in flight of a connection: about 128 packets full of the smallest.
const maxInFlight = 1 << 15

func (s *sentRing) at(place int64) *record { return &s.ring[place&int64(len(s.ring)-1)] }

func (s *sentRing) full() bool { return s.tail-s.head >= maxInFlight }

// end is the place of the next record.
func (s *sentRing) end() int64 {
	if s.tail == 0 {
		s.head, s.tail = 1, 1
	}
	return s.tail
}

// next is the record that push adds, to be filled in.
func (s *sentRing) next() *record {
	s.end()
	if int(s.tail-s.head) == len(s.ring) {
		s.resize(max(64, 2*len(s.ring)))
	}
	return s.at(s.tail)
}

// push adds the record that was filled in.
func (s *sentRing) push() {
	r := s.at(s.tail)
	r.prev, r.v.last = r.v.last, s.tail
	s.tail++
}

// sent notes that a packet carries the records up to a place.
func (s *sentRing) sent(packet, end int64) {
	if s.first > 0 && len(s.packets) == cap(s.packets) {
		s.packets = s.packets[:copy(s.packets, s.packets[s.first:])]
		s.first = 0
	}
	s.packets = append(s.packets, sentPacket{packet, end})
}

// settled returns the place after the records of the oldest packet in flight if that is packet or older, and forgets the
// packet. Otherwise it returns 0.
func (s *sentRing) settled(packet int64) (end int64) {
	if s.first == len(s.packets) || s.packets[s.first].packet > packet {
		return 0
	}
	end = s.packets[s.first].end
	if s.first++; s.first == len(s.packets) {
		s.packets, s.first = s.packets[:0], 0
	}
	return end
}

// fetch reads a little of the views of the next records, up to a place, so that the waits for memory overlap: a packet has those of actors anywhere in
// the world. The sum has no meaning.
//
//go:noinline
func (s *sentRing) fetch(end int64) (sum int64) {
	for i := s.head; i < min(end, s.head+fetchedRecords); i++ {
		sum += s.at(i).v.last
	}
	return sum
}

const fetchedRecords = 256

// unsent takes back the records from a place on: their values are to be sent again.
func (s *sentRing) unsent(from int64) {
	for s.tail > from {
		s.tail--
		r := s.at(s.tail)
		r.v.last = r.prev
		r.v.changed(r.mask)
		*r = record{}
	}
}

// trim gives back memory when the ring is much larger than the most that was in flight.
func (s *sentRing) trim(most int) {
	most = max(most, int(s.tail-s.head))
	n := len(s.ring)
	for n > 64 && n > 4*most {
		n /= 2
	}
	if most == 0 {
		n = 0
	}
	if n < len(s.ring) {
		s.resize(n)
	}
	s.packets = lean(s.packets, most)
}

func (s *sentRing) resize(n int) {
	old := *s
	s.ring = make([]record, n)
	for i := old.head; i < old.tail; i++ {
		*s.at(i) = *old.at(i)
	}
}

// fate is what has become of a packet.
type fate struct {
	packet int64
	lost   bool
	frame  uint32 // of the World, when it was told
}

// hear is told the fate of a packet. With several cores the connections learn what it means in the next Step, at the same
// time, or before something is asked or done for which it matters.
func (p *Peer) hear(packet int64, lost bool) {
	if p.removed() {
		return
	}
	w := p.world
	if p.fates = append(p.fates, fate{packet, lost, w.frame}); len(w.workers) > 1 {
		if w.fates++; !p.hearing {
			p.hearing = true
			w.hearing = append(w.hearing, p)
		}
		return
	}
	p.learnFates()
	w.count(p)
}

// learnFates has all connections learn the fates of their packets.
func (w *World) learnFates() {
	switch {
	case w.fates == 0:
		return
	case w.fates >= fewForCores:
		w.onCores(len(w.hearing), w.learnPeer)
	default:
		for _, p := range w.hearing {
			p.learnFates()
		}
	}
	w.learned()
}

// learned counts what all connections have learned.
func (w *World) learned() {
	for i, p := range w.hearing {
		w.count(p)
		p.hearing, w.hearing[i] = false, nil
	}
	w.fates, w.hearing = 0, w.hearing[:0]
}

func (w *World) count(p *Peer) {
	w.Counters.Resent += p.resent
	p.resent = 0
}

// learnFates touches nothing but the connection and its views.
func (p *Peer) learnFates() {
	for _, f := range p.fates {
		if f.lost {
			p.lost(f)
		} else {
			p.acked(f.packet)
		}
	}
	p.peaks.fates = max(p.peaks.fates, len(p.fates))
	p.fates = p.fates[:0]
}

// acked handles the ack of a packet: its records have arrived.
func (p *Peer) acked(packet int64) {
	s := &p.sent
	for end := s.settled(packet); end != 0; end = s.settled(packet) {
		s.fetch(end)
		for s.head < end {
			r := s.at(s.head)
			v := r.v
			p.known, p.knownAt, p.knows = r.frame, r.at, true
			if v.state == open {
				if r.deltas {
					v.base.arrived(v, r)
				}
				if v.flags&versioned != 0 {
					v.versions.arrived(v.b.class.layout, r)
				}
			}
			p.retire(r)
		}
	}
}

// inFlight is the units of a view whose newest values are in flight in records, and not sent reliably.
func (s *sentRing) inFlight(v *view) (m layout.Mask) {
	for i := v.last; i >= s.head; i = s.at(i).prev {
		m |= s.at(i).due
	}
	return m
}

// settle notes that units of a view were sent reliably: if a record in flight is lost they needn't be sent again.
func (s *sentRing) settle(v *view, m layout.Mask) {
	for i := v.last; i >= s.head; i = s.at(i).prev {
		s.at(i).due &^= m
	}
}

// lost handles the loss of a packet: units that no later record in flight carries are dirty again. Their values at the
// time of sending are sent, not the lost ones.
func (p *Peer) lost(f fate) {
	s := &p.sent
	for end := s.settled(f.packet); end != 0; end = s.settled(f.packet) {
		for s.head < end {
			r := s.at(s.head)
			m := r.due
			for i := r.v.last; i > s.head; i = s.at(i).prev {
				m &^= s.at(i).mask
			}
			p.resent++
			v := r.v
			p.retire(r)
			if v.state == open && m != 0 {
				v.reason = ReasonLost
				v.dirty |= m
				if v.flags&inTurns != 0 {
					v.rest |= m // they don't wait for the actor's next update
				}
				v.hurry(f.frame)
			}
		}
	}
}

func (p *Peer) retire(r *record) {
	if r.v.last == p.sent.head {
		r.v.last = -1
	}
	*r = record{}
	p.sent.head++
}
