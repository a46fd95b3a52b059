package driver

import (
	"errors"
	"net"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// ErrNoSocket is Rebind's without a socket.
var ErrNoSocket = errors.New("driver: Rebind needs a socket; open one with udp.Listen")

// Rebind gives the driver another socket and closes the one it had: after that failed (Err, which is nil then), or when the
// machine has moved to another network. Connections go on, what was lost with the old socket is sent again.
//
// A server needs a socket at its old address, or its clients don't find it. To a server, a client at
// another address is another client: with [PlainUnreal] the two shake hands again and the connection goes on; with [Netcode]
// and [PlainSalted], whose clients are bound to their addresses, it goes on only if the new socket has the old one's
// address and port, and otherwise times out.
//
// Run ends when its socket fails, so call Rebind before that through Do, or tick the driver yourself.
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
	d.nOut = 0
	d.makeBatches()
	if d.failed {
		d.err, d.failed = nil, false
	}
	return nil
}

// socketFailed notes an error that the socket doesn't come back from.
func (d *Driver) socketFailed(err error) { d.err, d.failed = err, true }
