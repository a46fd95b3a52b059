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
	// CanCombine says whether one move may stand for two that follow each other, with the second's
	// input. It is asked only about moves that aren't sent yet. s is the state before the
	// first. Default: never.
	CanCombine func(s *S, a, b *I) bool
	// Important says whether an input differs so much from the last acknowledged one that losing
	// it would hurt; the oldest such move goes along in each message until it is acked.
	// Default: none is, Redundancy is enough for most.
	Important func(acked, in *I) bool
	// Redundancy is the number of messages whose moves go along again, as far as there is room. Default 2; at
	// most 8; -1 for none. So a client of 144 frames a second is covered as well as one of 60.
	Redundancy int
	// SendInterval is the least time between messages. Default 16 ms; 1/120 s to 200 ms.
	SendInterval time.Duration
	// MaxMoves bounds the moves saved until they are acked. Default 96; 16 to 1024.
	MaxMoves int
	// Position is where the state is drawn; with it, Offset smooths corrections. Default:
	// they show at once.
	Position func(s *S) [3]float64
	// Smoothing is how Offset fades.
	Smoothing SmootherConfig
	// Corrected is called after each correction that was applied. Default: nobody is told.
	Corrected func(c Correction)
}

// maxRedundancy bounds Redundancy.
const maxRedundancy = 8

// maxCorrections is how many corrections apply between two calls of Move or Send: each simulates up to MaxMoves moves again.
const maxCorrections = 4

// Correction is what a correction did to a client.
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

// ClientCounters is what a client did and met.
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
