package netcode

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/bunchnet/bunchnet/history/replay"
	"github.com/bunchnet/bunchnet/netconn/internal/sealing"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
	"github.com/bunchnet/bunchnet/netconn/internal/slots"
)

// Reason says why a client's slot became free.
type Reason uint8

// The reasons.
const (
	TimedOut Reason = iota + 1
	ClientLeft
	Kicked
	Replaced  // the same client id has connected again; see ServerConfig.TakeOver
	AddrTaken // nothing was heard of the client for 2 s, and another one has connected from its address
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
	case Replaced:
		return "replaced by another connection of the same id"
	case AddrTaken:
		return "another client has connected from its address"
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// ServerHandler has the functions that a Server calls. Buffers are valid until the function returns.
type ServerHandler interface {
	Send(to netip.AddrPort, p []byte)
	Connected(slot int, info ClientInfo)
	Payload(slot int, p []byte)
	// Disconnected is called when a client's connection ends, and frees the slot. When the reason is Replaced or AddrTaken, SendPayload still
	// works for the slot until the function returns.
	Disconnected(slot int, reason Reason)
}

// ClientInfo is who has a slot.
type ClientInfo struct {
	ID       uint64
	Addr     netip.AddrPort
	UserData *[UserDataBytes]byte // valid until Connected returns
}

// Admission is an answer of ServerConfig.Admit.
type Admission uint8

// The answers.
const (
	Admit  Admission = iota // it gets a slot
	Wait                    // not decided; ask again
	Refuse                  // it gets none
)

// ServerConfig configures a Server. Handler, PrivateKey and Addrs are required.
type ServerConfig struct {
	ProtocolID uint64
	PrivateKey Key
	// Addrs is the server's addresses. A token must name one of them. An unspecified address, 0.0.0.0 or ::, stands for every address with its
	// port. When several servers share a key and a port, set their public addresses instead, or a token for one of them is accepted by all.
	// When a token names several servers, all of them use the same packet keys. Give each such server its own FirstSequence: packets of two
	// servers with the same key and number can be decrypted by combining them. So can those of a server before and after it was started again,
	// of a token that both have accepted: give it another FirstSequence each time that it starts, or let tokens expire before.
	Addrs []netip.AddrPort
	// FirstSequence is the number of the first packet to each client, below 1<<62. Default 0, as in the reference. For servers that tokens
	// name together, choose numbers at least 1<<40 apart, such as n<<40 for server n. All clients accept it. It makes packets up to six bytes
	// longer.
	FirstSequence uint64
	// Timeout ends the connection of a client from which nothing was received for that long: 200 ms to 100 years; negative never. Default 0:
	// the timeout of the client's token. While connecting the token's timeout always applies.
	Timeout time.Duration
	// TakeOver lets a client that connects again, with a fresh token of the same client id, replace its former connection, which ends as
	// Replaced. So a client that crashed or changed networks needn't wait for a timeout. Default false, as in the reference: the new
	// connection is denied with AlreadyConnected.
	TakeOver bool
	// HoldFormer keeps the former connection of a TakeOver until the caller disconnects it, because a login of the caller's may still refuse
	// the new one: see Server.Former. A former connection from the same address is replaced at once all the same. While both exist one of
	// them has a slot number of Slots or above, and keeps it. Default false.
	HoldFormer bool
	// Admit is called before a client that has answered its challenge gets a slot, also for a TakeOver. After Wait the client gets no answer,
	// and Admit is called again for its later packets: ten times a second, and at most 20 times a second whatever the client sends. After Refuse
	// the client is denied with Full, and tries the next server in its token. Default nil: all are admitted.
	Admit func(c ClientInfo) Admission
	// Slots is the most clients. Default 64, at most MaxSlots. The reference allows 256; the wire format has no such limit.
	Slots   int
	Handler ServerHandler
	// UnixAtZero is the time of day at now 0, in seconds since 1970, which decides whether tokens have expired.
	UnixAtZero uint64
	// Rand is the source of the challenge key and the global sequence. Default crypto/rand.
	Rand io.Reader
}

// ServerCounters counts the packets that a Server received. Each reason for refusing one has a counter.
type ServerCounters struct {
	Requests, Challenges, Responses, Connected, Payloads, KeepAlives, Disconnects uint64
	Replaced                                                                      uint64 // connections that gave way, as Replaced or AddrTaken

	BadSize, BadType, BadSequence, BadVersion, BadProtocol, Expired, BadToken, OtherServer uint64
	AddrConnected, IDConnected, TokenUsed, Full, NoMapping, BadChallenge, NotBound         uint64
	Replayed, NotSealed, NoRoom                                                            uint64
	NotAdmitted, Waited                                                                    uint64 // Refuse and Wait of Admit, and answers that came sooner than it is asked again

	// Unexpected counts packets of no use in this state, such as a response of a client that has a slot already.
	Unexpected uint64
	// LateDisconnects came from addresses that aren't connected. A client that leaves says so ten times.
	LateDisconnects uint64
}

// MaxSlots is the most clients of a Server.
const MaxSlots = 16384

const (
	sendInterval   = time.Second / 10
	disconnectSent = 10
	// goneAfter is the silence of a client after which another one may have its address: 20 keep-alives.
	goneAfter = 2 * time.Second
)

// Server has slots for clients with tokens. Not safe for concurrent use.
type Server struct {
	Counters ServerCounters

	cfg          ServerConfig
	sender       sealing.Sender // the handler if it seals packets itself, else nil
	keeper       slots.Keeper   // the handler if it keeps slots, else nil
	tokenKey     cipher.AEAD
	challengeKey cipher.AEAD
	challengeSeq uint64
	globalSeq    uint64
	slots        []*clientSlot // nil when free; with HoldFormer a client of i and one that is to take its place have i and Slots+i, in either order
	byAddr       map[netip.AddrPort]int
	byPath       map[PathID]int
	byID         map[uint64]int
	unsettled    map[uint64]int // the slots of those that are to take the place of who has their id in byID
	mappings     mappings
	used         usedTokens
	ad           [privateADBytes]byte
	buf          [Headroom + 8 + challengeBytes + Tailroom]byte
}

type clientSlot struct {
	m         *mapping
	heard     time.Duration // these three are all that a tick looks at
	sent      time.Duration
	timeout   time.Duration // negative never
	seq       uint64
	began     uint64 // the response's sequence: what the client sent before was for another server of its token
	confirmed bool
	addr      netip.AddrPort
	id        uint64
	window    replay.Window
}

// ErrNoClient: the slot is free.
var ErrNoClient = errors.New("netcode: no client in that slot")

// ErrConfig is wrapped by the errors of NewServer and NewClient for settings that can't work.
var ErrConfig = errors.New("netcode: config")

// minTimeout is two keep-alives.
const minTimeout = 2 * sendInterval

func validateTimeout(config string, d time.Duration) error {
	if d <= 0 {
		return nil // the token's, or never
	}
	return setting.Within(ErrConfig, config+".Timeout", d, minTimeout, setting.Longest)
}

// NewServer returns a server without clients. Its error is ErrNoKey, wraps ErrConfig, or comes from Rand.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Slots == 0 {
		cfg.Slots = 64
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	switch {
	case cfg.FirstSequence >= 1<<62:
		return nil, fmt.Errorf("%w: ServerConfig.FirstSequence %#x must be below 1<<62", ErrConfig, cfg.FirstSequence)
	case cfg.Handler == nil || len(cfg.Addrs) == 0:
		return nil, fmt.Errorf("%w: ServerConfig needs a Handler and Addrs", ErrConfig)
	case cfg.PrivateKey.IsZero():
		return nil, ErrNoKey
	}
	if err := setting.First(setting.Within(ErrConfig, "ServerConfig.Slots", cfg.Slots, 1, MaxSlots), validateTimeout("ServerConfig", cfg.Timeout)); err != nil {
		return nil, err
	}
	for _, a := range cfg.Addrs {
		if !a.IsValid() || a.Port() == 0 {
			return nil, fmt.Errorf("%w: ServerConfig.Addrs has %v; an address and a port are needed", ErrConfig, a)
		}
	}
	places := cfg.Slots
	if cfg.HoldFormer {
		places *= 2
	}
	s := &Server{cfg: cfg, slots: make([]*clientSlot, places), byAddr: map[netip.AddrPort]int{}, byPath: map[PathID]int{}, byID: map[uint64]int{}, unsettled: map[uint64]int{},
		mappings: newMappings(max(minMappings, 4*cfg.Slots)), used: newUsedTokens(max(minUsed, 8*cfg.Slots))}
	s.cfg.Addrs = make([]netip.AddrPort, len(cfg.Addrs))
	for i, a := range cfg.Addrs {
		s.cfg.Addrs[i] = unmap(a)
	}
	s.sender, _ = cfg.Handler.(sealing.Sender)
	s.keeper, _ = cfg.Handler.(slots.Keeper)
	var seed [KeyBytes + 8]byte
	if _, err := io.ReadFull(cfg.Rand, seed[:]); err != nil {
		return nil, err
	}
	var err error
	if s.challengeKey, err = chacha20poly1305.New(seed[:KeyBytes]); err != nil {
		return nil, err
	}
	if s.tokenKey, err = chacha20poly1305.NewX(cfg.PrivateKey[:]); err != nil {
		return nil, err
	}
	// Far from the sequences of connections, and different on every start: the global packets share
	// their keys.
	s.globalSeq = 1<<63 | binary.LittleEndian.Uint64(seed[KeyBytes:])>>2
	return s, nil
}

