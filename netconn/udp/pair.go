package udp

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Pair returns two sockets in memory that are each other's only peer. Datagrams arrive in
// order; one that finds 1024 unread is lost.
func Pair(a, b netip.AddrPort) (Socket, Socket) { return pair(a, b) }

func pair(a, b netip.AddrPort) (x, y *memory) {
	x = &memory{addr: a, arrived: make(chan struct{}, 1), closed: make(chan struct{}), wake: make(chan struct{}, 1)}
	y = &memory{addr: b, arrived: make(chan struct{}, 1), closed: make(chan struct{}), wake: make(chan struct{}, 1)}
	x.peer, y.peer, x.from, y.from = y, x, b, a
	return x, y
}

type memory struct {
	addr   netip.AddrPort
	peer   *memory
	closed chan struct{}
	close  sync.Once
	woken  func() // called for what arrives; may be nil
	any    bool   // its peer has every address that something is sent to

	arrived chan struct{} // there may be something to read
	wake    chan struct{} // the deadline has changed

	mu       sync.Mutex
	deadline time.Time
	from     netip.AddrPort // its peer's
	unread   [][]byte       // a ring, whose buffers are used again
	first, n int
}

// maxUnread is the datagrams that wait to be read at most.
const maxUnread = 1024

func (m *memory) LocalAddr() netip.AddrPort { return m.addr }
func (m *memory) BatchSize() int            { return batchSize }
func (m *memory) Close() error {
	m.close.Do(func() { close(m.closed) })
	return nil
}

// Has is Side's.
func (m *memory) Has(addr netip.AddrPort) bool { return addr == m.peer.addr }

// OnArrival is Side's.
func (m *memory) OnArrival(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.woken = f
}

func (m *memory) SetReadDeadline(t time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deadline = t
	signal(m.wake)
	return nil
}

// signal leaves word in a channel of one place.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (m *memory) isClosed() bool {
	select {
	case <-m.closed:
		return true
	default:
		return false
	}
}

func (m *memory) TryReadBatch(msgs []Message) (int, error) {
	if m.isClosed() {
		return 0, net.ErrClosed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(msgs), m.n)
	for i := range msgs[:n] {
		msgs[i].N = copy(msgs[i].Buf, m.unread[m.first])
		msgs[i].Addr, msgs[i].lent = m.from, nil
		m.first = (m.first + 1) % len(m.unread)
	}
	m.n -= n
	return n, nil
}

func (m *memory) ReadBatch(msgs []Message) (int, error) {
	for {
		m.mu.Lock()
		deadline := m.deadline
		m.mu.Unlock()
		if !deadline.IsZero() && !time.Now().Before(deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		if n, err := m.TryReadBatch(msgs); n > 0 || err != nil {
			return n, err
		}
		m.wait(deadline)
	}
}

// wait returns when there may be a datagram, at Close, at the deadline or when that is changed.
func (m *memory) wait(deadline time.Time) {
	var timeout <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-m.arrived:
	case <-m.closed:
	case <-timeout:
	case <-m.wake:
	}
}

func (m *memory) WriteBatch(msgs []Message) (int, error) {
	if m.isClosed() {
		return 0, net.ErrClosed
	}
	for i := range msgs {
		if m.any {
			m.mu.Lock()
			m.from = msgs[i].Addr
			m.mu.Unlock()
		} else if msgs[i].Addr != m.peer.addr {
			continue
		}
		if !m.peer.isClosed() {
			m.peer.put(msgs[i].Buf)
		}
	}
	return len(msgs), nil
}

// put keeps a datagram until it is read.
func (m *memory) put(datagram []byte) {
	m.mu.Lock()
	if m.n == maxUnread {
		m.mu.Unlock()
		return
	}
	if m.n == len(m.unread) {
		grown := make([][]byte, max(8, 2*len(m.unread)))
		k := copy(grown, m.unread[m.first:])
		copy(grown[k:], m.unread[:m.first])
		m.unread, m.first = grown, 0
	}
	at := &m.unread[(m.first+m.n)%len(m.unread)]
	*at = append((*at)[:0], datagram...)
	m.n++
	woken := m.woken
	m.mu.Unlock()
	signal(m.arrived)
	if woken != nil {
		woken()
	}
}
