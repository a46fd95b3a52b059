package lockstep

import (
	"math"
	"math/bits"
	"time"
)

// stall is what a player's missing commands have cost. It outlasts sessions.
type stall struct {
	debt     time.Duration // without its commands, less what it got back; dropped at DropAfter
	pausedAt time.Duration // when it was last waited for in vain
	held     time.Duration // that the game waited for it, by Substitute
	// A dropped player may not join before barredUntil; the next time it will be bar longer.
	bar, barredUntil time.Duration
	joinedAt         time.Duration
	leftAt           time.Duration
	// delay is the input delay when its commands, which came, were too late until it was dropped; else 0.
	delay int
}

// rejoin gives back what a player out of the game would have got in it, by Substitute, where its debt stops nobody. By Wait who freezes the game and comes back would
// freeze it for longer by that.
func (h *Host) rejoin(now time.Duration, s *stall) {
	if h.cfg.Stall == Substitute {
		back := max(now-s.leftAt, 0) / 100 * time.Duration(h.cfg.StallPercent) // whatever the clock counts from
		s.debt, s.held = max(0, s.debt-back), max(0, s.held-back/2)
	}
	s.joinedAt = now
}

// barred reports whether a player may not join yet.
func (s *stall) barred(now time.Duration) bool { return s.bar > 0 && now < s.barredUntil }

// tooFar reports whether a player was dropped since its commands came too late each time, and would be again. The game's pace is what the delay hides, or the nearest
// player's round trip where that is longer; the player's may be longer by the share of time for which it may stop the game: held gets half of StallPercent back.
func (h *Host) tooFar(c *client) bool {
	if c.stall.delay == 0 || h.active == 0 {
		return false
	}
	nearest := time.Duration(math.MaxInt64)
	for m := h.active; m != 0; m &= m - 1 {
		nearest = min(nearest, h.clients[bits.TrailingZeros64(m)].rtt)
	}
	pace := max(time.Duration(max(h.delay, c.stall.delay))*h.cfg.TurnInterval, nearest)
	more := pace / 100 * time.Duration(h.cfg.StallPercent)
	if h.cfg.Stall == Substitute {
		more = min(more/2, h.cfg.StallAfter)
	}
	return c.rtt > pace+more
}

// forgiven is what a dropped player has again when it may join, in parts of DropAfter.
const forgiven = 8

// heldAfter is for how long nothing may be heard of a player that another holds.
const heldAfter = time.Second

// patienceTurns is for how many times StallAfter a game waits for a player by Substitute, in all.
const patienceTurns = 10

// earlyTurns is how many turns the game may be ahead of its pace, to be used up by jitter.
const earlyTurns = 4

// schedule says until when the turn after the one completed now may take without being late: what came
// late once may come as late again, so that jitter costs nothing and only a slower pace does.
func (h *Host) schedule(now time.Duration) {
	next := now + h.cfg.TurnInterval
	h.dueBy = min(max(h.dueBy+h.cfg.TurnInterval, next), next+earlyTurns*h.cfg.TurnInterval)
}

// charge books the time since the last Tick on those whose commands were waited for, and gives
// the others in the game their share back.
func (h *Host) charge(now time.Duration) {
	gap := max(now-h.chargedAt, 0)
	dt := min(gap, h.longest)
	h.chargedAt, h.longest = now, min(max(stillTurns*h.cfg.TurnInterval, stillGaps*min(gap, maxTick)), maxTick, h.cfg.DropAfter/2)
	if !h.started || h.active == 0 {
		return // nobody plays, nobody is held
	}
	late := min(dt, max(0, now-h.dueBy))
	if h.awaited == h.active && h.held(now) {
		late = 0 // all are there and none is ahead of another: their paths are longer than the delay hides
		h.firstAt = now
	}
	back := dt * time.Duration(h.cfg.StallPercent) / 100
	for m := h.active; m != 0; m &= m - 1 {
		p := bits.TrailingZeros64(m)
		c := &h.clients[p]
		s := &c.stall
		if late > 0 && h.awaited>>p&1 != 0 {
			s.debt += late
			s.held += late
			continue
		}
		s.held = max(0, s.held-back/2)
		if !c.lagging {
			s.debt = max(0, s.debt-back)
		}
	}
}

