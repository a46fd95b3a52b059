// Package proxy simulates a bad network between real sockets. A [Proxy] is a UDP proxy that
// any program can dial. [Impair] wraps the socket of one client in this process.
//
//	client  --->  proxy  --->  server        each direction is a netsim.Link
//	        <---         <---
//
// A proxy opens a socket of its own for every client address, so that the server sees
// different clients at different addresses.
//
// Clients dial the proxy, so their connect tokens name the proxy's address. A server with driver.Netcode, the default
// link, must therefore have the proxy's address in driver.Netcode.Addrs. Otherwise it takes the tokens for another
// server's and doesn't answer.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/setting"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Config has the settings of a Proxy.
type Config struct {
	// Listen is the address that clients dial. To is the server's. Both are host:port.
	Listen, To string
	// Up is the network from clients to the server, Down the one back. Each client has its own links, so Bandwidth is that of
	// each client.
	Up, Down netsim.Settings
	// Seed determines the random decisions of the links.
	Seed uint64
	// MaxClients bounds the clients at a time. Datagrams of further clients are dropped and counted in Refused. 1 to 1048576, default 1024.
	MaxClients int
	// IdleTimeout is how long the proxy remembers a client after its last datagram: 1 ms to 100 years. Default 30 s.
	IdleTimeout time.Duration
}

// Counters counts what a Proxy did.
type Counters struct {
	Up, Down      netsim.Counters // of the links of all clients, also of those that have gone
	Clients       int
	Refused, Lost uint64 // datagrams of clients beyond MaxClients; datagrams that the system refused to send
}

// Proxy simulates a bad network between clients and a server. Use it in one goroutine.
type Proxy struct {
	cfg     Config
	front   udp.Socket
	to      netip.AddrPort
	epoch   time.Time
	clients []*client // in the order they came
	byAddr  map[netip.AddrPort]*client
	gone    Counters
	seed    uint64
	in, out []udp.Message
}

type client struct {
	addr     netip.AddrPort
	back     udp.Socket
	up, down *netsim.Link
	heard    time.Duration
}

var errConfig = errors.New("proxy")

// New opens a proxy. Nothing passes until Run, or Step, is called. It returns an error for wrong settings, or when the system can't open the socket.
func New(cfg Config) (*Proxy, error) {
	cfg.MaxClients, cfg.IdleTimeout = cmp.Or(cfg.MaxClients, 1024), cmp.Or(cfg.IdleTimeout, 30*time.Second)
	if err := setting.First(
		setting.Within(errConfig, "MaxClients", cfg.MaxClients, 1, 1<<20),
		setting.Within(errConfig, "IdleTimeout", cfg.IdleTimeout, time.Millisecond, setting.Longest)); err != nil {
		return nil, err
	}
	if err := validate(&cfg.Up, &cfg.Down); err != nil {
		return nil, err
	}
	to, err := net.ResolveUDPAddr("udp", cfg.To)
	if err == nil && to.Port == 0 {
		err = errors.New("it has no port")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: To %q: %w", errConfig, cfg.To, err)
	}
	front, err := udp.Listen(cfg.Listen, udp.Config{})
	if err != nil {
		return nil, fmt.Errorf("%w: Listen %q: %w", errConfig, cfg.Listen, err)
	}
	ap := to.AddrPort()
	p := &Proxy{cfg: cfg, front: front, to: netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), epoch: time.Now(),
		byAddr: map[netip.AddrPort]*client{}, seed: cfg.Seed, in: room(32), out: make([]udp.Message, 1)}
	return p, nil
}

// room is for n datagrams of any size. Only the pages that are used take memory.
func room(n int) []udp.Message {
	const largest = 1 << 16
	msgs, buf := make([]udp.Message, n), make([]byte, n*largest)
	for i := range msgs {
		msgs[i].Buf, buf = buf[:largest:largest], buf[largest:]
	}
	return msgs
}

// validate returns what is wrong with the settings of either way.
func validate(up, down *netsim.Settings) error {
	if err := up.Validate(); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	if err := down.Validate(); err != nil {
		return fmt.Errorf("down: %w", err)
	}
	return nil
}

// LocalAddr returns the address that clients dial.
func (p *Proxy) LocalAddr() netip.AddrPort { return p.front.LocalAddr() }

// Run forwards datagrams until ctx is done, then closes the proxy.
func (p *Proxy) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := p.Step(time.Now()); err != nil {
			return errors.Join(err, p.Close())
		}
		if err := p.wait(); err != nil {
			return errors.Join(err, p.Close())
		}
	}
	return p.Close()
}

