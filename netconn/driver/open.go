package driver

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
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
	if err := cfg.checkPositive(); err != nil {
		return nil, err
	}
	if err := cfg.checkPresets(); err != nil {
		return nil, err
	}
	d := &Driver{cfg: cfg.filled(), logged: cfg.Logger != nil, simulated: cfg.Clock != nil, done: make(chan struct{})}
	d.epoch = d.cfg.Clock()
	d.cfg.Channels = d.channels()
	if err := d.checkLogin(server); err != nil {
		return nil, err
	}
	if err := d.checkConns(server); err != nil {
		return nil, err
	}
	if err := d.cfg.checkPackets(); err != nil {
		return nil, err
	}
	if err := d.cfg.checkCoding(); err != nil {
		return nil, err
	}
	d.warnUnaccepted(server)
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

// checkPositive returns an error for negative numbers in the driver's own settings.
func (c *Config) checkPositive() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"MaxDatagrams", c.MaxDatagrams}, {"MaxConns", c.MaxConns}, {"TickRate", c.TickRate}} {
		if n.value < 0 {
			return fmt.Errorf("driver: Config.%s is %d; it must be positive, or 0 for the default", n.name, n.value)
		}
	}
	if c.MaxDatagram > maxDatagram {
		return fmt.Errorf("driver: Config.MaxDatagram is %d; it must be at most %d", c.MaxDatagram, maxDatagram)
	}
	if c.LoginTimeout < 0 {
		return fmt.Errorf("driver: Config.LoginTimeout is %v; it must be positive, or 0 for the default", c.LoginTimeout)
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

// checkPackets returns an error for packets larger than the link can carry.
func (c *Config) checkPackets() error {
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
	most := c.MaxDatagram - c.Link.overhead()
	if c.Checksum {
		most -= checksumBytes
	}
	return min(most, c.Link.maxPacket())
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
	cfg.LowLevelSend = func([]byte) {}
	if _, err := netconn.New(cfg, 0, 0, 0); err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	return nil
}

// warnUnaccepted warns of channel types that the peer may open but that have no Accept: bunches on them are ignored.
func (d *Driver) warnUnaccepted(server bool) {
	for _, t := range d.cfg.Channels {
		peerOpens := t.ClientOpen && server || t.ServerOpen && !server
		if d.logged && peerOpens && t.Accept == nil && t.Name != bunch.Control {
			d.cfg.Logger.Warn("the peer may open channels of a type without Accept: they are ignored", "type", t.Name)
		}
	}
}

// makeBatches allocates as many datagrams as the socket reads or writes at once.
func (d *Driver) makeBatches() {
	n := d.socket.BatchSize()
	d.in, d.out, d.near = make([]udp.Message, n), make([]udp.Message, n), make([]*Conn, n)
	buf := make([]byte, 2*n*maxDatagram)
	for i := range n {
		d.in[i].Buf, buf = buf[:maxDatagram:maxDatagram], buf[maxDatagram:]
		d.out[i].Buf, buf = buf[:0:maxDatagram], buf[maxDatagram:]
	}
}

// channels is the configured types, plus the login's control channel unless the game has its own.
func (d *Driver) channels() []channel.Type {
	for _, t := range d.cfg.Channels {
		if t.Name == bunch.Control {
			return d.cfg.Channels
		}
	}
	d.login = true
	ctl := channel.Type{Name: bunch.Control, ClientOpen: true, Static: true}
	return append([]channel.Type{ctl}, d.cfg.Channels...)
}
