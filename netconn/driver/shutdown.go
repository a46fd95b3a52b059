package driver

import (
	"fmt"
)

// Shutdown begins the orderly end of a server. Every connection is closed as by CloseWithReason, so that what was sent
// before arrives. New clients are refused with the same reason. For both the error is ErrShuttingDown, and the Reason is
// "shutting down: " and the text given here. A session.Redialer goes on dialing. Tick until Len is 0, then Close. Len is
// 0 when all clients have been told, also those in their login, and the link has said goodbye to them, which it does
// 250 ms later than the connection. That takes at most Config.LingerTimeout, and 5 s more for clients that never begin
// their login. A client whose handshake ends after Shutdown doesn't hold it up: when Close comes before it was told, its
// dial ends with ErrDenied without a reason, or with ErrNoAnswer:
//
//	srv.Shutdown("back in an hour")
//	for srv.Len() > 0 { ... TickDispatch, TickFlush ... }
//	err := srv.Close()
//
// A client's connection is closed in the same way.
func (d *Driver) Shutdown(reason string) {
	first := d.leaving == nil
	if first {
		d.leaving = ErrShuttingDown
		if reason != "" {
			d.leaving = fmt.Errorf("%w: %s", ErrShuttingDown, reason)
		}
	}
	for _, c := range d.conns {
		c.leaves = c.leaves || first // later ones could hold it up for ever
		if !c.turnedAway() {
			c.CloseWithError(d.leaving)
		}
	}
}
