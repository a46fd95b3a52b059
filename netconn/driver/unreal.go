package driver

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/handshake"
	"github.com/bunchnet/bunchnet/netconn/internal/addrgroup"
	"github.com/bunchnet/bunchnet/netconn/internal/ratelimit"
)

// serverLink takes datagrams from anyone, makes connections of those that prove their
// address, and hands them their packets.
type serverLink interface {
	receive(at time.Duration, from netip.AddrPort, p []byte)
	tick(at time.Duration)
	// conn is the connection of an address, or nil.
	conn(from netip.AddrPort) *Conn
	// parting is how many connections have ended, and keep the link's goodbye back.
	parting() int
	// refusals is what was refused, by reason.
	refusals(yield func(reason string, n uint64) bool)
}

// clientLink does a client's handshake, makes its connection, and hands it its packets.
type clientLink interface {
	dial(at time.Duration, to netip.AddrPort)
	receive(at time.Duration, from netip.AddrPort, p []byte)
	tick(at time.Duration)
	// parting is serverLink's.
	parting() int
	// refusals is what was refused, by reason.
	refusals(yield func(reason string, n uint64) bool)
}

// unrealServer is the server's side of PlainUnreal.
type unrealServer struct {
	d         *Driver
	link      PlainUnreal
	handshake *handshake.Server
	byAddr    map[netip.AddrPort]*unrealPeer
	byCookie  map[handshake.Cookie]*unrealPeer
	places    addrgroup.Limit   // of addresses, for connections
	lately    *ratelimit.Places // of addresses and wider networks, for connections that begin within a second
	second    time.Duration     // when that began
	turned    addrgroup.Limit   // of addresses, for connections that are there to be refused
	refused   int               // connections that are there to be refused
	at        time.Duration
}

type unrealPeer struct {
	conn   *Conn
	live   handshake.Live
	turned bool // the connection was made only to refuse the client; a login that is refused later doesn't set it
	// away: another client has its address, where it keeps its place. It is sent nothing and hears nothing until it restarts its handshake, or times out.
	away bool
}

const (
	// maxRefused bounds the connections beyond MaxConns that only tell clients that there is no room. Further clients get no answer.
	maxRefused = 32
	// maxRefusedPerAddr bounds those of one address.
	maxRefusedPerAddr = 2
	// minBegunPerAddr is how many connections of one address may begin in a second at least. A client that begins anew at its port ends its former connection, so that places don't
	// bound that.
	minBegunPerAddr = 64
)

// errTooMany refuses a client whose address has as many connections as it may.
var errTooMany = fmt.Errorf("%w: too many connections from this address", ErrFull)

func (l PlainUnreal) server(d *Driver) serverLink {
	s := &unrealServer{d: d, link: l, byAddr: map[netip.AddrPort]*unrealPeer{}, byCookie: map[handshake.Cookie]*unrealPeer{},
		places: addrgroup.NewLimit(d.cfg.maxPerAddr), turned: addrgroup.NewLimit(maxRefusedPerAddr), lately: d.begunPerAddr()}
	s.handshake, d.err = handshake.NewServer(handshake.ServerConfig{Protocol: l.Handshake, Handler: s, SessionID: l.SessionID, Rand: d.cfg.Rand, MaxConns: d.cfg.MaxConns})
	return s
}

func (s *unrealServer) receive(at time.Duration, from netip.AddrPort, p []byte) {
	s.at = at
	peer := s.byAddr[from]
	switch {
	case s.link.Handshake.IsHandshake(p):
		var live *handshake.Live
		if peer != nil {
			live = &peer.live
		}
		s.handshake.Receive(at, from, p, live)
	case peer == nil:
		s.handshake.UnknownGame(at, from, p)
	default:
		if s.d.receivedPacket(peer.conn, at, p) { // what isn't may be anybody's
			peer.conn.datagrams++
		}
		s.drop(peer)
	}
}

func (s *unrealServer) conn(from netip.AddrPort) *Conn {
	if p := s.byAddr[from]; p != nil {
		return p.conn
	}
	return nil
}

func (*unrealServer) parting() int { return 0 } // the link has no goodbye

// drop forgets a peer whose connection has ended.
func (s *unrealServer) drop(p *unrealPeer) {
	if !p.conn.Closed() {
		return
	}
	if s.byAddr[p.conn.addr] == p {
		delete(s.byAddr, p.conn.addr)
	}
	if s.byCookie[p.live.Cookie] != p {
		return
	}
	delete(s.byCookie, p.live.Cookie)
	s.placesOf(p).Remove(p.conn.addr.Addr())
	if p.turned {
		s.refused--
	}
}

// placesOf is the limit by address that a connection counts against.
func (s *unrealServer) placesOf(p *unrealPeer) *addrgroup.Limit {
	if p.turned {
		return &s.turned
	}
	return &s.places
}

