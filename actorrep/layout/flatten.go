package layout

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

var (
	guidType   = reflect.TypeFor[netguid.GUID]()
	customType = reflect.TypeFor[CustomValue]()
	fastType   = reflect.TypeFor[FastArray]()
	markType   = reflect.TypeFor[Marker]()
	pushType   = reflect.TypeFor[Pusher]()
	referType  = reflect.TypeFor[Referrer]()
)

// Pusher is a struct whose first field is a value that it marks when it is set. The method is never called.
type Pusher interface{ PushesNet() }

// Referrer is a struct that is a netguid.GUID and nothing else. The method is never called.
type Referrer interface{ RefersNet() }

func isReference(t reflect.Type) bool {
	return t == guidType || t.Implements(referType) && t.Kind() == reflect.Struct && t.Size() == guidType.Size() && t.Field(0).Type == guidType
}

// special is how a type is sent that has a form of its own.
type special uint8

const (
	asParts special = iota // none: by its kind
	asVar
	asFast
	asCustom
	asReference
	asOpaque
)

func formOf(t reflect.Type) special {
	switch p := reflect.PointerTo(t); {
	case p.Implements(pushType):
		return asVar
	case p.Implements(fastType):
		return asFast
	case p.Implements(customType):
		return asCustom
	case isReference(t):
		return asReference
	case codecOf(t) != nil:
		return asOpaque
	}
	return asParts
}

// flatten appends the units of a value of type t.
func (l *Layout) flatten(t reflect.Type, offset uintptr, path string, o options) error {
	form := formOf(t)
	if own := len(o.within) == 0 && o.array == 0; own && o.numeric() && (form == asCustom || form == asOpaque || form == asParts && t.Kind() == reflect.String) {
		return fmt.Errorf("%w: %s: q=, rot=, quat= and max= are for numbers, not for %v; cap= bounds a text", ErrTag, path, t)
	}
	switch form {
	case asVar:
		if o.push {
			return fmt.Errorf("%w: %s: a Var within a Var", ErrKind, path)
		}
		first := len(l.Units)
		o.push = true
		if err := l.flatten(t.Field(0).Type, offset, path, o); err != nil {
			return err
		}
		l.Vars = append(l.Vars, VarField{Offset: offset, Type: t, from: first, to: len(l.Units)})
		l.push(first)
		return nil
	case asFast:
		return l.addFast(t, offset, path, o)
	case asCustom:
		return l.addBlob(t, offset, path, o, Custom)
	case asReference:
		return l.addNumbers(t, []uintptr{offset}, path, o)
	case asOpaque:
		return l.addOpaque(t, offset, path, o, codecOf(t))
	}
	switch t.Kind() {
	case reflect.Pointer:
		return l.addPointer(t, offset, path, o)
	case reflect.String:
		return l.addBlob(t, offset, path, o, String)
	case reflect.Slice:
		return l.addSlice(t, offset, path, o)
	case reflect.Struct, reflect.Array:
		if elem, offsets := vector(t, offset); offsets != nil {
			return l.addNumbers(elem, offsets, path, o)
		}
		return l.flattenParts(t, offset, path, o)
	}
	return l.addNumbers(t, []uintptr{offset}, path, o)
}

// vector is the element type and offsets of a struct or array of two to four floats of one type and under one tag.
func vector(t reflect.Type, offset uintptr) (elem reflect.Type, offsets []uintptr) {
	n, at := t.Len, func(i int) (reflect.Type, uintptr) { return t.Elem(), uintptr(i) * t.Elem().Size() }
	if t.Kind() == reflect.Struct {
		n, at = t.NumField, func(i int) (reflect.Type, uintptr) { return t.Field(i).Type, t.Field(i).Offset }
		for i := range t.NumField() {
			if _, tagged, err := netTag(t.Field(i).Tag); tagged || err != nil { // flattenParts tells of the error
				return nil, nil
			}
		}
	}
	if n() < 2 || n() > MaxNumbers {
		return nil, nil
	}
	elem, _ = at(0)
	if elem.Kind() != reflect.Float32 && elem.Kind() != reflect.Float64 {
		return nil, nil
	}
	for i := range n() {
		part, o := at(i)
		if part != elem {
			return nil, nil
		}
		offsets = append(offsets, offset+o)
	}
	return elem, offsets
}

func (l *Layout) flattenParts(t reflect.Type, offset uintptr, path string, o options) error {
	if t.PkgPath() == "sync" || t.PkgPath() == "sync/atomic" {
		return fmt.Errorf("%w: %s is a %v, which belongs to one process; take it out of the replicated value", ErrKind, path, t)
	}
	if t.Kind() == reflect.Struct {
		if isBase(t) {
			return fmt.Errorf("%w: %s: actorrep.Base takes no tag", ErrTag, path)
		}
		if hasBase(t) {
			return fmt.Errorf("%w: %s is a %v, an actor; use an actorrep.Ref", ErrKind, path, t)
		}
		if slices.Contains(o.within, t) {
			return fmt.Errorf("%w: %s is a %v, which contains itself; let it refer to an actor by an actorrep.Ref instead", ErrKind, path, t)
		}
		o.within = append(slices.Clip(o.within), t)
		for i := range t.NumField() {
			f := t.Field(i)
			inner, err := o.inner(f.Tag)
			if err != nil {
				return fmt.Errorf("%w: %s.%s: %w", ErrTag, path, f.Name, err)
			}
			if err := l.flatten(f.Type, offset+f.Offset, path+"."+f.Name, inner); err != nil {
				return err
			}
		}
		return nil
	}
	if o.array == 0 {
		l.arrays++
		o.array = l.arrays
	}
	if t.Elem().Kind() == reflect.Uint8 && o.max == 0 { // a byte takes 8 bits
		o.max = math.MaxUint8
	}
	for i := range t.Len() {
		if len(l.Units) > MaxParts {
			return fmt.Errorf("%w: %s", ErrMany, path)
		}
		if err := l.flatten(t.Elem(), offset+uintptr(i)*t.Elem().Size(), fmt.Sprintf("%s[%d]", path, i), o); err != nil {
			return err
		}
	}
	return nil
}

