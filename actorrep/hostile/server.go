package hostile

import (
	"bytes"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Server is a server that lies. Its messages are those of a game whose classes are the victim's.
type Server struct {
	// Frame is the Step that it says it is in, to be counted on by the caller.
	Frame uint32
	// Actors is how many actors it speaks of, with the ids that a server gives first. Default 4.
	Actors int

	d       *Dice
	classes []*class
	of      map[uint32]int  // class of what was opened last, by channel
	half    map[uint32]bool // whose opening goes on
	w       *bitio.Writer
}

// NewServer returns one that lies as the dice fall.
func NewServer(d *Dice, classes ...Class) (*Server, error) {
	list, err := build(classes)
	return &Server{Frame: 1, Actors: 4, d: d, classes: list, of: map[uint32]int{}, half: map[uint32]bool{}}, err
}

func (s *Server) begin() { s.w = bitio.NewWriter(make([]byte, 8<<10)) }

func (s *Server) end() (data []byte, bits int) { return spoil(s.d, s.w) }

func (s *Server) guid() uint32 {
	return Mostly(s.d, uint32(2+2*s.d.N(s.Actors)), 0, 1, 3, 1<<32-1)
}

// class is what the channel's actor is, or another.
func (s *Server) class(channel uint32) *class {
	i := Mostly(s.d, s.of[channel], s.d.N(len(s.classes)))
	return s.classes[i]
}

// more says whether a channel's opening goes on in its next bunch.
func (s *Server) more(channel uint32, more bool) {
	s.half[channel] = more
	s.w.WriteBool(more)
}

// Opening is the first bunch on an actor's channel.
func (s *Server) Opening(channel uint32) (data []byte, bits int) {
	i := s.d.N(len(s.classes))
	c := s.classes[i]
	s.of[channel] = i
	c.change(s.d)
	s.begin()
	s.more(channel, s.d.N(4) == 0)
	o := wire.Opening{
		GUID: s.guid(), Parent: Mostly(s.d, uint32(2*s.d.N(s.Actors+1)), 1<<32-1),
		Class: Mostly(s.d, uint32(i), 0, uint32(s.d.N(len(s.classes))), uint32(len(s.classes)), 1<<31, 1<<32-1),
		Frame: Mostly(s.d, s.Frame, 0, s.Frame+1<<31, 1<<32-1),
		Owner: s.d.N(2) == 0, Autonomous: s.d.N(2) == 0, Again: s.d.N(2) == 0,
	}
	o.Write(s.w)
	m := c.mask(s.d)
	s.w.WriteBits(m, len(c.layout.Units))
	c.values(s.w, m, nil)
	return s.end()
}

// Messages is what follows on such a channel: values, calls, roles, a tear-off; the rest of its opening first, if there is more.
func (s *Server) Messages(channel uint32) (data []byte, bits int) {
	s.begin()
	if s.half[channel] {
		s.more(channel, s.d.N(3) == 0)
	}
	for range 1 + s.d.N(3) {
		kind := s.d.N(4)
		s.w.WriteBits(uint64(kind), wire.KindBits)
		switch kind {
		case wire.Props:
			c := s.class(channel)
			c.change(s.d)
			s.w.WriteUint32(Mostly(s.d, s.Frame, 0, s.Frame+1<<31))
			m := c.mask(s.d)
			s.w.WriteBits(m, len(c.layout.Units))
			c.values(s.w, m, nil)
		case wire.Call:
			s.w.WriteUint32(s.Frame)
			s.class(channel).call(s.w, s.d)
		case wire.Role:
			s.w.WriteBits(uint64(s.d.N(4)), 2)
		}
	}
	return s.end()
}

// Records is an unreliable bunch on the replication channel: new values of actors by their channels, which are in order.
func (s *Server) Records(channels []uint32) (data []byte, bits int) {
	s.begin()
	wire.WriteTime(s.w, s.Frame, time.Duration(s.Frame)*time.Second+Mostly(s.d, 0, 1<<62, -1<<62, time.Hour), s.d.N(2) == 0)
	state, prev, last := wire.NewChunk(), uint32(0), map[*class]*layout.Mask{}
	for _, channel := range channels {
		if s.d.N(3) == 0 {
			continue
		}
		c := s.class(channel)
		if last[c] == nil {
			last[c] = new(layout.Mask)
		}
		c.change(s.d)
		plain := s.d.N(3) == 0
		wire.WriteID(s.w, Mostly(s.d, channel-prev, 0, 1, 2, 1<<31, 1<<32-1), &state.Gap, plain)
		prev = channel
		if plain {
			t := state.Paths.Last
			c.values(s.w, *last[c], s.base(c, *last[c], t, t.Gap != 0))
			continue
		}
		s.calls(c)
		m := c.mask(s.d)
		wire.WriteMask(s.w, m, last[c], len(c.layout.Units))
		t, predicted := wire.Path{}, false
		if m&c.layout.Deltas != 0 {
			if t = s.path(&state); t.Gap != 0 {
				predicted = s.d.N(3) > 0
				s.w.WriteBool(predicted)
			}
		}
		c.values(s.w, m, s.base(c, m, t, predicted))
	}
	return s.end()
}

// calls writes those that ride with a record.
func (s *Server) calls(c *class) {
	n := s.d.N(3)
	s.w.WriteBool(n > 0)
	if n > 0 {
		s.w.WriteBits(uint64(n-1), 3)
	}
	for range n {
		c.call(s.w, s.d)
	}
}

// path writes which records the numbers of one build on.
func (s *Server) path(state *wire.Chunk) (t wire.Path) {
	switch s.d.N(4) {
	case 0: // none
	case 1:
		t = state.Paths.Last
	default:
		t = wire.Path{Age: uint8(Mostly(s.d, 1+s.d.N(4), 0, 255)), Gap: uint8(Mostly(s.d, 1+s.d.N(2), 0, 31)), Form: uint8(s.d.N(4))}
		if t.Gap == 0 {
			t.Form = 0
		}
	}
	state.Paths.Write(s.w, t)
	return t
}

// base makes the values of a record take the form of a path's, whatever the client has.
func (s *Server) base(c *class, m layout.Mask, t wire.Path, predicted bool) *layout.Base {
	if t.Age == 0 {
		return nil
	}
	past := &layout.Past{Mask: m & c.layout.Deltas, Age: int(t.Age), Gap: int(t.Gap), Form: layout.Form(t.Form)}
	off := uint64(s.d.N(256)) // enough to be told apart from what the client has
	history, words := c.layout.NewHistory(layout.Points), c.layout.NewShadow()
	for i := range past.At {
		for j := range words.Words {
			words.Words[j] = off * uint64(i+j)
		}
		past.At[i] = i
		c.layout.Remember(&history, i, words)
	}
	past.History = &history
	if predicted {
		past.Predicted = past.Mask
		c.layout.Predict(c.shadow, past)
	}
	return &layout.Base{Past: past}
}

// Gone is a message on the replication channel that an actor went, or was torn off, while it slept.
func (s *Server) Gone() (data []byte, bits int) {
	s.begin()
	s.w.WriteBits(uint64(Mostly(s.d, wire.Gone, wire.Torn, wire.Schema)), wire.KindBits)
	s.w.WriteIntPacked(s.guid())
	s.w.WriteUint32(Mostly(s.d, s.Frame, 0, 1<<32-1))
	return s.end()
}

// Refused is a message on the replication channel that calls didn't run, which the client may never have made.
func (s *Server) Refused() (data []byte, bits int) {
	s.begin()
	wire.Refusal{GUID: s.guid(), Procedure: Mostly(s.d, uint32(s.d.N(3)), 255, 1<<31, 1<<32-1), Why: wire.Why(s.d.N(4)),
		Count: Mostly(s.d, uint32(1+s.d.N(3)), 0, 1<<32-1)}.Write(s.w)
	return s.end()
}

// spoil takes some of a message away, adds to it or turns a bit, now and then.
func spoil(d *Dice, w *bitio.Writer) (data []byte, bits int) {
	data, bits = bytes.Clone(w.Bytes()), w.Len()
	switch d.N(d.rare + 8) {
	case 12:
		bits = bits * d.N(16) / 16
	case 13:
		if len(data) > 0 {
			data[d.N(len(data))] ^= 1 << d.N(8)
		}
	case 14:
		data = append(data, 0xff, 0xff, byte(d.N(256)))
		bits = len(data) * 8
	}
	return data[:(bits+7)/8], bits
}
