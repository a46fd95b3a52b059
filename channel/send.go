package channel

import (
	"fmt"
	"sort"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// lastBunch is the bunch at the end of the SendBuffer, for merging.
type lastBunch struct {
	ch       *Channel
	packetID int64
	seq      int64 // -1 when unreliable
	bits     int
	paused   bool
	mapped   bool
	noMerge  bool
}

// PacketRange is the packets that a bunch was sent in: several when it was split. Both are bunch.NoPacket while a
// reliable bunch, or a part of it, waits for the packet window or the rate controller, and so for an unreliable one that is made reliable as it is
// large (Config.PartialReliableThreshold); or, where a handler sends it amid a receive tick that comes more than 150 ms after
// the last, for the end of that. Where a reliable one is split, an id between them may be one that no packet
// had, whose fate nobody is told (netconn.Config.Secret); and what is lost is sent again in other packets.
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

// SendBunch sends out. It merges it with the bunch before when both fit one: then the peer's handler gets both payloads in one call, so a payload must mark
// its end, or be sent with NoMerge. It splits it when it is too large for one packet. A reliable bunch waits while the connection is above its bandwidth. An unreliable one never waits, so check
// Conn.IsNetReady before. After an error nothing was queued or sent, with one exception: for an unreliable bunch of
// several parts, ErrNotSent may leave some sent, which the peer drops. A bunch without payload opens the channel, and the peer's handler isn't told
// of it.
//
// Reliable bunches that wait go before all that asks Conn.IsNetReady. Send large data, such as a level, as blocks of package message, which leave the game its bandwidth.
func (ch *Channel) SendBunch(out *bunch.Out) (PacketRange, error) {
	if ch.shut() {
		return noPackets, ErrClosed
	}
	if err := out.Validate(); err != nil {
		return noPackets, err
	}
	if out.Reliable {
		if err := ch.everFits(out.PayloadBits()); err != nil {
			return noPackets, err
		}
	}
	if ch.index == 0 && out.Reliable && ch.mustQueue(out.PayloadBits()) {
		return noPackets, ch.enqueue(out)
	}
	if !out.Reliable && ch.openedLocally && !ch.openSent {
		return noPackets, ErrFirstReliable
	}
	return ch.send(out, false, 0)
}

// SendTemporary opens the channel, delivers out and closes the channel in one unreliable bunch. The channel is removed
// once its packet is acked or lost. The control channel can't be temporary: the connection would end with it.
func (ch *Channel) SendTemporary(out *bunch.Out) (PacketRange, error) {
	if ch.index == 0 {
		return noPackets, errControlTemporary
	}
	if ch.Closing() || ch.table.closing || !ch.openedLocally || ch.openSent {
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

// maxCloseReason is what CloseReason has room for in a bunch.
const maxCloseReason = 15

// Close closes the channel after everything sent before is acked, and tells the peer the reason. Only the end that
// opened a channel may close it; channel 0 may be closed by both. With channel 0 the connection ends in order, as by its Close: nothing more may be sent on any
// channel, and what was sent is acked first.
func (ch *Channel) Close(reason CloseReason) error {
	switch {
	case ch.Closing() || ch.table.closing: // the end of the connection closes all channels
		return nil
	case !ch.openedLocally && ch.index != 0:
		return ErrNotOpener
	case reason >= maxCloseReason:
		return errCloseReason
	case ch.index == 0:
		ch.table.outlet.CloseInOrder()
		return nil
	case ch.openedLocally && !ch.openSent && ch.notes > 0: // the peer may get a part of what SendTemporary couldn't send whole
		ch.closing, ch.closeReason, ch.temporary = true, reason, true
		return nil
	case ch.openedLocally && !ch.openSent:
		ch.table.remove(ch, reason) // the peer doesn't know the channel
		return nil
	}
	return ch.end(reason)
}

// end sends the close.
func (ch *Channel) end(reason CloseReason) error {
	if _, err := ch.send(&bunch.Out{Reliable: true, NoMerge: true}, true, reason); err != nil {
		return err
	}
	ch.closing, ch.closeReason = true, reason
	return nil
}

var noPackets = PacketRange{bunch.NoPacket, bunch.NoPacket}

// send is SendBunch after the checks that are independent of room.
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
	if !h.Open && !closing {
		if t.merge(ch, h, out) {
			return PacketRange{t.last.packetID, t.last.packetID}, nil
		}
		if ch.mergeWaiting(h, out) {
			return noPackets, nil
		}
	}
	parts, bytes := t.parts(h.Bits), bufferSize((h.Bits+7)/8)
	promoted := !h.Reliable && !out.StayUnreliable && parts >= t.cfg.PartialReliableThreshold && ch.out.len()+parts <= t.maxOut && t.fitsOut(ch.index, bytes, parts)
	if promoted {
		h.Reliable, h.ReplicationPaused = true, true
		t.Counters.Promoted++
	}
	if h.Reliable && !t.fillGap(ch) {
		t.Counters.ReliableFull++
		return noPackets, errIndexFull
	}
	if h.Reliable && (!closing || promoted) && !t.fitsOut(ch.index, bytes, parts) {
		t.Counters.ReliableFull++
		return noPackets, errMemoryFull
	}
	if h.Reliable && ch.out.len()+parts > t.maxOut+b2i(closing) {
		t.Counters.ReliableFull++
		if t.cfg.CloseOnOverflow && ch.out.first >= ch.gapEnd() { // not because of what an earlier channel left
			t.conn.Fail(fmt.Errorf("%w on %v", ErrOverflow, ch), true)
		}
		return noPackets, ErrReliableFull
	}
	if finer := t.cut(h.Bits, parts); finer > parts && (!h.Reliable || ch.out.len()+finer <= t.maxOut && t.fitsOut(ch.index, bytes, finer)) {
		parts = finer
	}
	if !h.Reliable && parts > 1 && !t.outlet.HasPackets(t.packetsFor(h.Bits, parts)) {
		t.Counters.NotSent++ // some of the parts would take room and bandwidth in vain
		return noPackets, ErrNotSent
	}
	r, err := ch.sendParts(h, out.Data, parts)
	if err != nil {
		return r, err
	}
	if promoted {
		ch.needRare().pausedUntil = ch.out.next
	}
	apart := out.NoMerge || out.HasPackageMapExports || parts > 1
	t.last.noMerge = t.last.noMerge || apart
	if rec := ch.out.at(ch.out.next - 1); h.Reliable && rec != nil {
		rec.noMerge = apart || closing || h.HasMustBeMappedGUIDs
	}
	return r, nil
}

// everFits returns an error for a reliable payload that doesn't fit even when everything is acked.
func (ch *Channel) everFits(bits int) error {
	t := ch.table
	parts := t.parts(bits)
	switch {
	case parts == 1:
		return nil
	case parts > t.maxOut:
		return fmt.Errorf("%w: it takes %d bunches of %d bytes, and ReliableBuffer has room for %d", ErrTooLarge, parts, t.partBytes(), t.maxOut)
	case !ch.memoryFor(bits):
		return fmt.Errorf("%w: its %d bunches take more than MaxMemory has for them", ErrTooLarge, parts)
	}
	return nil
}

// memoryFor reports whether MaxMemory has room for a reliable payload of so many bits, when everything is acked.
func (ch *Channel) memoryFor(bits int) bool {
	t := ch.table
	parts := t.parts(bits)
	return parts == 1 || bufferSize((bits+7)/8)+parts*(outCost+1<<minClass) <= t.maxHeldOut(ch.index)
}

// MaxReliable is the most bits of a reliable payload that SendBunch takes when everything is acked: ReliableBuffer and MaxMemory have room for so many. A
// larger one is ErrTooLarge.
func (ch *Channel) MaxReliable() int {
	t := ch.table
	most := bunch.MaxPayload * 8
	if t.parts(most) > t.maxOut {
		most = max(t.single, t.maxOut*t.partBytes()*8)
	}
	if ch.memoryFor(most) {
		return most
	}
	return sort.Search(most, func(n int) bool { return !ch.memoryFor(n + 1) })
}

// partBytes is the size of each part of a split bunch, except the last.
func (t *Table) partBytes() int { return t.single / 8 }

// parts is the number of bunches for a payload of this size.
func (t *Table) parts(bits int) int {
	if bits <= t.single {
		return 1
	}
	part := t.partBytes() * 8
	return (bits + part - 1) / part
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// partHeader is about the header bits of a part. A packet ends earlier when it is more.
const partHeader = 96

// cut is the number of parts in which a payload goes that takes fewest at least: more where several fill a packet, and a packet is
// saved for every two.
func (t *Table) cut(bits, fewest int) int {
	if fewest == 1 || t.packet == 0 {
		return fewest
	}
	each := (t.packet + t.single + partHeader - 1) / (t.single + partHeader) // parts a packet
	fill := (t.packet/each - partHeader) / 8 * 8
	parts := (bits + fill - 1) / fill
	if more := parts - fewest; more > 0 && more <= 2*(t.packets(bits, fewest)-t.packets(bits, parts)) {
		return parts
	}
	return fewest
}

// packetsFor is how many packets a payload takes in so many parts.
func (t *Table) packetsFor(bits, parts int) int {
	if t.packet == 0 {
		return parts
	}
	return t.packets(bits, parts)
}

// packets is how many a payload takes in so many parts of equal size, where a packet has room for several.
func (t *Table) packets(bits, parts int) int {
	each := t.packet / ((bits+parts-1)/parts + partHeader)
	return (parts + each - 1) / each
}

// sendParts sends h in the given number of parts. If h is reliable, each part is a reliable bunch of its own.
func (ch *Channel) sendParts(h *bunch.Header, data []byte, parts int) (r PacketRange, err error) {
	open, first := h.Open, ch.out.next
	if parts > 1 {
		r, err = ch.split(h, data, parts)
	} else {
		var id int64
		id, err = ch.sendOne(h, data)
		r = PacketRange{id, id}
	}
	if err == nil && open {
		ch.openSent = true
		if ch.temporary = !h.Reliable; !ch.temporary {
			ch.openAt = first
		}
		if ch.index == 0 {
			ch.needRare().lastResend = ch.table.conn.Now()
		}
	}
	return r, err
}

// split sends h in two parts or more.
func (ch *Channel) split(h *bunch.Header, data []byte, parts int) (PacketRange, error) {
	r, waits := noPackets, false
	whole, part := *h, ch.table.partBytes()
	if t := ch.table; h.Reliable && ch.index != 0 && ch.fresh == 0 && (t.line.len() > 0 || !t.begin(ch, (h.Bits+7)/8, ch.out.next+int64(parts))) {
		ch.inLine = true
	}
	if ch.table.cfg.EvenParts || parts > ch.table.parts(h.Bits) { // full parts would leave nothing to the last of so many
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
		waits = waits || id == bunch.NoPacket
	}
	if waits { // whoever hears that those which left have arrived must not take it for the whole payload
		return noPackets, nil
	}
	return r, nil
}

// sendOne sends one bunch, whole or a part. A reliable one queues behind those that wait.
func (ch *Channel) sendOne(h *bunch.Header, data []byte) (int64, error) {
	t := ch.table
	if !h.Reliable {
		if ch.openWaits(h) || h.PartialInitial && ch.splitWaits() || !ch.openRides(h) {
			t.Counters.NotSent++
			return bunch.NoPacket, ErrNotSent
		}
		id := t.outlet.WriteBunch(h, data, ch, -1)
		t.setLast(ch, h, nil, id)
		return id, nil
	}
	rec := ch.out.push(t.cfg.Pool)
	t.unacked++
	rec.header = *h
	rec.header.WireSeq = t.wireSeq(rec.seq)
	rec.data = t.cfg.Pool.Get((h.Bits + 7) / 8)
	t.heldOut += outCost + cap(rec.data)
	copy(rec.data, data)
	if len(rec.data) > 0 && h.Bits&7 != 0 {
		rec.data[len(rec.data)-1] &= 1<<uint(h.Bits&7) - 1
	}
	t.Counters.SentReliable++
	waits := t.Waiting() > 0 || ch.fresh > 0 || ch.inLine
	if ch.index == 0 {
		waits = t.first.len() > 0
	}
	if !waits && !t.mayFollow(ch, rec) {
		ch.needRare().blocked, waits = true, true
	}
	if waits || !t.outlet.MaySend(h.Bits) {
		rec.waiting = true
		t.Counters.Backlog++
		t.queued += (h.Bits + 7) / 8
		if ch.index == 0 {
			t.first.push(ch, rec.seq)
		} else {
			ch.queue().push(ch)
		}
		return bunch.NoPacket, nil
	}
	t.countAhead(ch, peerCost(rec))
	t.transmit(ch, rec)
	t.setLast(ch, h, rec, rec.packetID)
	return rec.packetID, nil
}

// opening is the open that the peer may not have, or nil.
func (ch *Channel) opening() *outRec {
	if !ch.openedLocally || ch.openAt == bunch.NoPacket {
		return nil
	}
	return ch.out.at(max(ch.openAt, ch.out.first))
}

// Unopened reports whether an unreliable bunch of ch in packet id would make the peer refuse the packet: the open of ch isn't acked, and
// isn't in that packet.
func (m *Machine) Unopened(ch *Channel, id int64) bool {
	open := ch.opening()
	return open != nil && open.packetID != id
}

// ControlLost reports whether a reliable bunch of the control channel was lost before packet id left, and hasn't arrived: its open, or a message of the login.
// Until it does the peer may refuse to have channels opened. A bunch that was lost often may be what the peer refuses.
func (m *Machine) ControlLost(id int64) bool {
	t := m.table()
	ch := t.Channel(0)
	if ch == nil || !t.isStatic(0) {
		return false
	}
	oldest := ch.out.at(ch.out.first)
	return oldest != nil && oldest.packetID != id && oldest.lost > 0 && oldest.lost < refusedOften
}

// openWaits reports whether an unreliable bunch has to wait for the channel's open, as the peer would refuse its packet: the open isn't on its way, or it was
// lost and no copy of it can be in that packet. An open that was lost often may be what the peer refuses.
func (ch *Channel) openWaits(h *bunch.Header) bool {
	open := ch.opening()
	return open != nil && (open.waiting || open.lost >= refusedOften || open.lost > 0 && !ch.mayRide(open, h))
}

// mayRide reports whether a packet has room for a copy of the open before a bunch. A copy of one part opens nothing, nor does one
// that comes before what fills the gap of the index's previous channel; and nothing comes between the parts of an unreliable payload.
func (ch *Channel) mayRide(open *outRec, h *bunch.Header) bool {
	return !open.header.Partial && !h.Partial && ch.out.first >= ch.gapEnd() && open.header.Bits+bunch.MaxHeaderBits+h.Bits <= ch.table.single
}

// openRides puts a copy of an open that isn't acked into the packet of an unreliable bunch, unless it is in there: the peer would refuse the
// packet if it didn't have the channel. Where no copy can be in there, the bunch leaves without. It returns false when the connection has no room.
func (ch *Channel) openRides(h *bunch.Header) bool {
	t, open, bits := ch.table, ch.opening(), h.Bits
	if open == nil || !ch.mayRide(open, h) || open.packetID == t.outlet.PacketID() && t.conn.FreeBits() >= bits+bunch.MaxHeaderBits {
		return t.outlet.HasRoom(bits)
	}
	bits += bunch.MaxHeaderBits + open.header.Bits
	if t.conn.FreeBits() < bits+bunch.MaxHeaderBits {
		t.outlet.EndPacket()
	}
	if !t.outlet.HasRoom(bits) {
		return false
	}
	t.transmit(ch, open)
	return true
}

// splitWaits reports whether the rest of a split reliable payload waits. The peer joins one payload of a channel at a
// time, and would refuse packets with parts of another.
func (ch *Channel) splitWaits() bool {
	rest := func(rec *outRec) bool {
		return rec != nil && rec.waiting && rec.header.Partial && !rec.header.PartialInitial
	}
	return rest(ch.out.at(ch.out.first)) || rest(ch.out.at(ch.firstFresh()))
}

// setLast notes the bunch that now ends the SendBuffer.
func (t *Table) setLast(ch *Channel, h *bunch.Header, rec *outRec, id int64) {
	t.Counters.Sent++
	t.last = lastBunch{ch: ch, packetID: id, seq: -1, bits: h.Bits,
		paused: h.ReplicationPaused, mapped: h.HasMustBeMappedGUIDs, noMerge: h.Partial || h.Close}
	if h.Partial {
		t.Counters.Split++
	}
	if rec != nil {
		t.last.seq = rec.seq
	}
}

// merge appends out to the bunch before it, if that has the same channel and reliability, still ends the SendBuffer, and
// has room.
func (t *Table) merge(ch *Channel, h *bunch.Header, out *bunch.Out) bool {
	l := &t.last
	if l.ch != ch || l.noMerge || out.NoMerge || h.HasPackageMapExports || (l.seq >= 0) != h.Reliable ||
		l.paused != h.ReplicationPaused || l.mapped || h.HasMustBeMappedGUIDs ||
		l.bits+h.Bits > t.single {
		return false
	}
	var rec *outRec
	if h.Reliable {
		rec = ch.out.at(l.seq)
		if rec == nil || rec.sent != 1 || l.seq != ch.out.next-1 { // it may not overtake one that waits
			return false
		}
	}
	if rec != nil && !t.mayExtend(ch.index, rec, h.Bits) || !t.outlet.ExtendBunch(out.Data, h.Bits) {
		return false
	}
	l.bits += h.Bits
	if rec != nil {
		t.countAhead(ch, -peerCost(rec))
		t.extend(rec, out.Data, h.Bits)
		t.countAhead(ch, peerCost(rec))
	}
	t.Counters.Merged++
	return true
}

// mergeWaiting appends out to the channel's newest reliable bunch if that was never sent. So many small bunches become
// few while the connection is above its bandwidth.
func (ch *Channel) mergeWaiting(h *bunch.Header, out *bunch.Out) bool {
	rec := ch.out.at(ch.out.next - 1)
	if rec == nil || !h.Reliable || !rec.waiting || rec.packetID != bunch.NoPacket || rec.noMerge || out.NoMerge || h.HasPackageMapExports ||
		rec.header.ReplicationPaused != h.ReplicationPaused || h.HasMustBeMappedGUIDs || rec.header.Bits+h.Bits > ch.table.single || !ch.table.mayExtend(ch.index, rec, h.Bits) {
		return false
	}
	ch.table.extend(rec, out.Data, h.Bits)
	ch.table.queued += (h.Bits + 7) / 8
	ch.table.Counters.Merged++
	return true
}

// mayExtend reports whether a payload may become larger by this many bits, and there is memory for it.
func (t *Table) mayExtend(index uint32, rec *outRec, bits int) bool {
	if !t.outlet.MayMerge(rec.header.Bits + bits) {
		return false
	}
	n := (rec.header.Bits + bits + 7) / 8
	return n <= cap(rec.data) || t.fitsOut(index, bufferSize(n)-cap(rec.data), 0)
}

// extend appends bits to the payload that is kept for sending again.
func (t *Table) extend(rec *outRec, data []byte, bits int) {
	old := rec.header.Bits
	n := (old + bits + 7) / 8
	if n > cap(rec.data) {
		grown := t.cfg.Pool.Get(n)
		t.heldOut += cap(grown) - cap(rec.data)
		copy(grown, rec.data)
		t.cfg.Pool.Put(rec.data)
		rec.data = grown
	}
	rec.data = rec.data[:n]
	rec.header.Bits += bits
	appendBits(rec.data, old, data, bits)
}

func (t *Table) wireSeq(seq int64) uint16 { return t.cfg.Protocol.Sequences().Truncate(seq) }

// appendBits appends bits of data to dst after its first n bits.
func appendBits(dst []byte, n int, data []byte, bits int) {
	var w bitio.Writer
	w.Reset(dst[n>>3:])
	if s := n & 7; s != 0 {
		w.WriteBits(uint64(dst[n>>3]), s)
	}
	w.WriteBitsFrom(data, 0, bits)
	w.Bytes() // pads the last byte
}
