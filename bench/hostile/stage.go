package main

import (
	"net"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// stage is a network in memory on which anyone may send from any address. It belongs to one goroutine.
type stage struct {
	ports map[netip.AddrPort]*port
	// balance is bytes in less bytes out of the server, by address without a port, since the last tick.
	balance  map[netip.AddrPort]int
	in, out  uint64 // bytes from and to such addresses
	answered uint64 // datagrams to them
	worst    int    // the most negative balance seen
	byLot    bool   // an address gets no more than it sent on average only: the balance of all is judged
	tapped   netip.AddrPort
	tap      [][]byte // what was sent from there
}

const maxTap = 2048

func newStage() *stage {
	return &stage{ports: map[netip.AddrPort]*port{}, balance: map[netip.AddrPort]int{}}
}

// port is a socket on the stage.
type port struct {
	stage *stage
	addr  netip.AddrPort
	queue []datagram
	head  int
	free  [][]byte
}

type datagram struct {
	from netip.AddrPort
	p    []byte
}

func (s *stage) listen(addr netip.AddrPort) *port {
	p := &port{stage: s, addr: addr}
	s.ports[addr] = p
	return p
}

// push queues a datagram at a port.
func (p *port) push(from netip.AddrPort, b []byte) {
	var buf []byte
	if n := len(p.free); n > 0 {
		buf, p.free = p.free[n-1][:0], p.free[:n-1]
	} else {
		buf = make([]byte, 0, 1500)
	}
	p.queue = append(p.queue, datagram{from, append(buf, b...)})
}

// hostile sends a datagram to a server from whatever address.
func (s *stage) hostile(to *port, from netip.AddrPort, b []byte) {
	if s.ports[from] == nil {
		s.balance[from] += len(b)
		s.in += uint64(len(b))
	}
	to.push(from, b)
}

// carried is how many bytes of packets from before an attack restart requests may answer: eight of the largest handshake packets, 128 B each.
const carried = 1024

// settle looks whether a stranger got more bytes than he sent.
func (s *stage) settle() {
	if s.byLot {
		clear(s.balance)
		s.worst = min(s.worst, int(s.in)-int(s.out)+carried)
	}
	for _, n := range s.balance {
		s.worst = min(s.worst, n)
	}
	clear(s.balance)
}

// TryReadBatch implements udp.Socket.
func (p *port) TryReadBatch(msgs []udp.Message) (n int, err error) {
	for n < len(msgs) && p.head < len(p.queue) {
		d := &p.queue[p.head]
		msgs[n].N, msgs[n].Addr = copy(msgs[n].Buf, d.p), d.from
		p.free = append(p.free, d.p)
		*d = datagram{}
		n, p.head = n+1, p.head+1
	}
	if p.head == len(p.queue) {
		p.queue, p.head = p.queue[:0], 0
	}
	return n, nil
}

// ReadBatch implements udp.Socket; nothing here waits.
func (p *port) ReadBatch(msgs []udp.Message) (int, error) { return p.TryReadBatch(msgs) }

// WriteBatch implements udp.Socket.
func (p *port) WriteBatch(msgs []udp.Message) (int, error) {
	s := p.stage
	for _, m := range msgs {
		if p.addr == s.tapped && len(s.tap) < maxTap {
			s.tap = append(s.tap, append([]byte(nil), m.Buf...))
		}
		if to := s.ports[m.Addr]; to != nil {
			to.push(p.addr, m.Buf)
			continue
		}
		s.balance[m.Addr] -= len(m.Buf)
		s.out += uint64(len(m.Buf))
		s.answered++
	}
	return len(msgs), nil
}

// BatchSize implements udp.Socket.
func (*port) BatchSize() int { return 64 }

// LocalAddr implements udp.Socket.
func (p *port) LocalAddr() netip.AddrPort { return p.addr }

// SetReadDeadline implements udp.Socket.
func (*port) SetReadDeadline(time.Time) error { return nil }

// Close implements udp.Socket.
func (p *port) Close() error {
	if p.stage.ports[p.addr] != p {
		return net.ErrClosed
	}
	delete(p.stage.ports, p.addr)
	return nil
}
