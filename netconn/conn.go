package netconn

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/history/seqnum"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// Conn is one end of a connection. Not safe for concurrent use: it belongs to the goroutine that ticks it.
type Conn struct {
	// Fields that every tick reads come first: with thousands of connections, loading them from memory takes most of a tick.
	now        time.Duration
	channels   *channel.Machine
	flow       flow
	pace       pace
	refusals   refusals
	path       *path   // nil until a packet is lost
	search     *search // nil until a packet is full
	coder      *coder  // nil without coding
	reserve    reserve // zero without copies
	rtt        rtt
	wayBack    wayBack
	returner   congestion.Returner
	peerWaiter congestion.PeerWaiter
	closer     closer
	sentPackets
	notify packetnotify.Notify
	rates  rates
	skip   skip

	sendBuffer
	order orderCache
	// Counters counts the connection's packets. Copy it to keep the values.
	Counters Counters
	proto    bunch.Protocol
	in       bunch.In // the bunch being received
	cfg      Config
	netSpeed *congestion.TokenBucket // the controller, when it is that of NetSpeed

	event  nettrace.Event // these two are kept here, since what sinks get would otherwise be allocated
	packet nettrace.Packet
}

// Counters counts the packets of a connection.
type Counters struct {
	PacketsSent, BytesSent         uint64
	PacketsReceived, BytesReceived uint64
	PacketsAcked, PacketsLost      uint64 // sent by this end
	PacketsMissed                  uint64 // by their sequences; the peer leaves one of some 1,300 out on purpose (Config.Secret)
	AckOnly, KeepAlives            uint64 // sent without bunches
	Copies                         uint64 // reliable bunches sent once more by Redundancy or probes
	Repairs                        uint64 // repair symbols sent; see Coding
	PacketsRepaired                uint64 // part of PacketsAcked: lost, and repaired by the peer
	SizeProbes, SizeProbesLost     uint64 // part of PacketsSent and PacketsLost: larger than any before; see Config.LargestPacket
	Narrowed                       uint64 // times that Stats.PacketSize fell back to Protocol.Bunch.MaxPacket
	WindowFull                     uint64 // bunches that had to wait or were refused because of a full window

	// Repaired counts packets of the peer that were lost and repaired. RepairedLate counts those of them that were already reported as lost:
	// only their reliable bunches are delivered.
	Repaired, RepairedLate uint64

	// Packets received and dropped, with the reason.
	Stale        uint64 // old, duplicate, or acking what wasn't sent
	OutOfOrder   uint64 // arrived late
	Cached       uint64 // held back for their order
	CacheDup     uint64
	NotProcessed uint64 // while the history waits for its flush
	Refused      uint64 // naked because a bunch was refused
	BadHandler   uint64 // refused by the packet handlers
	BadHeader    uint64
	BadBunch     uint64
	AfterClose   uint64
}

// New returns a connection that begins at now. incoming and outgoing are the initial packet sequences of the peer and of
// this end, as agreed by the handshake.
func New(cfg Config, now time.Duration, incoming, outgoing uint16) (*Conn, error) {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Protocol.PacketWindow = min(cfg.Protocol.PacketWindow, cfg.MaxMemory/windowMemory)
	c := &Conn{cfg: cfg, proto: cfg.Protocol.Bunch, now: now}
	c.notify.Init(cfg.Protocol.Notify, incoming, outgoing)
	mask := int64(seqnum.Channel.Mask())
	m, err := channel.NewMachine(cfg.channelConfig(), c, (*outlet)(c), int64(incoming)&mask, int64(outgoing)&mask)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	c.channels = m
	m.Reserve(recordBytes(cfg.Protocol.PacketWindow) + cfg.codingMemory())
	c.mostNotes = mostNotes(cfg.MaxMemory)
	c.coder = newCoder(&c.cfg)
	c.skip.init(cfg.Secret)
	c.sendBuffer.init(&c.cfg)
	c.flow.lastReceive, c.flow.lastSend, c.flow.lastFate, c.pace.at = now, now, now, now
	c.flow.owed = bunch.NoPacket
	c.rates.start, c.order.ticks.at = now, now
	c.rtt.lastClock = -1
	if cfg.Controller == nil {
		c.netSpeed = congestion.NewTokenBucket(cfg.NetSpeed)
		c.cfg.Controller = c.netSpeed
	}
	c.returner, _ = c.cfg.Controller.(congestion.Returner)
	c.peerWaiter, _ = c.cfg.Controller.(congestion.PeerWaiter)
	c.trace(nettrace.ConnOpened, 0, 0, 0)
	return c, nil
}