// SetClock sets the time of day at now, in seconds since 1970, which decides whether tokens have expired. Call it when the machine's clock
// was set, or after the machine slept.
func (s *Server) SetClock(now time.Duration, unix uint64) {
	s.cfg.UnixAtZero = unix - uint64(now/time.Second)
}

// Slots is the number of slots.
func (s *Server) Slots() int { return s.cfg.Slots }

// Clients is the number of slots taken.
func (s *Server) Clients() int { return len(s.byID) }

// SlotOf is the slot of the client at an address.
func (s *Server) SlotOf(addr netip.AddrPort) (slot int, ok bool) {
	slot, ok = s.byAddr[addr]
	return slot, ok
}

// Fetch reads a little of what the next packets from and to a slot will need, as netconn.Conn's Fetch does.
func (s *Server) Fetch(slot int) int64 {
	if slot < 0 || slot >= len(s.slots) || s.slots[slot] == nil {
		return 0
	}
	c := s.slots[slot]
	return int64(c.sent) + int64(c.id) + int64(c.m.recv.protocolID) + int64(c.m.send.protocolID)
}

// Receive handles a datagram. It decrypts p in place.
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
	if t == typeResponse {
		if m, plain := s.answered(now, from, p[0], seq, body); m != nil {
			s.response(now, from, m, seq, plain)
			return
		}
	}
	switch slot, ok := s.byAddr[from]; {
	case ok:
		s.session(now, slot, t, p[0], seq, body)
	case t == typeDisconnect:
		s.Counters.LateDisconnects++
	case t == typeResponse && len(s.mappings.byAddr[from]) > 0:
		s.Counters.NotSealed++
	default:
		s.Counters.NoMapping++
	}
}

