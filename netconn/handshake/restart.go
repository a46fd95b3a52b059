package handshake

import (
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// limiter bounds answers to addresses that proved nothing.
type limiter struct {
	since time.Duration // begin of the period
	n     int           // answers in it
}

func (l *limiter) room(now, period time.Duration, limit int) bool {
	if now-l.since >= period {
		*l = limiter{since: now}
	}
	return l.n < limit
}

const (
	// creditLife is how long the bytes from an address count: a peer with nothing to say sends one small keep-alive or more in
	// it, every 200 ms by Unreal's default.
	creditLife = 5 * time.Second
	// credits bounds the addresses whose bytes are counted; the one that sent first makes room.
	credits = 64
)

// credit is what an address without a connection has sent, as long as that is too little for an answer.
type credit struct {
	addr  netip.AddrPort
	since time.Duration
	bytes int
}

// creditTable is a ring of them. The zero value is empty.
type creditTable struct {
	ring [credits]credit
	next int
}

// add counts the bytes of a packet and returns the address's entry.
func (t *creditTable) add(now time.Duration, from netip.AddrPort, n int) *credit {
	for i := range t.ring {
		c := &t.ring[i]
		if c.addr != from {
			continue
		}
		if now-c.since >= creditLife {
			c.since, c.bytes = now, 0
		}
		c.bytes = min(c.bytes+n, maxPacket)
		return c
	}
	c := &t.ring[t.next]
	t.next = (t.next + 1) % credits
	*c = credit{from, now, min(n, maxPacket)}
	return c
}

// UnknownGame handles a game packet from an address without a connection: it asks the client to restart its handshake. The request is no
// longer than the bytes that came from the address in the last seconds, because keep-alives may be smaller than a request.
func (s *Server) UnknownGame(now time.Duration, from netip.AddrPort, p []byte) {
	pr := &s.cfg.Protocol
	var r bitio.Reader
	r.Reset(p, len(p)*8)
	session, client, handshake, err := pr.readPrefix(&r)
	switch {
	case err != nil:
		s.Counters.Malformed.count(err)
	case handshake:
		s.Counters.WrongType++
	case pr.hasIDs() && session != s.cfg.SessionID:
		s.Counters.WrongSession++
	case !s.restarts.room(now, restartPeriod, s.cfg.MaxRestarts):
		s.Counters.RestartsLimited++
	default:
		s.askRestart(now, from, client, len(p))
	}
}

func (s *Server) askRestart(now time.Duration, to netip.AddrPort, client uint8, n int) {
	padding := minPadding
	if s.cfg.Protocol.Version == Original {
		padding = 0
	}
	s.answer = Packet{Type: RestartHandshake, Restart: true, ClientID: client}
	p, ok := s.packet(s.cfg.Protocol.Version, padding)
	if ok && len(p) > n {
		c := s.unknown.add(now, to, n)
		if n = c.bytes; n >= len(p) {
			c.bytes = 0 // spent
		}
	}
	if ok && s.sendWithin(to, p, n) {
		s.restarts.n++
		s.Counters.RestartRequests++
	}
}

// move takes the proof that the client of a connection has a new address. The Ack holds the first
// cookie, as Unreal's does.
func (s *Server) move(from netip.AddrPort, pk *Packet, limit int) {
	if !s.cfg.Handler.Restarted(from, pk.FirstCookie, pk.Timestamp) {
		s.Counters.UnknownRestart++
		return
	}
	s.Counters.Restarts++
	s.ack(from, pk, pk.FirstCookie, limit)
}

// Restart begins the exchange again without a request from the server. It is for a client that receives nothing any more, or knows that its
// address has changed. The server can't always ask for it: it sends no request that is longer than the game packets it received. If the server
// has the connection at this address, it says so and nothing changes.
func (c *Client) Restart(now time.Duration) {
	if c.state == Done {
		c.state, c.restart, c.began = SendingInitial, true, now
		c.send(now)
	}
}

const (
	restartSilence  = 10 * time.Second        // since our own last handshake packet
	restartInterval = 1100 * time.Millisecond // between two restart requests
	restartQuiet    = time.Second             // since the last game packet
)

// receiveRestart begins the exchange again when it is plausible that the server
// lost us: we have a cookie, our last handshake packet is over 10 s old, and either no request came in
// the last 1.1 s or no game packet for a second. A client that is heard from two addresses at
// once gets requests and game packets all the time, and must not follow them.
func (c *Client) receiveRestart(now time.Duration, pk *Packet) {
	recent := c.asked && now-c.lastAsk < restartInterval
	plausible := c.state == Done && now-c.lastSent > restartSilence && (!recent || now-c.lastGame >= restartQuiet)
	c.lastAsk, c.asked = now, true
	switch {
	case c.hasSession(pk) && pk.SessionID != c.result.SessionID:
		c.Counters.WrongSession++
	case !plausible:
		c.Counters.RestartUnlikely++
	default:
		c.Counters.RestartRequests++
		c.Restart(now)
	}
}
