package rewind

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrConfig is wrapped by what is wrong with a config.
	ErrConfig = errors.New("rewind: config")
	// ErrOrder is returned for a snapshot that isn't younger than the last, and for
	// poses added before any began.
	ErrOrder = errors.New("rewind: begin snapshots in the order of their times, then add poses")
	// ErrFull is returned for an entity over Config.MaxEntities; it can't be hit in that snapshot.
	ErrFull = errors.New("rewind: the snapshot is full; raise Config.MaxEntities")
	// ErrNested is returned by a Do within a Do.
	ErrNested = errors.New("rewind: the world is in the past already; end that Do first")
)

// MaxHitboxes is how many hitboxes an entity may have.
const MaxHitboxes = 32

// ID names an entity. NoID is nobody's.
type ID uint32

// NoID is no entity: skip it to skip nobody.
const NoID ID = 0

// Config is how a [History] of poses P keeps them. Lerp and, for queries, Hitboxes are required.
type Config[P any] struct {
	// Lerp is the pose at the share t of the way from a to b.
	Lerp func(a, b P, t float64) P
	// Teleport says whether b is no continuation of a. Default: it always is.
	Teleport func(a, b P) bool
	// Hitboxes appends what can be hit of an entity in a pose. Default: nothing.
	Hitboxes func(id ID, p *P, dst []Capsule) []Capsule
	// MaxRewind is how far back a view may be. Default 250 ms; at most 2 s.
	MaxRewind time.Duration
	// Snapshots is the number kept. Default 32, enough for 250 ms at 120 ticks a second; 2 to 1024.
	Snapshots int
	// MaxEntities bounds a snapshot. Default 256; 1 to 65536.
	MaxEntities int
}

func (c *Config[P]) fill() error {
	if c.MaxRewind == 0 {
		c.MaxRewind = 250 * time.Millisecond
	}
	if c.Snapshots == 0 {
		c.Snapshots = 32
	}
	if c.MaxEntities == 0 {
		c.MaxEntities = 256
	}
	switch {
	case c.Lerp == nil:
		return fmt.Errorf("%w: there is no Lerp; give the function that goes from one pose to the next", ErrConfig)
	case c.MaxRewind < 0 || c.MaxRewind > 2*time.Second:
		return fmt.Errorf("%w: MaxRewind is %v; give at most 2 s", ErrConfig, c.MaxRewind)
	case c.Snapshots < 2 || c.Snapshots > 1024:
		return fmt.Errorf("%w: Snapshots is %d; give 2 to 1024", ErrConfig, c.Snapshots)
	case c.MaxEntities < 1 || c.MaxEntities > 65536:
		return fmt.Errorf("%w: MaxEntities is %d; give 1 to 65536", ErrConfig, c.MaxEntities)
	}
	return nil
}

// Counters is what a history did and met.
type Counters struct {
	Snapshots uint64
	Full      uint64 // poses over MaxEntities
	Views     uint64
	Clamped   uint64 // views of a time that was too old, or still to come
	Ignored   uint64 // hitboxes over MaxHitboxes
}

// ViewTime is what time of the server's a player saw, who fired at the server time given with
// this round trip and this interpolation delay. When a shot came is rtt/2 later than when it was
// fired.
func ViewTime(fired, rtt, delay time.Duration) time.Duration { return fired - rtt/2 - delay }
