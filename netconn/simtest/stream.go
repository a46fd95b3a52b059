package simtest

import "fmt"

// Delivery is what a stream promises about what is sent over it.
type Delivery uint8

// The kinds of delivery. "Once" means that it isn't received twice.
const (
	InOrder     Delivery = iota // all arrive once, in order
	ExactlyOnce                 // all arrive once, in any order
	AtMostOnce                  // some may be lost; the rest arrive once
	Newest                      // some may be lost; the rest arrive once, each newer than those before
	OrTold                      // the rest arrive once, in order; the sender is told of each that is lost
)

// Stream checks that what is sent over one stream arrives as its Delivery promises.
type Stream struct {
	Name string

	world     *Simulation
	delivery  Delivery
	sent, got uint32
	told      uint32
	next      uint32   // after the highest received
	seen      []uint64 // a bit each, where the order is free
	void      bool
}

// NewStream returns a checker for a stream.
func (w *Simulation) NewStream(name string, d Delivery) *Stream {
	return &Stream{Name: name, world: w, delivery: d}
}

// String returns the stream's name and delivery.
func (s *Stream) String() string {
	return fmt.Sprintf("%s (%d sent, %d received, %d told)", s.Name, s.sent, s.got, s.told)
}

// Delivery returns what the stream promises.
func (s *Stream) Delivery() Delivery { return s.delivery }

// Sent returns the number of the message that is sent now. The first is 0.
func (s *Stream) Sent() uint32 {
	s.sent++
	return s.sent - 1
}

// Received checks the number of a message that has arrived.
func (s *Stream) Received(n uint32) {
	switch {
	case n >= s.sent:
		s.world.Failf("order", "%v: number %d was never sent", s, n)
	case s.delivery == InOrder && n != s.got:
		s.world.Failf("order", "%v: number %d came instead of %d", s, n, s.got)
	case (s.delivery == Newest || s.delivery == OrTold) && n < s.next:
		s.world.Failf("order", "%v: number %d came after %d", s, n, s.next-1)
	case s.delivery == ExactlyOnce || s.delivery == AtMostOnce:
		s.once(n)
	}
	s.next = max(s.next, n+1)
	s.got++
	s.atMostAll()
}

// Told notes that the sender was told that one message won't arrive. It isn't known which one: arrived and told together must be as many as
// were sent.
func (s *Stream) Told() {
	s.told++
	s.atMostAll()
}

func (s *Stream) atMostAll() {
	if s.delivery == OrTold && s.got+s.told > s.sent {
		s.world.Failf("whole", "%v: more have arrived or are told as lost", s)
	}
}

func (s *Stream) once(n uint32) {
	for int(n/64) >= len(s.seen) {
		s.seen = append(s.seen, 0)
	}
	if s.seen[n/64]>>(n%64)&1 != 0 {
		s.world.Failf("once", "%v: number %d came twice", s, n)
	}
	s.seen[n/64] |= 1 << (n % 64)
}

// Void says that messages which haven't arrived yet needn't arrive, because their connection has ended.
func (s *Stream) Void() { s.void = true }

// Missing returns how many must still arrive, or must still be told as lost.
func (s *Stream) Missing() int {
	if s.void || s.delivery == AtMostOnce || s.delivery == Newest {
		return 0
	}
	return int(s.sent - s.got - s.told)
}

// Left returns how many haven't arrived, whatever the stream promises.
func (s *Stream) Left() int {
	if s.void {
		return 0
	}
	return int(s.sent - s.got)
}

// Unsent takes back the last Sent, because the message wasn't sent.
func (s *Stream) Unsent() { s.sent-- }
