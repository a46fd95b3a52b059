package lockstep

import "time"

type clientState uint8

const (
	absent    clientState = iota
	welcoming             // the welcome isn't known to have arrived
	live
)

// client is what the Host knows of a player.
//
// Invariant: welcome.base <= ack <= sent <= highest, all positions in the session's stream: from base on the
// setup's bytes, the snapshot's, then the log's from logBase on.
type client struct {
	transport Transport
	reliable  bool   // so that is
	connects  uint32 // of Host.Connect
	pace      pace
	bandwidth bandwidth
	state     clientState
	denied    DenyReason // why the last session ended
	session   uint32     // the last
	key       uint32     // of its packets
	begun     bool       // there was one since the last Connect

	welcome  welcome
	setup    []byte
	snap     []byte // nil when there is none, or once the game has begun and all of it is acked
	logBase  int64
	lag      int64 // the newest turns that it doesn't get
	accepted int64 // version of the setup

	ack, sent, highest int64
	burst              int64 // bytes in flight allowed
	newest             int64 // where what was sent last for the first time begins
	keptUp             bool  // everything was sent by then
	executed           int64

	lastHeard, nextSend, progress time.Duration
	lostAt                        time.Duration // when something was last overdue on a path that no queue fills
	ackedAt                       time.Duration // when it acked something, or had acked all
	repeatAt                      time.Duration // when all that isn't acked may be sent again
	blocked                       bool          // the transport took no more; wait for nextSend
	stamps                        stamps
	rtt, jitter                   time.Duration
	rttKnown                      bool

	life       int64
	stall      stall
	budget     inputBudget
	joining    bool  // the Joined event is pending
	joinFrom   int64 // turns it must have executed to come back after a drop
	received   int64 // the next turn whose input we lack
	firstInput int64 // turns before have none
	lagging    bool
	away       int64  // turns that it was substituted, less those since; it gets so many to send the hashes of those
	sizes      []int  // of input t at t%len
	early      uint64 // a bit for each of sizes: it is there, and not taken yet
	late       uint64 // likewise: the turn was completed without it, and it hasn't come since
	data       []byte
	maxInput   int

	hashNext     int64
	differs      Event // of the first turn known whose hash differs
	desynced     bool  // that was told, in this session
	unhashed     bool  // its hashes aren't waited for until one comes
	unhashedTold bool
	overruled    bool // by Host.Judge
}

func (c *client) init(cfg *Config) {
	n := cfg.inputSlots()
	c.sizes, c.data, c.maxInput = make([]int, n), make([]byte, n*cfg.MaxInput), cfg.MaxInput
	c.stall.pausedAt, c.bandwidth.next, c.lostAt = longAgo, longAgo, longAgo
}

// setInput keeps the input of turn, which is at most MaxDelay ahead of those collected.
func (c *client) setInput(turn int64, in []byte) {
	i := int(turn) & (len(c.sizes) - 1)
	c.sizes[i] = copy(c.data[i*c.maxInput:(i+1)*c.maxInput], in)
	c.early |= 1 << i
	c.late &^= 1 << i
}

// takeInOrder takes the inputs that are there from received on. One that the budget has nothing left for is forgotten.
func (c *client) takeInOrder(cfg *Config) {
	for {
		i := int(c.received) & (len(c.sizes) - 1)
		there := c.early>>i&1 != 0
		c.early &^= 1 << i
		if !there || c.sizes[i] > c.budget.left {
			break
		}
		c.budget.spend(cfg, c.sizes[i])
		c.received++
	}
}

// tooLate reports whether the input of a turn before received comes for the first time, and the turn was completed without it.
func (c *client) tooLate(turn int64) bool {
	bit := uint64(1) << (int(turn) & (len(c.sizes) - 1))
	if c.late&bit == 0 || turn < c.received-int64(len(c.sizes)) {
		return false
	}
	c.late &^= bit
	return true
}

// input is the input of turn.
func (c *client) input(turn int64) []byte {
	i := int(turn) & (len(c.sizes) - 1)
	return c.data[i*c.maxInput:][:c.sizes[i]]
}

