package schema

import (
	"fmt"
	"strings"
)

// Change is a difference between two builds of a game.
type Change struct {
	Class string `json:"class"`
	// Name is the field's or the procedure's; "" when it is the class itself.
	Name     string   `json:"name,omitempty"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
}

// Severity is what a Change means for two builds that meet.
type Severity string

// The severities.
const (
	// Fine changes nothing that both have.
	Fine Severity = "fine"
	// Risky goes well but for values that one of the builds can't hold.
	Risky Severity = "risky"
	// Breaking makes a client refuse the class or the procedure, by name.
	Breaking Severity = "breaks"
)

// Diff lists what is different in next, by the rules by which a client takes a server's classes, whichever of the builds
// is the client. No Breaking change among them: the two may talk to each other.
func (s Schema) Diff(next Schema) []Change {
	d := differ{}
	compareLists(s.Classes, next.Classes, func(c Class) string { return c.Name }, d.class)
	return d.list
}

// differ gathers changes.
type differ struct {
	name string // of the class at hand
	list []Change
}

func (d *differ) add(severity Severity, name, format string, args ...any) {
	d.list = append(d.list, Change{Class: d.name, Name: name, Severity: severity, What: fmt.Sprintf(format, args...)})
}

// compareLists calls f with what has the same name in both, in the order of the first, then with what is new; nil is
// what isn't there.
func compareLists[T any](a, b []T, name func(T) string, f func(name string, a, b *T)) {
	find := func(list []T, want string) *T {
		for i := range list {
			if name(list[i]) == want {
				return &list[i]
			}
		}
		return nil
	}
	for i := range a {
		f(name(a[i]), &a[i], find(b, name(a[i])))
	}
	for i := range b {
		if find(a, name(b[i])) == nil {
			f(name(b[i]), nil, &b[i])
		}
	}
}

func (d *differ) class(name string, a, b *Class) {
	d.name = name
	switch {
	case b == nil:
		d.add(Fine, "", "class removed: its actors aren't shown by a build without it")
	case a == nil:
		d.add(Fine, "", "class added: its actors aren't shown by a build without it")
	default:
		compareLists(a.Fields, b.Fields, func(f Field) string { return f.Name }, d.field)
		compareLists(a.Procedures, b.Procedures, func(p Procedure) string { return p.Name }, d.procedure)
	}
}

func (d *differ) field(name string, a, b *Field) {
	switch {
	case b == nil:
		d.add(Fine, name, "removed: skipped by a build without it")
		return
	case a == nil:
		d.add(Fine, name, "added: keeps its default with a server without it")
		return
	case a.Kind != b.Kind || a.Numbers != b.Numbers:
		d.add(Breaking, name, "retyped from %s to %s", a.form(), b.form())
		return
	case a.Form != b.Form:
		d.add(Breaking, name, "a %s of something else", a.Kind)
		return
	}
	if a.Size != b.Size && (a.Kind == "int" || a.Kind == "uint" || a.Kind == "max") {
		d.add(Risky, name, "%s became %s: values that the smaller can't hold arrive as its largest", a.Type, b.Type)
	}
	switch {
	case a.Max == b.Max:
	case a.Kind == "max":
		d.add(Fine, name, "max=%d became %d", a.Max, b.Max)
	default:
		d.add(Risky, name, "cap=%d became %d: the build with the smaller refuses what is longer", a.Max, b.Max)
	}
	if a.Bits != b.Bits || a.Step != b.Step {
		d.add(Fine, name, "%s became %s", a.form(), b.form())
	}
	if a.Condition != b.Condition {
		d.add(Fine, name, "condition %q became %q: the server's counts", a.Condition, b.Condition)
	}
}

// form is a field's form in words.
func (f *Field) form() string {
	text := f.Kind
	switch f.Kind {
	case "max":
		text = fmt.Sprintf("max of %d", f.Max)
	case "step":
		text = fmt.Sprintf("step of %v", f.Step)
	case "angle":
		text = fmt.Sprintf("angle of %d bits", f.Bits)
	}
	if f.Numbers > 1 {
		text = fmt.Sprintf("%d × %s", f.Numbers, text)
	}
	return text
}

func (d *differ) procedure(name string, a, b *Procedure) {
	switch {
	case b == nil:
		d.add(Fine, name, "procedure removed: a call of it is refused at the caller, or dropped")
	case a == nil:
		d.add(Fine, name, "procedure added: a call of it is refused at the caller, or dropped")
	case a.Kind != b.Kind || a.Reliable != b.Reliable:
		d.add(Breaking, name, "procedure retyped from %s to %s", a.form(), b.form())
	case a.Form != b.Form:
		d.add(Breaking, name, "procedure with other parameters: %s", otherParameters(a, b))
	}
}

func (p *Procedure) form() string {
	if p.Reliable {
		return "reliable " + p.Kind
	}
	return "unreliable " + p.Kind
}

// otherParameters is which.
func otherParameters(a, b *Procedure) string {
	var list []string
	compareLists(a.Parameters, b.Parameters, func(f Field) string { return f.Name }, func(name string, x, y *Field) {
		if name == "" {
			name = "the value"
		}
		switch {
		case y == nil:
			list = append(list, name+" removed")
		case x == nil:
			list = append(list, name+" added")
		case x.form() != y.form() || x.Max != y.Max || x.Form != y.Form:
			list = append(list, fmt.Sprintf("%s was %s, is %s", name, x.form(), y.form()))
		}
	})
	if list == nil {
		list = []string{"in another order"}
	}
	return strings.Join(list, "; ")
}
