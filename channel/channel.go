package channel

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
)

// CloseReason says why a channel was closed.
type CloseReason = bunch.CloseReason

// Handler handles what arrives on a channel. Its methods are called within the connection's ReceivedPacket and Tick.
// They may send on any channel.
type Handler interface {
	// ReceivedBunch is called for a complete bunch: reliable ones in order and once, unreliable ones as they arrive. What the peer sent without
	// NoMerge may be several payloads in one. in is valid until it returns. It isn't called for a bunch without payload, which does no more than open or close its channel.
	ReceivedBunch(ch *Channel, in *bunch.In)
	// ReceivedAck says that a packet with bunches of this channel has arrived, ReceivedNak that it is lost. Each is
	// called once for a packet, in rising order of packet ids. The channel itself sends reliable bunches again. A packet of which the peer refused one bunch,
	// as of a channel whose open it hasn't got yet, counts as lost, and so does one more than 256 before the newest that is acked, as after a darkness of the way
	// back alone. Their bunches may have been delivered: what a game sends again after ReceivedNak needs a number by which the peer knows it.
	ReceivedAck(ch *Channel, packetID int64)
	ReceivedNak(ch *Channel, packetID int64)
	// Closed says that the channel is gone: the peer closed it, its own close is acked, or the connection has ended. In
	// the last case reason is bunch.Destroyed, unless the channel was closing. Channel.NumOutRec says how many reliable bunches the peer may not have received.
	Closed(ch *Channel, reason CloseReason)
}

// Opener may be implemented by a Handler that needs its channel before the first bunch arrives, for example to send the bunch that opens
// it.
type Opener interface {
	// Opened is called once, before every other method: by Open at the end that opens the channel, and after Accept at the other. At the
	// opening end Open returns its error, and the channel is closed. At the other end an error ends the connection: with
	// ErrMemory by the peer, which opened more than there is room for, and otherwise by a failure of this end. Hold has room for at least 4 KiB there.
	Opened(ch *Channel) error
}

// LateHandler may be implemented by a Handler that wants the bunches that the peer sent before it learned of this end's
// close, as far as they arrive before the peer has acked it: those that still waited to be sent, or were lost, don't come any more, and the peer's handler may ask Channel.NumOutRec in Closed how many
// these are. For other handlers those that come are acked and counted as Ignored.
type LateHandler interface {
	// ReceivedLate is called like ReceivedBunch, before Closed.
	ReceivedLate(ch *Channel, in *bunch.In)
}

// Nop is a Handler that does nothing. Embed it and write the methods you need.
type Nop struct{}

// ReceivedBunch ignores the bunch.
func (Nop) ReceivedBunch(*Channel, *bunch.In) {}

// ReceivedAck does nothing.
func (Nop) ReceivedAck(*Channel, int64) {}

// ReceivedNak does nothing.
func (Nop) ReceivedNak(*Channel, int64) {}

// Closed does nothing.
func (Nop) Closed(*Channel, CloseReason) {}

// Channel is one stream of bunches. Not safe for concurrent use.
//
// A connection may have thousands of idle channels, one for each actor. So state that an idle channel doesn't need is
// kept elsewhere.
type Channel struct {
	table   *Table
	handler Handler
	typ     *Type
	index   uint32
	due     int32 // the first due bunches of out don't wait to be sent again

	openedLocally bool
	openSent      bool // the first bunch was sent, with Open
	openAcked     bool // the peer's, or acked: its first part when it is split
	temporary     bool // opened and closed by one unreliable bunch: removed when its packets are acked or lost
	closing       bool
	closed        bool
	released      bool // a reliable bunch of the peer's was released
	closeReason   CloseReason
	handlerHeld   int32 // bytes counted by the handler, see Hold
	notes         int32 // packets in flight with bunches of the channel
	fresh         int16 // number of bunches in out that were never sent: the last ones
	numRefused    int16 // lost bunches that wait in Table.refused
	inLine        bool  // the fresh ones wait in Table.line
	refused       bool  // its lost bunches wait in Table.refused
	inTurn        bool  // it is in Table.refused
	turns         int8  // turns left there until the fate of its oldest bunch is known
	openAt        int64 // sequence of the open; NoPacket once all its parts are acked, and for a temporary channel
	lastNotified  int64 // newest packet id that the handler was told of

	out  outRecs
	rare *rare // nil when all of it is zero
}