// flow is when things were last sent and received.
type flow struct {
	lastSend, lastReceive time.Duration
	lastFate              time.Duration // when one of our packets was last acked or lost
	lastOwed              time.Duration // when a packet that has to be acked, or a tail probe, last left
	timeSensitive         bool
	atOnce                bool          // what gathered in a long receive tick is being read: packets that leave meanwhile would ack it in pieces
	readAt                time.Duration // when a packet was last read
	queued                int           // the channels' Queued when what waits was last sent, or a slow receive tick began: what was queued since then is spent
	dirtyAcks             bool
	acksAt                time.Duration // when acks are due, if dirtyAcks
	owedAt                time.Duration // when packet owed left
	owed                  int64         // our newest packet with acks that were due; bunch.NoPacket: none
	inTick                bool          // no packet info yet in this tick
	lossNews              bool          // the next packet reports a loss
	ackedAt               time.Duration // when the newest packet acked by the one at hand was sent, if packets before that are missing
	unanswered            bool          // the peer was heard since our newest packet left
	answers               uint8         // packets beyond a full window because the peer was heard, since the last fate
	probes                int           // tail probes since the last ack
	unheard               int           // packets received since we last sent acks
}

// Table is the connection's channels.
func (c *Conn) Table() *channel.Table { return c.channels.Table() }

// Channel is the channel at index, or nil.
func (c *Conn) Channel(index uint32) *channel.Channel { return c.Table().Channel(index) }

// Open makes a channel of a type. The first bunch sent on it opens it at the peer, and must be reliable. h may be nil
// when only this end sends: what arrives is then ignored. The errors are channel.ErrClosed, ErrUnknownType,
// ErrMayNotOpen, ErrNoIndex, for a Static type ErrIndexInUse, and those of a channel.Opener.
func (c *Conn) Open(name bunch.Name, h channel.Handler) (*channel.Channel, error) {
	return c.Table().Open(name, h)
}

// Now is the time that the current or last call was given.
func (c *Conn) Now() time.Duration { return c.now }

// IsServer reports which end this is.
func (c *Conn) IsServer() bool { return c.cfg.Server }

// ID is Config.ID.
func (c *Conn) ID() uint32 { return c.cfg.ID }

// Owner is Config.Owner, for channel handlers that need more than a channel.Conn.
func (c *Conn) Owner() any { return c.cfg.Owner }

// AllowOpen calls Config.AllowOpen; see channel.Outlet.
func (o *outlet) AllowOpen(in *bunch.In) error {
	if o.cfg.AllowOpen == nil {
		return nil
	}
	return o.cfg.AllowOpen(in)
}

// Tick is the connection's part of TickFlush. It handles timeouts and sends waiting bunches, acks and keep-alives.
func (c *Conn) Tick(now time.Duration) {
	c.now = max(c.now, now)
	c.flow.atOnce = false
	if c.endPanicked(); c.Closed() {
		return
	}
	if c.channels.RunLater(); c.Closed() {
		return
	}
	beside := c.channels.TakeBeside()
	all := c.cfg.Redundancy.on() && c.Budget()+beside <= 0
	c.rates.tick(c)
	c.cfg.Controller.Tick(c.now)
	if c.checkTimeouts(); c.Closed() {
		return
	}
	c.pace.tick(c)
	if c.search != nil {
		if c.out.Len() > 0 && c.sizeProbeDue() {
			c.FlushNet()
		}
		c.trySize()
	}
	c.channels.Tick(c.now)
	c.noteQueued()
	if c.peerWaiter != nil && c.channels.PeerFull() {
		c.peerWaiter.OnPeerFull()
	}
	if c.closer.closing {
		c.closer.lookDue = false
		c.closeWhenDrained()
	}
	c.probe()
	if c.flow.timeSensitive || c.acksDue() || c.keepAliveDue() {
		c.FlushNet()
	}
	if c.cfg.Redundancy.on() {
		c.reserve.tick(c.now, beside, c.cfg.Controller.Rate(), all)
	}
	c.sendEmpty()
	c.probePath()
	if c.coder != nil {
		c.sendRepairs()
		c.repairTail()
		c.sendHello()
	}
	c.flow.inTick = false
}

