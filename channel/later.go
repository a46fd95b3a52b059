package channel

import "slices"

// Later runs f once, at the beginning of the connection's next Tick. f may use the bandwidth that the game has left in this tick: it is for
// data that can wait, such as files. When f calls Later, the new function runs in the Tick after that: those behind the last one that has
// sent something within the bandwidth run first. When the connection ends first, f never runs.
func (t *Table) Later(f func()) {
	if t.strange == nil {
		t.strange = new(strange)
	}
	t.later = true
	t.strange.later = append(t.strange.later, f)
}

// RunLater runs the functions given to Later now, unless it has run some since the last Tick. The connection's Tick does that, and package driver before it shares out what
// the game leaves.
func (m *Machine) RunLater() {
	if m.later && !m.laterRan {
		m.table().runLater()
		m.laterRan = true
	}
}

func (t *Table) runLater() {
	s := t.strange
	s.running = append(slices.Delete(s.running, 0, s.ran), s.later[s.first:]...) // those behind one that panicked are left
	s.running = append(s.running, s.later[:s.first]...)
	clear(s.later)
	s.later, s.ran, s.first = s.later[:0], 0, 0
	for s.ran < len(s.running) && !t.ended {
		f := s.running[s.ran]
		s.running[s.ran] = nil
		s.ran++
		before := t.conn.Budget()
		if f(); before > 0 && t.conn.Budget() < before {
			s.first = len(s.later)
		}
	}
	t.later = len(s.later) > 0
}
