package driver

import (
	"fmt"
)

// Shutdown begins the orderly end of a server: every connection is closed as by CloseWithReason, so that what was sent before
// arrives, and clients that come from now on are refused with the same reason, which is ErrDenied to them. Tick until
// Len is 0, at most Config.LingerTimeout, then Close:
//
//	srv.Shutdown("back in an hour")
//	for srv.Len() > 0 { ... TickDispatch, TickFlush ... }
//	err := srv.Close()
//
// A client's connection is closed in the same way.
func (d *Driver) Shutdown(reason string) {
	if d.leaving == nil {
		d.leaving = ErrShuttingDown
		if reason != "" {
			d.leaving = fmt.Errorf("%w: %s", ErrShuttingDown, reason)
		}
	}
	for c := range d.Conns {
		c.CloseWithError(d.leaving)
	}
}
