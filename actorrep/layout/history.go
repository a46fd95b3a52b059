package layout

import "math/bits"

// History is an object's numbers as they were at some times, which predictions are made from. Each time has a place in it.
//
// Numbers are kept as integers whose differences are right also where an angle goes around: angles are in the highest bits. They are kept twice: time by
// time, and packed, three of a unit in a word, each in 21 bits, so that what is added to words, subtracted or multiplied with small integers
// is so for all three at once. An angle's are its highest 21 bits, of others what doesn't fit carries into the next: that is the same at
// both ends, and what is off by more than 2^20 steps takes a few bits more.
type History struct {
	numbers []uint64 // time by time; behind them, in the same memory, packs
	packs   []uint64 // word by word, the times of each beside each other
	places  int
	width   int // numbers of a time
}

const (
	lane      = 21
	lanes     = 3
	laneMask  = 1<<lane - 1
	laneOnes  = 1 | 1<<lane | 1<<(2*lane)
	laneSigns = laneOnes << (lane - 1)
)

// magnitudes is the magnitude of each number of one packed word, plus that of the other. Both have laneSigns added: a bit for each number that isn't
// below 0.
func magnitudes(v, w uint64) uint64 {
	a, b := v>>(lane-1)&laneOnes, w>>(lane-1)&laneOnes
	return (v ^ (laneSigns - laneOnes + a)) + (w ^ (laneSigns - laneOnes + b)) + (2*laneOnes - a - b)
}

// total is the sum of a word's magnitudes.
func total(v uint64) uint64 { return v&laneMask + v>>lane&laneMask + v>>(2*lane) }

// keptAt is where a unit's numbers and packed words are in a History.
type keptAt struct{ number, pack int }

// add appends a unit, and is where it is.
func (k *keptAt) add(d *Wire) (at keptAt) {
	if at = *k; d.HasDelta() {
		k.number += int(d.N)
		k.pack += d.packs()
	}
	return at
}

func (k keptAt) history(places int) History {
	numbers := k.number * places
	words := make([]uint64, numbers+max(k.pack*places, MaxNumbers-1)) // row takes MaxNumbers words, of the last unit too
	return History{words, words[numbers:][:k.pack*places], places, k.number}
}

// packs is how many words the numbers of a unit are packed in.
func (d *Wire) packs() int { return (int(d.N) + lanes - 1) / lanes }

// shift is how far numbers are shifted to the left where they are kept.
func (d *Wire) shift() uint8 {
	if d.Kind == Angle {
		return 64 - d.Bits
	}
	return 0
}

// integer is a word of a Shadow as it is kept, and word the reverse.
func (d *Wire) integer(word uint64) uint64 {
	if d.Kind == Angle {
		return word << (d.shift() & 63)
	}
	return uint64(unzigzag(word))
}

func (d *Wire) word(kept uint64) uint64 {
	if d.Kind == Angle {
		return kept >> (d.shift() & 63)
	}
	return zigzag(int64(kept))
}

// keep puts the numbers of a unit into a place.
func (d *Wire) keep(h *History, at keptAt, place int, words []uint64) {
	to, pack := h.row(place, at), at.pack*h.places+place
	packed, by := uint64(0), 0
	if d.Kind == Angle {
		shift := d.shift() & 63
		for i, w := range words {
			if i == lanes {
				h.packs[pack] = packed
				pack, packed, by = pack+h.places, 0, 0
			}
			w <<= shift
			to[i&3] = w
			packed += uint64(int64(w)>>(64-lane)) << (by & 63)
			by += lane
		}
	} else {
		for i, w := range words {
			if i == lanes {
				h.packs[pack] = packed
				pack, packed, by = pack+h.places, 0, 0
			}
			w = uint64(unzigzag(w))
			to[i&3] = w
			packed += w << (by & 63)
			by += lane
		}
	}
	h.packs[pack] = packed
}

// column is a packed word at all places.
func (h *History) column(pack int) []uint64 { return h.packs[pack*h.places:][:h.places] }

// row is a unit's numbers at a place. When these are fewer than MaxNumbers, others follow.
func (h *History) row(place int, at keptAt) *[MaxNumbers]uint64 {
	i := place*h.width + at.number
	return (*[MaxNumbers]uint64)(h.numbers[i : i+MaxNumbers : i+MaxNumbers])
}

// Grown is a History of more places with what is in this one, each time at the place that to says.
func (h *History) Grown(places int, to func(place int) int) History {
	g := keptAt{h.width, len(h.packs) / h.places}.history(places)
	for i := range h.places {
		copy(g.numbers[to(i)*h.width:], h.numbers[i*h.width:][:h.width])
		for j := range len(h.packs) / h.places {
			g.packs[j*places+to(i)] = h.packs[j*h.places+i]
		}
	}
	return g
}

// NewHistory is a History of the layout's objects with so many places.
func (l *Layout) NewHistory(places int) History { return l.kept.history(places) }

// Remember puts an object's numbers, as they are in s, into a place of its History.
func (l *Layout) Remember(h *History, place int, s *Shadow) {
	for m := l.Deltas; m != 0; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		u.keep(h, u.kept, place, s.Words[u.first:][:u.N])
	}
}

// NewHistory is a History of the peer's objects with so many places.
func (m *Remote) NewHistory(places int) History { return m.kept.history(places) }

// PlaceBytes is the memory that a time takes in such a History.
func (m *Remote) PlaceBytes() int { return 8 * (m.kept.number + m.kept.pack) }

// Remember puts the numbers of unit i, as ReadUnit gave them, into a place of an object's History.
func (m *Remote) Remember(h *History, place, i int, v []uint64) {
	if u := &m.Units[i]; u.HasDelta() {
		u.keep(h, u.kept, place, v[:u.N])
	}
}
