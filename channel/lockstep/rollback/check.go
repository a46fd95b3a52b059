package rollback

// check is the checksum of the state before a frame.
type check struct {
	frame int64 // a multiple of CheckEvery; 0 none
	sum   uint64
}

// checksKept is how many of one's own are kept for those of others that come later.
const checksKept = 32

// checkFinal makes the checks of states that are final since the last one.
func (s *Session) checkFinal(final int64) {
	for f := (max(s.checked, 0)/CheckEvery + 1) * CheckEvery; f <= final; f += CheckEvery {
		st := &s.states[f%int64(len(s.states))]
		if st.frame != f {
			panic("rollback: no state of a frame that has become final") // the invariant
		}
		s.checks[f/CheckEvery%checksKept] = check{f, checksum(st.data)}
		s.checked = f
		for p := range s.cfg.Players {
			s.compare(p)
		}
	}
}

// compare compares another player's check with ours of that frame, if there is one.
func (s *Session) compare(p int) {
	pl := &s.players[p]
	theirs := pl.check
	ours := s.checks[theirs.frame/CheckEvery%checksKept]
	if theirs.frame == 0 || ours.frame != theirs.frame || ours.sum == theirs.sum || pl.desynced || s.dropping>>p&1 != 0 {
		return
	}
	pl.desynced = true
	s.tell(Event{Kind: Desynced, Player: p, Frame: theirs.frame, Got: theirs.sum, Want: ours.sum})
}
