package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

const (
	tick       = time.Second / 60
	honest     = 8 // players who were there before the attack
	protocolID = 42
)

var (
	serverAddr = netip.MustParseAddrPort("10.0.0.1:7777")
	key        = netcode.Key{1, 2, 3, 4}
	pingName   = bunch.Name{Index: 300}
)

// game is a server and its honest players, in virtual time.
type game struct {
	*stage
	link   string
	server *driver.Driver
	port   *port
	// closed counts connections that ended at the server.
	closed  int
	players []*player
	start   time.Time
	now     time.Time
	nextID  uint64
	costs   []time.Duration // of the server's ticks, in real time
}

// player sends a reliable ping each tick and notes how many ticks the echo takes.
type player struct {
	channel.Nop
	*peer
	ch     *channel.Channel
	tick   uint64
	echoes []uint64 // ticks that each took
	sent   int
}

// peer is a client with its own clock, which begins when it dials.
type peer struct {
	driver *driver.Driver
	dialed time.Time // in the game's time
	began  time.Time // in its own
}

func (p *peer) at(now time.Time) time.Time { return p.began.Add(now.Sub(p.dialed)) }

// linkOf is the link of a driver. Netcode's clients get a token made at the game's own time.
func (g *game) linkOf(token []byte, slots int) driver.Link {
	switch g.link {
	case "unreal":
		return driver.PlainUnreal51()
	case "salted":
		return driver.PlainSalted{ProtocolID: protocolID, Slots: min(slots, 1024)}
	}
	return driver.Netcode{ProtocolID: protocolID, Key: key, Slots: slots, Token: token}
}

// token is a good one for a client id.
func (g *game) token(id uint64, edit func(*netcode.TokenConfig)) []byte {
	unix := uint64(g.now.Unix())
	cfg := netcode.TokenConfig{ProtocolID: protocolID, ClientID: id, Create: unix, Expire: unix + 30, Timeout: 5, Servers: []netip.AddrPort{serverAddr}, PrivateKey: key}
	if edit != nil {
		edit(&cfg)
	}
	b, err := netcode.GenerateConnectToken(cfg)
	if err != nil {
		panic(err) // the settings are ours
	}
	return b
}

func newGame(link string, slots int) (*game, error) {
	g := &game{stage: newStage(), link: link, start: time.Now()}
	g.now = g.start
	g.port = g.listen(serverAddr)
	g.tapped = playerAddr(0)
	var err error
	g.server, err = driver.Listen("", driver.Config{Socket: g.port, Link: g.linkOf(nil, slots), MaxConns: slots, Timeout: 5 * time.Second,
		Closed:   func(*driver.Conn, netconn.CloseResult) { g.closed++ },
		Channels: []channel.Type{{Name: pingName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return echo{} }}}})
	if err != nil {
		return nil, err
	}
	for i := range honest {
		p := &player{}
		if p.peer, err = g.dial(playerAddr(i), p); err != nil {
			return nil, err
		}
		g.players = append(g.players, p)
	}
	for range 120 {
		g.step(nil)
	}
	for i, p := range g.players {
		if len(p.echoes) == 0 {
			return nil, fmt.Errorf("honest player %d isn't playing: %v", i, p.driver.Err())
		}
	}
	return g, nil
}

func playerAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), 1000)
}

// formerPlayer is one who was here and has left: where he was, and all that he sent.
func (g *game) formerPlayer() (addr netip.AddrPort, session [][]byte, err error) {
	addr = playerAddr(200)
	tapped, tap := g.tapped, g.tap
	g.tapped, g.tap = addr, nil
	in, err := g.visit(addr, nil)
	session, g.tapped, g.tap = g.tap, tapped, tap
	if err == nil && !in {
		err = errors.New("a player couldn't join before the attacks")
	}
	return addr, session, err
}

// visit is a client that joins, if it can within two seconds, stays for a few ticks, and leaves in order. Meanwhile
// hostile sends.
func (g *game) visit(addr netip.AddrPort, hostile func()) (in bool, err error) {
	p, err := g.dial(addr, nil)
	if err != nil {
		return false, err
	}
	for left := 120; left > 0; left-- {
		g.step(func() {
			p.driver.TickDispatch(p.at(g.now))
			p.driver.TickFlush(p.at(g.now))
			if hostile != nil {
				hostile()
			}
		})
		if !in && p.driver.Server() != nil && p.driver.Server().Joined() {
			in, left = true, 10
		}
	}
	err = p.driver.Close()
	g.listen(addr) // what is still on its way to him is no stranger's
	for range 10 {
		g.step(nil)
	}
	delete(g.ports, addr)
	return in, err
}

// dial connects a driver at an address of its own.
func (g *game) dial(from netip.AddrPort, p *player) (*peer, error) {
	g.nextID++
	began := time.Now()
	d, err := driver.Dial(serverAddr.String(), driver.Config{Socket: g.listen(from), Link: g.linkOf(g.token(g.nextID, nil), 0),
		Channels: []channel.Type{{Name: pingName, ClientOpen: true}},
		Joined: func(c *driver.Conn) {
			if p != nil {
				p.ch, _ = c.Open(pingName, p) // refused only when there is no room, and then nothing echoes
			}
		}})
	return &peer{d, g.now, began}, err
}

// step is one tick: hostile sends, and the game goes on.
func (g *game) step(hostile func()) {
	g.now = g.now.Add(tick)
	for _, p := range g.players {
		p.step(g.now)
	}
	if hostile != nil {
		hostile()
	}
	began := time.Now()
	g.server.TickDispatch(g.now)
	g.server.TickFlush(g.now)
	g.costs = append(g.costs, time.Since(began))
	g.settle()
}

func (p *player) step(now time.Time) {
	p.tick++
	p.driver.TickDispatch(p.at(now))
	if p.ch != nil {
		if _, err := p.ch.SendBunch(&bunch.Out{Data: binary.LittleEndian.AppendUint64(nil, p.tick), Reliable: true, NoMerge: true}); err == nil {
			p.sent++
		}
	}
	p.driver.TickFlush(p.at(now))
}

// ReceivedBunch is an echo.
func (p *player) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if in.Bits == 64 {
		p.echoes = append(p.echoes, p.tick-in.Data.ReadUint64())
	}
}

// echo is the server's end.
type echo struct{ channel.Nop }

func (echo) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	if in.Bits == 64 {
		_, _ = ch.SendBunch(&bunch.Out{Data: binary.LittleEndian.AppendUint64(nil, in.Data.ReadUint64()), Reliable: true, NoMerge: true})
	}
}

// measure is what was seen since the last call.
type measure struct {
	p50, p99 uint64        // of the echoes, in ticks
	cost     time.Duration // p99 of the server's ticks
	total    time.Duration // of the server's ticks
}

func (g *game) measure() (m measure) {
	var all []uint64
	for _, p := range g.players {
		all = append(all, p.echoes...)
		p.echoes = p.echoes[:0]
	}
	slices.Sort(all)
	slices.Sort(g.costs)
	if len(all) > 0 && len(g.costs) > 0 {
		m = measure{p50: all[len(all)/2], p99: all[len(all)*99/100], cost: g.costs[len(g.costs)*99/100]}
	}
	for _, c := range g.costs {
		m.total += c
	}
	g.costs = g.costs[:0]
	return m
}
