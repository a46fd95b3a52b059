package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Replay plays a recording in a client's world, in the server's place. Not safe for concurrent use: it belongs to its
// world.
//
//	replay, err := replay.Open(file, size)
//	err = replay.Play(world)                 // the same classes as on the server, or of another build
//	for !replay.Done() {
//		err = replay.Step(now)           // instead of world.Step
//	}
type Replay struct {
	file  replayFile
	world *actorrep.World
	to    bridge.Player
	speed float64
	last  time.Duration // now of the last Step
	begun bool
	pos   time.Duration

	next   int64  // offset of the block after the current one
	block  []byte // the unread rest of the current block
	frame  frame  // the next frame, when has is set
	has    bool
	number uint32 // of the last frame played

	building bool   // reading a checkpoint
	copying  bool   // its first frame was read
	upTo     uint32 // places from upTo
	until    uint32 // to until-1 aren't copied yet
	bunch    bunch.In
	within   bool // Step, Seek or Play is at work
	err      error
}

// frame is one as it is in a block.
type frame struct {
	frameHead
	messages []byte
}

var play = bridge.Play.(func(w *actorrep.World) bridge.Player)

var errFormat = errors.New("replay: a malformed frame")

// maxSpeed bounds SetSpeed.
const maxSpeed = 1e6

// Errors of playing.
var (
	ErrWorld      = errors.New("replay: a replay needs a client's world without actors; make one with NewClient and register its classes")
	ErrSpeed      = errors.New("replay: a replay's speed must be from 0 to a million")
	ErrNotPlaying = errors.New("replay: call Replay.Play first")
	// ErrWithin is returned by Step, Seek and Play within what they call.
	ErrWithin = errors.New("replay: Step, Seek or Play was called by what the replay calls, such as a notify or Destroyed, and did nothing; call it in the game's loop")
)

// Open reads the schema and the index of a recording of size bytes; when it was never closed, its blocks instead of the
// index. It returns ErrNotReplay, ErrVersion, ErrTruncated or ErrCorrupt for a file that can't be played. Only one
// block, usually of about 64 KiB, is in memory at a time.
func Open(in io.ReaderAt, size int64) (*Replay, error) {
	r := &Replay{speed: 1}
	r.file.in = in
	if err := r.file.open(size); err != nil {
		return nil, err
	}
	r.rewind(r.file.begin)
	return r, nil
}

