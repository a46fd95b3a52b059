package driver

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/sealing"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// Netcode is netcode 1.02, the default link. Only clients with a token from the game's back end can connect, and every
// packet is encrypted and authenticated. The zero value takes its key from the environment variable named by KeyEnv, or
// makes one for development that works within this process only.
//
// Config.Timeout at each end bounds how long a connection may be silent. A token's timeout bounds only how long
// connecting may take.
type Netcode struct {
	// ProtocolID distinguishes games and their versions. Both ends and the token must have the same.
	ProtocolID uint64
	// Key is the secret that servers share with the back end. Default: the one in the environment, else one for
	// development. A client with a key and no Token makes its own token for the address it dials, with a random client
	// id: each dial is another client, also for TakeOver and package session. A token of netcode.GenerateConnectToken keeps the id.
	Key netcode.Key
	// Addrs is the server's addresses as tokens name them. Default: the socket's own address. When that is unspecified,
	// as with ":7777", the default is every address with its port; so set the public address if several servers share a
	// key. Also list addresses that clients dial through a proxy or a NAT with another port: for an address that isn't
	// listed the server doesn't answer, and counts other_server. Servers that appear together in a token each need their
	// own FirstSequence: with the same keys and the same packet numbers their packets can be decrypted by combining
	// them.
	Addrs []netip.AddrPort
	// FirstSequence is the first packet number of the server; see netcode.ServerConfig, also for one that is started again. Default 0.
	FirstSequence uint64
	// TakeOver lets a client that connects again, with a fresh token of the same id, replace its former connection. That
	// one ends with ErrReplaced just before the new one has joined; from the same address it ends at once. So a client
	// that crashed or changed networks needn't wait for Config.Timeout. A login that is refused replaces nothing.
	// Package session keeps what the game knows of the player. Default false: the new connection is refused with
	// ErrAlreadyConnected. Whatever it is, a client that starts again at the same address and port, with any id, needs to wait
	// only until its former connection has been silent for 2 s.
	TakeOver bool
	// Admit decides whether a client with a token may join, before it has a connection: see netcode.ServerConfig. One that is refused tries
	// the next server in its token; one that waits is asked about again. It is called on the goroutine that ticks the driver. Each Admit is
	// followed by one call of Config.Closed for the client's connection, sooner or later, unless Close ends the driver. May be nil:
	// all are admitted.
	Admit func(c netcode.ClientInfo) netcode.Admission
	// Slots is the most clients, up to 16384. Default Config.MaxConns.
	Slots int
	// Token is a client's connect token, for one Dial. The servers in it are dialed, whatever Dial's address is; that must be one, with a port, all the same.
	Token netcode.Token
}

// netcodeServer is the server's side. It is the handler of the handshake's machine.
type netcodeServer struct {
	slotServer[*netcode.Server]
	clockDue time.Duration // when Config.Clock is asked next
}

func (l Netcode) server(d *Driver) serverLink {
	s := &netcodeServer{slotServer: slotServer[*netcode.Server]{d: d}}
	if l.Slots == 0 {
		l.Slots = d.cfg.MaxConns
	}
	key, made, err := l.key(true)
	if err != nil {
		d.err = err
		return s
	}
	if made {
		warnOnce(d.cfg.Logger, d.logged, d.LocalAddr().Addr().IsLoopback())
	}
	if l.Addrs == nil {
		l.Addrs = []netip.AddrPort{d.LocalAddr()}
	}
	if s.m, d.err = netcode.NewServer(netcode.ServerConfig{ProtocolID: l.ProtocolID, PrivateKey: key, Addrs: l.Addrs, Slots: l.Slots, Handler: s,
		FirstSequence: l.FirstSequence, TakeOver: l.TakeOver, HoldFormer: l.TakeOver, Admit: l.Admit, Timeout: never, UnixAtZero: uint64(d.epoch.Unix()), Rand: d.cfg.Rand}); d.err == nil {
		n := l.Slots
		if l.TakeOver {
			n *= 2 // a client and its former connection each have a slot
		}
		s.conns = make([]*Conn, n)
	}
	return s
}

// tick gives the machine the time of day each second. It decides when tokens expire, and the times of a game's ticks needn't be of that clock.
func (s *netcodeServer) tick(at time.Duration) {
	if at >= s.clockDue {
		s.clockDue = at + time.Second
		s.m.SetClock(at, uint64(s.d.cfg.Clock().Unix()))
	}
	s.slotServer.tick(at)
}

func (s *netcodeServer) conn(from netip.AddrPort) *Conn {
	if slot, ok := s.m.SlotOf(from); ok {
		s.d.fetched += s.m.Fetch(slot)
		return s.conns[slot]
	}
	return nil
}

