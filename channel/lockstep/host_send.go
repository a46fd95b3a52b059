package lockstep

import "time"

const (
	// streamHead bounds what leads the data in a stream packet.
	streamHead = 6 + 10 + 10 + 2 + 10 + 10
	// redundantPackets is how much of the stream is repeated in full while it isn't acked. More goes once, and again when it is lost: to who catches up,
	// and where a round trip's turns are that many bytes.
	redundantPackets = 4
	// repeats is how often in a round trip, at most: on a path whose queue is seconds deep each turn would repeat all of these
	// seconds, and so keep the queue full.
	repeats = 8
	// firstPackets may be in flight to a player who catches up before it has acked any.
	firstPackets = 2
	// burstPackets are sent at once at most; then Rate counts.
	burstPackets = 4
	// unackedAfter is how long a player may ack nothing until it gets one packet at a time, and seldom.
	unackedAfter = time.Second
	// seldom is how long such a packet waits at most: a Peer's Timeout may be twice that, where turns are longer.
	seldom   = time.Second / 2
	firstRTT = 250 * time.Millisecond
	// twiceFor is for how long after a loss what is new goes twice to a peer that keeps up: it would wait for a round trip for each packet that is lost.
	twiceFor = 20 * time.Second
	// swing is which part of the round trip its jitter is, at least, where a queue fills: sending more would only make that worse.
	swing = 8
	// promptly is within what a peer who catches up acks: it executes turns as they come, however long they are.
	promptly = 50 * time.Millisecond
)

// flush sends what is due to player p.
func (h *Host) flush(now time.Duration, p int) {
	c := &h.clients[p]
	if c.state == absent || c.transport == nil || (c.blocked || c.state == welcoming) && now < c.nextSend {
		return
	}
	if gone := c.lastHeard + h.cfg.DropAfter; now > gone {
		c.nextSend = max(c.nextSend, gone+1) // there is no deadline for it: it will be heard again first
		return
	}
	if c.trimmed(&h.log) {
		h.deactivate(now, p, DropStalled)
		h.deny(now, p, c.session, DenyTooOld)
		c.end()
		return
	}
	if c.state == welcoming {
		c.nextSend = now + h.cfg.sendEvery()
		h.send(now, c, c.welcome.append(h.open(typeWelcome, p, c.session)))
		return
	}
	h.flushStream(now, p)
}

// flushStream sends news at once, and otherwise each TurnInterval, and second, what isn't acked.
func (h *Host) flushStream(now time.Duration, p int) {
	c := &h.clients[p]
	if h.lost(now, c) {
		c.sent, c.progress, c.burst = c.ack, now, int64(h.cfg.MaxPacket)
		if c.jitter < c.rtt/swing {
			c.lostAt = now
		}
	}
	end, fresh := c.streamEnd(&h.log), c.sent
	if c.ack == c.highest {
		c.ackedAt = now
	}
	deaf := now-c.ackedAt >= unackedAfter
	if (deaf || !h.hasRoom(c, end)) && now < c.nextSend {
		return
	}
	c.nextSend = now + h.cfg.sendEvery()
	room := h.room(c)
	to := min(end, c.ack+c.burst)
	switch {
	case deaf:
		c.nextSend = now + max(h.cfg.sendEvery(), min(4*h.cfg.sendEvery(), seldom))
		if !c.reliable {
			c.sent, to = c.ack, min(end, c.ack+room)
		}
	case c.reliable || now < c.repeatAt:
	case !h.catchesUp(c):
		c.sent, to, c.repeatAt = c.ack, end, h.nextRepeat(now, c)
	case c.keptUp && now-c.lostAt < twiceFor:
		c.sent, c.repeatAt = min(c.sent, max(c.ack, c.newest)), h.nextRepeat(now, c)
	}
	if c.sent == c.ack {
		c.progress = now
	}
	if fresh < to {
		c.newest = fresh
	}
	c.keptUp = false
	stamp := c.stamps.next(now)
	for first := true; first || c.sent < to; first = false {
		next := min(to, c.sent+room)
		if !h.sendStream(now, p, stamp, max(next, c.sent)) {
			return
		}
	}
	c.keptUp = c.sent == end
}

// nextRepeat is when bytes that aren't lost may go again.
func (h *Host) nextRepeat(now time.Duration, c *client) time.Duration {
	return now + max(0, c.rtt/repeats-h.cfg.sendEvery())
}

