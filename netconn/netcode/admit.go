package netcode

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/slots"
)

func (s *Server) request(now time.Duration, from netip.AddrPort, p []byte) {
	s.Counters.Requests++
	if len(p) != RequestBytes {
		s.Counters.BadSize++
		return
	}
	b := p[1:]
	protocolID, expire := binary.LittleEndian.Uint64(b[versionBytes:]), binary.LittleEndian.Uint64(b[versionBytes+8:])
	switch {
	case string(b[:versionBytes]) != version:
		s.Counters.BadVersion++
		return
	case expire <= s.cfg.UnixAtZero+uint64(now/time.Second):
		s.Counters.Expired++
		return
	}
	sealed := b[versionBytes+16+tokenNonceBytes:]
	mac := [macBytes]byte(sealed[privateBytes-macBytes:])
	plain, err := openPrivate(s.tokenKey, sealed, b[versionBytes+16:versionBytes+16+tokenNonceBytes], appendPrivateAD(s.ad[:0], protocolID, expire))
	if err != nil {
		s.Counters.BadToken++
		return
	}
	var priv private
	if priv.read(plain) != nil || priv.timeout == 0 {
		s.Counters.BadToken++
		return
	}
	if !s.named(priv.servers) {
		s.Counters.OtherServer++
		return
	}
	s.admit(now, from, &priv, mac, protocolID)
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

// admit answers an authentic request: with a challenge, or with the reason why there is none, if that may be told. A token belongs to the first
// address that sends it. Only that address is answered when others repeat the request.
func (s *Server) admit(now time.Duration, from netip.AddrPort, priv *private, mac [macBytes]byte, protocolID uint64) {
	if there, ok := s.byAddr[from]; ok && s.slots[there].m.mac == mac {
		s.Counters.Unexpected++
		return
	}
	if s.used.refuses(mac, from) {
		s.Counters.TokenUsed++
		return
	}
	if protocolID != s.cfg.ProtocolID {
		s.Counters.BadProtocol++
		s.deny(from, priv, mac, protocolID, OtherProtocol)
		return
	}
	s.release(from, priv.clientID)
	there, taken := s.byAddr[from]
	if taken && !s.givesWay(now, there, priv.clientID) {
		s.used.add(mac, from)
		s.Counters.AddrConnected++
		return
	}
	slot, connected := s.byID[priv.clientID]
	switch {
	case connected && (s.takesOver(slot, priv.clientID) || s.slots[slot].addr == from): // and has that slot, however full the server is
	case connected:
		s.Counters.IDConnected++
		s.deny(from, priv, mac, protocolID, AlreadyConnected)
		return
	case !taken && s.full():
		s.Counters.Full++
		s.deny(from, priv, mac, protocolID, Full)
		return
	}
	var m *mapping
	list := s.mappings.at(now, from)
	if i := slices.IndexFunc(list, func(m *mapping) bool { return m.mac == mac }); i >= 0 {
		m = list[i] // repeating a request doesn't prolong it
	} else {
		m = &mapping{addr: from, send: newSealer(&priv.s2c, protocolID), recv: newSealer(&priv.c2s, protocolID),
			timeout: time.Duration(priv.timeout) * time.Second, clientID: priv.clientID, mac: mac, path: pathOf(&priv.c2s), first: s.challengeSeq}
		s.used.add(mac, from)
		if !s.mappings.put(now, m) {
			s.Counters.NoRoom++
			return
		}
	}
	ch := challenge{clientID: priv.clientID, userData: priv.userData, bound: bind(from, &mac)}
	b := s.buf[Headroom:]
	binary.LittleEndian.PutUint64(b, s.challengeSeq)
	ch.seal(s.challengeKey, s.challengeSeq, b[8:8+challengeBytes])
	s.challengeSeq++
	s.Counters.Challenges++
	s.sendGlobal(from, m.send, typeChallenge, 8+challengeBytes)
}

// release has the handler free those slots whose connections have ended, and which are of a client's address or id.
func (s *Server) release(from netip.AddrPort, clientID uint64) {
	if s.keeper == nil {
		return
	}
	if slot, ok := s.byAddr[from]; ok {
		s.keeper.Release(slot)
	}
	if slot, ok := s.byID[clientID]; ok {
		s.keeper.Release(slot)
	}
}

// full reports whether all slots are taken. Those whose connections have ended are freed before.
func (s *Server) full() bool {
	if s.keeper != nil && s.Clients() == s.cfg.Slots {
		s.keeper.Release(slots.Any)
	}
	return s.Clients() == s.cfg.Slots
}

// takesOver reports whether a client that connects again may have the slot of its former connection.
func (s *Server) takesOver(slot int, clientID uint64) bool {
	return s.cfg.TakeOver && s.slots[slot].id == clientID
}

// givesWay reports whether the client with a slot at an address gives way to one that answers its challenge from there: a former connection of that one, or
// a client that fell silent, as it has left that address. It is asked at the request and at the response, so that who listens on the path and has a token ends
// nobody who is heard.
func (s *Server) givesWay(now time.Duration, slot int, clientID uint64) bool {
	return s.takesOver(slot, clientID) || now-s.slots[slot].heard >= goneAfter
}

// deny tells the address of a token why it gets no slot.
func (s *Server) deny(to netip.AddrPort, priv *private, mac [macBytes]byte, protocolID uint64, why Denial) {
	s.used.add(mac, to)
	s.sendDenied(to, newSealer(&priv.s2c, protocolID), why)
}

// sendDenied sends what every netcode client understands when the server is full, and otherwise a denial with one byte, which
// those of others drop for its size: they go on asking, as when a server doesn't answer.
func (s *Server) sendDenied(to netip.AddrPort, with *sealer, why Denial) {
	n := 0
	if why != Full {
		s.buf[Headroom], n = byte(why), 1
	}
	s.sendGlobal(to, with, typeDenied, n)
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

func (s *Server) sendGlobal(to netip.AddrPort, with *sealer, t packetType, n int) {
	s.emit(to, with, t, s.globalSeq, s.buf[:Headroom+n])
	s.globalSeq++
}

// answered is the mapping that a response opens with, and what is in it. The body stays as it is.
func (s *Server) answered(now time.Duration, from netip.AddrPort, prefix byte, seq uint64, body []byte) (m *mapping, plain []byte) {
	if len(body) > len(s.buf) {
		return nil, nil
	}
	for _, m := range s.mappings.at(now, from) {
		if plain, err := m.recv.open(prefix, seq, append(s.buf[:0], body...)); err == nil {
			return m, plain
		}
	}
	return nil, nil
}

// response gives a slot to a client that answers a challenge of its own mapping.
func (s *Server) response(now time.Duration, from netip.AddrPort, m *mapping, seq uint64, plain []byte) {
	s.Counters.Responses++
	var ch challenge
	challengeSeq := binary.LittleEndian.Uint64(plain)
	if ch.open(s.challengeKey, challengeSeq, plain[8:]) != nil {
		s.Counters.BadChallenge++
		return
	}
	if ch.bound != bind(from, &m.mac) || ch.clientID != m.clientID || challengeSeq < m.first {
		s.Counters.NotBound++
		return
	}
	there, taken := s.byAddr[from]
	if taken && !s.givesWay(now, there, ch.clientID) {
		s.Counters.AddrConnected++
		return
	}
	former, again := s.byID[ch.clientID]
	_, free := s.place(ch.clientID)
	if !free && taken { // the client there gives way; the server's place is free then if it has no other connection
		free = len(s.slots) == s.cfg.Slots || s.slots[(there+s.cfg.Slots)%len(s.slots)] == nil
	}
	switch {
	case again && !s.takesOver(former, ch.clientID) && s.slots[former].addr != from:
		s.Counters.IDConnected++
		s.sendDenied(from, m.send, AlreadyConnected)
		return
	case !again && !free:
		if taken {
			s.replace(now, there, AddrTaken)
		}
		s.Counters.Full++
		s.sendDenied(from, m.send, Full)
		return
	}
	if s.cfg.Admit != nil {
		if now < m.askAgain {
			s.Counters.Waited++
			return
		}
		m.askAgain = now + askEvery
		switch s.cfg.Admit(ClientInfo{ch.clientID, from, &ch.userData}) {
		case Wait:
			s.Counters.Waited++
			return
		case Refuse:
			s.Counters.NotAdmitted++
			s.sendDenied(from, m.send, Full)
			return
		}
	}
	if former, again := s.byID[ch.clientID]; again { // Admit may have ended it
		s.makeRoom(now, former, from)
	}
	if slot, ok := s.byAddr[from]; ok {
		s.replace(now, slot, AddrTaken)
	}
	s.connect(now, m, &ch, seq)
}

// askEvery is how often Admit is asked about a client at most, however often that one answers its challenge: twice as often as those
// do that keep to the protocol, as packets bunch up.
const askEvery = sendInterval / 2

// makeRoom replaces the former connection of a client, or with HoldFormer those that may not stay beside another one: the one of the same address, and one that
// isn't settled.
func (s *Server) makeRoom(now time.Duration, former int, from netip.AddrPort) {
	id := s.slots[former].id
	if _, ok := s.unsettled[id]; ok && s.keeper != nil {
		s.keeper.Release(former) // if it has ended, the other one has its place
	}
	if next, ok := s.unsettled[id]; ok {
		s.replace(now, next, Replaced)
	}
	if former, ok := s.byID[id]; ok && (!s.cfg.HoldFormer || s.slots[former].addr == from) {
		s.replace(now, former, Replaced)
	}
}

// place is a free slot for a client, or that beside its former connection, which makeRoom has freed.
func (s *Server) place(id uint64) (slot int, ok bool) {
	n := s.cfg.Slots
	if former, ok := s.byID[id]; ok {
		return (former + n) % (2 * n), true
	}
	for slot := range n {
		if s.slots[slot] == nil && (len(s.slots) == n || s.slots[n+slot] == nil) {
			return slot, true
		}
	}
	return 0, false
}

func (s *Server) connect(now time.Duration, m *mapping, ch *challenge, seq uint64) {
	slot, _ := s.place(ch.clientID) // response has seen to it that there is one
	s.mappings.connected(m, s.cfg.TakeOver)
	s.slots[slot] = &clientSlot{addr: m.addr, id: ch.clientID, m: m, timeout: s.timeout(m), heard: now, sent: now - sendInterval, seq: s.cfg.FirstSequence, began: seq}
	s.byAddr[m.addr], s.byPath[m.path] = slot, slot
	if _, held := s.byID[ch.clientID]; held {
		s.unsettled[ch.clientID] = slot
	} else {
		s.byID[ch.clientID] = slot
	}
	s.used.spend(m.mac)
	s.Counters.Connected++
	s.keepAlive(now, slot)
	s.cfg.Handler.Connected(slot, ClientInfo{ch.clientID, m.addr, &ch.userData})
}
