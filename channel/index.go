package channel

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
)

// Table is the channels of one connection. Not safe for concurrent use.
type Table struct {
	// Fields that every tick reads come first.
	calm     bool          // Tick only needs to pump the backlog
	later    bool          // strange.later has functions
	laterRan bool          // some ran since the last Tick
	beside   int           // bytes sent of what the game leaves, since the last Tick
	filled   int           // sequences of gaps filled lately, see mayFill
	unfilled time.Duration // until when unfill has looked
	poolTick time.Duration // when the pool is to be looked at again
	unacked  int           // unacked reliable bunches of all channels, and queued control bunches
	queued   int           // bytes of reliable bunches that had to wait when they were sent, all in all
	first    backlog       // the control channel's bunches: a game's early bunches don't delay the login
	due      backlog       // reliable bunches to send again, oldest first
	refused  turns         // channels that the peer may be refusing, with their waiting bunches
	fresh    turns         // reliable bunches never sent

	Counters Counters

	cfg       Config
	conn      Conn
	outlet    Outlet
	single    int // the largest payload in bits that goes in one bunch
	maxOut    int // reliable bunches that a channel may have in flight besides its close; see Config.maxOut
	packet    int // room in bits for bunches of a packet, where that is more than one largest bunch; 0 otherwise
	pages     []*page
	inUse     []uint64 // a bit for each index that has a channel
	initIn    int64
	initOut   int64
	open      int
	opened    int        // by this end
	early     int        // part of held: for early bunches
	joining   int        // part of held: for parts of unfinished payloads
	served    *Channel   // its payload is joined first when memory is short
	held      int        // bytes of the peer's data that count against MaxMemory
	heldOut   int        // bytes of unacked data that count against it
	look      int        // how many blocked channels to look at for one that has no holes any more
	ahead     int        // of all channels with holes; see rare.ahead
	reserved  int        // part of that, reserved by the connection
	ownPages  int        // pages made for channels that this end opens, which aren't in held
	strange   *strange   // nil until it is needed
	finishing *finishing // nil when no handler had anything left at Shut
	last      lastBunch
	header    bunch.Header // of the bunch being sent
	blocked   turns        // those of channels whose next bunch waits until the peer has room for it behind a lost one
	line      turns        // those of channels whose next payload is split and waits for acks of others
	refusing  int          // channels that count as refused
	vain      int          // their turns in vain, less those that weren't
	short     bool         // the peer is short of memory: manyVain turns were in vain, and some still are
	wasShort  bool         // it was before
	nextTurn  time.Duration
	begun     int    // unacked bytes of split payloads that have begun
	begunRoom int    // how much above one payload of the largest size they may have
	stale     int    // outdated entries of these queues
	freshTurn int    // bits of fresh to send before refused has its turn; below 0 it has
	busy      uint64 // reliable bunches, sent and received, at the last Shrink
	removed   removed
	left      int64  // the newest packet heard when a channel that this end closed was removed
	control   int32  // reliable bunches that channel 0 had unacked when it closed, and those that were acked and ignored
	free      uint32 // the search for a free index starts here
	closing   bool   // nothing more may be sent
	// onlyControl says that reliable bunches of other channels wait.
	onlyControl bool
	refuses     bool // the handler of the bunch being delivered has called Refuse
	ended       bool
	ownPool     bool // cfg.Pool isn't shared
	// controlGone says that channel 0 was closed; it can't be opened again.
	controlGone bool
	peerClosed  bool // the peer closed it
}

// page is pageSize slots of every second index, because each end opens channels of its own parity, and most are the
// server's.
type page [pageSize]slot

const pageSize = 8

// placeOf is the page and the slot of an index.
func placeOf(index uint32) (page int, slot uint32) {
	return int(index/(2*pageSize)*2 + index&1), index / 2 % pageSize
}

type slot struct {
	ch                      *Channel
	inReliable, outReliable int64
	gap                     int64 // first sequence that a closed channel left unacked; 0 none
}

