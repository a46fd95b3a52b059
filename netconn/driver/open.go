package driver

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Listen opens a server at an address like ":7777".
func Listen(addr string, cfg Config) (*Driver, error) {
	d, err := open(addr, cfg, true)
	if err != nil {
		return nil, err
	}
	d.server = d.cfg.Link.server(d)
	return d.usable()
}

// usable returns d, or the error of its settings.
func (d *Driver) usable() (*Driver, error) {
	if d.err == nil {
		return d, nil
	}
	_ = d.socket.Close() // d.err is the one to return
	return nil, d.err
}

// Dial opens a client of the server at addr; without a host, as in ":7777", on this machine. The connection is made
// while the driver is ticked; then Config.Joined is called.
func Dial(addr string, cfg Config) (*Driver, error) {
	to, err := resolve(addr)
	if err != nil {
		return nil, err
	}
	if to.Port() == 0 && !hasToken(cfg.Link) {
		return nil, fmt.Errorf("driver: the address %q to dial has no port", addr)
	}
	d, err := open(localFor(to, cfg.Link), cfg, false)
	if err != nil {
		return nil, err
	}
	d.client = d.cfg.Link.client(d)
	d.client.dial(0, to)
	d.flush()
	return d.usable()
}

// resolve returns the address to dial. Without a host, or with an unspecified one, it is this machine, as for net.Dial.
func resolve(addr string) (netip.AddrPort, error) {
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("driver: %w", err)
	}
	ap := to.AddrPort()
	host := ap.Addr().Unmap()
	if !host.IsValid() || host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrPortFrom(host, ap.Port()), nil
}

// hasToken reports whether a client of the link dials the servers of a token.
func hasToken(l Link) bool {
	switch l := l.(type) {
	case Netcode:
		return l.Token != nil
	case *Netcode:
		return l.Token != nil
	}
	return false
}

// localFor is the local address of a client's socket: on the loopback if the server is, so that no firewall asks. A
// client with a token may connect to any of the token's servers.
func localFor(server netip.AddrPort, l Link) string {
	switch {
	case hasToken(l) || !server.Addr().IsLoopback():
		return ":0"
	case server.Addr().Is4():
		return "127.0.0.1:0"
	}
	return "[::1]:0"
}

func open(addr string, cfg Config, server bool) (*Driver, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := cfg.checkPresets(); err != nil {
		return nil, err
	}
	d := &Driver{cfg: cfg.filled(), logged: cfg.Logger != nil, simulated: cfg.Clock != nil, done: make(chan struct{})}
	d.epoch = d.cfg.Clock()
	d.share.bound = d.cfg.MaxConnDatagrams
	d.cfg.Channels = d.channels()
	if err := d.checkLogin(server); err != nil {
		return nil, err
	}
	if err := d.checkConns(server); err != nil {
		return nil, err
	}
	if err := d.cfg.checkPackets(cfg.MaxDatagram); err != nil {
		return nil, err
	}
	if err := d.cfg.checkCoding(); err != nil {
		return nil, err
	}
	d.warnUseless(server)
	d.socket = cfg.Socket
	if d.socket == nil {
		cfg.UDP.NoPoller = cfg.UDP.NoPoller || !cfg.Prompt // a driver that polls its socket needn't be woken
		cfg.UDP.Whole = cfg.UDP.Whole || d.cfg.findsSize()
		s, err := udp.Listen(addr, cfg.UDP)
		if err != nil {
			return nil, fmt.Errorf("driver: %w", err)
		}
		d.socket = s
	}
	d.makeBatches()
	return d, nil
}

// check returns an error for a value out of range among the driver's own settings. 0 is a default's.
func (c *Config) check() error {
	optional := func(field string, value, low, high int) error {
		if value == 0 {
			return nil
		}
		return setting.Within(netconn.ErrConfig, "driver.Config."+field, value, low, high)
	}
	slots := 0
	if c.Link != nil {
		slots = c.Link.slots()
	}
	err := setting.First(
		optional("MaxDatagrams", c.MaxDatagrams, 1, maxMaxDatagrams),
		optional("MaxConnDatagrams", max(c.MaxConnDatagrams, 0), 1, maxMaxDatagrams),
		optional("MaxConns", c.MaxConns, 1, maxMaxConns),
		optional("NetSpeed", c.NetSpeed, congestion.MinNetSpeed, math.MaxInt32),
		optional("TickRate", c.TickRate, 1, maxTickRate),
		optional("Parallel", int(c.Parallel), 1, maxCores),
		optional("MaxDatagram", max(c.MaxDatagram, 0), 1, maxDatagram),
		optional("Link.Slots", slots, 1, netcode.MaxSlots))
	if err == nil && c.LoginTimeout != 0 {
		err = setting.Within(netconn.ErrConfig, "driver.Config.LoginTimeout", c.LoginTimeout, minLoginTimeout, maxLoginTimeout)
	}
	if err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	return nil
}

// checkLogin returns an error for settings of the driver's own login that can't be sent.
func (d *Driver) checkLogin(server bool) error {
	var err error
	switch {
	case !d.login:
	case server:
		err = d.cfg.Server.Validate()
	default:
		err = d.cfg.Client.Validate()
	}
	if err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	return nil
}

