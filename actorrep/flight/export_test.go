package flight

// Bound sets smaller bounds.
func (f *Film) Bound(values, entries int) { f.values, f.entries = values, entries }
