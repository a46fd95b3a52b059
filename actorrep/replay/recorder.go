package replay

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

// Config configures a Recorder. The zero value is useful.
type Config struct {
	// Rate is the number of frames recorded a second. Default 10: it divides 20, 30, 50 and 60 Steps a second, is enough
	// for interpolation, and is near Unreal's 8. Negative records every Step.
	Rate float64
	// Checkpoints is the time between two checkpoints, which a seek reads at most. Default 30 s (Unreal's). Negative is
	// none: a seek backwards then reads from the beginning.
	Checkpoints time.Duration
	// ActorsPerFrame is the most actors that one Step opens and copies, both together; more are spread over several
	// frames. Default 512, at least 4.
	ActorsPerFrame int
	// Filter says which actors are recorded. Default: all. It is called when the Relevancy checks an actor.
	Filter func(a actorrep.Actor) bool
	// Everything records all fields, whatever their conditions: also what only owners have. Default: a recording is an
	// audience of its own (replay, replayorowner, skipreplay), which owns nothing. It is for finding faults, not for players.
	Everything bool
	// Note is a text of the game's that is stored in the file. At most 4 KiB.
	Note string
}

// The defaults, and bounds of a recording.
const (
	defaultRecordRate  = 10
	defaultCheckpoints = 30 * time.Second
	defaultPerFrame    = 512
	maxNote            = 4 << 10
	maxCheckpoints     = 1 << 16 // in an index: after three weeks it has every second, then every fourth
	// frameBudget is the size in bytes above which a frame takes no more values and openings; they follow in the next.
	// Above frameFull it takes nothing.
	frameBudget = bridge.MaxCopy
	frameFull   = 12 << 20
	// A block is written when it has this many bytes, or a second of frames.
	blockBytes = 64 << 10
	blockTime  = time.Second
)

// Counters counts what a Recorder did.
type Counters struct {
	Frames      uint64
	Blocks      uint64 // written
	Bytes       uint64 // in these
	Opened      uint64 // actors opened
	Snapshots   uint64 // actors copied to checkpoints
	Checkpoints uint64 // finished
	// Busiest is the most actors opened and copied in one Step.
	Busiest int
}

// Recorder records a server's world. It is a connection that acks at once, so the file gets changed values only. Not
// safe for concurrent use: it belongs to its world.
//
//	rec, err := replay.Record(world, file, replay.Config{})
//	... world.Step(now) as usual
//	err = rec.Close()
type Recorder struct {
	Counters Counters

	cfg      Config
	from     bridge.Recording
	file     fileWriter
	interval time.Duration // between frames
	begun    bool
	start    time.Duration // time of the beginning
	next     time.Duration // time of the next frame
	time     time.Duration // of the current frame, since start
	number   uint32        // of the current frame, from 1: it is the packet number of its records
	frame    []byte        // its messages so far
	world    *actorrep.World
	check    checkpoint
	err      error
}

// Errors of recordings.
var (
	ErrConfig = errors.New("replay: settings that no recording can have")
	// ErrEnded: the recording was closed.
	ErrEnded = errors.New("replay: the recording has ended")
)

var record = bridge.Record.(func(w *actorrep.World, to bridge.Tape, filter func(a actorrep.Actor) bool, everything bool) bridge.Recording)

// Record begins to write a world to out: all its actors, or those that cfg.Filter selects. Field conditions treat a
// recording as an audience of its own (replay, replayorowner, skipreplay) that owns nothing. Multicast procedures are
// recorded; calls to one client aren't. out is written to about once a second, in one call. A file without Close is
// usable: it ends with the last block written.
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
	r.from = record(world, tape{r}, cfg.Filter, cfg.Everything)
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

// Peer is the recording's connection. Peer.Attribution says what its bits are spent on, World.Explain why an actor isn't
// in it.
func (r *Recorder) Peer() *actorrep.Peer { return r.from.Peer().(*actorrep.Peer) }

// Err is why the recording ended: an error of its io.Writer, or ErrEnded after Close. nil while it continues.
func (r *Recorder) Err() error { return r.err }

// Duration is the time recorded so far.
func (r *Recorder) Duration() time.Duration { return r.time }

// Close writes a last frame and the index, and ends the recording. It doesn't close the io.Writer. Call it between two
// Steps.
func (r *Recorder) Close() error {
	if errors.Is(r.err, ErrEnded) {
		return nil
	}
	if now := r.world.Now(); r.begun && (len(r.frame) > 0 || now-r.start > r.time) { // what was left since the last frame
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

// Flush writes the current block before it is full.
func (r *Recorder) Flush() error {
	if r.err == nil {
		r.flush()
	}
	return r.err
}

// fail ends the recording if err isn't nil: nothing more is written. Close must still be called.
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

// Number is the frame's number.
func (t tape) Number() uint32 { return t.r.number }

// Put adds a message to the frame.
func (t tape) Put(kind bridge.Kind, place uint32, data []byte, bits int) bool {
	ok := t.r.put(kind, place, data, bits)
	if ok && kind == bridge.Open {
		t.r.Counters.Opened++
	}
	return ok
}

// Budget is how many bits of values the frame has room for.
func (t tape) Budget() int { return (frameBudget - len(t.r.frame)) * 8 }

// OpenRoom is how many actors a frame may open. A quarter of ActorsPerFrame is reserved for an unfinished checkpoint.
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

// endFrame adds the frame to its block.
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
