package main

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// setting is one of our peers.
type setting struct {
	name, note string
	copies     int
	adaptive   bool
	secure     bool
	coding     netconn.Coding
	sweep      *sweepSetting // of W6, instead of W2's own
}

func ourPeers() []*Peer {
	var all []*Peer
	for _, s := range []setting{
		{name: "bunchnet", note: "each packet repeats the last two's unacked bunches", copies: 2},
		{name: "bunchnet-nc", note: "the same over netcode: encrypted, authenticated", copies: 2, secure: true},
		{name: "bunchnet-ad", note: "adaptive redundancy, 8 copies at most", copies: 8, adaptive: true},
		{name: "bunchnet-1", note: "repeats the last packet's", copies: 1},
		{name: "bunchnet-0", note: "no redundancy: naks and tail probes"},
		{name: "bunchnet-c1", note: "coding: a repair symbol a packet", coding: netconn.Coding{Repairs: 1}},
		{name: "bunchnet-c2", note: "coding: two", coding: netconn.Coding{Repairs: 2}},
		{name: "bunchnet-ca", note: "coding: as the loss asks for, three at most", coding: netconn.Coding{Repairs: 3, Adaptive: true}},
	} {
		all = append(all, &Peer{Name: s.name, Note: s.note, Reliable: true, Unreliable: true, Ticks: true, LatencyOnly: s.coding.Repairs > 0, Listen: s.listen, Dial: s.dial})
	}
	return all
}

var (
	oursName = bunch.Name{Index: 100}
	oursKey  = netcode.Key{7}
)

const (
	oursID    = 1
	oursSlots = 10_000
)

// config is what both ends have in common. Messages go out when they are written, or with Options.Batch at the ticks of a
// game, so that a packet carries several.
func (s setting) config(o Options) driver.Config {
	c := driver.Config{
		Redundancy: netconn.Redundancy{Copies: s.copies, Adaptive: s.adaptive},
		AckDelay:   25 * time.Millisecond, TickRate: 60, Prompt: true, MaxConns: 10_000, NoPacketInfo: true, ReorderWindow: 20 * time.Millisecond,
	}
	c.Link = driver.PlainUnreal51() // those that are secure set their own
	c.Protocol = netconn.Bunchnet()
	c.Protocol.Bunch.MaxPacket = 1400 // as its peers
	if s.secure {
		c.Protocol.Bunch.MaxPacket = netcode.MaxPayload
	}
	if s.coding.Repairs > 0 { // not over Unreal's wire
		c.Link, c.Coding = driver.PlainSalted{ProtocolID: oursID}, s.coding
		c.Protocol.Bunch.MaxPacket, c.MaxConns = 1200, 1000 // what that link carries
	}
	switch {
	case o.Rate == 0:
		c.AckDelay, c.Redundancy, c.MaxMemory = 0, netconn.Redundancy{}, fastMemory
		if s.sweep != nil {
			c.AckDelay, c.TickRate, c.Prompt = s.sweep.ackDelay, s.sweep.tickRate, s.sweep.prompt
		}
	case o.Batch:
		c.TickRate = batchRate
	case o.Together:
		c.AckDelay, c.ReorderWindow = 0, 0
	}
	if o.Many { // acks ride on the next packet
		c.Prompt, c.AckDelay, c.ReorderWindow = false, 50*time.Millisecond, 0
		c.Protocol = netconn.Bunchnet()
		c.TickRate = ticksAPacket * o.Rate
	}
	if o.Unreliable {
		c.Redundancy = netconn.Redundancy{}
	}
	return c
}

// ticksAPacket is a server's ticks for each packet of a client, of which it has many.
const ticksAPacket = 2

// fastMemory is what netconn.Config.MaxMemory asks for on servers that take much of one client from far away.
const fastMemory = 32 << 20

// single reports whether a message is a bunch of its own.
func (o Options) single() bool { return o.Unreliable || o.Rate > 0 && !o.Batch && !o.Together }

// serverChannels is the channels of a driver, whose connections share a buffer.
func (o Options) serverChannels(h Handler) []channel.Type {
	msg := make([]byte, maxMessage)
	return []channel.Type{{Name: oursName, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
		return &ourConn{ch: ch, h: h, msg: msg, unreliable: o.Unreliable, single: o.single()}
	}}}
}

