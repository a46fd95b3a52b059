// Package budgettest holds what a connection spends on a class, a field or a procedure to a budget, in tests:
//
//	budgettest.Assert(t, peer, "Soldier", "Pos", 20_000)
package budgettest

import (
	"slices"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep"
)

// TB is what Assert needs of a testing.TB.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Assert fails a test when a connection spent more than maxBits on a field's part or a procedure, "Name()", of a
// class, or with name "" on the whole class. A name that isn't there fails too.
func Assert(tb TB, p *actorrep.Peer, class, name string, maxBits uint64) {
	tb.Helper()
	sum, found := uint64(0), false
	var classes, names []string
	for _, c := range p.Attribution(0) {
		if !slices.Contains(classes, c.Class) {
			classes = append(classes, c.Class)
		}
		if c.Class == class {
			names = append(names, c.Name)
		}
		if c.Class == class && (name == "" || c.Name == name) {
			sum += c.Bits
			found = true
		}
	}
	switch {
	case len(names) == 0:
		tb.Errorf("there is no class %s to spend anything on, but %s", class, strings.Join(classes, ", "))
	case !found:
		tb.Errorf("there is no %s.%s to spend anything on, but %s", class, name, strings.Join(names, ", "))
	case sum > maxBits:
		tb.Errorf("%s.%s took %d bits, its budget is %d", class, name, sum, maxBits)
	}
}