// checkPackets returns an error for packets larger than the link can carry, and for a MaxDatagram, 0 when it isn't set, that is
// smaller than their datagrams are anyway.
func (c *Config) checkPackets(maxDatagram int) error {
	if least := c.Protocol.Bunch.PacketBytes() + c.overhead(); maxDatagram > 0 && maxDatagram < least {
		return fmt.Errorf("%w: driver.Config.MaxDatagram %d must be at least %d, the datagram of Protocol.Bunch.MaxPacket; lower that, or set -1 so that no larger ones are tried",
			netconn.ErrConfig, maxDatagram, least)
	}
	if n, most := c.Protocol.Bunch.PacketBits()/8, c.Link.maxPacket(); n > most {
		link := strings.TrimPrefix(strings.TrimLeft(fmt.Sprintf("%T", c.Link), "*"), "driver.")
		return fmt.Errorf("%w: Protocol.Bunch.MaxPacket %d is more than the %d bytes that %s carries", netconn.ErrConfig, n, most, link)
	}
	return nil
}

// findsSize reports whether connections try larger packets, where the socket is for that.
func (c *Config) findsSize() bool {
	return c.MaxDatagram > 0 && !c.Protocol.Unreal && c.Coding == (netconn.Coding{})
}

// largestPacket is the largest packet that connections try.
func (d *Driver) largestPacket() int {
	c := &d.cfg
	if d.socket == nil || !c.findsSize() || !udp.SendsWhole(d.socket) {
		return 0
	}
	if most := min(c.MaxDatagram-c.overhead(), c.Link.maxPacket()); most > c.Protocol.Bunch.PacketBytes() {
		return most
	}
	return 0
}

// overhead is how much larger a datagram is than its packet.
func (c *Config) overhead() int {
	if c.Checksum {
		return c.Link.overhead() + checksumBytes
	}
	return c.Link.overhead()
}

// checkCoding returns an error for Coding over a link whose packets have a prefix.
func (c *Config) checkCoding() error {
	switch c.Link.(type) {
	case PlainUnreal, *PlainUnreal:
		if c.Coding != (netconn.Coding{}) {
			return fmt.Errorf("%w: Coding isn't for PlainUnreal; leave it off, or take Netcode or PlainSalted", netconn.ErrConfig)
		}
	}
	return nil
}

// checkConns checks the settings of connections before there is one.
func (d *Driver) checkConns(server bool) error {
	cfg := d.connConfig(&Conn{driver: d}, server)
	cfg.LowLevelSend, cfg.Trace = func([]byte) {}, nil
	if _, err := netconn.New(cfg, 0, 0, 0); err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	return nil
}

// warnUseless warns of settings that do nothing as they are: channel types that the peer may open but that have no Accept, as bunches on them are ignored, and a
// Redundancy without Copies.
func (d *Driver) warnUseless(server bool) {
	if !d.logged {
		return
	}
	if r := d.cfg.Redundancy; r.Copies == 0 && r != (netconn.Redundancy{}) {
		d.cfg.Logger.Warn("Redundancy has no Copies: nothing is repeated")
	}
	if k := d.cfg.Coding; k.Repairs == 0 && k != (netconn.Coding{}) {
		d.cfg.Logger.Warn("Coding has no Repairs: nothing is repaired")
	}
	for _, t := range d.cfg.Channels {
		peerOpens := t.ClientOpen && server || t.ServerOpen && !server
		if peerOpens && t.Accept == nil && t.Name != bunch.Control {
			d.cfg.Logger.Warn("the peer may open channels of a type without Accept: they are ignored", "type", t.Name)
		}
	}
}

// makeBatches allocates the datagrams that are read at once, and those that are sent.
func (d *Driver) makeBatches() {
	n := d.socket.BatchSize()
	d.in, d.near = buffers(n), make([]*Conn, n)
	d.makeOutgoing()
}

// buffers makes n messages with room for a datagram each.
func buffers(n int) []udp.Message {
	msgs, buf := make([]udp.Message, n), make([]byte, n*maxDatagram)
	for i := range msgs {
		msgs[i].Buf, buf = buf[:maxDatagram:maxDatagram], buf[maxDatagram:]
	}
	return msgs
}

// channels is the configured types, plus the login's control channel unless the game has its own.
func (d *Driver) channels() []channel.Type {
	types := slices.Clone(d.cfg.Channels)
	own := false
	for i, t := range types {
		if t.Name == bunch.Control {
			own = true
		} else if t.Accept != nil {
			types[i].Accept = unlessRefused(t.Accept)
		}
	}
	if own {
		return types
	}
	d.login = true
	return slices.Insert(types, 0, channel.Type{Name: bunch.Control, ClientOpen: true, Static: true})
}

// unlessRefused is a game's Accept, which isn't called for a peer that Joined has refused: what it sends until it hears of that is acked and ignored.
func unlessRefused(accept func(*channel.Channel) channel.Handler) func(*channel.Channel) channel.Handler {
	return func(ch *channel.Channel) channel.Handler {
		if c := ConnOf(ch); c != nil && c.refusedInJoined {
			return channel.Nop{}
		}
		return accept(ch)
	}
}
