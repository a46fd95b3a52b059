package channel

import (
	"fmt"

	"github.com/bunchnet/bunchnet/bunch"
)

// Table is the channels of one connection. Not safe for concurrent use.
type Table struct {
	Counters Counters

	cfg       Config
	conn      Conn
	outlet    Outlet
	single    int // the largest payload in bits that goes in one bunch
	pages     []*page
	initIn    int64
	initOut   int64
	open      int
	unacked   int      // reliable bunches on all channels that aren't acked, queued control bunches among them
	joining   int      // of held, for the parts of unfinished payloads
	served    *Channel // whose payload is joined first when memory is short
	held      int      // bytes of the peer's that count against MaxMemory
	heldOut   int      // bytes for the peer that do
	reserved  int      // bytes that the connection needs of those
	strange   *strange // nil until it is needed
	last      lastBunch
	header    bunch.Header // of the bunch being sent
	first     backlog      // the control channel's: the login doesn't wait for a game that is early
	due       backlog      // reliable bunches to send again, oldest first
	refused   turns        // channels that the peer may be refusing, and what waits of them
	fresh     turns        // reliable bunches that were never sent
	line      turns        // those of channels whose next payload is split and waits until others are acked
	begun     int          // bytes of split payloads that have begun and aren't acked
	begunRoom int          // what more than firstBegun of them may begin
	stale     int          // entries of these that wait no more
	freshTurn int          // bits that may be sent of fresh before refused has its turn; below 0 it has
	filled    int          // sequences of gaps that were filled since the last tick
	busy      uint64       // reliable bunches, sent and received, at the last Shrink
	control   int32        // reliable bunches that channel 0 had unacked at its end
	free      uint32       // the search for a free index starts here
	calm      bool         // Tick only needs to pump the backlog
	closing   bool         // nothing more may be sent
	ended     bool
	ownPool   bool // nobody else uses cfg.Pool
	// controlGone says that channel 0 has been closed: it can't be opened again.
	controlGone bool
}

// page is pageSize slots of every second index: each end opens channels of its own parity, most of them the server.
type page [pageSize]slot

const pageSize = 8

// placeOf is the page of an index, and its slot there.
func placeOf(index uint32) (page int, slot uint32) {
	return int(index/(2*pageSize)*2 + index&1), index / 2 % pageSize
}

type slot struct {
	ch                      *Channel
	inReliable, outReliable int64
	gap                     int64 // first sequence that a closed channel left unacked; 0 none
}

// slot is the place of an index, made when there is none yet.
func (t *Table) slot(index uint32) *slot {
	n, i := placeOf(index)
	for n >= len(t.pages) {
		t.pages = append(t.pages, nil)
	}
	if t.pages[n] == nil {
		t.pages[n] = new(page)
		t.held += pageCost // at most 1 MiB in all: sequences stay when channels go
		for i := range t.pages[n] {
			t.pages[n][i] = slot{inReliable: t.initIn, outReliable: t.initOut}
		}
	}
	return &t.pages[n][i]
}

// slotAt is the place of an index, or nil when its page was never used.
func (t *Table) slotAt(index uint32) *slot {
	n, i := placeOf(index)
	if n >= len(t.pages) || t.pages[n] == nil {
		return nil
	}
	return &t.pages[n][i]
}

// strange is what few connections need.
type strange struct {
	ahead      []ahead             // indices of which bunches were taken before their packets' turn
	ignored    map[uint32]struct{} // indices whose channel of the peer's this end doesn't take, until it is closed: maxIgnored at most
	unfinished []*Channel          // those with a part of an unreliable bunch; some more than once, some that have it no more
}

// maxIgnored bounds what is remembered of them. Unreliable bunches on others are refused.
const maxIgnored = 256

// ignored reports whether the peer has a channel at index that this end doesn't take.
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

// All calls yield for each channel in order of index until it returns false.
func (t *Table) All(yield func(*Channel) bool) {
	for n := 0; n < len(t.pages); n += 2 {
		if t.pages[n] == nil && (n+1 == len(t.pages) || t.pages[n+1] == nil) {
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

// Open makes a channel of a type. The peer hears of it with the first bunch sent, which must be reliable. h may be nil for a channel on
// which only this end talks: what comes is ignored. The errors are ErrClosed, ErrUnknownType, ErrMayNotOpen, ErrNoIndex and, of a
// Static type, ErrIndexInUse.
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
	ch := &Channel{table: t, typ: typ, index: index, lastNotified: bunch.NoPacket, openAt: bunch.NoPacket}
	ch.out.first, ch.out.next = s.outReliable+1, s.outReliable+1
	s.ch = ch
	t.setIgnored(index, false)
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
	t.Counters.ChannelsClosed++
	if ch.index == 0 {
		t.control = int32(ch.undelivered())
	}
	ch.release()
	t.dropStale()
	if ch.handler != nil {
		ch.handler.Closed(ch, reason)
	}
	if ch.index == 0 && !t.ended {
		t.controlGone = true
		t.outlet.ControlClosed(reason)
	}
}

// Ended reports whether the connection has ended, also while handlers hear of it one by one.
func (t *Table) Ended() bool { return t.ended }

// Unacked is the number of reliable bunches on all channels that no packet is
// known to have delivered, what is queued on the control channel included.
func (t *Table) Unacked() int { return t.unacked }

// Waiting is the number of reliable bunches that wait for the packet window or the controller. Those of split payloads that wait until others
// are acked aren't among them.
func (t *Table) Waiting() int {
	return t.first.len() + t.due.len() - t.stale + t.refused.waiting + t.fresh.waiting
}

// SingleBits is the largest payload in bits that goes in one bunch.
func (t *Table) SingleBits() int { return t.single }