// wait sleeps until something comes from a client, at most a millisecond: what comes from the
// server is on other sockets.
func (p *Proxy) wait() error {
	if err := p.front.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return err
	}
	n, err := p.front.ReadBatch(p.in)
	p.fromClients(time.Since(p.epoch), n)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !udp.IsTemporary(err) && !isTimeout(err) {
		return err
	}
	return nil
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// maxBatches bounds what one Step reads from a socket; the next one takes in the rest.
const maxBatches = 256

// Step reads the datagrams that have arrived and sends those that are due.
func (p *Proxy) Step(now time.Time) error {
	at := now.Sub(p.epoch)
	for range maxBatches {
		n, err := p.front.TryReadBatch(p.in)
		p.fromClients(at, n)
		if err != nil && !udp.IsTemporary(err) {
			return err
		}
		if n < len(p.in) {
			break
		}
	}
	kept := p.clients[:0]
	for _, c := range p.clients {
		if at-c.heard > p.cfg.IdleTimeout {
			p.forget(c)
			continue
		}
		kept = append(kept, c)
		p.carry(at, c)
	}
	clear(p.clients[len(kept):])
	p.clients = kept
	return nil
}

func (p *Proxy) fromClients(at time.Duration, n int) {
	for i := range p.in[:n] {
		m := &p.in[i]
		c := p.byAddr[m.Addr]
		if c == nil {
			if c = p.admit(m.Addr); c == nil {
				p.gone.Refused++
				continue
			}
		}
		c.heard = at
		c.up.Push(at, m.Data())
	}
}

func (p *Proxy) admit(addr netip.AddrPort) *client {
	if len(p.clients) >= p.cfg.MaxClients {
		return nil
	}
	local := ":0"
	if p.to.Addr().IsLoopback() {
		local = net.JoinHostPort(p.to.Addr().String(), "0")
	}
	back, err := udp.Listen(local, udp.Config{NoOffload: true}) // there may be a thousand
	if err != nil {
		return nil
	}
	c := &client{addr: addr, back: back}
	p.seed += 2
	c.up, err = netsim.NewLink(p.cfg.Up, p.seed)
	if err == nil {
		c.down, err = netsim.NewLink(p.cfg.Down, p.seed+1)
	}
	if err != nil { // validated by New
		panic(err)
	}
	p.clients = append(p.clients, c)
	p.byAddr[addr] = c
	return c
}

func (p *Proxy) carry(at time.Duration, c *client) {
	for range maxBatches {
		n, err := c.back.TryReadBatch(p.in)
		for i := range p.in[:n] {
			if p.in[i].Addr == p.to {
				c.down.Push(at, p.in[i].Data())
			}
		}
		if n < len(p.in) || err != nil {
			break
		}
	}
	for b, ok := c.up.Pop(at); ok; b, ok = c.up.Pop(at) {
		p.send(c.back, p.to, b)
	}
	for b, ok := c.down.Pop(at); ok; b, ok = c.down.Pop(at) {
		p.send(p.front, c.addr, b)
	}
}

func (p *Proxy) send(s udp.Socket, to netip.AddrPort, b []byte) {
	p.out[0] = udp.Message{Buf: b, Addr: to}
	if n, err := s.WriteBatch(p.out); n == 0 || err != nil {
		p.gone.Lost++
	}
}

func (p *Proxy) forget(c *client) {
	add(&p.gone.Up, &c.up.Counters)
	add(&p.gone.Down, &c.down.Counters)
	delete(p.byAddr, c.addr)
	_ = c.back.Close() // only its descriptor matters
}

func add(a, b *netsim.Counters) {
	a.Pushed += b.Pushed
	a.Passed += b.Passed
	a.Lost += b.Lost
	a.BurstLost += b.BurstLost
	a.TooBig += b.TooBig
	a.QueueFull += b.QueueFull
	a.Duplicated += b.Duplicated
	a.Reordered += b.Reordered
	a.Corrupted += b.Corrupted
	a.BytesPushed += b.BytesPushed
	a.BytesPassed += b.BytesPassed
}

// Set changes the links of all clients for datagrams from now on. If it returns an error, nothing changes. With a Loss of 100 nothing gets through.
func (p *Proxy) Set(up, down netsim.Settings) error {
	if err := validate(&up, &down); err != nil {
		return err
	}
	p.cfg.Up, p.cfg.Down = up, down
	for _, c := range p.clients {
		if err := errors.Join(c.up.Set(up), c.down.Set(down)); err != nil {
			return err
		}
	}
	return nil
}

// Counters returns what the proxy has done so far.
func (p *Proxy) Counters() Counters {
	sum := p.gone
	for _, c := range p.clients {
		add(&sum.Up, &c.up.Counters)
		add(&sum.Down, &c.down.Counters)
	}
	sum.Clients = len(p.clients)
	return sum
}

// Close closes the proxy's sockets.
func (p *Proxy) Close() error {
	for _, c := range p.clients {
		p.forget(c)
	}
	p.clients = nil
	return p.front.Close()
}
