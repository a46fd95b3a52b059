package replay

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/recording"
)

// A checkpoint is a copy of all actors, as if freshly opened, for seeks. It is made over several frames between the
// ordinary messages: each frame contains its changes, then copies of the next places as they are after these changes.
//
// A seek starts at the checkpoint's first frame. It skips messages about places that aren't copied yet; actors opened in
// new places meanwhile need no copy. After the last frame it has every actor. Ordinary messages stay unchanged, except
// that an actor's next record after its copy has no baseline.
type checkpoint struct {
	active       bool
	begins, ends bool // in the current frame
	last         time.Duration
	began        int64  // offset of its first block
	upTo, until  uint32 // places below upTo are copied, those below until will be
}

func (c *checkpoint) flags() (f uint8) {
	if c.begins {
		f |= recording.Begins
	}
	if c.ends {
		f |= recording.Ends
	}
	return f
}

// sectionBytes: a frame copies no more actors once its copies have this many bytes.
const sectionBytes = 256 << 10

// stepCheckpoint begins a checkpoint when one is due, and continues one.
func (r *Recorder) stepCheckpoint() {
	c := &r.check
	if !c.active && r.cfg.Checkpoints > 0 && r.time-c.last >= r.cfg.Checkpoints {
		r.flush() // so that this frame begins a block
		c.active, c.begins, c.last, c.began = true, true, r.time, r.file.offset
		c.upTo, c.until = 1, r.from.Places()
		r.put(bridge.Begin, c.until, nil, 0)
	}
	work := r.from.Opened()
	if c.active {
		from := len(r.frame)
		for c.upTo < c.until && work < r.cfg.ActorsPerFrame && len(r.frame)-from < sectionBytes {
			copied, ok := r.from.Copy(c.upTo)
			if !ok {
				break // the frame is full
			}
			if copied {
				r.Counters.Snapshots++
			}
			c.upTo++
			work++
		}
		r.put(bridge.UpTo, c.upTo, nil, 0)
		if c.upTo == c.until {
			c.active, c.ends = false, true
			r.put(bridge.End, 0, nil, 0)
		}
	}
	r.Counters.Busiest = max(r.Counters.Busiest, work)
	r.from.Split(0, 0)
	if c.active {
		r.from.Split(c.upTo, c.until)
	}
}
