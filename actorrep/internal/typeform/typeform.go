// Package typeform says of types in source code what package layout says of them by reflection, for the programs that read
// source: the generator and bunchvet.
package typeform

import (
	"go/types"
	"reflect"
)

// Named reports whether t is the type called name of the package path.
func Named(t types.Type, path, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return false
	}
	o := n.Obj()
	return o.Name() == name && o.Pkg() != nil && o.Pkg().Path() == path
}

// HasMethods reports whether a pointer to t has methods with so many parameters and results.
func HasMethods(t types.Type, want map[string][2]int) bool {
	set := types.NewMethodSet(types.NewPointer(t))
	for name, n := range want {
		sel := set.Lookup(nil, name)
		if sel == nil {
			return false
		}
		sig := sel.Type().(*types.Signature)
		if sig.Params().Len() != n[0] || sig.Results().Len() != n[1] {
			return false
		}
	}
	return true
}

// Opaque reports whether package layout has a form of its own for t, or sends its text.
func Opaque(t types.Type) bool {
	if Named(t, "time", "Time") || Named(t, "net/netip", "Addr") || Named(t, "net/netip", "AddrPort") || Named(t, "net/netip", "Prefix") {
		return true
	}
	if !HasMethods(t, map[string][2]int{"MarshalText": {0, 2}, "UnmarshalText": {1, 1}}) {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Map:
		return true
	case *types.Struct:
		for i := range u.NumFields() {
			if _, tagged := reflect.StructTag(u.Tag(i)).Lookup("net"); tagged || u.Field(i).Exported() {
				return false
			}
		}
		return true
	}
	return false
}
