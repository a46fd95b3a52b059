package driver

import (
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// Netcode is netcode 1.02, the default: only clients with a token from the game's back end connect, and every
// packet is encrypted and authenticated. The zero value takes its key from the environment variable
// named by KeyEnv, or makes one for development that is good within this process.
type Netcode struct {
	// ProtocolID tells games and their versions apart; both ends must have the same.
	ProtocolID uint64
	// Key is what the server shares with the back end. Default that in the environment, else one for
	// development. A client with a key and no Token makes its own.
	Key netcode.Key
	// Addrs is where tokens say the server is. Default the socket's own address; when that is
	// unspecified, as with ":7777", every address with its port, so name the public
	// one if several servers share a key.
	Addrs []netip.AddrPort
	// Slots is the clients at most. Default Config.MaxConns.
	Slots int
	// Token is a client's connect token, for one Dial. Its servers are dialed, whatever Dial's address.
	Token netcode.Token
}

// netcodeServer is the server's side. It is the machine's handler.
type netcodeServer struct {
	d     *Driver
	m     *netcode.Server
	conns []*Conn // by slot
	at    time.Duration
}

func (l Netcode) server(d *Driver) serverLink {
	s := &netcodeServer{d: d}
	if l.Slots == 0 {
		l.Slots = d.cfg.MaxConns
	}
	key, made, err := l.key(true)
	if err != nil {
		d.err = err
		return s
	}
	if made {
		warnOnce(d.cfg.Logger, d.logged)
	}
	if l.Addrs == nil {
		l.Addrs = []netip.AddrPort{d.LocalAddr()}
	}
	if s.m, d.err = netcode.NewServer(netcode.ServerConfig{ProtocolID: l.ProtocolID, PrivateKey: key, Addrs: l.Addrs, Slots: l.Slots, Handler: s,
		UnixAtZero: uint64(d.epoch.Unix()), Rand: d.cfg.Rand}); d.err == nil {
		s.conns = make([]*Conn, l.Slots)
	}
	return s
}

func (s *netcodeServer) receive(at time.Duration, from netip.AddrPort, p []byte) {
	s.at = at
	s.m.Receive(at, from, p)
}

// tick frees the slots of connections that have ended, and looks at the clock.
func (s *netcodeServer) tick(at time.Duration) {
	s.at = at
	s.m.SetClock(at, uint64(s.d.now.Unix()))
	if s.d.parted > 0 {
		s.part(at)
	}
	s.m.Tick(at)
}

// part frees the slots of connections that have ended.
func (s *netcodeServer) part(at time.Duration) {
	for slot, c := range s.conns {
		if c != nil && c.Closed() {
			s.conns[slot] = nil
			s.m.Disconnect(at, slot)
		}
	}
}

func (s *netcodeServer) conn(from netip.AddrPort) *Conn {
	if slot, ok := s.m.SlotOf(from); ok {
		s.d.fetched += s.m.Fetch(slot)
		return s.conns[slot]
	}
	return nil
}

func (s *netcodeServer) refusals(yield func(string, uint64) bool) { s.m.Counters.Refusals(yield) }

// Send is the machine's.
func (s *netcodeServer) Send(to netip.AddrPort, p []byte) { s.d.write(to, p) }

// Connected is the machine's: a client has a slot.
func (s *netcodeServer) Connected(slot int, info netcode.ClientInfo) {
	c, err := s.d.newConn(s.at, info.Addr, firstSequence, firstSequence, nil, netcode.Headroom, netcode.Tailroom, func(_ *Conn, p []byte) {
		if s.m.SendPayload(s.at, slot, p) != nil {
			s.d.Counters.SendErrors++
		}
	})
	if err != nil {
		s.d.err = err
		return
	}
	c.clientID, c.userData = info.ID, *info.UserData
	s.conns[slot] = c
}

// Payload is the machine's.
func (s *netcodeServer) Payload(slot int, p []byte) {
	if c := s.conns[slot]; c == nil || c.ReceivedPacket(s.at, p) != nil {
		s.d.Counters.Refused++
	}
}

// Disconnected is the machine's.
func (s *netcodeServer) Disconnected(slot int, reason netcode.Reason) {
	if c := s.conns[slot]; c != nil {
		s.conns[slot] = nil
		if reason == netcode.TimedOut {
			c.LinkTimedOut(s.at, "the client fell silent")
			return
		}
		c.LinkClosed(s.at, reason.String())
	}
}

// netcodeClient is the client's side. It is the machine's handler.
type netcodeClient struct {
	d      *Driver
	m      *netcode.Client
	link   Netcode
	conn   *Conn
	server netip.AddrPort
	at     time.Duration
	failed bool
}

func (l Netcode) client(d *Driver) clientLink {
	c := &netcodeClient{d: d, link: l}
	c.m = netcode.NewClient(c)
	return c
}

func (c *netcodeClient) dial(at time.Duration, to netip.AddrPort) {
	c.at = at
	token := c.link.Token
	if token == nil {
		if token, c.d.err = c.link.ownToken(c.d, to); c.d.err != nil {
			return
		}
	}
	if !c.d.simulated && !spend(token) {
		c.d.err = netcode.ErrTokenReused
		return
	}
	if err := c.m.Connect(at, token); err != nil {
		c.d.err = err
	}
}

func (c *netcodeClient) receive(at time.Duration, from netip.AddrPort, p []byte) {
	c.at = at
	c.m.Receive(at, from, p)
}

func (c *netcodeClient) tick(at time.Duration) {
	c.at = at
	if c.conn != nil && c.conn.Closed() {
		c.m.Disconnect(at)
		c.conn = nil
	}
	c.m.Tick(at)
}

func (c *netcodeClient) refusals(yield func(string, uint64) bool) { c.m.Counters.Refusals(yield) }

// Send is the machine's.
func (c *netcodeClient) Send(to netip.AddrPort, p []byte) {
	c.server = to
	c.d.write(to, p)
}

// Payload is the machine's.
func (c *netcodeClient) Payload(p []byte) {
	if c.conn == nil || c.conn.ReceivedPacket(c.at, p) != nil {
		c.d.Counters.Refused++
	}
}

// StateChanged is the machine's.
func (c *netcodeClient) StateChanged(_, to netcode.State) {
	switch {
	case to == netcode.Connected:
		conn, err := c.d.newConn(c.at, c.server, firstSequence, firstSequence, nil, netcode.Headroom, netcode.Tailroom, func(_ *Conn, p []byte) {
			if c.m.SendPayload(c.at, p) != nil {
				c.d.Counters.SendErrors++
			}
		})
		if err != nil {
			c.d.err = err
			return
		}
		c.conn = conn
	case to > netcode.Disconnected: // on the way
	case c.conn != nil && to == netcode.ConnTimedOut:
		c.conn.LinkTimedOut(c.at, "the server fell silent")
		c.conn = nil
	case c.conn != nil:
		c.conn.LinkClosed(c.at, to.String())
		c.conn = nil
	case to < netcode.Disconnected && !c.failed:
		c.failed = true
		c.d.err = errRefused
		c.d.noAnswer(netconn.CloseResult{Code: netconn.TimedOut, Reason: to.String(), Err: errRefused})
	}
}
