package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/stream"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// state is how far a client is.
type state uint8

const (
	joining state = iota
	playing
	draining // says nothing new; all that was said must arrive
	parting  // the connection is being closed in order
	gone
)

// way is how a client leaves.
type way uint8

const (
	says     way = iota // it closes the connection
	kicked              // the server does
	vanishes            // its socket is closed, and nobody told
)

// client is one player.
type client struct {
	id      uint64
	name    string
	soak    *soak
	path    *path
	rng     *rand.Rand
	driver  *driver.Driver
	socket  udp.Socket
	conn    *driver.Conn
	session *session // at the server
	world   *actorrep.World
	pawn    *pawn // as it sees it
	talk    *talk
	player  *player
	streams *streams

	state  state
	since  time.Time // of the state
	moves  time.Time // when its address changes; zero for never
	moved  time.Time
	leaves time.Time
	way    way
	seated bool
	same   bool // it saw what it should in this freeze
	now    time.Time
}

// String names it in problems.
func (c *client) String() string {
	return fmt.Sprintf("%s (%s, %s)", c.name, c.path.kind.name, c.path.server.name)
}

func newClient(s *soak, p *path, n int) (*client, error) {
	c := &client{id: uint64(n) + 1, name: fmt.Sprintf("client %d", n+1), soak: s, path: p, since: s.now, now: s.now}
	c.rng = rand.New(rand.NewPCG(s.o.seed, c.id<<32))
	problem := func(format string, args ...any) { s.problem("%s: %s", c, fmt.Sprintf(format, args...)) }
	life := min(s.o.duration/4, 20*time.Second)
	c.leaves = s.now.Add(life + time.Duration(c.rng.Int64N(int64(2*life))))
	if c.way = []way{says, says, says, kicked, vanishes}[c.rng.IntN(5)]; s.o.polite && c.way == vanishes {
		c.way = says
	}
	if p.server.moves && c.rng.IntN(3) == 0 {
		c.moves = s.now.Add(life)
	}
	c.talk = newTalk(2*c.id, 2*c.id+1, c.rng, problem)
	c.world = actorrep.NewClient(actorrep.Config{Failed: func(err error) { problem("actors: %v", err) }, Spawned: func(a actorrep.Actor) {
		if p, ok := a.(*pawn); ok && p.Name == c.name {
			p.problem = problem
			c.pawn = p
		}
	}})
	if err := register(c.world); err != nil {
		return nil, err
	}
	link, err := c.linkTo()
	if err != nil {
		return nil, err
	}
	if c.socket, err = udp.Listen("127.0.0.1:0", udp.Config{}); err != nil {
		return nil, err
	}
	c.driver, err = driver.Dial(p.proxy.LocalAddr().String(), driver.Config{
		Link: link, Checksum: p.server.checksum, Timeout: timeout, Socket: c.socket, Clock: s.clock,
		ReorderWindow: p.server.reorder, Redundancy: netconn.Redundancy{Copies: p.server.copies, Adaptive: true},
		Channels: append(append(types(), stream.Type(streamName)), c.world.ChannelTypes()...),
		Client:   control.ClientConfig{URL: c.name}, Joined: c.joined, Closed: c.closed,
	})
	if err != nil {
		return nil, err
	}
	p.clients++
	c.streams = newStreams(c.driver, 2*c.id, rand.New(rand.NewPCG(s.o.seed, c.id<<32+1)), &s.streams, problem)
	return c, nil
}

// linkTo is the link of a client. Its token, if there is to be one, names the proxy, which is where it goes, and the server,
// which looks for itself.
func (c *client) linkTo() (driver.Link, error) {
	l, ok := c.path.server.link.link.(driver.Netcode)
	if !ok {
		return c.path.server.link.link, nil
	}
	unix := uint64(c.now.Unix())
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: l.ProtocolID, ClientID: c.id, Create: unix, Expire: unix + 60, Timeout: 10,
		Servers: []netip.AddrPort{c.path.proxy.LocalAddr(), c.path.server.driver.LocalAddr()}, PrivateKey: l.Key})
	return driver.Netcode{ProtocolID: l.ProtocolID, Token: token}, err
}

func (c *client) to(s state) { c.state, c.since = s, c.now }

func (c *client) joined(conn *driver.Conn) {
	c.conn = conn
	c.to(playing)
	if err := c.talk.open(conn.Open); err != nil {
		c.soak.problem("%s: opening its channels: %v", c, err)
	}
}

// sit takes the seat that the server has for it, if any.
func (c *client) sit() (err error) {
	c.seated = true
	if c.session.seat < 0 {
		return nil
	}
	if c.player, err = newPlayer(c.path.server.turns, c.session.seat, c.session.number); err != nil {
		return err
	}
	c.player.up.Received = func(p []byte) {
		if err := c.player.peer.Receive(c.driver.Time(c.now), p); err != nil && c.state == playing {
			c.soak.problem("%s: turns: %v", c, err)
		}
	}
	_, err = c.conn.Open(turnsName, &c.player.up)
	return err
}

// unexpected says why a connection should not have ended so, or "".
func (c *client) unexpected(r netconn.CloseResult, atServer bool) string {
	switch {
	case c.state == gone && c.way == vanishes && (r.Code == netconn.TimedOut || !atServer):
		return ""
	case c.state == parting && (r.Code == netconn.ClosedByUs || r.Code == netconn.ClosedByPeer || r.Code == netconn.TimedOut):
		return ""
	case c.state == gone && atServer && (r.Code == netconn.ClosedByPeer || r.Code == netconn.TimedOut || r.Code == netconn.ClosedByUs):
		return "" // the client was quicker
	}
	return "nobody meant it to"
}

