package prediction

import (
	"cmp"
	"fmt"
	"time"
)

// ClientConfig is how a [Client] predicts. Only the model is required.
type ClientConfig[S, I any] struct {
	// Model is the same as the server's.
	Model Model[S, I]
	// CanCombine reports whether the consecutive moves a and b may be sent as one move with b's input, to save bandwidth. s is the state
	// before a. It is called only for unsent moves. Default: never.
	CanCombine func(s *S, a, b *I) bool
	// Important reports whether an input must not be lost, compared with the last acked input: a shot, for example. The oldest unacked
	// important move is repeated in each message, in addition to Redundancy. Default: no input is important.
	Important func(acked, in *I) bool
	// Redundancy is how many of the last messages' moves are repeated in each message, as far as it has room. Default 2; at most 8; -1 for
	// none.
	Redundancy int
	// SendInterval is the least time between messages. Default 16 ms; 1/120 s to 200 ms.
	SendInterval time.Duration
	// MaxMoves bounds the moves saved until they are acked. Default 96; 16 to 1024.
	MaxMoves int
	// Position returns where a state is drawn, for Offset. Default: Offset is always zero, and corrections show at once.
	Position func(s *S) [3]float64
	// Smoothing configures how Offset fades.
	Smoothing SmootherConfig
	// Corrected is called after each correction that was applied. May be nil.
	Corrected func(c Correction)
}

// maxRedundancy bounds Redundancy.
const maxRedundancy = 8

// maxCorrections is how many corrections apply between two calls of Move or Send: each simulates up to MaxMoves moves again.
const maxCorrections = 4

// Correction describes a correction that a client applied.
type Correction struct {
	At       time.Duration // timestamp of the corrected move
	Age      time.Duration // how long ago that was
	Size     float64       // Model.Distance between the present states before and after
	Replayed int           // moves
}

func (c *ClientConfig[S, I]) fill() error {
	if err := c.Model.fill(); err != nil {
		return err
	}
	switch c.Redundancy {
	case 0:
		c.Redundancy = 2
	case -1:
		c.Redundancy = 0
	}
	c.SendInterval = cmp.Or(c.SendInterval, 16*time.Millisecond)
	c.MaxMoves = cmp.Or(c.MaxMoves, 96)
	switch {
	case c.Redundancy < 0 || c.Redundancy > maxRedundancy:
		return fmt.Errorf("%w: Redundancy is %d; give 1 to %d, or -1 for none", ErrConfig, c.Redundancy, maxRedundancy)
	case c.SendInterval < time.Second/120 || c.SendInterval > 200*time.Millisecond:
		return fmt.Errorf("%w: SendInterval is %v; give 1/120 s to 200 ms", ErrConfig, c.SendInterval)
	case c.MaxMoves < maxMessageMoves || c.MaxMoves > 1024:
		return fmt.Errorf("%w: MaxMoves is %d; give %d to 1024", ErrConfig, c.MaxMoves, maxMessageMoves)
	}
	return c.Smoothing.fill()
}

// ClientCounters counts what a client did and received.
type ClientCounters struct {
	Moves        uint64 // made, those combined into one counted once
	Combined     uint64 // frames that made the move before them longer
	Messages     uint64
	SentAgain    uint64 // moves that went along with a later message
	Acks         uint64
	Corrections  uint64 // applied
	Repeated     uint64 // corrections that were applied before
	Deferred     uint64 // corrections that didn't apply at once, because four had since the last Move or Send
	Replayed     uint64 // moves
	StaleReplies uint64 // overtaken by a newer one
	Forgotten    uint64 // moves not acked, of which there were too many
	Malformed    uint64
}
