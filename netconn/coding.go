package netconn

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/seqnum"
	"github.com/bunchnet/bunchnet/netconn/handler/coding"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// Coding has lost packets repaired without asking for them again: repair symbols over the last packets ride in later ones,
// see netconn/handler/coding. A repaired packet enters the connection in its place, before the packet that brought the symbol, so
// that nothing is told lost and unreliable bunches are repaired as well. Both ends must have it; they tell each other in datagrams of 4 bytes when
// the connection begins, and until then nothing differs. It is for links without packet handlers, and not for Unreal's protocols. The zero
// value is off.
//
// Symbols ride in the room that packets have to spare, or in packets of their own where the covered ones are too large for that. They take
// what is left of the controller's budget when nothing else waits. Packets behind a missing one which may still be repaired wait
// as long as symbols are apart, 50 ms at most, whatever Config.ReorderWindow; their reliable bunches don't wait.
//
// What of a packet is left for bunches is 40 bytes less, and Config.MaxMemory must be at least eight times what both directions keep: 600 kB with packets
// of 1024 bytes.
type Coding struct {
	// Repairs is the repair symbols for each packet with bunches, 0 to 3; it need not be whole. A symbol is about as long as the largest of
	// the packets that it covers. Default 0: off.
	Repairs float64
	// Adaptive sends only as many as the measured loss asks for, up to Repairs: none on a path that loses nothing.
	Adaptive bool
}

func (c *Coding) on() bool { return c.Repairs != 0 }

// codingBytes is what coding takes of a packet: what the header of an empty packet with some acks, and the trailer, have more than
// the header that symbols leave out.
const codingBytes = 40

func (c *Config) validateCoding() error {
	need := c.codingMemory()
	switch {
	case !c.Coding.on():
		return nil
	case !(c.Coding.Repairs > 0 && c.Coding.Repairs <= coding.MaxSymbols):
		return fmt.Errorf("%w: Coding.Repairs %v must be from 0 to %d", ErrConfig, c.Coding.Repairs, coding.MaxSymbols)
	case c.Protocol.Unreal:
		return fmt.Errorf("%w: Coding isn't part of Unreal's wire; leave it off, or take netconn.Bunchnet", ErrConfig)
	case c.Handlers != nil:
		return fmt.Errorf("%w: Coding is for links without packet handlers; leave it off, or take another link", ErrConfig)
	case c.MaxMemory < 8*need:
		return fmt.Errorf("%w: Coding keeps up to %d bytes; MaxMemory %d must be at least eight times that", ErrConfig, need, c.MaxMemory)
	}
	return nil
}

// codingMemory is the most that both directions keep.
func (c *Config) codingMemory() int {
	if !c.Coding.on() {
		return 0
	}
	packet := c.Protocol.Bunch.PacketBits() / 8
	return coding.EncoderBytes(packet) + coding.DecoderBytes(packet)
}

// coder is a connection's coding in both directions.
type coder struct {
	cfg   Coding
	peer  bool // it understands coding
	hello hello

	// What is sent.
	enc       *coding.Encoder // nil until the first symbol is due
	credit    float64         // symbols that are owed
	uncovered int             // packets with bunches since the last symbol
	full      bool            // the last packet had no room for one
	alone     bool            // the packet under construction is for symbols alone
	queue     pathQueue
	repaired  [64]int64 // ours that the peer repaired, by id
	symbols   [coding.MaxRepaired]byte

	// What is received.
	dec        *coding.Decoder // nil until the first symbol comes
	lastSymbol time.Duration
	gap        time.Duration // between packets with symbols, smoothed
	tell       [8]telling    // what the peer is to hear of
	tells      int
}

// telling is a packet that was repaired, and how often the peer will be told.
type telling struct {
	id   int64
	left int
}

// tellTimes is how often a repair is told: a packet that says so may be lost as well.
const tellTimes = 2

func newCoder(c *Config) *coder {
	if !c.Coding.on() {
		return nil
	}
	k := &coder{cfg: c.Coding}
	k.hello.buf = make([]byte, c.Headroom, c.Headroom+coding.HelloBytes+c.Tailroom)
	for i := range k.repaired {
		k.repaired[i] = -1
	}
	return k
}

// hello tells the peer that this end understands coding.
type hello struct {
	buf     []byte
	sent    int
	at      time.Duration // of the next one
	owed    bool          // the peer asked
	answers int
}