// session takes a packet of a client with a slot.
func (s *Server) session(now time.Duration, slot int, t packetType, prefix byte, seq uint64, body []byte) {
	c := s.slots[slot]
	if t == typeResponse { // its answer was lost
		switch _, err := c.m.recv.open(prefix, seq, body); {
		case err != nil:
			s.Counters.NotSealed++
		case c.confirmed:
			s.Counters.Unexpected++
		default:
			s.keepAlive(now, slot)
		}
		return
	}
	if seq <= c.began || !c.window.Check(seq) {
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
	s.remove(slot)
	s.cfg.Handler.Disconnected(slot, reason)
}

func (s *Server) remove(slot int) {
	c := s.slots[slot]
	s.slots[slot] = nil
	delete(s.byAddr, c.addr)
	delete(s.byPath, c.m.path)
	next, unsettled := s.unsettled[c.id]
	if unsettled {
		delete(s.unsettled, c.id)
		if next != slot { // the former one has gone by itself
			s.byID[c.id] = next
		}
		return
	}
	delete(s.byID, c.id)
}

// Former returns the slot of the connection that HoldFormer keeps for the client in slot. ok is false when there is none. Once it is disconnected
// the client in slot is the only one of its id.
func (s *Server) Former(slot int) (former int, ok bool) {
	if slot < 0 || slot >= len(s.slots) || s.slots[slot] == nil {
		return 0, false
	}
	id := s.slots[slot].id
	if next, ok := s.unsettled[id]; !ok || next != slot {
		return 0, false
	}
	return s.byID[id], true
}

func (s *Server) keepAlive(now time.Duration, slot int) {
	b := s.buf[Headroom:]
	binary.LittleEndian.PutUint32(b, uint32(slot%s.cfg.Slots))
	binary.LittleEndian.PutUint32(b[4:], uint32(s.cfg.Slots))
	s.send(now, slot, typeKeepAlive, s.buf[:Headroom+8])
}

func (s *Server) send(now time.Duration, slot int, t packetType, buf []byte) {
	c := s.slots[slot]
	s.emit(c.addr, c.m.send, t, c.seq, buf)
	c.seq++
	c.sent = now
}

// emit sends a packet, which the handler seals if it can.
func (s *Server) emit(to netip.AddrPort, with *sealer, t packetType, seq uint64, buf []byte) {
	if s.sender != nil {
		s.sender.SendUnsealed(to, frame(t, seq, buf), with)
		return
	}
	s.cfg.Handler.Send(to, with.seal(t, seq, buf))
}

// SendPayload encrypts the payload p[Headroom:] in place, unless the driver does that later in a copy, and sends it to the client in a slot. p needs Tailroom bytes of capacity behind
// it. A payload has 1 to MaxPayload bytes. Errors: ErrNoClient, ErrSize.
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

// Disconnect frees a slot and sends its client ten disconnect packets.
func (s *Server) Disconnect(now time.Duration, slot int) {
	if slot < 0 || slot >= len(s.slots) || s.slots[slot] == nil {
		return
	}
	s.sayDisconnect(now, slot)
	s.free(slot, Kicked)
}

func (s *Server) sayDisconnect(now time.Duration, slot int) {
	for range disconnectSent {
		s.send(now, slot, typeDisconnect, s.buf[:Headroom])
	}
}

// replace frees the slot of a client that gives way to another connection. The handler hears of it before that, for last words.
func (s *Server) replace(now time.Duration, slot int, why Reason) {
	s.Counters.Replaced++
	c := s.slots[slot]
	s.cfg.Handler.Disconnected(slot, why)
	if s.slots[slot] == c {
		s.sayDisconnect(now, slot)
		s.remove(slot)
	}
}

// Tick sends keep-alives and frees the slots of silent clients.
func (s *Server) Tick(now time.Duration) {
	for slot, c := range s.slots {
		switch {
		case c == nil:
		case c.timeout >= 0 && now-c.heard >= c.timeout:
			s.free(slot, TimedOut)
		case now-c.sent >= sendInterval:
			s.keepAlive(now, slot)
		}
	}
}

// timeout is how long a client of a mapping may be silent.
func (s *Server) timeout(m *mapping) time.Duration {
	if s.cfg.Timeout != 0 {
		return s.cfg.Timeout
	}
	return m.timeout
}

// NextDeadline is when Tick has something to do.
func (s *Server) NextDeadline() (at time.Duration, ok bool) {
	for _, c := range s.slots {
		if c == nil {
			continue
		}
		d := c.sent + sendInterval
		if c.timeout >= 0 {
			d = min(d, c.heard+c.timeout)
		}
		if !ok || d < at {
			at, ok = d, true
		}
	}
	return at, ok
}
