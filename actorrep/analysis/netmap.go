package analysis

import (
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// NetMap finds replicated values of kinds that can't be replicated.
var NetMap = &analysis.Analyzer{
	Name: "netmap",
	Doc: `find maps, pointers and other things that can't be replicated

Only values travel: a map, pointer, interface, func or channel in a field with a net tag, or in the parameters of an RPC,
makes Register fail, and so do more than 1024 units in a class, or 64 that aren't plain numbers. Instead use a slice of structs or a fast array for a map, a
netguid.GUID for a pointer to an actor, a type with WriteNet and ReadNet for what has several forms, and a component for the
rest of a large class.`,
	Requires: []*analysis.Analyzer{classes, procedures},
	Run:      runNetMap,
}

func runNetMap(pass *analysis.Pass) (any, error) {
	for _, c := range pass.ResultOf[classes].([]*class) {
		total := size{}
		for i := range c.fields {
			f := &c.fields[i]
			list, units := parts(f.typ, f.name, f.options)
			total = total.plus(units)
			p := firstBad(list)
			if elem := elementOf(f.typ); elem != nil {
				p = badInWhole(elem, f.name+"[]")
			}
			if p != nil {
				report(pass, f, sureError, nil, "%s is %s, which can't be replicated: %s", p.path, describe(p.typ), p.why)
			}
		}
		if why := total.tooMany(); why != "" {
			report(pass, c.spec.Name, sureError, nil, "%s has %s; move some into a component", c.name, why)
		}
	}
	for _, d := range pass.ResultOf[procedures].(*procedureSet).declared {
		if d.params == nil {
			continue
		}
		if p := badInWhole(d.params, "P"); p != nil {
			report(pass, d.call.Fun, sureError, nil, "%s is %s, which can't be replicated: %s", p.path, describe(p.typ), p.why)
		}
	}
	return nil, nil
}

func firstBad(list []part) *part {
	for i := range list {
		if list[i].kind == partBad {
			return &list[i]
		}
	}
	return nil
}

// sentInWhole reports whether a field of a struct that is sent whole is sent.
func sentInWhole(v *types.Var) bool {
	_, isStruct := v.Type().Underlying().(*types.Struct)
	return v.Exported() || v.Embedded() && isStruct
}

// badInWhole is the first part that can't be replicated of a value that is sent whole, as the parameters of an RPC and the
// elements of a fast array are: of a struct all exported fields and embedded structs, with or without tags.
func badInWhole(t types.Type, path string) *part {
	st, ok := t.Underlying().(*types.Struct)
	if list, _ := parts(t, path, nil); !ok || len(list) == 1 && list[0].kind == partCustom {
		return firstBad(list)
	}
	for v := range st.Fields() {
		if !sentInWhole(v) {
			continue
		}
		list, _ := parts(v.Type(), path+"."+v.Name(), nil)
		if p := firstBad(list); p != nil {
			return p
		}
		for _, p := range list {
			if p.kind == partFast || varOf(v.Type()) != nil {
				return &part{kind: partBad, path: path + "." + v.Name(), typ: v.Type(), why: "Vars and fast arrays belong to actors; send the plain value"}
			}
		}
	}
	return nil
}
