package replay

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

// Config is the settings of a Recorder; the zero value is useful.
type Config struct {
	// Rate is how often the world is recorded, frames a second. Default 10: in step with servers of 20, 30, 50 or 60
	// Steps a second, dense enough for interpolation, near Unreal's 8. Negative records every Step.
	Rate float64
	// Checkpoints is the time from one checkpoint to the next: what a seek has to read at most. Default 30 s
	// (Unreal's); negative none, and a seek back reads from the beginning.
	Checkpoints time.Duration
	// ActorsPerFrame is the most actors that one Step opens in the recording and copies to a checkpoint, both
	// together: a large world comes into both over several frames. Default 512, at least 4.
	ActorsPerFrame int
	// Filter says which actors are recorded. nil is all. It is asked when a ReplicationDriver looks at the actor.
	Filter func(a actorrep.Actor) bool
	// Note is the game's, kept in the file; at most 4 KiB.
	Note string
}

// The defaults, and bounds of a recording.
const (
	defaultRecordRate  = 10
	defaultCheckpoints = 30 * time.Second
	defaultPerFrame    = 512
	maxNote            = 4 << 10
	maxCheckpoints     = 1 << 16 // in a file: three weeks of them
	// frameBudget is the bytes from which on a frame takes no more values and openings: they follow in the next. A
	// frame with frameFull bytes takes nothing.
	frameBudget = bridge.MaxCopy
	frameFull   = 12 << 20
	// A block is written when it holds that much, or a second.
	blockBytes = 64 << 10
	blockTime  = time.Second
)

// Counters is what a Recorder did.
type Counters struct {
	Frames      uint64
	Blocks      uint64 // written
	Bytes       uint64 // of those
	Opened      uint64 // actors
	Snapshots   uint64 // actors copied to checkpoints
	Checkpoints uint64 // finished
	// Busiest is the most actors that were opened and copied in one Step.
	Busiest int
}

// Recorder records a server's world. It is a connection that acks at once: what the file gets is the values that
// changed, against those before. Not safe for concurrent use: it belongs to its world.
//
//	rec, err := replay.Record(world, file, replay.Config{})
//	... world.Step(now) as ever
//	err = rec.Close()
type Recorder struct {
	Counters Counters

	cfg      Config
	from     bridge.Recording
	file     fileWriter
	interval time.Duration // of frames
	begun    bool
	start    time.Duration // when the recording began
	next     time.Duration // when the next frame is due
	time     time.Duration // of the frame at hand, since start
	number   uint32        // of the frame at hand, from 1: the packet of its records
	frame    []byte        // its messages so far
	world    *actorrep.World
	check    checkpoint
	err      error
}

// Errors of recordings.
var (
	ErrConfig = errors.New("replay: settings that no recording can have")
	// ErrEnded is a recording that was closed.
	ErrEnded = errors.New("replay: the recording has ended")
)

var record = bridge.Record.(func(w *actorrep.World, to bridge.Tape, filter func(a actorrep.Actor) bool) bridge.Recording)

// Record begins to write the world to out: all its actors, or those of a filter, in the form that a Replay plays.
// Fields see a recording as an audience of its own (conditions replay, replayorowner, skipreplay), which owns
// nothing. Multicast procedures are recorded, calls to one client aren't. out is written to about once a second,
// in one call. The file needs no Close to be of use: without one it ends with the last block written.
func Record(world *actorrep.World, out io.Writer, cfg Config) (*Recorder, error) {
	if !world.IsServer() {
		return nil, actorrep.ErrClient
	}
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	r := &Recorder{cfg: cfg, world: world, file: newFileWriter(out)}
	if cfg.Rate > 0 {
		r.interval = time.Duration(float64(time.Second) / cfg.Rate)
	}
	r.from = record(world, tape{r}, cfg.Filter)
	schema, bits := r.from.Schema()
	if r.fail(r.file.begin(schema, bits, r.interval, cfg.Note)); r.err != nil {
		r.from.Remove()
		return nil, r.err
	}
	return r, nil
}

