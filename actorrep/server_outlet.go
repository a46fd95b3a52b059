package actorrep

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// outlet is where a connection's messages go: into channels or into a recording.
type outlet interface {
	// begin starts a Step and reports whether anything may be sent in it.
	begin(now time.Duration) bool
	// end ends the Step: everything is sent.
	end()
	// introduce describes our classes and reports whether the other end has answered.
	introduce() bool
	// open opens an actor with its first values. known is the units that the client then has: those that were sent, and those that are zero and weren't.
	open(v *view, w *bitio.Writer, known layout.Mask) bool
	// reliable sends messages of an actor, in order; they have the values of units. apart puts them into a bunch of their own.
	reliable(v *view, w *bitio.Writer, apart bool, units layout.Mask) bool
	// close closes an actor's channel: the actor disappears or sleeps.
	close(v *view, reason channel.CloseReason) bool
	// gone says that an actor without a channel was destroyed or torn off.
	gone(f farewell) bool
	// refused says that calls of the client didn't run.
	refused(f wire.Refusal) bool
	// chunk sends records and returns the packet that carries them.
	chunk(data []byte, bits int) (packet int64, ok bool)
	// drained reports whether everything sent reliably for an actor has arrived.
	drained(v *view) bool
	// room is how many reliable bunches an actor may send now, newRoom how many one whose channel is new.
	room(v *view) int
	newRoom() int
	// largest is the most bits of a reliable message, when everything is acked.
	largest() int
	// budget is the bits that may be sent now, freeBits those left in the current packet, packetBits those of an empty
	// packet.
	budget() int
	freeBits() int
	packetBits() int
	// now is the time of the current TickDispatch or Step.
	now() time.Duration
	// fail ends the connection.
	fail(err error)
}

// bunchMargin is an upper bound of a bunch header's bits.
const bunchMargin = 96

// channelOutlet sends over a connection's channels.
type channelOutlet struct {
	peer *Peer
	conn channel.Conn
	ch   *channel.Channel // the replication channel

	classes   int           // described so far
	described bool          // all of them
	answered  bool          // the client has answered with the classes it lacks
	received  uint64        // the client's packets when it was last heard without an answer
	heardAt   time.Duration // that time
	waited    time.Duration // how long it has been heard without an answer
	packet    int64         // that the last message went into
	told      error         // what Failed was told: that the client doesn't answer, or can't be asked
	full      bool          // Failed was told that there was no channel left
}

func (o *channelOutlet) begin(time.Duration) bool { return true }
func (o *channelOutlet) end()                     {}

// introduce opens the replication channel and describes our classes on it.
func (o *channelOutlet) introduce() bool {
	w := o.peer.world
	if o.ch != nil {
		if o.describe() {
			o.expectAnswer()
		}
		return o.answered
	}
	ch, err := o.conn.Table().Open(ReplicationName, o)
	if err != nil {
		if errors.Is(err, channel.ErrUnknownType) && o.told == nil {
			o.tell(fmt.Errorf("%w: %w", ErrNoChannelTypes, err))
		}
		w.Counters.Delayed++
		return false
	}
	o.ch = ch
	if o.describe(); o.classes == 0 && len(w.classes) > 0 {
		o.ch = nil
		_ = ch.Close(bunch.Destroyed) // nothing was sent
	}
	return false
}

// describe sends the descriptions of our classes that there is room for, and reports whether all are sent.
func (o *channelOutlet) describe() bool {
	w := o.peer.world
	for !o.described {
		most := o.peer.most(o.newRoom())
		m, last := w.message(), w.schemaPart(o.classes, most/8-schemaHead)
		w.writeSchema(m, o.classes, last)
		if !o.send(o.ch, m, true) {
			w.Counters.Delayed++
			if m.Len() > most && o.told == nil {
				o.tell(fmt.Errorf("%w: the description of class %q", channel.ErrTooLarge, w.classes[o.classes].name))
			}
			return false
		}
		o.peer.overhead.schema += uint64(m.Len())
		o.classes, o.described = last, last == len(w.classes)
	}
	return true
}

// answerTimeout is how long a client that has the replication channel may take to answer. Of a silence only mostSilence counts.
const (
	answerTimeout = 10 * time.Second
	mostSilence   = time.Second
)

