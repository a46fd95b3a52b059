package actorrep

import (
	"math"
	"slices"
)

// Kinds of traffic that take turns. Reliable calls and closes don't wait for one.
const (
	updates  = iota // records
	openings        // of actors; of those in several bunches the first bunch
	halves          // the other bunches, and changes larger than a packet
	kinds
)

// turns shares bandwidth between kinds of traffic: while some of them want more than there is, these get about as many bits each. Those that have had least go first in a Step.
type turns struct {
	had   [kinds]int  // bits in this Step
	ahead [kinds]int  // bits before this Step beyond those of the kind that had least, of those that were short
	short [kinds]bool // wants more than there was
	late  bool        // in this Step openings come after updates
}

// first reports whether a kind other than updates goes before them in this Step: it wasn't short in the last Step, or updates are ahead.
func (t *turns) first(kind int) bool {
	return t.ahead[kind] == 0 && (!t.short[kind] || t.ahead[updates] > 0)
}

// end ends a Step. A kind that wants no more saves up nothing.
func (t *turns) end() {
	least := math.MaxInt
	for kind := range kinds {
		t.ahead[kind] += t.had[kind]
		if t.short[kind] {
			least = min(least, t.ahead[kind])
		}
	}
	for kind := range kinds {
		t.ahead[kind] = max(0, t.ahead[kind]-least)
	}
	t.had, t.late = [kinds]int{}, false
}

// serveFirst opens actors and serves halves, when they go before updates.
func (p *Peer) serveFirst() {
	t := &p.turns
	if len(p.opening) > 0 {
		if t.late = !t.first(openings); !t.late {
			p.openWanted(false)
		}
	}
	if t.first(halves) {
		p.serveHalves()
	}
}

// serveRest does so with the bandwidth that updates have left, and ends the Step's turns.
func (p *Peer) serveRest() {
	t := &p.turns
	left := len(p.opening)|len(p.halves) > 0 && !t.short[updates] && p.out.budget() > 0
	before := t.ahead[halves] < t.ahead[openings]
	if left && before {
		p.serveHalves()
	}
	if t.late {
		p.openWanted(!left)
	}
	if left && !before {
		p.serveHalves()
	}
	t.end()
}

// serveHalves sends more of openings in several bunches and of changes larger than a packet, while there is bandwidth. The view that got the last of the bandwidth goes last in the next turn.
func (p *Peer) serveHalves() {
	kept, last := p.halves[:0], 0
	for _, v := range p.halves {
		was := v.total
		if !v.sendHalf() {
			kept = append(kept, v)
			if v.total != was {
				last = len(kept)
			}
		}
		p.turns.had[halves] += int(v.total - was)
	}
	clear(p.halves[len(kept):])
	p.halves = kept
	p.turns.short[halves] = len(kept) > 0 && p.out.budget() <= 0
	slices.Reverse(kept[:last])
	slices.Reverse(kept[last:])
	slices.Reverse(kept)
}
