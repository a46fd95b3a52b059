package driver

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Listen opens a server at an address like ":7777".
func Listen(addr string, cfg Config) (*Driver, error) {
	d, err := open(addr, cfg)
	if err != nil {
		return nil, err
	}
	d.server = d.cfg.Link.server(d)
	return d.usable()
}

// usable is d, or what is wrong with its settings.
func (d *Driver) usable() (*Driver, error) {
	if d.err == nil {
		return d, nil
	}
	_ = d.socket.Close() // the settings' error is the one to tell
	return nil, d.err
}

// Dial opens a client of the server at addr. The connection comes about while it is
// ticked; Config.Joined tells.
func Dial(addr string, cfg Config) (*Driver, error) {
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("driver: %w", err)
	}
	d, err := open(localFor(to.AddrPort(), cfg.Link), cfg)
	if err != nil {
		return nil, err
	}
	d.client = d.cfg.Link.client(d)
	ap := to.AddrPort()
	d.client.dial(0, netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()))
	d.flush()
	return d.usable()
}

// localFor is where a client's socket is: on the loopback if its server is, for no firewall to ask about it. Who has
// a token may go to any of its servers.
func localFor(server netip.AddrPort, l Link) string {
	token := false
	switch l := l.(type) {
	case Netcode:
		token = l.Token != nil
	case *Netcode:
		token = l.Token != nil
	}
	switch {
	case token || !server.Addr().IsLoopback():
		return ":0"
	case server.Addr().Unmap().Is4():
		return "127.0.0.1:0"
	}
	return "[::1]:0"
}

func open(addr string, cfg Config) (*Driver, error) {
	if cfg.MaxDatagrams < 0 {
		return nil, fmt.Errorf("driver: Config.MaxDatagrams is %d; it must be positive, or 0 for the default", cfg.MaxDatagrams)
	}
	if err := cfg.checkPresets(); err != nil {
		return nil, err
	}
	d := &Driver{cfg: cfg.filled(), logged: cfg.Logger != nil, simulated: cfg.Clock != nil, done: make(chan struct{})}
	d.epoch = d.cfg.Clock()
	d.cfg.Channels = d.channels()
	d.socket = cfg.Socket
	if d.socket == nil {
		cfg.UDP.NoPoller = cfg.UDP.NoPoller || !cfg.Prompt // who reads now and then needn't be woken
		s, err := udp.Listen(addr, cfg.UDP)
		if err != nil {
			return nil, fmt.Errorf("driver: %w", err)
		}
		d.socket = s
	}
	d.makeBatches()
	return d, nil
}

// makeBatches makes room for as many datagrams as the socket reads or writes at once.
func (d *Driver) makeBatches() {
	n := d.socket.BatchSize()
	d.in, d.out, d.near = make([]udp.Message, n), make([]udp.Message, n), make([]*Conn, n)
	buf := make([]byte, 2*n*maxDatagram)
	for i := range n {
		d.in[i].Buf, buf = buf[:maxDatagram:maxDatagram], buf[maxDatagram:]
		d.out[i].Buf, buf = buf[:0:maxDatagram], buf[maxDatagram:]
	}
}

// channels is the configured types with the control channel of the login, unless the game has its own.
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
