package analysis

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/bunchnet/bunchnet/actorrep/internal/typeform"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// NotOwner finds RPCs that are called where they can't be, or needn't be.
var NotOwner = &analysis.Analyzer{
	Name: "notowner",
	Doc: `find RPCs called on actors without an owner, or at the wrong end

A ClientRPC goes to the client that owns the actor: on an actor just spawned, nobody does, and Call returns ErrNoOwner. It and
a MulticastRPC called in what only runs on clients return ErrAuthority. A ServerRPC called by the server itself crosses no
network. Instead call SetOwner before a ClientRPC, use a MulticastRPC for what all are to see, and call a plain function for
what stays at one end.`,
	Requires: []*analysis.Analyzer{inspect.Analyzer, classes, procedures},
	Run:      runNotOwner,
}

func runNotOwner(pass *analysis.Pass) (any, error) {
	set := pass.ResultOf[procedures].(*procedureSet)
	if len(set.called) == 0 {
		return nil, nil
	}
	ends := endsOf(pass, set)
	born := definitions(pass)
	for _, c := range set.called {
		if isTest(pass, c.call) {
			continue
		}
		life := lifeOf(pass, born, c)
		switch where := ends.of(pass.TypesInfo, c.at); {
		case c.Kind == clientRPC && life.made && life.spawned && !life.owned && !life.escaped:
			report(pass, c.call, sureError, nil, "client RPC %s on an actor that nobody owns: Call returns ErrNoOwner; call SetOwner first, or make it a MulticastRPC if all are to see it", c.name)
		case c.Kind != serverRPC && where.end == clientEnd:
			report(pass, c.call, sureError, nil, "only the server may call %s, and %s runs on clients: Call returns ErrAuthority; use a ServerRPC, or call a plain function for what happens here", c.name, where.what)
		case c.Kind == serverRPC && where.end == serverEnd:
			report(pass, c.call, warning, nil, "server RPC %s called in %s, which runs on the server: it runs here at once and sends nothing; call a plain function, or a ClientRPC if the client was meant", c.name, where.what)
		case c.Kind == serverRPC && life.spawned:
			report(pass, c.call, warning, nil, "server RPC %s called by the server, which has just spawned the actor: it runs here at once and sends nothing; call a plain function, or a ClientRPC if the client was meant", c.name)
		}
	}
	return nil, nil
}

// where is at which end something runs.
type where struct {
	end  end
	what string
}

type end uint8

const (
	eitherEnd end = iota
	serverEnd
	clientEnd
)

// endMap is the functions that run at one end only.
type endMap map[ast.Node]where

func endsOf(pass *analysis.Pass, set *procedureSet) endMap {
	m := endMap{}
	for _, d := range set.declared {
		switch {
		case d.body == nil || d.Kind == multicastRPC:
		case d.Kind == serverRPC:
			m[d.body] = where{serverEnd, "the body of a ServerRPC"}
		default:
			m[d.body] = where{clientEnd, "the body of a ClientRPC"}
		}
	}
	decls := funcDecls(pass)
	for _, c := range pass.ResultOf[classes].([]*class) {
		for i := range c.fields {
			if d := notifyDecl(c, &c.fields[i], decls); d != nil && c.actor {
				m[d] = where{clientEnd, "the notify " + d.Name.Name}
			}
		}
	}
	return m
}

// of is where a call runs: by its innermost function.
func (m endMap) of(info *types.Info, c inspector.Cursor) where {
	for up := range c.Enclosing((*ast.IfStmt)(nil), (*ast.FuncLit)(nil), (*ast.FuncDecl)(nil)) {
		if n, ok := up.Node().(*ast.IfStmt); !ok {
			return m[up.Node()]
		} else if asksEnd(info, n.Cond) {
			return where{}
		}
	}
	return where{}
}

// life is what happens to an actor in a function, before an RPC is called on it.
type life struct {
	made    bool // by &T{} or new(T), here
	spawned bool
	owned   bool // SetOwner was called
	escaped bool // somebody else may have done so
}

