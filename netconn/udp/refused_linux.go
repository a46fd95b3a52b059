package udp

import (
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// minWait and maxWait bound how many datagrams go out one by one after several as one were refused, before it is tried again:
	// twice as many after each refusal in a row.
	minWait = 512
	maxWait = 1 << 18
	// maxRefusing bounds the peers that are remembered; the oldest makes room.
	maxRefusing = 1024
	// refusedInARow is after how many peers' refusals in a row it is the machine's device that can't, and all wait.
	refusedInARow = 64
)

// backoff is how long something isn't tried, in datagrams.
type backoff struct{ wait, left int }

func (b *backoff) again() {
	b.wait = min(max(minWait, 2*b.wait), maxWait)
	b.left = b.wait
}

// waits counts a datagram and reports whether it was to wait.
func (b *backoff) waits() bool {
	if b.left <= 0 {
		return false
	}
	b.left--
	return true
}

// refusals is the peers to which several datagrams as one were refused: a path too narrow for them, or a device that can't. Whether it is the device
// shows when the first of them goes out by itself: to an address that a stranger forged, with port 0 say, that is refused as well.
type refusals struct {
	peers map[netip.AddrPort]*backoff
	order []netip.AddrPort // those of peers, the oldest first
	last  netip.AddrPort   // refused last, until one datagram to it has gone out
	row   int              // peers refused, that took one by one, since several as one were taken
	all   backoff
}

// concerns reports whether an error is about several as one, so that one by one is worth a try.
func concerns(errno syscall.Errno) bool {
	switch errno {
	case unix.EIO, unix.EOPNOTSUPP, unix.EINVAL, unix.EMSGSIZE:
		return true
	}
	return false
}

// add notes a refusal.
func (r *refusals) add(peer netip.AddrPort) {
	b := r.peers[peer]
	if b == nil {
		if r.peers == nil {
			r.peers = map[netip.AddrPort]*backoff{}
		}
		if len(r.order) == maxRefusing {
			r.forget(0)
		}
		b = &backoff{}
		r.peers[peer], r.order = b, append(r.order, peer)
	}
	b.again()
	r.last = peer
}

// tookOne notes that a datagram went out to a peer by itself.
func (r *refusals) tookOne(peer netip.AddrPort) {
	if peer != r.last {
		return
	}
	r.last = netip.AddrPort{}
	if r.row++; r.row >= refusedInARow {
		r.all.again()
	}
}

// taken notes that several as one went out to a peer.
func (r *refusals) taken(peer netip.AddrPort) {
	r.row, r.all = 0, backoff{}
	if r.peers[peer] != nil {
		r.forget(slices.Index(r.order, peer))
	}
}

// forget takes out the i-th of order.
func (r *refusals) forget(i int) {
	delete(r.peers, r.order[i])
	r.order = slices.Delete(r.order, i, i+1)
}

// wait counts a datagram to a peer, which others could go with, and reports whether it has to go by itself.
func (r *refusals) wait(peer netip.AddrPort) bool {
	if len(r.peers) == 0 {
		return false
	}
	if r.all.waits() {
		return true
	}
	b := r.peers[peer]
	return b != nil && b.waits()
}
