package ice

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Kind is what kind of address a Candidate is.
type Kind uint8

// The kinds, the best first.
const (
	OnHost    Kind = iota + 1 // of a network interface
	Reflexive                 // of the router, as a STUN server saw it
	Relayed                   // of a relay (TURN)
)

var kinds = map[Kind]string{OnHost: "host", Reflexive: "reflexive", Relayed: "relayed"}

// String returns the kind's name on the wire.
func (k Kind) String() string {
	if name, ok := kinds[k]; ok {
		return name
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Candidate is an address by which a player may be reached. Its text is "host 192.168.1.7:50000".
type Candidate struct {
	Kind Kind
	Addr netip.AddrPort
}

// MarshalText implements encoding.TextMarshaler.
func (c Candidate) MarshalText() ([]byte, error) {
	return []byte(c.Kind.String() + " " + c.Addr.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Candidate) UnmarshalText(text []byte) error {
	kind, addr, ok := strings.Cut(string(text), " ")
	ap, err := netip.ParseAddrPort(addr)
	if !ok || err != nil {
		return fmt.Errorf("%w: a candidate is like \"host 192.168.1.7:50000\"", ErrMessage)
	}
	for k, name := range kinds {
		if name == kind {
			*c = Candidate{k, netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}
			return nil
		}
	}
	return fmt.Errorf("%w: candidates are host, reflexive or relayed", ErrMessage)
}

// Message is what two players tell each other before there is a path. The first one of each has Ufrag and Password, by which checks between them are
// signed. It and later ones have the Candidates found so far.
type Message struct {
	Ufrag      string      `json:"ufrag,omitempty"`
	Password   string      `json:"password,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`
	// Again is in the first message of a guest whose paths all failed: the host's Password of that session. See Host.Rejoin.
	Again string `json:"again,omitempty"`
}

// Bounds of a Message.
const (
	// MaxMessage is the size of a Message in bytes.
	MaxMessage = 2048
	// MaxCandidates is the number of Candidates of one player, in all of its messages.
	MaxCandidates = 16

	minUfrag, maxUfrag       = 4, 32
	minPassword, maxPassword = 22, 64
)

// ErrMessage is wrapped by the error of a message that isn't like a Message, or is beyond its bounds.
var ErrMessage = errors.New("ice: a bad message from the other player")

// Append appends the message's wire form, JSON.
func (m Message) Append(b []byte) ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return b, err
	}
	if len(text) > MaxMessage {
		return b, fmt.Errorf("%w: %d bytes; at most %d", ErrMessage, len(text), MaxMessage)
	}
	return append(b, text...), nil
}

// ParseMessage reads the wire form. The error wraps ErrMessage.
func ParseMessage(p []byte) (m Message, err error) {
	if len(p) > MaxMessage {
		return m, fmt.Errorf("%w: %d bytes; at most %d", ErrMessage, len(p), MaxMessage)
	}
	if err := json.Unmarshal(p, &m); err != nil {
		if errors.Is(err, ErrMessage) {
			return Message{}, err
		}
		return Message{}, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return m, m.check()
}

func (m Message) check() error {
	named := m.Ufrag != "" || m.Password != ""
	switch {
	case named && (len(m.Ufrag) < minUfrag || len(m.Ufrag) > maxUfrag || len(m.Password) < minPassword || len(m.Password) > maxPassword):
		return fmt.Errorf("%w: a ufrag has %d to %d characters and a password %d to %d", ErrMessage, minUfrag, maxUfrag, minPassword, maxPassword)
	case m.Again != "" && (!named || len(m.Again) < minPassword || len(m.Again) > maxPassword):
		return fmt.Errorf("%w: again is a password of %d to %d characters, beside a ufrag", ErrMessage, minPassword, maxPassword)
	case !plain(m.Ufrag) || !plain(m.Password) || !plain(m.Again):
		return fmt.Errorf("%w: a ufrag and a password have letters, digits, + and / only", ErrMessage)
	case len(m.Candidates) > MaxCandidates:
		return fmt.Errorf("%w: %d candidates; at most %d", ErrMessage, len(m.Candidates), MaxCandidates)
	}
	return nil
}

func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '/'
	})
}

// Signal carries messages between two players that have no path yet, such as through a rendezvous. Messages come in order. It should keep what it carries
// secret: who reads it can pretend to be one of the players to the other, though not to their game, whose packets are sealed.
type Signal interface {
	// Send sends a message. An error means that no more can be sent; players with a path don't need it.
	Send(ctx context.Context, m Message) error
	// Receive waits for the other player's next message.
	Receive(ctx context.Context) (Message, error)
}

var (
	_ encoding.TextMarshaler   = Candidate{}
	_ encoding.TextUnmarshaler = (*Candidate)(nil)
)
