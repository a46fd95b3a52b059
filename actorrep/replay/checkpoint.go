package replay

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
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
