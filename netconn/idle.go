package netconn

import (
	"errors"
	"fmt"
	"time"
)

// Everything that happens because nothing else does: keep-alives, tail probes, time-outs.

// Keep-alives take this part of the rate at most, so that bunches have the rest: at a low rate they are further apart than a short KeepAlive,
// up to keepAliveLate, and to what a peer with our Timeout needs.
const (
	keepAlivePart = 1.0 / 8
	keepAliveLate = 200 * time.Millisecond
)

// awaitedKeepAlive is the longest time without sending while bunches wait for their fate. A keep-alive shows a peer that hears it what it has missed, or that it
// isn't heard. So after a darkness they don't wait for a longer KeepAlive.
const awaitedKeepAlive = time.Second

// keepAliveDue reports whether nothing was sent for KeepAlive, and the rate allows a keep-alive.
func (c *Conn) keepAliveDue() bool {
	idle := c.now - c.flow.lastSend
	return idle >= min(c.cfg.KeepAlive, awaitedKeepAlive) && idle >= c.keepAlive()
}

// keepAlive is the time without sending after which a keep-alive is due.
func (c *Conn) keepAlive() time.Duration {
	most := keepAliveLate
	if c.cfg.Timeout >= 0 {
		most = min(most, c.cfg.Timeout/3)
	}
	if c.cfg.KeepAlive >= most {
		return c.longKeepAlive()
	}
	seconds := float64(c.emptyBytes()) / (keepAlivePart * c.cfg.Controller.Rate()) // +Inf at a rate of 0
	return max(c.cfg.KeepAlive, time.Duration(min(seconds, most.Seconds())*float64(time.Second)))
}

// longKeepAlive is KeepAlive, or awaitedKeepAlive while bunches in flight or in a queue wait for their fate.
func (c *Conn) longKeepAlive() time.Duration {
	if c.cfg.KeepAlive > awaitedKeepAlive && (c.carrying > 0 || c.Table().Unacked() > 0) {
		return awaitedKeepAlive
	}
	return c.cfg.KeepAlive
}

// emptyBytes is about what a packet without bunches takes.
func (c *Conn) emptyBytes() int { return c.cfg.PacketOverhead + 16 }

// Beyond a full window nothing leaves but an empty packet each KeepAlive, since nobody would hear of us again otherwise. Most
// of the time that is the newest packet once more, with the acks of now: it takes no sequence. A peer that hasn't got it takes
// it, whenever the darkness ends, and one that has it takes the acks; so both are back after two KeepAlives and a few round trips. A longer KeepAlive than
// awaitedKeepAlive is that while bunches wait, and an end whose acks were lost answers (acksLost): so also where only one of them has something to say.
//
// An end of Unreal's takes nothing from a packet that it has, so that new ones go out too, now and then. Each takes a
// sequence that stays in flight until the peer is heard, so they become rarer: after a silence s the next one waits for
// s/darkness, but no longer than maxWait until maxWaitTill. In a silence of any length, from a window w on and with
// a KeepAlive of 1 ms, they are at most
//
//	w + d*(1 + ln(3 s / 1 ms)) + (T - 3*d)/3 + d*ln(silence / T)
//
// and maxForcedAnswers, where d is darkness and T is maxWaitTill in seconds; both are less for windows above 1024. That is less than 8150 after
// 290 years. Sequences are told apart up to 8191. A peer that acks a packet now and then, and never the newest, begins a new silence each time: at
// maxInFlight its connection ends.
const (
	darkness    = 256
	maxWait     = 3 * time.Second
	maxWaitTill = time.Hour
	wideDark    = 64
	wideTill    = 20 * time.Minute
	maxInFlight = 8160
)

// mayForce allows a new empty packet beyond a full window: acks and keep-alives. Beyond the ack history only when an ack is overdue, or at
// the end: what is older than that counts as lost when the peer is heard again, and goes again.
func (c *Conn) mayForce() bool {
	if c.now >= c.forceAt() || c.closer.controlGone {
		return true
	}
	if c.historyFull() {
		return false
	}
	if !c.flow.unanswered || c.flow.answers == maxForcedAnswers {
		return false
	}
	c.flow.answers++
	return true
}

// maxForcedAnswers is how often an end that hears its peer may answer beyond a full window with a new sequence before the peer acks
// something: an answer is lost where the newest packets of both cross.
const maxForcedAnswers = 32

// forceAt is for a full window, so there is a newest packet.
func (c *Conn) forceAt() time.Duration {
	last := c.newest().at
	wait := c.longKeepAlive()
	if c.newest().onlyAcks() { // otherwise only a new one can go again
		wait = max(wait, c.forceWait(last-c.flow.lastFate))
	}
	at := max(last+wait, c.flow.lastFate+min(c.rtt.smoothed, silentMost)) // while acks come they make room for bunches, not for more of these
	if c.historyFull() {
		at = max(at, c.overdueAt()+1)
	}
	return at
}

