package lockstep

import (
	"encoding/binary"
	"math/bits"
	"time"
)

// advance completes as many turns as there are commands for. Those reach at most
// MaxDelay turns ahead, which bounds the loop.
func (h *Host) advance(now time.Duration) {
	h.charge(now)
	if !h.started {
		return
	}
	defer func() { h.awaited = h.Waiting() }()
	for {
		h.join(now)
		if h.active == 0 && !h.pending(Joined) {
			return // nobody plays: the game stands still
		}
		var substituted uint64
		if waiting := h.Waiting(); waiting != 0 {
			substituted = h.stalled(now, waiting)
			if h.Waiting()&^substituted != 0 {
				return
			}
			if h.active == 0 {
				continue // all were dropped
			}
		}
		h.complete(now, substituted)
	}
}

// pending reports whether an event of kind goes into the next turn.
func (h *Host) pending(kind EventKind) bool {
	for i := range h.events {
		if h.events[i].Kind == kind {
			return true
		}
	}
	return false
}

// join takes players in who are up to date.
func (h *Host) join(now time.Duration) {
	for p := range h.cfg.Players {
		c := &h.clients[p]
		if h.active>>p&1 != 0 || !h.upToDate(c) || c.stall.barred(now) && h.active != 0 || h.tooFar(c) {
			continue
		}
		h.active |= 1 << p
		h.stats.Joins++
		h.push(Event{Kind: Joined, Player: p, Value: c.life})
		c.received = h.log.next + 1 // at least; complete knows the delay
		c.joining, c.lagging = true, false
		h.rejoin(now, &c.stall)
	}
}

// upToDate reports whether c has executed all turns but those that its path and delay
// keep from us.
func (h *Host) upToDate(c *client) bool {
	if c.state != live || c.transport == nil || c.accepted != h.version {
		return false
	}
	slack := int64(h.cfg.MaxDelay) + 2 + int64(c.rtt/h.cfg.TurnInterval)
	return c.executed >= max(h.log.next-slack, c.joinFrom)
}

// deactivate takes a player out of the game from the next turn on.
func (h *Host) deactivate(now time.Duration, p int, why DropReason) {
	if h.active>>p&1 == 0 {
		return
	}
	c := &h.clients[p]
	h.active &^= 1 << p
	h.stats.Drops++
	c.stall.leftAt, c.stall.delay = now, 0
	if why == DropStalled && now-c.lastHeard < heldAfter {
		c.stall.delay = h.delay
	}
	c.life++
	c.joinFrom = h.log.next // a frozen game doesn't get there
	h.dontAwait(p)
	if why == DropStalled || why == DropRestarted {
		h.bar(now, &c.stall, why)
	}
	if c.joining { // it never was in a turn
		c.joining = false
		for i := range h.events {
			if h.events[i].Kind == Joined && h.events[i].Player == p {
				h.events = append(h.events[:i], h.events[i+1:]...)
				break
			}
		}
		return
	}
	h.push(Event{Kind: Dropped, Player: p, Value: int64(why)})
}

// push puts e into the next turn, once for a player and kind: while the game stands still
// the list must not grow.
func (h *Host) push(e Event) {
	for i := range h.events {
		if h.events[i].Kind == e.Kind && h.events[i].Player == e.Player {
			h.events[i] = e
			return
		}
	}
	h.events = append(h.events, e)
}

// complete makes the turn being collected part of the log.
func (h *Host) complete(now time.Duration, substituted uint64) {
	h.decideDelay()
	h.tell()
	t := &h.turn
	t.N, t.Delay, t.Events, t.Substituted, t.present = h.log.next, h.delay, h.events, substituted, 0
	for m := h.active; m != 0; m &= m - 1 {
		p := bits.TrailingZeros64(m)
		c := &h.clients[p]
		h.collect(c, p, substituted>>p&1 != 0)
	}
	// A record is led by its length: leave room for the longest, then close the gap.
	const lead = binary.MaxVarintLen32
	rec := t.append(append(h.record[:0], make([]byte, lead)...))
	var size [lead]byte
	n := binary.PutUvarint(size[:], uint64(len(rec)-lead))
	copy(rec[lead-n:], size[:n])
	h.log.append(rec[lead-n:], h.logged)
	h.record = rec[:0]
	h.logged = turnStart{active: h.active, delay: h.delay}
	h.lastTurn = now
	h.schedule(now)
	h.stats.Turns++
	h.report(t)
	h.openBallot(t.N)
}

// collect puts player p's commands into the turn.
func (h *Host) collect(c *client, p int, substituted bool) {
	t := &h.turn
	switch {
	case c.joining:
		c.joining = false
		c.received = t.N + int64(h.delay)
		c.firstInput = c.received
		c.early, c.late = 0, 0
		c.budget.begin(&h.cfg.Config)
	case substituted:
		h.stats.Substituted++
		if h.patience(c) > h.cfg.TurnInterval {
			c.stall.pausedAt = h.lastTurn
		}
		c.received = t.N + 1
		c.late |= 1 << (int(t.N) & (len(c.sizes) - 1))
		c.budget.spend(&h.cfg.Config, 0)
		c.takeInOrder(&h.cfg.Config)
		c.lagging = true
		c.away = min(c.away+1, h.cfg.hashPatience())
		c.stall.debt += h.cfg.TurnInterval
	case t.N >= c.firstInput:
		c.lagging = false
		c.away = max(c.away-1, 0)
		if in := c.input(t.N); len(in) > 0 {
			t.present |= 1 << p
			t.inputs[p] = in
		}
	}
}

// report tells about the turn's events, and empties their list.
func (h *Host) report(t *Turn) {
	for i := range t.Events {
		if h.handler != nil {
			h.handler.Event(t.N, t.Events[i])
		}
	}
	h.events = h.events[:0]
}

// decideDelay asks the policy now and then.
func (h *Host) decideDelay() {
	if h.log.next == 0 || h.log.next%int64(h.cfg.DelayEvery) != 0 {
		return
	}
	h.paths = h.paths[:0]
	for m := h.active; m != 0; m &= m - 1 {
		if p := bits.TrailingZeros64(m); h.clients[p].rttKnown {
			h.paths = append(h.paths, h.Path(p))
		}
	}
	if len(h.paths) == 0 {
		return
	}
	d := min(max(h.cfg.Delay.Delay(h.delay, h.cfg.TurnInterval, h.paths), 1), h.cfg.MaxDelay)
	if d != h.delay {
		h.delay = d
		h.stats.DelayChanges++
		h.push(Event{Kind: DelayChanged, Value: int64(d)})
	}
}