// patience is how long the turn being collected may wait for c by Substitute. Who was
// substituted in the turn before is waited for once a second only: its commands may come a little too late each time, and
// one pause makes room for that.
func (h *Host) patience(c *client) time.Duration {
	left := max(0, patienceTurns*h.cfg.StallAfter-c.stall.held)
	if c.lagging && (left < h.cfg.StallAfter || h.lastTurn < c.stall.pausedAt+time.Second) {
		return h.cfg.TurnInterval
	}
	return h.cfg.TurnInterval + min(h.cfg.StallAfter, left)
}

// waitsUntil is until when the turn being collected waits for c by Substitute. Patience counts from when the turn is due, or from its first commands when those come
// later.
func (h *Host) waitsUntil(c *client) time.Duration {
	return max(h.lastTurn, h.firstAt-h.cfg.TurnInterval) + h.patience(c)
}

// stalled drops those of waiting whose time is over, and returns whom to substitute. While all are there and none has sent commands, a turn without any would only
// make all of them too late for the next one as well.
func (h *Host) stalled(now time.Duration, waiting uint64) (substitute uint64) {
	goesOn := h.cfg.Stall == Substitute && !(waiting == h.active && h.held(now))
	for m := waiting; m != 0; m &= m - 1 {
		p := bits.TrailingZeros64(m)
		c := &h.clients[p]
		switch {
		case c.stall.debt >= h.cfg.DropAfter:
			h.deactivate(now, p, DropStalled)
		case goesOn && now >= h.waitsUntil(c):
			substitute |= 1 << p
		}
	}
	return substitute
}

// stallDeadline is when stalled changes anything; ok is false when nobody is waited for.
func (h *Host) stallDeadline() (at time.Duration, ok bool) {
	// A turn waits for all, so by Substitute the most patient one decides, but drops come by
	// themselves.
	substitute := longAgo
	at = h.chargedAt + h.longest // more wouldn't be booked
	waiting := h.Waiting()
	for m := waiting; m != 0; m &= m - 1 {
		c := &h.clients[bits.TrailingZeros64(m)]
		from := max(h.chargedAt, h.dueBy)
		at = min(at, from+h.cfg.DropAfter-c.stall.debt)
		substitute = max(substitute, h.waitsUntil(c))
		ok = true
	}
	if ok && h.cfg.Stall == Substitute && !(waiting == h.active && h.held(h.chargedAt)) {
		at = min(at, substitute)
	}
	return at, ok
}

// bar keeps a player that was dropped, or began anew right after it had joined, from joining for a while.
func (h *Host) bar(now time.Duration, s *stall, why DropReason) {
	played := now - s.joinedAt
	if why != DropStalled && played >= h.cfg.RejoinAfter {
		return
	}
	s.debt = min(s.debt, h.cfg.DropAfter-max(h.cfg.DropAfter/forgiven, min(h.cfg.DropAfter, 4*h.cfg.TurnInterval)))
	if why == DropStalled && !h.held(now) {
		return
	}
	if s.bar = min(2*s.bar, 16*h.cfg.RejoinAfter); s.bar == 0 || played > 20*s.bar {
		s.bar = h.cfg.RejoinAfter
	}
	s.barredUntil = now + s.bar
}

// held reports whether anybody is there whom a player that is waited for holds: when nobody in the game was heard lately, the host
// itself was dark.
func (h *Host) held(now time.Duration) bool {
	for m := h.active; m != 0; m &= m - 1 {
		if now-h.clients[bits.TrailingZeros64(m)].lastHeard < heldAfter {
			return true
		}
	}
	return false
}
