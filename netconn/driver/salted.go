package driver

import (
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/salted"
)

// PlainSalted is the challenge/response connection of netconn/salted: slots, and packets that
// only who sees the traffic can forge. Nothing is encrypted and nobody authenticated.
type PlainSalted struct {
	// ProtocolID tells games and their versions apart; both ends must have the same.
	ProtocolID uint64
	// Slots is the number of clients at most. Default 64.
	Slots int
}

// saltedServer is the server's side. It is the machine's handler.
type saltedServer struct {
	slotServer[*salted.Server]
}

func (l PlainSalted) server(d *Driver) serverLink {
	s := &saltedServer{slotServer[*salted.Server]{d: d}}
	if s.m, d.err = salted.NewServer(salted.ServerConfig{ProtocolID: l.ProtocolID, Slots: l.Slots, Handler: s, Rand: d.cfg.Rand}); d.err == nil {
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

// Connected is the machine's: a client has a slot.
func (s *saltedServer) Connected(slot int, info salted.ClientInfo) {
	s.join(slot, info.Addr, salted.Headroom, 0)
}

// Disconnected is the machine's.
func (s *saltedServer) Disconnected(slot int, reason salted.Reason) {
	s.leave(slot, reason == salted.TimedOut, reason.String())
}

// saltedClient is the client's side. It is the machine's handler.
type saltedClient struct {
	slotClient[*salted.Client]
}

func (l PlainSalted) client(d *Driver) clientLink {
	c := &saltedClient{slotClient[*salted.Client]{d: d}}
	c.m, d.err = salted.NewClient(salted.ClientConfig{ProtocolID: l.ProtocolID, Handler: c, Rand: d.cfg.Rand})
	return c
}

func (c *saltedClient) dial(at time.Duration, to netip.AddrPort) {
	c.at = at
	if err := c.m.Connect(at, to); err != nil {
		c.d.err = err
	}
}

func (c *saltedClient) refusals(yield func(string, uint64) bool) { c.m.Counters.Refusals(yield) }

// StateChanged is the machine's.
func (c *saltedClient) StateChanged(_, to salted.State) {
	switch {
	case to == salted.Connected:
		c.join(salted.Headroom, 0)
	case to <= salted.Disconnected:
		c.leave(to == salted.ConnectionTimedOut, to.String())
	}
}
