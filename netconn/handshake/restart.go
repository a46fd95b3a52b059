package handshake

import (
	"encoding/binary"
	"io"
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
	if now-l.since >= period || now < l.since {
		*l = limiter{since: now}
	}
	return l.n < limit
}

// lots decides which game packets of addresses without a connection are answered with a restart request. A keep-alive may be smaller than
// a request, and a forger has any number of addresses, so nothing is kept about an address: each packet is answered with a probability. An
// address gets on average no more bytes than it sent, and all addresses together never do. When more should be answered than may be,
// every packet has the same smaller share.
type lots struct {
	since         time.Duration // begin of the second
	sent          int           // requests in it
	bytes, before int           // of packets, each counted as a request at most: in this second, and in the one before
	unanswered    int           // the same of packets whose bytes no request has answered, at most maxUnanswered
}

// maxUnanswered is small, so that what came long ago makes no burst.
const maxUnanswered = 8 * maxPacket

// add counts a packet of n bytes.
func (l *lots) add(now time.Duration, n int) {
	if now-l.since >= restartPeriod || now < l.since {
		l.since, l.sent, l.before, l.bytes = now, 0, l.bytes, 0
	}
	l.bytes += n
	l.unanswered = min(l.unanswered+n, maxUnanswered)
}

// most is how many requests may have been sent in this second by now: half of them at once, and the others one after another, so that who sends
// many packets at the second's beginning takes only the half.
func (l *lots) most(now time.Duration, limit int) int {
	return limit - int(float64(limit/2)*(1-(now-l.since).Seconds()))
}

// UnknownGame handles a game packet from an address without a connection: it asks the client to restart its handshake, or not; see lots.
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
	default:
		s.askRestart(now, from, client, len(p))
	}
}

func (s *Server) askRestart(now time.Duration, to netip.AddrPort, client uint8, n int) {
	l, size := &s.restarts, s.restartBytes
	n = min(n, size)
	l.add(now, n)
	if l.sent >= l.most(now, s.cfg.MaxRestarts) {
		s.Counters.RestartsLimited++
		return
	}
	if _, err := io.ReadFull(s.cfg.Rand, s.pad[:4]); err != nil {
		s.Counters.RandomnessFailed++
		return
	}
	of := max(size, l.before/s.cfg.MaxRestarts)
	drawn := int(uint64(binary.LittleEndian.Uint32(s.pad[:])) * uint64(of) >> 32) // one of the numbers below of
	switch {
	case l.unanswered < size || drawn >= n && of == size:
		s.Counters.TooSmall++
		return
	case drawn >= n:
		s.Counters.RestartsLimited++
		return
	}
	if p, ok := s.packet(s.restartRequest(client)); ok {
		s.cfg.Handler.Send(to, p)
		l.sent++
		l.unanswered -= size
		s.Counters.RestartRequests++
	}
}

// restartRequest makes s.answer one, and returns its version and padding.
func (s *Server) restartRequest(client uint8) (version uint8, padding int) {
	s.answer = Packet{Type: RestartHandshake, Restart: true, ClientID: client}
	if s.cfg.Protocol.Version == Original {
		return Original, 0
	}
	return s.cfg.Protocol.Version, minPadding
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
