package exercise

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// program is what runs on a host: a server, or a client that dials again whenever its connection ends.
type program struct {
	g      *Game
	h      *simtest.Host
	rng    simtest.Rand
	odd    simtest.Rand // for what came later than the scripts that once failed
	d      *driver.Driver
	server bool
	to     *simtest.Host // the server, if not the one by number
	tracer tracer
	ends   []*end // of this driver, dead ones until they are swept
	client *end   // a client's connection, from the handshake on
	redial time.Duration
	dialed int // its number among all dials
	world  *actorrep.World
	things *things // a server's
	game   *lockGame
	ticks  int
}

const port = 7777

func (p *program) config(token []byte) (cfg driver.Config, err error) {
	o := &p.g.opt
	if err := p.newWorld(); err != nil {
		return cfg, err
	}
	if p.server && o.lockstep {
		if err := p.newLockGame(); err != nil {
			return cfg, err
		}
	}
	cfg = driver.Config{
		Protocol: o.protocol, Channels: p.channels(), Clock: p.h.Time, Rand: p.h.Secrets(),
		Accepted: p.accepted, Joined: p.joined, Closed: p.closed,
		Timeout: o.timeout, LoginTimeout: 10 * time.Second, KeepAlive: o.keepAlive, AckDelay: o.delay(),
		ReorderWindow: o.reorder, Redundancy: netconn.Redundancy{Copies: o.copies, Adaptive: o.adaptive}, Coding: o.coding,
		NetSpeed: o.netSpeed, Checksum: o.checksum, MaxChannels: maxChannels,
	}
	if cfg.Link, err = o.linkOf(token); err != nil {
		return cfg, err
	}
	cfg.Controller, err = o.controllerOf()
	p.tracer = tracer{p: p}
	cfg.Trace = &p.tracer
	return cfg, err
}

// maxChannels is enough for all that the exercise opens, and few enough to notice a leak.
const maxChannels = 256

func (p *program) listen() error {
	p.server = true
	cfg, err := p.config(nil)
	if err != nil {
		return err
	}
	s, err := p.h.Listen(port)
	if err != nil {
		return err
	}
	cfg.Socket = s
	if p.g.opt.way != "" {
		sides := make([]udp.Side, len(simtest.Carriers))
		for i, c := range simtest.Carriers {
			if sides[i], err = p.h.ListenBy(c, port+uint16(c)); err != nil {
				return err
			}
		}
		cfg.Socket = udp.Join(s, sides...)
	}
	p.d, err = driver.Listen(s.LocalAddr().String(), cfg)
	return err
}

func (p *program) dial() error {
	token, err := p.token()
	if err != nil {
		return err
	}
	cfg, err := p.config(token)
	if err != nil {
		return err
	}
	p.dialed = len(p.g.dials)
	by, err := p.g.opt.carrier(p.dialed)
	if err != nil {
		return err
	}
	if by == 0 {
		cfg.Socket = p.h.Open()
	} else {
		cfg.Socket = p.h.OpenBy(by, netip.AddrPortFrom(p.g.w.ServerOf(p.h).Addr(), port+uint16(by)))
	}
	p.g.dials = append(p.g.dials, nil)
	cfg.Client = control.ClientConfig{URL: strconv.Itoa(p.dialed), NetSpeed: max(p.g.opt.netSpeed, 100_000)}
	p.client, p.ends, p.redial = nil, nil, 0
	p.d, err = driver.Dial(fmt.Sprintf("%v:%d", p.g.w.ServerOf(p.h).Addr(), port), cfg)
	return err
}

// token is what a netcode client needs.
func (p *program) token() ([]byte, error) {
	if p.g.opt.link != "netcode" {
		return nil, nil
	}
	s := p.to
	if s == nil {
		s = p.g.w.ServerOf(p.h)
	}
	now := uint64(p.h.Time().Unix())
	return netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: protocolID, ClientID: uint64(p.h.Index()), Create: now, Expire: now + 3600,
		Timeout: int32(max(1, p.g.opt.timeout/time.Second)), Servers: serverAddrs(s), PrivateKey: key, Rand: p.h.Secrets()})
}