// Play sets the world to play in, a client's without a connection, and matches its classes with the recording's. Fields
// that one of them lacks are left out. An ErrSchema names fields and procedures whose types differ; it may be ignored,
// and the classes that it names are then left out.
func (r *Replay) Play(w *actorrep.World) error {
	if r.within {
		return ErrWithin
	}
	to := play(w)
	if to == nil {
		return ErrWorld
	}
	ok, err := to.Describe(bitio.NewReader(r.file.schema, r.file.schemaBits))
	if !ok {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	r.world, r.to = w, to
	return err
}

// Grow adopts what has been appended to a recording that is still being written; size is its new size. Duration and
// Checkpoints grow with it. It has no effect on a closed recording. When the block behind the last one is damaged, it
// returns ErrCorrupt, and the recording doesn't grow any more.
func (r *Replay) Grow(size int64) error {
	if !r.file.cut {
		return nil
	}
	body := r.file.body // of the block at hand
	r.file.body = nil
	err := r.file.scanOn(size)
	r.file.body = body
	return err
}

// Offset is where the block after the current one begins. Bytes before it are read again only by a Seek backwards.
func (r *Replay) Offset() int64 { return r.next }

// Duration is the length of the recording.
func (r *Replay) Duration() time.Duration { return r.file.duration }

// Position is the time of the recording that is shown, from 0 at its beginning. It is also World.Now.
func (r *Replay) Position() time.Duration { return r.pos }

// Next is the time of the next frame that Step plays; ok is false at the end.
func (r *Replay) Next() (at time.Duration, ok bool) {
	if r.err != nil || r.peek() != nil {
		return 0, false
	}
	return r.frame.time, r.has
}

// Note is the recording's Config.Note.
func (r *Replay) Note() string { return r.file.note }

// Interval is the usual time between two frames of the recording; 0 means every Step of the server.
func (r *Replay) Interval() time.Duration { return r.file.interval }

// Truncated reports whether the recording was never closed. It then ends with the last complete block.
func (r *Replay) Truncated() bool { return r.file.cut }

// Checkpoints is the number of checkpoints.
func (r *Replay) Checkpoints() int { return len(r.file.checkpoints) }

// Done reports whether Position has reached the end.
func (r *Replay) Done() bool { return r.pos >= r.file.duration }

// Speed is the speed that SetSpeed set.
func (r *Replay) Speed() float64 { return r.speed }

// SetSpeed sets the speed of playing: 1 is real time, 0 pauses. Default 1; 0 to a million.
func (r *Replay) SetSpeed(speed float64) error {
	if !(speed >= 0 && speed <= maxSpeed) {
		return fmt.Errorf("%w: %v", ErrSpeed, speed)
	}
	r.speed = speed
	return nil
}

// Step plays what happened since the last call and tells the game as on any client: spawns, then notifies, then calls.
// now is the caller's time; the recording's advances by its difference times Speed. The first call, and the first after
// a Seek, only sets the start. After an error every Step returns it until a Seek. What it calls, such as a notify, can't call
// Step or Seek (ErrWithin): to show something again, note that and Seek after Step.
func (r *Replay) Step(now time.Duration) error {
	switch {
	case r.within:
		return ErrWithin
	case r.world == nil:
		return ErrNotPlaying
	case r.err != nil:
		return r.err
	}
	r.within = true
	defer r.leave()
	if r.begun {
		passed := float64(max(now-r.last, 0)) * r.speed
		r.pos += time.Duration(min(passed, float64(r.file.duration-r.pos)))
	}
	r.begun, r.last = true, now
	r.err = r.playUntil(r.pos)
	r.world.Step(r.pos)
	return r.err
}

func (r *Replay) leave() { r.within = false }

// rewind continues at a block.
func (r *Replay) rewind(at int64) {
	r.next, r.block, r.has, r.number = at, nil, false, 0
}

// playUntil plays all frames up to a time.
func (r *Replay) playUntil(t time.Duration) error {
	for {
		if err := r.peek(); err != nil || !r.has || r.frame.time > t {
			return err
		}
		r.has = false
		if err := r.play(&r.frame); err != nil {
			return fmt.Errorf("%w: at %v: %w", ErrCorrupt, r.frame.time, err)
		}
	}
}

// peek reads the head of the next frame, if there is one.
func (r *Replay) peek() error {
	for !r.has && (len(r.block) > 0 || r.next < r.file.end) {
		if len(r.block) == 0 {
			b, err := r.file.block(r.next, r.file.end)
			if err != nil {
				return err
			}
			if b.kind != blockFrames {
				return r.file.corrupt(r.next, "a block that has no frames")
			}
			r.next += blockHead + int64(b.length)
			r.block = r.file.body
			continue
		}
		if err := r.cutFrame(); err != nil {
			return err
		}
	}
	return nil
}

// cutFrame takes the next frame from the block.
func (r *Replay) cutFrame() error {
	b := r.block
	if len(b) < frameHeader {
		return r.file.corrupt(r.next, "half a frame")
	}
	was := r.frame.time
	r.frame.time = time.Duration(binary.LittleEndian.Uint64(b))
	r.frame.world, r.frame.number = binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	n := int64(binary.LittleEndian.Uint32(b[16:]))
	b = b[frameHeader:]
	switch {
	case n > int64(len(b)):
		return r.file.corrupt(r.next, "a frame longer than its block")
	case r.number != 0 && (r.frame.number != r.number+1 || r.frame.time < was), r.frame.time < 0, r.frame.number == 0:
		return r.file.corrupt(r.next, "frames in disorder")
	}
	r.number = r.frame.number
	r.frame.messages, r.block, r.has = b[:n], b[n:], true
	return nil
}

// play applies a frame's messages.
func (r *Replay) play(f *frame) error {
	r.to.Frame(f.world)
	for b := f.messages; len(b) > 0; {
		kind := bridge.Kind(b[0])
		id, n := binary.Uvarint(b[1:])
		if n <= 0 || id >= bridge.MaxPlaces {
			return errFormat
		}
		b = b[1+n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n)*8 {
			return errFormat
		}
		b = b[n:]
		data := &r.bunch.Data
		data.Reset(b[:(size+7)/8], int(size))
		b = b[(size+7)/8:]
		if err := r.message(kind, uint32(id), data); err != nil {
			return err
		}
	}
	r.to.Received()
	return nil
}

// message applies one message.
func (r *Replay) message(kind bridge.Kind, id uint32, data *bitio.Reader) error {
	switch {
	case kind >= bridge.Begin:
		return r.checkpoint(kind, id, data)
	case kind == bridge.Records:
		return r.records(data)
	case r.uncopied(id):
		return nil // its copy will contain it
	}
	return r.to.Message(kind, id, data)
}

// uncopied reports whether the checkpoint being read still has to copy a place.
func (r *Replay) uncopied(id uint32) bool { return r.building && id >= r.upTo && id < r.until }

// records applies changed values. While a checkpoint is read, the values of places that aren't copied yet are in chunks of their own.
func (r *Replay) records(data *bitio.Reader) error {
	if r.building {
		if id, err := r.to.FirstPlace(*data); r.uncopied(id) {
			return err
		}
	}
	return r.to.Records(&r.bunch)
}

// checkpoint handles a message of a checkpoint; only a seek needs these.
func (r *Replay) checkpoint(kind bridge.Kind, id uint32, data *bitio.Reader) error {
	switch {
	case !r.building:
		return nil
	case kind == bridge.Begin:
		if r.copying {
			return fmt.Errorf("%w: a checkpoint in a checkpoint", errFormat)
		}
		r.copying, r.upTo, r.until = true, 1, max(id, 1)
		return nil
	case !r.copying || kind > bridge.End:
		return fmt.Errorf("%w: not of a checkpoint", errFormat)
	case kind == bridge.UpTo:
		r.upTo = min(max(r.upTo, id), r.until)
		return nil
	case kind == bridge.End:
		r.building, r.copying = false, false
		return nil
	}
	if !r.uncopied(id) {
		return fmt.Errorf("%w: a copy of what is there", errFormat)
	}
	return r.to.Message(kind, id, data)
}
