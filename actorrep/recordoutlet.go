package actorrep

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// begin begins a frame when one is due.
func (r *Recorder) begin(now time.Duration) bool {
	if r.err != nil {
		r.peer.gone = r.peer.gone[:0] // nobody will be told
		return false
	}
	if !r.begun {
		r.begun, r.start, r.next = true, now, now
	}
	if now < r.next {
		return false
	}
	if r.next += r.interval; r.next <= now {
		r.next = now + r.interval
	}
	r.time = max(r.time, now-r.start)
	r.number++
	r.opened = 0
	return true
}

// end acks the frame's records and writes it.
func (r *Recorder) end() {
	r.peer.acked(int64(r.number))
	for i, v := range r.fresh {
		v.opened()
		v.keep()
		r.fresh[i] = nil
	}
	r.fresh = r.fresh[:0]
	r.stepCheckpoint()
	r.endFrame()
}

// endFrame puts the frame into its block.
func (r *Recorder) endFrame() {
	r.file.add(frameHead{time: r.time, world: r.world.frame, number: r.number}, r.frame)
	r.file.flags |= r.check.flags()
	r.frame = r.frame[:0]
	r.Counters.Frames++
	if r.check.ends {
		r.file.checkpointed(r.check.began, r.check.last, r.time)
		r.Counters.Checkpoints++
	}
	if r.check.ends || r.file.full() {
		r.flush()
	}
	r.check.begins, r.check.ends = false, false
}

func (r *Recorder) flush() {
	n, err := r.file.flush()
	if r.fail(err); n > 0 {
		r.Counters.Blocks++
		r.Counters.Bytes += uint64(n)
	}
}

// introduce has nothing to do: the schema is in the file.
func (r *Recorder) introduce() bool { return true }

// put adds a message to the frame.
func (r *Recorder) put(kind messageKind, id uint32, data []byte, bits int) bool {
	if len(r.frame)+len(data) > frameFull || r.err != nil {
		return false
	}
	r.frame = appendMessage(r.frame, kind, id, data, bits)
	return true
}

func (r *Recorder) open(v *view, w *bitio.Writer) bool {
	if r.opened >= r.openRoom() && !r.check.waking {
		return false
	}
	again := v.state == asleep // it kept its place
	if !again && !r.place(v) {
		return false
	}
	if !r.put(messageOpen, v.id, w.Bytes(), w.Len()) {
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
	r.Counters.Opened++
	return true
}

// openRoom is how many actors a frame opens. A checkpoint that is under way has a quarter of what a frame copies in any
// case.
func (r *Recorder) openRoom() int {
	if r.check.active {
		return r.cfg.ActorsPerFrame * 3 / 4
	}
	return r.cfg.ActorsPerFrame
}

// place gives a view an id.
func (r *Recorder) place(v *view) bool {
	switch n := len(r.free); {
	case n > 0:
		v.id = r.free[n-1]
		r.free = r.free[:n-1]
	case len(r.slots) >= maxRecorded:
		r.fail(errTooMany)
		return false
	default:
		v.id = uint32(len(r.slots))
		r.slots = append(r.slots, slot{})
	}
	r.slots[v.id].v = v
	r.ids[v.b.guid] = v.id
	return true
}

// release takes it back.
func (r *Recorder) release(id uint32) {
	s := &r.slots[id]
	delete(r.ids, s.v.b.guid)
	s.v = nil
	s.first.clear()
	r.free = append(r.free, id)
}

func (r *Recorder) reliable(v *view, w *bitio.Writer, _ bool) bool {
	if w.Err() != nil || !r.put(messageValues, v.id, w.Bytes(), w.Len()) {
		return false
	}
	r.fresh = append(r.fresh, v)
	return true
}

// close ends an actor, or lets it sleep in its place.
func (r *Recorder) close(v *view, reason channel.CloseReason) bool {
	return r.closeID(v.id, reason)
}

func (r *Recorder) closeID(id uint32, reason channel.CloseReason) bool {
	if !r.put(messageClose, id, []byte{byte(reason)}, 8) {
		return false
	}
	if reason != bunch.Dormancy {
		r.release(id)
	}
	return true
}

// gone ends an actor that sleeps.
func (r *Recorder) gone(f farewell) bool {
	at, ok := r.ids[f.id]
	switch {
	case !ok:
		return true
	case f.torn:
		return r.put(messageValues, at, []byte{wire.TornOff}, wire.KindBits) && r.closeID(at, bunch.TearOff)
	}
	return r.closeID(at, bunch.Destroyed)
}

func (r *Recorder) chunk(data []byte, bits int) (int64, bool) {
	return int64(r.number), r.put(messageRecords, 0, data[:(bits+7)/8], bits)
}

func (r *Recorder) drained(*view) bool { return true }
func (r *Recorder) room(*view) int     { return 1 << 20 }
func (r *Recorder) budget() int        { return (frameBudget - len(r.frame)) * 8 }
func (r *Recorder) freeBits() int      { return recordChunk }
func (r *Recorder) packetBits() int    { return recordChunk }

// recordChunk is the most bits of one message of records.
const recordChunk = 32 << 13

var _ outlet = (*Recorder)(nil)

func (r *Recorder) now() time.Duration { return r.peer.world.now }
