// Package mailbox has the bounded queues between goroutines that carry datagrams and the one that reads and writes a socket: sockets that are no
// system's are made of them.
package mailbox

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/readwait"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

const (
	// MaxDatagram is the largest datagram in bytes, that of the driver.
	MaxDatagram = 1500
	// BatchSize is how many datagrams a call handles at most.
	BatchSize = 64
	// maxFree bounds the buffers that are kept to be used again.
	maxFree = 256
)

// Inbox is datagrams that came and wait to be read: a bounded queue between the goroutines that receive and the one that reads.
type Inbox struct {
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
	from *Source
	p    []byte
}

// Source is where datagrams come from. Its fields are guarded by the Inbox.
type Source struct {
	addr     netip.AddrPort
	n, bytes int // unread ones
	most     int
}

// NewSource returns a source with an address that may have so many datagrams unread.
func NewSource(addr netip.AddrPort, most int) Source { return Source{addr: addr, most: most} }

// Addr returns the address given to NewSource; it is for sources whose address never changes.
func (s *Source) Addr() netip.AddrPort { return s.addr }

// NewInbox returns an empty one with room for so many datagrams, and bytes.
func NewInbox(count, bytes int) *Inbox {
	return &Inbox{wait: readwait.New(), ring: make([]unread, count), maxBytes: bytes}
}

// Buffer is room for a datagram.
func (b *Inbox) Buffer() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.free); n > 0 {
		p := b.free[n-1]
		b.free = b.free[:n-1]
		return p[:MaxDatagram]
	}
	return make([]byte, MaxDatagram)
}

// release takes back a buffer; b.mu is held.
func (b *Inbox) release(p []byte) {
	if cap(p) >= MaxDatagram && len(b.free) < maxFree {
		b.free = append(b.free, p)
	}
}

// few datagrams of a source are those of a tick. An eighth of an Inbox is for sources that have less unread.
const few = 4

// room reports whether there is room for n bytes more of a source's. A source that can't fill the Inbox alone leaves as much room as it takes, so that many have equal
// shares, and an eighth besides: of sources that come one after another each halves what is left. b.mu is held.
func (b *Inbox) room(from *Source, n int) bool {
	free, bytes := len(b.ring)-b.n, b.maxBytes-b.bytes
	if free == 0 || n > bytes || from.n >= from.most {
		return false
	}
	if from.most >= len(b.ring) || from.n < few {
		return true
	}
	return from.n < free-len(b.ring)/8 && from.bytes+n <= bytes-b.maxBytes/8
}

// Put keeps a datagram, and its memory, until it is read; false when there is no room for it.
func (b *Inbox) Put(from *Source, p []byte) bool {
	b.mu.Lock()
	if b.err != nil || !b.room(from, len(p)) {
		b.release(p)
		b.mu.Unlock()
		return false
	}
	b.ring[(b.first+b.n)%len(b.ring)] = unread{from, p}
	b.n++
	b.bytes += len(p)
	from.n++
	from.bytes += len(p)
	woken := b.woken
	b.mu.Unlock()
	b.wait.Signal()
	if woken != nil {
		woken()
	}
	return true
}

// Fail has reads return an error once what waits is read, or at once when it is net.ErrClosed, and reports whether it is the first: that one counts.
func (b *Inbox) Fail(err error) (first bool) {
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

// Failed is the error that the socket has failed with, or nil.
func (b *Inbox) Failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *Inbox) tryRead(msgs []udp.Message) (int, error) {
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
		u.from.bytes -= len(u.p)
		*u = unread{}
		b.first = (b.first + 1) % len(b.ring)
	}
	b.n -= n
	return n, nil
}

// Redirect gives a source another address, also for what it has unread.
func (b *Inbox) Redirect(from *Source, addr netip.AddrPort) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from.addr = addr
}

// Allow lets a source have so many datagrams unread from now on.
func (b *Inbox) Allow(from *Source, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from.most = most
}

// OnArrival sets a function that is called after a datagram has come that can be read, or an error.
func (b *Inbox) OnArrival(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.woken = f
}

// Reader is the reading half of a udp.Socket.
type Reader struct{ in *Inbox }

// Reader returns the half that reads this Inbox.
func (b *Inbox) Reader() Reader { return Reader{b} }

// TryReadBatch implements udp.Socket.
func (r Reader) TryReadBatch(msgs []udp.Message) (int, error) { return r.in.tryRead(msgs) }

// ReadBatch implements udp.Socket.
func (r Reader) ReadBatch(msgs []udp.Message) (int, error) {
	return r.in.wait.Read(func() (int, error) { return r.in.tryRead(msgs) })
}

// SetReadDeadline implements udp.Socket.
func (r Reader) SetReadDeadline(t time.Time) error {
	r.in.wait.SetDeadline(t)
	return nil
}

// BatchSize implements udp.Socket.
func (r Reader) BatchSize() int { return BatchSize }
