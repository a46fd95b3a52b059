package actorrep

import "github.com/bunchnet/bunchnet/actorrep/layout"

// MarkUnits has units of the actor compared in the next Step that its update frequency allows. The setters that package
// actorrep/gen generates call it.
func (b *Base) MarkUnits(m layout.Mask) { b.mark(m) }
