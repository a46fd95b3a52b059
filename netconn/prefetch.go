package netconn

// Prefetch touches the memory that the next packet and the next tick need. With thousands of connections most time is
// spent waiting for memory. Call Prefetch for several connections before using the first of them: the waits then
// overlap. It changes nothing, and its result is meaningless.
func (c *Conn) Prefetch() int64 {
	x := int64(c.now) + int64(c.flow.lastSend) + int64(c.rtt.jitter) + int64(c.closer.deadline) + c.sentPackets.first +
		c.notify.OutID() + int64(c.rates.start) + int64(c.rates.losses) + int64(c.sendBuffer.headerPos) + int64(c.order.held) +
		int64(c.Counters.PacketsAcked) + int64(c.in.PacketID) + int64(c.cfg.KeepAlive) + int64(c.cfg.PacketOverhead) + int64(c.cfg.Headroom)
	if c.first < c.next {
		x += int64(c.packetAt(c.first).bytes)
	}
	if c.noteHead < c.noteTail {
		x += c.noteAt(c.noteHead).seq
	}
	return x + c.channels.Prefetch()
}
