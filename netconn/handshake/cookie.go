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
// still proves those that it made.
type secrets struct {
	rand    io.Reader
	macs    [2]hash.Hash
	active  int
	rotated float64 // timestamp of the last change
	next    time.Duration
	scratch []byte
	sum     [sha1.Size]byte
}

func timestamp(now time.Duration) float64 { return now.Seconds() + timestampOffset }

// update changes the active secret when it is time; the first call makes both.
func (s *secrets) update(now time.Duration) error {
	if s.macs[0] != nil && now < s.next {
		return nil
	}
	var b [secretBytes + 2]byte
	if s.macs[0] == nil {
		if _, err := io.ReadFull(s.rand, b[:]); err != nil {
			return err
		}
		s.macs[1] = hmac.New(sha1.New, b[:secretBytes])
		s.active = 1
	}
	if _, err := io.ReadFull(s.rand, b[:]); err != nil {
		return err
	}
	s.active ^= 1
	s.set(s.active, b[:secretBytes])
	s.rotated = timestamp(now)
	jitter := time.Duration(binary.LittleEndian.Uint16(b[secretBytes:])) * secretVariance >> 16
	s.next = now + secretLife + jitter
	return nil
}

func (s *secrets) set(i int, key []byte) { s.macs[i] = hmac.New(sha1.New, key) }

// cookie is HMAC-SHA1(secret, timestamp as f64le | address as FString).
func (s *secrets) cookie(id int, ts float64, addr netip.AddrPort) (c Cookie) {
	b := binary.LittleEndian.AppendUint64(s.scratch[:0], math.Float64bits(ts))
	b = append(b, 0, 0, 0, 0)
	b = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()).AppendTo(b)
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)-12))
	s.scratch = b
	mac := s.macs[id]
	mac.Reset()
	mac.Write(b)
	copy(c[:], mac.Sum(s.sum[:0]))
	return c
}

// valid checks a cookie that came back: young enough, made with the secret it names while that was
// active, for this address.
func (s *secrets) valid(now time.Duration, pk *Packet, addr netip.AddrPort) bool {
	age := timestamp(now) - pk.Timestamp
	if !(age >= 0 && age < cookieLife.Seconds()) {
		return false
	}
	id := 0
	if pk.SecretID {
		id = 1
	}
	if id == s.active != (pk.Timestamp >= s.rotated) {
		return false
	}
	want := s.cookie(id, pk.Timestamp, addr)
	return hmac.Equal(want[:], pk.Cookie[:])
}
