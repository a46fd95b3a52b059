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
)

// Stream checks that what is sent over one stream arrives as promised.
type Stream struct {
	Name string

	world     *World
	delivery  Delivery
	sent, got uint32
	next      uint32   // after the highest received
	seen      []uint64 // a bit each, where the order is free
	void      bool
}

// NewStream returns a stream without anything sent.
func (w *World) NewStream(name string, d Delivery) *Stream {
	return &Stream{Name: name, world: w, delivery: d}
}

// String names it.
func (s *Stream) String() string {
	return fmt.Sprintf("%s (%d sent, %d received)", s.Name, s.sent, s.got)
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
	case s.delivery == Newest && n < s.next:
		s.world.Failf("order", "%v: number %d came after %d", s, n, s.next-1)
	case s.delivery == ExactlyOnce || s.delivery == AtMostOnce:
		s.once(n)
	}
	s.next = max(s.next, n+1)
	s.got++
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

// Missing is how many must still arrive.
func (s *Stream) Missing() int {
	if s.void || s.delivery > ExactlyOnce {
		return 0
	}
	return int(s.sent - s.got)
}

// Unsent takes back the last Sent: it didn't leave.
func (s *Stream) Unsent() { s.sent-- }
