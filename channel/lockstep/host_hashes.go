package lockstep

import (
	"encoding/binary"
	"math/bits"
)

// hashPatience is how many turns later a hash may come. An input for a turn comes with the hash of the turn in which it was given, Delay
// turns before, so by Wait that many turns go on without a player that is dark. Then its hashes come, and may get lost once more.
func (c *Config) hashPatience() int64 { return 2*int64(c.MaxDelay) + 16 }

// Judge sets the right hash of the state after turn, or with Config.Parts the hash of each part. A game on the host's
// machine computes it by executing the turns since a snapshot that is right. It overrules the players: a player with
// another hash is Desynced, and its hashes don't count until its next session. Errors: ErrTurn, ErrParts.
func (h *Host) Judge(turn int64, sums ...uint64) error {
	b := h.judge.ballot(turn)
	hash, err := h.cfg.Hash(sums...)
	switch {
	case b == nil:
		return ErrTurn
	case err != nil:
		return err
	}
	b.state, b.want, b.judged = agreed, hash, true
	h.parts.judged(turn, sums)
	h.overrule(b)
	h.tell()
	h.compareParts()
	return nil
}

// overrule notes whose hashes differ from what Judge said of b's turn. From then on their votes don't count, whatever was decided by them.
func (h *Host) overrule(b *ballot) {
	wrong := h.judge.wrong(b)
	for m := wrong; m != 0; m &= m - 1 {
		h.clients[bits.TrailingZeros64(m)].overruled = true
	}
	for m := h.differing; m != 0; m &= m - 1 {
		if p := bits.TrailingZeros64(m); h.clients[p].differs.Value >= b.turn {
			h.differing &^= 1 << p
		}
	}
	h.found(b)
	for turn := b.turn + 1; turn <= h.judge.newest; turn++ {
		o := h.judge.ballot(turn)
		if o.voters&wrong != 0 && !o.judged {
			o.voters &^= wrong
			o.state = undecided
		}
		if h.judge.decide(o); o.state == agreed {
			h.found(o)
		}
	}
}

// openBallot begins to collect the hashes of the turn just completed, and ends the wait for those of an old one, but for those of
// players that are substituted, or were until just now: the others don't decide without them.
func (h *Host) openBallot(turn int64) {
	voters := h.active
	for m := voters; m != 0; m &= m - 1 {
		if p := bits.TrailingZeros64(m); h.clients[p].overruled || h.clients[p].unhashed {
			voters &^= 1 << p
		}
	}
	h.judge.begin(turn, h.active, voters)
	if b := h.judge.ballot(turn - h.cfg.hashPatience()); b != nil {
		h.waitNoLonger(b)
	}
}

// waitNoLonger ends the wait for b's hashes.
func (h *Host) waitNoLonger(b *ballot) {
	var late uint64
	for m := b.voters &^ b.sent & h.active; m != 0; m &= m - 1 {
		p := bits.TrailingZeros64(m)
		c := &h.clients[p]
		if c.away > 0 { // its commands were missing as well, which it can't keep up for long
			late |= 1 << p
			continue
		}
		c.unhashed = true
		if !c.unhashedTold {
			c.unhashedTold = true
			h.stats.Unhashed++
			h.push(Event{Kind: Unhashed, Player: p, Value: b.turn})
		}
	}
	b.voters &= b.sent | late
	h.decide(b)
}

// dontAwait takes the votes away that player hasn't given yet: it left.
func (h *Host) dontAwait(player int) {
	for turn := max(0, h.judge.newest-hashWindow+1); turn <= h.judge.newest; turn++ {
		if b := h.judge.ballot(turn); b != nil && b.sent>>player&1 == 0 && b.voters>>player&1 != 0 {
			b.voters &^= 1 << player
			h.decide(b)
		}
	}
}

// forget takes back what player said about turns: its next session says it anew.
func (h *Host) forget(player int) {
	if h.differing>>player&1 != 0 {
		h.tellDesync(player)
	}
	for i := range h.judge.turns {
		b := &h.judge.turns[i]
		b.sent &^= 1 << player
		b.voters &^= 1 << player
		if b.turn >= h.settled && b.state == divided { // and not told
			b.state = undecided
			h.decide(b)
		}
	}
}

