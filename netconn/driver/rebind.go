package driver

import (
	"errors"
	"net"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// ErrNoSocket is returned by Rebind without a socket.
var ErrNoSocket = errors.New("driver: Rebind needs a socket; open one with udp.Listen")

// Rebind gives the driver another socket and closes the old one. Use it after the socket failed (Err, which is nil
// then), or when the machine has moved to another network. Connections continue; what was lost with the old socket is
// sent again.
//
// A server's new socket needs the old address, or its clients don't find it. To a server, a client with another address
// looks like another client. With [PlainUnreal] the two shake hands again and the connection continues. With [Netcode]
// and [PlainSalted] clients are bound to their addresses: the connection continues only if the new socket has the same
// address and port, and otherwise times out.
//
// Run ends when its socket fails. So call Rebind before that, through Do, or tick the driver yourself.
func (d *Driver) Rebind(s udp.Socket) error {
	switch {
	case s == nil:
		return ErrNoSocket
	case d.ended:
		return net.ErrClosed
	}
	if !d.failed {
		d.flush()
	}
	if s != d.socket {
		_ = d.socket.Close() // it may have failed
	}
	d.mu.Lock() // Do may look
	d.socket = s
	d.mu.Unlock()
	d.makeBatches()
	if d.failed {
		d.err, d.failed = nil, false
	}
	return nil
}

// socketFailed notes an error after which the socket no longer works.
func (d *Driver) socketFailed(err error) { d.err, d.failed = err, true }