// hasRoom reports whether there is something new, and it may be sent.
func (h *Host) hasRoom(c *client, end int64) bool {
	return c.sent < end && c.sent-c.ack < c.burst
}

// lost reports whether what a peer who catches up has in flight is overdue. Over a reliable
// transport it may still be: the peer had no room for it.
func (h *Host) lost(now time.Duration, c *client) bool { return c.sent > c.ack && now >= h.overdue(c) }

// overdue is when what a peer has in flight is.
func (h *Host) overdue(c *client) time.Duration {
	after, acks := firstRTT, h.cfg.sendEvery()
	if c.rttKnown {
		after = c.rtt + 4*c.jitter
	}
	if h.catchesUp(c) {
		acks = min(acks, promptly)
	}
	if after += 2 * acks; c.reliable {
		after *= 4
	}
	return c.progress + after
}

// catchesUp reports whether a peer is so far behind that it gets the stream in a window, and not all that isn't acked with each packet.
func (h *Host) catchesUp(c *client) bool {
	return c.streamEnd(&h.log)-c.ack > redundantPackets*h.room(c)
}

// room is how much of the stream a packet has room for.
func (h *Host) room(c *client) int64 {
	return int64(packetLimit(c.transport, h.cfg.MaxPacket) - streamHead)
}

// sendStream sends the stream up to position to.
func (h *Host) sendStream(now time.Duration, p int, stamp uint16, to int64) bool {
	c := &h.clients[p]
	s := stream{inputs: c.received, hashes: c.hashNext, stamp: stamp, waiting: h.Waiting(), offset: c.sent}
	pkt := s.append(h.open(typeStream, p, c.session))
	if !h.send(now, c, c.appendStream(pkt, &h.log, c.sent, to)) {
		return false
	}
	c.sent = to
	c.highest = max(c.highest, to)
	return true
}

// open begins a packet.
func (h *Host) open(typ packetType, player int, session uint32) []byte {
	return envelope{typ, player, session}.append(h.packet[:0])
}

// send hands p to c's transport. When it isn't taken, or exceeds the bandwidth or the player's rate, nothing more is tried for a while.
func (h *Host) send(now time.Duration, c *client, p []byte) bool {
	if !c.bandwidth.allows(now, c.transport, h.cfg.sendEvery()) {
		h.stats.Paced++
		c.blocked, c.nextSend = true, now+h.cfg.sendEvery()/4
		return false
	}
	if wait := c.pace.wait(now, len(p), int64(h.cfg.Rate), burstPackets*int64(h.cfg.MaxPacket)); wait > 0 {
		h.stats.Paced++
		c.blocked, c.nextSend = true, now+wait
		return false
	}
	if err := c.transport.Send(h.clock.Outside(now), p); err != nil {
		h.stats.SendErrors++
		c.blocked, c.nextSend = true, now+h.cfg.sendEvery()/4
		return false
	}
	c.blocked = false
	h.stats.PacketsSent++
	h.stats.BytesSent += uint64(len(p))
	return true
}

// deny tells a peer that it has no session, and why.
func (h *Host) deny(now time.Duration, player int, session uint32, why DenyReason) {
	c := &h.clients[player]
	if session == c.session {
		c.denied = why
	}
	h.stats.Denied++
	h.send(now, c, append(h.open(typeDenied, player, session), byte(why)))
}

// denyAgain answers a Hello of a session that is over, or an Input that belongs to none: number is what it bears.
func (h *Host) denyAgain(now time.Duration, player int, number uint32, input bool) {
	c := &h.clients[player]
	mine := number == c.session && !input || number == c.key && input
	switch {
	case c.begun && mine && c.denied != 0:
		h.deny(now, player, number, c.denied)
	case !input:
		h.deny(now, player, number, DenyStale)
	default:
		h.deny(now, player, number, DenyUnknown)
	}
}

// clientDeadline is when flush has something to send to c.
func (h *Host) clientDeadline(c *client) (at time.Duration, ok bool) {
	switch {
	case c.state == absent || c.transport == nil || c.nextSend-c.lastHeard > h.cfg.DropAfter:
		return 0, false
	case c.state == live && !c.blocked && c.nextSend-c.ackedAt < unackedAfter && h.hasRoom(c, c.streamEnd(&h.log)):
		return h.still.ticked, true // at once
	case c.state == live && !c.blocked && c.sent > c.ack && h.overdue(c)-c.ackedAt < unackedAfter:
		return min(c.nextSend, h.overdue(c)), true
	}
	return c.nextSend, true
}
