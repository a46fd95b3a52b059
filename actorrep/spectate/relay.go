package spectate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/recording"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// name is that of the channel, which a spectator opens. The bytes on it are a first one, 1 when a checkpoint comes first, and then those of a
// recording without the blocks before that checkpoint, in reliable bunches.
var name = bunch.Name{Index: 291}

// RelayConfig configures a Relay.
type RelayConfig struct {
	// Delay is the least age of what spectators are sent. Default 10 s.
	Delay time.Duration
	// Checkpoints is the time between checkpoints. A new spectator begins with the last one. Default 10 s.
	Checkpoints time.Duration
	// MaxBytes bounds what is kept of the recording, in bytes. Default 64 MiB. Beyond it the recording ends with ErrFull.
	MaxBytes int
	// MaxSpectators bounds the spectators; more are refused with ErrCrowd. Default 64.
	MaxSpectators int
	// Allow reports whether a connection that has joined may watch. Default: all may. Players may too, so after Delay they
	// can see what isn't relevant to them.
	Allow func(c *driver.Conn) bool
	// Rate is the recording's, in frames a second. Default 10.
	Rate float64
}

// Errors.
var (
	// ErrConfig is wrapped by NewRelay's and NewSpectator's errors.
	ErrConfig = errors.New("spectate: config")
	// ErrFull: the recording of Delay, back to two checkpoints before it, is larger than RelayConfig.MaxBytes.
	ErrFull = errors.New("spectate: the recording of Delay is larger than MaxBytes")
	// ErrSlow ends a connection that is too slow for the recording.
	ErrSlow = errors.New("spectate: too slow to follow the game")
	// ErrCrowd ends a connection when there are MaxSpectators, or that opens the channel twice.
	ErrCrowd = errors.New("spectate: too many spectators")
	// ErrNotAllowed ends a connection that Allow refuses.
	ErrNotAllowed = errors.New("spectate: not allowed to watch")
)

// Relay is the server's part. It belongs to the goroutine of its world.
type Relay struct {
	cfg    RelayConfig
	rec    *replay.Recorder
	now    time.Duration
	head   []byte  // of the recording: what precedes its frames
	heads  int     // writes of it that came
	blocks []block // kept
	dated  int     // the number behind the last whose time is known
	first  int     // the number of the first of those
	ready  int     // the number behind the last that may leave
	start  int     // the number of that where a newcomer begins
	kept   int     // that of the checkpoint before: who is slower is too slow
	saved  bool    // there is a checkpoint at start
	begun  int     // the number of that where the checkpoint begins that is being released
	bytes  int
	viewer []*viewer
	err    error
}

// block is one of the recording's.
type block struct {
	at           time.Duration // of the first Step since it was written
	data         []byte
	begins, ends bool // a checkpoint
}

// viewer is a spectator's channel. A spectator has nothing to say but that it is there.
type viewer struct {
	channel.Nop
	r     *Relay
	ch    *channel.Channel
	conn  *driver.Conn
	block int // the number of that at hand; -1 is the head
	at    int // bytes of it that were sent
	from  int // the number of the first
	begun bool
	asked bool // for spare bandwidth
	gone  bool
}

// NewRelay begins to record a server's world. Errors: ErrConfig, or replay.Record's.
func NewRelay(w *actorrep.World, cfg RelayConfig) (*Relay, error) {
	if cfg.Delay < 0 || cfg.Checkpoints < 0 || cfg.MaxBytes < 0 || cfg.MaxSpectators < 0 {
		return nil, fmt.Errorf("%w: Delay %v, Checkpoints %v, MaxBytes %d and MaxSpectators %d must be positive, or 0 for the default", ErrConfig, cfg.Delay, cfg.Checkpoints, cfg.MaxBytes, cfg.MaxSpectators)
	}
	cfg.Delay, cfg.Checkpoints = cmp.Or(cfg.Delay, 10*time.Second), cmp.Or(cfg.Checkpoints, 10*time.Second)
	cfg.MaxBytes, cfg.MaxSpectators = cmp.Or(cfg.MaxBytes, 64<<20), cmp.Or(cfg.MaxSpectators, 64)
	r := &Relay{cfg: cfg, begun: -1}
	var err error
	r.rec, err = replay.Record(w, tape{r}, replay.Config{Rate: cfg.Rate, Checkpoints: cfg.Checkpoints})
	return r, err
}

// tape takes the recording.
type tape struct{ r *Relay }