// push notes that the leaves from first on are in a field that marks itself.
func (l *Layout) push(first int) {
	for i := range l.Units[first:] {
		l.Units[first+i].pushed = true
	}
}

// addNumbers adds a unit of numbers of one type.
func (l *Layout) addNumbers(t reflect.Type, offsets []uintptr, path string, o options) error {
	u := Unit{Path: path, Field: len(l.Fields), Condition: o.cond, NetGroup: o.netGroup, Number: l.numbers, size: t.Size(), typ: t, array: o.array}
	l.numbers += len(offsets)
	u.N = uint8(len(offsets))
	copy(u.offsets[:], offsets)
	switch k := t.Kind(); {
	case isReference(t):
		u.Kind = Ref
	case k == reflect.Bool:
		u.Kind = Bool
	case k >= reflect.Int && k <= reflect.Int64:
		u.Kind = Int
	case k >= reflect.Uint && k <= reflect.Uint64 && o.max > 0:
		if u.Kind, u.Max = Max, o.max; uint64(o.max) > ^uint64(0)>>(64-8*t.Size()) {
			return fmt.Errorf("%w: %s: max=%d is more than a %v holds", ErrTag, path, o.max, t)
		}
	case k >= reflect.Uint && k <= reflect.Uint64:
		u.Kind = Uint
	case k == reflect.Float32 || k == reflect.Float64:
		u.float(k, o)
	case k == reflect.Map:
		return fmt.Errorf("%w: %s is a %v; an actor's field can be a fastarray.Map", ErrKind, path, t)
	default:
		return fmt.Errorf("%w: %s is a %v", ErrKind, path, t)
	}
	if (u.Kind == Quat) != (o.quat > 0) {
		return fmt.Errorf("%w: %s: quat= is for structs and arrays of four floats, x, y, z and w", ErrTag, path)
	}
	if o.step > 0 && u.Kind != Step || o.bits > 0 && u.Kind != Angle || o.max > 0 && u.Kind != Max {
		return fmt.Errorf("%w: %s: q= and rot= are for floats, max= is for unsigned integers, not for %v", ErrTag, path, t)
	}
	l.Units = append(l.Units, u)
	return nil
}

func (u *Unit) float(k reflect.Kind, o options) {
	switch {
	case o.step > 0:
		u.Kind, u.Step = Step, o.step
	case o.bits > 0:
		u.Kind, u.Bits = Angle, o.bits
	case o.quat > 0 && u.N == 4:
		u.Kind, u.Bits = Quat, o.quat
	case k == reflect.Float32:
		u.Kind = Float32
	default:
		u.Kind = Float64
	}
}

func (l *Layout) addBlob(t reflect.Type, offset uintptr, path string, o options, kind Kind) error {
	u := Unit{Path: path, Field: len(l.Fields), Condition: o.cond, NetGroup: o.netGroup, size: t.Size(), typ: t}
	u.Kind, u.Max, u.offsets[0] = kind, o.cap, offset
	if kind == Fast || kind == Custom {
		var err error
		if u.form, err = form(t); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	l.Units = append(l.Units, u)
	return nil
}

// addFast adds a fast array, which may be one that marks itself.
func (l *Layout) addFast(t reflect.Type, offset uintptr, path string, o options) error {
	if o.push {
		return fmt.Errorf("%w: %s: a fast array within a Var", ErrKind, path)
	}
	first := len(l.Units)
	if err := l.addBlob(t, offset, path, o, Fast); err != nil {
		return err
	}
	if r, ok := reflect.New(t).Interface().(Referencer); ok {
		l.Units[first].refers = r.NetRefers()
	}
	if reflect.PointerTo(t).Implements(markType) {
		l.Vars = append(l.Vars, VarField{Offset: offset, Type: t, from: first, to: first + 1})
		l.push(first)
	}
	return nil
}

// element is the layout of what a slice holds or a pointer points to.
func (l *Layout) element(t reflect.Type, path string, o options) (*Layout, error) {
	elem := &Layout{Type: t}
	o.cond, o.netGroup, o.cap, o.array = Always, "", defaultCap, 0
	if err := elem.flatten(t, 0, path, o); err != nil {
		return nil, err
	}
	if err := elem.finish(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, path)
	}
	if elem.Pushed != 0 || elem.Fasts != 0 {
		return nil, fmt.Errorf("%w: %s: what slices hold and pointers point to can't be Vars or fast arrays", ErrKind, path)
	}
	return elem, nil
}

// addSlice adds a slice, whose elements have a layout of their own.
func (l *Layout) addSlice(t reflect.Type, offset uintptr, path string, o options) error {
	if t.Elem().Kind() == reflect.Uint8 && o.max == 0 {
		return l.addBlob(t, offset, path, o, Bytes)
	}
	elem, err := l.element(t.Elem(), path+"[]", o)
	if err != nil {
		return err
	}
	if err := l.addBlob(t, offset, path, o, Slice); err != nil {
		return err
	}
	l.Units[len(l.Units)-1].elem = elem
	return nil
}
