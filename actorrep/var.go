package actorrep

import (
	"reflect"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// Var is a replicated field that records its own changes (the push model). An actor with only Vars is never compared
// while none is set.
//
//	Health actorrep.Var[uint8] `net:"max=100,notify=OnHealth"`
//	...
//	p.Health.Set(p.Health.Get() - 10)
//
// A Var belongs to its actor: don't copy a spawned actor.
type Var[T any] struct {
	v    T
	base *Base
	mask layout.Mask
}

// Get is the value. A slice is the field's own, not a copy: after changing it call Set with it, or nobody is sent the change.
func (x *Var[T]) Get() T { return x.v }

// Set sets the value, and has the next Step compare it with what was sent: an equal value isn't sent again. A slice isn't copied. On a client Set is local, and the
// next value from the server replaces it.
func (x *Var[T]) Set(v T) {
	x.v = v
	if x.base != nil {
		x.base.mark(x.mask)
	}
}

// PushesNet marks the type as a Var, for package layout.
func (*Var[T]) PushesNet() {}

func (x *Var[T]) bind(b *Base, m layout.Mask) { x.base, x.mask = b, m }

type binder interface {
	bind(b *Base, m layout.Mask)
}

// bindVars binds an actor's Vars and fast arrays to it; with nil it unbinds them.
func bindVars(c *class, ptr unsafe.Pointer, b *Base) {
	for _, f := range c.layout.Vars {
		switch x := reflect.NewAt(f.Type, unsafe.Add(ptr, f.Offset)).Interface().(type) {
		case binder:
			x.bind(b, f.Mask)
		case layout.Marker:
			if b == nil {
				x.NetBind(nil)
			} else {
				x.NetBind(func() { b.mark(f.Mask) })
			}
		}
	}
}
