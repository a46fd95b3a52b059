package udp

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/readwait"
)

// Pair returns two sockets in memory, with addresses a and b. Each is the other's only peer.
// Datagrams arrive in order; one that finds 1024 unread is lost.
func Pair(a, b netip.AddrPort) (Socket, Socket) { return pair(a, b) }

func pair(a, b netip.AddrPort) (x, y *memory) {
	x = &memory{addr: a, closed: make(chan struct{}), wait: readwait.New()}
	y = &memory{addr: b, closed: make(chan struct{}), wait: readwait.New()}
	x.peer, y.peer, x.from, y.from = y, x, b, a
	return x, y
}

type memory struct {
	addr   netip.AddrPort
	peer   *memory
	closed chan struct{}
	close  sync.Once
	woken  func() // called for what arrives; may be nil
	wait   *readwait.Wait
	any    bool // its peer has every address that something is sent to

	mu       sync.Mutex
	from     netip.AddrPort // its peer's
	unread   [][]byte       // a ring, whose buffers are used again
	first, n int
}

// maxUnread is the datagrams that wait to be read at most.
const maxUnread = 1024

func (m *memory) LocalAddr() netip.AddrPort { return m.addr }
func (m *memory) BatchSize() int            { return batchSize }

// SendsWhole is for the function of that name.
func (m *memory) SendsWhole() bool { return true }

func (m *memory) Close() error {
	m.close.Do(func() { close(m.closed) })
	m.wait.Signal()
	return nil
}

// Has implements Side.
func (m *memory) Has(addr netip.AddrPort) bool { return addr == m.peer.addr }

// OnArrival implements Side.
func (m *memory) OnArrival(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.woken = f
}

func (m *memory) SetReadDeadline(t time.Time) error {
	m.wait.SetDeadline(t)
	return nil
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
	return m.wait.Read(func() (int, error) { return m.TryReadBatch(msgs) })
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
	m.wait.Signal()
	if woken != nil {
		woken()
	}
}
