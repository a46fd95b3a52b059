package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/bench/internal/tunnel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// network is the bad network of one measurement: a UDP proxy, or for TCP a tunnel.
type network struct {
	set  netsim.Settings
	seed uint64
	tun  *tunnel.Tunnel

	stop func()
	mu   sync.Mutex
	sum  proxy.Counters
}

func newNetwork(p *Peer, set netsim.Settings, seed uint64) (*network, error) {
	n := &network{set: set, seed: seed, stop: func() {}}
	if !p.TCP {
		return n, nil
	}
	t, err := tunnel.New(set, seed)
	n.tun = t
	return n, err
}

// connect starts a server and a client with the network between them.
func (n *network) connect(p *Peer, o Options, server, client Handler) (Conn, func(), error) {
	if n.tun != nil {
		return n.connectTunnel(p, o, server, client)
	}
	s, err := p.Listen(o, server)
	if err != nil {
		return nil, nil, err
	}
	px, err := proxy.New(proxy.Config{Listen: "127.0.0.1:0", To: s.Addr(), Up: n.set, Down: n.set, Seed: n.seed})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	addr := px.LocalAddr().String()
	go n.carry(ctx, px, done)
	n.stop = func() { cancel(); <-done }
	c, err := p.dial(addr, o, client)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return c, func() { _, _ = c.Close(), s.Close() }, nil // both have done their work
}

// connectTunnel starts the two in their namespaces.
func (n *network) connectTunnel(p *Peer, o Options, server, client Handler) (c Conn, stop func(), err error) {
	var s Server
	o.Addr = tunnel.ServerAddr
	n.tun.Server(func() { s, err = p.Listen(o, server) })
	if err != nil {
		return nil, nil, err
	}
	n.tun.Client(func() { c, err = p.Dial(s.Addr(), o, client) })
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return c, func() { _, _ = c.Close(), s.Close() }, nil // both have done their work
}

// carry steps the proxy more often than its own loop would, so that it adds little to the delay.
func (n *network) carry(ctx context.Context, px *proxy.Proxy, done chan struct{}) {
	defer close(done)
	defer px.Close()
	for ctx.Err() == nil {
		if px.Step(time.Now()) != nil {
			return
		}
		n.mu.Lock()
		n.sum = px.Counters()
		n.mu.Unlock()
		nap()
	}
}

// wireBytes is what both ends put on the wire so far, with IP and UDP headers.
func (n *network) wireBytes() uint64 {
	if n.tun != nil {
		return n.tun.Bytes()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sum.Up.BytesPushed + n.sum.Down.BytesPushed + ipHeader*(n.sum.Up.Pushed+n.sum.Down.Pushed)
}

func (n *network) close() {
	n.stop()
	if n.tun != nil {
		n.tun.Close()
	}
}
