package analysis

import (
	"fmt"
	"go/types"
	"reflect"

	"github.com/bunchnet/bunchnet/actorrep/internal/typeform"
)

// partKind is what package layout makes of a value.
type partKind uint8

const (
	partBool partKind = iota
	partInt
	partUint
	partFloat
	partRef    // a netguid.GUID
	partText   // a string or bytes
	partSlice  // the slice itself; its elements follow
	partCustom // writes itself
	partFast   // writes what changed
	partOwn    // has a tag of its own
	partTags   // has a tag of its own with what belongs to the actor's field
	partBad    // can't be replicated
)

// part is one value that a field is made of.
type part struct {
	kind partKind
	path string
	typ  types.Type
	why  string // of a bad one
	of   int    // how many floats its vector has; 0 for none
	bare bool   // it is in no struct or array, so that the tag's options are its own
}

// Of a class's replicated units there are maxUnits at most, and of those that aren't plain numbers maxOthers.
const (
	maxUnits  = 1024
	maxOthers = 64
)

// size is how many units a value is.
type size struct {
	units  int
	others int // that aren't plain numbers
}

func (s size) plus(o size) size { return size{s.units + o.units, s.others + o.others} }

// tooMany says why a class or an element may not have so many units; "" when it may.
func (s size) tooMany() string {
	others := s.others
	if s.units > maxOthers && s.units > s.others {
		others++ // the numbers, put together
	}
	switch {
	case s.units > maxUnits:
		return fmt.Sprintf("%d replicated units, %d at most", s.units, maxUnits)
	case others > maxOthers:
		return fmt.Sprintf("%d replicated units that aren't plain numbers, %d at most with the numbers put together", s.others, maxOthers)
	}
	return ""
}

// parts is what a replicated field is made of, and how many units that is. Its tag is o; nil for none. Type parameters are left out.
func parts(t types.Type, path string, o *tagOptions) (list []part, units size) {
	w := walker{max: o != nil && o.max != nil, quat: o != nil && o.quat != nil}
	w.value(t, path)
	return w.list, w.size
}

type walker struct {
	list []part
	size
	max     bool // the tag has max=
	quat    bool // and quat=
	inSlice bool
	inArray bool         // and in no slice of it
	structs int          // around
	within  []types.Type // named types that are being looked into
}

func (w *walker) add(kind partKind, t types.Type, path string) {
	w.list = append(w.list, part{kind: kind, path: path, typ: t, bare: w.structs == 0 && !w.inArray})
	if kind != partTags {
		w.units++
		if kind > partFloat {
			w.others++
		}
	}
}

func (w *walker) bad(t types.Type, path, format string, args ...any) {
	w.list = append(w.list, part{kind: partBad, path: path, typ: t, why: fmt.Sprintf(format, args...)})
	w.units++
}

func (w *walker) value(t types.Type, path string) {
	if named, ok := types.Unalias(t).(*types.Named); ok {
		for _, other := range w.within {
			if types.Identical(named, other) {
				w.bad(t, path, "it contains itself; let it refer to an actor by an actorrep.Ref instead")
				return
			}
		}
		w.within = append(w.within, named)
		defer func() { w.within = w.within[:len(w.within)-1] }()
	}
	switch elem := varOf(t); {
	case elem != nil && w.inSlice:
		w.bad(t, path, "elements of slices can't be Vars; make the whole slice one")
	case elem != nil:
		w.value(elem, path)
	case typeform.HasMethods(t, map[string][2]int{"NetKey": {0, 1}, "NetWrite": {2, 0}, "NetRead": {1, 1}}):
		if w.inSlice {
			w.bad(t, path, "a slice can't hold fast arrays")
			return
		}
		w.add(partFast, t, path)
	case typeform.HasMethods(t, map[string][2]int{"WriteNet": {1, 0}, "ReadNet": {1, 1}}):
		w.add(partCustom, t, path)
	case typeform.Named(t, netguidPath, "GUID"), typeform.HasMethods(t, map[string][2]int{"RefersNet": {0, 0}}):
		w.add(partRef, t, path)
	case typeform.Opaque(t):
		w.add(partCustom, t, path)
	default:
		w.plain(t, path)
	}
}

