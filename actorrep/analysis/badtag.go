package analysis

import (
	"fmt"
	"go/types"
	"slices"
	"strconv"

	"golang.org/x/tools/go/analysis"

	"github.com/bunchnet/bunchnet/actorrep/internal/typeform"
)

// BadTag finds net tags that Register refuses, of those that Go reads as net tags: it has the rules of package layout.
var BadTag = &analysis.Analyzer{
	Name: "badtag",
	Doc: `check net tags as World.Register does

A net tag with an unknown option, a value out of its range, an option that its field's type has no use for, or a notify
method that is missing or takes the wrong parameters makes Register fail when the game starts. Instead write options as the
documentation of package actorrep/layout lists them, and give notify= an exported method of the actor that takes nothing or
the field's old value.`,
	Requires: []*analysis.Analyzer{classes},
	Run:      runBadTag,
}

func runBadTag(pass *analysis.Pass) (any, error) {
	for _, c := range pass.ResultOf[classes].([]*class) {
		for i := range c.fields {
			f := &c.fields[i]
			for _, p := range f.options.problems {
				reportProblem(pass, f, p)
			}
			if !f.options.bad() {
				checkFit(pass, f)
			}
			if f.options.notify != nil && f.options.notify.value != "" && c.actor {
				checkNotify(pass, c, f)
			}
		}
	}
	return nil, nil
}

func reportProblem(pass *analysis.Pass, f *field, p tagProblem) {
	at, exact := f.span(p.option)
	var fixes []analysis.SuggestedFix
	if exact && p.fix != "" {
		fixes = edit("write "+p.fix, analysis.TextEdit{Pos: at.Pos(), End: at.End(), NewText: []byte(p.fix)})
	}
	sure := sureError
	if p.benign {
		sure = warning
	}
	report(pass, at, sure, fixes, "%s: %s", f.name, p.message)
}

// misfit is the first part of a field that an option isn't for; "" when there is none. Of values that aren't numbers, and are in a struct or an array, options are
// only idle.
func misfit(f *field, list []part) (opt *tagOption, message string) {
	o := f.options
	for _, p := range list {
		if p.kind > partRef {
			if opt := o.numeric(); opt != nil && p.bare && (p.kind == partCustom || isString(p.typ)) {
				return opt, fmt.Sprintf("%s= is for numbers, and %s is %s; cap= bounds a text", opt.key, p.path, describe(p.typ))
			}
			continue
		}
		switch {
		case p.kind != partFloat && o.step != nil:
			return o.step, fmt.Sprintf("q= is for floats, and %s is %s", p.path, describe(p.typ))
		case p.kind != partFloat && o.bits != nil:
			return o.bits, fmt.Sprintf("rot= is for floats, and %s is %s", p.path, describe(p.typ))
		case (p.kind != partFloat || p.of != 4) && o.quat != nil:
			return o.quat, fmt.Sprintf("quat= is for structs and arrays of four floats, x, y, z and w, and %s is %s", p.path, describe(p.typ))
		case p.kind != partUint && o.max != nil:
			return o.max, fmt.Sprintf("max= is for unsigned integers, and %s is %s", p.path, describe(p.typ))
		case p.kind == partUint && o.max != nil && !canHold(p.typ, o.max.value):
			return o.max, fmt.Sprintf("max=%s is more than a %s holds", o.max.value, describe(p.typ))
		}
	}
	return nil, ""
}

// ofNumbers is the options that are for numbers, nil where there is none.
func (o *tagOptions) ofNumbers() [4]*tagOption { return [...]*tagOption{o.step, o.bits, o.quat, o.max} }

// numeric is the first option of numbers, or nil.
func (o *tagOptions) numeric() *tagOption {
	for _, opt := range o.ofNumbers() {
		if opt != nil {
			return opt
		}
	}
	return nil
}

