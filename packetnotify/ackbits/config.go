package ackbits

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrConfig is wrapped by New's error.
	ErrConfig = errors.New("ackbits: config out of range")
	// ErrShort refuses a packet without a whole header.
	ErrShort = errors.New("ackbits: packet shorter than its header; drop it")
	// ErrStale refuses a packet too old to tell whether it was received before.
	ErrStale = errors.New("ackbits: packet older than the window; drop it")
	// ErrDuplicate refuses a packet that was received before.
	ErrDuplicate = errors.New("ackbits: packet was received before; drop it")
	// ErrAckAhead refuses a packet that acks what was never sent.
	ErrAckAhead = errors.New("ackbits: packet acks what was never sent; drop it")
)

// Config of an Endpoint. The zero value is useful.
type Config struct {
	// Window is how many sent, and received, packets are remembered: a power of two from
	// 32 to 16384; default 256. It should hold a round trip of packets; a smaller one loses acks.
	Window int
	// LossAfter is the age at which a packet without an ack counts as lost, 1 ms to 1 h;
	// default 1 s. Below the round trip everything counts as lost for a while.
	LossAfter time.Duration
	// Smoothing is the weight of a new sample in the averages, in (0, 1]; default
	// 0.1. 1 is no smoothing at all.
	Smoothing float64
}

func (c Config) filled() (Config, error) {
	if c.Window == 0 {
		c.Window = 256
	}
	if c.LossAfter == 0 {
		c.LossAfter = time.Second
	}
	if c.Smoothing == 0 {
		c.Smoothing = 0.1
	}
	switch {
	case c.Window < 32 || c.Window > 16384 || c.Window&(c.Window-1) != 0:
		return c, fmt.Errorf("%w: Window %d must be a power of two from 32 to 16384", ErrConfig, c.Window)
	case c.LossAfter < time.Millisecond || c.LossAfter > time.Hour:
		return c, fmt.Errorf("%w: LossAfter %v must be from 1ms to 1h", ErrConfig, c.LossAfter)
	case !(c.Smoothing > 0 && c.Smoothing <= 1):
		return c, fmt.Errorf("%w: Smoothing %v must be above 0, at most 1", ErrConfig, c.Smoothing)
	}
	return c, nil
}
