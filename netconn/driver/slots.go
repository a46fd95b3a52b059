package driver

import (
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/slots"
)

// firstSequence is where both packet sequences begin on links that keep connections apart by
// themselves.
const firstSequence = 1

// serverMachine is a handshake's server that keeps clients in slots.
type serverMachine interface {
	Receive(at time.Duration, from netip.AddrPort, p []byte)
	Tick(at time.Duration)
	SendPayload(at time.Duration, slot int, p []byte) error
	Disconnect(at time.Duration, slot int)
}

// slotServer is the part of a server's link with slots that doesn't depend on the types of its handshake: the connections in
// the slots, and most of the callbacks.
type slotServer[M serverMachine] struct {
	d     *Driver
	m     M
	conns []*Conn // by slot
	at    time.Duration
	parts bool // a connection has ended, and has its slot still
}

func (s *slotServer[M]) receive(at time.Duration, from netip.AddrPort, p []byte) {
	s.at = at
	s.m.Receive(at, from, p)
}

// Release is called by the handshake's machine for a client that begins to connect, perhaps one that has left and is back at once.
func (s *slotServer[M]) Release(slot int) {
	switch {
	case !s.parts:
	case slot == slots.Any:
		s.part(s.at, func(c *Conn) bool { return c.parted })
	case s.conns[slot] != nil && s.conns[slot].parted:
		s.free(s.at, slot)
	}
}

// free has a slot free, and so tells its client.
func (s *slotServer[M]) free(at time.Duration, slot int) {
	s.conns[slot] = nil
	s.m.Disconnect(at, slot)
}

// tick frees the slots of connections that have ended, and runs the handshake's timeouts.
func (s *slotServer[M]) tick(at time.Duration) {
	s.at = at
	if s.parts || s.d.parted > 0 {
		s.part(at, func(c *Conn) bool { return c.parts(at) })
	}
	s.m.Tick(at)
}

// part frees the slots of those connections that have ended of which may says so, and so tells their clients.
func (s *slotServer[M]) part(at time.Duration, may func(*Conn) bool) {
	s.parts = false
	for slot, c := range s.conns {
		if c != nil && may(c) {
			s.free(at, slot)
		} else if c != nil && c.parted {
			s.parts = true
		}
	}
}

// parting is how many connections have ended, and keep the link's goodbye back. Clients that are refused after Shutdown don't count.
func (s *slotServer[M]) parting() (n int) {
	for _, c := range s.conns {
		if c != nil && c.Closed() && (c.leaves || !c.turnedAway()) {
			n++
		}
	}
	return n
}

// goodbyeAfter is how long after a connection's end the link's own goodbye leaves. Earlier it could overtake the connection's last words, and whoever gets it reads
// nothing more.
const goodbyeAfter = 250 * time.Millisecond

// parts reports whether the link's own goodbye may leave.
func (c *Conn) parts(at time.Duration) bool {
	switch {
	case !c.Closed():
		return false
	case !c.parted:
		c.parted, c.partedAt = true, at
	}
	return at-c.partedAt >= goodbyeAfter || c.driver.ended
}

// join makes the connection of a client that has got a slot. The caller starts it. It returns nil when the settings are impossible, or when the game
// closed the driver in the callback about the connection that this one replaces.
func (s *slotServer[M]) join(slot int, from netip.AddrPort, headroom, tailroom int) *Conn {
	if s.d.ended {
		return nil
	}
	c, err := s.d.newConn(s.at, from, firstSequence, firstSequence, nil, headroom, tailroom, func(_ *Conn, p []byte) {
		if s.m.SendPayload(s.at, slot, p) != nil {
			s.d.Counters.SendErrors++
		}
	})
	if err != nil {
		s.d.err = err
		return nil
	}
	s.conns[slot] = c
	return c
}

// leave ends the connection of a client that has no slot any more, as another one has its address if it is displaced.
func (s *slotServer[M]) leave(slot int, why string, displaced bool) {
	c := s.conns[slot]
	s.conns[slot] = nil
	if c != nil {
		c.displaced = displaced
		c.linkEnded(s.at, why)
	}
}

// Send is a callback of the handshake's machine.
func (s *slotServer[M]) Send(to netip.AddrPort, p []byte) { s.d.write(to, p) }

// Payload is a callback of the handshake's machine.
func (s *slotServer[M]) Payload(slot int, p []byte) {
	if c := s.conns[slot]; c != nil {
		c.datagrams++
	}
	s.d.receivedPacket(s.conns[slot], s.at, p)
}

// clientMachine is a handshake's client.
type clientMachine interface {
	Receive(at time.Duration, from netip.AddrPort, p []byte)
	Tick(at time.Duration)
	SendPayload(at time.Duration, p []byte) error
	Disconnect(at time.Duration)
}

// slotClient is slotServer's counterpart on a client.
type slotClient[M clientMachine] struct {
	d      *Driver
	m      M
	server netip.AddrPort // as the machine said last
	conn   *Conn
	at     time.Duration
	failed bool
}

func (c *slotClient[M]) receive(at time.Duration, from netip.AddrPort, p []byte) {
	c.at = at
	c.m.Receive(at, from, p)
}

func (c *slotClient[M]) tick(at time.Duration) {
	c.at = at
	if c.conn != nil && c.conn.parts(at) || c.d.ended {
		c.failed = c.failed || c.d.ended // its own game has ended the dial
		c.m.Disconnect(at)
		c.conn = nil
	}
	c.m.Tick(at)
}

// parting is slotServer's.
func (c *slotClient[M]) parting() int {
	if c.conn != nil && c.conn.Closed() {
		return 1
	}
	return 0
}

// join makes the connection.
func (c *slotClient[M]) join(headroom, tailroom int) {
	conn, err := c.d.newConn(c.at, c.server, firstSequence, firstSequence, nil, headroom, tailroom, func(_ *Conn, p []byte) {
		if c.m.SendPayload(c.at, p) != nil {
			c.d.Counters.SendErrors++
		}
	})
	if err != nil {
		c.d.err = err
		return
	}
	c.conn = conn
	conn.start()
}

// leave ends the connection, or the attempt for the reason of failure.
func (c *slotClient[M]) leave(why string, failure error) {
	switch {
	case c.conn != nil:
		c.conn.linkEnded(c.at, why)
		c.conn = nil
	case !c.failed:
		c.failed = true
		c.d.dialFailed(failure)
	}
}

// Send is a callback of the handshake's machine.
func (c *slotClient[M]) Send(to netip.AddrPort, p []byte) {
	c.server = to
	c.d.write(to, p)
}

// Payload is a callback of the handshake's machine.
func (c *slotClient[M]) Payload(p []byte) {
	c.d.receivedPacket(c.conn, c.at, p)
}

// never is the timeout that links are given: only Config.Timeout ends a silent connection.
const never = -1
