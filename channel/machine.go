package channel

import (
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
)

// Machine is the connection's side of a Table: it gets the received bunches and the fate of each packet. Packages netconn and
// netconn/driver use it; a game needs only the Table. Machine and Outlet are exported because these two packages share no folder, but for the module's root, that could
// have a package internal to both.
type Machine Table

// NewMachine returns the channels of a connection. initIn and initOut are the reliable sequences before the first; the
// connection derives them from its initial packet sequences.
func NewMachine(cfg Config, conn Conn, outlet Outlet, initIn, initOut int64) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	own := cfg.Pool == nil
	cfg = cfg.filled()
	t := &Table{cfg: cfg, ownPool: own, conn: conn, outlet: outlet, single: cfg.singleBits(), maxOut: cfg.maxOut(), initIn: initIn, initOut: initOut, left: bunch.NoPacket, free: 1}
	return (*Machine)(t), nil
}

// Table is the game's view of the same channels.
func (m *Machine) Table() *Table { return (*Table)(m) }

func (m *Machine) table() *Table { return (*Table)(m) }

// Tick sends what waits, and the control channel's queue. Once a second it repeats the unacked bunches of a control
// channel whose open isn't acked.
func (m *Machine) Tick(now time.Duration) {
	t := m.table()
	t.unfill(now)
	t.laterRan = false
	m.Pump()
	if now >= t.poolTick {
		t.poolTick = t.cfg.Pool.tick(now)
	}
	if t.calm {
		return // the usual case with thousands of connections, whose channels aren't in the cache
	}
	if ch := t.Channel(0); ch != nil {
		ch.tickControl(now)
		t.calm = len(ch.queued()) == 0 && (ch.openAcked || !ch.openedLocally)
	}
}

// PacketEnded says that the current packet left: nothing is merged with its last bunch any more.
func (m *Machine) PacketEnded() { m.last.ch = nil }

// Undelivered lists what the peer may not have received, for each channel, in the order of their indices. The
// connection's own close doesn't count.
func (m *Machine) Undelivered() (list []Undelivered) {
	t := m.table()
	if t.control > 0 {
		list = append(list, Undelivered{Name: bunch.Control, Bunches: int(t.control)})
	}
	if t.unacked == 0 && t.finishing == nil {
		return list
	}
	left := map[*Channel]int{} // to look in finishing.left for each channel would take long
	if t.hasLeft() {
		for _, ch := range t.finishing.left {
			left[ch] = 1
		}
	}
	for ch := range t.All {
		if n := ch.undelivered() + left[ch]; n > 0 {
			list = append(list, Undelivered{Index: ch.index, Name: ch.typ.Name, Bunches: n})
		}
	}
	return list
}

// undelivered is the number of unacked reliable bunches, without the connection's close.
func (ch *Channel) undelivered() int {
	n := ch.unacked() - int(max(0, ch.gapEnd()-ch.out.first)) // those that fill a gap don't count
	if ch.index == 0 && ch.closing && n > 0 {
		n-- // the close is the last to be acked
	}
	return n
}

// Undelivered says how many reliable bunches of a channel aren't acked: the peer may or may not have received them. The rest of a
// Finisher's data counts as one.
type Undelivered struct {
	Index   uint32
	Name    bunch.Name
	Bunches int
}

// End removes all channels because the connection has ended.
func (m *Machine) End() {
	t := m.table()
	if t.ended {
		return
	}
	t.ended, t.closing = true, true // set before handlers are told
	t.removeAll()
	t.first, t.due, t.refused, t.fresh, t.blocked, t.line, t.stale = backlog{}, backlog{}, turns{}, turns{}, turns{}, turns{}, 0
}

// removeAll removes all channels, those behind one whose handler panics as well.
func (t *Table) removeAll() {
	all := false
	defer func() {
		if !all {
			t.removeAll()
		}
	}()
	for ch := range t.All {
		t.remove(ch, ch.closeReason)
	}
	all = true
}

// controlType is used for a control channel when the game's Config has none: it only carries the end of the connection.
var controlType = Type{Name: bunch.Control, Static: true, ClientOpen: true, ServerOpen: true}

// SetPacketBits sets the room in bits that a packet has for bunches and their headers. In a packet with room for more than one bunch of the
// largest size, payloads are split so that several parts fill it. Each part still fits a packet of Protocol.MaxPacket. Default: the room of
// such a packet.
func (m *Machine) SetPacketBits(bits int) {
	t := m.table()
	t.packet = 0
	if bits > t.single+partHeader {
		t.packet = bits
	}
}

// CloseControl ends the connection in order: it closes channel 0, opening it first if there is none.
func (m *Machine) CloseControl() error {
	t := m.table()
	ch := t.Channel(0)
	if ch == nil {
		ch = t.add(0, &controlType)
		ch.opensHere()
	}
	if ch.Closing() {
		return nil
	}
	return ch.end(bunch.Destroyed)
}

// PeerClosed reports whether the peer's close of channel 0 has come: the peer waits for its ack.
func (m *Machine) PeerClosed() bool { return m.peerClosed }

// HurryControl puts the unacked bunches of the control channel into the SendBuffer, even if they wait or are in flight:
// they are a connection's last packets.
func (m *Machine) HurryControl() {
	t := m.table()
	ch := t.Channel(0)
	if ch == nil {
		return
	}
	left := max(maxHurried*t.single, 8*controlReserve)
	for seq := ch.out.first; seq < ch.out.next && left > 0; seq++ {
		if rec := ch.out.at(seq); !rec.acked && t.outlet.HasRoom(rec.header.Bits) {
			left -= bunch.MaxHeaderBits + rec.header.Bits
			t.notWaiting(ch, rec)
			t.transmit(ch, rec)
		}
	}
}

// maxHurried bounds what the end of a connection sends at once: as much as so many bunches of the largest size, or as controlReserve where these are small. The close is the last of
// what isn't acked, and the peer hears of it once it has all of that.
const maxHurried = 16

// Shrink gives back unused memory of queues, and of the table's own Pool, when nothing reliable was sent or received
// since the last call. The connection calls it every few seconds.
func (m *Machine) Shrink() {
	t := m.table()
	busy := t.Counters.SentReliable + t.Counters.ReceivedReliable
	if busy != t.busy {
		t.busy = busy
		return
	}
	for _, q := range []*backlog{&t.first, &t.due} {
		if q.len() == 0 {
			*q = backlog{}
		}
	}
	for _, q := range []*turns{&t.fresh, &t.blocked, &t.line, &t.refused} {
		if q.len() == 0 {
			q.list = nil
		}
	}
	if s := t.strange; s != nil && s.ran == len(s.running) && cap(s.running)+cap(s.later) > maxIdleBacklog {
		s.running, s.ran, s.later = nil, 0, slices.Clone(s.later)
	}
	if t.ownPool {
		t.cfg.Pool.forget()
	}
}

// Prefetch reads what the next bunch on the first channels will need, to have it in the cache. The result is
// meaningless.
func (m *Machine) Prefetch() int64 {
	t := m.table()
	x := int64(t.Counters.Received) + int64(t.Counters.Merged) + int64(t.open) + t.last.seq + int64(t.header.Bits) + int64(t.due.head) + int64(t.fresh.waiting)
	for i := range prefetchChannels {
		if ch := t.Channel(uint32(i)); ch != nil {
			x += int64(ch.due) + ch.lastNotified
		}
	}
	return x
}

// prefetchChannels: the control channel and the game's first.
const prefetchChannels = 2
