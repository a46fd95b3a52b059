package channel

import (
	"cmp"
	"slices"
)

// later is a function given to Later.
type later struct {
	f    func()
	sent int64 // bytes, by all in its place, and at least strange's least
	own  bool  // the place is that of a function before it
}

// Later runs f once, at the beginning of the connection's next Tick. f may use the bandwidth that the game has left in this tick: it is for
// data that can wait, such as files. When f calls Later, the new function runs in the Tick after that, in the place of f; those given by no other have one
// place together. The places that have sent least run first. When the connection ends first, f never runs.
func (t *Table) Later(f func()) {
	if t.strange == nil {
		t.strange = new(strange)
	}
	t.later = true
	t.strange.later = append(t.strange.later, later{f: f, sent: max(t.strange.others, t.strange.least)})
}

// strayLater is the bytes of functions that wait for the next Tick beyond one for each channel: a peer may open and close channels whose handlers call Later.
func (t *Table) strayLater() int {
	if !t.later {
		return 0
	}
	return laterCost * max(0, len(t.strange.later)-t.open)
}

// laterCost is what a function that waits takes, with what it keeps: places for it in later and running, which grow, and a small object or two.
const laterCost = 256

// RunLater runs the functions given to Later now, unless it has run some since the last Tick. The connection's Tick does that, and package driver before it shares out what
// the game leaves.
func (m *Machine) RunLater() {
	if m.later && !m.laterRan {
		m.table().runLater()
		m.laterRan = true
	}
}

// Beside notes bytes that were sent of what the game leaves.
func (m *Machine) Beside(bytes int) { m.beside += bytes }

// TakeBeside is what was sent so since the last call, functions given to Later included.
func (m *Machine) TakeBeside() (bytes int) {
	bytes, m.beside = m.beside, 0
	return bytes
}

func (t *Table) runLater() {
	s := t.strange
	s.running = append(slices.Delete(s.running, 0, s.ran), s.later...) // those behind one that panicked are left
	clear(s.later)
	s.later, s.ran = s.later[:0], 0
	slices.SortStableFunc(s.running, func(a, b later) int { return cmp.Compare(a.sent, b.sent) })
	for s.ran < len(s.running) && !t.ended {
		r, known, before := s.running[s.ran], len(s.later), t.conn.Budget()
		s.running[s.ran].f = nil
		s.ran++
		r.f()
		if n := before - t.conn.Budget(); n > 0 {
			t.beside += n
			s.least = r.sent
			if r.sent += int64(n); !r.own {
				s.others = max(s.others, s.least) + int64(n)
			}
		}
		for i := range s.later[known:] {
			s.later[known+i].sent, s.later[known+i].own = r.sent, true
		}
	}
	for i := range s.later {
		s.later[i].sent = max(s.later[i].sent, s.least)
	}
	t.later = len(s.later) > 0
}