func (s *unrealServer) tick(time.Duration) {
	if s.d.parted == 0 {
		return
	}
	for _, p := range s.byCookie {
		s.drop(p)
	}
}

func (s *unrealServer) refusals(yield func(string, uint64) bool) {
	s.handshake.Counters.Refusals(yield)
}

// Send is a callback of the handshake.
func (s *unrealServer) Send(to netip.AddrPort, p []byte) { s.d.write(to, p) }

// Accepted is called by the handshake: a client has proved its address.
func (s *unrealServer) Accepted(from netip.AddrPort, a handshake.Accept) bool {
	if s.byCookie[a.Cookie] != nil {
		return true // its answer was lost
	}
	if !s.mayBegin(from.Addr()) {
		s.d.Counters.NoRoom++
		return false // it asks again in a second
	}
	if old := s.byAddr[from]; old != nil {
		old.conn.displaced = true
		old.conn.LinkClosed(s.at, "the client connected again")
		s.drop(old)
	}
	if s.d.ended {
		return false // by who was told of that
	}
	refusal, ok := s.noRoom(from.Addr())
	if !ok {
		return false
	}
	chain := handler.NewChain(&handshake.Component{Protocol: s.link.Handshake, SessionID: a.SessionID, ClientID: a.ClientID, Lenient: s.link.LenientIDs})
	p := &unrealPeer{live: handshake.Live{Cookie: a.Cookie, Since: s.at, Timestamp: a.Timestamp}, turned: refusal != nil}
	var err error
	p.conn, err = s.d.newConnOr(refusal, s.at, from, a.ClientSeq, a.ServerSeq, chain, 0, 0, func(c *Conn, b []byte) {
		if !p.away {
			s.d.write(c.addr, b)
		}
	})
	if err != nil {
		s.d.err = err // a setting that no connection can have
		return false
	}
	s.byAddr[from], s.byCookie[a.Cookie] = p, p
	s.placesOf(p).Add(from.Addr())
	if p.turned {
		s.refused++
	}
	p.conn.start()
	return true
}

// begunPerAddr allows as many connections of an address to begin as it may have, and wider networks a multiple: who has one line of IPv6 has many addresses.
func (d *Driver) begunPerAddr() *ratelimit.Places {
	most := d.cfg.maxPerAddr
	if most >= 0 {
		most = max(most, minBegunPerAddr)
	}
	return ratelimit.NewPlaces(most)
}

// mayBegin reports whether one more connection of an address may begin in this second.
func (s *unrealServer) mayBegin(a netip.Addr) bool {
	if s.at-s.second >= time.Second {
		s.lately, s.second = s.d.begunPerAddr(), s.at
	}
	if !s.lately.Room(a) {
		return false
	}
	s.lately.Add(a)
	return true
}

// noRoom says why an address can't have another player; nil when it can. The handshake can't refuse with a reason, so the
// client gets a connection in which its login is refused, as Unreal does it. ok is false when there is no room for that either,
// or the game has a login of its own.
func (s *unrealServer) noRoom(a netip.Addr) (refusal error, ok bool) {
	if s.d.leaving != nil {
		return s.d.leaving, s.roomToRefuse(a)
	}
	switch {
	case len(s.byCookie)-s.refused >= s.d.cfg.MaxConns: // with those that the game has turned away, as long as they are there
		refusal = ErrFull
	case !s.places.Room(a):
		refusal = errTooMany
	default:
		return nil, true
	}
	s.d.Counters.NoRoom++
	return refusal, s.roomToRefuse(a)
}

// roomToRefuse reports whether there is room for a connection that only tells a client that it is refused.
func (s *unrealServer) roomToRefuse(a netip.Addr) bool {
	return s.d.login && s.refused < maxRefused && s.turned.Room(a)
}

// Restarted is called by the handshake: a client has a new address. There must be room for it, as for a new client of that address. What a client said there before it
// moved on, and comes late, moves nothing.
func (s *unrealServer) Restarted(from netip.AddrPort, first handshake.Cookie, timestamp float64) bool {
	p := s.byCookie[first]
	if p == nil || p.conn.Closed() {
		return false
	}
	old := s.byAddr[from]
	if old == p {
		p.live.Timestamp = max(p.live.Timestamp, timestamp)
		return true
	}
	if !(timestamp > p.live.Timestamp) {
		return false
	}
	places, was := s.placesOf(p), p.conn.addr
	places.Remove(was.Addr())
	switch {
	case places.Room(from.Addr()):
		places.Add(from.Addr())
	case old != nil && s.placesOf(old) == places: // they swap their places
		places.Add(was.Addr())
		old.conn.addr = was
	default:
		places.Add(was.Addr())
		s.d.Counters.NoRoom++
		return false
	}
	if s.byAddr[was] == p {
		delete(s.byAddr, was)
	}
	if old != nil { // its client may have another address by now, as behind a router that has restarted
		old.away = true
	}
	p.away = false
	p.conn.addr, p.live.Timestamp = from, timestamp
	s.byAddr[from] = p
	return true
}

