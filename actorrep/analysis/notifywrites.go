package analysis

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// NotifyWrites finds notifies that write replicated fields.
var NotifyWrites = &analysis.Analyzer{
	Name: "notifywrites",
	Doc: `find notify methods that write replicated fields

A notify runs on a client after the server's value has been set there. What it writes to replicated fields of its actor
reaches nobody and stands until the server's next value, so that the client shows what isn't so. Instead keep what the client
makes of the value (an animation, a smoothed copy) in fields without a net tag, and ask the server for changes with a ServerRPC.`,
	Requires: []*analysis.Analyzer{classes},
	Run:      runNotifyWrites,
}

func runNotifyWrites(pass *analysis.Pass) (any, error) {
	decls := funcDecls(pass)
	for _, c := range pass.ResultOf[classes].([]*class) {
		if !c.actor {
			continue
		}
		looked := map[*ast.FuncDecl]bool{}
		for i := range c.fields {
			if d := notifyDecl(c, &c.fields[i], decls); d != nil && !looked[d] && !isTest(pass, d) {
				looked[d] = true
				w := &notifyWriter{pass: pass, class: c, decls: decls, within: map[*ast.FuncDecl]bool{}}
				w.look(d, func(at ast.Node, field string) {
					report(pass, at, warning, nil, "%s writes %s, which the server replicates: it stands here only, until the server's next value; keep it in a field without a net tag", d.Name.Name, field)
				})
			}
		}
	}
	return nil, nil
}

// notifyDecl is the method that a field's notify= names, when it is declared in this package for the class itself.
func notifyDecl(c *class, f *field, decls map[*types.Func]*ast.FuncDecl) *ast.FuncDecl {
	if f.options.notify == nil {
		return nil
	}
	o, index, _ := types.LookupFieldOrMethod(types.NewPointer(c.typ), true, c.fields[0].object.Pkg(), f.options.notify.value)
	m, ok := o.(*types.Func)
	if !ok || len(index) != 1 {
		return nil
	}
	return decls[m]
}

// notifyWriter looks for writes in a method, and in methods of the same actor that it calls.
type notifyWriter struct {
	pass   *analysis.Pass
	class  *class
	decls  map[*types.Func]*ast.FuncDecl
	within map[*ast.FuncDecl]bool
}

// look calls found for each write in d, at the place in d.
func (w *notifyWriter) look(d *ast.FuncDecl, found func(at ast.Node, field string)) {
	if w.within[d] || d.Recv == nil || len(d.Recv.List[0].Names) == 0 {
		return
	}
	w.within[d] = true
	defer delete(w.within, d)
	receiver := w.pass.TypesInfo.Defs[d.Recv.List[0].Names[0]]
	if receiver == nil {
		return
	}
	written := func(x ast.Expr) {
		if f := w.field(receiver, x); f != nil {
			found(x, f.name)
		}
	}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if asksEnd(w.pass.TypesInfo, n.Cond) {
				return false
			}
		case *ast.AssignStmt:
			for _, x := range n.Lhs {
				written(x)
			}
		case *ast.IncDecStmt:
			written(n.X)
		case *ast.RangeStmt:
			written(n.Key)
			written(n.Value)
		case *ast.CallExpr:
			w.call(receiver, n, found)
		}
		return true
	})
}

func (w *notifyWriter) call(receiver types.Object, n *ast.CallExpr, found func(at ast.Node, field string)) {
	m, x := method(w.pass.TypesInfo, n)
	if m == nil {
		return
	}
	if isMethod(m, actorrepPath, "Var", "Set") || slices.ContainsFunc([]string{"Add", "Set", "Remove", "Clear"}, func(name string) bool { return isMethod(m, fastPath, "List", name) }) {
		if f := w.field(receiver, x); f != nil {
			found(n, f.name)
		}
		return
	}
	if d := w.decls[m]; d != nil && objectOf(w.pass.TypesInfo, x) == receiver {
		first := true
		w.look(d, func(_ ast.Node, field string) {
			if first {
				found(n, field)
			}
			first = false
		})
	}
}

// field is the replicated field of the receiver of which x is the whole or a part, or nil.
func (w *notifyWriter) field(receiver types.Object, x ast.Expr) *field {
	for {
		switch y := x.(type) {
		case *ast.ParenExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.SelectorExpr:
			if objectOf(w.pass.TypesInfo, y.X) != receiver {
				x = y.X
				continue
			}
			v, ok := w.pass.TypesInfo.Uses[y.Sel].(*types.Var)
			if !ok {
				return nil
			}
			f := w.class.replicated(v)
			if f != nil && f.options.condition != nil && f.options.condition.key == "never" {
				return nil
			}
			return f
		default:
			return nil
		}
	}
}

// asksEnd reports whether a condition asks who has the authority, or whose the actor is: it knows at which end it runs.
func asksEnd(info *types.Info, cond ast.Expr) (asks bool) {
	ast.Inspect(cond, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			m, _ := method(info, call)
			asks = asks || m != nil && inModule(m.Pkg()) && slices.Contains([]string{"Role", "IsOwned", "IsLocal", "IsServer"}, m.Name())
		}
		return !asks
	})
	return asks
}
