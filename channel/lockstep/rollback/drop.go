package rollback

import (
	"math/bits"
	"time"
)

// Drop says that a player is gone, as when its connection has ended. The other players are told, and it is dropped when all
// agree on its last frame. Whatever it says from then on counts no more, so that it can't say that this player is out instead.
//
// With the number of this machine's own player it leaves: Err is ErrDropped, and the others don't wait for it. Go on with Receive and Tick for a second, which tell them.
// Error: ErrNoPlayer.
func (s *Session) Drop(number int) error {
	switch {
	case number < 0 || number >= s.cfg.Players:
		return ErrNoPlayer
	case number == s.cfg.Local:
		s.err = ErrDropped
		return nil
	}
	s.drop(number)
	return nil
}

// drop is Drop of another player.
func (s *Session) drop(number int) {
	s.given |= 1 << number
	s.silent(1 << number)
	s.begin()
	s.settleDrops()
}

// silent notes players of whom nothing more is taken.
func (s *Session) silent(mask uint8) {
	mask &^= s.dropping
	s.dropping |= mask
	for mask != 0 {
		s.tell(Event{Kind: Silent, Player: lowest(&mask), Frame: s.frame})
	}
}

// yields reports whether this machine's player is out, when another one says that all who are left with it have dropped these, this one among them. Where we have
// dropped the other as well, somebody who is left in both parts decides.
func (s *Session) yields(from int, dropped uint8) bool {
	if s.dropping>>from&1 != 0 && (s.dropping|dropped|s.players[from].dropping) != 1<<s.cfg.Players-1 {
		return false
	}
	return s.outnumbered(from, dropped)
}

// outnumbered reports whether those who are left with another player, who has dropped these, play on rather than those who are left with us: it has dropped all whom
// we have, or they are more, or as many and have the lower numbers.
func (s *Session) outnumbered(from int, dropped uint8) bool {
	all := uint8(1<<s.cfg.Players - 1)
	dropped |= s.players[from].dropping
	if s.dropping&^dropped == 0 {
		return true
	}
	us, them := all&^s.dropping, all&^dropped
	if n, m := bits.OnesCount8(us), bits.OnesCount8(them); n != m {
		return n < m
	}
	return bits.Reverse8(us) < bits.Reverse8(them)
}

// sure is how long this machine's player must be said to be out until it is: longer than what says it is on its way. Who said it may have heard of others meanwhile
// that it is out itself. Both would end, and with them the game.
func (s *Session) sure() time.Duration { return max(750*time.Millisecond, 4*s.cfg.FrameTime) }

// unsure reports whether this machine's player may be out: then it says of no other that it is, so that not each is out by another's word.
func (s *Session) unsure() bool { return s.now-s.outAt <= 4*s.sure() }

// slowly is how often a machine that is unsure counts as one that stood still: some tick so seldom.
const slowly = 8

// saidOut notes that others have dropped this machine's player.
func (s *Session) saidOut() {
	if !s.unsure() {
		s.outAt, s.outStill = s.now, 0
	}
	if s.now-s.outAt >= s.sure() || s.outStill >= slowly {
		s.err = ErrDropped
	}
}

// agreed reports whether all who are left have dropped whom we have.
func (s *Session) agreed() bool {
	for others := s.others(); others != 0; {
		if o := &s.players[lowest(&others)]; o.dropping&s.dropping != s.dropping {
			return false
		}
	}
	return true
}

// settleDrops drops whom all others know to be silent, once they have the same inputs of it. Each has said so behind its last word from everybody
// else that is silent, so that nobody can get another input of it any more.
func (s *Session) settleDrops() {
	if !s.started || !s.agreed() {
		return
	}
	for mask := s.dropping; mask != 0; {
		p := lowest(&mask)
		pl := &s.players[p]
		same := !pl.out
		for others := s.others(); others != 0 && same; {
			same = s.players[lowest(&others)].next[p] == pl.inputs.next
		}
		if !same {
			continue
		}
		pl.out = true
		for f := pl.inputs.next; f < s.frame; f++ {
			if pl.inputs.usedOther(f, pl.inputs.zero) {
				s.wrong = min(s.wrong, f)
				break
			}
		}
		s.tell(Event{Kind: Dropped, Player: p, Frame: pl.inputs.next})
	}
}
