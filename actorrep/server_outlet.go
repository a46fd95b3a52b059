package actorrep

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// outlet is where a connection's actors go: channels, or a recording.
type outlet interface {
	// begin says that a Step begins, and reports whether anything may be sent in it.
	begin(now time.Duration) bool
	// end says that all of the Step is sent.
	end()
	// introduce tells of our classes and reports whether the other end knows them.
	introduce() bool
	// open opens an actor with its first values.
	open(v *view, w *bitio.Writer) bool
	// reliable sends messages of an actor, in order; apart in a bunch of their own.
	reliable(v *view, w *bitio.Writer, apart bool) bool
	// close makes an actor disappear, or sleep.
	close(v *view, reason channel.CloseReason) bool
	// gone tells of an actor that went, or was torn off, while it slept.
	gone(f farewell) bool
	// chunk sends records and says in which packet.
	chunk(data []byte, bits int) (packet int64, ok bool)
	// drained reports whether all that was sent reliably of an actor has arrived.
	drained(v *view) bool
	// room is how many reliable messages an actor may send now.
	room(v *view) int
	// budget is the bits that may be sent now, freeBits what the packet at hand has room for, packetBits an empty one.
	budget() int
	freeBits() int
	packetBits() int
	// now is the time of what is under way.
	now() time.Duration
	// fail ends the connection.
	fail(err error)
}

// bunchMargin is more bits than a bunch's header takes.
const bunchMargin = 96

// channelOutlet is a connection's channels.
type channelOutlet struct {
	peer *Peer
	conn channel.Conn
	ch   *channel.Channel // the replication channel

	classes   int           // described so far
	described bool          // all are
	answered  bool          // the client has, and said what it lacks
	acked     bool          // it has the channel, or ignores it
	since     time.Duration // when it acked
	told      bool          // that it doesn't answer, or can't be asked
}

func (o *channelOutlet) begin(time.Duration) bool { return true }
func (o *channelOutlet) end()                     {}

// introduce opens the replication channel with our schema.
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
		if errors.Is(err, channel.ErrUnknownType) && !o.told {
			o.told = true
			w.failed(fmt.Errorf("%w: %w", ErrNoChannelTypes, err))
		}
		w.Counters.Delayed++
		return false
	}
	o.ch = ch
	if o.describe(); o.classes == 0 && len(w.classes) > 0 {
		_ = ch.Close(bunch.Destroyed) // nothing was sent
		o.ch = nil
	}
	return false
}

// describe sends descriptions of our classes as there is room, and reports whether all are sent.
func (o *channelOutlet) describe() bool {
	w := o.peer.world
	for !o.described {
		m, last := w.message(), w.schemaPart(o.classes)
		w.writeSchema(m, o.classes, last)
		if _, err := o.ch.SendBunch(&bunch.Out{Data: m.Bytes(), Bits: m.Len(), Reliable: true, NoMerge: true}); err != nil {
			w.Counters.Delayed++
			return false
		}
		o.peer.overhead.schema += uint64(m.Len())
		o.classes, o.described = last, last == len(w.classes)
	}
	return true
}

// answerTimeout is how long a client that has the replication channel may take to answer.
const answerTimeout = 10 * time.Second

// expectAnswer tells of a client that acks our classes and never answers: its connection doesn't know our channels.
func (o *channelOutlet) expectAnswer() {
	switch {
	case o.answered || o.told || o.ch.NumOutRec() > 0:
	case !o.acked:
		o.acked, o.since = true, o.peer.world.now
	case o.peer.world.now-o.since > answerTimeout:
		o.told = true
		o.peer.world.failed(ErrNoAnswer)
	}
}

func (o *channelOutlet) open(v *view, w *bitio.Writer) bool {
	ch, err := o.conn.Table().Open(bunch.Actor, v)
	if err != nil {
		return false
	}
	if _, err := ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true, NoMerge: true}); err != nil {
		_ = ch.Close(bunch.Destroyed) // it was never sent
		return false
	}
	v.ch, v.id = ch, ch.Index()
	return true
}

func (o *channelOutlet) reliable(v *view, w *bitio.Writer, apart bool) bool {
	if v.ch == nil || w.Err() != nil {
		return false
	}
	_, err := v.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true, NoMerge: apart})
	return err == nil
}

func (o *channelOutlet) close(v *view, reason channel.CloseReason) bool {
	ch := v.ch
	if ch == nil || ch.Closing() {
		return true
	}
	if ch.Close(reason) != nil {
		return false
	}
	if p := o.peer; ch.Closing() && o.conn.Table().Channel(ch.Index()) == ch { // else the client never heard of it
		if p.closing == nil {
			p.closing = map[*Base]closing{}
		}
		p.closing[v.b] = closing{newest: ch, n: p.closing[v.b].n + 1}
	}
	return true
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
	_, err := o.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true})
	return err == nil
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
func (o *channelOutlet) budget() int        { return o.conn.Budget() * 8 }
func (o *channelOutlet) freeBits() int      { return o.conn.FreeBits() - bunchMargin }
func (o *channelOutlet) packetBits() int    { return o.conn.Table().SingleBits() - bunchMargin }
func (o *channelOutlet) now() time.Duration { return o.conn.Now() }
func (o *channelOutlet) fail(err error)     { o.conn.Fail(err, true) }

// ReceivedBunch is a client's answer to the schema: what it can't take.
func (o *channelOutlet) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	w := o.peer.world
	lacks, reason, err := readAnswer(&in.Data, len(w.classes))
	if err != nil || o.answered {
		w.Counters.Bad++
		o.conn.Fail(fmt.Errorf("%w: an answer to the classes: %w", errFormat, errors.Join(err)), false)
		return
	}
	o.answered, o.peer.lacks = true, lacks
	o.peer.dropLacking()
	switch {
	case reason == "":
	case w.cfg.SchemaRefused != nil:
		w.cfg.SchemaRefused(o.peer, reason)
	default:
		w.failed(fmt.Errorf("%w: a client says: %s", ErrSchema, reason))
	}
}

// ReceivedAck settles the records of a packet.
func (o *channelOutlet) ReceivedAck(_ *channel.Channel, id int64) { o.peer.acked(id) }

// ReceivedNak has their values sent again.
func (o *channelOutlet) ReceivedNak(_ *channel.Channel, id int64) { o.peer.lost(id) }

// Closed is the end of the connection.
func (o *channelOutlet) Closed(*channel.Channel, channel.CloseReason) {}

var _ channel.Handler = (*channelOutlet)(nil)