// Hellos go out until the peer's has come, further and further apart.
const (
	maxHellos    = 8
	maxAnswered  = 16
	firstHello   = 100 * time.Millisecond
	tailRepair   = 25 * time.Millisecond // without a packet that could carry the symbols owed
	maxCredit    = 8.0
	longestHold  = 50 * time.Millisecond
	holdMargin   = 4 * time.Millisecond
	symbolsStale = 250 * time.Millisecond
)

// dueAt is when a hello is due.
func (h *hello) dueAt(peer bool) (time.Duration, bool) {
	if h.owed {
		return 0, true
	}
	return h.at, !peer && h.sent < maxHellos
}

// sendHello tells the peer of coding when that is due.
func (c *Conn) sendHello() {
	k := c.coder
	h := &k.hello
	if at, ok := h.dueAt(k.peer); !ok || c.now < at {
		return
	}
	if !k.peer {
		h.at = c.now + firstHello<<h.sent
		h.sent++
	}
	h.owed = false
	p := coding.AppendHello(h.buf[:c.cfg.Headroom], k.peer)
	c.Counters.BytesSent += coding.HelloBytes
	c.tracePacket(true, p[c.cfg.Headroom:])
	c.cfg.LowLevelSend(p)
}

// receivedHello notes that the peer understands coding, and answers if it asks.
func (k *coder) receivedHello(heard bool) {
	k.peer = true
	if !heard && k.hello.answers < maxAnswered {
		k.hello.answers++
		k.hello.owed = true
	}
}

// pathQueue tells from round trip times whether the path's queue has grown: the least of the last eight, beside the least of 10 to 20 s.
type pathQueue struct {
	base, next, since time.Duration
	recent            [8]time.Duration
	n                 int
}

const (
	queueLife  = 10 * time.Second
	queueGrown = 25 * time.Millisecond // and an eighth of the least; ticks at both ends move it by less
)

func (q *pathQueue) sample(now, rtt time.Duration) {
	q.recent[q.n%len(q.recent)] = rtt
	q.n++
	if q.base == 0 || now-q.since > queueLife {
		if q.next == 0 {
			q.next = rtt
		}
		q.base, q.next, q.since = q.next, rtt, now
	}
	q.base, q.next = min(q.base, rtt), min(q.next, rtt)
}

func (q *pathQueue) grown() bool {
	if q.n < len(q.recent) {
		return false
	}
	least := q.recent[0]
	for _, rtt := range q.recent {
		least = min(least, rtt)
	}
	return least-q.base > queueGrown+q.base/8
}

// repairs is how many symbols each packet with bunches gets now. Loss that comes with a growing queue is congestion, to which
// symbols would only add.
func (c *Conn) repairs() float64 {
	k := c.coder
	if k.queue.grown() {
		return 0
	}
	if !k.cfg.Adaptive {
		return k.cfg.Repairs
	}
	loss, _ := c.rates.expect()
	want := 0.0
	switch {
	case loss < 0.002:
	case loss < 0.02:
		want = 0.5
	case loss < 0.07:
		want = 1
	case loss < 0.25:
		want = 2
	default:
		want = 3
	}
	return min(want, k.cfg.Repairs)
}

// Packets that a symbol covers: more find more losses that are apart, fewer are sooner done with several in a row.
const (
	windowAlone  = 6
	windowBursts = 4
)

func (c *Conn) codingWindow() int {
	if loss, again := c.rates.expect(); again > loss {
		return windowBursts
	}
	return windowAlone
}

// headerBytes is the size of a packet's header; see package packetnotify.
func headerBytes(p []byte) int { return 4 * (2 + int(p[0]&15)) }

