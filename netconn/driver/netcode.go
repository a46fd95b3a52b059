package driver

import (
	"net/netip"
	"time"

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
	slotServer[*netcode.Server]
}

func (l Netcode) server(d *Driver) serverLink {
	s := &netcodeServer{slotServer[*netcode.Server]{d: d}}
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

// tick tells the machine the time of day, by which tokens expire.
func (s *netcodeServer) tick(at time.Duration) {
	s.m.SetClock(at, uint64(s.d.now.Unix()))
	s.slotServer.tick(at)
}

func (s *netcodeServer) conn(from netip.AddrPort) *Conn {
	if slot, ok := s.m.SlotOf(from); ok {
		s.d.fetched += s.m.Fetch(slot)
		return s.conns[slot]
	}
	return nil
}

func (s *netcodeServer) refusals(yield func(string, uint64) bool) { s.m.Counters.Refusals(yield) }

// Connected is the machine's: a client has a slot.
func (s *netcodeServer) Connected(slot int, info netcode.ClientInfo) {
	if c := s.join(slot, info.Addr, netcode.Headroom, netcode.Tailroom); c != nil {
		c.clientID, c.userData = info.ID, *info.UserData
	}
}

// Disconnected is the machine's.
func (s *netcodeServer) Disconnected(slot int, reason netcode.Reason) {
	s.leave(slot, reason == netcode.TimedOut, reason.String())
}

// netcodeClient is the client's side. It is the machine's handler.
type netcodeClient struct {
	slotClient[*netcode.Client]
	link Netcode
}

func (l Netcode) client(d *Driver) clientLink {
	c := &netcodeClient{slotClient[*netcode.Client]{d: d}, l}
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

func (c *netcodeClient) refusals(yield func(string, uint64) bool) { c.m.Counters.Refusals(yield) }

// StateChanged is the machine's.
func (c *netcodeClient) StateChanged(_, to netcode.State) {
	switch {
	case to == netcode.Connected:
		c.join(netcode.Headroom, netcode.Tailroom)
	case to <= netcode.Disconnected:
		c.leave(to == netcode.ConnTimedOut, to.String())
	}
}
