package actorrep

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// RecordConfig is the settings of a Recorder; the zero value is useful.
type RecordConfig struct {
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
	Filter func(a Actor) bool
	// Note is the game's, kept in the file; at most 4 KiB.
	Note string
}

// The defaults, and bounds of a recording.
const (
	defaultRecordRate  = 10
	defaultCheckpoints = 30 * time.Second
	defaultPerFrame    = 512
	maxNote            = 4 << 10
	maxRecorded        = 1 << 20 // actors at once
	maxCheckpoints     = 1 << 16 // in a file: three weeks of them
	// frameBudget is the bytes from which on a frame takes no more values and openings: they follow in the next. A
	// frame with frameFull bytes takes nothing.
	frameBudget = 4 << 20
	frameFull   = 12 << 20
	// A block is written when it holds that much, or a second.
	blockBytes = 64 << 10
	blockTime  = time.Second
)

// RecordCounters is what a Recorder did.
type RecordCounters struct {
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
//	rec, err := world.Record(file, actorrep.RecordConfig{})
//	... world.Step(now) as ever
//	err = rec.Close()
type Recorder struct {
	Counters RecordCounters

	cfg      RecordConfig
	world    *World
	peer     *Peer
	file     fileWriter
	interval time.Duration // of frames
	begun    bool
	start    time.Duration // when the recording began
	next     time.Duration // when the next frame is due
	time     time.Duration // of the frame at hand, since start
	number   uint32        // of the frame at hand, from 1: the packet of its records
	frame    []byte        // its messages so far
	opened   int           // actors in it

	slots []slot // by view.id; 0 is nobody's
	free  []uint32
	ids   map[netguid.GUID]uint32
	fresh []*view // opened in this frame, or sent something reliably
	check checkpoint
	err   error
}

// slot is a recorded actor's place.
type slot struct {
	v     *view
	first kept
}

// Errors of recordings.
var (
	ErrRecordConfig = errors.New("actorrep: settings that no recording can have")
	// ErrRecordEnded is a recording that was closed.
	ErrRecordEnded = errors.New("actorrep: the recording has ended")
	errTooMany     = fmt.Errorf("actorrep: over %d actors in a recording", maxRecorded)
)

// Record begins to write the world to out: all its actors, or those of a filter, in the form that a Replay plays.
// Fields see a recording as an audience of its own (conditions replay, replayorowner, skipreplay), which owns
// nothing. Multicast procedures are recorded, calls to one client aren't. out is written to about once a second,
// in one call. The file needs no Close to be of use: without one it ends with the last block written.
func (w *World) Record(out io.Writer, cfg RecordConfig) (*Recorder, error) {
	if !w.server {
		return nil, ErrClient
	}
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	r := &Recorder{cfg: cfg, world: w, slots: make([]slot, 1), ids: map[netguid.GUID]uint32{}}
	if cfg.Rate > 0 {
		r.interval = time.Duration(float64(time.Second) / cfg.Rate)
	}
	r.peer = w.newPeer()
	r.peer.replay, r.peer.filter, r.peer.out = true, cfg.Filter, r
	r.file = newFileWriter(out)
	schema, bits := w.encodeSchema()
	if r.fail(r.file.begin(schema, bits, r.interval, cfg.Note)); r.err != nil {
		return nil, r.err
	}
	w.addPeer(r.peer)
	return r, nil
}

func (c *RecordConfig) fill() error {
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
		return fmt.Errorf("%w: Rate %v must be 0.001 or more, or negative", ErrRecordConfig, c.Rate)
	case c.ActorsPerFrame < 4:
		return fmt.Errorf("%w: ActorsPerFrame %d must be 4 or more", ErrRecordConfig, c.ActorsPerFrame)
	case len(c.Note) > maxNote:
		return fmt.Errorf("%w: a Note of %d bytes; %d are the most", ErrRecordConfig, len(c.Note), maxNote)
	}
	return nil
}

// Peer is the recording as a connection: Peer.Attribution says what its bits are spent on, Explain why an actor isn't in
// it.
func (r *Recorder) Peer() *Peer { return r.peer }

// Err is what ended the recording: an error of its io.Writer, or ErrRecordEnded after Close. nil while it goes on.
func (r *Recorder) Err() error { return r.err }

// Duration is the time recorded so far.
func (r *Recorder) Duration() time.Duration { return r.time }

// Close ends the recording with a last frame and its index. It doesn't close the io.Writer. Call it between two Steps.
func (r *Recorder) Close() error {
	if errors.Is(r.err, ErrRecordEnded) {
		return nil
	}
	if r.begun && (len(r.frame) > 0 || r.world.now-r.start > r.time) { // what there was since the last frame
		r.next = r.world.now
		r.peer.begin()
		r.peer.gather(r.world.workers[0])
		r.peer.write()
	}
	r.world.RemoveConn(r.peer)
	if r.err == nil {
		r.flush()
	}
	if r.err == nil {
		r.fail(r.file.end(r.time))
	}
	err := r.err
	r.err = ErrRecordEnded
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
		r.err = fmt.Errorf("actorrep: the recording ended: %w", err)
	}
}
