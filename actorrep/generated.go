package actorrep

import "github.com/bunchnet/bunchnet/actorrep/layout"

// MarkUnits has units of the actor compared in the next Step, or when its update frequency says so. It is what setters
// that package actorrep/gen writes call.
func (b *Base) MarkUnits(m layout.Mask) { b.mark(m) }
