package actorrep

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// recording is the outlet of a recording: it loses nothing, sees everything and has its own rate. Package
// actorrep/replay writes it to a file.
type recording struct {
	world  *World
	peer   *Peer
	tape   bridge.Tape
	opened int // actors opened in the current frame

	slots   []slot // by view.id; 0 is unused
	free    []uint32
	ids     map[netguid.GUID]uint32
	fresh   []*view // opened in this frame, or with something sent reliably
	waking  bool    // an actor is opened again before its copy
	scratch []byte
	out     bitio.Writer
}

// slot is the place of a recorded actor.
type slot struct {
	v     *view
	first kept
}

var errManyRecorded = fmt.Errorf("actorrep: over %d actors in a recording", bridge.MaxPlaces)

func newRecording(w *World, to bridge.Tape, filter func(a Actor) bool, everything bool) bridge.Recording {
	r := &recording{world: w, tape: to, slots: make([]slot, 1), ids: map[netguid.GUID]uint32{}}
	r.peer = w.newPeer()
	r.peer.ready, r.peer.replay, r.peer.everything, r.peer.filter, r.peer.out = true, true, everything, filter, r
	w.addPeer(r.peer)
	return r
}

// Peer is the recording as a connection.
func (r *recording) Peer() any { return r.peer }

// Schema describes all classes.
func (r *recording) Schema() (data []byte, bits int) { return r.world.encodeSchema() }

// Frame is the world's frame.
func (r *recording) Frame() uint32 { return r.world.frame }

// Opened is the number of actors opened in the current frame.
func (r *recording) Opened() int { return r.opened }

// Places is one more than the highest place in use.
func (r *recording) Places() uint32 { return uint32(len(r.slots)) }

// Split makes chunks end before these two places, so that a checkpoint's copied range is apart.
func (r *recording) Split(from, until uint32) { r.peer.splits = [2]uint32{from, until} }

// Step records the world as it is now, between two of its Steps. What the workers have encoded in the last one may have changed since,
// and actors may have moved in the list.
func (r *recording) Step() {
	r.peer.begin()
	r.peer.talk()
	r.peer.gather(newWorker())
	r.peer.write()
}

// Remove ends the recording.
func (r *recording) Remove() { r.world.RemoveConn(r.peer) }

// begin begins a frame when one is due.
func (r *recording) begin(now time.Duration) bool {
	frame, ended := r.tape.Begin(now)
	if ended {
		r.peer.gone = r.peer.gone[:0] // a recording needs none
	}
	r.opened = 0
	return frame
}

// end acks the frame's records and writes it.
func (r *recording) end() {
	r.peer.acked(int64(r.tape.Number()))
	for i, v := range r.fresh {
		v.opened()
		v.keep()
		r.fresh[i] = nil
	}
	r.fresh = r.fresh[:0]
	r.tape.End()
}

// refused does nothing: a recording makes no calls.
func (r *recording) refused(wire.Refusal) bool { return true }

// introduce does nothing: the file has the schema.
func (r *recording) introduce() bool { return true }

func (r *recording) open(v *view, w *bitio.Writer, _ layout.Mask) bool {
	if r.opened >= r.tape.OpenRoom() && !r.waking {
		return false
	}
	again := v.state == asleep // it kept its place
	if !again && !r.place(v) {
		return false
	}
	if !r.tape.Put(bridge.Open, v.id, w.Bytes(), w.Len()) {
		if !again {
			r.release(v.id)
		}
		return false
	}
	if !again {
		r.slots[v.id].first.keep(v)
	}
	r.opened++
	r.fresh = append(r.fresh, v)
	return true
}

// place gives a view a place.
func (r *recording) place(v *view) bool {
	switch n := len(r.free); {
	case n > 0:
		v.id = r.free[n-1]
		r.free = r.free[:n-1]
	case len(r.slots) >= bridge.MaxPlaces:
		r.tape.Fail(errManyRecorded)
		return false
	default:
		v.id = uint32(len(r.slots))
		r.slots = append(r.slots, slot{})
	}
	r.slots[v.id].v = v
	r.ids[v.b.guid] = v.id
	return true
}

// release frees a place.
func (r *recording) release(id uint32) {
	s := &r.slots[id]
	delete(r.ids, s.v.b.guid)
	s.v = nil
	s.first.clear()
	r.free = append(r.free, id)
}

func (r *recording) reliable(v *view, w *bitio.Writer, _ bool, _ layout.Mask) bool {
	if w.Err() != nil || !r.tape.Put(bridge.Values, v.id, w.Bytes(), w.Len()) {
		return false
	}
	r.fresh = append(r.fresh, v)
	return true
}

