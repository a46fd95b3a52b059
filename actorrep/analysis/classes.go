package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// class is a struct with net tags.
type class struct {
	name   string
	typ    types.Type // nil for a struct without a name
	spec   *ast.TypeSpec
	actor  bool // it embeds Base
	fields []field
}

// field is a tagged one.
type field struct {
	name    string
	typ     types.Type
	object  *types.Var
	tag     *ast.BasicLit
	start   token.Pos // of the net tag's text; NoPos when the literal has escapes
	options *tagOptions
}

// Pos and End are the tag's, the range of what is said of a field.
func (f *field) Pos() token.Pos { return f.tag.Pos() }

// End is the end of the tag.
func (f *field) End() token.Pos { return f.tag.End() }

// replicated is the tagged fields of an actor by object.
func (c *class) replicated(v *types.Var) *field {
	for i := range c.fields {
		if c.fields[i].object == v {
			return &c.fields[i]
		}
	}
	return nil
}

// classes finds the structs of a package that have net tags.
var classes = &analysis.Analyzer{
	Name:       "bunchvetclasses",
	Doc:        "find structs with net tags",
	Requires:   []*analysis.Analyzer{inspect.Analyzer},
	ResultType: reflect.TypeFor[[]*class](),
	Run:        runClasses,
}

func runClasses(pass *analysis.Pass) (any, error) {
	var list []*class
	users := uses(pass.Pkg)
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for spec := range inspector.All[*ast.TypeSpec](in) {
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		object := pass.TypesInfo.Defs[spec.Name]
		if object == nil {
			continue
		}
		c := &class{name: spec.Name.Name, typ: object.Type(), spec: spec, actor: isActor(object.Type())}
		if c.fields = taggedFields(pass.TypesInfo, st); len(c.fields) > 0 && (users || c.actor) {
			list = append(list, c)
		}
	}
	return list, nil
}

func taggedFields(info *types.Info, st *ast.StructType) (list []field) {
	t, ok := info.TypeOf(st).(*types.Struct)
	if !ok {
		return nil
	}
	i := 0
	for _, f := range st.Fields.List {
		for range max(len(f.Names), 1) {
			if f.Tag != nil && i < t.NumFields() {
				if tag, ok := reflect.StructTag(t.Tag(i)).Lookup("net"); ok {
					v := t.Field(i)
					list = append(list, field{name: v.Name(), typ: v.Type(), object: v, tag: f.Tag, start: tagStart(f.Tag, tag), options: parseTag(tag)})
				}
			}
			i++
		}
	}
	return list
}

// tagStart is where the text of the net tag begins in a raw string.
func tagStart(lit *ast.BasicLit, tag string) token.Pos {
	if i := strings.Index(lit.Value, "net:"+strconv.Quote(tag)); lit.Value[0] == '`' && i >= 0 {
		return lit.Pos() + token.Pos(i+len(`net:"`))
	}
	return token.NoPos
}

// span is the range of an option in its file, or the whole tag's.
func (f *field) span(o *tagOption) (at analysis.Range, exact bool) {
	if !f.start.IsValid() {
		return f, false
	}
	start := f.start + token.Pos(o.offset)
	return analysisRange{start, start + token.Pos(len(o.text))}, true
}

type analysisRange struct{ pos, end token.Pos }

// Pos is the beginning.
func (r analysisRange) Pos() token.Pos { return r.pos }

// End is the end.
func (r analysisRange) End() token.Pos { return r.end }
