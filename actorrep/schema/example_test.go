package schema_test

import (
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/schema"
)

// Crate is a class of the last release, NewCrate that of the next.
type Crate struct {
	actorrep.Base
	Weight uint8  `net:"max=100"`
	Label  string `net:"cap=20"`
}

// NewCrate has another label.
type NewCrate struct {
	actorrep.Base
	Weight uint8  `net:"max=100"`
	Label  uint16 `net:""`
}

// What was released is compared with what is to be.
func ExampleOf() {
	old, next := actorrep.NewServer(actorrep.Config{}), actorrep.NewServer(actorrep.Config{})
	fmt.Println(old.Register("Crate", (*Crate)(nil)), next.Register("Crate", (*NewCrate)(nil)))
	for _, c := range schema.Of(old).Diff(schema.Of(next)) {
		fmt.Println(c.Severity, c.Class, c.Name, c.What)
	}
	// Output:
	// <nil> <nil>
	// breaks Crate Label retyped from string to uint
}
