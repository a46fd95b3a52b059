package salted

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"net/netip"
	"time"
)

// cookies makes server salts out of what a client sends, so that a server needn't
// remember whom it has challenged.
type cookies struct {
	rand    io.Reader
	life    time.Duration
	mac     [2]hash.Hash // with the current and the last secret
	since   time.Duration
	in      [26]byte
	sum     [sha256.Size]byte
	started bool
}

// rotate replaces secrets that are too old. It reports a failure of the source, after
// which the old ones serve on. A secret that is replaced late has a shorter life.
func (c *cookies) rotate(now time.Duration) error {
	c.since = min(c.since, now)
	lives := (now - c.since) / c.life
	if c.started && lives == 0 {
		return nil
	}
	var secret [32]byte
	if _, err := io.ReadFull(c.rand, secret[:]); err != nil {
		return err
	}
	c.mac[1] = c.mac[0]
	if lives > 1 {
		c.mac[1] = nil
	}
	c.mac[0] = hmac.New(sha256.New, secret[:])
	c.since, c.started = c.since+lives*c.life, true
	return nil
}

// salt is the server salt for a client under one of the secrets; ok is false if there is
// no such secret.
func (c *cookies) salt(which int, addr netip.AddrPort, clientSalt uint64) (salt uint64, ok bool) {
	mac := c.mac[which]
	if mac == nil {
		return 0, false
	}
	ip := addr.Addr().As16()
	copy(c.in[:], ip[:])
	binary.LittleEndian.PutUint16(c.in[16:], addr.Port())
	binary.LittleEndian.PutUint64(c.in[18:], clientSalt)
	mac.Reset()
	mac.Write(c.in[:])
	return binary.LittleEndian.Uint64(mac.Sum(c.sum[:0])), true
}

// valid reports whether a prefix is the one of a challenge to this client.
func (c *cookies) valid(addr netip.AddrPort, clientSalt, prefix uint64) bool {
	for which := range c.mac {
		if salt, ok := c.salt(which, addr, clientSalt); ok && clientSalt^salt == prefix {
			return true
		}
	}
	return false
}

// past remembers the clients of the last sessions, so that their responses can't be
// replayed, to whichever challenge they are.
type past struct {
	sessions []session
	n        int // ever added
}

type session struct {
	addr netip.AddrPort
	salt uint64 // the client's
}

func (p *past) add(x session) {
	p.sessions[p.n%len(p.sessions)] = x
	p.n++
}

func (p *past) has(x session) bool {
	for i := range min(p.n, len(p.sessions)) {
		if s := &p.sessions[i]; s.salt == x.salt && s.addr == x.addr { // comparing addresses takes long
			return true
		}
	}
	return false
}
