package analysis

import (
	"go/ast"
	"go/types"
	"reflect"

	"github.com/bunchnet/bunchnet/actorrep/internal/typeform"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

type procedureKind uint8

const (
	serverRPC procedureKind = iota
	clientRPC
	multicastRPC
)

var procedureKinds = map[string]procedureKind{"ServerRPC": serverRPC, "ClientRPC": clientRPC, "MulticastRPC": multicastRPC,
	"ServerRPC0": serverRPC, "ClientRPC0": clientRPC, "MulticastRPC0": multicastRPC}

// procedure is a fact of a variable that holds an RPC.
type procedure struct {
	Kind     procedureKind
	Reliable bool
}

// AFact marks it as a fact.
func (*procedure) AFact() {}

// String is the fact as tests write it.
func (p *procedure) String() string {
	s := [...]string{"server", "client", "multicast"}[p.Kind]
	if p.Reliable {
		s = "reliable " + s
	}
	return s
}

// declared is a place where an RPC is made.
type declared struct {
	procedure
	call   *ast.CallExpr
	params types.Type // nil for none
	body   ast.Node   // of what runs, a FuncLit or FuncDecl; nil when it is elsewhere
}

// called is a place where an RPC is called.
type called struct {
	*procedure
	name  string
	at    inspector.Cursor // the CallExpr
	call  *ast.CallExpr
	actor ast.Expr
}

type procedureSet struct {
	declared []*declared
	called   []*called
}

// procedures finds where RPCs are made and called, in this package and, as facts, in others.
var procedures = &analysis.Analyzer{
	Name:       "bunchvetprocedures",
	Doc:        "find RPCs and their calls",
	Requires:   []*analysis.Analyzer{inspect.Analyzer},
	FactTypes:  []analysis.Fact{(*procedure)(nil)},
	ResultType: reflect.TypeFor[*procedureSet](),
	Run:        runProcedures,
}

func runProcedures(pass *analysis.Pass) (any, error) {
	s := &procedureSet{}
	if !uses(pass.Pkg) {
		return s, nil
	}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	decls := funcDecls(pass)
	for call := range inspector.All[*ast.CallExpr](in) {
		if d := declaration(pass.TypesInfo, decls, call); d != nil {
			s.declared = append(s.declared, d)
		}
	}
	local := s.variables(pass, in)
	s.handlers(pass.TypesInfo, in, local, decls)
	for c := range in.Root().Preorder((*ast.CallExpr)(nil)) {
		call := c.Node().(*ast.CallExpr)
		m, x := method(pass.TypesInfo, call)
		if !isMethod(m, actorrepPath, "RPC", "Call") && !isMethod(m, actorrepPath, "RPC0", "Call") || len(call.Args) == 0 {
			continue
		}
		object := objectOf(pass.TypesInfo, x)
		if object == nil {
			continue
		}
		p := local[object]
		if fact := new(procedure); p == nil && object.Pkg() != pass.Pkg && pass.ImportObjectFact(object, fact) {
			p = fact
		}
		if p != nil {
			s.called = append(s.called, &called{p, object.Name(), c, call, ast.Unparen(call.Args[0])})
		}
	}
	return s, nil
}

// handlers finds what RPC.Handle gives to the procedures of this package.
func (s *procedureSet) handlers(info *types.Info, in *inspector.Inspector, local map[types.Object]*procedure, decls map[*types.Func]*ast.FuncDecl) {
	for call := range inspector.All[*ast.CallExpr](in) {
		m, x := method(info, call)
		if !isMethod(m, actorrepPath, "RPC", "Handle") && !isMethod(m, actorrepPath, "RPC0", "Handle") || len(call.Args) != 1 {
			continue
		}
		p := local[objectOf(info, x)]
		for _, d := range s.declared {
			if p == &d.procedure {
				d.body = handler(info, decls, call.Args[0])
			}
		}
	}
}

// handler is a function that an expression names or is; nil when it is elsewhere.
func handler(info *types.Info, decls map[*types.Func]*ast.FuncDecl, x ast.Expr) ast.Node {
	switch body := ast.Unparen(x).(type) {
	case *ast.FuncLit:
		return body
	default:
		if f, ok := objectOf(info, body).(*types.Func); ok && decls[f] != nil {
			return decls[f]
		}
	}
	return nil
}

// declaration is what a call makes when it is one of ServerRPC, ClientRPC, MulticastRPC, or one of those without parameters.
func declaration(info *types.Info, decls map[*types.Func]*ast.FuncDecl, call *ast.CallExpr) *declared {
	f, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg().Path() != actorrepPath || f.Signature().Recv() != nil || len(call.Args) == 0 {
		return nil
	}
	kind, ok := procedureKinds[f.Name()]
	named, isRPC := types.Unalias(deref(info.TypeOf(call))).(*types.Named)
	if !ok || !isRPC {
		return nil
	}
	d := &declared{call: call, body: handler(info, decls, call.Args[0]), procedure: procedure{Kind: kind}}
	if named.TypeArgs().Len() == 2 {
		d.params = named.TypeArgs().At(1)
	}
	for _, option := range call.Args[1:] {
		if o := objectOf(info, option); o != nil && o.Name() == "Reliable" && o.Pkg() != nil && o.Pkg().Path() == actorrepPath {
			d.Reliable = true
		}
	}
	return d
}

// variables finds what the RPCs are kept in, and exports the facts.
func (s *procedureSet) variables(pass *analysis.Pass, in *inspector.Inspector) map[types.Object]*procedure {
	local := map[types.Object]*procedure{}
	keep := func(object types.Object, value ast.Expr) {
		d := s.made(pass.TypesInfo, value)
		if object == nil || d == nil {
			return
		}
		local[object] = &d.procedure
		if object.Pkg() == pass.Pkg && object.Exported() {
			pass.ExportObjectFact(object, &d.procedure)
		}
	}
	for n := range in.PreorderSeq((*ast.ValueSpec)(nil), (*ast.AssignStmt)(nil), (*ast.KeyValueExpr)(nil)) {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, v := range n.Values {
				keep(pass.TypesInfo.Defs[n.Names[min(i, len(n.Names)-1)]], v)
			}
		case *ast.AssignStmt:
			for i, v := range n.Rhs {
				keep(objectOf(pass.TypesInfo, n.Lhs[i]), v)
			}
		case *ast.KeyValueExpr:
			keep(objectOf(pass.TypesInfo, n.Key), n.Value)
		}
	}
	return local
}