// addTrailer puts the symbols that are owed, and what was repaired of the peer's packets, behind packet id, which is complete. carries says that it has bunches.
func (c *Conn) addTrailer(packet []byte, id int64, carries bool) (whole []byte, symbols int) {
	k := c.coder
	if !k.peer || c.Closed() {
		return packet, 0
	}
	plain := packet[c.cfg.Headroom:]
	repaired := c.tellRepaired()
	rate, covers, size := c.repairs(), 0, 0
	if rate == 0 {
		k.credit, k.uncovered, k.full = 0, 0, false
	} else {
		if k.enc == nil {
			k.enc = new(coding.Encoder)
		}
		k.enc.Forget(c.notify.OutAckID() + 1)
		covers, size = k.enc.Covers(id, max(c.codingWindow(), k.uncovered))
		if carries || k.alone { // others, such as acks, follow a tick's packet, and would only take the symbols from the next one
			symbols = c.symbolsFor(plain, covers, size)
		}
	}
	whole = packet
	for i := range symbols {
		whole = k.enc.AppendSymbol(whole, id, i, covers, size)
	}
	if symbols+len(repaired) > 0 {
		whole = coding.AppendEnd(whole, symbols, covers, size, repaired)
	}
	if rate > 0 {
		content := plain[headerBytes(plain):]
		k.enc.Add(id, content, !carries)
		if symbols > 0 {
			k.uncovered = 0
		}
		if carries {
			k.credit, k.uncovered = k.credit+rate, k.uncovered+1
			k.full = len(plain)+max(size, len(content))+coding.TrailerBytes > c.datagramBytes()
		}
		k.credit = min(k.credit-float64(symbols), maxCredit)
		c.Counters.Repairs += uint64(symbols)
	}
	return whole, symbols
}

// datagramBytes is the largest packet, with its trailer.
func (c *Conn) datagramBytes() int { return (c.proto.PacketBits() + c.proto.HandlerBits) / 8 }

// symbolsFor is how many symbols ride in a packet.
func (c *Conn) symbolsFor(plain []byte, covers, size int) int {
	if covers == 0 || c.coder.credit < 1 || c.Budget() <= len(plain)+c.cfg.PacketOverhead {
		return 0
	}
	room := c.datagramBytes() - len(plain) - coding.TrailerBytes
	return max(0, min(int(c.coder.credit), coding.MaxSymbols, room/size))
}

// tellRepaired is which of the peer's packets were repaired, as the next trailer has it.
func (c *Conn) tellRepaired() []byte {
	k := c.coder
	told := k.symbols[:0]
	acked := c.notify.WrittenAckID()
	for i := 0; i < k.tells && len(told) < coding.MaxRepaired; {
		t := &k.tell[i]
		switch d := acked - t.id; {
		case d < 0: // it isn't acked in this packet
			i++
			continue
		case d <= 255:
			told = append(told, byte(d))
			t.left--
		default:
			t.left = 0
		}
		if t.left > 0 {
			i++
			continue
		}
		k.tells--
		copy(k.tell[i:k.tells], k.tell[i+1:])
	}
	return told
}

// willTell has the peer told that its packet was lost and repaired. When there is no room its controller takes it for one that arrived.
func (k *coder) willTell(id int64) {
	if k.tells < len(k.tell) {
		k.tell[k.tells] = telling{id, tellTimes}
		k.tells++
	}
}

// wasRepaired reports whether the peer said of our packet that it was lost and repaired.
func (k *coder) wasRepaired(id int64) bool {
	return k != nil && k.repaired[id&int64(len(k.repaired)-1)] == id
}

// sendRepairs sends the symbols owed in packets of their own when those with bunches have no room for them. It waits until all is written: the
// parts of a split unreliable bunch must be in packets that follow each other.
func (c *Conn) sendRepairs() {
	k := c.coder
	for k.full && k.credit >= 1 && c.mayRepair() {
		if !c.sendRepair() {
			break
		}
	}
	k.full = false
}

// mayRepair reports whether a packet may be sent for symbols alone.
func (c *Conn) mayRepair() bool {
	return c.out.Len() == 0 && !c.Closed() && !c.windowFull() && c.IsNetReady() && c.Table().Waiting() == 0
}

// sendRepair sends an empty packet with the symbols owed; false if it has none.
func (c *Conn) sendRepair() bool {
	before := c.Counters.Repairs
	c.coder.alone = true
	c.startPacket()
	c.sendPacket(0, false)
	c.coder.alone = false
	return c.Counters.Repairs != before
}

// repairTailAt is when the symbols owed go out in a packet of their own because no other follows.
func (c *Conn) repairTailAt() (time.Duration, bool) {
	k := c.coder
	return c.flow.lastSend + tailRepair, k.uncovered > 0 && k.credit >= 1 && !c.windowFull()
}

// codingDeadline is when Tick has something to send because of coding, or otherwise.
func (c *Conn) codingDeadline(otherwise time.Duration) time.Duration {
	if at, ok := c.coder.hello.dueAt(c.coder.peer); ok {
		otherwise = min(otherwise, at)
	}
	if at, ok := c.repairTailAt(); ok {
		if ready, ok := c.readyAt(); ok {
			otherwise = min(otherwise, max(at, ready))
		}
	}
	return otherwise
}

