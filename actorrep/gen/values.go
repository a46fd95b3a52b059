package main

import (
	"fmt"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/typeform"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

const (
	layoutPath  = "github.com/bunchnet/bunchnet/actorrep/layout"
	netguidPath = "github.com/bunchnet/bunchnet/actorrep/netguid"
)

// custom and fast stand for types with serializers of their own.
type custom struct{}

func (*custom) WriteNet(*bitio.Writer)      {}
func (*custom) ReadNet(*bitio.Reader) error { return nil }

type fast struct{}

func (*fast) NetKey() uint32                 { return 0 }
func (*fast) NetWrite(*bitio.Writer, uint32) {}
func (*fast) NetRead(*bitio.Reader) error    { return nil }

// layout is the struct's layout, made by package layout of a struct type that looks the same to it.
func (g *generator) layout(st *types.Struct) (*layout.Layout, error) {
	var list []reflect.StructField
	err := tagged(st, func(v *types.Var, tag string) error {
		t, err := g.reflected(v.Type(), v.Name())
		if err == nil {
			list = append(list, structField(v, t, tag))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return layout.Build(reflect.StructOf(list))
}

func structField(v *types.Var, t reflect.Type, tag string) reflect.StructField {
	f := reflect.StructField{Name: v.Name(), Type: t, Tag: reflect.StructTag(tag)}
	if !v.Exported() {
		f.PkgPath = "p"
	}
	return f
}

var basics = map[types.BasicKind]reflect.Type{
	types.Bool: reflect.TypeFor[bool](), types.String: reflect.TypeFor[string](),
	types.Int: reflect.TypeFor[int](), types.Int8: reflect.TypeFor[int8](), types.Int16: reflect.TypeFor[int16](),
	types.Int32: reflect.TypeFor[int32](), types.Int64: reflect.TypeFor[int64](),
	types.Uint: reflect.TypeFor[uint](), types.Uint8: reflect.TypeFor[uint8](), types.Uint16: reflect.TypeFor[uint16](),
	types.Uint32: reflect.TypeFor[uint32](), types.Uint64: reflect.TypeFor[uint64](),
	types.Float32: reflect.TypeFor[float32](), types.Float64: reflect.TypeFor[float64](),
}

// reflected is a type that package layout takes for t.
func (g *generator) reflected(t types.Type, path string) (reflect.Type, error) {
	switch {
	case has(t, "PushesNet"):
		return g.reflected(inVar(t), path)
	case has(t, "NetKey", "NetWrite", "NetRead"):
		return reflect.TypeFor[fast](), nil
	case has(t, "WriteNet", "ReadNet"):
		return reflect.TypeFor[custom](), nil
	case isGUID(t) || has(t, "RefersNet"):
		return reflect.TypeFor[netguid.GUID](), nil
	case typeform.Opaque(t):
		return reflect.TypeFor[time.Time](), nil
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if r := basics[u.Kind()]; r != nil {
			return r, nil
		}
	case *types.Pointer:
		elem, err := g.reflected(u.Elem(), path)
		if err != nil {
			return nil, err
		}
		return reflect.PointerTo(elem), nil
	case *types.Slice:
		elem, err := g.reflected(u.Elem(), path+"[]")
		if err != nil {
			return nil, err
		}
		return reflect.SliceOf(elem), nil
	case *types.Array:
		elem, err := g.reflected(u.Elem(), path+"[]")
		if err != nil {
			return nil, err
		}
		return reflect.ArrayOf(int(u.Len()), elem), nil
	case *types.Struct:
		var list []reflect.StructField
		for i := range u.NumFields() {
			r, err := g.reflected(u.Field(i).Type(), path+"."+u.Field(i).Name())
			if err != nil {
				return nil, err
			}
			list = append(list, structField(u.Field(i), r, u.Tag(i)))
		}
		return reflect.StructOf(list), nil
	}
	return nil, fmt.Errorf("%s: %v can't be replicated", path, t)
}

// has reports whether a pointer to t has such methods.
func has(t types.Type, names ...string) bool {
	set := types.NewMethodSet(types.NewPointer(t))
	for _, name := range names {
		if set.Lookup(nil, name) == nil {
			return false
		}
	}
	return true
}

// inVar is what a Var holds.
func inVar(t types.Type) types.Type { return t.Underlying().(*types.Struct).Field(0).Type() }

func isGUID(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "GUID" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == netguidPath
}

// marksItself reports whether a field needs no setter.
func marksItself(t types.Type) bool {
	return has(t, "PushesNet") || has(t, "NetKey", "NetWrite", "NetRead")
}

// leaf is a number and how to come by it.
type leaf struct {
	expr string
	typ  types.Type
}

// leaves lists the numbers of a value in the order of package layout.
func (g *generator) leaves(t types.Type, expr string, list *[]leaf) error {
	switch {
	case has(t, "PushesNet"):
		if !has(t, "Get") {
			return fmt.Errorf("%s: %v has no method Get", expr, t)
		}
		return g.leaves(inVar(t), expr+".Get()", list)
	case has(t, "NetKey", "NetWrite", "NetRead"), has(t, "WriteNet", "ReadNet"), typeform.Opaque(t):
		return nil
	case has(t, "RefersNet"):
		*list = append(*list, leaf{expr + ".GUID()", types.Typ[types.Uint32]})
		return nil
	}
	switch u := t.Underlying().(type) {
	case *types.Array:
		for i := range int(u.Len()) {
			if err := g.leaves(u.Elem(), fmt.Sprintf("%s[%d]", expr, i), list); err != nil {
				return err
			}
		}
	case *types.Struct:
		for i := range u.NumFields() {
			f := u.Field(i)
			if f.Name() == "_" || !f.Exported() && f.Pkg() != g.pkg {
				return fmt.Errorf("%s.%s can't be read from package %s", expr, f.Name(), g.pkg.Name())
			}
			if err := g.leaves(f.Type(), expr+"."+f.Name(), list); err != nil {
				return err
			}
		}
	case *types.Basic:
		if u.Kind() != types.String {
			*list = append(*list, leaf{expr, t})
		}
	}
	return nil
}

// as is the number as another type.
func (v leaf) as(kind types.BasicKind) string {
	if types.Identical(v.typ, types.Typ[kind]) {
		return v.expr
	}
	return fmt.Sprintf("%s(%s)", types.Typ[kind], v.expr)
}

// encode is the number as it is sent.
func (v leaf) encode(u *layout.Unit) (expr string, usesMath bool) {
	switch u.Kind {
	case layout.Bool:
		return fmt.Sprintf("layout.Bit(%s)", v.as(types.Bool)), false
	case layout.Int:
		return fmt.Sprintf("layout.Signed(%s)", v.as(types.Int64)), false
	case layout.Max:
		return fmt.Sprintf("min(%s, %d)", v.as(types.Uint64), uint64(u.Max)+1), false
	case layout.Step:
		return fmt.Sprintf("layout.Steps(%s, %s)", v.as(types.Float64), strconv.FormatFloat(u.Step, 'g', -1, 64)), false
	case layout.Angle:
		return fmt.Sprintf("layout.Turn(%s, %d)", v.as(types.Float64), u.Bits), false
	case layout.Float32:
		return fmt.Sprintf("uint64(math.Float32bits(%s))", v.as(types.Float32)), true
	case layout.Float64:
		return fmt.Sprintf("math.Float64bits(%s)", v.as(types.Float64)), true
	}
	return v.as(types.Uint64), false
}

// typeName is a type as it is written in the package, with the imports it takes.
func (g *generator) typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == g.pkg {
			return ""
		}
		name := g.imports[p.Path()]
		for n := 2; name == ""; n++ {
			name = p.Name()
			if n > 2 {
				name += strconv.Itoa(n - 1)
			}
			for _, other := range g.imports {
				if other == name {
					name = ""
				}
			}
			if name == "layout" || name == "math" {
				name = "" // they are the template's
			}
		}
		g.imports[p.Path()] = name
		return name
	})
}

// paths is the imports as they are written.
func (g *generator) paths(c *class) (standard, others []string) {
	others = []string{strconv.Quote(layoutPath)}
	if c.Math {
		standard = append(standard, `"math"`)
	}
	for path, name := range g.imports {
		line := strconv.Quote(path)
		if !strings.HasSuffix(path, "/"+name) && path != name {
			line = name + " " + line
		}
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
			others = append(others, line)
		} else {
			standard = append(standard, line)
		}
	}
	slices.Sort(standard)
	slices.Sort(others)
	return standard, others
}