// forceWait is how long after the newest packet another new one leaves, after a silence until then.
func (c *Conn) forceWait(silence time.Duration) time.Duration {
	wait, till := silence/darkness, maxWaitTill
	if c.cfg.Protocol.PacketWindow > silentWindow {
		wait, till = silence/wideDark, wideTill
	}
	if silence < till {
		wait = min(wait, maxWait)
	}
	return wait
}

// onlyAcks reports whether the packet says nothing but its acks, so that it may leave again with others.
func (p *sentPacket) onlyAcks() bool { return p.notes == 0 && !p.skipped && !p.probe }

// maySendAgain reports whether the newest packet says nothing but its acks. Where all that is in flight just fits the peer's
// history it isn't sent with other acks: we wouldn't know which of them it has got.
func (c *Conn) maySendAgain() bool { return c.newest().onlyAcks() && !c.historyFull() }

// sendAgain sends the newest packet once more, with the acks of now. It takes no sequence, and has one fate.
func (c *Conn) sendAgain() {
	if !c.maySendAgain() {
		return
	}
	c.countEmpty()
	c.beginPacket(c.packetBytes())
	c.notify.WriteAgain(&c.out)
	c.writePacketInfo()
	c.acksLeft(c.sentPackets.next - 1)
	c.emit(c.endPacket())
}

// A tail probe is a packet sent when reliable bunches wait for their ack and
// nothing else is sent that could reveal their loss. It carries as many of them as it has room for, oldest first, as
// copies are carried.
const maxProbes = 3

// repeatInterval spaces packets that only repeat: a tick of a 60 Hz game.
const repeatInterval = 16 * time.Millisecond

// probeAt is when the next tail probe is due: soon after the last packet while
// copies are still owed, otherwise a round trip and some after the last packet that the peer has to ack. Keep-alives don't put it off.
func (c *Conn) probeAt() (time.Duration, bool) {
	s := &c.sentPackets
	if s.noteHead == s.noteTail-int64(s.pending) || c.rtt.smoothed == 0 || c.windowFull() {
		return 0, false
	}
	if c.flow.probes < c.copies() {
		return c.flow.lastSend + repeatInterval, true
	}
	if c.flow.probes >= c.copies()+maxProbes {
		return 0, false
	}
	return c.flow.lastOwed + (c.rtt.smoothed+4*c.rtt.variance)<<max(0, c.flow.probes-c.copies()), true
}

// probe sends a tail probe when it is due and the controller allows it.
func (c *Conn) probe() {
	if s := &c.sentPackets; s.noteHead != s.noteTail-int64(s.pending) { // else none waits
		c.probeTail()
	}
}

func (c *Conn) probeTail() {
	at, ok := c.probeAt()
	if !ok || c.now < at || c.out.Len() > 0 || c.Budget() <= 0 {
		return
	}
	c.flow.lastOwed = c.now
	if c.flow.probes++; c.flow.probes <= c.copies() {
		c.oweAcks(0) // the copies that are owed ride in it
		return
	}
	c.startPacket()
	if c.repeatTail(); c.pending == 0 {
		c.countEmpty()
	}
	c.sendPacket(0, false)
}

var errTimeout = errors.New("netconn: nothing received")

// timeoutAt is when the connection ends if nothing more is received. A longer LingerTimeout than Timeout waits for a peer that is heard.
func (c *Conn) timeoutAt() (at time.Duration, ok bool) {
	if at, ok = c.flow.lastReceive+c.cfg.Timeout, c.cfg.Timeout >= 0; !c.closer.closing {
		return at, ok
	}
	if ok {
		return min(at, c.closer.deadline), true
	}
	return c.closer.deadline, true
}

// checkTimeouts ends a connection from which nothing was received for Timeout, whose close took too long, or
// that nothing reaches.
func (c *Conn) checkTimeouts() {
	if c.path != nil {
		c.checkPath()
	}
	c.checkRefusals()
	if at, ok := c.timeoutAt(); c.Closed() || !ok || c.now < at {
		return
	}
	if c.closer.closing {
		c.lastWords()
		c.end(ClosedByUs, nil)
	} else {
		if ch := c.Channel(0); ch == nil || ch.OpenAcked() { // a close without the open would break the protocol
			c.lastWords() // maybe it hears us
		}
		c.end(TimedOut, fmt.Errorf("%w for %v", errTimeout, c.cfg.Timeout))
	}
}

// A peer that says of everything that it didn't arrive has the same sent again for ever, at the controller's pace. An honest
// one acks the empty packets among them at least, as they have nothing to be refused for; and it acks reliable bunches of
// channels that it has.
const (
	refusalPackets = 1024
	refusalTime    = 10 * time.Second
	// refusalRounds is how often the peer must have been heard to say so. A peer that is short of memory takes one bunch, and refuses
	// all that is behind it; where an end that ticks once a second sends that bunch once a tick, and 70 % are lost, ten seconds
	// are no more than bad luck.
	refusalRounds = 64
	// refusalTrips is how many round trips it must have gone on: the one bunch that such a peer takes goes again once in each. Where 80 % are lost, all of
	// so many are in one of a million runs.
	refusalTrips = 64
	refusalGap   = time.Second
	// emptyAfter is the naks in a row from which on an empty packet is sent each emptyInterval.
	emptyAfter    = 64
	emptyInterval = 200 * time.Millisecond
	fateLate      = time.Second
)