// slot is the slot of an index. It makes the page if necessary.
func (t *Table) slot(index uint32) *slot {
	n, i := placeOf(index)
	for n >= len(t.pages) {
		t.pages = append(t.pages, nil)
	}
	if t.pages[n] == nil {
		t.pages[n] = new(page)
		t.held += pageCost // at most 1 MiB in all: sequences stay when channels are removed
		for i := range t.pages[n] {
			t.pages[n][i] = slot{inReliable: t.initIn, outReliable: t.initOut}
		}
	}
	return &t.pages[n][i]
}

// slotAt is the slot of an index, or nil when its page was never used.
func (t *Table) slotAt(index uint32) *slot {
	n, i := placeOf(index)
	if n >= len(t.pages) || t.pages[n] == nil {
		return nil
	}
	return &t.pages[n][i]
}

// strange is state that few connections need.
type strange struct {
	ahead      []ahead             // indices with bunches taken before their packets' turn
	ignored    map[uint32]struct{} // indices of the peer's channels that this end refused, until they are closed: at most maxIgnored
	unfinished []*Channel          // channels that had a part of an unreliable bunch in this packet or the one before it, each once
	later      []later             // for the next Tick
	running    []later             // those that RunLater runs, and ran of them have been
	ran        int
	least      int64 // what the last one that sent something had sent before: those that had sent less have nothing to send
	others     int64 // what those given by no other have sent together, and at least least
}

// maxIgnored bounds Table.ignored. Unreliable bunches on further such channels are refused.
const maxIgnored = 256

// ignored reports whether this end refused the peer's channel at index.
func (t *Table) ignored(index uint32) bool {
	if t.strange == nil {
		return false
	}
	_, is := t.strange.ignored[index]
	return is
}

func (t *Table) setIgnored(index uint32, is bool) {
	switch {
	case !is && t.strange != nil:
		delete(t.strange.ignored, index)
	case is:
		if t.strange == nil {
			t.strange = new(strange)
		}
		if t.strange.ignored == nil {
			t.strange.ignored = map[uint32]struct{}{}
		}
		if len(t.strange.ignored) < maxIgnored {
			t.strange.ignored[index] = struct{}{}
		}
	}
}

// Channel is the channel at index, or nil.
func (t *Table) Channel(index uint32) *Channel {
	if s := t.slotAt(index); s != nil {
		return s.ch
	}
	return nil
}

// Len is the number of channels, closing ones included.
func (t *Table) Len() int { return t.open }

