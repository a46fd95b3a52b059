package actorrep

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// class is a registered kind of actor.
type class struct {
	description     []byte // see World.describe
	descriptionBits int

	id        int
	name      string
	typ       reflect.Type // of the struct
	layout    *layout.Layout
	notify    []notify // by field
	rpcs      []procedure
	firstRow  int // of its units, in an attribution
	firstCall int // of its procedures among those of all classes

	manual    bool
	interval  time.Duration
	slowest   time.Duration // of an adaptive frequency; 0 for none
	priority  float32
	cull      float64
	always    bool
	onlyOwner bool

	notifySpawn bool
	tellsRefs   layout.Mask // units with references and a notify, or callbacks
	initializes bool        // it implements Initializer
}

type notify struct {
	method  reflect.Value // of the actor's type; zero when there is none
	withOld bool
	fast    bool // it is a fast array, which records its own changes
}

// ClassOption configures a class in World.Register.
type ClassOption interface{ set(c *class) error }

type classOption func(c *class) error

func (f classOption) set(c *class) error { return f(c) }

// RPCs is the remote procedures of a class by name. It is an option of World.Register.
type RPCs map[string]Procedure

func (r RPCs) set(c *class) error {
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := r[name]
		if isNil(p) { // as where a variable is used before it is made
			return fmt.Errorf("actorrep: procedure %s is nil; make it with ServerRPC, ClientRPC or MulticastRPC", name)
		}
		if err := p.register(name, c.typ); err != nil {
			return err
		}
		c.rpcs = append(c.rpcs, procedure{name: name, Procedure: p})
	}
	return nil
}

// UpdateFrequency limits how often actors of the class are compared, in times a second. Default: every Step.
func UpdateFrequency(hz float64) ClassOption {
	return classOption(func(c *class) error {
		if !(hz > 0) {
			return fmt.Errorf("actorrep: UpdateFrequency %v must be above 0", hz)
		}
		c.interval = intervalOf(hz)
		return nil
	})
}

// Adaptive compares actors less often while they don't change: from two seconds without a change on, the rate falls to
// lowestHz, in times a second, at seven seconds (Unreal's adaptive net update frequency).
func Adaptive(lowestHz float64) ClassOption {
	return classOption(func(c *class) error {
		if !(lowestHz > 0) {
			return fmt.Errorf("actorrep: Adaptive %v must be above 0", lowestHz)
		}
		c.slowest = intervalOf(lowestHz)
		return nil
	})
}

// Manual has actors of the class compared only after MarkDirty.
func Manual() ClassOption {
	return classOption(func(c *class) error { c.manual = true; return nil })
}

// Priority sets the weight of actors of the class when bandwidth is short. Default 1; it must be above 0.
func Priority(p float32) ClassOption {
	return classOption(func(c *class) error {
		if !(p > 0) {
			return fmt.Errorf("actorrep: Priority %v must be above 0", p)
		}
		c.priority = p
		return nil
	})
}

// CullDistance sets the distance from which actors of the class are relevant, in the units of Location. Default 0: any
// distance. On a server the class must implement Located, and connections need a viewpoint; see Base.SetCullDistance.
func CullDistance(d float64) ClassOption {
	return classOption(func(c *class) error {
		if !(d >= 0) {
			return fmt.Errorf("actorrep: CullDistance %v must be 0, for any distance, or above", d)
		}
		c.cull = d
		return nil
	})
}

// AlwaysRelevant makes actors of the class relevant to every connection.
func AlwaysRelevant() ClassOption {
	return classOption(func(c *class) error { c.always = true; return nil })
}

// OnlyRelevantToOwner makes actors of the class relevant to their owner only.
func OnlyRelevantToOwner() ClassOption {
	return classOption(func(c *class) error { c.onlyOwner = true; return nil })
}

// NotifyAtSpawn also calls notifies when an actor appears on a client, after Spawned: those of the fields whose first
// value differs from the one after Init. That one is passed as the old value.
func NotifyAtSpawn() ClassOption {
	return classOption(func(c *class) error { c.notifySpawn = true; return nil })
}

