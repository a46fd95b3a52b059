package main

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// gameKey is the key of the servers and of their clients' tokens.
var gameKey = netcode.Key{1, 2, 3, 4}

const gamePort = 7777

// world is a server and its clients, each a driver over a link, and a network between them in virtual time.
type world struct {
	*simtest.Simulation
	server  *member
	clients []*member
	link    func() driver.Link
	edit    func(m *member, c *driver.Config)
	err     error
}

// member is one host's driver and what became of its connections.
type member struct {
	world  *world
	host   *simtest.Host
	driver *driver.Driver
	conn   *driver.Conn // a client's, or the server's newest
	conns  []*driver.Conn
	result *netconn.CloseResult // of the connection that ended last
	ended  int
	game   func(now time.Duration) // each tick, between TickDispatch and TickFlush; may be nil
}

// links is the links by name.
var links = map[string]func() driver.Link{
	"netcode": func() driver.Link { return driver.Netcode{ProtocolID: 42, Key: gameKey} },
	"salted":  func() driver.Link { return driver.PlainSalted{ProtocolID: 42} },
	"unreal":  func() driver.Link { return driver.PlainUnreal51() },
}

// newWorld is a world with one server. edit changes the settings of each member's driver.
func newWorld(e *env, link func() driver.Link, edit func(m *member, c *driver.Config)) *world {
	w := &world{link: link, edit: edit}
	w.Simulation = simtest.NewSimulation(e.seed, w.boot)
	w.server = w.add("server", true)
	return w
}

func (w *world) add(name string, server bool) *member {
	m := &member{world: w}
	m.host = w.AddHost(name, server)
	m.host.User = m
	return m
}

// join adds a client whose network is the same both ways. It dials at once.
func (w *world) join(net netsim.Settings) *member {
	m := w.add(fmt.Sprintf("client%d", len(w.clients)+1), false)
	if err := m.host.SetNet(net, net); err != nil {
		w.err = err
	}
	w.clients = append(w.clients, m)
	return m
}

// boot is simtest's.
func (w *world) boot(h *simtest.Host) (simtest.Program, error) {
	m := h.User.(*member)
	cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: w.link(), MaxConns: 64,
		Channels: []channel.Type{{Name: dataName, ClientOpen: true, ServerOpen: true}},
		Joined:   func(c *driver.Conn) { m.conn, m.conns = c, append(m.conns, c) },
		Closed: func(_ *driver.Conn, r netconn.CloseResult) {
			m.result = &r
			m.ended++
		}}
	if w.edit != nil {
		w.edit(m, &cfg)
	}
	addr := fmt.Sprintf("10.0.0.1:%d", gamePort)
	if h.IsServer() {
		s, err := h.Listen(gamePort)
		if err != nil {
			return nil, err
		}
		cfg.Socket = s
		m.driver, err = driver.Listen(addr, cfg)
		return m, err
	}
	cfg.Socket = h.Open()
	var err error
	m.driver, err = driver.Dial(addr, cfg)
	return m, err
}

// Tick is simtest's.
func (m *member) Tick(now time.Time) error {
	m.driver.TickDispatch(now)
	if m.game != nil {
		m.game(m.driver.Time(now))
	}
	m.driver.TickFlush(now)
	return nil
}

// run goes on for a while, and reports what went wrong besides connections that ended.
func (w *world) run(d time.Duration) error {
	w.RunUntil(w.Now() + d)
	if w.err == nil && w.Failure() != nil {
		w.err = fmt.Errorf("%v", w.Failure())
	}
	return w.err
}

// runUntil goes on, a tick at a time, until something is so, and reports whether it came to be.
func (w *world) runUntil(limit time.Duration, is func() bool) bool {
	for end := w.Now() + limit; w.Now() < end && w.err == nil; {
		if is() {
			return true
		}
		_ = w.run(tick) // the error stays
	}
	return is()
}

// openData opens a channel for data on a connection.
func openData(c *netconn.Conn, h channel.Handler) (*channel.Channel, error) {
	if h == nil {
		h = channel.Nop{}
	}
	return c.Open(dataName, h)
}

// sendNumber sends a numbered message reliably.
func sendNumber(ch *channel.Channel, n uint64, size int) error {
	_, err := ch.SendBunch(&bunch.Out{Data: numbered(n, size), Reliable: true, NoMerge: true})
	return err
}
