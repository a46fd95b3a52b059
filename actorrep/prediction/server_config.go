package prediction

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// ServerConfig configures a [Server]. Only Model is required.
type ServerConfig[S, I any] struct {
	// Model is the same as the client's.
	Model Model[S, I]
	// MaxError is the largest Model.Distance between the server's state and a client's claim that isn't corrected, in the game's unit. Default
	// 0: every difference is corrected, so the codec of claims must be exact.
	MaxError float64
	// LargeError is the distance above which a correction is large: it is sent after LargeInterval instead of CorrectionInterval. Default 0:
	// no correction is large.
	LargeError float64
	// AckInterval is the least time between acks. Default 100 ms.
	AckInterval time.Duration
	// CorrectionInterval is the least time between corrections. Default 100 ms.
	CorrectionInterval time.Duration
	// LargeInterval is the least time before a large correction. Default 50 ms.
	LargeInterval time.Duration
	// ForceAfter is how long a client may be silent before the server simulates it with ForceInput, without
	// Model.Interval. Default 250 ms; -1 for ever.
	ForceAfter time.Duration
	// MaxForced is the longest time for which the server simulates a silent client with ForceInput. After it the state stands still; with
	// Model.Interval it is simulated with the zero input, as before the first move. Default 1 s; at most 3 s.
	MaxForced time.Duration
	// ForceInput returns the input that a silent client is simulated with, made from the last one. Default: the last one.
	ForceInput func(last I) I
	// MaxDiscrepancy is how far a client's simulated time may get ahead of the server's, without Model.Interval. Default 250 ms; -1 for no
	// limit.
	MaxDiscrepancy time.Duration
	// Drift is how much faster than the server's a client's clock may run all the time, as a fraction, without Model.Interval. Default 0.005;
	// -1 for none; at most 0.1.
	Drift float64
	// PayBack is the share of the elapsed time that a client which was too far ahead loses until it isn't ahead any more, without
	// Model.Interval. Default 0.5; above 0, at most 1.
	PayBack float64
	// MovesPerTick bounds the moves simulated from one Tick to the next. Default 128; 16 to
	// 4096.
	MovesPerTick int
}

func (c *ServerConfig[S, I]) fill() error {
	if err := c.Model.fill(); err != nil {
		return err
	}
	c.AckInterval = cmp.Or(c.AckInterval, 100*time.Millisecond)
	c.CorrectionInterval = cmp.Or(c.CorrectionInterval, 100*time.Millisecond)
	c.LargeInterval = cmp.Or(c.LargeInterval, 50*time.Millisecond)
	c.ForceAfter = cmp.Or(c.ForceAfter, 250*time.Millisecond)
	c.MaxForced = cmp.Or(c.MaxForced, time.Second)
	c.MaxDiscrepancy = cmp.Or(c.MaxDiscrepancy, 250*time.Millisecond)
	c.LargeError = cmp.Or(c.LargeError, math.Inf(1))
	switch c.Drift {
	case 0:
		c.Drift = 0.005
	case -1:
		c.Drift = 0
	}
	c.PayBack = cmp.Or(c.PayBack, 0.5)
	c.MovesPerTick = cmp.Or(c.MovesPerTick, 128)
	return c.validate()
}

func (c *ServerConfig[S, I]) validate() error {
	switch {
	case !(c.MaxError >= 0) || !(c.LargeError >= 0):
		return fmt.Errorf("%w: MaxError is %v and LargeError %v; give distances", ErrConfig, c.MaxError, c.LargeError)
	case c.AckInterval < 0 || c.CorrectionInterval < 0 || c.LargeInterval < 0:
		return fmt.Errorf("%w: intervals of %v, %v and %v; give durations", ErrConfig, c.AckInterval, c.CorrectionInterval, c.LargeInterval)
	case c.ForceAfter < -1 || c.MaxForced < 0 || c.MaxForced > 3*time.Second:
		return fmt.Errorf("%w: ForceAfter is %v and MaxForced %v; give -1 for never, or a duration, and at most 3 s", ErrConfig, c.ForceAfter, c.MaxForced)
	case c.MaxDiscrepancy < -1:
		return fmt.Errorf("%w: MaxDiscrepancy is %v; give a duration, or -1 for no guard", ErrConfig, c.MaxDiscrepancy)
	case !(c.Drift >= 0 && c.Drift <= 0.1):
		return fmt.Errorf("%w: Drift is %v; give a fraction of at most 0.1, or -1 for none", ErrConfig, c.Drift)
	case !(c.PayBack > 0 && c.PayBack <= 1):
		return fmt.Errorf("%w: PayBack is %v; give a share above 0, at most 1", ErrConfig, c.PayBack)
	case c.MovesPerTick < maxMessageMoves || c.MovesPerTick > 4096:
		return fmt.Errorf("%w: MovesPerTick is %d; give %d to 4096", ErrConfig, c.MovesPerTick, maxMessageMoves)
	}
	return nil
}

// ServerCounters counts what a server did and received.
type ServerCounters struct {
	Messages    uint64
	Moves       uint64 // simulated
	Old         uint64 // moves that came again, or too late
	Flooded     uint64 // moves over MovesPerTick
	Good        uint64 // claims within MaxError
	Bad         uint64 // claims beyond it: each made a correction
	Acks        uint64 // sent
	Corrections uint64 // sent, repeated ones too
	Forced      uint64 // moves made for a silent client
	SpeedHacks  uint64 // times a client was found too far ahead
	Cut         uint64 // moves that got less time than they asked for
	Malformed   uint64

	// With Model.Interval.
	Missed uint64 // ticks after the first move that came to the time of a move that hadn't come: Forced, Idle, or left out by Skip
	Idle   uint64 // ticks simulated with the zero input: before the first move, and after MaxForced
	Late   uint64 // moves that came after their tick
	Ahead  uint64 // moves that came too long before it
	Waited uint64 // µs that moves lay in the buffer, together
}
