package actorrep

import (
	"reflect"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// Var is a replicated field that notes its own changes (the push model): an actor all of whose fields are Vars is
// never compared when nothing was set.
//
//	Health actorrep.Var[uint8] `net:"max=100,notify=OnHealth"`
//	...
//	p.Health.Set(p.Health.Get() - 10)
//
// It belongs to its actor; copying an actor that is spawned breaks it.
type Var[T any] struct {
	v    T
	base *Base
	mask layout.Mask
}

// Get is the value.
func (x *Var[T]) Get() T { return x.v }

// Set sets the value. On a client it changes nothing elsewhere, and the next value of the server's takes its place.
func (x *Var[T]) Set(v T) {
	x.v = v
	if x.base != nil {
		x.base.mark(x.mask)
	}
}

// PushesNet makes package layout see the value inside.
func (*Var[T]) PushesNet() {}

func (x *Var[T]) bind(b *Base, m layout.Mask) { x.base, x.mask = b, m }

type binder interface {
	bind(b *Base, m layout.Mask)
}

// bindVars tells an actor's Vars and fast arrays whose they are; nil unbinds.
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
