package actorrep

// TB is what AssertBudget needs of a testing.TB.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// AssertBudget fails a test when a connection spent more than maxBits on a field's part or a procedure, "Name()", of a
// class, or with name "" on the whole class. A name that isn't there fails too.
func AssertBudget(tb TB, p *Peer, class, name string, maxBits uint64) {
	tb.Helper()
	sum, found := uint64(0), false
	for _, c := range p.Attribution(0) {
		if c.Class == class && (name == "" || c.Name == name) {
			sum += c.Bits
			found = true
		}
	}
	switch {
	case !found:
		tb.Errorf("there is no %s.%s to spend anything on", class, name)
	case sum > maxBits:
		tb.Errorf("%s.%s took %d bits, its budget is %d", class, name, sum, maxBits)
	}
}