// expectAnswer reports a client that acks our classes, is heard and doesn't answer in time: its connection lacks our channel
// types. The answer of one that isn't heard may be lost.
func (o *channelOutlet) expectAnswer() {
	if o.answered || o.told != nil || o.ch.NumOutRec() > 0 {
		return
	}
	if conn, ok := o.conn.(interface {
		InPackets() (received, missed uint64)
	}); ok {
		received, _ := conn.InPackets()
		if received == o.received {
			return
		}
		o.received = received
	}
	now := o.peer.world.now
	o.waited += min(now-o.heardAt, mostSilence)
	o.heardAt = now
	if o.waited > answerTimeout {
		o.tell(ErrNoAnswer)
	}
}

// tell tells the game why the connection gets no actors.
func (o *channelOutlet) tell(err error) {
	o.told = err
	o.peer.world.failed(err)
}

func (o *channelOutlet) open(v *view, w *bitio.Writer, known layout.Mask) bool {
	ch, err := o.conn.Table().Open(bunch.Actor, v)
	if err != nil {
		if errors.Is(err, channel.ErrNoIndex) && !o.full {
			o.full = true
			o.peer.world.failed(fmt.Errorf("actorrep: %d actors that are relevant to a client wait for channels: %w", len(o.peer.opening), err))
		}
		return false
	}
	if o.peer.world.observer != nil {
		o.peer.world.observer.Opening(o.conn, v.b.guid, ch.Index(), known)
	}
	if !o.send(ch, w, true) {
		_ = ch.Close(bunch.Destroyed) // it was never sent
		return false
	}
	v.ch, v.id = ch, ch.Index()
	if v.carry != nil {
		v.carry.bunches = ch.NumOutRec()
	}
	return true
}

func (o *channelOutlet) reliable(v *view, w *bitio.Writer, apart bool, units layout.Mask) bool {
	if v.ch == nil {
		return false
	}
	before := v.ch.NumOutRec()
	if !o.send(v.ch, w, apart) {
		return false
	}
	if v.carry != nil {
		v.carry.bunches += v.ch.NumOutRec() - before
	}
	if obs := o.peer.world.observer; obs != nil && units != 0 {
		obs.Carried(o.conn, v.id, v.ch.OutSequence(), units)
	}
	return true
}

// send sends a reliable message, if there is room for all of it.
func (o *channelOutlet) send(ch *channel.Channel, w *bitio.Writer, apart bool) bool {
	if w.Err() != nil || !hasRoom(ch, w.Len()) {
		return false
	}
	r, err := ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true, NoMerge: apart})
	o.packet = r.First
	return err == nil
}

// hasRoom reports whether SendBunch may be tried with a reliable message of this size: there is room, or there never will be,
// which is an error. With CloseOnOverflow a message for which there is no room at the moment would end the connection.
func hasRoom(ch *channel.Channel, bits int) bool {
	single := ch.Conn().Table().SingleBits()
	parts := 1
	if part := single / 8 * 8; bits > single {
		parts = (bits + part - 1) / part
	}
	return parts <= ch.Room() || parts > ch.Room()+ch.NumOutRec()
}

func (o *channelOutlet) close(v *view, reason channel.CloseReason) bool {
	ch := v.ch
	if ch == nil || ch.Closing() {
		return true
	}
	if ch.Close(reason) != nil {
		return false
	}
	p := o.peer
	if p.world.observer != nil {
		p.world.observer.Closing(o.conn, ch.Index(), reason)
	}
	if p.closing == nil {
		p.closing = map[netguid.GUID]closing{}
	}
	p.closing[v.b.guid] = closing{newest: ch, views: append(p.closing[v.b.guid].views, v)}
	return true
}

func (o *channelOutlet) refused(f wire.Refusal) bool {
	w := o.peer.world.message()
	f.Write(w)
	return o.send(o.ch, w, false)
}

func (o *channelOutlet) gone(f farewell) bool {
	if o.ch == nil {
		return false
	}
	w := o.peer.world.message()
	kind := wire.Gone
	if f.torn {
		kind = wire.Torn
	}
	w.WriteBits(uint64(kind), wire.KindBits)
	w.WriteIntPacked(uint32(f.id))
	w.WriteUint32(o.peer.world.frame)
	return o.send(o.ch, w, false)
}

func (o *channelOutlet) chunk(data []byte, n int) (int64, bool) {
	r, err := o.ch.SendBunch(&bunch.Out{Data: data, Bits: n, NoMerge: true})
	return r.Last, err == nil
}

