package exercise

import (
	"fmt"

	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// stream is a simtest.Stream with the end that sends it.
type stream struct {
	*simtest.Stream
	id    int
	from  *end
	taken bool // somebody receives it
}

func (e *end) newStream(what string, d simtest.Delivery) *stream {
	s := &stream{Stream: e.g.w.NewStream(fmt.Sprintf("%s of %v", what, e), d), id: len(e.g.streams), from: e}
	e.g.streams = append(e.g.streams, s)
	return s
}

func (s *stream) reliable() bool { return s.Delivery() == simtest.InOrder }

// received takes number n of s where only one stream of its kind may arrive, which in remembers.
func (e *end) received(s *stream, n uint32, in **stream) {
	if *in == nil && !s.taken {
		*in, s.taken = s, true
	}
	switch {
	case *in != s:
		e.g.w.Failf("order", "%v: something of %v arrived where %v does", e, s, *in)
	case s.from.peer != e:
		e.g.w.Failf("order", "%v: %v comes from a connection with another", e, s)
	}
	s.Received(n)
}

// streamOf is the stream of an id that has arrived, or nil, which is a failure.
func (e *end) streamOf(id uint32) *stream {
	if uint64(id) >= uint64(len(e.g.streams)) {
		e.g.w.Failf("order", "%v received something of stream %d, which there isn't", e, id)
		return nil
	}
	return e.g.streams[id]
}

// flow is one end of a channel with one stream each way.
type flow struct {
	e    *end
	out  *stream
	in   *stream // nil until something has come
	gone bool
}

// arrived takes number n of the stream with an id: what, in whose data the noise begins at head.
func (f *flow) arrived(what string, id, n uint32, data []byte, head int) {
	w := f.e.g.w
	if f.gone || f.e.result != nil {
		w.Failf("close", "%v received %s after its end", f.e, what)
	}
	s := f.e.streamOf(id)
	if s == nil {
		return
	}
	for i := head; i < len(data); i++ {
		if data[i] != byte(noise(id, n, i)) {
			w.Failf("order", "%v: number %d of %v isn't intact", f.e, n, s)
			return
		}
	}
	f.e.received(s, n, &f.in)
}

func (f *flow) pending() string {
	if n := f.out.Missing(); n > 0 {
		return fmt.Sprintf("%d missing of %v", n, f.out)
	}
	return ""
}

func (f *flow) over() { f.out.Void() }
