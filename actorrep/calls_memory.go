package actorrep

import (
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Calls come and go with every Step. A World keeps the memory of those that are over, so that more of them allocate nothing.
const (
	maxSpare      = 4096    // calls of a World, and parameters of each of its procedures
	maxSpareBytes = 1 << 20 // of encoded parameters; of the strings and slices of a Borrowed procedure's
)

// message is an empty message in the World's scratch memory. There is one Writer for that memory, as one made where it
// is used would escape to the heap. It is good until the next message is begun: from here to its sending no code
// of the game's runs but WriteNet, which only writes.
func (w *World) message() *bitio.Writer {
	w.out.Reset(w.scratch)
	return &w.out
}

// call is an encoded one. It is whoever's made it and those queues' that it is in; a multicast is in many.
type call struct {
	rpc     int // in the class
	name    string
	def     *definition
	data    []byte
	bits    int
	frame   uint32
	holders int
}

// held is the call with one more holder.
func (c *call) held() *call {
	c.holders++
	return c
}

// spareCalls is the calls of a World that nobody holds any more.
type spareCalls struct {
	list  []*call
	bytes int // that their data has room for
}

// take returns a call with one holder and empty data.
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

// drop takes a holder from a call.
func (s *spareCalls) drop(c *call) {
	if c.holders--; c.holders != 0 || len(s.list) >= maxSpare || s.bytes+cap(c.data) > maxSpareBytes {
		return
	}
	*c = call{data: c.data[:0]}
	s.bytes += cap(c.data)
	s.list = append(s.list, c)
}

// dropFirst takes the first n calls from a queue.
func (s *spareCalls) dropFirst(queue []*call, n int) []*call {
	for _, c := range queue[:n] {
		s.drop(c)
	}
	rest := append(queue[:0], queue[n:]...)
	clear(queue[len(rest):])
	return rest
}

// procedure is a class's: a World's own, while the Procedure may be that of many, on other goroutines.
type procedure struct {
	name string
	Procedure
	spare []unsafe.Pointer // zero parameters
	lent  int              // bytes of strings and slices that spare ones of a Borrowed procedure keep
}

// take returns zero parameters. They are the caller's until he gives them back, so that calls within calls, of the
// same procedure too, don't meet.
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

// give takes parameters back. What they pointed to is left to the procedure, which has a copy of them; that of a Borrowed one is kept.
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

// read reads parameters, to be given back; false when r isn't just that.
func (p *procedure) read(r *bitio.Reader) (params unsafe.Pointer, ok bool) {
	params = p.take()
	p.decode(r, params)
	if r.Err() != nil || r.Remaining() > 0 {
		p.give(params)
		return nil, false
	}
	return params, true
}
