package channel

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// Type is a kind of channel, known by its name at both ends.
type Type struct {
	Name bunch.Name
	// ClientOpen and ServerOpen say who may open one. An open by an end that may
	// not is ignored.
	ClientOpen, ServerOpen bool
	// Static gives the type the fixed index Index, so that there is at most one.
	// Control must have index 0.
	Static bool
	Index  uint32
	// Accept makes the handler of a channel that the peer opened, before its first
	// bunch is delivered. nil, or a nil Handler, ignores all that comes on it.
	Accept func(ch *Channel) Handler
}

// Config is the settings of a Table. The zero value is Unreal 5.1 without channel types.
type Config struct {
	Protocol bunch.Protocol
	Types    []Type
	// ReliableBuffer bounds the reliable bunches of a channel that aren't acked,
	// and those received before their turn. Default 256 (Unreal up to 5.x); 512
	// in newer releases; a power of two, at most 512.
	ReliableBuffer int
	// MaxChannels bounds the channel index. Default and most 32767.
	MaxChannels int
	// PartialReliableThreshold is the number of parts from which on an unreliable bunch is made
	// reliable and pauses replication until acked. Default 8; negative never.
	PartialReliableThreshold int
	// EvenParts splits payloads into parts of one size instead of full ones and a rest, so that
	// the system can send their packets as one.
	EvenParts bool
	// CloseOnOverflow ends the connection when a reliable bunch finds the buffer
	// full (Unreal's policy) besides returning ErrReliableFull.
	CloseOnOverflow bool
	// NeverReuseIndex gives every channel this end opens a fresh index, for peers
	// that restart the sequence of a reused one.
	NeverReuseIndex bool
	// FirstFree opens channels at the lowest free index, as Unreal's server does.
	// By default a client takes odd ones and a server even ones, so that both
	// may open at the same time.
	FirstFree bool
	// StrictControl ends the connection when a bunch comes before the control
	// channel's open, Unreal's rule. Otherwise its packet is refused, so that it comes
	// again: a client may then open channels before its first packet is acked.
	StrictControl bool
	// RestartSequence restarts both sequences of an index when its channel is
	// removed, as that kind of peer does.
	RestartSequence bool
	// MaxQueuedControl bounds the bunches queued on a full control channel. Default 32768.
	MaxQueuedControl int
	// Pool lends buffers; nil makes one of the table's own.
	Pool *Pool
}

const maxQueuedControlBytes = 4 << 20

func (c Config) filled() Config {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.ReliableBuffer, 256)
	def(&c.MaxChannels, 32767)
	def(&c.PartialReliableThreshold, 8)
	def(&c.MaxQueuedControl, 32768)
	if c.PartialReliableThreshold < 0 {
		c.PartialReliableThreshold = 1 << 30
	}
	if c.Pool == nil {
		c.Pool = new(Pool)
	}
	return c
}

// Validate reports settings that can't work.
func (c *Config) Validate() error {
	f := c.filled()
	switch {
	case f.ReliableBuffer < 2 || f.ReliableBuffer > 512 || f.ReliableBuffer&(f.ReliableBuffer-1) != 0:
		return fmt.Errorf("channel: ReliableBuffer %d must be a power of two from 2 to 512", f.ReliableBuffer)
	case f.MaxChannels < 1 || f.MaxChannels > 32767:
		return fmt.Errorf("channel: MaxChannels %d must be from 1 to 32767", f.MaxChannels)
	}
	for i, t := range f.Types {
		if t.Static && int(t.Index) >= f.MaxChannels {
			return fmt.Errorf("channel: type %v has index %d, but MaxChannels is %d", t.Name, t.Index, f.MaxChannels)
		}
		for _, u := range f.Types[:i] {
			if u.Name == t.Name {
				return fmt.Errorf("channel: type %v is registered twice", t.Name)
			}
		}
	}
	return nil
}

// Counters is what happened to the bunches of a connection.
type Counters struct {
	Sent, SentReliable, Resent, Merged, Split     uint64 // bunches
	Received, ReceivedReliable                    uint64
	Duplicate                                     uint64 // reliable, had already
	Early                                         uint64 // reliable, kept for its turn
	UnknownChannel, UnknownType, MayNotOpen       uint64 // ignored
	Refused                                       uint64 // packet naked for its sake
	Ignored                                       uint64 // on a closing or refused channel
	Promoted                                      uint64 // large unreliable bunches made reliable
	ReliableFull, NotSent, QueuedControl, Backlog uint64
	ChannelsOpened, ChannelsClosed                uint64
	Filled                                        uint64 // empty bunches for what a closed channel left unacked
}

const pageSize = 32

type slot struct {
	ch                      *Channel
	inReliable, outReliable int64
	gap                     int64 // first sequence that a closed channel left unacked; 0 none
}