// channels is the kinds of channels that both ends know.
func (p *program) channels() []channel.Type {
	client := !p.g.opt.serverOpens()
	types := []channel.Type{{Name: pipeName, Accept: func(ch *channel.Channel) channel.Handler { return p.endOf(ch).acceptPipe(ch) }}}
	for i := range queueModes {
		types = append(types, channel.Type{Name: queueName(i), Accept: func(ch *channel.Channel) channel.Handler { return p.endOf(ch).acceptQueue(i) }})
	}
	types = append(types,
		channel.Type{Name: blocksName, Accept: func(ch *channel.Channel) channel.Handler { return p.endOf(ch).acceptBlocks() }},
		channel.Type{Name: turnsName, Accept: func(ch *channel.Channel) channel.Handler { return p.endOf(ch).acceptTurns() }})
	for i := range types {
		types[i].ClientOpen, types[i].ServerOpen = client, true
	}
	if p.world != nil {
		types = append(types, p.world.ChannelTypes()...)
	}
	return types
}

// endOf is the end that a channel belongs to.
func (p *program) endOf(ch *channel.Channel) *end {
	for _, e := range p.ends {
		if e.conn.Table() == ch.Conn().Table() {
			return e
		}
	}
	panic("exercise: a channel of no connection")
}

func (p *program) accepted(c *driver.Conn) {
	e := &end{g: p.g, p: p, id: len(p.g.ends), conn: c, fates: p.tracer.of(c.ID())}
	c.User = e
	p.g.ends = append(p.g.ends, e)
	p.ends = append(p.ends, e)
	p.g.Counters.Connections++
	if !p.server {
		p.client = e
		p.g.dials[p.dialed] = e
	}
}

func (p *program) joined(c *driver.Conn) {
	e := c.User.(*end)
	e.joined = true
	p.g.Counters.Joined++
	if e.liar = p.server && c.Login().URL == liarURL; p.server && !e.liar {
		e.pair(c.Login().URL)
	}
	e.start()
}

func (p *program) closed(c *driver.Conn, r netconn.CloseResult) {
	if c == nil {
		return // no answer
	}
	c.User.(*end).ended(r)
}

// Tick is simtest.Program's.
func (p *program) Tick(now time.Time) error {
	p.ticks++
	if p.redial > 0 {
		if p.g.w.Now() < p.redial {
			return nil
		}
		return p.dial()
	}
	p.d.TickDispatch(now)
	for _, e := range p.ends {
		if e.alive() {
			e.tick(p.d.Time(now))
		}
	}
	p.stepGame(p.d.Time(now))
	p.stepWorld(p.d.Time(now))
	p.d.TickFlush(now)
	p.sweep()
	if p.server {
		return p.d.Err()
	}
	if p.d.Err() != nil || p.client != nil && p.client.result != nil {
		p.hangUp(now)
	}
	return nil
}

// sweep checks what lives and forgets what has ended.
func (p *program) sweep() {
	kept := p.ends[:0]
	for _, e := range p.ends {
		if e.result != nil {
			continue
		}
		kept = append(kept, e)
		if p.ticks%16 == 0 {
			e.checkBounds()
		}
	}
	clear(p.ends[len(kept):])
	p.ends = kept
}

// hangUp closes a client's driver, and dials again after a while, unless everybody parts.
func (p *program) hangUp(now time.Time) {
	if e := p.client; p.d.Err() != nil && e != nil && e.alive() {
		e.said, e.aborted = "its socket has ended", true
	}
	p.d.TickFlush(now) // the link's own goodbye
	_ = p.d.Close()    // the socket is ours
	p.redial = p.g.w.Now() + time.Duration(1+p.rng.IntN(500))*time.Millisecond
	if p.g.parting {
		p.redial = 1 << 62
	}
}

// Crashed is simtest.Crasher's.
func (p *program) Crashed() {
	for _, e := range p.ends {
		e.crash()
	}
}

// pending is what this host waits for after the calm.
func (p *program) pending() string {
	if p.server {
		return ""
	}
	e := p.client
	if e == nil || !e.alive() || !e.joined {
		return p.h.Name() + " isn't connected"
	}
	if e.peer == nil || !e.peer.alive() {
		return p.h.Name() + " is connected to nobody"
	}
	for _, one := range []*end{e, e.peer} {
		if what := one.pending(); what != "" {
			return fmt.Sprintf("%v: %s", one, what)
		}
	}
	return ""
}

// tracer hands the events of a driver's connections to their checkers.
type tracer struct {
	p     *program
	fates []*simtest.Fates // of connection id 1 and on
}

func (t *tracer) of(id uint32) *simtest.Fates {
	for int(id) > len(t.fates) {
		name := t.p.h.Name() + "'s connection " + strconv.Itoa(len(t.fates)+1)
		t.fates = append(t.fates, t.p.g.w.NewFates(name))
	}
	return t.fates[id-1]
}

// Trace is nettrace.Sink's.
func (t *tracer) Trace(e *nettrace.Event) { t.of(e.Conn).Trace(e) }
