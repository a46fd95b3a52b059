package mesh

import (
	"fmt"
	"hash/fnv"
	"math"
	"reflect"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

// durable is the fields of a class that have the tag mesh:"durable".
type durable struct{ fields [][]int }

// durables finds them, by class.
func durables(all []bridge.Class) (map[string]*durable, error) {
	marked := map[string]*durable{}
	for _, c := range all {
		d := &durable{}
		for _, f := range reflect.VisibleFields(c.Layout.Type) {
			tag, ok := f.Tag.Lookup("mesh")
			switch {
			case !ok:
				continue
			case throughPointer(c.Layout.Type, f.Index):
				return nil, fmt.Errorf("%w: %s.%s is in an embedded pointer, and can't be durable", ErrConfig, c.Name, f.Name)
			case tag != "durable":
				return nil, fmt.Errorf("%w: %s.%s has the tag mesh:%q; there is mesh:\"durable\" only", ErrConfig, c.Name, f.Name, tag)
			case !hashable(f.Type, 0):
				return nil, fmt.Errorf("%w: %s.%s is a %v, which can't be durable: numbers, texts, bools, and structs, arrays, slices and maps of these can", ErrConfig, c.Name, f.Name, f.Type)
			}
			d.fields = append(d.fields, f.Index)
		}
		if len(d.fields) > 0 {
			marked[c.Name] = d
		}
	}
	return marked, nil
}

// throughPointer reports whether a field is in an embedded pointer.
func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

// isVar reports whether a type is an actorrep.Var, whose first field is its value.
func isVar(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[actorrep.Base]().PkgPath() && strings.HasPrefix(t.Name(), "Var[")
}

// hashable reports whether sum has a value for a type: what it refers to isn't looked at.
func hashable(t reflect.Type, depth int) bool {
	if depth > 8 {
		return false
	}
	switch t.Kind() {
	case reflect.Struct:
		if isVar(t) {
			return hashable(t.Field(0).Type, depth+1)
		}
		for i := range t.NumField() {
			if !hashable(t.Field(i).Type, depth+1) {
				return false
			}
		}
		return true
	case reflect.Array, reflect.Slice:
		return hashable(t.Elem(), depth+1)
	case reflect.Map:
		return hashable(t.Key(), depth+1) && hashable(t.Elem(), depth+1)
	case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return false
	}
	return true
}

// sum is a number that differs when a marked field of an actor does.
func (d *durable) sum(a Actor) uint64 {
	v := reflect.ValueOf(a).Elem()
	h := uint64(len(d.fields))
	for _, index := range d.fields {
		h = sumOf(h, v.FieldByIndex(index))
	}
	return h
}

// mix goes on from h with a number.
func mix(h, n uint64) uint64 {
	h = (h ^ n) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}

func sumOf(h uint64, v reflect.Value) uint64 {
	switch v.Kind() {
	case reflect.Bool:
		return mix(h, uint64(b2u(v.Bool())))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return mix(h, uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return mix(h, v.Uint())
	case reflect.Float32, reflect.Float64:
		return mix(h, math.Float64bits(v.Float()))
	case reflect.Complex64, reflect.Complex128:
		return mix(mix(h, math.Float64bits(real(v.Complex()))), math.Float64bits(imag(v.Complex())))
	case reflect.String:
		t := fnv.New64a()
		_, _ = t.Write([]byte(v.String()))
		return mix(mix(h, uint64(v.Len())), t.Sum64())
	case reflect.Struct:
		if isVar(v.Type()) {
			return sumOf(h, v.Field(0))
		}
		for i := range v.NumField() {
			h = sumOf(h, v.Field(i))
		}
	case reflect.Array, reflect.Slice:
		h = mix(h, uint64(v.Len()))
		for i := range v.Len() {
			h = sumOf(h, v.Index(i))
		}
	case reflect.Map: // in any order
		all := uint64(0)
		for e := v.MapRange(); e.Next(); {
			all += sumOf(sumOf(1, e.Key()), e.Value())
		}
		h = mix(mix(h, uint64(v.Len())), all)
	}
	return h
}

// stepDurable has the actors written whose durable fields have changed.
func (k *Keeper) stepDurable() {
	if len(k.durable) == 0 {
		return
	}
	for _, a := range k.list {
		r, own := k.own(a)
		if !own {
			continue
		}
		d := k.durable[r.a.body().ClassName()]
		if d == nil {
			continue
		}
		if s := d.sum(r.a); s != a.durable {
			a.durable = s
			a.want++
		}
	}
}
