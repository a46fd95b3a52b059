package actorrep

import "github.com/bunchnet/bunchnet/actorrep/layout"

// Schema is the classes of a World in words, as JSON for instance: what another build of the game must agree with. Write it
// with each release, and compare with Diff, or with the command actorrep/cmd/bunchnet-schema, before two releases meet.
type Schema struct {
	Classes []SchemaClass `json:"classes"`
}

// SchemaClass is a class.
type SchemaClass struct {
	Name       string            `json:"name"`
	Fields     []SchemaField     `json:"fields,omitempty"`
	Procedures []SchemaProcedure `json:"procedures,omitempty"`
}

// SchemaField is a unit of a class: a field, or a part of one.
type SchemaField struct {
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

// SchemaProcedure is a remote procedure of a class.
type SchemaProcedure struct {
	Name string `json:"name"`
	// Kind is server, any client's server, client or multicast.
	Kind     string `json:"kind"`
	Reliable bool   `json:"reliable,omitempty"`
	// Parameters is the fields of its parameters; Form is a hash of them.
	Parameters []SchemaField `json:"parameters,omitempty"`
	Form       uint32        `json:"form"`
}

// Schema describes the registered classes.
func (w *World) Schema() Schema {
	s := Schema{}
	for _, c := range w.classes {
		out := SchemaClass{Name: c.name, Fields: describe(c.layout)}
		for i := range c.rpcs {
			d := c.rpcs[i].definition()
			out.Procedures = append(out.Procedures, SchemaProcedure{Name: c.rpcs[i].name, Kind: d.kindName(), Reliable: d.reliable,
				Parameters: describe(d.params), Form: d.params.Hash()})
		}
		s.Classes = append(s.Classes, out)
	}
	return s
}

// kindName is the kind in words.
func (d *definition) kindName() string {
	if d.anyClient {
		return "any client's server"
	}
	return d.kind.String()
}

// String is the kind's name.
func (k rpcKind) String() string { return [...]string{"server", "client", "multicast"}[k] }

func describe(l *layout.Layout) (list []SchemaField) {
	for u := range l.Leaves {
		f := SchemaField{Name: u.Path, Type: u.Type().String(), Kind: u.Kind.String(), Numbers: int(u.N), Bits: int(u.Bits), Step: u.Step,
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
