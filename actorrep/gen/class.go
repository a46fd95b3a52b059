package main

import (
	"fmt"
	"go/token"
	"go/types"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// class is what the template needs of a struct.
type class struct {
	Package, Name, Receiver string
	Standard, Imports       []string
	Fields                  []field
	Units                   []unit
	Signature               []string
	Words                   int
	Math                    bool
}

// field is a field with a setter.
type field struct {
	Name, Setter, Type string
	Mask               string
	Elem               string // type of an array's or slice's elements, or ""
	Each               string // of an array: the units of the first element; of a slice: all, like Mask
	Stride             int    // units an element
}

// unit is a unit of numbers.
type unit struct {
	Index  int
	Path   string
	First  int
	Values []string // expressions
	All    string   // instead, one of all numbers
}

// generate is the code for a struct.
func generate(p *types.Package, name string) ([]byte, error) {
	obj, ok := p.Scope().Lookup(name).(*types.TypeName)
	if !ok {
		return nil, fmt.Errorf("no type %s in %s", name, p.Path())
	}
	named, ok := types.Unalias(obj.Type()).(*types.Named)
	if !ok || named.TypeParams().Len() > 0 {
		return nil, fmt.Errorf("%s must be a struct without type parameters", name)
	}
	st, ok := named.Underlying().(*types.Struct)
	if !ok {
		return nil, fmt.Errorf("%s must be a struct, not %v", name, named.Underlying())
	}
	if m, _, _ := types.LookupFieldOrMethod(types.NewPointer(named), true, p, "MarkUnits"); m == nil {
		return nil, fmt.Errorf("%s must embed actorrep.Base", name)
	}
	g := &generator{pkg: p, imports: map[string]string{}}
	c := &class{Package: p.Name(), Name: name, Receiver: receiver(name)}
	l, err := g.layout(st)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := g.units(c, st, l); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := g.fields(c, named, st, l); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.Standard, c.Imports = g.paths(c)
	for line := range strings.Lines(l.Signature()) {
		c.Signature = append(c.Signature, line)
	}
	return execute(c)
}

func receiver(name string) string {
	r, _ := utf8.DecodeRuneInString(name)
	switch short := string(unicode.ToLower(r)); short {
	case "m", "v", "i", "_":
		return "x" // they are the parameters' names
	default:
		return short
	}
}

// generator is the state of one struct.
type generator struct {
	pkg     *types.Package
	imports map[string]string // name by path
}

// tagged calls f for the struct's replicated fields.
func tagged(st *types.Struct, f func(v *types.Var, tag string) error) error {
	for i := range st.NumFields() {
		if _, ok := reflect.StructTag(st.Tag(i)).Lookup("net"); ok {
			if err := f(st.Field(i), st.Tag(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// units lists the units of numbers with the expressions of their values.
func (g *generator) units(c *class, st *types.Struct, l *layout.Layout) error {
	var values []leaf
	err := tagged(st, func(v *types.Var, _ string) error {
		return g.leaves(v.Type(), c.Receiver+"."+v.Name(), &values)
	})
	if err != nil {
		return err
	}
	found := 0
	for i := range l.Units {
		u := &l.Units[i]
		if u.Kind == layout.Group { // compared by package layout
			for j := range u.Parts {
				found += int(u.Parts[j].N)
			}
		}
		if u.Kind.IsBlob() {
			continue
		}
		out := unit{Index: i, Path: u.Path, First: c.Words}
		found += int(u.N)
		for j := range int(u.N) {
			if u.Number+j >= len(values) {
				return fmt.Errorf("%d numbers found where there should be more", len(values))
			}
			e, usesMath := values[u.Number+j].encode(u)
			out.Values = append(out.Values, e)
			c.Math = c.Math || usesMath
			c.Words++
		}
		if u.Kind == layout.Quat {
			q := values[u.Number:][:4]
			out.All = fmt.Sprintf("layout.Quaternion(%s, %s, %s, %s, %d)", q[0].as(types.Float64), q[1].as(types.Float64), q[2].as(types.Float64), q[3].as(types.Float64), u.Bits)
		}
		c.Units = append(c.Units, out)
	}
	if found != len(values) {
		return fmt.Errorf("%d numbers found where there should be %d", len(values), found)
	}
	return nil
}

// fields lists the setters.
func (g *generator) fields(c *class, named *types.Named, st *types.Struct, l *layout.Layout) error {
	return tagged(st, func(v *types.Var, _ string) error {
		t := v.Type()
		if marksItself(t) {
			return nil
		}
		mask := l.FieldMask(v.Name())
		f := field{Name: v.Name(), Setter: setter(v.Name()), Type: g.typeName(t), Mask: fmt.Sprintf("%#x", mask)}
		switch u := t.Underlying().(type) {
		case *types.Array:
			n := 0
			for m := mask; m != 0; m &= m - 1 {
				n++
			}
			f.Elem, f.Each = g.typeName(u.Elem()), f.Mask
			if n > 1 && mask&l.Groups == 0 {
				f.Stride = n / int(u.Len())
				f.Each = fmt.Sprintf("%#x", mask&-mask*(1<<f.Stride-1))
			}
		case *types.Slice:
			f.Elem, f.Each = g.typeName(u.Elem()), f.Mask
		}
		for _, name := range []string{f.Setter, f.Setter + "At"} {
			if m, _, _ := types.LookupFieldOrMethod(types.NewPointer(named), true, g.pkg, name); m != nil && (name == f.Setter || f.Elem != "") {
				return fmt.Errorf("%s is there already, and is to be generated for %s", name, v.Name())
			}
		}
		c.Fields = append(c.Fields, f)
		return nil
	})
}

func setter(name string) string {
	if token.IsExported(name) {
		return "Set" + name
	}
	r, n := utf8.DecodeRuneInString(name)
	return "set" + string(unicode.ToUpper(r)) + name[n:]
}
