package actorrep

import (
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Calls are made and finished in every Step. A World keeps the memory of finished ones, so that new ones allocate
// nothing.
const (
	maxSpare      = 4096    // calls of a World, and parameters of each of its procedures
	maxSpareBytes = 1 << 20 // of encoded parameters; of the strings and slices of a Borrowed procedure's
)

// message returns a Writer with an empty message in the World's scratch memory. The Writer is shared, because one made
// at each use would escape to the heap. The message is valid until the next call of message. Between the two, the only
// code of the game that runs is WriteNet, which only writes.
func (w *World) message() *bitio.Writer {
	w.out.Reset(w.scratch)
	return &w.out
}

// call is an encoded call. It is reference-counted: its maker and each queue that holds it own one reference. A
// multicast is in many queues.
type call struct {
	rpc     int // in the class
	name    string
	def     *definition
	data    []byte
	bits    int
	frame   uint32
	holders int  // references
	given   bool // by Arrive
}

// held adds a reference and returns the call.
func (c *call) held() *call {
	c.holders++
	return c
}

// spareCalls is a World's free list of calls.
type spareCalls struct {
	list  []*call
	bytes int // capacity of their data
}

// take returns a call with one reference and empty data.
func (s *spareCalls) take() *call {
	n := len(s.list)
	if n == 0 {
		return &call{holders: 1}
	}
	c := s.list[n-1]
	s.list[n-1] = nil
	s.list = s.list[:n-1]
	s.bytes -= cap(c.data)
	c.holders = 1
	return c
}

// drop releases one reference. The last one puts the call on the free list, if that has room.
func (s *spareCalls) drop(c *call) {
	if c.holders--; c.holders != 0 || len(s.list) >= maxSpare || s.bytes+cap(c.data) > maxSpareBytes {
		return
	}
	*c = call{data: c.data[:0]}
	s.bytes += cap(c.data)
	s.list = append(s.list, c)
}

// dropFirst removes the first n calls from a queue and drops them.
func (s *spareCalls) dropFirst(queue []*call, n int) []*call {
	for _, c := range queue[:n] {
		s.drop(c)
	}
	rest := append(queue[:0], queue[n:]...)
	clear(queue[len(rest):])
	return rest
}

// dropSent is dropFirst of calls that were sent.
func (s *spareCalls) dropSent(list []sentCall, n int) []sentCall {
	for _, k := range list[:n] {
		s.drop(k.call)
	}
	rest := append(list[:0], list[n:]...)
	clear(list[len(rest):])
	return rest
}

// procedure is a class's procedure in one World. The Procedure itself may be shared by Worlds on other goroutines.
type procedure struct {
	name string
	Procedure
	spare []unsafe.Pointer // zero parameters
	lent  int              // bytes of the strings and slices that spare keeps for a Borrowed procedure
}

// take returns zero parameters. The caller owns them until it calls give, so nested calls, even of the same procedure,
// don't share any.
func (p *procedure) take() unsafe.Pointer {
	n := len(p.spare)
	if n == 0 {
		return p.blank()
	}
	params := p.spare[n-1]
	p.spare[n-1] = nil
	p.spare = p.spare[:n-1]
	if mem := p.borrow(params); mem != nil {
		p.lent -= mem.Size()
	}
	return params
}

// give takes parameters back. The slices and strings that they point to stay with the procedure's handler, which may
// have kept them; those of a Borrowed procedure are reused.
func (p *procedure) give(params unsafe.Pointer) {
	mem := p.borrow(params)
	if mem != nil {
		mem.Keep()
	}
	p.zero(params)
	if len(p.spare) >= maxSpare || mem != nil && p.lent+mem.Size() > maxSpareBytes {
		return
	}
	if mem != nil {
		p.lent += mem.Size()
	}
	p.spare = append(p.spare, params)
}

// read decodes parameters, which the caller must give back. It returns false when r holds anything else.
func (p *procedure) read(r *bitio.Reader) (params unsafe.Pointer, ok bool) {
	params = p.take()
	p.decode(r, params)
	if r.Err() != nil || r.Remaining() > 0 {
		p.give(params)
		return nil, false
	}
	return params, true
}
