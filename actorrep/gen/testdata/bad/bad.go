// Package bad has structs for which no code can be written.
package bad

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/gen/testdata/odd/layout"
)

// NoBase is no actor.
type NoBase struct {
	A int `net:""`
}

// Map can't be replicated.
type Map struct {
	actorrep.Base
	M map[int]int `net:""`
}

// Tag has a bad one.
type Tag struct {
	actorrep.Base
	T int `net:"q=1"`
}

// Taken has the setter's name.
type Taken struct {
	actorrep.Base
	A int `net:""`
}

// SetA is in the way.
func (t *Taken) SetA() {}

// Closed has a field that can't be read.
type Closed struct {
	actorrep.Base
	C layout.Closed `net:""`
}

// Generic has a parameter.
type Generic[T any] struct {
	actorrep.Base
	A T `net:""`
}

// Number is no struct.
type Number int
