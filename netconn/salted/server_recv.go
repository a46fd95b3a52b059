package salted

import (
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/slots"
)

// Receive handles a datagram. The payload that the Handler gets lies within p.
func (s *Server) Receive(now time.Duration, from netip.AddrPort, p []byte) {
	s.Counters.Received++
	t, why := s.frame.open(p)
	if why == accepted {
		switch t {
		case typeRequest:
			why = s.request(now, from, p)
		case typeResponse:
			why = s.response(now, from, p)
		case typeKeepAlive, typePayload, typeDisconnect:
			why = s.session(now, from, t, p)
		default:
			why = badType
		}
	}
	s.Counters.refuse(why)
}

// request answers with a challenge, and remembers nothing.
func (s *Server) request(now time.Duration, from netip.AddrPort, p []byte) refusal {
	if why := padded(p, 13); why != accepted {
		return why
	}
	salt := first(p)
	if i, ok := s.byAddr[from]; ok {
		if s.slots[i].salt == salt {
			return unexpected // late; its response was here before
		}
	} else if why := s.noRoom(from); why != 0 {
		s.deny(from, salt, why)
		return accepted
	}
	s.rotate(now)
	serverSalt, _ := s.cookies.salt(0, from, salt)
	s.Counters.Requests++
	out := s.out[:challengeSize]
	putFirst(out, salt)
	putSecond(out, serverSalt)
	s.send(from, s.frame.close(out, typeChallenge))
	return accepted
}

// response gives a slot to a client that has received its challenge.
func (s *Server) response(now time.Duration, from netip.AddrPort, p []byte) refusal {
	if why := padded(p, 21); why != accepted {
		return why
	}
	prefix, salt := first(p), second(p)
	i, known := s.byAddr[from]
	if known && s.slots[i].prefix == prefix && s.slots[i].salt == salt {
		s.slots[i].heard = now
		s.keepAlive(now, i) // the one before was lost
		return accepted
	}
	s.rotate(now)
	if !s.cookies.valid(from, salt, prefix) {
		return badSalt
	}
	if s.past.has(session{from, salt}) {
		s.sayGoodbye(from, prefix, 1) // its client may have missed that
		return replayed
	}
	if known && s.slots[i].salt != salt && s.keeper != nil {
		s.keeper.Release(i)
		i, known = s.byAddr[from]
	}
	if known && s.slots[i].salt == salt && s.slots[i].confirmed {
		return unexpected // to an older challenge, and late: who knows of its slot answers no other one
	}
	if known && s.slots[i].salt == salt { // its client had another challenge
		s.slots[i].prefix, s.slots[i].heard = prefix, now
		s.keepAlive(now, i)
		return accepted
	}
	if known && s.alive(now, i) {
		return unexpected // of an attempt before, and late; or its client isn't there any more, and asks again
	}
	if known {
		s.Counters.Replaced++
		s.end(i, Replaced)
	} else if why := s.noRoom(from); why != 0 {
		s.deny(from, salt, why)
		return accepted
	} else {
		i = s.lowestFree()
	}
	s.Counters.Connected++
	s.byAddr[from] = i
	s.places.Add(from.Addr())
	s.slots[i] = slot{used: true, addr: from, salt: salt, prefix: prefix, heard: now, sent: now}
	s.keepAlive(now, i)
	s.cfg.Handler.Connected(i, ClientInfo{Addr: from, Salt: salt})
	return accepted
}

// alive reports whether the client in a slot was heard just now.
func (s *Server) alive(now time.Duration, slot int) bool {
	return now-s.slots[slot].heard < aliveIntervals*s.cfg.Interval
}

// aliveIntervals is in how many of them a client that is there is heard: it sends in each.
const aliveIntervals = 3

// session takes a packet of a connected client.
func (s *Server) session(now time.Duration, from netip.AddrPort, t packetType, p []byte) refusal {
	i, ok := s.byAddr[from]
	switch {
	case ok:
	case t == typeDisconnect:
		s.Counters.LateDisconnects++
		return accepted
	default:
		return noSession
	}
	c := &s.slots[i]
	if prefix := first(p); prefix != c.prefix {
		if !s.otherChallenge(now, c, prefix) {
			return badPrefix
		}
		c.prefix = prefix // of the response that the client has heard of its slot by; a late one to another challenge came after it
	}
	switch t {
	case typeKeepAlive:
		if len(p) != clientKeepAliveSize {
			return badSize
		}
		c.heard, c.confirmed = now, true
	case typePayload:
		if len(p) == Overhead {
			return badSize
		}
		c.heard, c.confirmed = now, true
		s.Counters.Payloads++
		s.cfg.Handler.Payload(i, p[Headroom:])
	case typeDisconnect:
		if len(p) != disconnectSize {
			return badSize
		}
		s.end(i, Closed)
	}
	return accepted
}

// otherChallenge reports whether a client that may have answered several challenges, and hasn't shown yet by which one it has its slot, was given that prefix.
func (s *Server) otherChallenge(now time.Duration, c *slot, prefix uint64) bool {
	if c.confirmed {
		return false
	}
	s.rotate(now)
	return s.cookies.valid(c.addr, c.salt, prefix)
}

func (s *Server) rotate(now time.Duration) {
	if s.cookies.rotate(now) != nil {
		s.Counters.RandErrors++
	}
}

// noRoom is why an address can't have another slot; 0 when it can. Slots whose connections have ended make room.
func (s *Server) noRoom(from netip.AddrPort) Reason {
	why := s.taken(from)
	if why != 0 && s.keeper != nil {
		s.keeper.Release(slots.Any)
		why = s.taken(from)
	}
	return why
}

// taken is noRoom, with all slots as they are.
func (s *Server) taken(from netip.AddrPort) Reason {
	switch {
	case len(s.byAddr) == len(s.slots):
		return Full
	case !s.places.Room(from.Addr()):
		return TooMany
	}
	return 0
}

func (s *Server) lowestFree() int {
	for i := range s.slots {
		if !s.slots[i].used {
			return i
		}
	}
	panic("salted: a server that isn't full has no free slot")
}

func (s *Server) deny(to netip.AddrPort, salt uint64, why Reason) {
	if why == TooMany {
		s.Counters.TooMany++
	}
	s.Counters.Denied++
	p := s.out[:deniedSize]
	putFirst(p, salt)
	p[13] = byte(why)
	s.send(to, s.frame.close(p, typeDenied))
}
