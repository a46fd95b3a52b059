package netcode

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"
)

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
	plain, err := openPrivate(s.tokenKey, sealed, b[versionBytes+16:versionBytes+16+tokenNonceBytes], appendPrivateAD(s.ad[:0], s.cfg.ProtocolID, expire))
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
	if s.used.refuses(mac, from) {
		s.Counters.TokenUsed++
		return
	}
	m := &mapping{addr: from, send: newSealer(&priv.s2c, s.cfg.ProtocolID), recv: newSealer(&priv.c2s, s.cfg.ProtocolID),
		timeout: time.Duration(priv.timeout) * time.Second, clientID: priv.clientID, mac: mac, first: s.challengeSeq}
	if s.Clients() == len(s.slots) {
		s.Counters.Full++
		s.sendGlobal(from, m, typeDenied, 0)
		return
	}
	if !s.mappings.put(now, m) {
		s.Counters.NoRoom++
		return
	}
	s.used.add(mac, from)
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

func (s *Server) sendGlobal(to netip.AddrPort, m *mapping, t packetType, n int) {
	s.cfg.Handler.Send(to, m.send.seal(t, s.globalSeq, s.buf[:Headroom+n]))
	s.globalSeq++
}

// response gives a slot to a client that answers a challenge of its own mapping.
func (s *Server) response(now time.Duration, from netip.AddrPort, prefix byte, seq uint64, body []byte) {
	m := s.mappings.get(now, from)
	if m == nil {
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
	challengeSeq := binary.LittleEndian.Uint64(plain)
	if ch.open(s.challengeKey, challengeSeq, plain[8:]) != nil {
		s.Counters.BadChallenge++
		return
	}
	if ch.bound != bind(from, &m.mac) || ch.clientID != m.clientID || challengeSeq < m.first {
		s.Counters.NotBound++
		return
	}
	if _, ok := s.byID[ch.clientID]; ok {
		s.Counters.IDConnected++
		return
	}
	s.connect(now, m, &ch)
}

func (s *Server) connect(now time.Duration, m *mapping, ch *challenge) {
	for slot, c := range s.slots {
		if c != nil {
			continue
		}
		s.mappings.remove(m)
		s.slots[slot] = &clientSlot{addr: m.addr, id: ch.clientID, m: m, heard: now, sent: now - sendInterval}
		s.byAddr[m.addr], s.byID[ch.clientID] = slot, slot
		s.used.spend(m.mac)
		s.Counters.Connected++
		s.keepAlive(now, slot)
		s.cfg.Handler.Connected(slot, ClientInfo{ch.clientID, m.addr, &ch.userData})
		return
	}
	s.Counters.Full++
	s.sendGlobal(m.addr, m, typeDenied, 0)
}
