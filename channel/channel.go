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
	// is acked, or the connection has ended.
	Closed(ch *Channel, reason CloseReason)
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

// PacketRange is the packets that a bunch went into: several when it was split.
// Both are bunch.NoPacket while a reliable bunch waits for room in the packet window.
type PacketRange struct{ First, Last int64 }

func (r *PacketRange) add(id int64) {
	if id == bunch.NoPacket {
		return
	}
	if r.First == bunch.NoPacket {
		r.First = id
	}
	r.Last = id
}

// Channel is one stream of bunches. Not safe for concurrent use.
type Channel struct {
	table   *Table
	handler Handler
	typ     *Type
	index   uint32

	openedLocally bool
	openSent      bool // the first bunch went out with Open
	openSeq       int64
	openPacket    int64 // of an unreliable open
	openAcked     bool
	temporary     bool // unreliable open and close in one: gone when acked
	closing       bool
	closed        bool
	closeReason   CloseReason
	peerPaused    bool  // the peer told that it paused replication
	pausedUntil   int64 // sequence whose ack ends the pause after a large bunch; 0 none

	out          outRecs
	in           inRecs
	assembly     bunch.Assembly
	lastNotified int64 // the last packet id told to the handler

	queue      []queued // control channel only
	queueBytes int
	lastResend time.Duration
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
func (ch *Channel) NumInRec() int { return ch.in.n }

// Room is the number of reliable bunches that may be sent now without ErrReliableFull.
func (ch *Channel) Room() int { return max(0, ch.table.cfg.ReliableBuffer-1-ch.out.len()) }

// ReplicationPaused reports whether unreliable state should wait: a large bunch
// that was made reliable isn't acked yet.
func (ch *Channel) ReplicationPaused() bool { return ch.pausedUntil > 0 }

// PeerPaused reports whether the peer's last bunch said that it paused.
func (ch *Channel) PeerPaused() bool { return ch.peerPaused }

// String names the channel in messages.
func (ch *Channel) String() string { return fmt.Sprintf("channel %d (%v)", ch.index, ch.typ.Name) }

// SendBunch sends out, merged with the bunch before it when it fits, split when
// it is too large for one packet. On an error nothing was queued or sent; but ErrNotSent
// for an unreliable bunch of several parts may leave some sent, which the peer drops.
func (ch *Channel) SendBunch(out *bunch.Out) (PacketRange, error) {
	if ch.Closing() {
		return noPackets, ErrClosed
	}
	if err := out.Validate(); err != nil {
		return noPackets, err
	}
	if ch.index == 0 && out.Reliable && ch.mustQueue() {
		return noPackets, ch.enqueue(out)
	}
	if !out.Reliable && ch.openedLocally && !ch.openSent {
		return noPackets, ErrFirstReliable
	}
	return ch.send(out, false, 0)
}

// SendTemporary opens the channel, delivers out and closes it again in one
// unreliable bunch. The channel is gone once its packet is known to have arrived or
// to be lost.
func (ch *Channel) SendTemporary(out *bunch.Out) (PacketRange, error) {
	if ch.Closing() || !ch.openedLocally || ch.openSent {
		return noPackets, ErrClosed
	}
	if err := out.Validate(); err != nil {
		return noPackets, err
	}
	once := *out
	once.Reliable, once.NoMerge = false, true
	r, err := ch.send(&once, true, bunch.Destroyed)
	ch.closing = err == nil
	return r, err
}

// Close closes the channel once all that was sent before is acked; the peer is
// told the reason. Only the end that opened a channel may, but for channel 0.
func (ch *Channel) Close(reason CloseReason) error {
	switch {
	case ch.Closing():
		return nil
	case !ch.openedLocally && ch.index != 0:
		return ErrNotOpener
	case ch.openedLocally && !ch.openSent:
		ch.table.remove(ch, reason) // the peer never heard of it
		return nil
	}
	if _, err := ch.send(&bunch.Out{Reliable: true, NoMerge: true}, true, reason); err != nil {
		return err
	}
	ch.closing, ch.closeReason = true, reason
	return nil
}

var noPackets = PacketRange{bunch.NoPacket, bunch.NoPacket}

// send is SendBunch after the checks that don't depend on room.
func (ch *Channel) send(out *bunch.Out, closing bool, reason CloseReason) (PacketRange, error) {
	t := ch.table
	h := &t.header
	*h = bunch.Header{
		ChIndex: ch.index, Name: ch.typ.Name, Reliable: out.Reliable,
		Open: ch.openedLocally && !ch.openSent, Close: closing, CloseReason: reason,
		ReplicationPaused:    out.ReplicationPaused,
		HasPackageMapExports: out.HasPackageMapExports, HasMustBeMappedGUIDs: out.HasMustBeMappedGUIDs,
		Bits: out.PayloadBits(),
	}
	if !h.Open && !closing && t.merge(ch, h, out) {
		return PacketRange{t.last.packetID, t.last.packetID}, nil
	}
	parts := t.cfg.Protocol.Parts(h.Bits)
	promoted := !h.Reliable && parts >= t.cfg.PartialReliableThreshold && ch.out.len()+parts < t.cfg.ReliableBuffer
	if promoted {
		h.Reliable, h.ReplicationPaused = true, true
		t.Counters.Promoted++
	}
	if h.Open && h.Reliable {
		t.fillGap(ch)
	}
	if h.Reliable && ch.out.len()+parts >= t.cfg.ReliableBuffer+int(b2i(closing)) {
		t.Counters.ReliableFull++
		if t.cfg.CloseOnOverflow {
			t.conn.Fail(fmt.Errorf("%w on %v", ErrOverflow, ch), true)
		}
		return noPackets, ErrReliableFull
	}
	r, err := ch.sendParts(h, out.Data, parts)
	if err != nil {
		return r, err
	}
	if promoted {
		ch.pausedUntil = ch.out.next
	}
	t.last.noMerge = t.last.noMerge || out.NoMerge || out.HasPackageMapExports || parts > 1
	return r, nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sendParts sends h in the given number of parts, each a reliable bunch of its own
// when h is reliable.
func (ch *Channel) sendParts(h *bunch.Header, data []byte, parts int) (r PacketRange, err error) {
	open := h.Open
	if parts > 1 {
		r, err = ch.split(h, data, parts)
	} else {
		r = noPackets
		var id int64
		if id, err = ch.sendOne(h, data); err == nil {
			r.add(id)
		}
	}
	if err == nil && open {
		ch.openSent, ch.openSeq, ch.openPacket = true, ch.out.next-1, r.Last
		ch.temporary = !h.Reliable
		ch.lastResend = ch.table.conn.Now()
	}
	return r, err
}

// split sends h in two parts or more.
func (ch *Channel) split(h *bunch.Header, data []byte, parts int) (PacketRange, error) {
	r := noPackets
	whole, part := *h, ch.table.cfg.Protocol.PartBytes()
	if ch.table.cfg.EvenParts {
		part = ((h.Bits+7)/8 + parts - 1) / parts
	}
	for i := range parts {
		first, last := i == 0, i == parts-1
		h.Partial, h.PartialInitial, h.PartialFinal = true, first, last
		h.Open, h.Close = whole.Open && first, whole.Close && last
		h.HasPackageMapExports = whole.HasPackageMapExports && !last
		h.Bits = min(part*8, whole.Bits-i*part*8)
		id, err := ch.sendOne(h, data[min(len(data), i*part):])
		if err != nil {
			return r, err
		}
		r.add(id)
	}
	return r, nil
}

// sendOne sends one bunch, a whole one or a part.
func (ch *Channel) sendOne(h *bunch.Header, data []byte) (int64, error) {
	t := ch.table
	if !h.Reliable {
		id, ok := t.conn.WriteBunch(h, data, ch, -1)
		if !ok {
			t.Counters.NotSent++
			return id, ErrNotSent
		}
		t.setLast(ch, h, nil, id)
		return id, nil
	}
	rec := ch.out.push()
	rec.Header = *h
	rec.Header.WireSeq = wireSeq(rec.Seq)
	rec.Data = t.cfg.Pool.Get((h.Bits + 7) / 8)
	copy(rec.Data, data)
	if len(rec.Data) > 0 && h.Bits&7 != 0 {
		rec.Data[len(rec.Data)-1] &= 1<<uint(h.Bits&7) - 1
	}
	t.slot(ch.index).outReliable = rec.Seq
	if t.transmit(ch, rec) {
		t.setLast(ch, h, rec, rec.PacketID)
	}
	return rec.PacketID, nil
}
