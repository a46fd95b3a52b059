package channel

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
func (t *Table) RunLater() {
	if !t.later {
		return
	}
	s := t.strange
	calls := s.later
	t.later, s.later = false, s.ran[:0]
	for _, f := range calls {
		f()
	}
	clear(calls)
	s.ran = calls[:0]
}
