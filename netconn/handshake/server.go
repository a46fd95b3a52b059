package handshake

import (
	"crypto/hmac"
	"crypto/rand"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
)

// Handler sends a Server's packets and is told of connections. Receive and UnknownGame call its methods.
type Handler interface {
	// Send sends a datagram; p is valid until it returns.
	Send(to netip.AddrPort, p []byte)
	// Accepted is called when a client has proved its address; the connection begins. If the address has a connection already, the client has
	// started again and the old connection ends. Return false to refuse the client.
	Accepted(from netip.AddrPort, a Accept) bool
	// Restarted is called when the connection with that first cookie has moved to the address from. timestamp is that of the Challenge, as in Accept. It may be
	// called several times. Return false if there is no such connection, or if a later Challenge made it or moved it: its client isn't there any more.
	Restarted(from netip.AddrPort, first Cookie, timestamp float64) bool
}

// Accept is the result of a handshake.
type Accept struct {
	Cookie               Cookie
	ServerSeq, ClientSeq uint16 // initial packet sequences
	SessionID, ClientID  uint8
	NetworkVersion       uint32  // the peer's; 0 before version 2
	Timestamp            float64 // of its Challenge, in seconds of the server's
}

// Live describes the connection that an address has.
type Live struct {
	Cookie    Cookie        // of its Accept
	Since     time.Duration // when it was accepted
	Timestamp float64       // of its Accept
}

// ServerConfig configures a Server. Handler is required.
type ServerConfig struct {
	// Protocol is the version of the wire. The zero value is version 0 (Unreal427).
	Protocol Protocol
	// Handler sends packets and is told of connections. Required.
	Handler Handler
	// SessionID counts the server's travels, modulo 4 (version 3 and later).
	SessionID uint8
	// Rand is the randomness of secrets and padding. Default crypto/rand. While it fails, every client is refused.
	Rand io.Reader
	// MaxRestarts is the most restart requests sent in a second, half of them at once. When more packets of unknown addresses come, each of them is answered with the same
	// probability. Default 1024. Negative: none are sent, and clients whose address changes lose their connection.
	MaxRestarts int
	// MaxUpgrades is the most VersionUpgrades sent in 300 s (version 4). Default 512, as Unreal. Negative: none are sent.
	MaxUpgrades int
	// MaxConns is how many connections the server has room for. The cookies of as many are remembered, 4096 at least: if more clients begin at once, the cookies of some are too old when they come back,
	// and these clients begin again after 5 s. At most 1048576.
	MaxConns int
}

func (c ServerConfig) filled() ServerConfig {
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.MaxRestarts == 0 {
		c.MaxRestarts = 1024
	}
	if c.MaxUpgrades == 0 {
		c.MaxUpgrades = 512
	}
	c.SessionID &= 1<<sessionBits - 1
	return c
}

const (
	restartPeriod = time.Second
	upgradePeriod = 300 * time.Second
	ackWindow     = 10 * time.Second // after the accept: Acks are repeated
	maxPacket     = 128              // more than the largest handshake packet: 32+5+467+128+1 bits
)

// Server is the server's side of the handshake. It stores nothing about a client that hasn't proved its address, and afterwards only the used
// cookie. Connections are stored by its Handler. Not safe for concurrent use.
type Server struct {
	Counters ServerCounters

	cfg          ServerConfig
	secrets      secrets
	restarts     lots
	restartBytes int // size of a restart request
	upgrades     limiter
	past         past
	answer       Packet // under construction
	buf          [maxPacket]byte
	pad          [maxPadding]byte
}

// NewServer returns a server, or an error that wraps ErrConfig.
func NewServer(cfg ServerConfig) (*Server, error) {
	if err := cfg.Protocol.Validate(); err != nil {
		return nil, err
	}
	if cfg.Handler == nil {
		return nil, fmt.Errorf("%w: no Handler", ErrConfig)
	}
	if err := setting.Within(ErrConfig, "MaxConns", cfg.MaxConns, 0, 1<<20); err != nil {
		return nil, err
	}
	cfg = cfg.filled()
	s := &Server{cfg: cfg, secrets: secrets{rand: cfg.Rand, input: cookieInput}, past: past{most: max(cfg.MaxConns, minPast)}}
	s.restartBytes = len(s.write(s.restartRequest(0)))
	return s, nil
}

// Receive handles a handshake packet. live is the connection that the address has, or nil. No answer is longer than p.
func (s *Server) Receive(now time.Duration, from netip.AddrPort, p []byte, live *Live) {
	if s.secrets.update(now) != nil {
		s.Counters.RandomnessFailed++
		return
	}
	pk, err := s.cfg.Protocol.Read(p, false)
	if err != nil {
		s.Counters.Malformed.count(err)
		return
	}
	switch {
	case !s.cfg.Protocol.fits(&pk):
		s.Counters.WrongVersion++
		s.upgrade(now, from, &pk, len(p))
	case pk.Type == Initial:
		s.Counters.Initials++
		s.challenge(now, from, &pk, len(p))
	case pk.Type != Response && pk.Type != RestartResponse:
		s.Counters.WrongType++
	case s.cfg.Protocol.hasIDs() && pk.SessionID != s.cfg.SessionID:
		s.Counters.WrongSession++
	case live != nil && hmac.Equal(live.Cookie[:], pk.Cookie[:]):
		s.repeat(now, from, &pk, len(p), live)
	case live != nil && pk.Type == Response && !(pk.Timestamp > live.Timestamp): // of a Challenge before that of the connection
		s.Counters.LateRepeat++
	default:
		s.response(now, from, &pk, len(p))
	}
}