func (c *Conn) repairTail() {
	if at, ok := c.repairTailAt(); ok && c.now >= at && c.mayRepair() {
		c.coder.uncovered = 0
		c.sendRepair()
	}
}

// receivedCoded is ReceivedPacket for a connection with coding.
func (c *Conn) receivedCoded(p []byte) error {
	k := c.coder
	plain, t := p, coding.Trailer{}
	if coding.Marked(p) {
		if heard, ok := coding.Hello(p); ok {
			k.receivedHello(heard)
			return nil
		}
		ok := false
		if plain, t, ok = coding.Split(p); !ok {
			c.Counters.BadHandler++
			return fmt.Errorf("%w: its trailer is broken", ErrPacket)
		}
	}
	var r bitio.Reader
	var h packetnotify.Header
	if err := c.readHeader(&r, &h, plain); err != nil {
		return err
	}
	id := c.notify.ID(&h)
	if c.notify.Delta(&h) > 0 {
		k.peer = k.peer || coding.Marked(p)
		for _, d := range t.Repaired {
			id := c.notify.AckedID(&h) - int64(d)
			k.repaired[id&int64(len(k.repaired)-1)] = id
		}
	}
	if c.notify.Delta(&h) > 0 || c.notify.Late(&h) {
		c.takeSymbols(id, plain, &t)
	}
	c.takeRepaired(id)
	c.countReceived(len(p))
	c.receiveInOrder(&r, &h)
	if k.dec != nil {
		c.takeRepaired(id + codingReach)
		c.flushHopeless()
	}
	return nil
}

// codingReach is beyond all packets that a decoder keeps.
const codingReach = 1 << 20

// takeSymbols gives a packet and its symbols to the decoder.
func (c *Conn) takeSymbols(id int64, plain []byte, t *coding.Trailer) {
	k := c.coder
	if t.Covers > 0 && k.dec == nil {
		k.dec = new(coding.Decoder)
	}
	if k.dec == nil {
		return
	}
	for i := 0; i*t.Size < len(t.Symbols); i++ {
		_ = k.dec.Symbol(id, i, t.Covers, t.Symbols[i*t.Size:(i+1)*t.Size]) // Split allows none that it refuses
	}
	k.dec.Add(id, plain[headerBytes(plain):])
	if t.Covers > 0 && c.now > k.lastSymbol {
		if d := c.now - k.lastSymbol; d < symbolsStale {
			k.gap += (d - k.gap) / 8
		}
		k.lastSymbol = c.now
	}
}

// takeRepaired processes the packets that were found and are before one, oldest first.
func (c *Conn) takeRepaired(before int64) {
	k := c.coder
	for k.dec != nil && !c.Closed() {
		id, content, ok := k.dec.Next(before)
		if !ok {
			return
		}
		c.Counters.Repaired++
		var r bitio.Reader
		r.Reset(content, 8*len(content))
		r.StripTerminator()
		if id <= c.notify.InID() {
			c.Counters.RepairedLate++
			c.takeEarly(r, id, true)
			continue
		}
		k.willTell(id)
		h := packetnotify.Header{Seq: seqnum.Packet.Truncate(id), AckedSeq: seqnum.Packet.Truncate(c.notify.OutAckID())}
		c.receiveInOrder(&r, &h)
	}
}

// isRepaired reports whether h is of a packet that was repaired: its header, and the acks in it, are lost.
func isRepaired(h *packetnotify.Header) bool { return h.Words == 0 }

// holds is how long packets wait for a missing one that may be repaired.
func (k *coder) holds(now time.Duration) time.Duration {
	if k == nil || k.dec == nil || now-k.lastSymbol > symbolsStale {
		return 0
	}
	return min(k.gap+holdMargin, longestHold)
}

// flushHopeless processes packets that wait only for ones that won't be repaired.
func (c *Conn) flushHopeless() {
	for c.order.held > 0 && c.ordinaryWindow() == 0 && !c.Closed() {
		next := c.nextHeld()
		for id := c.notify.InID() + 1; id < next.id; id++ {
			if c.coder.dec.MayCome(id) {
				return
			}
		}
		c.flushOrderCache(next.id)
	}
}
