package netcode

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/bunchnet/bunchnet/history/replay"
)

// Reason is why a client's slot became free.
type Reason uint8

// The reasons.
const (
	TimedOut Reason = iota + 1
	ClientLeft
	Kicked
)

// String is the reason in words.
func (r Reason) String() string {
	switch r {
	case TimedOut:
		return "timed out"
	case ClientLeft:
		return "the client left"
	case Kicked:
		return "kicked"
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// ServerHandler is what a Server tells. Buffers are valid until the call returns.
type ServerHandler interface {
	Send(to netip.AddrPort, p []byte)
	Connected(slot int, info ClientInfo)
	Payload(slot int, p []byte)
	Disconnected(slot int, reason Reason)
}

// ClientInfo is who has a slot.
type ClientInfo struct {
	ID       uint64
	Addr     netip.AddrPort
	UserData *[UserDataBytes]byte // valid until Connected returns
}

// ServerConfig is the settings of a Server.
type ServerConfig struct {
	ProtocolID uint64
	PrivateKey Key
	// Addrs is where the server says it is: tokens must name one of them. An unspecified address, 0.0.0.0 or
	// ::, fits every address with its port; where servers share a key and a port name the public
	// address instead, or a token for one is good at the others.
	Addrs []netip.AddrPort
	// Slots is the clients at most. Default 64, at most MaxSlots; the reference has 256 at most, the
	// wire doesn't mind.
	Slots   int
	Handler ServerHandler
	// UnixAtZero is the seconds since 1970 when now is 0, for the expiry of tokens.
	UnixAtZero uint64
	// Rand is the source of the challenge key and the global sequence. Default crypto/rand.
	Rand io.Reader
}

// ServerCounters is what became of the packets a Server got; every refusal has its own.
type ServerCounters struct {
	Requests, Challenges, Responses, Connected, Payloads, KeepAlives, Disconnects uint64

	BadSize, BadType, BadSequence, BadVersion, BadProtocol, Expired, BadToken, OtherServer uint64
	AddrConnected, IDConnected, TokenUsed, Full, NoMapping, BadChallenge, NotBound         uint64
	Replayed, NotSealed, NoRoom                                                            uint64
}

// MaxSlots is the most clients of a Server.
const MaxSlots = 16384

const (
	sendInterval   = time.Second / 10
	disconnectSent = 10
)

// Server has slots for clients with tokens. Not safe for concurrent use.
type Server struct {
	Counters ServerCounters

	cfg          ServerConfig
	challengeKey cipher.AEAD
	challengeSeq uint64
	globalSeq    uint64
	slots        []*clientSlot // nil when free
	byAddr       map[netip.AddrPort]int
	byID         map[uint64]int
	mappings     map[netip.AddrPort]*mapping
	order        []netip.AddrPort // of mappings, oldest first
	used         map[[macBytes]byte]*usedToken
	usedOrder    [][macBytes]byte
	buf          [Headroom + 8 + challengeBytes + Tailroom]byte
}

// mapping is the keys of an address that showed a token and may yet show that it is there.
type mapping struct {
	send, recv *sealer
	timeout    time.Duration // negative never
	until      time.Duration
	clientID   uint64
	mac        [macBytes]byte
}

type usedToken struct {
	addr      netip.AddrPort
	connected bool // its client had a slot: the token is spent
}

type clientSlot struct {
	addr      netip.AddrPort
	id        uint64
	m         *mapping
	seq       uint64
	window    replay.Window
	heard     time.Duration
	sent      time.Duration
	confirmed bool
}

// ErrNoClient: the slot is free.
var ErrNoClient = errors.New("netcode: no client in that slot")

// NewServer returns a server without clients.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Slots == 0 {
		cfg.Slots = 64
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	if cfg.Slots < 1 || cfg.Slots > MaxSlots || cfg.Handler == nil || len(cfg.Addrs) == 0 {
		return nil, errors.New("netcode: ServerConfig needs 1 to 16384 Slots, a Handler and Addrs")
	}
	s := &Server{cfg: cfg, slots: make([]*clientSlot, cfg.Slots), byAddr: map[netip.AddrPort]int{}, byID: map[uint64]int{},
		mappings: map[netip.AddrPort]*mapping{}, used: map[[macBytes]byte]*usedToken{}}
	var seed [KeyBytes + 8]byte
	if _, err := io.ReadFull(cfg.Rand, seed[:]); err != nil {
		return nil, err
	}
	var err error
	if s.challengeKey, err = chacha20poly1305.New(seed[:KeyBytes]); err != nil {
		return nil, err
	}
	// Far from the sequences of connections, and different on every start: the global packets share
	// their keys.
	s.globalSeq = 1<<63 | binary.LittleEndian.Uint64(seed[KeyBytes:])>>2
	return s, nil
}

// Clients is the number of slots taken.
func (s *Server) Clients() int { return len(s.byAddr) }

// Receive takes a datagram; p is opened in place.
func (s *Server) Receive(now time.Duration, from netip.AddrPort, p []byte) {
	if len(p) > 0 && p[0] == byte(typeRequest) {
		s.request(now, from, p)
		return
	}
	t, seq, body, err := header(p)
	switch {
	case errors.Is(err, ErrSize):
		s.Counters.BadSize++
		return
	case errors.Is(err, ErrSequence):
		s.Counters.BadSequence++
		return
	case err != nil || t < typeResponse:
		s.Counters.BadType++
		return
	}
	if slot, ok := s.byAddr[from]; ok {
		s.session(now, slot, t, p[0], seq, body)
		return
	}
	if t != typeResponse {
		s.Counters.NoMapping++
		return
	}
	s.response(now, from, p[0], seq, body)
}

func (s *Server) request(now time.Duration, from netip.AddrPort, p []byte) {
	s.Counters.Requests++
	if len(p) != requestBytes {
		s.Counters.BadSize++
		return
	}
	b := p[1:]
	expire := binary.LittleEndian.Uint64(b[versionBytes+8:])
	switch {
	case string(b[:versionBytes]) != version:
		s.Counters.BadVersion++
		return
	case binary.LittleEndian.Uint64(b[versionBytes:]) != s.cfg.ProtocolID:
		s.Counters.BadProtocol++
		return
	case expire <= s.cfg.UnixAtZero+uint64(now/time.Second):
		s.Counters.Expired++
		return
	}
	sealed := b[versionBytes+16+tokenNonceBytes:]
	mac := [macBytes]byte(sealed[privateBytes-macBytes:])
	plain, err := openPrivate(sealed, s.cfg.ProtocolID, expire, b[versionBytes+16:versionBytes+16+tokenNonceBytes], &s.cfg.PrivateKey)
	var priv private
	if err == nil {
		err = priv.read(plain)
	}
	if err != nil || priv.timeout == 0 {
		s.Counters.BadToken++
		return
	}
	if !s.named(priv.servers) {
		s.Counters.OtherServer++
		return
	}
	s.admit(now, from, &priv, mac)
}

func (s *Server) named(servers []netip.AddrPort) bool {
	for _, a := range servers {
		for _, mine := range s.cfg.Addrs {
			if a == mine || mine.Addr().IsUnspecified() && a.Port() == mine.Port() {
				return true
			}
		}
	}
	return false
}

// admit answers an authentic request with a challenge.
func (s *Server) admit(now time.Duration, from netip.AddrPort, priv *private, mac [macBytes]byte) {
	if _, ok := s.byAddr[from]; ok {
		s.Counters.AddrConnected++
		return
	}
	if _, ok := s.byID[priv.clientID]; ok {
		s.Counters.IDConnected++
		return
	}
	if u := s.used[mac]; u != nil && (u.addr != from || u.connected) {
		s.Counters.TokenUsed++
		return
	}
	m := &mapping{send: newSealer(&priv.s2c, s.cfg.ProtocolID), recv: newSealer(&priv.c2s, s.cfg.ProtocolID),
		timeout: time.Duration(priv.timeout) * time.Second, clientID: priv.clientID, mac: mac}
	if s.Clients() == len(s.slots) {
		s.Counters.Full++
		s.sendGlobal(from, m, typeDenied, 0)
		return
	}
	if !s.remember(now, from, m) {
		s.Counters.NoRoom++
		return
	}
	s.use(mac, from)
	ch := challenge{clientID: priv.clientID, userData: priv.userData, bound: bind(from, &mac)}
	b := s.buf[Headroom:]
	binary.LittleEndian.PutUint64(b, s.challengeSeq)
	ch.seal(s.challengeKey, s.challengeSeq, b[8:8+challengeBytes])
	s.challengeSeq++
	s.Counters.Challenges++
	s.sendGlobal(from, m, typeChallenge, 8+challengeBytes)
}

// bind is what ties a challenge to an address and a token.
func bind(addr netip.AddrPort, mac *[macBytes]byte) (b [challengePad]byte) {
	var in [16 + 2 + macBytes]byte
	ip := addr.Addr().As16()
	copy(in[:], ip[:])
	binary.LittleEndian.PutUint16(in[16:], addr.Port())
	copy(in[18:], mac[:])
	sum := sha256.Sum256(in[:])
	copy(b[:], sum[:])
	return b
}

// remember keeps the keys of an address for the time a client has to answer, 4 addresses a slot at
// most.
func (s *Server) remember(now time.Duration, from netip.AddrPort, m *mapping) bool {
	for len(s.order) > 0 {
		old := s.mappings[s.order[0]]
		if old != nil && now < old.until {
			break
		}
		if old != nil {
			delete(s.mappings, s.order[0])
		}
		s.order = s.order[1:]
	}
	life := m.timeout
	if life < 0 {
		life = 10 * time.Second
	}
	m.until = now + life
	if old := s.mappings[from]; old != nil && old.mac == m.mac {
		m.until = old.until // repeating a request doesn't prolong it
		s.mappings[from] = m
		return true
	}
	if len(s.order) >= 4*len(s.slots) {
		return false
	}
	s.mappings[from] = m
	s.order = append(s.order, from)
	return true
}

// use notes a token's address; the oldest of 8 a slot is forgotten.
func (s *Server) use(mac [macBytes]byte, from netip.AddrPort) {
	if s.used[mac] != nil {
		return
	}
	if len(s.usedOrder) >= 8*len(s.slots) {
		delete(s.used, s.usedOrder[0])
		s.usedOrder = s.usedOrder[1:]
	}
	s.used[mac] = &usedToken{addr: from}
	s.usedOrder = append(s.usedOrder, mac)
}

func (s *Server) sendGlobal(to netip.AddrPort, m *mapping, t packetType, n int) {
	s.cfg.Handler.Send(to, m.send.seal(t, s.globalSeq, s.buf[:Headroom+n]))
	s.globalSeq++
}

func (s *Server) response(now time.Duration, from netip.AddrPort, prefix byte, seq uint64, body []byte) {
	m := s.mappings[from]
	if m == nil || now >= m.until {
		s.Counters.NoMapping++
		return
	}
	plain, err := m.recv.open(prefix, seq, body)
	if err != nil {
		s.Counters.NotSealed++
		return
	}
	s.Counters.Responses++
	var ch challenge
	if ch.open(s.challengeKey, binary.LittleEndian.Uint64(plain), plain[8:]) != nil {
		s.Counters.BadChallenge++
		return
	}
	if ch.bound != bind(from, &m.mac) || ch.clientID != m.clientID {
		s.Counters.NotBound++
		return
	}
	if _, ok := s.byID[ch.clientID]; ok {
		s.Counters.IDConnected++
		return
	}
	s.connect(now, from, m, &ch)
}

func (s *Server) connect(now time.Duration, from netip.AddrPort, m *mapping, ch *challenge) {
	for slot, c := range s.slots {
		if c != nil {
			continue
		}
		delete(s.mappings, from)
		s.slots[slot] = &clientSlot{addr: from, id: ch.clientID, m: m, heard: now, sent: now - sendInterval}
		s.byAddr[from], s.byID[ch.clientID] = slot, slot
		if u := s.used[m.mac]; u != nil {
			u.connected = true
		}
		s.Counters.Connected++
		s.keepAlive(now, slot)
		s.cfg.Handler.Connected(slot, ClientInfo{ch.clientID, from, &ch.userData})
		return
	}
	s.Counters.Full++
	s.sendGlobal(from, m, typeDenied, 0)
}

// session takes a packet of a client with a slot.
func (s *Server) session(now time.Duration, slot int, t packetType, prefix byte, seq uint64, body []byte) {
	c := s.slots[slot]
	if t == typeResponse { // its answer was lost
		if _, err := c.m.recv.open(prefix, seq, body); err == nil && !c.confirmed {
			s.keepAlive(now, slot)
		}
		return
	}
	if !c.window.Check(seq) {
		s.Counters.Replayed++
		return
	}
	plain, err := c.m.recv.open(prefix, seq, body)
	if err != nil {
		s.Counters.NotSealed++
		return
	}
	c.window.Accept(seq)
	c.heard = now
	switch t {
	case typeKeepAlive:
		s.Counters.KeepAlives++
		c.confirmed = true
	case typePayload:
		s.Counters.Payloads++
		c.confirmed = true
		s.cfg.Handler.Payload(slot, plain)
	case typeDisconnect:
		s.Counters.Disconnects++
		s.free(slot, ClientLeft)
	}
}

func (s *Server) free(slot int, reason Reason) {
	c := s.slots[slot]
	s.slots[slot] = nil
	delete(s.byAddr, c.addr)
	delete(s.byID, c.id)
	s.cfg.Handler.Disconnected(slot, reason)
}

func (s *Server) keepAlive(now time.Duration, slot int) {
	b := s.buf[Headroom:]
	binary.LittleEndian.PutUint32(b, uint32(slot))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(s.slots)))
	s.send(now, slot, typeKeepAlive, s.buf[:Headroom+8])
}

