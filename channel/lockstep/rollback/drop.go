package rollback

import "math/bits"

// Drop says that a player is gone, as when its connection has ended. The other players are told, and it is dropped when all
// agree on its last frame. Error: ErrNoPlayer.
func (s *Session) Drop(number int) error {
	if number < 0 || number >= s.cfg.Players || number == s.cfg.Local {
		return ErrNoPlayer
	}
	s.silent(1 << number)
	s.begin()
	s.settleDrops()
	return nil
}

// silent notes players of whom nothing more is taken.
func (s *Session) silent(mask uint8) {
	if mask&(1<<s.cfg.Local) != 0 && s.err == nil {
		s.err = ErrDropped
	}
	mask &^= s.dropping | 1<<s.cfg.Local
	s.dropping |= mask
	for mask != 0 {
		s.tell(Event{Kind: Silent, Player: lowest(&mask), Frame: s.frame})
	}
}

// outnumbered reports whether those who play with a player whom we have dropped, as it has dropped us, are the ones who play on: it and who isn't in
// theirs, which it has dropped. Those are more than we are with ours, or as many and have the lowest number.
func (s *Session) outnumbered(theirs uint8) bool {
	all := uint8(1<<s.cfg.Players - 1)
	us, them := all&^s.dropping, all&^theirs
	if n, m := bits.OnesCount8(us), bits.OnesCount8(them); n != m {
		return n < m
	}
	return bits.TrailingZeros8(them) < bits.TrailingZeros8(us)
}

// settleDrops drops whom all others know to be silent, once they have the same inputs of it. Each has said so behind its last word from everybody
// else that is silent, so that nobody can get another input of it any more.
func (s *Session) settleDrops() {
	for mask := s.dropping; mask != 0; {
		p := lowest(&mask)
		pl := &s.players[p]
		agreed := !pl.out && s.started
		for others := s.others(); others != 0 && agreed; {
			o := &s.players[lowest(&others)]
			agreed = o.dropping&s.dropping == s.dropping && o.next[p] == pl.inputs.next
		}
		if !agreed {
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
