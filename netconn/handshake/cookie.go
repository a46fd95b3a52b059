package handshake

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/binary"
	"hash"
	"io"
	"math"
	"net/netip"
	"time"
)

const (
	secretBytes     = 64
	secretLife      = 15 * time.Second
	secretVariance  = 5 * time.Second
	cookieLife      = 2 * (secretLife + secretVariance)
	timestampOffset = 1.0 // so that no timestamp is 0, which means Initial
)

// secrets is the two keys of a server's cookies. The active one makes new cookies; the one before
// still proves those that it made. The keyed states are kept, so that a cookie allocates nothing.
type secrets struct {
	rand io.Reader
	// input appends what a cookie is made of.
	input      func(b []byte, ts float64, addr netip.AddrPort) []byte
	macs       [2]hash.Hash
	active     int
	began      time.Duration // what timestamps count from: 0, or the first update if that is before it
	rotated    float64       // timestamp of the last change
	last, next time.Duration // when it was, and the next one is due
	scratch    []byte
	sum        [sha1.Size]byte
}

func (s *secrets) timestamp(now time.Duration) float64 {
	return (now - s.began).Seconds() + timestampOffset
}

// update changes the active secret when it is time, or when the clock has gone back behind the last change; the first call makes both.
func (s *secrets) update(now time.Duration) error {
	if s.macs[0] != nil && s.last <= now && now < s.next {
		return nil
	}
	var b [secretBytes + 2]byte
	if s.macs[0] == nil {
		if _, err := io.ReadFull(s.rand, b[:]); err != nil {
			return err
		}
		s.macs[1] = hmac.New(sha1.New, b[:secretBytes])
		s.active, s.began = 1, min(now, 0)
	}
	if _, err := io.ReadFull(s.rand, b[:]); err != nil {
		return err
	}
	s.active ^= 1
	s.set(s.active, b[:secretBytes])
	s.rotated = s.timestamp(now)
	jitter := time.Duration(binary.LittleEndian.Uint16(b[secretBytes:])) * secretVariance >> 16
	s.last, s.next = now, now+secretLife+jitter
	return nil
}

func (s *secrets) set(i int, key []byte) { s.macs[i] = hmac.New(sha1.New, key) }

// cookie is HMAC-SHA1(secret, input).
func (s *secrets) cookie(id int, ts float64, addr netip.AddrPort) (c Cookie) {
	s.scratch = s.input(s.scratch[:0], ts, addr)
	mac := s.macs[id]
	mac.Reset()
	mac.Write(s.scratch)
	copy(c[:], mac.Sum(s.sum[:0]))
	return c
}

// cookieInput is Unreal's: the timestamp as f64le, the address as FString.
func cookieInput(b []byte, ts float64, addr netip.AddrPort) []byte {
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(ts))
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()).AppendTo(b)
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// verdict is what a cookie that came back is worth.
type verdict uint8

const (
	valid       verdict = iota
	expired             // too old, or from the future
	wrongSecret         // the secret it names wasn't in use then
	forged              // not ours, or another address's
)

// check judges a cookie that came back: young enough, made with the secret it names while that was
// active, for this address.
func (s *secrets) check(now time.Duration, pk *Packet, addr netip.AddrPort) verdict {
	age := s.timestamp(now) - pk.Timestamp
	if !(age >= 0 && age < cookieLife.Seconds()) {
		return expired
	}
	id := 0
	if pk.SecretID {
		id = 1
	}
	if id == s.active && pk.Timestamp < s.rotated || id != s.active && pk.Timestamp > s.rotated {
		return wrongSecret
	}
	want := s.cookie(id, pk.Timestamp, addr)
	if !hmac.Equal(want[:], pk.Cookie[:]) {
		return forged
	}
	return valid
}

// minPast is how many connections' cookies are remembered at least, the newest.
const minPast = 4096

// past is the cookies that made connections, so that a Response heard on the way makes no second one when the first
// has ended.
type past struct {
	most    int
	cookies map[Cookie]struct{}
	ring    []pastCookie
	next    int     // the oldest, when the ring is full
	before  float64 // the latest timestamp of those that were forgotten: nothing as old makes a connection
}

type pastCookie struct {
	cookie    Cookie
	timestamp float64
}

// has reports whether the cookie of a Response has made a connection, or is so old that it may have made one that was forgotten. now is a
// timestamp; one that was forgotten can't be later, unless the clock has gone back.
func (p *past) has(pk *Packet, now float64) bool {
	_, ok := p.cookies[pk.Cookie]
	return ok || pk.Timestamp <= p.before && p.before <= now
}

func (p *past) add(pk *Packet) {
	if p.cookies == nil {
		p.cookies = map[Cookie]struct{}{}
	}
	c := pastCookie{pk.Cookie, pk.Timestamp}
	if len(p.ring) < p.most {
		p.ring = append(p.ring, c)
	} else {
		old := &p.ring[p.next]
		p.before = max(p.before, old.timestamp)
		delete(p.cookies, old.cookie)
		*old = c
		p.next = (p.next + 1) % p.most
	}
	p.cookies[c.cookie] = struct{}{}
}
