package salted

import (
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"
)

// ServerHandler is what a Server tells its owner. Buffers are valid until the function
// returns. See the package's doc for what may be called from it.
type ServerHandler interface {
	// Send sends a datagram.
	Send(to netip.AddrPort, p []byte)
	// Connected says that a client took a slot.
	Connected(slot int, info ClientInfo)
	// Payload is what a client sent.
	Payload(slot int, p []byte)
	// Disconnected says that a slot is free again.
	Disconnected(slot int, reason Reason)
}

// ClientInfo is what a server knows of a client.
type ClientInfo struct {
	Addr netip.AddrPort
	// Salt is the client's; it differs each time a client connects.
	Salt uint64
}

// ServerConfig is the settings of a Server. Handler is required; the zero value of
// all others is useful.
type ServerConfig struct {
	// ProtocolID tells games and their versions apart; both ends must have the same.
	ProtocolID uint64
	// Handler is told what happens.
	Handler ServerHandler
	// Slots is the number of clients at most. Default 64, at most 1024, as each tick
	// looks at all of them.
	Slots int
	// MaxPerAddr bounds the slots of one IPv4 address or one /64 of IPv6: nobody needs more than addresses and ports
	// to take a slot. Default a quarter of Slots, and 4 at least; negative no bound. The loopback has none.
	MaxPerAddr int
	// Timeout ends a connection of which nothing was heard. Default 5 s; negative never,
	// for debuggers.
	Timeout time.Duration
	// Interval is the time between packets that await an answer, and until a
	// keep-alive. Default 100 ms (10 Hz).
	Interval time.Duration
	// SecretLife is how long a secret makes challenges; they are valid that much longer. Default
	// 10 s. With less, clients on bad networks ask for another challenge; more gives replays more
	// time.
	SecretLife time.Duration
	// Rand is the source of secrets. Default crypto/rand.
	Rand io.Reader
}

const (
	defaultSlots      = 64
	maxSlots          = 1024
	minPerAddr        = 4
	defaultTimeout    = 5 * time.Second
	defaultInterval   = 100 * time.Millisecond
	defaultSecretLife = 10 * time.Second
	never             = time.Duration(math.MaxInt64)
)

func (c ServerConfig) filled() ServerConfig {
	if c.Slots == 0 {
		c.Slots = defaultSlots
	}
	if c.MaxPerAddr == 0 {
		c.MaxPerAddr = max(minPerAddr, c.Slots/4)
	}
	if c.SecretLife == 0 {
		c.SecretLife = defaultSecretLife
	}
	fillCommon(&c.Timeout, &c.Interval, &c.Rand)
	return c
}

func fillCommon(timeout, interval *time.Duration, source *io.Reader) {
	switch {
	case *timeout == 0:
		*timeout = defaultTimeout
	case *timeout < 0:
		*timeout = never
	}
	if *interval == 0 {
		*interval = defaultInterval
	}
	if *source == nil {
		*source = rand.Reader
	}
}

func (c *ServerConfig) validate() error {
	switch {
	case c.Handler == nil:
		return fmt.Errorf("%w: Handler is nil; give the functions that send and receive", ErrConfig)
	case c.Slots < 1 || c.Slots > maxSlots:
		return fmt.Errorf("%w: Slots %d must be from 1 to %d", ErrConfig, c.Slots, maxSlots)
	case c.Interval < 0 || c.Interval >= c.Timeout:
		return fmt.Errorf("%w: Interval %v must be positive and below Timeout %v", ErrConfig, c.Interval, c.Timeout)
	case c.SecretLife < 0:
		return fmt.Errorf("%w: SecretLife %v must be positive", ErrConfig, c.SecretLife)
	}
	return nil
}

// ClientHandler is what a Client tells its owner. Buffers are valid until the function
// returns.
type ClientHandler interface {
	// Send sends a datagram.
	Send(to netip.AddrPort, p []byte)
	// StateChanged says that the state is another.
	StateChanged(from, to State)
	// Payload is what the server sent.
	Payload(p []byte)
}

// ClientConfig is the settings of a Client. Handler is required; the zero value of
// all others is useful.
type ClientConfig struct {
	// ProtocolID tells games and their versions apart; both ends must have the same.
	ProtocolID uint64
	// Handler is told what happens.
	Handler ClientHandler
	// Timeout is how long a connection lives without a packet. Default 5 s; negative never, for debuggers.
	Timeout time.Duration
	// ConnectTimeout is how long each step of connecting may take. Default Timeout; 5 s when that is never.
	ConnectTimeout time.Duration
	// Interval is the time between packets that await an answer, and until a
	// keep-alive. Default 100 ms (10 Hz).
	Interval time.Duration
	// Rand is the source of salts. Default crypto/rand.
	Rand io.Reader
}

func (c ClientConfig) filled() ClientConfig {
	fillCommon(&c.Timeout, &c.Interval, &c.Rand)
	switch {
	case c.ConnectTimeout != 0:
	case c.Timeout == never:
		c.ConnectTimeout = defaultTimeout
	default:
		c.ConnectTimeout = c.Timeout
	}
	return c
}

func (c *ClientConfig) validate() error {
	switch {
	case c.ConnectTimeout < 0:
		return fmt.Errorf("%w: ConnectTimeout %v must be positive", ErrConfig, c.ConnectTimeout)
	case c.Handler == nil:
		return fmt.Errorf("%w: Handler is nil; give the functions that send and receive", ErrConfig)
	case c.Interval < 0 || c.Interval >= c.Timeout:
		return fmt.Errorf("%w: Interval %v must be positive and below Timeout %v", ErrConfig, c.Interval, c.Timeout)
	}
	return nil
}
