package simtest

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// inboxPackets bounds what waits unread in a socket; more is lost. The batch is small, so that there are several.
const (
	inboxPackets = 2048
	socketBatch  = 16
)

var errSocketClosed = errors.New("simtest: socket closed")

// Socket is a UDP socket of a host. It implements udp.Socket and never blocks.
type Socket struct {
	host          *Host
	local, public netip.AddrPort
	inbox         []udp.Message
	free          [][]byte
	closed        bool
}

// Listen opens a socket at a port. It returns an error if the port is in use.
func (h *Host) Listen(port uint16) (*Socket, error) {
	addr := netip.AddrPortFrom(h.ip, port)
	if h.world.net.sockets[addr] != nil {
		return nil, fmt.Errorf("simtest: %v is in use", addr)
	}
	s := &Socket{host: h, local: addr, public: addr}
	h.sockets = append(h.sockets, s)
	h.world.net.sockets[addr] = s
	return s, nil
}

// Open opens a socket at a port that wasn't used before.
func (h *Host) Open() *Socket {
	s, err := h.Listen(h.port())
	if err != nil {
		panic(err) // 55000 sockets later
	}
	return s
}

// TryReadBatch implements udp.Socket.
func (s *Socket) TryReadBatch(msgs []udp.Message) (int, error) {
	if s.closed {
		return 0, errSocketClosed
	}
	n := min(len(msgs), len(s.inbox))
	for i := range n {
		m := &s.inbox[i]
		msgs[i].N, msgs[i].Addr = copy(msgs[i].Buf, m.Buf), m.Addr
		s.free = append(s.free, m.Buf[:0])
	}
	rest := copy(s.inbox, s.inbox[n:])
	clear(s.inbox[rest:])
	s.inbox = s.inbox[:rest]
	return n, nil
}

// SendsWhole says that a datagram above a link's MTU is lost; see udp.SendsWhole.
func (s *Socket) SendsWhole() bool { return true }

// ReadBatch implements udp.Socket. It never blocks, because nothing arrives during a tick.
func (s *Socket) ReadBatch(msgs []udp.Message) (int, error) { return s.TryReadBatch(msgs) }

// WriteBatch implements udp.Socket.
func (s *Socket) WriteBatch(msgs []udp.Message) (int, error) {
	if s.closed {
		return 0, errSocketClosed
	}
	for i := range msgs {
		s.host.world.net.send(s, msgs[i].Addr, msgs[i].Buf)
	}
	return len(msgs), nil
}

// BatchSize implements udp.Socket.
func (s *Socket) BatchSize() int { return socketBatch }

// LocalAddr implements udp.Socket. It returns the address that the host itself knows.
func (s *Socket) LocalAddr() netip.AddrPort { return s.local }

// PublicAddr returns the address that other hosts see.
func (s *Socket) PublicAddr() netip.AddrPort { return s.public }

// SetReadDeadline implements udp.Socket. It does nothing, because nothing blocks.
func (s *Socket) SetReadDeadline(time.Time) error { return nil }

// Close implements udp.Socket.
func (s *Socket) Close() error {
	s.close()
	h := s.host
	for i, other := range h.sockets {
		if other == s {
			h.sockets = append(h.sockets[:i], h.sockets[i+1:]...)
			break
		}
	}
	return nil
}

func (s *Socket) close() {
	s.closed = true
	if net := &s.host.world.net; net.sockets[s.public] == s {
		delete(net.sockets, s.public)
	}
}

func (s *Socket) receive(from netip.AddrPort, p []byte) bool {
	if len(s.inbox) >= inboxPackets {
		return false
	}
	var b []byte
	if n := len(s.free); n > 0 {
		b, s.free = s.free[n-1], s.free[:n-1]
	}
	s.inbox = append(s.inbox, udp.Message{Buf: append(b, p...), Addr: from})
	return true
}

var _ udp.Socket = (*Socket)(nil)