func newClass(id int, name string, a Actor, options []ClassOption) (*class, error) {
	t := reflect.TypeOf(a)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %v", ErrClass, t)
	}
	if !embedsBase(t.Elem()) {
		return nil, fmt.Errorf("%w: %v", ErrClass, t)
	}
	l, err := layout.Build(t.Elem())
	if err != nil {
		return nil, err
	}
	if bits.OnesCount64(l.Fasts) > layout.MaxFast {
		return nil, ErrManyFast
	}
	c := &class{id: id, name: name, typ: t.Elem(), layout: l, priority: 1}
	for _, f := range l.Fields {
		var n notify
		if f.Notify != "" {
			if n, err = findNotify(t, f); err != nil {
				return nil, err
			}
		}
		n.fast = f.Mask&l.Fasts != 0
		if n.fast && n.withOld {
			return nil, fmt.Errorf("%w: %v.%s must take nothing: a fast array has callbacks that know what was", ErrNotify, t, f.Notify)
		}
		c.notify = append(c.notify, n)
		refers := f.Mask & l.Referring
		if !n.method.IsValid() {
			refers &= l.Fasts // they may have callbacks
		}
		c.tellsRefs |= refers
	}
	_, c.initializes = a.(Initializer)
	for _, name := range []string{"Init", "Spawned", "Destroyed"} {
		if m, ok := t.MethodByName(name); ok && m.Type.NumIn() == 1 && m.Type.NumOut() > 0 {
			return nil, fmt.Errorf("actorrep: %v.%s returns something, so a client wouldn't call it; it calls %s()", t, name, name)
		}
	}
	l.Zeros = c.initializes
	for _, o := range options {
		if o == nil {
			return nil, errors.New("actorrep: an option of Register is nil")
		}
		if err := o.set(c); err != nil {
			return nil, err
		}
	}
	if len(l.Units)+len(c.rpcs) == 0 && showsFields(c.typ) {
		return nil, fmt.Errorf("%w: %v", ErrNothing, t)
	}
	if len(c.rpcs) > maxProcedures {
		return nil, fmt.Errorf("actorrep: %d procedures; a class may have %d", len(c.rpcs), maxProcedures)
	}
	return c, nil
}

// embedsBase reports whether a struct, or a struct embedded in it, embeds Base by value. An embedded pointer would be
// nil in a new struct.
func embedsBase(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && (f.Type == reflect.TypeFor[Base]() || f.Type.Kind() == reflect.Struct && embedsBase(f.Type)) {
			return true
		}
	}
	return false
}

// showsFields reports whether a struct that embeds Base, or one embedded in it, has exported fields of its own.
func showsFields(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Type == reflect.TypeFor[Base]():
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			if showsFields(f.Type) {
				return true
			}
		case f.IsExported():
			return true
		}
	}
	return false
}

func findNotify(t reflect.Type, f layout.Field) (notify, error) {
	m, ok := t.MethodByName(f.Notify)
	if !ok {
		return notify{}, fmt.Errorf("%w: %v has no exported method %s", ErrNotify, t, f.Notify)
	}
	field := t.Elem().FieldByIndex(f.Index).Type
	if reflect.PointerTo(field).Implements(reflect.TypeFor[layout.Pusher]()) {
		field = field.Field(0).Type // a Var's old value is a plain one
	}
	switch {
	case m.Type.NumIn() == 1:
		return notify{method: m.Func}, nil
	case m.Type.NumIn() == 2 && m.Type.In(1) == field:
		return notify{method: m.Func, withOld: true}, nil
	}
	return notify{}, fmt.Errorf("%w: %v.%s must take nothing or the old %v", ErrNotify, t, f.Notify, field)
}

// size is about the bytes that an actor takes at a client.
func (c *class) size() int { return int(c.typ.Size()) + mirrorCost }

// rpc is the number of a procedure in the class, or -1.
func (c *class) rpc(p Procedure) int {
	for i := range c.rpcs {
		if c.rpcs[i].Procedure == p {
			return i
		}
	}
	return -1
}
