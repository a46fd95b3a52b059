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

// Replay plays a recording into a client's world, in which it stands for the server. Not safe for concurrent use: it
// belongs to its world.
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
	last  time.Duration // of the caller's time
	begun bool
	pos   time.Duration

	next   int64  // the block after the one at hand
	block  []byte // what is left of that
	frame  frame  // the next one, when has
	has    bool
	number uint32 // of the frame played last

	building bool   // from a checkpoint
	copying  bool   // it has begun
	upTo     uint32 // places from here until
	until    uint32 // there have no copy yet
	bunch    bunch.In
	err      error
}

// frame is one as it is in a block.
type frame struct {
	frameHead
	messages []byte
}

var play = bridge.Play.(func(w *actorrep.World) bridge.Player)

var errFormat = errors.New("replay: a malformed frame")

// maxSpeed is more than fast: what is far away is sought.
const maxSpeed = 1e6

// Errors of playing.
var (
	ErrWorld      = errors.New("replay: a replay needs a client's world without actors; make one with NewClient and register its classes")
	ErrSpeed      = errors.New("replay: a replay's speed must be from 0 to a million")
	ErrNotPlaying = errors.New("replay: call Replay.Play first")
)

// Open reads a recording of size bytes: its schema and its index, or its blocks when it was never closed. What can't be
// read has an error of its own: ErrNotReplay, ErrVersion, ErrTruncated, ErrCorrupt. Only one block,
// mostly of about 64 KiB, is in memory at a time.
func Open(in io.ReaderAt, size int64) (*Replay, error) {
	r := &Replay{speed: 1}
	r.file.in = in
	if err := r.file.open(size); err != nil {
		return nil, err
	}
	r.rewind(r.file.begin)
	return r, nil
}

// Play chooses the world that is played into, a client's without a connection, and compares its classes with the
// recording's. Fields that one of them doesn't have are left out; an ErrSchema names fields and procedures of
// other types. It may be ignored: the classes that it names are left out then.
func (r *Replay) Play(w *actorrep.World) error {
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

// Grow takes in what has been added to a recording that is still being written, whose size is now size; one that was closed doesn't grow. Duration and Checkpoints
// follow.
func (r *Replay) Grow(size int64) {
	if r.file.cut {
		body := r.file.body // of the block at hand
		r.file.body = nil
		r.file.scanOn(size)
		r.file.body = body
	}
}

// Offset is where the block behind the one that is being played begins: what lies before isn't read again without a Seek back.
func (r *Replay) Offset() int64 { return r.next }

// Duration is how long the recording is.
func (r *Replay) Duration() time.Duration { return r.file.duration }

// Position is the recording's time that is shown, from 0 at its beginning. World.Now says the same.
func (r *Replay) Position() time.Duration { return r.pos }

// Note is what the recording's Config said.
func (r *Replay) Note() string { return r.file.note }

// Interval is the time between two frames of the recording at most times; 0 is a server's Step.
func (r *Replay) Interval() time.Duration { return r.file.interval }

// Truncated reports whether the recording was never closed: it ends with the last block that was written whole.
func (r *Replay) Truncated() bool { return r.file.cut }

// Checkpoints is how many there are.
func (r *Replay) Checkpoints() int { return len(r.file.checkpoints) }

// Done reports whether the end is reached.
func (r *Replay) Done() bool { return r.pos >= r.file.duration }

// Speed is how fast the recording is played.
func (r *Replay) Speed() float64 { return r.speed }

// SetSpeed says how fast: 1 is as it was, 0 stands still. Default 1; from 0 to a million.
func (r *Replay) SetSpeed(speed float64) error {
	if !(speed >= 0 && speed <= maxSpeed) {
		return fmt.Errorf("%w: %v", ErrSpeed, speed)
	}
	r.speed = speed
	return nil
}

// Step plays what happened since the last call and tells the game: spawns, then notifies, then calls, as on any client. now
// is the caller's time, of which the recording's passes by Speed; the first call, and the first after a Seek, only begins to count. An
// error is final until a Seek.
func (r *Replay) Step(now time.Duration) error {
	switch {
	case r.world == nil:
		return ErrNotPlaying
	case r.err != nil:
		return r.err
	}
	if r.begun {
		passed := float64(max(now-r.last, 0)) * r.speed
		r.pos += time.Duration(min(passed, float64(r.file.duration-r.pos)))
	}
	r.begun, r.last = true, now
	r.err = r.playUntil(r.pos)
	r.world.Step(r.pos)
	return r.err
}

// rewind goes to a block.
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

// cutFrame takes a frame off the block.
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

// play takes a frame's messages in.
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

// message takes in one.
func (r *Replay) message(kind bridge.Kind, id uint32, data *bitio.Reader) error {
	switch {
	case kind >= bridge.Begin:
		return r.checkpoint(kind, id, data)
	case kind == bridge.Records:
		return r.records(data)
	case r.uncopied(id):
		return nil // its copy will say
	}
	return r.to.Message(kind, id, data)
}

// uncopied reports whether a place is to be copied by the checkpoint that is read.
func (r *Replay) uncopied(id uint32) bool { return r.building && id >= r.upTo && id < r.until }

// records takes in changed values. While a checkpoint is read, those of places without a copy have chunks of their own.
func (r *Replay) records(data *bitio.Reader) error {
	if r.building {
		if id, err := r.to.FirstPlace(*data); r.uncopied(id) {
			return err
		}
	}
	return r.to.Records(&r.bunch)
}

// checkpoint takes in a message of one: only a seek needs them.
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
