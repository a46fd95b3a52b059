package lockstep

import "math/bits"

// judge compares the players' hashes turn by turn, in order. It keeps hashWindow turns.
type judge struct {
	players int
	next    int64    // to be judged; all before are
	hashes  []uint64 // of turn t and player p at (t%hashWindow)*players+p
	masks   []uint64 // players with a hash, of turn t at t%hashWindow
	agreed  []verdict
	turns   []int64 // which turn a slot holds; -1 for none
}

type verdict struct {
	hash uint64
	ok   bool // there was any hash
	tie  bool
}

func newJudge(players int) judge {
	j := judge{
		players: players,
		hashes:  make([]uint64, hashWindow*players),
		masks:   make([]uint64, hashWindow),
		agreed:  make([]verdict, hashWindow),
		turns:   make([]int64, hashWindow),
	}
	for i := range j.turns {
		j.turns[i] = -1
	}
	return j
}

// full reports whether turn can't be taken before an older one is judged.
func (j *judge) full(turn int64) bool { return turn >= j.next+hashWindow }

// add takes a hash for a turn that isn't judged; the caller made room.
func (j *judge) add(turn int64, player int, hash uint64) {
	i := turn % hashWindow
	if j.turns[i] != turn {
		j.turns[i], j.masks[i], j.agreed[i] = turn, 0, verdict{}
	}
	j.masks[i] |= 1 << player
	j.hashes[i*int64(j.players)+int64(player)] = hash
}

// verdict is what was found for a turn judged before, if it is still known.
func (j *judge) verdict(turn int64) verdict {
	i := turn % hashWindow
	if turn < 0 || j.turns[i] != turn {
		return verdict{}
	}
	return j.agreed[i]
}

// decide judges the next turn: the hash that most players have is right, of equally
// many the lowest player's. It returns the turn's number and the players who differ.
func (j *judge) decide() (turn int64, wrong uint64) {
	turn = j.next
	j.next++
	i := turn % hashWindow
	if j.turns[i] != turn || j.masks[i] == 0 {
		return turn, 0
	}
	row := j.hashes[i*int64(j.players):][:j.players]
	best := 0
	for m := j.masks[i]; m != 0; m &= m - 1 {
		h := row[bits.TrailingZeros64(m)]
		votes := bits.OnesCount64(j.same(row, j.masks[i], h))
		switch {
		case votes > best:
			best = votes
			j.agreed[i] = verdict{hash: h, ok: true}
		case votes == best && h != j.agreed[i].hash:
			j.agreed[i].tie = true
		}
	}
	return turn, j.masks[i] &^ j.same(row, j.masks[i], j.agreed[i].hash)
}

// same has the players of mask whose hash is h.
func (j *judge) same(row []uint64, mask, h uint64) (same uint64) {
	for m := mask; m != 0; m &= m - 1 {
		p := bits.TrailingZeros64(m)
		if row[p] == h {
			same |= 1 << p
		}
	}
	return same
}

// hash is what player had for a turn in the window.
func (j *judge) hash(turn int64, player int) uint64 {
	return j.hashes[turn%hashWindow*int64(j.players)+int64(player)]
}