func (s setting) listen(o Options, h Handler) (Server, error) {
	cfg := s.config(o)
	cfg.Channels = o.serverChannels(h)
	if s.secure {
		// The tokens name a fixed address: clients may come by way of a proxy.
		cfg.Link = driver.Netcode{ProtocolID: oursID, Key: oursKey, Slots: oursSlots, Addrs: []netip.AddrPort{tokenAddr}}
	}
	if o.Shards > 1 {
		return runShards(o, func(int) driver.Config {
			cfg.Channels = o.serverChannels(h)
			return cfg
		})
	}
	d, err := driver.Listen(o.addr(), cfg)
	if err != nil {
		return nil, err
	}
	return runDriver(d, nil), nil
}

// runShards is runDriver for several servers at one address.
func runShards(o Options, config func(shard int) driver.Config) (Server, error) {
	all, err := driver.ListenShards(o.addr(), o.Shards, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- driver.RunShards(ctx, all, nil) }()
	return listener{all[0].LocalAddr().String(), func() error { stop(); return <-done }}, nil
}

// tokenAddr is what our tokens call the server.
var tokenAddr = netip.MustParseAddrPort("127.0.0.1:7777")

// runDriver ticks a driver on a goroutine of its own until the result is closed.
func runDriver(d *driver.Driver, step func(time.Time)) listener {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	addr := d.LocalAddr().String()
	go func() { done <- d.Run(ctx, step) }()
	return listener{addr, func() error { stop(); return <-done }}
}

func (s setting) dial(addr string, o Options, h Handler) (Conn, error) {
	if o.Many {
		return s.dialTicked(addr, o, h)
	}
	c := &ourConn{h: h, unreliable: o.Unreliable, single: o.single(), client: true, batch: o.Batch}
	c.room.L = &c.mu
	c.msg = make([]byte, maxMessage)
	joined := make(chan error, 1)
	cfg, err := s.clientConfig(addr, o, c, func(err error) { joined <- err })
	if err != nil {
		return nil, err
	}
	cfg.Closed = func(*driver.Conn, netconn.CloseResult) { c.end() }
	if c.d, err = driver.Dial(addr, cfg); err != nil {
		return nil, err
	}
	c.pumpFunc = c.pump
	c.run = runDriver(c.d, func(time.Time) {
		if c.batch {
			c.pump()
		}
	})
	select {
	case err = <-joined:
	case <-time.After(dialTimeout):
		err = errDial
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// clientConfig is the settings of c's driver. joined is told when it may send, or why it can't.
func (s setting) clientConfig(addr string, o Options, c *ourConn, joined func(error)) (cfg driver.Config, err error) {
	cfg = s.config(o)
	if c.most = outboxBytes; !cfg.Prompt {
		c.most = outboxBytesTicked
	}
	cfg.Channels = []channel.Type{{Name: oursName, ClientOpen: true}}
	cfg.Joined = func(dc *driver.Conn) {
		ch, err := dc.Open(oursName, c)
		c.ch = ch
		if err == nil && o.Unreliable {
			_, err = ch.SendBunch(&bunch.Out{Data: []byte{0}, Reliable: true}) // opens it: an empty message
		}
		joined(err)
	}
	if s.secure {
		cfg.Link, err = secureLink(addr)
	}
	return cfg, err
}

// secureLink has a token for the server at addr.
func secureLink(addr string) (driver.Netcode, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return driver.Netcode{}, err
	}
	now := uint64(time.Now().Unix())
	clientIDs.Lock()
	clientIDs.n++
	id := clientIDs.n
	clientIDs.Unlock()
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: oursID, ClientID: id, Create: now, Expire: now + 600,
		Timeout: 60, Servers: []netip.AddrPort{to}, Internal: []netip.AddrPort{tokenAddr}, PrivateKey: oursKey})
	return driver.Netcode{ProtocolID: oursID, Token: token}, err
}

var clientIDs struct {
	sync.Mutex
	n uint64
}

// outboxBytes is how much a client may have waiting before Send waits; at ticks it is what a tick may send: 60 of these are 2 GB/s.
const (
	outboxBytes       = 256 << 10
	outboxBytesTicked = 32 << 20
)

