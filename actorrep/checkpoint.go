package actorrep

import (
	"math/bits"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A checkpoint is a copy of all actors, as if freshly opened, for seeks. It is made over several frames, some places a
// frame, in between the ordinary messages: a frame first has its changes, then copies of the next places as they are
// after those. A seek begins with the checkpoint's first frame, and skips what concerns places that aren't
// copied yet; what opens in new places meanwhile needs no copy. With its last frame it has every actor as it is then. Nothing of the ordinary messages is otherwise, but that an
// actor's next record after its copy has no baseline.
type checkpoint struct {
	active       bool
	begins, ends bool // in the frame at hand
	last         time.Duration
	began        int64  // where its first block is
	upTo, until  uint32 // places below are copied, and those that will be
	waking       bool   // an actor is opened before its copy
	scratch      []byte
	out          bitio.Writer
}

func (c *checkpoint) flags() (f uint8) {
	if c.begins {
		f |= blockBegins
	}
	if c.ends {
		f |= blockEnds
	}
	return f
}

// sectionBytes bounds what a frame copies, by the bytes: after so many it is enough.
const sectionBytes = 256 << 10

// stepCheckpoint begins a checkpoint when one is due, and goes on with it.
func (r *Recorder) stepCheckpoint() {
	c := &r.check
	if !c.active && r.cfg.Checkpoints > 0 && r.time-c.last >= r.cfg.Checkpoints && len(r.file.checkpoints) < maxCheckpoints {
		r.flush() // so that this frame begins a block
		c.active, c.begins, c.last, c.began = true, true, r.time, r.file.offset
		c.upTo, c.until = 1, uint32(len(r.slots))
		r.put(messageBegin, c.until, nil, 0)
	}
	work := r.opened
	if c.active {
		from := len(r.frame)
		for c.upTo < c.until && work < r.cfg.ActorsPerFrame && len(r.frame)-from < sectionBytes {
			if !r.snapshot(c.upTo) {
				break // the frame is full
			}
			c.upTo++
			work++
		}
		r.put(messageUpTo, c.upTo, nil, 0)
		if c.upTo == c.until {
			c.active, c.ends = false, true
			r.put(messageEnd, 0, nil, 0)
		}
	}
	r.Counters.Busiest = max(r.Counters.Busiest, work)
	r.peer.splits = [2]uint32{}
	if c.active {
		r.peer.splits = [2]uint32{c.upTo, c.until}
	}
}

// snapshot copies the actor of a place, if there is one. It reports false when the frame has no room for it.
func (r *Recorder) snapshot(id uint32) bool {
	s, c := &r.slots[id], &r.check
	if s.v == nil {
		return true
	}
	r.catchUp(s.v)
	kind := messageCopy
	if s.v.state == asleep {
		kind = messageSleeper
	}
	if c.scratch == nil {
		c.scratch = make([]byte, 4<<10)
	}
	for {
		c.out.Reset(c.scratch)
		r.writeCopy(&c.out, s)
		if c.out.Err() == nil {
			break
		}
		if len(c.scratch) >= frameBudget {
			return true // more than a class's units can hold
		}
		c.scratch = make([]byte, 2*len(c.scratch))
	}
	if !r.put(kind, id, c.out.Bytes(), c.out.Len()) {
		return false
	}
	s.v.base = noBaseline // a seek knows no earlier ones
	r.Counters.Snapshots++
	return true
}

// catchUp records what waits of an actor, so that its copy says nothing new: changes for which frames had no room, and of
// values that were switched off between two frames.
func (r *Recorder) catchUp(v *view) {
	allowed := v.allowed
	v.allowed |= v.b.inactive & v.told
	switch {
	case v.dirty&v.allowed == 0:
	case v.state == asleep:
		r.check.waking = true
		if _, ok := r.peer.open(v); ok {
			v.opened()
		}
		r.check.waking = false
	default:
		r.peer.writeLarge(v, false)
	}
	v.allowed = allowed
}

// writeCopy writes an actor as an opening bunch: what the recording was ever told of it.
func (r *Recorder) writeCopy(w *bitio.Writer, s *slot) {
	v, l := s.v, s.v.b.class.layout
	current := v.allowed | v.b.inactive // the shadow keeps what was sent last while a value is off
	m := v.told & (current | s.first.mask)
	r.peer.writeOpening(w, v, false, v.flags&unfinished != 0, m)
	row := r.peer.rowBits[v.b.class.firstRow:]
	for rest := m; rest != 0; rest &= rest - 1 {
		i, at := bits.TrailingZeros64(rest), w.Len()
		if current>>i&1 != 0 {
			l.WriteUnit(w, v.b.rep.shadow, i, nil)
		} else {
			s.first.write(w, i)
		}
		row[i] += uint64(w.Len() - at)
	}
}

// kept is the values that an actor had when it was opened, of the units that are sent then only.
type kept struct {
	mask layout.Mask
	data []byte
	from []int // where it begins and how long it is, in bits, by the order of the units
}

func (k *kept) clear() {
	k.mask, k.data, k.from = 0, k.data[:0], k.from[:0]
}

// keep keeps them.
func (k *kept) keep(v *view) {
	l := v.b.class.layout
	k.mask = (v.mayHave(v.aud|layout.Initial) &^ v.mayHave(v.aud)) & l.NonZero(v.b.rep.shadow)
	if k.mask == 0 {
		return
	}
	at := 0
	for rest := k.mask; rest != 0; rest &= rest - 1 { // each fits, but not all together
		w := v.peer.world.message()
		l.WriteUnit(w, v.b.rep.shadow, bits.TrailingZeros64(rest), nil)
		k.data = append(k.data, w.Bytes()...)
		k.from = append(k.from, at, w.Len())
		at += (w.Len() + 7) &^ 7
	}
}

func (k *kept) write(w *bitio.Writer, unit int) {
	n := bits.OnesCount64(k.mask & (1<<unit - 1))
	w.WriteBitsFrom(k.data, k.from[2*n], k.from[2*n+1])
}
