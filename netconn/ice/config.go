package ice

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/pion/stun/v4"
)

// Server is a STUN or TURN server. A STUN server tells a player its address outside of its router. A TURN server relays when nothing else works.
type Server struct {
	// URL is like "stun:stun.example.com:3478", "turn:relay.example.com:3478?transport=udp" or "turns:relay.example.com:443?transport=tcp". turns is TURN
	// over TLS, which gets through firewalls that only let HTTPS out. Transports are udp, and tcp for turn and turns.
	URL string `json:"url"`
	// Username and Password are for TURN.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

// Config has the settings of both ends. The zero value finds paths without routers between the two; for others Servers are needed.
type Config struct {
	// Servers are STUN and TURN servers, at most 8. Relays are tried in this order, 500 ms apart, until one has given an address; so put UDP before TLS.
	Servers []Server
	// Addr is the local address. Default ":0". A host behind a router that forwards a port gives its port here.
	Addr string
	// TLS is for turns: servers. Default: what the system trusts.
	TLS *tls.Config
	// RelayOnly has all datagrams go by a relay, so that the players don't learn each other's addresses.
	RelayOnly bool
	// Loopback also offers loopback addresses, and accepts them, also of Servers, for tests on one machine.
	Loopback bool
	// ConnectTime is how long to look for a path. Default 20 s.
	ConnectTime time.Duration
	// Redial returns another Signal to the same host, which calls Host.Rejoin at its other end. A Client calls it when no path has answered for 3.5 s, since
	// one of the two is in another network, or when the addresses of this machine have changed; after a failure again 0.5 s later, or ever more seldom, up to
	// 30 s, while a path answers. ctx is that of the call only. Default: there is no other Signal, and the session ends when no path has answered for 30 s. A host ignores it.
	Redial func(ctx context.Context) (Signal, error)
	// SendBuffer bounds the bytes that wait to be sent by a relay, and those that a Client holds until there is a path. At most 512 datagrams wait. When it
	// is full the oldest are dropped. Default 64 KiB.
	SendBuffer int
	// ReceiveBuffer bounds the bytes that wait to be read by the driver, at most 4096 datagrams and 256 of one peer. A peer with more than a few
	// leaves as much room as it takes, and an eighth. Where there is no room the newest are dropped. Default 4 MiB.
	ReceiveBuffer int
	// Logger gets why paths weren't found, why sessions ended and which relays failed; at most one line a second. Default none.
	Logger *slog.Logger
}

// Errors, for errors.Is. Reads of a Client return ErrNoWay and ErrLost, and so does Driver.Err.
var (
	// ErrConfig is returned by Listen and Dial for settings that can't work.
	ErrConfig = errors.New("ice: settings")
	// ErrNoWay: no path to the other player was found. Show it to the player.
	ErrNoWay = errors.New("ice: no way to the other player")
	// ErrLost: all paths to the other player failed. Show it to the player.
	ErrLost = errors.New("ice: the way to the other player is lost")
	// ErrFull is returned by Host.Join when MaxGuests or MaxConnecting is reached.
	ErrFull = errors.New("ice: the game is full")
)

const (
	maxServers  = 8
	inDatagrams = 4096
	inPerPeer   = 256
)

// HostAddr is the address by which connect tokens name a host that is reached by ICE, whatever its path. It is Host.LocalAddr, and what a guest's
// driver dials.
func HostAddr() netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 9) }

func (c Config) filled() Config {
	c.Addr = cmp.Or(c.Addr, ":0")
	c.ConnectTime = cmp.Or(c.ConnectTime, 20*time.Second)
	c.SendBuffer, c.ReceiveBuffer = cmp.Or(c.SendBuffer, 64<<10), cmp.Or(c.ReceiveBuffer, 4<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// check reads the servers' URLs, and returns an error for settings that can't work.
func (c Config) check() (uris []*stun.URI, err error) {
	switch {
	case len(c.Servers) > maxServers:
		return nil, fmt.Errorf("%w: %d Servers; at most %d", ErrConfig, len(c.Servers), maxServers)
	case c.ConnectTime < 0 || c.SendBuffer < 0 || c.ReceiveBuffer < 0:
		return nil, fmt.Errorf("%w: ConnectTime, SendBuffer and ReceiveBuffer must be positive, or 0 for the default", ErrConfig)
	}
	relays := false
	for _, s := range c.Servers {
		u, err := stun.ParseURI(s.URL)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %q: %w", ErrConfig, s.URL, err)
		case u.Scheme == stun.SchemeTypeSTUNS || u.Scheme == stun.SchemeTypeSTUN && u.Proto != stun.ProtoTypeUDP || u.Scheme == stun.SchemeTypeTURNS && u.Proto != stun.ProtoTypeTCP:
			return nil, fmt.Errorf("%w: %q: the kinds are stun, turn over udp or tcp, and turns over tcp", ErrConfig, s.URL)
		case u.Scheme != stun.SchemeTypeSTUN && (s.Username == "" || s.Password == ""):
			return nil, fmt.Errorf("%w: %q needs a Username and a Password", ErrConfig, s.URL)
		}
		relays = relays || u.Scheme != stun.SchemeTypeSTUN
		u.Username, u.Password = s.Username, s.Password
		uris = append(uris, u)
	}
	if c.RelayOnly && !relays {
		return nil, fmt.Errorf("%w: RelayOnly needs a turn or turns server", ErrConfig)
	}
	return uris, nil
}
