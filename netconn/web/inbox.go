package web

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/readwait"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

const (
	// maxDatagram is the largest datagram in bytes, that of the driver.
	maxDatagram = 1500
	// batchSize is how many datagrams a call handles at most.
	batchSize = 64
	// maxFree bounds the buffers that are kept to be used again.
	maxFree = 256
)

// inbox is datagrams that came and wait to be read: a bounded queue between the goroutines that receive and the one that reads. It is the reading half
// of a udp.Socket.
type inbox struct {
	wait *readwait.Wait

	mu       sync.Mutex
	woken    func()
	err      error // of every read from now on
	ring     []unread
	first, n int
	bytes    int
	maxBytes int
	lent     [][]byte // in the hands of the reader until the next read
	free     [][]byte
}

// unread is a datagram that waits.
type unread struct {
	from *source
	p    []byte
}

// source is where datagrams come from.
type source struct {
	addr netip.AddrPort
	n    int // unread ones; guarded by the inbox
	most int
}

func newInbox(count, bytes int) *inbox {
	return &inbox{wait: readwait.New(), ring: make([]unread, count), maxBytes: bytes}
}

// buffer is room for a datagram.
func (b *inbox) buffer() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		p := b.free[n-1]
		b.free = b.free[:n-1]
		return p[:maxDatagram]
	}
	return make([]byte, maxDatagram)
}

// release takes back a buffer.
func (b *inbox) release(p []byte) {
	if cap(p) >= maxDatagram && len(b.free) < maxFree {
		b.free = append(b.free, p)
	}
}

// put keeps a datagram, and its memory, until it is read; false when there is no room for it.
func (b *inbox) put(from *source, p []byte) bool {
	b.mu.Lock()
	if b.err != nil || b.n == len(b.ring) || b.bytes+len(p) > b.maxBytes || from.n == from.most {
		b.release(p)
		b.mu.Unlock()
		return false
	}
	b.ring[(b.first+b.n)%len(b.ring)] = unread{from, p}
	b.n++
	b.bytes += len(p)
	from.n++
	woken := b.woken
	b.mu.Unlock()
	b.wait.Signal()
	if woken != nil {
		woken()
	}
	return true
}

// fail has reads return an error once what waits is read, or at once when it is net.ErrClosed, and reports whether it is the first: that one counts.
func (b *inbox) fail(err error) (first bool) {
	b.mu.Lock()
	if first = b.err == nil; first {
		b.err = err
	}
	if err == net.ErrClosed {
		b.ring, b.free, b.first, b.n, b.bytes, b.err = nil, nil, 0, 0, 0, err
	}
	woken := b.woken
	b.mu.Unlock()
	b.wait.Signal()
	if woken != nil {
		woken()
	}
	return first
}

// failed is the error that the socket has failed with, or nil.
func (b *inbox) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// TryReadBatch implements udp.Socket.
func (b *inbox) TryReadBatch(msgs []udp.Message) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range b.lent {
		b.release(p)
		b.lent[i] = nil
	}
	b.lent = b.lent[:0]
	if b.n == 0 {
		return 0, b.err
	}
	n := min(len(msgs), b.n)
	for i := range msgs[:n] {
		u := &b.ring[b.first]
		msgs[i].Addr = u.from.addr
		msgs[i].Lend(u.p[:min(len(u.p), len(msgs[i].Buf))])
		b.lent = append(b.lent, u.p)
		b.bytes -= len(u.p)
		u.from.n--
		*u = unread{}
		b.first = (b.first + 1) % len(b.ring)
	}
	b.n -= n
	return n, nil
}

// ReadBatch implements udp.Socket.
func (b *inbox) ReadBatch(msgs []udp.Message) (int, error) {
	return b.wait.Read(func() (int, error) { return b.TryReadBatch(msgs) })
}

// SetReadDeadline implements udp.Socket.
func (b *inbox) SetReadDeadline(t time.Time) error {
	b.wait.SetDeadline(t)
	return nil
}

// BatchSize implements udp.Socket.
func (b *inbox) BatchSize() int { return batchSize }