func (s *Server) challenge(now time.Duration, from netip.AddrPort, pk *Packet, limit int) {
	ts := s.secrets.timestamp(now)
	s.answer = Packet{Type: Challenge, SecretID: s.secrets.active == 1, Timestamp: ts, Cookie: s.secrets.cookie(s.secrets.active, ts, from)}
	s.reply(from, pk, limit)
}

// repeat answers a Response of a connection that exists: its Ack was lost.
func (s *Server) repeat(now time.Duration, from netip.AddrPort, pk *Packet, limit int, live *Live) {
	if now-live.Since > ackWindow {
		s.Counters.LateRepeat++
		return
	}
	s.Counters.Repeated++
	s.ack(from, pk, pk.Cookie, limit)
}

// response takes a Response or RestartResponse that may prove its address.
func (s *Server) response(now time.Duration, from netip.AddrPort, pk *Packet, limit int) {
	switch s.secrets.check(now, pk, from) {
	case expired:
		s.Counters.Expired++
	case wrongSecret:
		s.Counters.WrongSecret++
	case forged:
		s.Counters.BadCookie++
	case valid:
		if pk.Type == RestartResponse {
			s.move(from, pk, limit)
		} else {
			s.accept(now, from, pk, limit)
		}
	}
}

func (s *Server) accept(now time.Duration, from netip.AddrPort, pk *Packet, limit int) {
	if s.past.has(pk, s.secrets.timestamp(now)) {
		s.Counters.Replayed++
		return
	}
	server, client := pk.Cookie.Sequences()
	if !s.cfg.Handler.Accepted(from, Accept{pk.Cookie, server, client, s.cfg.SessionID, pk.ClientID, pk.NetworkVersion, pk.Timestamp}) {
		s.Counters.NoRoom++
		return
	}
	s.past.add(pk)
	s.Counters.Accepted++
	s.ack(from, pk, pk.Cookie, limit)
}

func (s *Server) ack(from netip.AddrPort, pk *Packet, c Cookie, limit int) {
	s.answer = Packet{Type: Ack, SecretID: true, Timestamp: -1, Cookie: c}
	s.reply(from, pk, limit)
}

func (s *Server) upgrade(now time.Duration, from netip.AddrPort, pk *Packet, limit int) {
	if s.cfg.Protocol.Version < NetCLUpgradeMessage || pk.CurVersion < SessionClientID {
		return // it has no such message
	}
	if !s.upgrades.room(now, upgradePeriod, s.cfg.MaxUpgrades) {
		s.Counters.UpgradesLimited++
		return
	}
	s.answer = Packet{Type: VersionUpgrade}
	if s.reply(from, pk, limit) {
		s.upgrades.n++
		s.Counters.Upgrades++
	}
}

// reply completes and sends s.answer to a packet. It has the ids, the count and as much
// padding as that had, and the newest version that both speak.
func (s *Server) reply(to netip.AddrPort, pk *Packet, limit int) bool {
	s.answer.ClientID, s.answer.SentCount = pk.ClientID, pk.SentCount
	return s.send(to, min(pk.CurVersion, s.cfg.Protocol.Version), min(pk.PaddingBytes, maxPadding), limit)
}

// send completes and sends s.answer, unless it would be longer than limit bytes.
func (s *Server) send(to netip.AddrPort, version uint8, padding, limit int) bool {
	p, ok := s.packet(version, padding)
	if ok && len(p) > limit {
		s.Counters.TooSmall++
		return false
	}
	if ok {
		s.cfg.Handler.Send(to, p)
	}
	return ok
}

// packet is s.answer, complete; not without randomness.
func (s *Server) packet(version uint8, padding int) (p []byte, ok bool) {
	if _, err := io.ReadFull(s.cfg.Rand, s.pad[:padding]); err != nil {
		s.Counters.RandomnessFailed++
		return nil, false
	}
	return s.write(version, padding), true
}

// write is s.answer, complete, with s.pad.
func (s *Server) write(version uint8, padding int) []byte {
	pr, answer := &s.cfg.Protocol, &s.answer
	answer.SessionID = s.cfg.SessionID
	answer.MinVersion, answer.CurVersion = pr.MinVersion, version
	answer.NetworkVersion, answer.Features = pr.NetworkVersion, pr.RuntimeFeatures
	var w bitio.Writer
	w.Reset(s.buf[:])
	pr.Write(&w, answer, s.pad[:padding])
	return w.Bytes()
}