func isString(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

// canHold reports whether an unsigned integer of a type can be as large as the number in a tag.
func canHold(t types.Type, max string) bool {
	bits := 64
	switch b, _ := t.Underlying().(*types.Basic); b.Kind() {
	case types.Uint8:
		bits = 8
	case types.Uint16:
		bits = 16
	}
	_, err := strconv.ParseUint(max, 10, bits)
	return err == nil
}

func checkFit(pass *analysis.Pass, f *field) {
	o := f.options
	list, _ := parts(f.typ, f.name, o)
	if opt, message := misfit(f, list); opt != nil {
		at, _ := f.span(opt)
		report(pass, at, sureError, nil, "%s", message)
		return
	}
	var numbers, lengths, unknown bool
	for _, p := range list {
		switch {
		case p.kind <= partRef:
			numbers = true
		case p.kind == partText || p.kind == partSlice || p.kind == partCustom && typeform.Opaque(p.typ): // as its text
			lengths = true
		case p.kind == partTags:
			report(pass, f, sureError, nil, "the condition or notify of %s belongs to %s as a whole; write it here", p.path, f.name)
			return
		case p.kind == partBad || p.kind == partOwn:
			unknown = true
		}
	}
	if unknown || len(list) == 0 {
		return
	}
	for _, opt := range o.ofNumbers() {
		if opt != nil && !numbers {
			at, _ := f.span(opt)
			report(pass, at, warning, nil, "%s= does nothing: %s is %s", opt.key, f.name, describe(f.typ))
		}
	}
	if o.cap != nil && !lengths {
		at, _ := f.span(o.cap)
		report(pass, at, warning, nil, "cap= does nothing: it is for strings, bytes and slices, and %s is %s", f.name, describe(f.typ))
	}
}

// checkNotify looks for the notify method as Register does.
func checkNotify(pass *analysis.Pass, c *class, f *field) {
	opt := f.options.notify
	at, exact := f.span(opt)
	set := types.NewMethodSet(types.NewPointer(c.typ))
	var found *types.Func
	for i := range set.Len() {
		if m := set.At(i).Obj().(*types.Func); m.Name() == opt.value {
			found = m
		}
	}
	switch {
	case found == nil:
		report(pass, at, sureError, closestMethod(set, at, opt, exact), "%s has no method %s; declare func (%s *%s) %s(old %s), or without the parameter",
			c.name, opt.value, receiverName(c.name), c.name, opt.value, describe(oldType(f.typ)))
		return
	case !found.Exported():
		report(pass, at, sureError, nil, "notify method %s must be exported", opt.value)
		return
	}
	if named, ok := types.Unalias(c.typ).(*types.Named); ok && named.TypeParams().Len() > 0 {
		return // the method's T isn't the struct's
	}
	sig := set.Lookup(nil, opt.value).Type().(*types.Signature)
	if list, _ := parts(f.typ, f.name, nil); sig.Params().Len() > 0 && slices.ContainsFunc(list, func(p part) bool { return p.kind == partFast }) {
		report(pass, at, sureError, nil, "notify method %s must take nothing: a fast array has callbacks that know what was", opt.value)
		return
	}
	if n := sig.Params().Len(); n > 1 || n == 1 && (sig.Variadic() || !types.Identical(sig.Params().At(0).Type(), oldType(f.typ))) {
		report(pass, at, sureError, nil, "notify method %s must take nothing or the old %s, not %s", opt.value, describe(oldType(f.typ)), describe(sig.Params()))
	}
}

// closestMethod is the fix that names a method of nearly the same name.
func closestMethod(set *types.MethodSet, at analysis.Range, opt *tagOption, exact bool) []analysis.SuggestedFix {
	for i := range set.Len() {
		if m := set.At(i).Obj(); exact && m.Exported() && distance(m.Name(), opt.value) == 1 {
			return edit("call "+m.Name(), analysis.TextEdit{Pos: at.Pos(), End: at.End(), NewText: []byte("notify=" + m.Name())})
		}
	}
	return nil
}

// oldType is what a notify method is given: of a Var what is in it.
func oldType(t types.Type) types.Type {
	if elem := varOf(t); elem != nil {
		return elem
	}
	return t
}

func receiverName(class string) string { return string([]rune(class)[0] | 0x20) }

// describe is a type as one writes it within its package.
func describe(t types.Type) string {
	if tuple, ok := t.(*types.Tuple); ok {
		return types.TypeString(tuple, shortName)
	}
	return types.TypeString(t, shortName)
}

func shortName(p *types.Package) string { return p.Name() }
