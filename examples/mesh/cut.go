package main

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// cutSocket is a UDP socket that loses everything while it is cut.
type cutSocket struct {
	udp.Socket
	cut func() bool
}

func (s cutSocket) ReadBatch(msgs []udp.Message) (int, error) {
	n, err := s.Socket.ReadBatch(msgs)
	return s.lose(n), err
}

func (s cutSocket) TryReadBatch(msgs []udp.Message) (int, error) {
	n, err := s.Socket.TryReadBatch(msgs)
	return s.lose(n), err
}

func (s cutSocket) lose(n int) int {
	if s.cut() {
		return 0
	}
	return n
}

func (s cutSocket) WriteBatch(msgs []udp.Message) (int, error) {
	if s.cut() {
		return len(msgs), nil
	}
	return s.Socket.WriteBatch(msgs)
}

// cutDialer makes TCP connections through which nothing comes while they are cut. One that was cut ends when it is whole again.
type cutDialer struct {
	cut atomic.Bool

	mu    sync.Mutex
	conns map[*cutConn]bool
}

type cutConn struct {
	net.Conn
	d *cutDialer
}

// Dial implements nats.CustomDialer.
func (d *cutDialer) Dial(network, address string) (net.Conn, error) {
	if d.cut.Load() {
		return nil, net.UnknownNetworkError("cut off")
	}
	c, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns == nil {
		d.conns = map[*cutConn]bool{}
	}
	cut := &cutConn{c, d}
	d.conns[cut] = true
	return cut, nil
}

// set cuts, or ends that.
func (d *cutDialer) set(cut bool) {
	if d.cut.Swap(cut) == cut || cut {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		_ = c.Conn.Close() // what it would have carried is lost
	}
	clear(d.conns)
}

func (c *cutConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.d.cut.Load() {
			return n, err
		}
	}
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.d.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Close() error {
	c.d.mu.Lock()
	delete(c.d.conns, c)
	c.d.mu.Unlock()
	return c.Conn.Close()
}