// ourConn is an end of a channel on which a message is preceded by its length, since bunches merge and carry several.
// At a server all is done on the driver's goroutine. At a client Send may be called on any: it
// leaves the message in outbox.
type ourConn struct {
	channel.Nop
	ch         *channel.Channel
	h          Handler
	unreliable bool
	single     bool   // a message is a bunch
	backlog    []byte // framed messages that found no room, on the driver's goroutine
	head       int
	msg        []byte // as large as any message; a server's connections share one
	frame      []byte

	client   bool
	batch    bool // leave it to the ticks to send
	d        *driver.Driver
	run      listener
	pumpFunc func()

	mu     sync.Mutex
	room   sync.Cond
	outbox []byte
	most   int // bytes of it before Send waits
	asked  bool
	closed bool
}

func (c *ourConn) Send(msg []byte) error {
	if !c.client {
		c.frame = appendFrame(c.frame[:0], msg)
		return c.send(c.frame)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.outbox) > c.most && !c.closed {
		c.ask()
		c.room.Wait()
	}
	if c.closed {
		return channel.ErrClosed
	}
	c.outbox = appendFrame(c.outbox, msg)
	return nil
}

// ask has the driver's goroutine look at the outbox.
func (c *ourConn) ask() {
	if !c.asked {
		c.asked = true
		c.d.Do(c.pumpFunc)
	}
}

func (c *ourConn) Flush() error {
	if c.client && !c.batch {
		c.mu.Lock()
		c.ask()
		c.mu.Unlock()
	}
	return nil
}

func (c *ourConn) Close() error {
	if !c.client {
		return nil
	}
	c.end()
	return c.run.Close()
}

func (c *ourConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.room.Broadcast()
}

// pump takes over the outbox, on the driver's goroutine.
func (c *ourConn) pump() {
	c.drain()
	if c.head < len(c.backlog) {
		c.mu.Lock()
		c.asked = false
		c.mu.Unlock()
		return // acks will call again
	}
	c.mu.Lock()
	if c.ch == nil {
		c.mu.Unlock()
		return // not joined
	}
	c.backlog, c.outbox, c.head = c.outbox, c.backlog[:0], 0
	c.asked = false
	c.room.Broadcast()
	c.mu.Unlock()
	c.drain()
}

// drain sends what waited for room.
func (c *ourConn) drain() {
	for c.head < len(c.backlog) {
		frames := c.next()
		if !c.write(frames) {
			return
		}
		c.head += len(frames)
	}
	c.backlog, c.head = c.backlog[:0], 0
}

// next is the messages that the next bunch carries: one, or as many as it gathers. It goes in as many parts as it takes.
func (c *ourConn) next() []byte {
	q := c.backlog[c.head:]
	if !c.single {
		return q[:gathered(q)]
	}
	_, rest, _ := cutFrame(q)
	return q[:len(q)-len(rest)]
}

// send sends a framed message, or leaves it to drain.
func (c *ourConn) send(frame []byte) error {
	if c.head < len(c.backlog) || !c.write(frame) {
		c.backlog = append(c.backlog, frame...)
	}
	return nil
}

func (c *ourConn) write(frame []byte) bool {
	if c.single {
		frame, _, _ = cutFrame(frame)
	}
	_, err := c.ch.SendBunch(&bunch.Out{Data: frame, Reliable: !c.unreliable, NoMerge: c.single})
	return !errors.Is(err, channel.ErrReliableFull)
}

// ReceivedBunch takes messages apart.
func (c *ourConn) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if in.Bits/8 > len(c.msg) {
		return
	}
	p := c.msg[:in.Bits/8]
	in.Data.ReadBytes(p)
	if c.single {
		if len(p) > 1 {
			c.h(c, p)
		}
		return
	}
	for msg, rest, ok := cutFrame(p); ok; msg, rest, ok = cutFrame(rest) {
		if len(msg) > 0 {
			c.h(c, msg)
		}
	}
}

// ReceivedAck may have made room.
func (c *ourConn) ReceivedAck(*channel.Channel, int64) {
	if c.head < len(c.backlog) {
		c.drain()
	}
	if c.client && !c.batch && c.head == len(c.backlog) {
		c.mu.Lock()
		if len(c.outbox) > 0 {
			c.ask()
		}
		c.mu.Unlock()
	}
}
