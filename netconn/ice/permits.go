package ice

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/pion/stun/v4"
)

const (
	maxPermits    = 1024             // IP addresses that one allocation lets in
	maxPermitting = 16               // that are being asked for
	permitLife    = 5 * time.Minute  // of a permission at the relay (RFC 8656)
	permitFresh   = 2 * time.Minute  // then it is asked for again, with the next datagram
	permitIdle    = 30 * time.Second // without a datagram, after which it makes room for another
	permitAgain   = time.Second      // after a refusal
)

// permits is which addresses a relay lets in. pion's own are never given back, and are refreshed all in one message, which 100 of them make too long
// for UDP.
type permits struct {
	ask func(a netip.Addr) error // asks the relay, and waits

	mu       sync.Mutex
	of       map[netip.Addr]*permit
	underway int
	asking   sync.WaitGroup
}

// permit is that of one address. Times are of node.now.
type permit struct {
	until  time.Duration // when the relay forgets it; 0 until it has said yes
	again  time.Duration // when it is asked for again
	used   time.Duration
	asking bool
}

// permitted reports whether the relay lets in what comes from an address. Otherwise, and when that ends soon, it is asked to; a datagram that had to wait
// goes behind that.
func (r *relay) permitted(to netip.AddrPort, p []byte) bool {
	r.permits.mu.Lock()
	defer r.permits.mu.Unlock()
	now := r.n.now()
	t := r.permits.of[to.Addr()]
	if t == nil {
		if len(r.permits.of) == maxPermits && !r.permits.makeRoom(now) {
			return false
		}
		t = &permit{}
		r.permits.of[to.Addr()] = t
	}
	t.used = now
	ok := now < t.until
	if t.asking || now < t.again || r.permits.underway == maxPermitting || isDone(r.ended) {
		return ok
	}
	t.asking = true
	r.permits.underway++
	if ok {
		p = nil
	} else {
		p = append([]byte(nil), p...)
	}
	r.permits.asking.Go(func() {
		err := r.permits.ask(to.Addr())
		r.permits.mu.Lock()
		defer r.permits.mu.Unlock()
		r.permits.underway--
		if t.asking = false; err != nil {
			t.again = r.n.now() + permitAgain
			return
		}
		t.until, t.again = now+permitLife, now+permitFresh
		if p != nil {
			r.push(p, to)
		}
	})
	return ok
}

// makeRoom forgets the address that nothing was sent to for longest, if that is long. p.mu is held.
func (p *permits) makeRoom(now time.Duration) bool {
	var oldest netip.Addr
	for a, t := range p.of {
		if !t.asking && now-t.used >= permitIdle && (!oldest.IsValid() || t.used < p.of[oldest].used) {
			oldest = a
		}
	}
	delete(p.of, oldest)
	return oldest.IsValid()
}

// renew has each address asked for again with the next datagram to it: the relay may have forgotten them.
func (p *permits) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.of {
		t.again = 0
	}
}

// forgotten is what a relay answers that has no address for this end, or doesn't know its name any more; pion's calls that a bad request.
var forgotten = []stun.ErrorCode{stun.CodeAllocMismatch, stun.CodeUnauthorized, stun.CodeWrongCredentials, stun.CodeBadRequest}

// askRelay asks for a permission. A relay that has forgotten this end is lost.
func (r *relay) askRelay(a netip.Addr) (err error) {
	for range 3 { // the first answer may only be another nonce
		err = r.client.CreatePermission(&net.UDPAddr{IP: a.AsSlice()})
		if refused := (*stun.TurnError)(nil); errors.As(err, &refused) {
			if slices.Contains(forgotten, refused.ErrorCodeAttr.Code) {
				r.end()
			}
			break
		}
		if err == nil || isDone(r.ended) {
			break
		}
	}
	return err
}

// indication is a datagram for a relay to send on.
type indication struct {
	to net.UDPAddr
	p  []byte
}

// AddTo implements stun.Setter.
func (i *indication) AddTo(m *stun.Message) error {
	m.Add(stun.AttrData, i.p)
	return stun.XORMappedAddress{IP: i.to.IP, Port: i.to.Port}.AddToAs(m, stun.AttrXORPeerAddress)
}