// Table is the channels of one connection. Not safe for concurrent use.
type Table struct {
	Counters Counters

	cfg     Config
	conn    Conn
	pages   [][]slot // slots by index, pageSize each; nil pages were never used
	initIn  int64
	initOut int64
	open    int
	free    uint32 // the search for a free index starts here
	last    lastBunch
	header  bunch.Header // of the bunch being sent
	early   bunch.In     // whose turn it is now; kept here, since what handlers get would otherwise be allocated
	waiting backlog
	calm    bool // a Tick has nothing to do but for what waits
	ended   bool
}

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

// NewTable returns the channels of a connection. initIn and initOut are the
// reliable sequences before the first, from the connection's initial packet sequences.
func NewTable(cfg Config, conn Conn, initIn, initOut int64) (*Table, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Table{cfg: cfg.filled(), conn: conn, initIn: initIn, initOut: initOut, free: 1}, nil
}

// slot is the place of an index, made when there is none yet.
func (t *Table) slot(index uint32) *slot {
	page := int(index / pageSize)
	for page >= len(t.pages) {
		t.pages = append(t.pages, nil)
	}
	if t.pages[page] == nil {
		t.pages[page] = make([]slot, pageSize)
		for i := range t.pages[page] {
			t.pages[page][i] = slot{inReliable: t.initIn, outReliable: t.initOut}
		}
	}
	return &t.pages[page][index%pageSize]
}

// Channel is the channel at index, or nil.
func (t *Table) Channel(index uint32) *Channel {
	page := int(index / pageSize)
	if page >= len(t.pages) || t.pages[page] == nil {
		return nil
	}
	return t.pages[page][index%pageSize].ch
}

// Len is the number of channels, closing ones included.
func (t *Table) Len() int { return t.open }

// All calls yield for each channel in order of index until it returns false.
func (t *Table) All(yield func(*Channel) bool) {
	for _, page := range t.pages {
		for i := range page {
			if ch := page[i].ch; ch != nil && !yield(ch) {
				return
			}
		}
	}
}

func (t *Table) typeOf(name bunch.Name) *Type {
	for i := range t.cfg.Types {
		if t.cfg.Types[i].Name == name {
			return &t.cfg.Types[i]
		}
	}
	return nil
}

// Open makes a channel of a type. The peer hears of it with the first bunch sent.
func (t *Table) Open(name bunch.Name, h Handler) (*Channel, error) {
	typ := t.typeOf(name)
	switch {
	case t.ended:
		return nil, ErrClosed
	case typ == nil:
		return nil, fmt.Errorf("%w: %v", ErrUnknownType, name)
	case !t.mayOpen(typ, t.conn.IsServer()):
		return nil, fmt.Errorf("%w: %v", ErrMayNotOpen, name)
	}
	index, err := t.freeIndex(typ)
	if err != nil {
		return nil, err
	}
	ch := t.add(index, typ)
	ch.openedLocally, ch.handler = true, h
	return ch, nil
}

func (t *Table) mayOpen(typ *Type, server bool) bool {
	if server {
		return typ.ServerOpen
	}
	return typ.ClientOpen
}

func (t *Table) freeIndex(typ *Type) (uint32, error) {
	if typ.Static {
		if t.Channel(typ.Index) != nil {
			return 0, ErrIndexInUse
		}
		return typ.Index, nil
	}
	step, first := uint32(2), uint32(1)
	if t.cfg.FirstFree {
		step = 1
	} else if t.conn.IsServer() {
		first = 2
	}
	i := max(first, t.free)
	if (i-first)%step != 0 {
		i++
	}
	for ; i < uint32(t.cfg.MaxChannels); i += step {
		if t.Channel(i) == nil && !t.isStatic(i) {
			t.free = i + step
			return i, nil
		}
	}
	return 0, ErrNoIndex
}

func (t *Table) isStatic(index uint32) bool {
	for i := range t.cfg.Types {
		if t.cfg.Types[i].Static && t.cfg.Types[i].Index == index {
			return true
		}
	}
	return false
}

func (t *Table) add(index uint32, typ *Type) *Channel {
	s := t.slot(index)
	ch := &Channel{table: t, typ: typ, index: index, lastNotified: bunch.NoPacket, openPacket: bunch.NoPacket}
	ch.out.first, ch.out.next = s.outReliable+1, s.outReliable+1
	s.ch = ch
	t.open++
	t.calm = false
	t.Counters.ChannelsOpened++
	return ch
}