// unrealClient is the client's side of PlainUnreal.
type unrealClient struct {
	d         *Driver
	link      PlainUnreal
	handshake *handshake.Client
	to        netip.AddrPort
	conn      *Conn
	restarted time.Duration // when the handshake last restarted, or conn began
	failed    bool
}

func (PlainUnreal) maxPacket() int { return maxDatagram - checksumBytes }
func (PlainUnreal) overhead() int  { return 0 }
func (PlainUnreal) slots() int     { return 0 }

func (l PlainUnreal) client(d *Driver) clientLink { return &unrealClient{d: d, link: l} }

func (c *unrealClient) dial(at time.Duration, to netip.AddrPort) {
	c.to = to
	c.handshake, c.d.err = handshake.NewClient(handshake.ClientConfig{Protocol: c.link.Handshake, ClientID: c.d.cfg.clientID(), Rand: c.d.cfg.Rand,
		Timeout: dialTimeout(c.d.cfg.Timeout), Send: func(p []byte) { c.d.write(c.to, p) }})
	if c.d.err != nil {
		return
	}
	c.handshake.Start(at)
}

// dialTimeout is how long the handshake may take: as long as Unreal's, or less if connections must be quicker. A Timeout of never is the connection's: whoever dials
// is told that nobody is there.
func dialTimeout(timeout time.Duration) time.Duration {
	if timeout < 0 {
		return longestDial
	}
	return min(timeout, longestDial)
}

const longestDial = 60 * time.Second

func (c *unrealClient) receive(at time.Duration, from netip.AddrPort, p []byte) {
	if from != c.to {
		c.d.Counters.Refused++
		return
	}
	if c.link.Handshake.IsHandshake(p) {
		if c.ended() {
			c.handshake.Counters.Unexpected++ // the server asks who sent the connection's last packets
			return
		}
		c.handshake.Receive(at, p)
		if c.handshake.State() == handshake.Done && c.conn == nil {
			c.connect(at)
		}
		return
	}
	if c.conn == nil {
		c.handshake.Counters.Unexpected++ // it overtook the end of the handshake, or that was lost
		return
	}
	if c.d.receivedPacket(c.conn, at, p) && c.conn.Silence() == 0 { // a stale one may be another client's, which had this address
		c.handshake.GamePacket(at)
	}
}

func (c *unrealClient) refusals(yield func(string, uint64) bool) {
	c.handshake.Counters.Refusals(yield)
}

func (*unrealClient) parting() int { return 0 }

func (c *unrealClient) connect(at time.Duration) {
	a := c.handshake.Result()
	chain := handler.NewChain(&handshake.Component{Protocol: c.link.Handshake, SessionID: a.SessionID, ClientID: a.ClientID, Lenient: c.link.LenientIDs})
	conn, err := c.d.newConn(at, c.to, a.ServerSeq, a.ClientSeq, chain, 0, 0, func(_ *Conn, p []byte) { c.d.write(c.to, p) })
	if err != nil {
		c.d.err = err
		return
	}
	c.conn, c.restarted = conn, at
	conn.start()
}

// When a client has heard nothing for lostAfter, its address may have changed without its knowing, so it restarts the handshake. One that closes
// has only its LingerTimeout to be heard, 2 s by default.
const (
	lostAfter   = 2 * time.Second
	lostClosing = 500 * time.Millisecond
)

// patience is how long the client waits for a packet before it restarts the handshake.
func (c *unrealClient) patience() time.Duration {
	if c.conn.Closing() {
		return lostClosing
	}
	return lostAfter
}

// ended reports whether the connection has ended: then there is nothing to shake hands for.
func (c *unrealClient) ended() bool { return c.conn != nil && c.conn.Closed() }

func (c *unrealClient) tick(at time.Duration) {
	if c.ended() {
		return
	}
	c.handshake.Tick(at)
	if c.conn != nil && min(c.conn.Silence(), at-c.restarted) >= c.patience() {
		c.restarted = at
		c.handshake.Restart(at)
	}
	if c.handshake.State() == handshake.TimedOut && c.conn == nil && !c.failed {
		c.failed = true
		if version, _, ok := c.handshake.UpgradeDemanded(); ok {
			c.d.dialFailed(fmt.Errorf("%w: the server has the network version %#x", ErrVersion, version))
		} else {
			c.d.dialFailed(ErrNoAnswer)
		}
	}
}