// Write takes a block.
func (t tape) Write(b []byte) (int, error) {
	r := t.r
	if r.heads < 2 { // the file's head, and the schema
		r.head = append(r.head, b...)
		r.heads++
		return len(b), nil
	}
	if r.bytes+len(b) > r.cfg.MaxBytes {
		return 0, ErrFull
	}
	r.bytes += len(b)
	flags := b[recording.Flags]
	r.blocks = append(r.blocks, block{0, slices.Clone(b), flags&recording.Begins != 0, flags&recording.Ends != 0})
	return len(b), nil
}

// Channel is the channel type to add to the driver.Config of the server.
func (r *Relay) Channel() channel.Type {
	return channel.Type{Name: name, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
		conn := driver.ConnOf(ch)
		if conn == nil {
			return nil
		}
		if r.cfg.Allow != nil && !r.cfg.Allow(conn) {
			conn.CloseWithError(ErrNotAllowed)
			return nil
		}
		if len(r.viewer) >= r.cfg.MaxSpectators || slices.ContainsFunc(r.viewer, func(v *viewer) bool { return v.conn == conn }) {
			conn.CloseWithError(ErrCrowd)
			return nil
		}
		v := &viewer{r: r, ch: ch, conn: conn, block: -1}
		r.viewer = append(r.viewer, v)
		return v
	}}
}

// Spectators is the number of spectators.
func (r *Relay) Spectators() int { return len(r.viewer) }

// Err is why the recording ended, such as ErrFull, or nil. Spectators see what was recorded until then.
func (r *Relay) Err() error { return r.err }

// Close ends the recording. Step still sends what was recorded, as it becomes old enough.
func (r *Relay) Close() error { return r.rec.Close() }

// Step sends spectators what is old enough. Call it each tick, between World.Step and the driver's TickFlush.
func (r *Relay) Step(now time.Duration) {
	r.now = max(r.now, now)
	if r.err == nil {
		r.err = r.rec.Err()
	}
	for ; r.dated-r.first < len(r.blocks); r.dated++ {
		r.blocks[r.dated-r.first].at = r.now
	}
	for r.ready-r.first < len(r.blocks) && r.blocks[r.ready-r.first].at+r.cfg.Delay <= r.now {
		b := &r.blocks[r.ready-r.first]
		if b.begins {
			r.begun = r.ready
		}
		if b.ends && r.begun >= 0 {
			r.kept, r.start, r.saved = r.start, r.begun, true
		}
		r.ready++
	}
	for r.first < r.kept {
		r.bytes -= len(r.blocks[0].data)
		r.blocks[0] = block{}
		r.blocks = r.blocks[1:]
		r.first++
	}
	r.viewer = slices.DeleteFunc(r.viewer, func(v *viewer) bool { return v.gone || v.conn.Closed() })
	for _, v := range r.viewer {
		v.step()
	}
}

// step has a spectator sent what there is.
func (v *viewer) step() {
	switch {
	case v.conn.Closing() || !v.conn.Joined() || v.r.ready == 0:
		return
	case !v.begun:
		first := byte(0)
		if v.r.saved {
			first = 1
		}
		if _, err := v.ch.SendBunch(&bunch.Out{Data: []byte{first}, Reliable: true}); err != nil {
			return
		}
		v.begun, v.from = true, v.r.start
	case v.block >= 0 && v.block < v.r.first:
		v.conn.CloseWithError(ErrSlow)
		return
	}
	if !v.asked {
		v.asked = true
		v.conn.SendSpare(v.spare)
	}
}

// chunk is how many bytes go at once, inFlight how many bunches may be unacked.
const (
	chunk    = 1000
	inFlight = 64
)

// spare sends a part of a block, and returns its bytes, or 0 for none.
func (v *viewer) spare() int {
	r, data := v.r, v.r.head
	switch {
	case v.gone || v.conn.Closing() || v.ch.NumOutRec() >= inFlight || v.block >= r.ready || v.block >= 0 && v.block < r.first:
		v.asked = false
		return 0
	case v.block >= 0:
		data = r.blocks[v.block-r.first].data
	}
	n := min(chunk, len(data)-v.at)
	if _, err := v.ch.SendBunch(&bunch.Out{Data: data[v.at : v.at+n], Reliable: true}); err != nil {
		v.asked = false
		return 0
	}
	if v.at += n; v.at == len(data) {
		v.at = 0
		if v.block++; v.block == 0 {
			v.block = v.from
		}
	}
	return n
}

// Closed is the channel's.
func (v *viewer) Closed(*channel.Channel, channel.CloseReason) { v.gone = true }
