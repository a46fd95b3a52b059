package salted

import (
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/setting"
)

// ServerHandler has the functions that a Server calls. Buffers are valid until the function
// returns. From Send no method of the Server may be called, from the others all but Receive and Tick.
type ServerHandler interface {
	// Send sends a datagram.
	Send(to netip.AddrPort, p []byte)
	// Connected is called when a client has taken a slot.
	Connected(slot int, info ClientInfo)
	// Payload is called with each payload of a client.
	Payload(slot int, p []byte)
	// Disconnected is called when a slot is free again.
	Disconnected(slot int, reason Reason)
}

// ClientInfo is what a server knows of a client.
type ClientInfo struct {
	Addr netip.AddrPort
	// Salt is the client's random salt. It differs each time a client connects.
	Salt uint64
}

// ServerConfig has the settings of a Server. Handler is required. The zero value of
// all others is useful.
type ServerConfig struct {
	// ProtocolID distinguishes games and their versions. Both ends must have the same.
	ProtocolID uint64
	// Handler has the functions that the Server calls.
	Handler ServerHandler
	// Slots is the maximum number of clients, 1 to 1024. Default 64. Each tick looks at
	// all slots.
	Slots int
	// MaxPerAddr bounds the slots of one IPv4 address or one IPv6 /64. Without it one sender with many ports could take all
	// slots. Default a quarter of Slots, at least 4; negative: no bound. Loopback addresses have none.
	MaxPerAddr int
	// Timeout ends a connection from which nothing has come for so long: 10 ms to 100 years. Default 5 s; negative:
	// never, for debuggers.
	Timeout time.Duration
	// Interval is the time of silence after which a keep-alive is sent. Default 100 ms
	// (10 Hz). From 1 ms to 1 h, and below Timeout.
	Interval time.Duration
	// SecretLife is how long a secret makes challenges, 1 s to 1 h. A challenge stays valid for as long after
	// that. Default 10 s. With a shorter life, clients on bad networks must ask for another challenge.
	// A longer one gives replays more time.
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
	minTimeout        = 10 * time.Millisecond
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
	if c.Handler == nil {
		return errHandler
	}
	return setting.First(
		setting.Within(ErrConfig, "Slots", c.Slots, 1, maxSlots),
		validateTimes(c.Timeout, c.Interval),
		setting.Within(ErrConfig, "SecretLife", c.SecretLife, time.Second, time.Hour))
}

var errHandler = fmt.Errorf("%w: Handler is nil; give the functions that send and receive", ErrConfig)

func validateTimes(timeout, interval time.Duration) error {
	if interval >= timeout {
		return fmt.Errorf("%w: Interval %v must be below Timeout %v", ErrConfig, interval, timeout)
	}
	if timeout == never {
		timeout = setting.Longest
	}
	return setting.First(
		setting.Within(ErrConfig, "Timeout", timeout, minTimeout, setting.Longest),
		setting.Within(ErrConfig, "Interval", interval, time.Millisecond, time.Hour))
}

// ClientHandler has the functions that a Client calls. Buffers are valid until the function
// returns. From Send no method of the Client may be called, from the others all but Receive and Tick.
type ClientHandler interface {
	// Send sends a datagram.
	Send(to netip.AddrPort, p []byte)
	// StateChanged is called when the state has changed.
	StateChanged(from, to State)
	// Payload is called with each payload of the server.
	Payload(p []byte)
}

// ClientConfig has the settings of a Client. Handler is required. The zero value of
// all others is useful.
type ClientConfig struct {
	// ProtocolID distinguishes games and their versions. Both ends must have the same.
	ProtocolID uint64
	// Handler has the functions that the Client calls.
	Handler ClientHandler
	// Timeout ends a connection from which nothing has come for so long: 10 ms to 100 years. Default 5 s; negative: never, for
	// debuggers.
	Timeout time.Duration
	// ConnectTimeout bounds each step of connecting, 10 ms to 100 years. Default Timeout, or 5 s when that is negative.
	ConnectTimeout time.Duration
	// Interval is the time after which a request or response without an answer is sent again, and the
	// time of silence after which a keep-alive is sent. Default 100 ms (10 Hz). From 1 ms to 1 h, and below Timeout.
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
	if c.Handler == nil {
		return errHandler
	}
	return setting.First(validateTimes(c.Timeout, c.Interval), setting.Within(ErrConfig, "ConnectTimeout", c.ConnectTimeout, minTimeout, setting.Longest))
}
