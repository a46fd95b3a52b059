// Package refusals is the table in which a link counts what it refused, by reason.
package refusals

// Count is how often one reason applied.
type Count struct {
	reason string
	n      uint64
}

// Of is n refusals for a reason, by its code: one that driver.Driver.Refusals lists.
func Of(reason string, n uint64) Count { return Count{reason, n} }

// Each calls yield with every count in the order of the tables, zeros too, until it returns false, and reports whether it never did.
func Each(yield func(reason string, n uint64) bool, tables ...[]Count) bool {
	for _, t := range tables {
		for _, c := range t {
			if !yield(c.reason, c.n) {
				return false
			}
		}
	}
	return true
}
