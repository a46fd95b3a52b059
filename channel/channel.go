package channel

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
)

// CloseReason says why a channel was closed.
type CloseReason = bunch.CloseReason

// Handler is what a channel does with what arrives. Its methods are called from
// within the connection's ReceivedPacket and Tick, and may send on any channel.
type Handler interface {
	// ReceivedBunch is a complete bunch: reliable ones in order and once,
	// unreliable ones as they come. in is valid until it returns.
	ReceivedBunch(ch *Channel, in *bunch.In)
	// ReceivedAck says that a packet which carried bunches of this channel has
	// arrived; ReceivedNak that it is lost. Once a packet, in rising order.
	// Reliable bunches are sent again by the channel itself.
	ReceivedAck(ch *Channel, packetID int64)
	ReceivedNak(ch *Channel, packetID int64)
	// Closed says that the channel is gone: closed by the peer, or its own close
	// is acked, or the connection has ended, which is bunch.Destroyed unless the channel was closing.
	Closed(ch *Channel, reason CloseReason)
}

// LateHandler may be implemented by a Handler that wants to have what the peer sent on a channel before it saw this end's close of it.
// Others aren't given that: it is acked and counted as Ignored.
type LateHandler interface {
	// ReceivedLate is called as ReceivedBunch is, before Closed.
	ReceivedLate(ch *Channel, in *bunch.In)
}

// Nop is a Handler that does nothing: embed it and write the methods you need.
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
// A connection may have thousands that are idle, an actor each: what an idle one has no need of isn't in it.
type Channel struct {
	table   *Table
	handler Handler
	typ     *Type
	index   uint32
	due     int32 // no sequence before it waits to be sent again: the low bits of the smallest that may

	openedLocally bool
	openSent      bool // the first bunch went out with Open
	openAcked     bool
	temporary     bool // unreliable open and close in one: gone when acked
	closing       bool
	closed        bool
	released      bool // a reliable bunch of the peer's had its turn
	closeReason   CloseReason
	handlerHeld   int32 // bytes that the handler counts
	notes         int32 // notes of packets in flight that name the channel
	fresh         int16 // of the bunches in out, the last ones that were never sent
	numRefused    int16 // lost bunches that wait for its turn in Table.refused
	inLine        bool  // they wait in Table.line
	refused       bool  // its lost bunches wait for its turn in Table.refused
	inTurn        bool  // it is in the list of that
	turns         int8  // that it has there until it knows what became of its oldest bunch
	openAt        int64 // the open's sequence; of a temporary channel its packet
	lastNotified  int64 // the last packet id told to the handler

	out  outRecs
	rare *rare // nil while there is none of it
}

// rare is what most channels have none of most of the time. It is lent by the pool.
type rare struct {
	in          earlyBunches
	assembly    bunch.Assembly
	gapEnd      int64 // sequences before it fill the gap that the channel before left
	pausedUntil int64 // sequence whose ack ends the pause after a large bunch; 0 none
	begunEnd    int64 // split payloads before this sequence have begun; 0 when none of them waits for acks
	begun       int32 // bytes that they are charged with
	joining     int32 // bytes that the parts in assembly count

	// The control channel's alone.
	queue      []queued
	queueBytes int32 // bytes that the queue counts
	lastResend time.Duration
}

// needRare is the channel's rare state, lent now if it had none.
func (ch *Channel) needRare() *rare {
	if ch.rare == nil {
		ch.rare = ch.table.cfg.Pool.getRare()
	}
	return ch.rare
}

// dropRare gives the rare state back when there is nothing in it.
func (ch *Channel) dropRare() {
	r := ch.rare
	if r == nil || ch.index == 0 && (len(r.queue) > 0 || !ch.openAcked) || r.in.recs != nil || r.assembly.Cap() > 0 || r.assembly.Active() || r.pausedUntil > 0 || r.begun > 0 || ch.out.first < r.gapEnd {
		return
	}
	ch.rare = nil
	ch.table.cfg.Pool.putRare(r)
}

// early is the number of reliable bunches that came before their turn.
func (ch *Channel) early() int {
	if ch.rare == nil {
		return 0
	}
	return ch.rare.in.len()
}

// gapEnd is the sequence before which the bunches fill the gap that the channel before left.
func (ch *Channel) gapEnd() int64 {
	if ch.rare == nil {
		return 0
	}
	return ch.rare.gapEnd
}

// queued is the bunches that wait for room on the control channel.
func (ch *Channel) queued() []queued {
	if ch.rare == nil {
		return nil
	}
	return ch.rare.queue
}

// Index is the channel's number on the wire.
func (ch *Channel) Index() uint32 { return ch.index }

// Name is the channel's type.
func (ch *Channel) Name() bunch.Name { return ch.typ.Name }

// Conn is the connection the channel is on.
func (ch *Channel) Conn() Conn { return ch.table.conn }

// Handler is who gets what arrives.
func (ch *Channel) Handler() Handler { return ch.handler }

// OpenedLocally reports whether this end opened it, and so may close it.
func (ch *Channel) OpenedLocally() bool { return ch.openedLocally }

// OpenAcked reports whether the peer has the channel: it opened it, or acked our open.
func (ch *Channel) OpenAcked() bool { return ch.openAcked }

// Closing reports whether a close is on its way or the channel is gone.
func (ch *Channel) Closing() bool { return ch.closing || ch.closed }

// NumOutRec is the number of reliable bunches that wait for their acks.
func (ch *Channel) NumOutRec() int { return ch.out.len() }

// NumInRec is the number of reliable bunches received before their turn.
func (ch *Channel) NumInRec() int { return ch.early() }

// Room is the number of reliable bunches that may be sent now without ErrReliableFull, as far as MaxMemory allows. A payload of more
// than Table.SingleBits takes several: one for each SingleBits/8 bytes, and one for the rest.
func (ch *Channel) Room() int { return max(0, ch.table.maxOut()-ch.out.len()) }

// ReplicationPaused reports whether unreliable state should wait: a large bunch
// that was made reliable isn't acked yet.
func (ch *Channel) ReplicationPaused() bool { return ch.rare != nil && ch.rare.pausedUntil > 0 }

// String names the channel in messages.
func (ch *Channel) String() string { return fmt.Sprintf("channel %d (%v)", ch.index, ch.typ.Name) }
