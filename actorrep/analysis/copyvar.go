package analysis

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/bunchnet/bunchnet/actorrep/internal/typeform"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// CopyVar finds actors and Vars that are copied.
var CopyVar = &analysis.Analyzer{
	Name: "copyvar",
	Doc: `find copies of actors and of replicated Vars

An actorrep.Base knows its actor, and an actorrep.Var knows the actor it belongs to: a copy of either still speaks for the
original, so that Set on a copy marks the wrong actor, and a copied actor isn't in the world; the copy of a fastarray.List
shares its elements. Instead hold actors by pointer,
take the value of a Var with Get, and keep what you want to remember of an actor in a struct of plain values.`,
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      runCopyVar,
}

func runCopyVar(pass *analysis.Pass) (any, error) {
	if !uses(pass.Pkg) && !anyActor(pass.Pkg) || pass.Pkg.Path() == actorrepPath {
		return nil, nil // actorrep is who may
	}
	c := &copies{pass: pass}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for cur := range in.Root().Preorder((*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil), (*ast.RangeStmt)(nil), (*ast.FuncDecl)(nil),
		(*ast.FuncLit)(nil), (*ast.ReturnStmt)(nil), (*ast.CallExpr)(nil), (*ast.CompositeLit)(nil), (*ast.SendStmt)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.AssignStmt:
			c.assign(n)
		case *ast.ValueSpec:
			for _, x := range n.Values {
				c.copied(x, nil, "the assignment copies")
			}
		case *ast.RangeStmt:
			c.ranged(cur, n)
		case *ast.FuncDecl:
			c.receiver(cur, n)
			c.params(n.Type)
		case *ast.FuncLit:
			c.params(n.Type)
		case *ast.ReturnStmt:
			for _, x := range n.Results {
				c.copied(x, nil, "the return copies")
			}
		case *ast.CallExpr:
			c.called(n)
		case *ast.CompositeLit:
			for _, x := range n.Elts {
				if kv, ok := x.(*ast.KeyValueExpr); ok {
					x = kv.Value
				}
				c.copied(x, nil, "the literal copies")
			}
		case *ast.SendStmt:
			c.copied(n.Value, nil, "the send copies")
		}
	}
	return nil, nil
}

// anyActor reports whether a package that doesn't import actorrep may still meet its types.
func anyActor(p *types.Package) bool {
	for _, imp := range p.Imports() {
		if uses(imp) && imp.Path() != actorrepPath {
			return true
		}
	}
	return false
}

type copies struct{ pass *analysis.Pass }

// holds is what a value of type t holds that must not be copied: "an actorrep.Base", "an actorrep.Var", ... or "".
func holds(t types.Type) string { return held(t, 0) }

func held(t types.Type, depth int) string {
	switch {
	case t == nil || depth > 20:
		return ""
	case typeform.Named(t, actorrepPath, "Base"):
		return "an actorrep.Base"
	case typeform.Named(t, actorrepPath, "Var"):
		return "an actorrep.Var"
	case typeform.Named(t, fastPath, "List"):
		return "a fastarray.List"
	}
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return ""
	}
	switch u := t.Underlying().(type) {
	case *types.Array:
		return held(u.Elem(), depth+1)
	case *types.Struct:
		for v := range u.Fields() {
			if h := held(v.Type(), depth+1); h != "" {
				return h
			}
		}
	}
	return ""
}

func (c *copies) describe(t types.Type, h string) string {
	if typeform.Named(t, actorrepPath, "Var") || typeform.Named(t, actorrepPath, "Base") || typeform.Named(t, fastPath, "List") {
		return describe(t)
	}
	return describe(t) + ", which holds " + h
}

func instead(t types.Type) string {
	if typeform.Named(t, actorrepPath, "Var") {
		return "take its value with Get"
	}
	return "use a pointer"
}

// copied reports x when its value is one that already lives elsewhere: a variable, field, element or what a pointer points to.
func (c *copies) copied(x ast.Expr, fixes []analysis.SuggestedFix, how string) {
	t := c.lasting(x)
	if t == nil {
		return
	}
	report(c.pass, x, warning, fixes, "%s %s; %s", how, c.describe(t, holds(t)), instead(t))
}

// lasting is x's type when x holds something of actorrep and lives elsewhere; else nil.
func (c *copies) lasting(x ast.Expr) types.Type {
	x = ast.Unparen(x)
	switch y := x.(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
	case *ast.StarExpr:
		if call, ok := ast.Unparen(y.X).(*ast.CallExpr); ok && isBuiltin(c.pass.TypesInfo, call, "new") {
			return nil // nobody else has it
		}
	default:
		return nil
	}
	if tv, ok := c.pass.TypesInfo.Types[x]; ok && tv.IsValue() && holds(tv.Type) != "" {
		return tv.Type
	}
	return nil
}

func isBuiltin(info *types.Info, call *ast.CallExpr, names ...string) bool {
	b, ok := objectOf(info, call.Fun).(*types.Builtin)
	if !ok {
		return false
	}
	for _, n := range names {
		if b.Name() == n {
			return true
		}
	}
	return false
}

func (c *copies) assign(n *ast.AssignStmt) {
	for i, x := range n.Rhs {
		if len(n.Lhs) == len(n.Rhs) {
			if id, ok := n.Lhs[i].(*ast.Ident); ok && id.Name == "_" {
				continue
			}
		}
		c.copied(x, c.setInstead(n), "the assignment copies")
	}
}