// takeHashes compares what can be compared, in any order.
func (h *Host) takeHashes(player int, in *input) {
	c := &h.clients[player]
	if player >= h.cfg.Players {
		c.hashNext = max(c.hashNext, in.firstHash+int64(len(in.hashes)/8)) // nobody is judged by a spectator
		return
	}
	for i := 0; i+8 <= len(in.hashes); i += 8 {
		b := h.judge.ballot(in.firstHash + int64(i/8))
		if b == nil || b.sent>>player&1 != 0 {
			continue
		}
		h.stats.HashesCompared++
		c.unhashed = false
		h.judge.vote(b, player, binary.LittleEndian.Uint64(in.hashes[i:]))
		switch {
		case b.judged && !c.overruled && h.judge.wrong(b)>>player&1 != 0:
			h.overrule(b)
		case b.state == agreed:
			h.found(b)
		default:
			h.decide(b)
		}
	}
	h.nextHash(player)
}

// nextHash is the first turn whose hash player has and we lack. Those that aren't judged any more aren't waited for.
func (h *Host) nextHash(player int) int64 {
	c := &h.clients[player]
	for c.hashNext = max(c.hashNext, min(c.executed, h.log.next-hashWindow)); c.hashNext < c.executed; c.hashNext++ {
		if b := h.judge.ballot(c.hashNext); b != nil && b.sent>>player&1 == 0 {
			break
		}
	}
	return c.hashNext
}

// decide settles b when that can be.
func (h *Host) decide(b *ballot) {
	if h.judge.decide(b) && b.state == agreed {
		h.found(b)
	}
}

// found notes since when a player's hashes differ.
func (h *Host) found(b *ballot) {
	for m := h.judge.wrong(b); m != 0; m &= m - 1 {
		p := bits.TrailingZeros64(m)
		c := &h.clients[p]
		if bit := uint64(1) << p; !c.desynced && (h.differing&bit == 0 || b.turn < c.differs.Value) {
			h.differing |= bit
			c.differs = Event{Kind: Desynced, Player: p, Value: b.turn, Got: h.judge.row(b.turn)[p], Want: b.want}
		}
	}
}

// tell reports what differs, the first time for each player's session, and splits. Hashes come in any order: what an earlier turn's hash that is still awaited could
// change is told later.
func (h *Host) tell() {
	for h.settled = max(h.settled, h.judge.newest-hashWindow+1); h.settled <= h.judge.newest; h.settled++ {
		b := h.judge.ballot(h.settled)
		if b != nil && b.state == undecided && b.voters&^b.sent != 0 {
			break
		}
		if b != nil && b.state == divided && !h.split {
			h.tellSplit(b)
		}
		if b != nil && b.state != undecided {
			h.split = b.state == divided
		}
	}
	for m := h.differing; m != 0; m &= m - 1 {
		p := bits.TrailingZeros64(m)
		if c := &h.clients[p]; h.settled >= c.differs.Value && (c.state == absent || h.nextHash(p) >= c.differs.Value) {
			h.tellDesync(p)
		}
	}
}

func (h *Host) tellDesync(player int) {
	c := &h.clients[player]
	h.differing &^= 1 << player
	c.desynced = true
	h.stats.Desyncs++
	h.parts.begin(c.differs.Value)
	h.push(c.differs)
}

func (h *Host) tellSplit(b *ballot) {
	h.stats.Splits++
	row := h.judge.row(b.turn)
	e := Event{Kind: Split, Value: b.turn, Got: row[bits.TrailingZeros64(b.sent&b.voters)]}
	e.Who = h.judge.same(b, e.Got)
	for m := b.sent & b.voters &^ e.Who; m != 0; m &= m - 1 {
		e.Want = row[bits.TrailingZeros64(m)]
	}
	h.push(e)
	h.parts.begin(b.turn)
}