// rare is state that most channels don't need most of the time. The pool lends it.
type rare struct {
	in          earlyBunches
	assembly    bunch.Assembly
	gapEnd      int64 // sequences before it fill the gap left by the index's previous channel
	pausedUntil int64 // sequence whose ack ends the pause after a large bunch; 0 none
	begunEnd    int64 // split payloads before this sequence have begun; 0 when none waits for acks
	begun       int32 // bytes charged for them
	yields      bool  // the charge doesn't count, because the peer refuses the channel's open
	joining     int32 // bytes counted for the parts in assembly
	ahead       int32 // bytes that the peer counts at most for sent bunches while they wait for those that were lost; 0 when none is
	holes       int16 // those that were lost and haven't arrived
	blocked     bool  // those that were never sent wait in Table.blocked
	unfinished  bool  // the channel is in strange.unfinished
	keptSent    int32 // bytes counted in Table.heldOut for queue, and by the handler, see HoldSent

	// Used by the control channel only.
	queue      []bunch.Out
	lastResend time.Duration
}

// needRare returns the channel's rare state, borrowing it from the pool if there is none.
func (ch *Channel) needRare() *rare {
	if ch.rare == nil {
		ch.rare = ch.table.cfg.Pool.getRare()
	}
	return ch.rare
}

// dropRare gives the rare state back when all of it is zero.
func (ch *Channel) dropRare() {
	r := ch.rare
	if r == nil || ch.index == 0 && (len(r.queue) > 0 || !ch.openAcked) || r.in.n > 0 || r.assembly.Cap() > 0 || r.assembly.Active() || r.unfinished || r.holes > 0 || r.blocked || r.pausedUntil > 0 || r.begun > 0 || r.keptSent > 0 || ch.out.first < r.gapEnd {
		return
	}
	ch.rare = nil
	ch.table.cfg.Pool.putRare(r)
}

// early is the number of reliable bunches that wait for their turn.
func (ch *Channel) early() int {
	if ch.rare == nil {
		return 0
	}
	return ch.rare.in.n
}

// gapEnd is the sequence before which bunches fill the gap left by the index's previous channel.
func (ch *Channel) gapEnd() int64 {
	if ch.rare == nil {
		return 0
	}
	return ch.rare.gapEnd
}

// queued is the bunches that wait for room on the control channel.
func (ch *Channel) queued() []bunch.Out {
	if ch.rare == nil {
		return nil
	}
	return ch.rare.queue
}

// unacked is its part of Table.unacked.
func (ch *Channel) unacked() int { return ch.out.len() + len(ch.queued()) }

// Index is the channel's number on the wire.
func (ch *Channel) Index() uint32 { return ch.index }

// Name is the name of the channel's type.
func (ch *Channel) Name() bunch.Name { return ch.typ.Name }

// Conn is the connection that the channel is on.
func (ch *Channel) Conn() Conn { return ch.table.conn }

// Handler is the channel's handler, and a Nop after its Closed. It is nil where nobody has one: before the open of a channel of which later bunches have come, which Table.All yields as well, and where Accept returned nil.
func (ch *Channel) Handler() Handler { return ch.handler }

// OpenedLocally reports whether this end opened the channel. Only that end may close it.
func (ch *Channel) OpenedLocally() bool { return ch.openedLocally }

// OpenAcked reports whether the peer has the channel: it opened it, acked our open, all parts of a split one, or has sent reliable bunches on
// it. These may be handled before the ack in their packet, see netconn.Config.ReorderWindow.
func (ch *Channel) OpenAcked() bool {
	return ch.openAcked && ch.openAt == bunch.NoPacket || ch.released
}

// Closing reports whether the channel is closed, or a close is in flight.
func (ch *Channel) Closing() bool { return ch.closing || ch.closed }

// NumOutRec is the number of reliable bunches that aren't acked. While Handler.Closed is called it is the number of those that were sent and that the peer may never have received, as
// where the peer has closed the channel; afterwards it is 0.
func (ch *Channel) NumOutRec() int {
	if r := ch.table.removed; r.ch == ch {
		return r.left
	}
	return ch.out.len()
}

// OutSequence is the number in the channel of the newest reliable bunch, as on the wire: what SendBunch was given last is in it.
func (ch *Channel) OutSequence() int64 { return int64(ch.table.wireSeq(ch.out.next - 1)) }

// NumInRec is the number of reliable bunches received that wait for earlier ones.
func (ch *Channel) NumInRec() int { return ch.early() }

// Room is the number of reliable bunches that may be sent now without ErrReliableFull; MaxMemory, and what an earlier channel of its index left unacked, may allow fewer. A
// payload above Table.SingleBits takes several: one for each SingleBits/8 bytes, rounded down, and one for the rest.
func (ch *Channel) Room() int { return max(0, ch.table.maxOut-ch.out.len()) }

// ReplicationPaused reports whether unreliable state should wait, because a large bunch that was made reliable isn't
// acked yet.
func (ch *Channel) ReplicationPaused() bool { return ch.rare != nil && ch.rare.pausedUntil > 0 }

// String describes the channel for messages.
func (ch *Channel) String() string { return fmt.Sprintf("channel %d (%v)", ch.index, ch.typ.Name) }