func (w *walker) plain(t types.Type, path string) {
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		w.basic(u, t, path)
	case *types.Slice:
		w.slice(u, t, path)
	case *types.Array:
		before, n, first := w.size, int(min(u.Len(), maxUnits+1)), len(w.list)
		if u.Len() > 0 {
			inArray := w.inArray
			w.inArray = true
			w.value(u.Elem(), path+"[]")
			w.inArray = inArray
		}
		if w.size = (size{before.units + (w.units-before.units)*n, before.others + (w.others-before.others)*n}); isVector(t) {
			w.vector(before, first, n)
		}
	case *types.Struct:
		if named, ok := types.Unalias(t).(*types.Named); ok && named.Obj().Pkg() != nil && (named.Obj().Pkg().Path() == "sync" || named.Obj().Pkg().Path() == "sync/atomic") {
			w.bad(t, path, "it belongs to one process; take it out of the replicated value")
			return
		}
		if isActor(t) {
			w.bad(t, path, "it is an actor; use an actorrep.Ref")
			return
		}
		before, first := w.size, len(w.list)
		w.structs++
		for i := range u.NumFields() {
			inner := path + "." + u.Field(i).Name()
			if tag, ok := reflect.StructTag(u.Tag(i)).Lookup("net"); ok {
				w.tagged(u.Field(i).Type(), inner, parseTag(tag))
			} else {
				w.value(u.Field(i).Type(), inner)
			}
		}
		w.structs--
		if isVector(t) {
			w.vector(before, first, u.NumFields())
		}
	case *types.Map:
		w.bad(t, path, "a map has no order that two ends share; use a fastarray.Map")
	case *types.Pointer:
		_, toStruct := u.Elem().Underlying().(*types.Struct)
		switch {
		case isActor(u.Elem()):
			w.bad(t, path, "a pointer means nothing at the other end; use an actorrep.Ref")
		case !toStruct:
			w.bad(t, path, "a pointer means nothing at the other end; use the value")
		default:
			w.pointed(u, t, path)
		}
	case *types.Interface:
		w.bad(t, path, "the other end can't know what is in an interface; use one type, with WriteNet and ReadNet when it has several forms")
	case *types.Chan, *types.Signature:
		w.bad(t, path, "it isn't a value; take the net tag away, and call an RPC for what happens once")
	}
}

// vector makes the last parts one unit of n floats.
func (w *walker) vector(before size, first, n int) {
	w.size = before.plus(size{units: 1})
	if w.quat && n == 4 {
		w.others++ // it isn't put together with others
	}
	for i := range w.list[first:] {
		w.list[first+i].of = n
	}
}

// tagged adds a value that has a tag of its own, which is checked where it stands.
func (w *walker) tagged(t types.Type, path string, o *tagOptions) {
	first, max, quat := len(w.list), w.max, w.quat
	w.max, w.quat = o.max != nil, o.quat != nil
	w.value(t, path)
	w.max, w.quat = max, quat
	for i := first; i < len(w.list); i++ {
		if p := &w.list[i]; p.kind < partOwn {
			p.kind = partOwn
		}
	}
	if o.condition != nil || o.notify != nil {
		w.add(partTags, t, path)
	}
}

func (w *walker) basic(u *types.Basic, t types.Type, path string) {
	switch info := u.Info(); {
	case u.Kind() == types.Invalid:
	case u.Kind() == types.Uintptr || u.Kind() == types.UnsafePointer:
		w.bad(t, path, "an address means nothing at the other end; use an integer of a fixed size")
	case info&types.IsBoolean != 0:
		w.add(partBool, t, path)
	case info&types.IsUnsigned != 0:
		w.add(partUint, t, path)
	case info&types.IsInteger != 0:
		w.add(partInt, t, path)
	case info&types.IsFloat != 0:
		w.add(partFloat, t, path)
	case info&types.IsString != 0:
		w.add(partText, t, path)
	default:
		w.bad(t, path, "complex numbers aren't replicated; use a struct of two floats")
	}
}

// pointed adds a pointer to a struct, whose value has units of its own.
func (w *walker) pointed(u *types.Pointer, t types.Type, path string) {
	w.apart(u.Elem(), path, t, path, "what it points to has %s")
	w.add(partSlice, t, path)
}

// apart looks into a value that has units of its own, and says of t, around it, when they are too many.
func (w *walker) apart(elem types.Type, elemPath string, t types.Type, path, tooMany string) {
	before, inSlice, inArray := w.size, w.inSlice, w.inArray
	w.size, w.inSlice, w.inArray = size{}, true, false
	w.value(elem, elemPath)
	if why := w.tooMany(); why != "" {
		w.bad(t, path, tooMany, why)
	}
	w.size, w.inSlice, w.inArray = before, inSlice, inArray
}

// slice adds a slice, whose elements have units of their own.
func (w *walker) slice(u *types.Slice, t types.Type, path string) {
	if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Uint8 && !w.max {
		w.add(partText, t, path)
		return
	}
	w.add(partSlice, t, path)
	w.apart(u.Elem(), path+"[]", t, path, "its elements have %s")
}

// isVector reports whether t is a struct or array of two to four floats of one type and without tags, which is one unit.
func isVector(t types.Type) bool {
	var elems []types.Type
	switch u := t.Underlying().(type) {
	case *types.Array:
		for range min(u.Len(), 5) {
			elems = append(elems, u.Elem())
		}
	case *types.Struct:
		for i := range u.NumFields() {
			if _, ok := reflect.StructTag(u.Tag(i)).Lookup("net"); ok {
				return false
			}
			elems = append(elems, u.Field(i).Type())
		}
	}
	if len(elems) < 2 || len(elems) > 4 {
		return false
	}
	for _, e := range elems {
		b, ok := e.Underlying().(*types.Basic)
		if !ok || b.Info()&types.IsFloat == 0 || !types.Identical(e, elems[0]) {
			return false
		}
	}
	return true
}
