package lockstep

import (
	"slices"
	"time"
)

// snapshot is a game's state before a turn.
type snapshot struct {
	turn int64
	data []byte
	turnStart
}

// snapshots is the newest, and with a SpectatorDelay older ones, so that there always is one that spectators may see. Oldest first.
//
// Invariant: at most one is older than the delay; of the others all but the newest are half a delay apart, or more.
type snapshots struct{ list []snapshot }

// add keeps s, when next turns are complete. Those of s's turn and later ones are forgotten.
func (l *snapshots) add(s snapshot, next, delay int64) {
	for n := len(l.list); n > 0 && l.list[n-1].turn >= s.turn; n-- {
		l.cut(n - 1)
	}
	if n := len(l.list); n > 1 && l.list[n-1].turn-l.list[n-2].turn < delay/2 {
		l.cut(n - 1)
	}
	l.list = append(l.list, s)
	for len(l.list) > 1 && l.list[1].turn <= next-delay {
		n := copy(l.list, l.list[1:])
		l.cut(n)
	}
}

// cut forgets all from the i-th on.
func (l *snapshots) cut(i int) {
	clear(l.list[i:])
	l.list = l.list[:i]
}

// newest is the newest one of at most so many turns, or nil.
func (l *snapshots) newest(turns int64) *snapshot {
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.list[i].turn <= turns {
			return &l.list[i]
		}
	}
	return nil
}

// maxOld is how many snapshots that aren't in the list any more are kept for peers that are still being sent them.
const maxOld = 4

// letGo has peers that load the oldest snapshots begin with the newest, when there are too many old ones: who loads slowly, or acks nothing, would have
// us keep every one that there was.
func (h *Host) letGo(now time.Duration) {
	if !h.started {
		return
	}
	var old []int64
	for p := range h.clients {
		if turn, ok := h.loadsOld(p); ok {
			old = append(old, turn)
		}
	}
	slices.Sort(old)
	if old = slices.Compact(old); len(old) <= maxOld {
		return
	}
	kept := old[len(old)-maxOld]
	for p := range h.clients {
		if turn, ok := h.loadsOld(p); ok && turn < kept {
			h.beginAnew(now, p)
		}
	}
}

// loadsOld is the turn of the snapshot that a peer is being sent, and whether that isn't in the list any more.
func (h *Host) loadsOld(player int) (turn int64, ok bool) {
	c := &h.clients[player]
	turn = c.welcome.start
	return turn, c.snap != nil && !slices.ContainsFunc(h.snapshots.list, func(s snapshot) bool { return s.turn == turn && &s.data[0] == &c.snap[0] })
}

// beginAnew gives a player the newest snapshot in place of the one that it is being sent.
func (h *Host) beginAnew(now time.Duration, player int) {
	c := &h.clients[player]
	h.deactivate(now, player, DropMended) // it may have said that it is up to date
	if s := h.snapshots.newest(h.log.next - c.lag); s != nil && h.log.holds(s.turn) {
		h.restart(now, player, s.turn, s.turnStart, s.data)
		return
	}
	h.deny(now, player, c.session, DenyTooOld)
	c.end()
}