// remove frees a channel's index and tells its handler.
func (t *Table) remove(ch *Channel, reason CloseReason) {
	if ch.closed {
		return
	}
	ch.closed = true
	s := t.slot(ch.index)
	s.ch = nil
	if t.cfg.RestartSequence {
		s.inReliable, s.outReliable = t.initIn, t.initOut
	} else {
		s.noteGap(ch)
	}
	if !t.cfg.NeverReuseIndex && ch.index > 0 {
		t.free = min(t.free, ch.index)
	}
	if t.last.ch == ch {
		t.last = lastBunch{}
	}
	t.open--
	t.Counters.ChannelsClosed++
	ch.release(&t.cfg)
	if ch.handler != nil {
		ch.handler.Closed(ch, reason)
	}
	if ch.index == 0 && !t.ended {
		t.conn.ControlClosed(reason)
	}
}

// End removes all channels, because the connection has ended.
func (t *Table) End() {
	if t.ended {
		return
	}
	t.ended = true
	for ch := range t.All {
		t.remove(ch, ch.closeReason)
	}
}

// Unacked is the number of reliable bunches on all channels that no packet is
// known to have delivered.
func (t *Table) Unacked() int {
	n := 0
	for ch := range t.All {
		n += ch.out.len() + len(ch.queue)
	}
	return n
}

func (t *Table) setLast(ch *Channel, h *bunch.Header, rec *OutRec, id int64) {
	t.Counters.Sent++
	t.last = lastBunch{ch: ch, packetID: id, seq: -1, bits: h.Bits,
		paused: h.ReplicationPaused, mapped: h.HasMustBeMappedGUIDs, noMerge: h.Partial || h.Close}
	if h.Partial {
		t.Counters.Split++
	}
	if rec != nil {
		t.Counters.SentReliable++
		t.last.seq = rec.Seq
	}
}

// merge appends out to the bunch before it, if that is of the same channel and
// reliability, still ends the SendBuffer and stays below what one bunch may hold.
func (t *Table) merge(ch *Channel, h *bunch.Header, out *bunch.Out) bool {
	l := &t.last
	if l.ch != ch || l.noMerge || out.NoMerge || h.HasPackageMapExports || (l.seq >= 0) != h.Reliable ||
		l.paused != h.ReplicationPaused || l.mapped || h.HasMustBeMappedGUIDs ||
		l.bits+h.Bits > t.cfg.Protocol.MaxSingleBits() {
		return false
	}
	var rec *OutRec
	if h.Reliable {
		if rec = ch.out.at(l.seq); rec == nil || rec.Sent != 1 {
			return false
		}
	}
	if !t.conn.ExtendBunch(out.Data, h.Bits) {
		return false
	}
	l.bits += h.Bits
	if rec != nil {
		t.extend(rec, out.Data, h.Bits)
	}
	t.Counters.Merged++
	return true
}

// extend appends bits to the payload kept for sending again.
func (t *Table) extend(rec *OutRec, data []byte, bits int) {
	old := rec.Header.Bits
	n := (old + bits + 7) / 8
	if n > cap(rec.Data) {
		grown := t.cfg.Pool.Get(n)
		copy(grown, rec.Data)
		t.cfg.Pool.Put(rec.Data)
		rec.Data = grown
	}
	rec.Data = rec.Data[:n]
	rec.Header.Bits += bits
	appendBits(rec.Data, old, data, bits)
}

// transmit puts a reliable bunch into the SendBuffer, or among those that wait
// for room in the packet window.
func (t *Table) transmit(ch *Channel, rec *OutRec) bool {
	id, ok := t.conn.WriteBunch(&rec.Header, rec.Data, ch, rec.Seq)
	if !ok {
		t.Counters.Backlog++
		t.waiting.push(ch, rec.Seq)
		return false
	}
	rec.Repeat(id)
	return true
}

// Acked tells that packet id, which carried the bunch seq of ch (-1 unreliable), arrived. After those of a packet
// comes Settled for each of its channels.
func (t *Table) Acked(ch *Channel, seq, id int64) {
	if ch.closed {
		return
	}
	if rec := ch.out.at(seq); seq >= 0 && rec != nil {
		rec.inFlight--
		rec.acked = true
		t.releaseFront(ch)
	}
}

// Settled tells the handler what became of a packet that carried bunches of ch, once all of its bunches are settled:
// an open among them counts then.
func (t *Table) Settled(ch *Channel, id int64, arrived bool) {
	if ch.closed {
		return
	}
	if ch.lastNotified != id && ch.handler != nil {
		ch.lastNotified = id
		if arrived {
			ch.handler.ReceivedAck(ch, id)
		} else {
			ch.handler.ReceivedNak(ch, id)
		}
	}
	t.endTemporary(ch, id)
}

// endTemporary removes a temporary channel when the fate of its only bunch is known.
func (t *Table) endTemporary(ch *Channel, id int64) {
	if ch.temporary && id == ch.openPacket {
		t.remove(ch, bunch.Destroyed)
	}
}

