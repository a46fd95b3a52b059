// Package linkend ends a driver's connections when the sockets below lose their sessions.
package linkend

import (
	"net/netip"

	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Tell ends the connection of an address, and says why: as a time-out if its session is lost, as nobody has left then. Only the driver's goroutine may call it.
func Tell(d *driver.Driver, addr netip.AddrPort, why error, lost bool) {
	for c := range d.Conns {
		if c.RemoteAddr() != addr {
			continue
		}
		if lost {
			c.LinkLost(c.Now(), why)
		} else {
			c.LinkClosed(c.Now(), why.Error())
		}
		return
	}
}
