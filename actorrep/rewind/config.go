package rewind

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrConfig is wrapped by errors about a config.
	ErrConfig = errors.New("rewind: config")
	// ErrOrder is returned when a snapshot isn't later than the last, and when a pose is added before any snapshot was
	// begun.
	ErrOrder = errors.New("rewind: begin snapshots in the order of their times, then add poses")
	// ErrFull is returned for an entity above Config.MaxEntities. It can't be hit in that snapshot.
	ErrFull = errors.New("rewind: the snapshot is full; raise Config.MaxEntities")
	// ErrNested is returned by a Do within a Do.
	ErrNested = errors.New("rewind: the world is in the past already; end that Do first")
)

// MaxHitboxes is the most hitboxes of an entity.
const MaxHitboxes = 32

// ID identifies an entity.
type ID uint32

// NoID is no entity. Pass it as skip to skip none.
const NoID ID = 0

// Config configures a [History] of poses of type P. Lerp is required, and for queries Hitboxes.
type Config[P any] struct {
	// Lerp interpolates: it returns the pose at t between a (0) and b (1).
	Lerp func(a, b P, t float64) P
	// Teleport reports whether the step from a to b is a jump that must not be interpolated. Default: never.
	Teleport func(a, b P) bool
	// Hitboxes appends the shapes at which an entity in a pose can be hit. Default: none.
	Hitboxes func(id ID, p *P, dst []Capsule) []Capsule
	// MaxRewind is how far back a view may go. Default 250 ms; at most 2 s.
	MaxRewind time.Duration
	// Snapshots is the number of snapshots kept. Default 32, enough for 250 ms at 120 ticks a second; 2 to 1024.
	Snapshots int
	// MaxEntities is the most entities of a snapshot. Default 256; 1 to 65536.
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

// Counters counts what a history did.
type Counters struct {
	Snapshots uint64
	Full      uint64 // poses above MaxEntities
	Views     uint64
	Clamped   uint64 // views of a time that was too old or in the future
	Ignored   uint64 // hitboxes above MaxHitboxes
}

// ViewTime is the server time that a player saw when firing at the server time fired, given the player's round trip and
// interpolation delay. A shot arrives rtt/2 after it was fired: subtract that from the arrival time to get fired.
func ViewTime(fired, rtt, delay time.Duration) time.Duration { return fired - rtt/2 - delay }