// All calls yield for each channel, in the order of their indices, until it returns false.
func (t *Table) All(yield func(*Channel) bool) {
	for n := 0; n < len(t.pages); n += 2 {
		if t.pages[n] == nil && t.pages[n+1] == nil { // there is one: the last page is never nil
			continue
		}
		for i := range uint32(2 * pageSize) {
			if ch := t.Channel(uint32(n)*pageSize + i); ch != nil && !yield(ch) {
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

// Open makes a channel of a type. The first bunch sent on it opens it at the peer, and must be reliable. h may be nil
// when only this end sends: what arrives is then ignored. The errors are ErrClosed, ErrUnknownType, ErrMayNotOpen,
// ErrNoIndex, for a Static type ErrIndexInUse, and those of an Opener.
func (t *Table) Open(name bunch.Name, h Handler) (*Channel, error) {
	typ := t.typeOf(name)
	switch {
	case t.closing:
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
	if t.slotAt(index) == nil { // our doing, not the peer's
		t.slot(index)
		t.held -= pageCost
		t.ownPages++
	}
	ch := t.add(index, typ)
	ch.opensHere()
	ch.handler = h
	if err := ch.tellHandler(); err != nil {
		_ = ch.Close(bunch.Destroyed)
		return nil, err
	}
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
	for {
		if i = t.unusedIndex(i, step); i >= uint32(t.cfg.MaxChannels) {
			return 0, ErrNoIndex
		}
		if !t.isStatic(i) {
			t.free = i + step
			return i, nil
		}
		i += step
	}
}

// unusedIndex is the first index of i, i+step and so on that has no channel. step is 1 or 2.
func (t *Table) unusedIndex(i, step uint32) uint32 {
	every := ^uint64(0) / (1<<step - 1) // a bit in step
	for int(i/64) < len(t.inUse) {
		if m := ^t.inUse[i/64] >> (i % 64) & every; m != 0 {
			return i + uint32(bits.TrailingZeros64(m))
		}
		i += 64 - i%64/step*step
	}
	return i
}

// setInUse notes whether an index has a channel.
func (t *Table) setInUse(index uint32, has bool) {
	for int(index/64) >= len(t.inUse) {
		t.inUse = append(t.inUse, 0)
	}
	if bit := uint64(1) << (index % 64); has {
		t.inUse[index/64] |= bit
	} else {
		t.inUse[index/64] &^= bit
	}
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
	ch := &Channel{table: t, typ: typ, index: index, lastNotified: bunch.NoPacket, openAt: bunch.NoPacket}
	ch.out.first, ch.out.next = s.outReliable+1, s.outReliable+1
	s.ch = ch
	t.setInUse(index, true)
	t.setIgnored(index, false)
	t.open++
	t.calm = false
	t.Counters.ChannelsOpened++
	return ch
}

// opensHere says that this end opens the channel.
func (ch *Channel) opensHere() {
	ch.openedLocally = true
	ch.table.opened++
}

// tellHandler gives an Opener its channel.
func (ch *Channel) tellHandler() error {
	if o, ok := ch.handler.(Opener); ok {
		return o.Opened(ch)
	}
	return nil
}

// removed is a channel whose handler is being told that it is closed, and how many reliable bunches it had unacked.
type removed struct {
	ch   *Channel
	left int
}

// remove frees a channel's index and tells its handler.
func (t *Table) remove(ch *Channel, reason CloseReason) {
	if ch.closed {
		return
	}
	ch.closed = true
	s := t.slotAt(ch.index)
	s.ch, s.outReliable = nil, ch.out.next-1
	t.setInUse(ch.index, false)
	if ch.closing {
		t.left = t.outlet.Heard()
	}
	if t.cfg.RestartSequence {
		s.inReliable, s.outReliable = t.initIn, t.initOut
		if a := t.aheadOf(ch.index); a != nil {
			a.seq = t.initIn
		}
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
	if ch.openedLocally {
		t.opened--
	}
	t.Counters.ChannelsClosed++
	left := ch.undelivered()
	if ch.index == 0 {
		t.control += int32(left + b2i(ch.hasLeft()))
	}
	ch.release()
	t.dropStale()
	if ch.handler != nil {
		t.tellClosed(ch, reason, left)
		ch.handler = Nop{} // packets in flight may keep the channel for long, and nothing counts what its handler keeps
	}
	if ch.index == 0 && !t.ended {
		t.controlGone = true
		t.outlet.ControlClosed(reason)
	}
}

// tellClosed tells a handler that its channel is closed.
func (t *Table) tellClosed(ch *Channel, reason CloseReason, left int) {
	defer func(outer removed) { t.removed = outer }(t.removed) // of a channel whose handler had this one closed, and handlers may panic
	t.removed = removed{ch, left}
	ch.handler.Closed(ch, reason)
}

// Ended reports whether the connection has ended. It is true already while handlers are told so.
func (t *Table) Ended() bool { return t.ended }

// Unacked is the number of reliable bunches of all channels that aren't acked, those queued on the control channel
// included.
func (t *Table) Unacked() int { return t.unacked }

// Queued is the bytes of all reliable bunches so far that had to wait when they were sent.
func (m *Machine) Queued() int { return m.queued }

// Waiting is the number of reliable bunches that wait for the packet window or the rate controller. Those of split
// payloads that wait for acks of others don't count, nor those that wait until the peer has room for what follows a lost one, nor those that wait for the next turn of channels that the peer may be refusing.
func (t *Table) Waiting() int {
	n := t.first.len() + t.due.len() - t.stale + t.fresh.waiting
	if t.mayUnblock() {
		n += t.blocked.waiting
	}
	if t.mayTurn() {
		n += t.refused.waiting
	}
	return n
}

// SingleBits is the largest payload of one bunch, in bits.
func (t *Table) SingleBits() int { return t.single }
