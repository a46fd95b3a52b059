package main

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// cuts is what a server is cut off from: whom it doesn't reach, and who doesn't reach it.
type cuts struct {
	To, From reach
}

// reach is one direction of that.
type reach struct {
	All     bool
	Store   bool
	Servers []int // numbers
}

func (r *reach) server(number int) bool { return r.All || slices.Contains(r.Servers, number) }
func (r *reach) store() bool            { return r.All || r.Store }
func (r *reach) some() bool             { return r.All || r.Store || len(r.Servers) > 0 }

// cutSocket is a UDP socket that loses what it sends, or what it receives, while that is cut.
type cutSocket struct {
	udp.Socket
	to, from func() bool
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
	if s.from() {
		return 0
	}
	return n
}

func (s cutSocket) WriteBatch(msgs []udp.Message) (int, error) {
	if s.to() {
		return len(msgs), nil
	}
	return s.Socket.WriteBatch(msgs)
}

// cutDialer makes TCP connections through which nothing comes in a direction while that is cut. One that was cut ends when it is whole again.
type cutDialer struct {
	to, from atomic.Bool

	mu    sync.Mutex
	conns map[*cutConn]bool
}

type cutConn struct {
	net.Conn
	d *cutDialer
}

// Dial implements nats.CustomDialer.
func (d *cutDialer) Dial(network, address string) (net.Conn, error) {
	if d.to.Load() || d.from.Load() {
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
func (d *cutDialer) set(to, from bool) {
	if d.to.Load() && !to || d.from.Load() && !from {
		d.mu.Lock()
		for c := range d.conns {
			_ = c.Conn.Close() // what it would have carried is lost
		}
		clear(d.conns)
		d.mu.Unlock()
	}
	d.to.Store(to)
	d.from.Store(from)
}

func (c *cutConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.d.from.Load() {
			return n, err
		}
	}
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.d.to.Load() {
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