func (c *client) closed(_ *driver.Conn, r netconn.CloseResult) {
	if why := c.unexpected(r, false); why != "" {
		c.soak.problem("the connection of %s ended: %v; %s", c, r, why)
	}
	c.end()
}

// end is the client's, however it came.
func (c *client) end() {
	c.streams.gone.Store(true)
	c.streams.cancel()
	c.to(gone)
}

const (
	// timeout is a connection's and a handshake's. One burst takes eight packets, of which a handshake sends one a second.
	timeout = 20 * time.Second
	// joinTime is how long joining may take.
	joinTime = 30 * time.Second
)

// tick is a client's frame.
func (c *client) tick(now time.Time) {
	c.now = now
	c.driver.TickDispatch(now)
	at := c.driver.Time(now)
	if c.state == playing || c.state == draining {
		c.world.Step(at)
		c.play(at)
	}
	c.driver.TickFlush(now)
	c.proceed()
	if err := c.driver.Err(); err != nil && c.state != gone {
		c.soak.problem("%s: %v", c, err)
		c.end()
	}
	if c.state == gone {
		_ = c.driver.Close() // its socket may be closed
	}
}

func (c *client) play(at time.Duration) {
	c.talk.step(c.state != playing, func(m *message.Attached) { m.Tick(at) })
	if !c.seated && c.session != nil { // the server has it in later than it thinks
		if err := c.sit(); err != nil {
			c.soak.problem("%s: a seat: %v", c, err)
		}
	}
	if c.player != nil {
		c.player.step(at, c.rng)
	}
	if c.state == playing && c.pawn != nil {
		calls(c.rng, &c.pawn.shouts, func(n uint32) error { return shout.Call(c.pawn, n) }, c.talk.problem)
	}
}

// proceed goes on to the next state when it is time.
func (c *client) proceed() {
	switch c.state {
	case joining:
		if c.now.Sub(c.since) > joinTime {
			c.soak.problem("%s didn't get in", c)
			c.end()
		}
	case playing:
		if !c.moves.IsZero() && c.now.After(c.moves) {
			c.move()
		}
		if c.now.After(c.leaves) || c.now.Sub(c.soak.start) >= c.soak.o.duration {
			c.part()
		}
	case draining:
		c.drain()
	}
}

// move gives it another address.
func (c *client) move() {
	c.moves, c.moved = time.Time{}, c.now
	s, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err == nil {
		err = c.driver.Rebind(s)
	}
	if err != nil {
		c.soak.problem("%s: another socket: %v", c, err)
		return
	}
	c.socket = s
	c.path.moved++
}

// part begins to leave.
func (c *client) part() {
	if c.way != vanishes {
		c.streams.quiet.Store(true)
		c.to(draining)
		return
	}
	c.path.vanished++
	c.end()
	_ = c.socket.Close() // what the driver says last isn't heard
}

const drainTime = 60 * time.Second

// drain waits until each end has all that the other said, then closes.
func (c *client) drain() {
	missing := c.missing()
	took := c.now.Sub(c.since)
	switch {
	case missing == "":
		c.path.slowest = max(c.path.slowest, took)
	case took > drainTime:
		c.soak.problem("%s: after %v there were still missing: %s", c, drainTime, missing)
	default:
		return
	}
	c.to(parting)
	if c.way == kicked {
		c.session.conn.CloseWithReason("kicked")
	} else {
		c.conn.CloseWithReason("leaving")
	}
}

// missing is what hasn't arrived, or "".
func (c *client) missing() string {
	s := c.session
	if s == nil {
		return "its place at the server"
	}
	if m := c.talk.missing(s.talk); m != "" {
		return m + " to the server"
	}
	if m := s.talk.missing(c.talk); m != "" {
		return m + " to the client"
	}
	switch {
	case !c.streams.over.Load():
		return "a stream"
	case c.pawn == nil:
		return "its actor"
	case c.pawn.shouts != s.pawn.heard:
		return "calls to the server"
	case c.pawn.heard != s.pawn.answers:
		return "calls to the client"
	case c.player != nil && c.player.count == 0:
		return "turns: " + c.player.String()
	}
	return ""
}

// explain says why the server doesn't send the first actor that is missing.
func (c *client) explain() string {
	w := c.path.server.yard.world
	for a := range w.All {
		if c.world.Find(a.(interface{ GUID() netguid.GUID }).GUID()) == nil {
			s := c.session.conn.Stats()
			return fmt.Sprintf("%v; the connection since %.0f s, %.0f B/s, a round trip of %v, %.0f %% lost, %d reliable bunches wait, budget %d", w.Explain(c.session.peer, a),
				c.now.Sub(c.since).Seconds(), s.Rates.OutBytes, s.RTT, 100*s.Rates.OutLoss, s.QueuedReliable, c.session.conn.Budget())
		}
	}
	return "all are there"
}

// callsHeard is how many calls came at both ends.
func (c *client) callsHeard() (n uint32) {
	if c.pawn != nil && c.session != nil {
		n = c.pawn.heard + c.session.pawn.heard
	}
	return n
}