func (s *Server) send(now time.Duration, slot int, t packetType, buf []byte) {
	c := s.slots[slot]
	s.cfg.Handler.Send(c.addr, c.m.send.seal(t, c.seq, buf))
	c.seq++
	c.sent = now
}

// SendPayload seals p[Headroom:] where it is, with Tailroom of capacity behind, and sends it.
func (s *Server) SendPayload(now time.Duration, slot int, p []byte) error {
	switch {
	case slot < 0 || slot >= len(s.slots) || s.slots[slot] == nil:
		return ErrNoClient
	case len(p) <= Headroom || len(p) > Headroom+MaxPayload || cap(p) < len(p)+Tailroom:
		return ErrSize
	}
	if !s.slots[slot].confirmed {
		s.keepAlive(now, slot)
	}
	s.send(now, slot, typePayload, p)
	return nil
}

// Disconnect frees a slot and tells its client ten times.
func (s *Server) Disconnect(now time.Duration, slot int) {
	if slot < 0 || slot >= len(s.slots) || s.slots[slot] == nil {
		return
	}
	for range disconnectSent {
		s.send(now, slot, typeDisconnect, s.buf[:Headroom])
	}
	s.free(slot, Kicked)
}

// Tick sends keep-alives and frees the slots of silent clients.
func (s *Server) Tick(now time.Duration) {
	for slot, c := range s.slots {
		switch {
		case c == nil:
		case c.m.timeout >= 0 && now-c.heard >= c.m.timeout:
			s.free(slot, TimedOut)
		case now-c.sent >= sendInterval:
			s.keepAlive(now, slot)
		}
	}
}

// NextDeadline is when Tick has something to do.
func (s *Server) NextDeadline() (at time.Duration, ok bool) {
	for _, c := range s.slots {
		if c == nil {
			continue
		}
		d := c.sent + sendInterval
		if c.m.timeout >= 0 {
			d = min(d, c.heard+c.m.timeout)
		}
		if !ok || d < at {
			at, ok = d, true
		}
	}
	return at, ok
}