var (
	errRefuses = errors.New("netconn: the peer says of every packet that it didn't arrive")
	errFewAcks = errors.New("netconn: the peer is heard, but tells the fate of too few packets")
)

// refusals is the naks in a row: of all packets, and of those with reliable bunches of channels that the peer has.
type refusals struct {
	all, reliable nakRun
	lastEmpty     time.Duration // when an empty packet was sent because of them
	pardoned      int           // bytes of packets whose naks were taken for refusals, less what was acked since
}

// mostPardoned bounds pardoned. Whether a nak is a refusal that says nothing of the path is known by what the peer says alone. So a peer that lies, and naks what
// never arrives, has as much pardoned as it acks, and no more than this besides.
const mostPardoned = 64 << 10

// pardon reports whether the nak of a packet that the peer refused may say nothing of the path.
func (r *refusals) pardon(bytes int32) bool {
	if r.pardoned+int(bytes) > mostPardoned {
		return false
	}
	r.pardoned += int(bytes)
	return true
}

// nakRun is naks in a row, at how many times they came, and how long they have been coming. The time without any counts refusalGap at most: after a darkness a peer tells of
// thousands of packets at once that they were lost, and it may be dark again before it has anything to ack.
type nakRun struct {
	packets, rounds int
	lasted, last    time.Duration
}

func (r *nakRun) nak(now time.Duration) {
	if r.packets++; r.packets == 1 {
		r.rounds, r.lasted, r.last = 1, 0, now
	}
	if now != r.last {
		r.rounds++
	}
	r.lasted += min(now-r.last, refusalGap)
	r.last = now
}

// tooLong reports whether an honest peer at a round trip can't have refused, or lost, so many.
func (r *nakRun) tooLong(trip time.Duration) bool {
	return r.packets >= refusalPackets && r.rounds >= refusalRounds && r.lasted >= max(refusalTime, refusalTrips*min(trip, silentMost))
}

// acked and lost note the fate of a packet.
func (r *refusals) acked(p *sentPacket) {
	r.all.packets = 0
	r.pardoned = max(r.pardoned-int(p.bytes), 0)
	if p.reliable && !p.opening {
		r.reliable.packets = 0
	}
}

func (r *refusals) lost(now time.Duration, p *sentPacket) {
	r.all.nak(now)
	if p.reliable && !p.opening {
		r.reliable.nak(now)
	}
}

func (c *Conn) checkRefusals() {
	if r := &c.refusals; r.all.packets >= refusalPackets || r.reliable.packets >= refusalPackets || c.notify.Outstanding() >= maxInFlight {
		c.judgeRefusals()
	}
}

func (c *Conn) judgeRefusals() {
	if n := c.notify.Outstanding(); n >= maxInFlight {
		c.Fail(fmt.Errorf("%w: %d are in flight", errFewAcks, n), false)
	}
	r := &c.refusals.all
	if !r.tooLong(c.rtt.smoothed) {
		r = &c.refusals.reliable
	}
	if !r.tooLong(c.rtt.smoothed) || r == &c.refusals.reliable && (c.path.probing(c.now) || c.onlyCloses()) {
		return
	}
	c.Fail(fmt.Errorf("%w: %d packets in %v", errRefuses, r.packets, r.lasted.Round(time.Millisecond)), false)
}

// onlyCloses reports whether nothing but our close of the connection waits for its ack. A peer that closes too refuses it until what it sent
// has arrived, however long that takes; LingerTimeout ends the wait.
func (c *Conn) onlyCloses() bool {
	ch := c.Channel(0)
	return c.closer.closing && (c.Table().Unacked() <= 1 || ch != nil && ch.Closing()) // an Answerer may have sent more since
}

// wide notes that a packet of the size that was lost gets through, so that what is lost from now on is refused.
func (r *refusals) wide() { r.reliable.packets = min(r.reliable.packets, refusalPackets-emptyAfter) }

// sendEmpty sends an empty packet now and then while the peer acks nothing, or nothing with reliable bunches; and while it is
// heard, but says nothing of ours: maybe only large ones get lost.
func (c *Conn) sendEmpty() {
	r, f := &c.refusals, &c.flow
	if r.all.packets >= emptyAfter || r.reliable.packets >= emptyAfter || f.lastReceive > f.lastFate && c.now-f.lastFate >= fateLate && c.Table().Unacked() > 0 {
		c.sendUnsure()
	}
}

func (c *Conn) sendUnsure() {
	r := &c.refusals
	if c.now-r.lastEmpty < min(c.keepAlive(), emptyInterval) || c.out.Len() > 0 || c.windowFull() {
		return
	}
	r.lastEmpty = c.now
	c.sendAckPacket()
}
