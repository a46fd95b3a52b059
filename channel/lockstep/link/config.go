package link

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrConfig is New's error for a Config out of range.
	ErrConfig = errors.New("link: config out of range")
	// ErrFull is Send's error when Window messages aren't acked. Send again later, or drop the peer.
	ErrFull = errors.New("link: send queue full; wait for acks or drop the peer")
	// ErrTooLarge is Send's error for a message over MaxMessage; split it.
	ErrTooLarge = errors.New("link: message over 255 bytes; split it")

	// ErrShort refuses a datagram without a whole header.
	ErrShort = errors.New("link: datagram shorter than its header; drop it")
	// ErrChecksum refuses a datagram damaged on its way.
	ErrChecksum = errors.New("link: checksum doesn't match; drop it")
	// ErrHeader refuses a datagram of no known type, or with reserved bits set.
	ErrHeader = errors.New("link: not a datagram of this version; drop it")
	// ErrLength refuses a datagram that doesn't end exactly with a message.
	ErrLength = errors.New("link: datagram and message sizes disagree; drop it")
	// ErrAckAhead refuses a datagram that acks messages that were never sent.
	ErrAckAhead = errors.New("link: acks messages that were never sent; drop it")
)

const (
	// MaxMessage is the size of the largest message in bytes.
	MaxMessage = 255
	// HeaderBytes is the size of the header, the first message's sequence and size included.
	HeaderBytes = 8
	// packedBytes lead each further message of a datagram.
	packedBytes = 3
)

// Config configures a Link. The zero value is useful. Both ends need the same Window and Conversation.
type Config struct {
	// Conversation is part of every checksum, so late datagrams of an earlier Link on the same path are refused. Use
	// another number each time a path is used again. Default 0, which leaves the checksum as it is.
	Conversation uint32
	// Window bounds the messages sent and not acked, and the received messages kept while an older one is missing: a
	// power of two from 2 to 16384; default 256. Each takes 560 bytes of memory.
	Window int
	// MTU is the largest datagram sent in bytes, 263 to 65507; default 1200. Datagrams over the
	// path's MTU are lost or fragmented.
	MTU int
	// MinRTO and MaxRTO bound the time until a message is resent, within 1 ms and 1 min; defaults 30 ms and 1 s. A MinRTO shorter than the
	// peer's tick resends messages whose acks are on their way.
	MinRTO, MaxRTO time.Duration
	// InitialRTO is the time until a message is resent before the round trip was measured, up to 1 min; default 250 ms. It is
	// at least MinRTO and at most MaxRTO, whatever it says.
	InitialRTO time.Duration
	// Backoff multiplies a message's RTO when it is resent, 1 to 4; default 1.5. TCP's 2 saves
	// bandwidth on a dead path, 1 saves time on a lossy one.
	Backoff float64
	// AckDelay is how long an ack waits for a datagram with messages that can carry it, up to 1 s; default 5 ms; negative: 0.
	AckDelay time.Duration
	// PingInterval is the time between pings, 1 ms to 1 h; default 1 s; negative: no pings. Without them the round trip may not be
	// measured for a while under heavy loss.
	PingInterval time.Duration
}

func (c Config) filled() (Config, error) {
	c.Window = cmp.Or(c.Window, 256)
	c.MTU = cmp.Or(c.MTU, 1200)
	c.MinRTO = cmp.Or(c.MinRTO, 30*time.Millisecond)
	c.MaxRTO = cmp.Or(c.MaxRTO, time.Second)
	c.InitialRTO = cmp.Or(c.InitialRTO, 250*time.Millisecond)
	c.Backoff = cmp.Or(c.Backoff, 1.5)
	c.AckDelay = cmp.Or(c.AckDelay, 5*time.Millisecond)
	c.PingInterval = cmp.Or(c.PingInterval, time.Second)
	c.AckDelay = max(c.AckDelay, 0)
	switch {
	case c.Window < 2 || c.Window > 16384 || c.Window&(c.Window-1) != 0:
		return c, fmt.Errorf("%w: Window %d must be a power of two from 2 to 16384", ErrConfig, c.Window)
	case c.MTU < HeaderBytes+MaxMessage || c.MTU > 65507:
		return c, fmt.Errorf("%w: MTU %d must be from %d to 65507", ErrConfig, c.MTU, HeaderBytes+MaxMessage)
	case c.MinRTO < time.Millisecond || c.MaxRTO < c.MinRTO || c.MaxRTO > time.Minute:
		return c, fmt.Errorf("%w: MinRTO %v must be at least 1ms, and MaxRTO %v from that to 1m", ErrConfig, c.MinRTO, c.MaxRTO)
	case c.InitialRTO < 0 || c.InitialRTO > time.Minute:
		return c, fmt.Errorf("%w: InitialRTO %v must be from 0 to 1m", ErrConfig, c.InitialRTO)
	case !(c.Backoff >= 1 && c.Backoff <= 4):
		return c, fmt.Errorf("%w: Backoff %v must be from 1 to 4", ErrConfig, c.Backoff)
	case c.AckDelay > time.Second:
		return c, fmt.Errorf("%w: AckDelay %v must be at most 1s", ErrConfig, c.AckDelay)
	case c.PingInterval > time.Hour || c.PingInterval > 0 && c.PingInterval < time.Millisecond:
		return c, fmt.Errorf("%w: PingInterval %v must be from 1ms to 1h, or negative for none", ErrConfig, c.PingInterval)
	}
	c.InitialRTO = min(max(c.InitialRTO, c.MinRTO), c.MaxRTO)
	return c, nil
}

// crcInit is what the checksum starts from.
func (c *Config) crcInit() uint16 {
	if c.Conversation == 0 {
		return crcInit
	}
	return crc16(crcInit, binary.LittleEndian.AppendUint32(nil, c.Conversation))
}
