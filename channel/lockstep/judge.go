package lockstep

import "math/bits"

// judge compares the players' hashes of each turn. A hash is right when more than half of the turn's voters
// have it, and those are all who were in the game then, whatever was found about them before: a few liars never win,
// and never take an honest player's vote. It keeps hashWindow turns.
type judge struct {
	players int
	newest  int64 // the last turn opened; -1 before
	turns   []ballot
	hashes  []uint64 // of turn t and player p at (t%hashWindow)*players+p
}

// ballot is what is known of a turn's hashes.
type ballot struct {
	turn   int64
	all    uint64 // who was in the game
	voters uint64 // whose hashes count
	sent   uint64 // whose hash came
	state  verdict
	want   uint64 // when agreed
	judged bool   // by Host.Judge
}

type verdict uint8

const (
	undecided verdict = iota
	agreed            // most voters have the same hash
	divided           // no hash can get so many any more
)

func newJudge(players int) judge {
	j := judge{players: players, newest: -1, turns: make([]ballot, hashWindow), hashes: make([]uint64, hashWindow*players)}
	for i := range j.turns {
		j.turns[i].turn = -1
	}
	return j
}

// begin opens turn, which follows the last one or is the first.
func (j *judge) begin(turn int64, all, voters uint64) {
	j.turns[turn%hashWindow] = ballot{turn: turn, all: all, voters: voters}
	j.newest = turn
}

// ballot is that of turn; nil when it is too old, or to come.
func (j *judge) ballot(turn int64) *ballot {
	if turn < 0 || j.turns[turn%hashWindow].turn != turn {
		return nil
	}
	return &j.turns[turn%hashWindow]
}

func (j *judge) row(turn int64) []uint64 {
	return j.hashes[turn%hashWindow*int64(j.players):][:j.players]
}

// vote takes a player's hash of b's turn, its first.
func (j *judge) vote(b *ballot, player int, hash uint64) {
	b.sent |= 1 << player
	j.row(b.turn)[player] = hash
}

// decide settles an open ballot when that can be, and reports whether it is settled now.
func (j *judge) decide(b *ballot) bool {
	if b.state != undecided {
		return false
	}
	voters, most := bits.OnesCount64(b.voters), 0
	row := j.row(b.turn)
	for m := b.sent & b.voters; m != 0; m &= m - 1 {
		h := row[bits.TrailingZeros64(m)]
		n := bits.OnesCount64(j.same(b, h) & b.voters)
		if 2*n > voters {
			b.state, b.want = agreed, h
			return true
		}
		most = max(most, n)
	}
	if missing := bits.OnesCount64(b.voters &^ b.sent); most > 0 && 2*(most+missing) <= voters {
		b.state = divided
		return true
	}
	return false
}

// same has the players whose hash is h.
func (j *judge) same(b *ballot, h uint64) (same uint64) {
	row := j.row(b.turn)
	for m := b.sent; m != 0; m &= m - 1 {
		if p := bits.TrailingZeros64(m); row[p] == h {
			same |= 1 << p
		}
	}
	return same
}

// wrong has the players who gave another hash than the one agreed on. Who had no vote, as it was late or wasn't there, is among them
// only when two or more, and more than half of those in the game then, have that hash: few who were left don't judge who comes back.
func (j *judge) wrong(b *ballot) uint64 {
	right := j.same(b, b.want)
	n := bits.OnesCount64(right & b.all)
	if b.judged || n > 1 && 2*n > bits.OnesCount64(b.all) {
		return b.sent &^ right
	}
	return b.sent & b.voters &^ right
}