func (c *Config) fill() error {
	if c.Rate == 0 {
		c.Rate = defaultRecordRate
	}
	if c.Checkpoints == 0 {
		c.Checkpoints = defaultCheckpoints
	}
	if c.ActorsPerFrame == 0 {
		c.ActorsPerFrame = defaultPerFrame
	}
	switch {
	case !(c.Rate < 0 || c.Rate >= 1e-3):
		return fmt.Errorf("%w: Rate %v must be 0.001 or more, or negative", ErrConfig, c.Rate)
	case c.ActorsPerFrame < 4:
		return fmt.Errorf("%w: ActorsPerFrame %d must be 4 or more", ErrConfig, c.ActorsPerFrame)
	case len(c.Note) > maxNote:
		return fmt.Errorf("%w: a Note of %d bytes; %d are the most", ErrConfig, len(c.Note), maxNote)
	}
	return nil
}

// Peer is the recording as a connection: Peer.Attribution says what its bits are spent on, Explain why an actor isn't in
// it.
func (r *Recorder) Peer() *actorrep.Peer { return r.from.Peer().(*actorrep.Peer) }

// Err is what ended the recording: an error of its io.Writer, or ErrEnded after Close. nil while it goes on.
func (r *Recorder) Err() error { return r.err }

// Duration is the time recorded so far.
func (r *Recorder) Duration() time.Duration { return r.time }

// Close ends the recording with a last frame and its index. It doesn't close the io.Writer. Call it between two Steps.
func (r *Recorder) Close() error {
	if errors.Is(r.err, ErrEnded) {
		return nil
	}
	if now := r.world.Now(); r.begun && (len(r.frame) > 0 || now-r.start > r.time) { // what there was since the last frame
		r.next = now
		r.from.Step()
	}
	r.from.Remove()
	if r.err == nil {
		r.flush()
	}
	if r.err == nil {
		r.fail(r.file.end(r.time))
	}
	err := r.err
	r.err = ErrEnded
	return err
}

// Flush writes what waits for its block to fill.
func (r *Recorder) Flush() error {
	if r.err == nil {
		r.flush()
	}
	return r.err
}

// fail ends the recording for err, if it isn't nil: nothing is written any more. Close is still to be called.
func (r *Recorder) fail(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("replay: the recording ended: %w", err)
	}
}

// tape is the recorder as the world sees it.
type tape struct{ r *Recorder }

// Begin begins a frame when one is due.
func (t tape) Begin(now time.Duration) (frame, ended bool) {
	r := t.r
	if r.err != nil {
		return false, true
	}
	if !r.begun {
		r.begun, r.start, r.next = true, now, now
	}
	if now < r.next {
		return false, false
	}
	if r.next += r.interval; r.next <= now {
		r.next = now + r.interval
	}
	r.time = max(r.time, now-r.start)
	r.number++
	return true, false
}

// Number is that of the frame.
func (t tape) Number() uint32 { return t.r.number }

// Put adds a message to the frame.
func (t tape) Put(kind bridge.Kind, place uint32, data []byte, bits int) bool {
	ok := t.r.put(kind, place, data, bits)
	if ok && kind == bridge.Open {
		t.r.Counters.Opened++
	}
	return ok
}

// Budget is the bits of values that the frame may take.
func (t tape) Budget() int { return (frameBudget - len(t.r.frame)) * 8 }

// OpenRoom is how many actors a frame opens. A checkpoint that is under way has a quarter of what a frame copies in any
// case.
func (t tape) OpenRoom() int {
	if t.r.check.active {
		return t.r.cfg.ActorsPerFrame * 3 / 4
	}
	return t.r.cfg.ActorsPerFrame
}

// End writes the frame.
func (t tape) End() {
	t.r.stepCheckpoint()
	t.r.endFrame()
}

// Fail ends the recording.
func (t tape) Fail(err error) { t.r.fail(err) }

func (r *Recorder) put(kind bridge.Kind, place uint32, data []byte, bits int) bool {
	if len(r.frame)+len(data) > frameFull || r.err != nil {
		return false
	}
	r.frame = appendMessage(r.frame, kind, place, data, bits)
	return true
}

// endFrame puts the frame into its block.
func (r *Recorder) endFrame() {
	r.file.add(frameHead{time: r.time, world: r.from.Frame(), number: r.number}, r.frame)
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
