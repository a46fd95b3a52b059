package salted

import "errors"

var (
	// ErrConfig is wrapped by the errors of NewServer and NewClient for settings that can't work.
	ErrConfig = errors.New("salted: config")
	// ErrNotConnected: there is no connection to send on.
	ErrNotConnected = errors.New("salted: not connected; wait for Connected, and stop at Disconnected")
	// ErrPayloadSize: the payload doesn't have 1 to MaxPayload bytes.
	ErrPayloadSize = errors.New("salted: payload must be 1 to 1439 bytes behind Headroom bytes; split it or use a channel above")
	// ErrBusy: the client is connected or connecting.
	ErrBusy = errors.New("salted: already connected or connecting; Disconnect first")
)

// Reason is why a connection was refused or has ended. Reasons below 16 go over the wire.
type Reason uint8

const (
	// Full: the server has no free slot.
	Full Reason = 1
	// Closed: the other end disconnected.
	Closed Reason = 2
	// TooMany: the client's IPv4 address or IPv6 /64 has MaxPerAddr slots already.
	TooMany Reason = 3
	// Kicked: this server ended it by Disconnect. The client gets Closed.
	Kicked Reason = 16
	// TimedOut: nothing came from the other end for the Timeout, or for the ConnectTimeout of a client.
	TimedOut Reason = 17
	// Replaced: the client at this address connected again.
	Replaced Reason = 18
)

// String returns the reason in words.
func (r Reason) String() string {
	switch r {
	case 0:
		return "none"
	case Full:
		return "server full"
	case Closed:
		return "closed by the other end"
	case TooMany:
		return "too many connections from this address"
	case Kicked:
		return "disconnected by the server"
	case TimedOut:
		return "timed out"
	case Replaced:
		return "replaced by a new connection from the same address"
	}
	return "unknown"
}
