package main

import (
	"github.com/mlange-42/ark/ecs"

	"github.com/bunchnet/bunchnet/actorrep"
)

// mirror is the one actor behind each replicated entity: a field for each component that is sent, with the tag
// that says how, and in Has which of them the entity has.
type mirror struct {
	actorrep.Base
	Has      uint8    `net:"notify=Touch"`
	Name     Name     `net:"notify=Touch"`
	Position Position `net:"q=0.01,notify=Touch"`
	Health   Health   `net:"max=1000,notify=Touch"`
	Burning  Burning  `net:"notify=Touch"`

	entity  ecs.Entity
	touched bool
}

// Touch notes on a client that something came.
func (m *mirror) Touch() { m.touched = true }

func register(w *actorrep.World) error { return w.Register("entity", (*mirror)(nil)) }

// fields is which component goes with which field; the order gives the bits of Has.
func fields(w *ecs.World) []field {
	return []field{
		newField(w, func(m *mirror) *Name { return &m.Name }),
		newField(w, func(m *mirror) *Position { return &m.Position }),
		newField(w, func(m *mirror) *Health { return &m.Health }),
		newField(w, func(m *mirror) *Burning { return &m.Burning }),
	}
}

// field carries one component between an entity and its mirror.
type field interface {
	// read copies the component to the mirror, and reports whether there is one.
	read(e ecs.Entity, m *mirror) bool
	// write makes the entity's component what the mirror says, or takes it away.
	write(e ecs.Entity, m *mirror, has bool)
}

type fieldOf[T any] struct {
	components *ecs.Map[T]
	of         func(m *mirror) *T
}

func newField[T any](w *ecs.World, of func(m *mirror) *T) field {
	return fieldOf[T]{ecs.NewMap[T](w), of}
}

func (f fieldOf[T]) read(e ecs.Entity, m *mirror) bool {
	if !f.components.Has(e) {
		return false
	}
	*f.of(m) = *f.components.Get(e)
	return true
}

func (f fieldOf[T]) write(e ecs.Entity, m *mirror, has bool) {
	switch there := f.components.Has(e); {
	case there && has:
		f.components.Set(e, f.of(m))
	case there:
		f.components.Remove(e)
	case has:
		f.components.Add(e, f.of(m))
	}
}
