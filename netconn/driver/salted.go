package driver

import (
	"errors"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn"
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

// firstSequence is where both packet sequences begin on links that keep connections apart by
// themselves.
const firstSequence = 1

// saltedServer is the server's side. It is the machine's handler.
type saltedServer struct {
	d     *Driver
	salts *salted.Server
	conns map[int]*Conn // by slot
	at    time.Duration
}

func (l PlainSalted) server(d *Driver) serverLink {
	s := &saltedServer{d: d, conns: map[int]*Conn{}}
	var err error
	s.salts, err = salted.NewServer(salted.ServerConfig{ProtocolID: l.ProtocolID, Slots: l.Slots, Handler: s, Rand: d.cfg.Rand})
	if err != nil {
		d.err = err
	}
	return s
}

func (s *saltedServer) receive(at time.Duration, from netip.AddrPort, p []byte) {
	s.at = at
	s.salts.Receive(at, from, p)
}

// tick frees the slots of connections that have ended.
func (s *saltedServer) tick(at time.Duration) {
	s.at = at
	for slot := range s.salts.Slots() {
		if c := s.conns[slot]; c != nil && c.Closed() {
			delete(s.conns, slot)
			s.salts.Disconnect(at, slot)
		}
	}
	s.salts.Tick(at)
}

func (s *saltedServer) conn(from netip.AddrPort) *Conn {
	if slot, ok := s.salts.SlotOf(from); ok {
		return s.conns[slot]
	}
	return nil
}

func (s *saltedServer) refusals(yield func(string, uint64) bool) { s.salts.Counters.Refusals(yield) }

// Send is the machine's.
func (s *saltedServer) Send(to netip.AddrPort, p []byte) { s.d.write(to, p) }

// Connected is the machine's: a client has a slot.
func (s *saltedServer) Connected(slot int, info salted.ClientInfo) {
	c, err := s.d.newConn(s.at, info.Addr, firstSequence, firstSequence, nil, salted.Headroom, 0, func(c *Conn, p []byte) {
		if s.salts.SendPayload(s.at, slot, p) != nil {
			s.d.Counters.SendErrors++
		}
	})
	if err != nil {
		s.d.err = err
		return
	}
	s.conns[slot] = c
}

// Payload is the machine's.
func (s *saltedServer) Payload(slot int, p []byte) {
	if c := s.conns[slot]; c == nil || c.ReceivedPacket(s.at, p) != nil {
		s.d.Counters.Refused++
	}
}

// Disconnected is the machine's.
func (s *saltedServer) Disconnected(slot int, reason salted.Reason) {
	if c := s.conns[slot]; c != nil {
		delete(s.conns, slot)
		if reason == salted.TimedOut {
			c.LinkTimedOut(s.at, "the client fell silent")
			return
		}
		c.LinkClosed(s.at, reason.String())
	}
}

// saltedClient is the client's side. It is the machine's handler.
type saltedClient struct {
	d      *Driver
	salts  *salted.Client
	to     netip.AddrPort
	conn   *Conn
	at     time.Duration
	failed bool
}

func (l PlainSalted) client(d *Driver) clientLink {
	c := &saltedClient{d: d}
	var err error
	c.salts, err = salted.NewClient(salted.ClientConfig{ProtocolID: l.ProtocolID, Handler: c, Rand: d.cfg.Rand})
	if err != nil {
		d.err = err
	}
	return c
}

func (c *saltedClient) dial(at time.Duration, to netip.AddrPort) {
	c.at, c.to = at, to
	if err := c.salts.Connect(at, to); err != nil {
		c.d.err = err
	}
}

func (c *saltedClient) receive(at time.Duration, from netip.AddrPort, p []byte) {
	c.at = at
	c.salts.Receive(at, from, p)
}

func (c *saltedClient) tick(at time.Duration) {
	c.at = at
	if c.conn != nil && c.conn.Closed() {
		c.salts.Disconnect(at)
		c.conn = nil
	}
	c.salts.Tick(at)
}

func (c *saltedClient) refusals(yield func(string, uint64) bool) { c.salts.Counters.Refusals(yield) }

// Send is the machine's.
func (c *saltedClient) Send(to netip.AddrPort, p []byte) { c.d.write(to, p) }

// Payload is the machine's.
func (c *saltedClient) Payload(p []byte) {
	if c.conn == nil || c.conn.ReceivedPacket(c.at, p) != nil {
		c.d.Counters.Refused++
	}
}

// errRefused is a connection that didn't come about.
var errRefused = errors.New("driver: the server refused the connection or didn't answer")

// StateChanged is the machine's.
func (c *saltedClient) StateChanged(_, to salted.State) {
	switch {
	case to == salted.Connected:
		conn, err := c.d.newConn(c.at, c.to, firstSequence, firstSequence, nil, salted.Headroom, 0, func(_ *Conn, p []byte) {
			if c.salts.SendPayload(c.at, p) != nil {
				c.d.Counters.SendErrors++
			}
		})
		if err != nil {
			c.d.err = err
			return
		}
		c.conn = conn
	case to > salted.Disconnected: // on the way
	case c.conn != nil && to == salted.ConnectionTimedOut:
		c.conn.LinkTimedOut(c.at, "the server fell silent")
		c.conn = nil
	case c.conn != nil:
		c.conn.LinkClosed(c.at, to.String())
		c.conn = nil
	case to <= salted.Disconnected && !c.failed: // the server may part before we know that we were in
		c.failed = true
		c.d.err = errRefused
		c.d.noAnswer(netconn.CloseResult{Code: netconn.TimedOut, Reason: to.String(), Err: errRefused})
	}
}
