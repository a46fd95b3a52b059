package exercise

import "time"

// checkBounds checks queues and windows against what is documented.
func (e *end) checkBounds() {
	o, t := &e.g.opt, e.conn.Table()
	window := o.protocol.PacketWindow
	if window == 0 {
		window = 256
	}
	if o.coding.Repairs > 0 {
		window = max(window, 256) // it bounds packets with bunches: those with symbols alone are besides, up to the history
	}
	// Beyond a full window a packet leaves each KeepAlive, at most until the connection times out, and for each packet received one with its ack.
	n, received := e.conn.Stats().PacketsInFlight, e.conn.Counters.PacketsReceived
	if n <= window {
		e.answered = received
	}
	keepAlive := o.keepAlive
	if keepAlive == 0 {
		keepAlive = 200 * time.Millisecond
	}
	window += int(2*o.timeout/min(keepAlive, time.Second)) + 2 // while bunches wait it is a second at most
	if n > window+int(received-e.answered) {
		e.g.w.Failf("bounds", "%v: %d packets in flight", e, n)
	}
	if t.Len() > maxChannels {
		e.g.w.Failf("bounds", "%v: %d channels", e, t.Len())
	}
	waiting := 0
	for ch := range t.All {
		waiting += ch.NumOutRec()
		if limit := o.protocol.ReliableBuffer; ch.NumOutRec() > limit || ch.NumInRec() > limit {
			e.g.w.Failf("bounds", "%v: %v holds %d reliable bunches to send and %d received", e, ch, ch.NumOutRec(), ch.NumInRec())
		}
	}
	if t.Waiting() > 2*waiting+64 {
		e.g.w.Failf("bounds", "%v: %d bunches wait for the window, of %d", e, t.Waiting(), waiting)
	}
}
