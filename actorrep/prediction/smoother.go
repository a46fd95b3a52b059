package prediction

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// SmootherConfig configures how a [Smoother] fades. The zero value is useful.
type SmootherConfig struct {
	// Time is how long it takes for an offset to fade to 37 %. Default 100 ms; at
	// least 1 ms.
	Time time.Duration
	// Max bounds the length of the offset, in the game's unit. Default 0: no bound.
	Max float64
	// Snap is the length of an offset, in the game's unit, above which it is dropped: the jump is shown. Default 0: never.
	Snap float64
}

func (c *SmootherConfig) fill() error {
	c.Time = cmp.Or(c.Time, 100*time.Millisecond)
	if c.Time < time.Millisecond {
		return fmt.Errorf("%w: Smoothing.Time is %v; give at least 1 ms", ErrConfig, c.Time)
	}
	if !(c.Max >= 0 && c.Snap >= 0) {
		return fmt.Errorf("%w: Smoothing.Max is %v and Snap %v; give distances, or 0 for no bound", ErrConfig, c.Max, c.Snap)
	}
	return nil
}

// Smoother hides jumps: something that jumped is drawn at its old place, and moves to the new one. Not safe for concurrent use.
type Smoother struct {
	cfg    SmootherConfig
	offset [3]float64
	at     time.Duration // of offset
}

// NewSmoother returns a smoother without an offset.
func NewSmoother(cfg SmootherConfig) (*Smoother, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	return &Smoother{cfg: cfg}, nil
}

// Jump reports that something jumped from one place to another.
func (s *Smoother) Jump(now time.Duration, from, to [3]float64) {
	s.fade(now)
	length := 0.0
	for i := range s.offset {
		s.offset[i] += from[i] - to[i]
		length = math.Hypot(length, s.offset[i])
	}
	switch {
	case math.IsNaN(length) || math.IsInf(length, 0) || s.cfg.Snap > 0 && length > s.cfg.Snap:
		s.offset = [3]float64{}
	case s.cfg.Max > 0 && length > s.cfg.Max:
		for i := range s.offset {
			s.offset[i] *= s.cfg.Max / length
		}
	}
}

// Offset is what to add to the true place to get the drawn place.
func (s *Smoother) Offset(now time.Duration) [3]float64 {
	s.fade(now)
	return s.offset
}

func (s *Smoother) fade(now time.Duration) {
	if now <= s.at {
		return
	}
	if s.offset != [3]float64{} {
		f := math.Exp(-float64(now-s.at) / float64(s.cfg.Time))
		if f < 1e-4 {
			f = 0
		}
		for i := range s.offset {
			s.offset[i] *= f
		}
	}
	s.at = now
}
