// Package schema describes the classes of a world as the other end sees them, and says whether two builds of a game can play together:
//
//	was := schema.Of(world)             // kept with each release, as JSON
//	for _, c := range was.Diff(schema.Of(next)) {
//		fmt.Println(c.Severity, c.Class, c.Name, c.What)
//	}
//
// The command actorrep/cmd/bunchnet-schema does the same without code in the game.
package schema

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/layout"
)

var classesOf = bridge.Classes.(func(w *actorrep.World) []bridge.Class)

// Schema is the classes of a World in words, as JSON for instance: what another build of the game must agree with. Write it
// with each release, and compare with Diff, or with the command actorrep/cmd/bunchnet-schema, before two releases meet.
type Schema struct {
	Classes []Class `json:"classes"`
}

// Class is a class.
type Class struct {
	Name       string      `json:"name"`
	Fields     []Field     `json:"fields,omitempty"`
	Procedures []Procedure `json:"procedures,omitempty"`
}

// Field is a unit of a class: a field, or a part of one.
type Field struct {
	// Name is the field's, with its part: Engine.Power, Slots[2]. Ends find each other's fields by it.
	Name string `json:"name"`
	// Type is Go's, of one number when there are more.
	Type string `json:"type"`
	// Kind is the form in which it is sent: bool, int, uint, max, step, angle, float32, float64, reference, string,
	// bytes, slice, custom, fast array.
	Kind string `json:"kind"`
	// Numbers is how many there are, of what isn't a string and the like.
	Numbers int `json:"numbers,omitempty"`
	// Size is the bytes of one in memory.
	Size int `json:"size,omitempty"`
	// Bits is the width of an angle, Step that of a step.
	Bits int     `json:"bits,omitempty"`
	Step float64 `json:"step,omitempty"`
	// Max is the largest value of a max, or the most elements of a string, bytes or slice.
	Max uint32 `json:"max,omitempty"`
	// Condition is to whom it is sent, as in the tag; empty is always.
	Condition string `json:"condition,omitempty"`
	// Form is a hash of what is within a slice, fast array or custom value.
	Form uint32 `json:"form,omitempty"`
}

// Procedure is a remote procedure of a class.
type Procedure struct {
	Name string `json:"name"`
	// Kind is server, any client's server, client or multicast.
	Kind     string `json:"kind"`
	Reliable bool   `json:"reliable,omitempty"`
	// Parameters is the fields of its parameters; Form is a hash of them.
	Parameters []Field `json:"parameters,omitempty"`
	Form       uint32  `json:"form"`
}

// Of describes the registered classes of a world.
func Of(w *actorrep.World) Schema {
	s := Schema{}
	for _, c := range classesOf(w) {
		out := Class{Name: c.Name, Fields: describe(c.Layout)}
		for _, p := range c.Procedures {
			out.Procedures = append(out.Procedures, Procedure{Name: p.Name, Kind: p.Kind, Reliable: p.Reliable, Parameters: describe(p.Parameters), Form: p.Parameters.Hash()})
		}
		s.Classes = append(s.Classes, out)
	}
	return s
}

func describe(l *layout.Layout) (list []Field) {
	for u := range l.Leaves {
		f := Field{Name: u.Path, Type: u.Type().String(), Kind: u.Kind.String(), Numbers: int(u.N), Bits: int(u.Bits), Step: u.Step,
			Condition: u.Condition.String(), Form: u.Form()}
		if !u.Kind.IsBlob() {
			f.Size = int(u.Type().Size())
		}
		if u.Kind != layout.Custom && u.Kind != layout.Fast {
			f.Max = u.Max
		}
		list = append(list, f)
	}
	return list
}