// AddrOfPath returns the address of the connection that a client's token has named; see netcode.Token.PathID. ok is false when there is none, and with other
// links than [Netcode]. Call it on the goroutine that ticks the driver.
func (d *Driver) AddrOfPath(id netcode.PathID) (addr netip.AddrPort, ok bool) {
	s, is := d.server.(*netcodeServer)
	if !is || s.m == nil {
		return netip.AddrPort{}, false
	}
	return s.m.AddrOfPath(id)
}

func (s *netcodeServer) refusals(yield func(string, uint64) bool) { s.m.Counters.Refusals(yield) }

// SendUnsealed is a callback of the handshake's machine.
func (s *netcodeServer) SendUnsealed(to netip.AddrPort, p []byte, with sealing.Sealer) {
	s.d.writeUnsealed(to, p, with)
}

// Connected is called by the handshake's machine: a client has got a slot.
func (s *netcodeServer) Connected(slot int, info netcode.ClientInfo) {
	if c := s.join(slot, info.Addr, netcode.Headroom, netcode.Tailroom); c != nil {
		c.clientID, c.userData = info.ID, *info.UserData
		c.settle = func() { s.settle(slot) }
		c.start()
	}
}

// settle ends the former connection of the client in slot. It keeps its own slot until the link's goodbye can't overtake any more why it ends.
func (s *netcodeServer) settle(slot int) {
	former, ok := s.m.Former(slot)
	if !ok || s.conns[former] == nil {
		return
	}
	c := s.conns[former]
	c.replaced(s.at)
	if !c.parted {
		c.parted, c.partedAt, s.parts = true, s.at, true
	}
}

// Disconnected is a callback of the handshake's machine.
func (s *netcodeServer) Disconnected(slot int, reason netcode.Reason) {
	if c := s.conns[slot]; reason == netcode.Replaced && c != nil {
		s.conns[slot] = nil
		c.replaced(s.at)
		return
	}
	s.leave(slot, reason.String(), reason == netcode.AddrTaken)
}

// netcodeClient is the client's side. It is the handler of the handshake's machine.
type netcodeClient struct {
	slotClient[*netcode.Client]
	link    Netcode
	expired bool // the token was expired when it was dialed with, by our clock
}

func (Netcode) maxPacket() int { return netcode.MaxPayload }
func (Netcode) overhead() int  { return netcode.Headroom + netcode.Tailroom }
func (l Netcode) slots() int   { return l.Slots }

func (l Netcode) client(d *Driver) clientLink {
	c := &netcodeClient{slotClient: slotClient[*netcode.Client]{d: d}, link: l}
	c.m, d.err = netcode.NewClient(netcode.ClientConfig{ProtocolID: l.ProtocolID, Handler: c, Timeout: never})
	return c
}

func (c *netcodeClient) dial(at time.Duration, to netip.AddrPort) {
	c.at = at
	token := c.link.Token
	if token == nil {
		if token, c.d.err = c.link.ownToken(c.d, to); c.d.err != nil {
			return
		}
	}
	if !c.d.simulated && !spend(token) {
		c.d.err = netcode.ErrTokenReused
		return
	}
	c.expired = token.Expired(uint64(c.d.cfg.Clock().Unix()))
	if err := c.m.Connect(at, token); errors.Is(err, netcode.ErrProtocol) {
		c.d.err = fmt.Errorf("%w: %w", ErrVersion, err)
	} else if err != nil {
		c.d.err = err
	}
}

func (c *netcodeClient) refusals(yield func(string, uint64) bool) { c.m.Counters.Refusals(yield) }

// StateChanged is a callback of the handshake's machine.
func (c *netcodeClient) StateChanged(_, to netcode.State) {
	switch {
	case to == netcode.Connected:
		c.join(netcode.Headroom, netcode.Tailroom)
	case to == netcode.InvalidToken: // Dial says so
	case to <= netcode.Disconnected:
		c.leave(to.String(), c.failure(to))
	}
}

// failure is the error for an attempt that ended in a state.
func (c *netcodeClient) failure(s netcode.State) error {
	why, told := c.m.Denied() // which says more than the silence of the token's next servers
	switch {
	case told:
		switch why {
		case netcode.Full:
			return denied(ErrFull)
		case netcode.AlreadyConnected:
			return denied(ErrAlreadyConnected)
		case netcode.OtherProtocol:
			return fmt.Errorf("%w: %v", ErrVersion, why)
		default:
			return fmt.Errorf("%w: %v", ErrDenied, why)
		}
	case s == netcode.Disconnected:
		return fmt.Errorf("%w: %v", ErrDenied, s)
	case s == netcode.TokenExpired || c.expired:
		return ErrExpired
	}
	return fmt.Errorf("%w: %v", ErrNoAnswer, s)
}
