package channel

import "github.com/bunchnet/bunchnet/bunch"

// How much is sent behind a reliable bunch that was lost. The peer keeps the bunches behind it until it arrives, and refuses what exceeds its MaxMemory. A packet that
// is refused costs its bandwidth in vain, and looks lost to the rate controller, so that the whole connection slows down.
//
// So a channel has holes: bunches that were lost and aren't known to have arrived. While it has any, all that it has sent from the oldest unacked bunch on may be in the
// peer's memory. Table.ahead is the sum of that over the channels with holes, as the peer counts it. When it reaches what the peer has room for (Config.PeerMemory), a channel with holes
// waits in Table.blocked with what it never sent. Each channel with holes has a bunch in flight or due, whose ack goes on from there. A channel without holes
// isn't blocked: the peer keeps nothing of it.

// peerRoom is what the peer has for early bunches of all channels, when its handlers hold nothing: its half for what it receives, without the share for parts and the channels that
// this end opened, less a quarter.
func (t *Table) peerRoom() int {
	half := t.cfg.PeerMemory / 2
	room := half - max(half/largeShare, bufferSize(bunch.MaxPayload)) - t.opened*openCost
	return max(room-room/handlersShare, leastRoom)
}

const (
	openCost  = channelCost + pageCost/pageSize
	leastRoom = 4 << 10 // where channels take all
)

// peerCost is what the peer counts at most for a bunch that waits for others.
func peerCost(rec *outRec) int {
	return earlyBytes(rec.header.Partial, bufferSize((rec.header.Bits+7)/8))
}

// isBlocked reports whether the channel's bunches that were never sent wait for room at the peer.
func (ch *Channel) isBlocked() bool { return ch.rare != nil && ch.rare.blocked }

// holes is how many bunches of the channel were lost and haven't arrived.
func (ch *Channel) holes() int {
	if ch.rare == nil {
		return 0
	}
	return int(ch.rare.holes)
}

// countAhead counts n bytes of what the channel sent, if it has holes.
func (t *Table) countAhead(ch *Channel, n int) {
	if ch.holes() > 0 {
		ch.rare.ahead += int32(n)
		t.ahead += n
	}
}

// lostAhead notes that a bunch was lost. With the first one, all that the channel has sent counts.
func (t *Table) lostAhead(ch *Channel, rec *outRec) {
	if rec.hole || ch.index == 0 {
		return
	}
	rec.hole = true
	r := ch.needRare()
	if r.holes++; r.holes == 1 {
		for seq := ch.out.first; seq < ch.firstFresh(); seq++ {
			if rec := ch.out.at(seq); !rec.refused {
				t.countAhead(ch, peerCost(rec))
			}
		}
	}
}

// notAhead says that the peer has released a bunch that was sent, or that it doesn't keep it.
func (t *Table) notAhead(ch *Channel, rec *outRec) {
	if !rec.refused {
		t.countAhead(ch, -peerCost(rec))
	}
	if !rec.hole {
		return
	}
	rec.hole = false
	r := ch.rare
	if r.holes == 1 {
		t.noneAhead(ch)
		if r.blocked {
			t.look = t.blocked.len() // until it is found there
		}
		return
	}
	r.holes--
}

// OnlyControl has reliable bunches of all channels but the control channel wait until it is called with false: the peer refuses their opens, as the login isn't done. Call it
// before anything is sent on these: a close meanwhile doesn't wait for them.
func (m *Machine) OnlyControl(only bool) {
	t := m.table()
	t.onlyControl = only
	t.unblock(t.blocked.len())
}

// mayFollow reports whether a bunch that was never sent may be: the peer opens channels, and has room for what it may have to keep.
func (t *Table) mayFollow(ch *Channel, rec *outRec) bool {
	if t.onlyControl {
		return ch.index == 0
	}
	return ch.holes() == 0 || t.ahead+peerCost(rec) <= t.peerRoom()
}

// noneAhead says that the peer keeps nothing more of the channel.
func (t *Table) noneAhead(ch *Channel) {
	if ch.holes() > 0 {
		t.ahead -= int(ch.rare.ahead)
		ch.rare.ahead, ch.rare.holes = 0, 0
	}
}

// mayUnblock reports whether a blocked channel may be one that may send again: the first one may, or others have no holes any more.
func (t *Table) mayUnblock() bool {
	if t.look > 0 {
		return true
	}
	ch, rec := t.blocked.first()
	return ch != nil && t.mayFollow(ch, rec)
}

// unblock looks at n blocked channels at most. Those that may send again take turns with the others, and those that mayn't go to the end. It reports whether there was one that may.
func (t *Table) unblock(n int) (some bool) {
	n = min(n, t.blocked.len())
	t.look = max(t.look-n, 0)
	for ; n > 0; n-- {
		ch, rec := t.blocked.first()
		switch {
		case ch == nil:
			return some
		case t.mayFollow(ch, rec):
			t.blocked.moveTo(&t.fresh)
			ch.rare.blocked, some = false, true
		case t.onlyControl:
			return false // none may
		default:
			t.blocked.drop()
			t.blocked.add(ch)
		}
	}
	return some
}

// PeerFull reports whether channels wait until the peer has room for them.
func (m *Machine) PeerFull() bool { return m.blocked.waiting > 0 && !m.onlyControl }