// close records that an actor disappears, or sleeps in its place.
func (r *recording) close(v *view, reason channel.CloseReason) bool {
	return r.closeID(v.id, reason)
}

func (r *recording) closeID(id uint32, reason channel.CloseReason) bool {
	if !r.tape.Put(bridge.Close, id, []byte{byte(reason)}, 8) {
		return false
	}
	if reason != bunch.Dormancy {
		r.release(id)
	}
	return true
}

// gone records that a sleeping actor was destroyed or torn off.
func (r *recording) gone(f farewell) bool {
	at, ok := r.ids[f.id]
	switch {
	case !ok:
		return true
	case f.torn:
		return r.tape.Put(bridge.Values, at, []byte{wire.TornOff}, wire.KindBits) && r.closeID(at, bunch.TearOff)
	}
	return r.closeID(at, bunch.Destroyed)
}

func (r *recording) chunk(data []byte, bits int) (int64, bool) {
	return int64(r.tape.Number()), r.tape.Put(bridge.Records, 0, data[:(bits+7)/8], bits)
}

func (r *recording) drained(*view) bool { return true }
func (r *recording) room(*view) int     { return 1 << 20 }
func (r *recording) newRoom() int       { return 1 << 20 }
func (r *recording) largest() int       { return bunch.MaxPayload * 8 }
func (r *recording) budget() int        { return r.tape.Budget() }
func (r *recording) freeBits() int      { return recordChunk }
func (r *recording) packetBits() int    { return recordChunk }

// recordChunk is the most bits of one message of records.
const recordChunk = 32 << 13

func (r *recording) fail(err error) { r.tape.Fail(err) }

var _ outlet = (*recording)(nil)

func (r *recording) now() time.Duration { return r.peer.world.now }

// Copy records the actor of a place, if there is one, as if it were freshly opened. ok is false when there was no room.
func (r *recording) Copy(place uint32) (copied, ok bool) {
	s := &r.slots[place]
	if s.v != nil && s.v.state == ended { // there was no room for its end
		r.peer.tellGone()
	}
	switch {
	case s.v == nil:
		return false, true
	case s.v.state == ended || !r.catchUp(s.v):
		return false, false
	}
	kind := bridge.Copy
	if s.v.state == asleep {
		kind = bridge.Sleeper
	}
	if r.scratch == nil {
		r.scratch = make([]byte, 4<<10)
	}
	for {
		r.out.Reset(r.scratch)
		r.writeCopy(&r.out, s)
		if r.out.Err() == nil {
			break
		}
		if len(r.scratch) >= bridge.MaxCopy {
			return false, true // more than a class's units can hold
		}
		r.scratch = make([]byte, 2*len(r.scratch))
	}
	if !r.tape.Put(kind, place, r.out.Bytes(), r.out.Len()) {
		return false, false
	}
	s.v.base = noBaseline // after a seek the earlier records aren't known
	return true, true
}

// catchUp records an actor's waiting changes, so that its copy contains nothing new: changes for which frames had no
// room, values that were switched off between two frames, and changes of fast arrays whose actor isn't to be compared yet. It reports false when there was no room for all of them.
func (r *recording) catchUp(v *view) bool {
	allowed := v.allowed
	v.allowed |= v.b.inactive & v.told
	v.dirty |= v.b.class.layout.Newer(v.b.rep.shadow, v.told&v.allowed) // a copy has them as they are now
	switch {
	case v.dirty&v.allowed == 0:
	case v.state == asleep:
		r.waking = true
		if _, ok := r.peer.open(v); ok {
			v.opened()
		}
		r.waking = false
	default:
		all := v.dirty
		v.sendLarge(&all, false)
	}
	whole := v.dirty&v.allowed == 0
	v.allowed = allowed
	return whole
}

// writeCopy writes an actor as an opening: everything that the recording was ever sent of it.
func (r *recording) writeCopy(w *bitio.Writer, s *slot) {
	v, l := s.v, s.v.b.class.layout
	current := v.allowed | v.b.inactive // while a value is switched off, the shadow keeps the one sent last
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

// kept is the first values of an actor's units that are sent only in its opening.
type kept struct {
	mask layout.Mask
	data []byte
	from []int // where it begins and how long it is, in bits, by the order of the units
}

func (k *kept) clear() {
	k.mask, k.data, k.from = 0, k.data[:0], k.from[:0]
}

// keep stores these values.
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
