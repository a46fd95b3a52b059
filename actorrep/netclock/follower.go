package netclock

import (
	"errors"
	"fmt"
	"time"
)

// ErrConfig is wrapped by errors about a config.
var ErrConfig = errors.New("netclock: config")

// FollowerConfig configures a [Follower].
type FollowerConfig struct {
	// MaxSlew is how much faster or slower than the local clock the time may run, as a fraction. Default 0.05; above 0,
	// at most 0.5.
	MaxSlew float64
	// Jump is the largest error that is corrected by slewing. Beyond it the time jumps forward, or stands still until
	// the target has caught up. Default 1 s; at least 1 ms.
	Jump time.Duration
}

func (c *FollowerConfig) fill() error {
	if c.MaxSlew == 0 {
		c.MaxSlew = 0.05
	}
	if c.Jump == 0 {
		c.Jump = time.Second
	}
	if !(c.MaxSlew > 0 && c.MaxSlew <= 0.5) {
		return fmt.Errorf("%w: MaxSlew is %v; give a fraction above 0, at most 0.5", ErrConfig, c.MaxSlew)
	}
	if c.Jump < time.Millisecond {
		return fmt.Errorf("%w: Jump is %v; give at least 1 ms", ErrConfig, c.Jump)
	}
	return nil
}

// Follower is a time that follows a target, which may jump. It never goes back. Except for jumps and stands its rate
// stays within 1 ± MaxSlew. Not safe for concurrent use.
type Follower struct {
	Jumps  uint64 // times it jumped forward
	Stands uint64 // times it stood still because it was too far ahead

	cfg     FollowerConfig
	started bool
	last    time.Duration // local
	value   time.Duration
}

// NewFollower returns a follower that hasn't started.
func NewFollower(cfg FollowerConfig) (*Follower, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	return &Follower{cfg: cfg}, nil
}

// Advance moves the time to the local time now, at which it should be target, and returns it. The first call returns
// target. A now before an earlier one counts as that one.
func (f *Follower) Advance(now, target time.Duration) time.Duration {
	if !f.started {
		f.started, f.last, f.value = true, now, target
		return target
	}
	dt := max(0, now-f.last)
	f.last += dt
	off := target - (f.value + dt)
	switch {
	case off > f.cfg.Jump:
		f.Jumps++
		f.value = target
	case off < -f.cfg.Jump:
		if dt > 0 {
			f.Stands++
		}
	default:
		slew := time.Duration(f.cfg.MaxSlew * float64(dt))
		f.value += dt + min(max(off, -slew), slew)
	}
	return f.value
}

// Value is what the last Advance returned.
func (f *Follower) Value() time.Duration { return f.value }