func lifeOf(pass *analysis.Pass, born map[types.Object]ast.Expr, c *called) (l life) {
	x := c.actor
	if u, ok := x.(*ast.UnaryExpr); ok && u.Op == token.AND {
		x = ast.Unparen(u.X)
	}
	id, ok := x.(*ast.Ident)
	if !ok {
		return l
	}
	object, ok := pass.TypesInfo.Uses[id].(*types.Var)
	f, inside := function(c.at)
	if !ok || !inside || object.Parent() == pass.Pkg.Scope() || object.IsField() {
		return l
	}
	l.made = isFresh(pass.TypesInfo, born[object])
	for use := range f.Preorder((*ast.Ident)(nil)) {
		if use.Node().Pos() >= c.call.Pos() {
			break
		}
		if id := use.Node().(*ast.Ident); pass.TypesInfo.Uses[id] == object {
			l.used(pass.TypesInfo, use, f)
		}
	}
	return l
}

// function is the innermost function around a node.
func function(c inspector.Cursor) (inspector.Cursor, bool) {
	for f := range c.Enclosing((*ast.FuncLit)(nil), (*ast.FuncDecl)(nil)) {
		return f, true
	}
	return c, false
}

// isFresh reports whether an expression is an actor that nobody has seen: &T{}, T{} or new(T).
func isFresh(info *types.Info, x ast.Expr) bool {
	if u, ok := x.(*ast.UnaryExpr); ok && u.Op == token.AND {
		x = ast.Unparen(u.X)
	}
	switch x := x.(type) {
	case *ast.CompositeLit:
		return true
	case *ast.CallExpr:
		return isBuiltin(info, x, "new")
	}
	return false
}

// used notes one use of the actor's variable.
func (l *life) used(info *types.Info, use, f inspector.Cursor) {
	if in, _ := function(use); in.Node() != f.Node() {
		l.escaped = true
		return
	}
	up := use.Parent()
	if u, ok := up.Node().(*ast.UnaryExpr); ok && u.Op == token.AND {
		use, up = up, up.Parent()
	}
	switch n := up.Node().(type) {
	case *ast.SelectorExpr:
		l.selected(info, n, up)
	case *ast.CallExpr:
		l.passed(info, n)
	case *ast.AssignStmt:
		l.escaped = l.escaped || use.ParentEdgeKind() == edge.AssignStmt_Lhs
	case *ast.ReturnStmt, *ast.BinaryExpr, *ast.CompositeLit, *ast.KeyValueExpr: // kept or compared
	default:
		l.escaped = true
	}
}

// selected notes a field, or a call of a method.
func (l *life) selected(info *types.Info, sel *ast.SelectorExpr, at inspector.Cursor) {
	m, ok := info.Uses[sel.Sel].(*types.Func)
	if !ok {
		l.escaped = l.escaped || typeform.Named(deref(info.TypeOf(sel)), actorrepPath, "Base")
		return
	}
	call, called := at.Parent().Node().(*ast.CallExpr)
	switch {
	case !called || !typeform.Named(deref(m.Signature().Recv().Type()), actorrepPath, "Base"):
		l.escaped = true
	case m.Name() == "SetOwner" && len(call.Args) == 1:
		l.owned = l.owned || !info.Types[call.Args[0]].IsNil()
	}
}

// passed notes that the actor is an argument.
func (l *life) passed(info *types.Info, call *ast.CallExpr) {
	m, _ := method(info, call)
	switch {
	case isMethod(m, actorrepPath, "World", "Spawn"):
		l.spawned = true
	case isMethod(m, actorrepPath, "RPC", "Call"), isBuiltin(info, call, "append"):
	default:
		l.escaped = true
	}
}

// definitions is what the variables of a package are defined as.
func definitions(pass *analysis.Pass) map[types.Object]ast.Expr {
	m := map[types.Object]ast.Expr{}
	define := func(id *ast.Ident, x ast.Expr) {
		if o := pass.TypesInfo.Defs[id]; o != nil {
			m[o] = ast.Unparen(x)
		}
	}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for n := range in.PreorderSeq((*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil)) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, x := range n.Lhs {
				if id, ok := x.(*ast.Ident); ok && n.Tok == token.DEFINE {
					define(id, n.Rhs[min(i, len(n.Rhs)-1)])
				}
			}
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if len(n.Values) > 0 {
					define(id, n.Values[min(i, len(n.Values)-1)])
				}
			}
		}
	}
	return m
}
