package handshake

import (
	"crypto/rand"
	"io"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Handler is what a Server asks for. Its methods are called from within Receive.
type Handler interface {
	// Send sends a datagram; p is valid until it returns.
	Send(to netip.AddrPort, p []byte)
	// Accepted says that a client proved its address; the connection begins. For a
	// client that starts anew from the same address, the old connection ends. False
	// refuses it: there is no room.
	Accepted(from netip.AddrPort, a Accept) bool
	// Restarted says that the connection with that first cookie is now at the address
	// from. False when there is no such connection.
	Restarted(from netip.AddrPort, first Cookie) bool
}

// Accept is what the handshake agreed on.
type Accept struct {
	Cookie               Cookie
	ServerSeq, ClientSeq uint16 // initial packet sequences
	SessionID, ClientID  uint8
	NetworkVersion       uint32
}

// ServerConfig is the settings of a Server; the zero value with a Handler is useful.
type ServerConfig struct {
	Protocol Protocol
	Handler  Handler
	// SessionID counts the server's travels, modulo 4 (version 3 and later).
	SessionID uint8
	// Rand is the source of secrets. Default crypto/rand.
	Rand io.Reader
	// NoRestart leaves game packets from unknown addresses unanswered.
	NoRestart bool
}

// ServerCounters is what became of the packets a Server got.
type ServerCounters struct {
	Initials, Responses, Accepted, Repeated, Restarts, Upgrades uint64
	RestartRequests                                             uint64 // sent
	// Refused, by reason.
	Malformed, WrongType, WrongVersion, WrongSession, BadCookie, NoRoom, UnknownRestart, Limited, TooLate uint64
}

// Server is the server's side. It keeps nothing about a client before it has proved its
// address. Not safe for concurrent use.
type Server struct {
	Counters ServerCounters

	cfg     ServerConfig
	secrets secrets
	answer  Packet // under construction
	buf     [128]byte
	pad     [maxPadding]byte
	limits  limiter
}

// NewServer returns a server.
func NewServer(cfg ServerConfig) *Server {
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	cfg.SessionID &= 1<<sessionBits - 1
	return &Server{cfg: cfg, secrets: secrets{rand: cfg.Rand}}
}

// limiter bounds answers that don't need a proven address.
type limiter struct {
	since             time.Duration // of updates
	restartSince      time.Duration
	restarts, updates int
}

const (
	limitPeriod = 300 * time.Second
	maxUpgrades = 512 // Unreal's
	maxRestarts = 64  // a second
)

func (l *limiter) at(now time.Duration) {
	if now-l.since >= limitPeriod {
		l.since, l.updates = now, 0
	}
	if now-l.restartSince >= time.Second {
		l.restartSince, l.restarts = now, 0
	}
}

// Live is the connection that an address has.
type Live struct {
	Cookie Cookie
	Since  time.Duration // when it was accepted
}

// ackWindow is how long a Response that comes again is answered (Unreal's).
const ackWindow = 10 * time.Second

// Receive takes a handshake packet. known is the connection that the address has, or nil. Nothing it answers is longer than p.
func (s *Server) Receive(now time.Duration, from netip.AddrPort, p []byte, known *Live) {
	if s.secrets.update(now) != nil {
		return // no randomness, no cookies
	}
	s.limits.at(now)
	pk, err := s.cfg.Protocol.Read(p, false)
	if err != nil {
		s.Counters.Malformed++
		return
	}
	if !s.versionFits(&pk) {
		s.Counters.WrongVersion++
		s.upgrade(from, &pk, len(p))
		return
	}
	switch {
	case pk.Type == Initial:
		s.Counters.Initials++
		s.challenge(now, from, &pk, len(p))
	case pk.Type != Response && pk.Type != RestartResponse:
		s.Counters.WrongType++
	case s.cfg.Protocol.hasIDs() && pk.SessionID != s.cfg.SessionID:
		s.Counters.WrongSession++
	case known != nil && known.Cookie == pk.Cookie && now-known.Since > ackWindow:
		s.Counters.TooLate++
	case known != nil && known.Cookie == pk.Cookie:
		s.Counters.Repeated++
		s.ack(from, &pk, len(p))
	case !s.secrets.valid(now, &pk, from):
		s.Counters.BadCookie++
	default:
		s.Counters.Responses++
		s.accept(from, &pk, len(p))
	}
}

// versionFits is Unreal's rule: the client's minimum is a version that we support.
func (s *Server) versionFits(pk *Packet) bool {
	pr := &s.cfg.Protocol
	if pr.Version == 0 {
		return true
	}
	return pk.MinVersion <= pk.CurVersion && pk.MinVersion <= pr.Version && pk.MinVersion >= pr.MinVersion
}

func (s *Server) challenge(now time.Duration, from netip.AddrPort, pk *Packet, limit int) {
	ts := timestamp(now)
	s.answer = Packet{Type: Challenge, Restart: pk.Restart, SessionID: s.cfg.SessionID, ClientID: pk.ClientID, SentCount: pk.SentCount,
		SecretID: s.secrets.active == 1, Timestamp: ts, Cookie: s.secrets.cookie(s.secrets.active, ts, from)}
	s.send(from, pk.PaddingBytes, limit)
}

func (s *Server) ack(from netip.AddrPort, pk *Packet, limit int) {
	s.answer = Packet{Type: Ack, Restart: pk.Restart, SessionID: s.cfg.SessionID, ClientID: pk.ClientID, SentCount: pk.SentCount,
		SecretID: true, Timestamp: -1, Cookie: pk.Cookie} // the bit is 1 whatever the secret
	s.send(from, pk.PaddingBytes, limit)
}

func (s *Server) accept(from netip.AddrPort, pk *Packet, limit int) {
	if pk.Type == RestartResponse {
		if !s.cfg.Handler.Restarted(from, pk.FirstCookie) {
			s.Counters.UnknownRestart++
			return
		}
		s.Counters.Restarts++
		s.ack(from, pk, limit)
		return
	}
	server, client := pk.Cookie.Sequences()
	if !s.cfg.Handler.Accepted(from, Accept{pk.Cookie, server, client, s.cfg.SessionID, pk.ClientID, pk.NetworkVersion}) {
		s.Counters.NoRoom++
		return
	}
	s.Counters.Accepted++
	s.ack(from, pk, limit)
}

func (s *Server) upgrade(from netip.AddrPort, pk *Packet, limit int) {
	if s.cfg.Protocol.Version < 4 || s.limits.updates >= maxUpgrades {
		return
	}
	s.limits.updates++
	s.answer = Packet{Type: VersionUpgrade, SessionID: s.cfg.SessionID, ClientID: pk.ClientID}
	if s.send(from, pk.PaddingBytes, limit) {
		s.Counters.Upgrades++
	}
}

// UnknownGame takes a game packet from an address without a connection, and asks the client
// to restart its handshake.
func (s *Server) UnknownGame(now time.Duration, from netip.AddrPort, p []byte) {
	if s.cfg.NoRestart {
		return
	}
	s.limits.at(now)
	var r bitio.Reader
	r.Reset(p, len(p)*8)
	_, client, handshake, err := s.cfg.Protocol.readPrefix(&r)
	switch {
	case err != nil || handshake:
		s.Counters.Malformed++
		return
	case s.limits.restarts >= maxRestarts:
		s.Counters.Limited++
		return
	}
	s.answer = Packet{Type: RestartHandshake, Restart: true, SessionID: s.cfg.SessionID, ClientID: client}
	if s.send(from, minPadding, len(p)) {
		s.limits.restarts++
		s.Counters.RestartRequests++
	}
}

// send completes and sends s.answer, with as much padding as the packet it answers had,
// unless it would be longer than limit bytes.
func (s *Server) send(to netip.AddrPort, padding, limit int) bool {
	pr, answer := &s.cfg.Protocol, &s.answer
	answer.MinVersion, answer.CurVersion = pr.MinVersion, pr.Version
	answer.NetworkVersion, answer.Features = pr.NetworkVersion, pr.RuntimeFeatures
	n := min(padding, maxPadding)
	if _, err := io.ReadFull(s.cfg.Rand, s.pad[:n]); err != nil {
		return false
	}
	var w bitio.Writer
	w.Reset(s.buf[:])
	pr.Write(&w, answer, s.pad[:n])
	if w.Err() != nil || len(w.Bytes()) > limit {
		s.Counters.Limited++
		return false
	}
	s.cfg.Handler.Send(to, w.Bytes())
	return true
}