// NextDeadline is when PostTickDispatch and Tick must be called at the latest; ok is false on a closed connection. It knows nothing of what waits
// above the connection, as in a message.Queue.
func (c *Conn) NextDeadline() (at time.Duration, ok bool) {
	if c.Closed() {
		return 0, false
	}
	if c.flow.timeSensitive || c.closer.panicked {
		return c.now, true
	}
	at = c.flow.lastSend + c.keepAlive()
	if c.flow.dirtyAcks {
		at = min(at, c.flow.acksAt)
	}
	if c.windowFull() && !c.maySendAgain() {
		at = max(at, c.forceAt())
	}
	if c.Table().Waiting() > 0 && !c.bunchesFull(0) {
		if ready, ok := c.readyAt(); ok {
			at = min(at, ready)
		}
	}
	if c.closer.lookDue {
		at = min(at, c.closer.looked+looksApart)
	}
	if d, ok := c.timeoutAt(); ok {
		at = min(at, d)
	}
	if d, ok := c.channels.NextTurn(); ok && !c.bunchesFull(0) {
		if ready, ok := c.readyAt(); ok {
			at = min(at, max(d, ready))
		}
	}
	if d, ok := c.probeAt(); ok {
		if ready, ok := c.readyAt(); ok {
			at = min(at, max(d, ready))
		}
	}
	if c.order.held > 0 {
		at = min(at, c.order.since+c.reorderWindow())
	}
	if c.coder != nil {
		at = min(at, c.codingDeadline(at))
	}
	return max(at, c.now), true
}

// readyAt is when the rate controller allows a packet; ok is false when only an ack can change that.
func (c *Conn) readyAt() (at time.Duration, ok bool) {
	if c.hushed() {
		return 0, false
	}
	if at, ok = c.cfg.Controller.NextDeadline(c.now); ok {
		return at, true
	}
	return c.now, c.cfg.Controller.Budget(c.now) > 0
}

// trace sends an event to the sink, if there is one.
func (c *Conn) trace(kind nettrace.Kind, packetID int64, a, b uint64) {
	if c.cfg.Trace != nil {
		c.traceEvent(kind, packetID, a, b)
	}
}

func (c *Conn) traceEvent(kind nettrace.Kind, packetID int64, a, b uint64) {
	c.event = nettrace.Event{At: c.now, Kind: kind, Conn: c.cfg.ID, PacketID: packetID, A: a, B: b}
	c.cfg.Trace.Trace(&c.event)
}

// SetTrace replaces Config.Trace; nil for none.
func (c *Conn) SetTrace(s nettrace.Sink) { c.cfg.Trace = s }

// tracePacket sends a packet to Config.Packets, if set.
func (c *Conn) tracePacket(sent bool, p []byte) {
	if c.cfg.Packets != nil {
		c.tracePacketTo(sent, p)
	}
}

func (c *Conn) tracePacketTo(sent bool, p []byte) {
	c.packet = nettrace.Packet{At: c.now, Conn: c.cfg.ID, Server: c.cfg.Server, Sent: sent, Data: p}
	c.cfg.Packets.TracePacket(&c.packet)
	c.packet.Data = nil
}

// FreeBits is the room left in the SendBuffer.
func (c *Conn) FreeBits() int {
	if c.out.Len() == 0 {
		return c.emptyRoom(c.packetBytes())
	}
	return c.out.Free()
}
