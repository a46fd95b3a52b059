package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep/internal/typeform"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// ticks knows what of a package runs every tick.
type ticks struct {
	pass  *analysis.Pass
	info  *types.Info
	root  inspector.Cursor
	decls map[*types.Func]*ast.FuncDecl
	born  map[types.Object]ast.Expr
	// funcs is the functions that run every tick, and how one knows.
	funcs map[ast.Node]string
}

// tickNames is what functions are called that engines, and people, call every tick.
var tickNames = map[string]bool{"tick": true, "step": true, "update": true, "fixedupdate": true, "lateupdate": true, "ontick": true, "onupdate": true, "frame": true, "onframe": true}

func newTicks(pass *analysis.Pass) *ticks {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	t := &ticks{pass: pass, info: pass.TypesInfo, root: in.Root(), decls: funcDecls(pass), born: definitions(pass), funcs: map[ast.Node]string{}}
	for f, d := range t.decls {
		if isTickFunc(f) {
			t.funcs[d] = f.Name()
		}
	}
	for object, x := range t.born {
		if lit, ok := x.(*ast.FuncLit); ok && tickNames[strings.ToLower(object.Name())] {
			t.funcs[lit] = object.Name()
		}
	}
	for call := range inspector.All[*ast.CallExpr](in) {
		if m, _ := method(t.info, call); isMethod(m, driverPath, "Driver", "Run") && len(call.Args) == 2 {
			if body := t.body(call.Args[1]); body != nil {
				t.funcs[body] = "the step of Run"
			}
		}
	}
	t.spread()
	return t
}

// body is the function that an expression stands for, when it is in this package.
func (t *ticks) body(x ast.Expr) ast.Node {
	x = ast.Unparen(x)
	if lit, ok := x.(*ast.FuncLit); ok {
		return lit
	}
	switch o := objectOf(t.info, x).(type) {
	case *types.Func:
		if d := t.decls[o]; d != nil {
			return d
		}
	case *types.Var:
		if lit, ok := t.born[o].(*ast.FuncLit); ok {
			return lit
		}
	}
	return nil
}

// isTickFunc reports whether a function has a tick's name and takes nothing but what a tick is given.
func isTickFunc(f *types.Func) bool {
	if !tickNames[strings.ToLower(f.Name())] {
		return false
	}
	for v := range f.Signature().Params().Variables() {
		b, basic := v.Type().Underlying().(*types.Basic)
		p := typePackage(v.Type())
		switch {
		case basic && b.Info()&types.IsNumeric != 0:
		case p != nil && (p.Path() == "time" || p.Path() == "context" || inModule(p)):
		default:
			return false
		}
	}
	return true
}

func typePackage(t types.Type) *types.Package {
	if n, ok := types.Unalias(deref(t)).(*types.Named); ok {
		return n.Obj().Pkg()
	}
	return nil
}

// spread adds what functions of every tick always call.
func (t *ticks) spread() {
	for {
		before := len(t.funcs)
		for c := range t.root.Preorder((*ast.CallExpr)(nil)) {
			call := c.Node().(*ast.CallExpr)
			f, ok := typeutil.Callee(t.info, call).(*types.Func)
			if !ok || t.decls[f] == nil || t.funcs[t.decls[f]] != "" {
				continue
			}
			subjects := call.Args
			if _, x := method(t.info, call); x != nil {
				subjects = append([]ast.Expr{x}, subjects...)
			}
			if reason := t.always(c, subjects); reason != "" {
				t.funcs[t.decls[f]] = reason
			}
		}
		if len(t.funcs) == before {
			return
		}
	}
}

// isTickLoop reports whether a loop turns once a tick, by what it does: it ticks a driver or a world, waits, or calls
// a tick function.
func (t *ticks) isTickLoop(loop ast.Node) bool {
	if loop, ok := loop.(*ast.RangeStmt); ok {
		if _, ok := t.info.TypeOf(loop.X).Underlying().(*types.Chan); ok {
			return t.isTimer(loop.X)
		}
	}
	found := false
	ast.Inspect(loopBody(loop), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW && t.isTimer(n.X)
		case *ast.CallExpr:
			found = found || t.ticks(n)
		}
		return !found
	})
	return found
}

func (t *ticks) isTimer(x ast.Expr) bool {
	ch, ok := t.info.TypeOf(x).Underlying().(*types.Chan)
	return ok && typeform.Named(ch.Elem(), "time", "Time")
}

func (t *ticks) ticks(call *ast.CallExpr) bool {
	f, ok := typeutil.Callee(t.info, call).(*types.Func)
	if !ok || f.Pkg() == nil {
		return false
	}
	if f.Pkg().Path() == "time" && f.Name() == "Sleep" || inModule(f.Pkg()) && (f.Name() == "TickDispatch" || f.Name() == "TickFlush") {
		return true
	}
	return isTickFunc(f)
}
