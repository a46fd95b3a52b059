package channel

import "slices"

// Later runs f once, when the connection's next Tick begins: after all that the game sends in this tick, and with the bandwidth that it leaves.
// It is for what can wait, such as files: then it doesn't matter when in the tick they are worked on. When f calls Later, that is for the
// Tick after. f isn't run when the connection ends before.
func (t *Table) Later(f func()) {
	if t.strange == nil {
		t.strange = new(strange)
	}
	t.later = true
	t.strange.later = append(t.strange.later, f)
}

// RunLater runs the functions given to Later now. The connection's Tick does that, and package driver before it shares out what the game leaves.
func (m *Machine) RunLater() {
	t := m.table()
	if !t.later {
		return
	}
	s := t.strange
	s.running = append(slices.Delete(s.running, 0, s.ran), s.later...) // those behind one that panicked are left
	clear(s.later)
	s.later, s.ran = s.later[:0], 0
	for s.ran < len(s.running) {
		f := s.running[s.ran]
		s.running[s.ran] = nil
		s.ran++
		f()
	}
	t.later = len(s.later) > 0
}
