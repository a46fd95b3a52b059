package channel

import "slices"

// Later runs f once, at the beginning of the connection's next Tick. f may use the bandwidth that the game has left in this tick: it is for
// data that can wait, such as files. When f calls Later, the new function runs in the Tick after that: first, if another one has used up the bandwidth before f. When the
// connection ends first, f never runs.
func (t *Table) Later(f func()) {
	if t.strange == nil {
		t.strange = new(strange)
	}
	t.later = true
	t.strange.later = append(t.strange.later, f)
}

// RunLater runs the functions given to Later now. The connection's Tick does that, and package driver before it shares out what the game leaves.
func (m *Machine) RunLater() {
	if m.later {
		m.table().runLater()
	}
}

func (t *Table) runLater() {
	s := t.strange
	s.running = append(slices.Delete(s.running, 0, s.ran), s.later[s.first:]...) // those behind one that panicked are left
	s.running = append(s.running, s.later[:s.first]...)
	clear(s.later)
	s.later, s.ran, s.first = s.later[:0], 0, 0
	for s.ran < len(s.running) {
		f := s.running[s.ran]
		s.running[s.ran] = nil
		s.ran++
		ready := t.conn.IsNetReady()
		if f(); ready && !t.conn.IsNetReady() {
			s.first = len(s.later)
		}
	}
	t.later = len(s.later) > 0
}