// made is the RPC that an expression makes, with or without methods like Validated called on it.
func (s *procedureSet) made(info *types.Info, x ast.Expr) *declared {
	for {
		call, ok := ast.Unparen(x).(*ast.CallExpr)
		if !ok {
			return nil
		}
		for _, d := range s.declared {
			if d.call == call {
				return d
			}
		}
		m, on := method(info, call)
		if m == nil || !typeform.Named(deref(m.Signature().Recv().Type()), actorrepPath, "RPC") && !typeform.Named(deref(m.Signature().Recv().Type()), actorrepPath, "RPC0") {
			return nil
		}
		x = on
	}
}

// objectOf is what a name, with or without a package or struct before it, stands for; nil for other expressions.
func objectOf(info *types.Info, x ast.Expr) types.Object {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return info.ObjectOf(x)
	case *ast.SelectorExpr:
		return info.ObjectOf(x.Sel)
	case *ast.IndexExpr: // an instantiated function
		if _, ok := info.TypeOf(x.X).(*types.Signature); ok {
			return objectOf(info, x.X)
		}
	}
	return nil
}

// funcDecls is the functions of a package that have a body.
func funcDecls(pass *analysis.Pass) map[*types.Func]*ast.FuncDecl {
	decls := map[*types.Func]*ast.FuncDecl{}
	for _, f := range pass.Files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				if f, ok := pass.TypesInfo.Defs[d.Name].(*types.Func); ok {
					decls[f] = d
				}
			}
		}
	}
	return decls
}