// Naked tells that packet id, which carried the bunch seq of ch (-1 unreliable), is lost.
func (t *Table) Naked(ch *Channel, seq, id int64) {
	if ch.closed {
		return
	}
	if rec := ch.out.at(seq); seq >= 0 && rec != nil {
		rec.inFlight--
		if !rec.acked && rec.inFlight == 0 {
			t.Counters.Resent++
			rec.Sent = 0
			t.transmit(ch, rec)
			t.last = lastBunch{} // a bunch sent again is never merged into
		}
	}
}

// releaseFront frees acked bunches in order and acts on the open and the close among them.
func (t *Table) releaseFront(ch *Channel) {
	for ch.out.first < ch.out.next {
		rec := ch.out.at(ch.out.first)
		if !rec.acked {
			return
		}
		closing := rec.Header.Close
		t.cfg.Pool.Put(rec.Data)
		*rec = OutRec{}
		ch.out.first++
		if ch.openSent && ch.openSeq < ch.out.first {
			ch.openAcked = true
		}
		if ch.pausedUntil > 0 && ch.pausedUntil <= ch.out.first {
			ch.pausedUntil = 0
		}
		if closing {
			t.remove(ch, ch.closeReason)
			return
		}
	}
}

// NeedsCopy reports whether the reliable bunch seq of ch isn't acked, and how often it was sent.
func (ch *Channel) NeedsCopy(seq int64) (rec *OutRec, ok bool) {
	rec = ch.out.at(seq)
	return rec, !ch.closed && rec != nil && !rec.acked
}

// Tick sends what waited for room, drains the control queue and repeats the
// unacked bunches of a control channel whose open isn't acked, once a second.
func (t *Table) Tick(now time.Duration) {
	t.Pump()
	if t.calm {
		return // most of the time, with thousands of connections whose channels aren't in any cache
	}
	if ch := t.Channel(0); ch != nil {
		ch.tickControl(now)
		t.calm = len(ch.queue) == 0 && (ch.openAcked || !ch.openedLocally)
	}
}

// Fetch reads a little of what the next bunch will need, on the first channels; see netconn.Conn's.
func (t *Table) Fetch() int64 {
	x := int64(t.Counters.Received) + int64(t.Counters.Merged) + int64(t.open) + t.last.seq + int64(t.header.Bits) + int64(t.waiting.head)
	if len(t.pages) == 0 {
		return x
	}
	for i := range min(fetchChannels, len(t.pages[0])) {
		if ch := t.pages[0][i].ch; ch != nil {
			x += ch.openSeq + ch.out.first + ch.lastNotified + int64(ch.queueBytes) + int64(ch.in.n)
		}
	}
	return x
}

// fetchChannels is the control channel and the game's first.
const fetchChannels = 2

// Pump sends reliable bunches that waited for the packet window.
func (t *Table) Pump() {
	for n := t.waiting.len(); n > 0; n-- {
		ch, seq := t.waiting.pop()
		rec, ok := ch.NeedsCopy(seq)
		if !ok || rec.inFlight > 0 {
			continue
		}
		if !t.transmit(ch, rec) {
			return
		}
		t.last = lastBunch{}
	}
}

// SingleBits is the largest payload that goes in one bunch.
func (t *Table) SingleBits() int { return t.cfg.Protocol.PartBytes() * 8 }

// Waiting is the number of reliable bunches that wait for the packet window.
func (t *Table) Waiting() int { return t.waiting.len() }

// backlog is a queue of reliable bunches to transmit. At most every OutRec of every
// channel is in it, each once.
type backlog struct {
	items []waitingBunch
	head  int
}

type waitingBunch struct {
	ch  *Channel
	seq int64
}

func (b *backlog) len() int { return len(b.items) - b.head }

func (b *backlog) push(ch *Channel, seq int64) {
	if b.head > 0 && len(b.items) == cap(b.items) {
		n := copy(b.items, b.items[b.head:])
		clear(b.items[n:])
		b.items, b.head = b.items[:n], 0
	}
	b.items = append(b.items, waitingBunch{ch, seq})
}

func (b *backlog) pop() (*Channel, int64) {
	it := b.items[b.head]
	b.items[b.head] = waitingBunch{}
	if b.head++; b.head == len(b.items) {
		b.items, b.head = b.items[:0], 0
	}
	return it.ch, it.seq
}

func wireSeq(seq int64) uint16 { return seqnum.Channel.Truncate(seq) }

// appendBits copies bits of data behind the first n bits of dst.
func appendBits(dst []byte, n int, data []byte, bits int) {
	var w bitio.Writer
	w.Reset(dst[n>>3:])
	if s := n & 7; s != 0 {
		w.WriteBits(uint64(dst[n>>3]), s)
	}
	w.WriteBitsFrom(data, 0, bits)
	w.Bytes() // pads the last byte
}
