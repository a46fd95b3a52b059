package rollback

// Both ends of a path report how many frames they are ahead of the newest frame that they know of the other: what the path takes is in both
// numbers, so half of their difference is how far one is really ahead, as long as the path takes as long both ways.

const (
	// leadShare is the share of a new sample in the average.
	leadShare = 1.0 / 16
	// balanceEvery is in every how many frames one may be waited for the others.
	balanceEvery = 8
	// balanceAt is how many frames ahead a machine waits.
	balanceAt = 0.75
)

// noteLead takes what a player reports.
func (s *Session) noteLead(p *player, theirs int64) {
	ours := s.frame - p.frame
	p.lead += (float64(ours-theirs)/2 - p.lead) * leadShare
}

// balance reports whether this Step waits for the others.
func (s *Session) balance() bool {
	if s.frame-s.skipped < balanceEvery {
		return false
	}
	ahead := 0.0
	for mask := s.others(); mask != 0; {
		ahead = max(ahead, s.players[lowest(&mask)].lead)
	}
	if ahead < balanceAt {
		return false
	}
	s.skipped = s.frame
	for p := range s.cfg.Players {
		s.players[p].lead--
	}
	return true
}
