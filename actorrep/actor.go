package actorrep

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Actor is a pointer to a struct that embeds Base.
type Actor interface{ base() *Base }

// Base is what every actor has. It must be embedded by value and not be copied once the actor
// is spawned.
type Base struct {
	guid  netguid.GUID
	world *World
	class *class
	owner *Peer
	index int // in the world's list
	rep   *replicated
}

func (b *Base) base() *Base { return b }

// GUID names the actor at both ends; 0 before it is spawned.
func (b *Base) GUID() netguid.GUID { return b.guid }

// World is where the actor is, or nil.
func (b *Base) World() *World { return b.world }

// Owner is the connection whose player the actor is, on a server; nil for none.
func (b *Base) Owner() *Peer { return b.owner }

// SetOwner makes the actor a connection's own, or nobody's. Values with the owner's conditions
// follow.
func (b *Base) SetOwner(p *Peer) { b.owner = p }

// Notified may be implemented by an actor that wants to know of its coming and going on a client.
type Notified interface {
	// Spawned is called after its first values are set.
	Spawned()
	// Destroyed is called when it is gone.
	Destroyed()
}

// Errors of Register and Spawn.
var (
	ErrClass      = errors.New("actorrep: not a pointer to a struct that embeds actorrep.Base")
	ErrNotify     = errors.New("actorrep: notify method missing or with wrong parameters")
	ErrRegistered = errors.New("actorrep: class or type registered twice")
	ErrUnknown    = errors.New("actorrep: class not registered; call Register with it at both ends")
	ErrSpawned    = errors.New("actorrep: the actor is spawned already")
	ErrClient     = errors.New("actorrep: only a server may do that")
)

// class is a registered kind of actor.
type class struct {
	id     int
	name   string
	typ    reflect.Type // of the struct
	layout *layout.Layout
	notify []notify // by field; method -1 for none
}

type notify struct {
	method  int
	withOld bool
}

func newClass(id int, name string, a Actor) (*class, error) {
	t := reflect.TypeOf(a)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %v", ErrClass, t)
	}
	l, err := layout.Build(t.Elem())
	if err != nil {
		return nil, err
	}
	c := &class{id: id, name: name, typ: t.Elem(), layout: l}
	for _, f := range l.Fields {
		n := notify{method: -1}
		if f.Notify != "" {
			if n, err = findNotify(t, f); err != nil {
				return nil, err
			}
		}
		c.notify = append(c.notify, n)
	}
	return c, nil
}

func findNotify(t reflect.Type, f layout.Field) (notify, error) {
	m, ok := t.MethodByName(f.Notify)
	if !ok {
		return notify{}, fmt.Errorf("%w: %v has no exported method %s", ErrNotify, t, f.Notify)
	}
	field := t.Elem().FieldByIndex(f.Index).Type
	switch {
	case m.Type.NumIn() == 1:
		return notify{method: m.Index}, nil
	case m.Type.NumIn() == 2 && m.Type.In(1) == field:
		return notify{m.Index, true}, nil
	}
	return notify{}, fmt.Errorf("%w: %v.%s must take nothing or the old %v", ErrNotify, t, f.Notify, field)
}

// pointer is the struct behind an actor.
func pointer(a Actor) unsafe.Pointer { return reflect.ValueOf(a).UnsafePointer() }
