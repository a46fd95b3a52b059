package driver

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/salted"
)

// PlainSalted is the challenge/response link of netconn/salted. It has slots, and only somebody who sees the traffic can
// forge packets. It encrypts nothing and authenticates nobody.
type PlainSalted struct {
	// ProtocolID distinguishes games and their versions. Both ends must have the same.
	ProtocolID uint64
	// Slots is the most clients, up to 1024. Default Config.MaxConns.
	Slots int
}

// saltedServer is the server's side. It is the handler of the handshake's machine.
type saltedServer struct {
	slotServer[*salted.Server]
}

func (l PlainSalted) server(d *Driver) serverLink {
	s := &saltedServer{slotServer[*salted.Server]{d: d}}
	if l.Slots == 0 {
		l.Slots = d.cfg.MaxConns
	}
	if s.m, d.err = salted.NewServer(salted.ServerConfig{ProtocolID: l.ProtocolID, Slots: l.Slots, MaxPerAddr: d.cfg.MaxPerAddr, Handler: s, Timeout: never, Rand: d.cfg.Rand}); d.err == nil {
		s.conns = make([]*Conn, s.m.Slots())
	}
	return s
}

func (s *saltedServer) conn(from netip.AddrPort) *Conn {
	if slot, ok := s.m.SlotOf(from); ok {
		return s.conns[slot]
	}
	return nil
}

func (s *saltedServer) refusals(yield func(string, uint64) bool) { s.m.Counters.Refusals(yield) }

// Connected is called by the handshake's machine: a client has got a slot.
func (s *saltedServer) Connected(slot int, info salted.ClientInfo) {
	if c := s.join(slot, info.Addr, salted.Headroom, 0); c != nil {
		c.start()
	}
}

// Disconnected is a callback of the handshake's machine.
func (s *saltedServer) Disconnected(slot int, reason salted.Reason) {
	s.leave(slot, reason.String(), reason == salted.Replaced)
}

// saltedClient is the client's side. It is the handler of the handshake's machine.
type saltedClient struct {
	slotClient[*salted.Client]
}

func (PlainSalted) maxPacket() int { return salted.MaxPayload }
func (PlainSalted) overhead() int  { return salted.Overhead }
func (l PlainSalted) slots() int   { return l.Slots }

func (l PlainSalted) client(d *Driver) clientLink {
	c := &saltedClient{slotClient[*salted.Client]{d: d}}
	c.m, d.err = salted.NewClient(salted.ClientConfig{ProtocolID: l.ProtocolID, Handler: c, Timeout: never, ConnectTimeout: connectTimeout(d.cfg.Timeout), Rand: d.cfg.Rand})
	return c
}

func (c *saltedClient) dial(at time.Duration, to netip.AddrPort) {
	c.at = at
	if err := c.m.Connect(at, to); err != nil {
		c.d.err = err
	}
}

func (c *saltedClient) refusals(yield func(string, uint64) bool) { c.m.Counters.Refusals(yield) }

// StateChanged is a callback of the handshake's machine.
func (c *saltedClient) StateChanged(_, to salted.State) {
	switch {
	case to == salted.Connected:
		c.join(salted.Headroom, 0)
	case to <= salted.Disconnected:
		c.leave(to.String(), c.failure(to))
	}
}

// failure is why an attempt ended in a state.
func (c *saltedClient) failure(s salted.State) error {
	switch {
	case s == salted.Denied && c.m.Reason() == salted.Full:
		return denied(ErrFull)
	case s == salted.Denied || s == salted.Disconnected:
		return fmt.Errorf("%w: %v", ErrDenied, c.m.Reason())
	}
	return fmt.Errorf("%w: %v", ErrNoAnswer, s)
}

// connectTimeout is how long each step of connecting may take: the link's default, or less if connections must be quicker.
func connectTimeout(timeout time.Duration) time.Duration {
	if timeout < linkConnectTimeout {
		return max(0, timeout)
	}
	return linkConnectTimeout
}

const linkConnectTimeout = 5 * time.Second
