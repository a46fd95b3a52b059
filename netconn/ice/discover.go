package ice

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/pion/stun/v4"
)

const (
	askTimes    = 8                      // a STUN server, until it answers
	askEvery    = 250 * time.Millisecond // meanwhile
	resolveTime = 5 * time.Second
)

// askAgain is how often a server is asked, so that the router keeps the address.
var askAgain = 15 * time.Second

// discover keeps asking the i-th server what this end's address is outside of its router.
func (n *node) discover(i int, u *stun.URI) {
	for n.ctx.Err() == nil {
		moved := n.whenMoved()
		if server, err := n.resolve(u); err == nil {
			if seen := n.ask(server); seen.IsValid() && acceptable(seen, n.cfg.Loopback) && seen != n.outside[i] { // only this goroutine writes outside[i]
				n.change(func() { n.outside[i] = seen })
			}
		}
		n.sleep(askAgain, moved)
	}
}

// ask asks a server until it answers, or not for 2 s.
func (n *node) ask(server netip.AddrPort) (seen netip.AddrPort) {
	m, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.Fingerprint)
	if err != nil {
		return seen
	}
	c := &check{base: n.direct, to: server, answer: make(chan netip.AddrPort, 1)}
	n.mu.Lock()
	n.asked[m.TransactionID] = c
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.asked, m.TransactionID)
	}()
	for range askTimes {
		n.writeDirect(m.Raw, server)
		timer := time.NewTimer(askEvery)
		select {
		case seen = <-c.answer:
		case <-timer.C:
		case <-n.ctx.Done():
		}
		timer.Stop()
		if seen.IsValid() || n.ctx.Err() != nil {
			break
		}
	}
	return seen
}

// resolve returns a server's address, of IPv4 if it has one. A rendezvous can't have this machine asked, or all of a network.
func (n *node) resolve(u *stun.URI) (at netip.AddrPort, err error) {
	ctx, cancel := context.WithTimeout(n.ctx, resolveTime)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Host)
	if err != nil {
		return at, err
	}
	for _, ip := range ips {
		if ip = ip.Unmap(); !at.IsValid() || ip.Is4() {
			at = netip.AddrPortFrom(ip, uint16(u.Port))
			if ip.Is4() {
				break
			}
		}
	}
	if !at.IsValid() {
		return at, &net.DNSError{Err: "no address", Name: net.JoinHostPort(u.Host, strconv.Itoa(u.Port))}
	}
	if !oneMachine(at.Addr(), n.cfg.Loopback) {
		return at, fmt.Errorf("%w: %q is %v, and no server of others is there; with Config.Loopback one of this machine is asked", ErrConfig, u, at.Addr())
	}
	return at, nil
}

// sleep waits, or until the node closes, or a channel does.
func (n *node) sleep(d time.Duration, early <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-n.ctx.Done():
	}
}
