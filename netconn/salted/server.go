package salted

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/addrgroup"
	"github.com/bunchnet/bunchnet/netconn/internal/slots"
)

// Server has slots for clients. It isn't safe for concurrent use.
type Server struct {
	// Counters counts what happened so far.
	Counters Counters

	cfg     ServerConfig
	keeper  slots.Keeper // the handler if it keeps slots, else nil
	frame   framer
	slots   []slot
	byAddr  map[netip.AddrPort]int // slots in use
	places  addrgroup.Limit        // of addresses
	cookies cookies
	past    past
	out     [challengeSize]byte // packets of the server itself; none is larger
}

// slot is a client's place.
//
// Invariant: used, and byAddr[addr] is its index, or neither.
type slot struct {
	used      bool
	confirmed bool // the client has shown that it knows of its slot
	addr      netip.AddrPort
	salt      uint64 // the client's
	prefix    uint64
	heard     time.Duration
	sent      time.Duration
}

// NewServer returns a server without clients. It returns an error that wraps ErrConfig, or that of Rand.
func NewServer(cfg ServerConfig) (*Server, error) {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, frame: newFramer(cfg.ProtocolID), slots: make([]slot, cfg.Slots),
		byAddr:  make(map[netip.AddrPort]int, cfg.Slots),
		places:  addrgroup.NewLimit(cfg.MaxPerAddr),
		cookies: cookies{rand: cfg.Rand, life: cfg.SecretLife},
		past:    past{sessions: make([]session, 2*cfg.Slots+64)},
	}
	s.keeper, _ = cfg.Handler.(slots.Keeper)
	if err := s.cookies.rotate(0); err != nil {
		return nil, fmt.Errorf("salted: no secret from Rand: %w", err)
	}
	return s, nil
}

// Slots returns the number of slots.
func (s *Server) Slots() int { return len(s.slots) }

// Clients returns the number of slots in use.
func (s *Server) Clients() int { return len(s.byAddr) }

// Client returns the client in a slot. ok is false if there is none.
func (s *Server) Client(slot int) (info ClientInfo, ok bool) {
	if !s.inUse(slot) {
		return ClientInfo{}, false
	}
	c := &s.slots[slot]
	return ClientInfo{Addr: c.addr, Salt: c.salt}, true
}

// SlotOf returns the slot of an address. ok is false if it has none.
func (s *Server) SlotOf(addr netip.AddrPort) (slot int, ok bool) {
	slot, ok = s.byAddr[addr]
	return slot, ok
}

func (s *Server) inUse(slot int) bool { return slot >= 0 && slot < len(s.slots) && s.slots[slot].used }

// SendPayload sends p[Headroom:] to the client in a slot. It overwrites p[:Headroom], so that nothing has to be
// copied. It returns ErrNotConnected, or ErrPayloadSize unless the payload has 1 to MaxPayload bytes.
func (s *Server) SendPayload(now time.Duration, slot int, p []byte) error {
	if !s.inUse(slot) {
		return ErrNotConnected
	}
	if len(p) <= Headroom || len(p) > MaxPacket {
		return ErrPayloadSize
	}
	c := &s.slots[slot]
	if !c.confirmed {
		s.keepAlive(now, slot) // it may not know yet that it is connected
	}
	putFirst(p, c.prefix)
	s.send(c.addr, s.frame.close(p, typePayload))
	c.sent = now
	return nil
}

// Disconnect frees a slot and tells its client. It does nothing if the slot is free.
func (s *Server) Disconnect(now time.Duration, slot int) {
	if s.inUse(slot) {
		s.sayGoodbye(s.slots[slot].addr, s.slots[slot].prefix, disconnectCopies)
		s.end(slot, Kicked)
	}
}

// Close disconnects all clients.
func (s *Server) Close(now time.Duration) {
	for i := range s.slots {
		s.Disconnect(now, i)
	}
}

// Tick ends what has timed out and sends what is due.
func (s *Server) Tick(now time.Duration) {
	for i := range s.slots {
		c := &s.slots[i]
		switch {
		case !c.used:
		case now-c.heard >= s.cfg.Timeout:
			s.Counters.TimedOut++
			s.sayGoodbye(c.addr, c.prefix, disconnectCopies)
			s.end(i, TimedOut)
		case now-c.sent >= s.cfg.Interval:
			s.keepAlive(now, i)
		}
	}
}

// NextDeadline returns when Tick next has something to do. ok is false when there is nothing.
func (s *Server) NextDeadline() (at time.Duration, ok bool) {
	at = never
	for i := range s.slots {
		c := &s.slots[i]
		if !c.used {
			continue
		}
		at, ok = min(at, c.sent+s.cfg.Interval), true
		if s.cfg.Timeout != never {
			at = min(at, c.heard+s.cfg.Timeout)
		}
	}
	return at, ok
}

func (s *Server) send(to netip.AddrPort, p []byte) {
	s.Counters.Sent++
	s.cfg.Handler.Send(to, p)
}

func (s *Server) keepAlive(now time.Duration, slot int) {
	c := &s.slots[slot]
	c.sent = now
	p := s.out[:serverKeepAliveSize]
	putFirst(p, c.prefix)
	binary.LittleEndian.PutUint16(p[13:], uint16(slot))
	binary.LittleEndian.PutUint16(p[15:], uint16(len(s.slots)))
	s.send(c.addr, s.frame.close(p, typeKeepAlive))
}

func (s *Server) sayGoodbye(to netip.AddrPort, prefix uint64, copies int) {
	p := s.out[:disconnectSize]
	putFirst(p, prefix)
	p[13] = byte(Closed)
	s.frame.close(p, typeDisconnect)
	for range copies {
		s.send(to, p)
	}
}

// end frees a slot.
func (s *Server) end(slot int, reason Reason) {
	c := &s.slots[slot]
	delete(s.byAddr, c.addr)
	s.places.Remove(c.addr.Addr())
	if c.confirmed || reason != TimedOut { // a client that never knew of its slot may come again
		s.past.add(session{c.addr, c.salt})
	}
	s.slots[slot] = free
	s.cfg.Handler.Disconnected(slot, reason)
}

var free slot
