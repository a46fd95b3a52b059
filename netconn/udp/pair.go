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
func Pair(a, b netip.AddrPort) (Socket, Socket) {
	x := &memory{addr: a, in: make(chan Message, 1024), closed: make(chan struct{}), wake: make(chan struct{}, 1)}
	y := &memory{addr: b, in: make(chan Message, 1024), closed: make(chan struct{}), wake: make(chan struct{}, 1)}
	x.peer, y.peer = y, x
	return x, y
}

type memory struct {
	addr     netip.AddrPort
	peer     *memory
	in       chan Message
	closed   chan struct{}
	close    sync.Once
	mu       sync.Mutex
	deadline time.Time
	wake     chan struct{} // the deadline has changed
}

func (m *memory) LocalAddr() netip.AddrPort { return m.addr }
func (m *memory) BatchSize() int            { return batchSize }
func (m *memory) Close() error {
	m.close.Do(func() { close(m.closed) })
	return nil
}

func (m *memory) SetReadDeadline(t time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deadline = t
	select {
	case m.wake <- struct{}{}:
	default:
	}
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
	for i := range msgs {
		select {
		case d := <-m.in:
			msgs[i].N = copy(msgs[i].Buf, d.Buf)
			msgs[i].Addr, msgs[i].lent = d.Addr, nil
		default:
			return i, nil
		}
	}
	return len(msgs), nil
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
		if n, done, err := m.waitUntil(deadline, msgs); done {
			return n, err
		}
	}
}

// waitUntil waits for a datagram, Close or the deadline; done is false when the deadline was changed meanwhile.
func (m *memory) waitUntil(deadline time.Time, msgs []Message) (n int, done bool, err error) {
	var timeout <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case d := <-m.in:
		msgs[0].N = copy(msgs[0].Buf, d.Buf)
		msgs[0].Addr, msgs[0].lent = d.Addr, nil
		n, err := m.TryReadBatch(msgs[1:])
		return n + 1, true, err
	case <-m.closed:
		return 0, true, net.ErrClosed
	case <-timeout:
		return 0, true, os.ErrDeadlineExceeded
	case <-m.wake:
		return 0, false, nil
	}
}

func (m *memory) WriteBatch(msgs []Message) (int, error) {
	if m.isClosed() {
		return 0, net.ErrClosed
	}
	for i := range msgs {
		if msgs[i].Addr != m.peer.addr || m.peer.isClosed() {
			continue // nobody there
		}
		select {
		case m.peer.in <- Message{Buf: append([]byte(nil), msgs[i].Buf...), Addr: m.addr}:
		default:
		}
	}
	return len(msgs), nil
}