// begin starts a session.
func (c *client) begin(now time.Duration, session uint32, cfg *HostConfig) {
	c.end()
	c.session, c.denied = session, 0
	c.begun = true
	c.highest = 0
	c.accepted = 0
	c.lastHeard, c.blocked = now, false
	c.rttKnown, c.stamps = false, stamps{}
}

// restart begins the session's stream, or another one.
func (c *client) restart(now time.Duration, w welcome, setup, snap []byte, logBase int64, cfg *HostConfig) {
	c.state = welcoming
	w.base, w.setup, w.snapshot = c.highest+1, len(setup), len(snap) // above all acks of the one before
	c.welcome, c.setup, c.snap, c.logBase = w, setup, snap, logBase
	c.key = w.key
	c.ack, c.sent, c.highest, c.burst = w.base, w.base, w.base, min(int64(cfg.Window), firstPackets*int64(cfg.MaxPacket))
	c.executed, c.hashNext = w.start, w.start
	c.desynced, c.unhashed, c.unhashedTold, c.overruled = false, false, false, false
	c.nextSend, c.progress, c.ackedAt, c.repeatAt = now, now, now, now
	c.lagging, c.away, c.joinFrom = false, 0, 0
}

// end ends the session, if there is one.
func (c *client) end() { c.state, c.setup, c.snap = absent, nil, nil }

// past reports whether session is over, or older than the last: its late packets must not
// end the one under way. Those before the last Connect don't count: whoever had the place then chose their numbers.
func (c *client) past(session uint32) bool {
	return c.begun && int32(session-c.session) <= 0
}

// turnsAt is the position of the first turn.
func (c *client) turnsAt() int64 {
	return c.welcome.base + int64(c.welcome.setup) + int64(c.welcome.snapshot)
}

// streamEnd is where the stream ends for now.
func (c *client) streamEnd(l *turnLog) int64 {
	end := l.end
	if c.lag > 0 {
		end = max(c.logBase, l.offset(max(l.first, l.next-c.lag)))
	}
	return c.turnsAt() + end - c.logBase
}

// trimmed reports whether what the peer needs next has left the log.
func (c *client) trimmed(l *turnLog) bool {
	return c.logBase+max(0, c.ack-c.turnsAt()) < l.start
}

// appendStream appends [from, to) of the stream.
func (c *client) appendStream(dst []byte, l *turnLog, from, to int64) []byte {
	at := c.welcome.base
	for i, b := range [...][]byte{c.setup, c.snap} {
		size := int64([...]int{c.welcome.setup, c.welcome.snapshot}[i])
		if end := at + size; from < end && from < to {
			part := min(to, end)
			dst = append(dst, b[from-at:part-at]...)
			from = part
		}
		at += size
	}
	if from >= to {
		return dst
	}
	return l.appendRange(dst, c.logBase+from-at, c.logBase+to-at)
}

// acked notes that the peer has all before position ack of the stream.
func (c *client) acked(now time.Duration, ack, window int64) {
	if ack <= c.ack {
		return
	}
	c.burst = min(window, c.burst+2*(ack-c.ack))
	c.ack, c.sent, c.progress, c.ackedAt = ack, max(c.sent, ack), now, now
}

// stamps remembers when the last packets were sent.
type stamps struct {
	at     [64]time.Duration
	number [64]uint16
	last   uint16
}

func (s *stamps) next(now time.Duration) uint16 {
	s.last++
	s.number[s.last%64], s.at[s.last%64] = s.last, now
	return s.last
}

// roundTrip takes the echo of a stamp, less the time the peer held it. One that the host has slept over is no measure.
func (c *client) roundTrip(now time.Duration, stamp uint16, held time.Duration, host *still) {
	s := &c.stamps
	if s.number[stamp%64] != stamp || stamp == 0 || host.slept(s.at[stamp%64]) {
		return
	}
	sample := max(0, now-s.at[stamp%64]-held)
	s.number[stamp%64] = 0 // each counts once
	if !c.rttKnown {
		c.rttKnown, c.rtt, c.jitter = true, sample, sample/4
		return
	}
	c.jitter += ((sample - c.rtt).Abs() - c.jitter) / 8
	c.rtt += (sample - c.rtt) / 8
}
