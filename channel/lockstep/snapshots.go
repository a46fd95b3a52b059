package lockstep

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