// setInstead is the fix of a.V = b.V, both Vars: a.V.Set(b.V.Get()).
func (c *copies) setInstead(n *ast.AssignStmt) []analysis.SuggestedFix {
	if n.Tok != token.ASSIGN || len(n.Lhs) != 1 || len(n.Rhs) != 1 || varOf(c.pass.TypesInfo.TypeOf(n.Rhs[0])) == nil {
		return nil
	}
	to, from := n.Lhs[0], n.Rhs[0]
	if _, ok := ast.Unparen(to).(*ast.StarExpr); ok {
		return nil
	}
	if _, ok := ast.Unparen(from).(*ast.StarExpr); ok {
		return nil
	}
	return edit("set the value", analysis.TextEdit{Pos: to.End(), End: from.Pos(), NewText: []byte(".Set(")},
		analysis.TextEdit{Pos: from.End(), End: from.End(), NewText: []byte(".Get())")})
}

func (c *copies) ranged(cur inspector.Cursor, n *ast.RangeStmt) {
	id, ok := n.Value.(*ast.Ident)
	if !ok || id.Name == "_" {
		return
	}
	t := c.pass.TypesInfo.TypeOf(id)
	if h := holds(t); h != "" {
		report(c.pass, id, warning, c.byIndex(cur, n, id), "each turn copies %s; range over the index", c.describe(t, h))
	}
}

// byIndex is the fix of a range over a slice, when all that is done with the element is to select from it.
func (c *copies) byIndex(cur inspector.Cursor, n *ast.RangeStmt, value *ast.Ident) []analysis.SuggestedFix {
	key, ok := n.Key.(*ast.Ident)
	over, simple := ast.Unparen(n.X).(*ast.Ident)
	object := c.pass.TypesInfo.Defs[value]
	if !ok || !simple || n.Tok != token.DEFINE || object == nil || !c.onlySelected(cur, object, value) {
		return nil
	}
	if _, ok := c.pass.TypesInfo.TypeOf(n.X).Underlying().(*types.Slice); !ok {
		return nil
	}
	index := key.Name
	if index == "_" {
		index = "i"
		if inner := c.pass.TypesInfo.Scopes[n]; inner == nil || inner.Parent().Lookup("i") != nil || declares(n.Body, "i") {
			return nil
		}
	}
	return edit("range over the index", analysis.TextEdit{Pos: key.Pos(), End: value.End(), NewText: []byte(index)},
		analysis.TextEdit{Pos: n.Body.Lbrace + 1, End: n.Body.Lbrace + 1, NewText: []byte("\n" + value.Name + " := &" + over.Name + "[" + index + "]")})
}

// declares reports whether a name occurs in a body at all.
func declares(body ast.Node, name string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// onlySelected reports whether every use of an object within cur is the X of a selector.
func (c *copies) onlySelected(cur inspector.Cursor, object types.Object, except *ast.Ident) bool {
	for use := range cur.Preorder((*ast.Ident)(nil)) {
		id := use.Node().(*ast.Ident)
		if id == except || c.pass.TypesInfo.ObjectOf(id) != object {
			continue
		}
		if sel, ok := use.Parent().Node().(*ast.SelectorExpr); !ok || sel.X != id {
			return false
		}
	}
	return true
}

func (c *copies) receiver(cur inspector.Cursor, n *ast.FuncDecl) {
	if n.Recv == nil || len(n.Recv.List) != 1 {
		return
	}
	field := n.Recv.List[0]
	t := c.pass.TypesInfo.TypeOf(field.Type)
	h := holds(t)
	if h == "" {
		return
	}
	var fixes []analysis.SuggestedFix
	if len(field.Names) == 0 || c.onlySelected(cur, c.pass.TypesInfo.Defs[field.Names[0]], field.Names[0]) {
		fixes = edit("take a pointer", analysis.TextEdit{Pos: field.Type.Pos(), End: field.Type.Pos(), NewText: []byte("*")})
	}
	report(c.pass, field.Type, warning, fixes, "each call of %s copies %s; take a pointer", n.Name.Name, c.describe(t, h))
}

func (c *copies) params(f *ast.FuncType) {
	for _, p := range f.Params.List {
		t := c.pass.TypesInfo.TypeOf(p.Type)
		if h := holds(t); h != "" {
			report(c.pass, p.Type, warning, nil, "each call copies %s; %s", c.describe(t, h), takeInstead(t))
		}
	}
}

func takeInstead(t types.Type) string {
	if elem := varOf(t); elem != nil {
		return "take the " + describe(elem) + " that Get returns"
	}
	return "take a pointer"
}

func (c *copies) called(n *ast.CallExpr) {
	info := c.pass.TypesInfo
	switch {
	case isBuiltin(info, n, "append", "copy"):
		if s, ok := info.TypeOf(n.Args[0]).Underlying().(*types.Slice); ok && holds(s.Elem()) != "" {
			report(c.pass, n, warning, nil, "%s moves %s; use a slice of pointers", objectOf(info, n.Fun).Name(), c.describe(s.Elem(), holds(s.Elem())))
		}
		return
	case isBuiltin(info, n, "len", "cap", "Sizeof", "Offsetof", "Alignof"):
		return
	}
	if tv, ok := info.Types[n.Fun]; ok && tv.IsType() {
		return // a conversion; what becomes of it is looked at
	}
	if f, ok := objectOf(info, n.Fun).(*types.Func); ok && f.Pkg() == c.pass.Pkg && takesValue(f.Signature()) {
		return // reported where it is declared
	}
	for _, x := range n.Args {
		c.copied(x, nil, "the call copies")
	}
}

func takesValue(sig *types.Signature) bool {
	for v := range sig.Params().Variables() {
		if holds(v.Type()) != "" {
			return true
		}
	}
	return false
}
