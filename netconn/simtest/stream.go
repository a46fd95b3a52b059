package simtest

import "fmt"

// Delivery is what a stream promises.
type Delivery uint8

// The promises.
const (
	InOrder     Delivery = iota // everything, once, in order
	ExactlyOnce                 // everything, once, in any order
	AtMostOnce                  // what arrives, arrives once
	Newest                      // what arrives, arrives once and is newer than what came before
	OrTold                      // what arrives, arrives once and in order, and of the rest the sender is told
)

// Stream checks that what is sent over one stream arrives as promised.
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

// NewStream returns a stream without anything sent.
func (w *Simulation) NewStream(name string, d Delivery) *Stream {
	return &Stream{Name: name, world: w, delivery: d}
}

// String names it.
func (s *Stream) String() string {
	return fmt.Sprintf("%s (%d sent, %d received, %d told)", s.Name, s.sent, s.got, s.told)
}

// Delivery is what it promises.
func (s *Stream) Delivery() Delivery { return s.delivery }

// Sent numbers something that is sent now, from 0.
func (s *Stream) Sent() uint32 {
	s.sent++
	return s.sent - 1
}

// Received checks the number of something that has arrived.
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

// Told says that the sender was told of one that it won't arrive. Which one isn't said: all together must be as many as were sent.
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

// Void says that what hasn't arrived by now needn't any more: its connection is gone.
func (s *Stream) Void() { s.void = true }

// Missing is how many must still arrive, or be told.
func (s *Stream) Missing() int {
	if s.void || s.delivery == AtMostOnce || s.delivery == Newest {
		return 0
	}
	return int(s.sent - s.got - s.told)
}

// Left is how many haven't arrived, whatever is promised.
func (s *Stream) Left() int {
	if s.void {
		return 0
	}
	return int(s.sent - s.got)
}

// Unsent takes back the last Sent: it didn't leave.
func (s *Stream) Unsent() { s.sent-- }