func (o *channelOutlet) drained(v *view) bool { return v.ch == nil || v.ch.NumOutRec() == 0 }
func (o *channelOutlet) room(v *view) int {
	if v.ch == nil || v.ch.Closing() {
		return 0
	}
	return v.ch.Room()
}
func (o *channelOutlet) newRoom() int       { return o.ch.Room() + o.ch.NumOutRec() }
func (o *channelOutlet) largest() int       { return o.ch.MaxReliable() }
func (o *channelOutlet) budget() int        { return o.conn.Budget() * 8 }
func (o *channelOutlet) freeBits() int      { return o.conn.FreeBits() - bunchMargin }
func (o *channelOutlet) packetBits() int    { return o.conn.Table().SingleBits() - bunchMargin }
func (o *channelOutlet) now() time.Duration { return o.conn.Now() }
func (o *channelOutlet) fail(err error)     { o.conn.Fail(err, true) }

// ReceivedBunch handles a client's answer to the schema: the classes that it lacks or refuses.
func (o *channelOutlet) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	w := o.peer.world
	w.enter()
	defer w.exit()
	lacks, reason, err := readAnswer(&in.Data, len(w.classes))
	if err == nil && o.answered {
		err = errors.New("the second")
	}
	if err != nil {
		w.Counters.Bad++
		o.conn.Fail(fmt.Errorf("%w: an answer to the classes: %w", errFormat, err), false)
		return
	}
	o.answered, o.peer.lacks = true, lacks
	o.peer.dropLacking()
	switch {
	case reason == "":
	case w.cfg.SchemaRefused != nil:
		w.cfg.SchemaRefused(o.peer, reason)
	default:
		w.failed(fmt.Errorf("%w: a client says: %s", ErrSchema, bitio.Printable(strings.ReplaceAll(reason, "\n", "; "))))
	}
}

// ReceivedAck handles the ack of a packet with records.
func (o *channelOutlet) ReceivedAck(_ *channel.Channel, id int64) { o.peer.hear(id, false) }

// ReceivedNak has the values of a lost packet sent again.
func (o *channelOutlet) ReceivedNak(_ *channel.Channel, id int64) { o.peer.hear(id, true) }

// Closed is the channel's. An honest client leaves it open as long as the connection.
func (o *channelOutlet) Closed(ch *channel.Channel, _ channel.CloseReason) {
	if ch == o.ch {
		o.peer.closedBy(ch)
	}
}

// closedBy ends a connection whose client has closed a channel that only the server may close: nothing of what it carries could arrive.
func (p *Peer) closedBy(ch *channel.Channel) {
	if conn := ch.Conn(); !p.removed() && !conn.Table().Ended() {
		p.world.Counters.Bad++
		conn.Fail(fmt.Errorf("%w: a client closed %v, which is the server's", errFormat, ch), false)
	}
}

var (
	_ channel.Handler  = (*channelOutlet)(nil)
	_ channel.Finisher = (*channelOutlet)(nil)
)

// removedOutlet is the outlet of a connection after RemoveConn: nothing can be sent.
type removedOutlet struct{}

func (removedOutlet) begin(time.Duration) bool                              { return false }
func (removedOutlet) end()                                                  {}
func (removedOutlet) introduce() bool                                       { return false }
func (removedOutlet) open(*view, *bitio.Writer, layout.Mask) bool           { return false }
func (removedOutlet) reliable(*view, *bitio.Writer, bool, layout.Mask) bool { return false }
func (removedOutlet) close(*view, channel.CloseReason) bool                 { return true }
func (removedOutlet) gone(farewell) bool                                    { return false }
func (removedOutlet) refused(wire.Refusal) bool                             { return false }
func (removedOutlet) chunk([]byte, int) (packet int64, ok bool)             { return 0, false }
func (removedOutlet) drained(*view) bool                                    { return true }
func (removedOutlet) room(*view) int                                        { return 0 }
func (removedOutlet) newRoom() int                                          { return 0 }
func (removedOutlet) largest() int                                          { return 0 }
func (removedOutlet) budget() int                                           { return 0 }
func (removedOutlet) freeBits() int                                         { return 0 }
func (removedOutlet) packetBits() int                                       { return 0 }
func (removedOutlet) now() time.Duration                                    { return 0 }
func (removedOutlet) fail(error)                                            {}
