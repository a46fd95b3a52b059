package analysis

import (
	"go/ast"
	"go/types"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep/internal/typeform"
	"golang.org/x/tools/go/analysis"
)

// All is every analyser, in order of name.
func All() []*analysis.Analyzer {
	return []*analysis.Analyzer{BadTag, CopyVar, NetMap, NotifyWrites, NotOwner, RawFloat, ReliableLoopRPC}
}

const (
	modulePath   = "github.com/bunchnet/bunchnet/"
	actorrepPath = modulePath + "actorrep"
	netguidPath  = modulePath + "actorrep/netguid"
	fastPath     = modulePath + "actorrep/fastarray"
	driverPath   = modulePath + "netconn/driver"
)

// uses reports whether a package imports actorrep, or is it.
func uses(p *types.Package) bool {
	if p.Path() == actorrepPath {
		return true
	}
	for _, imp := range p.Imports() {
		if imp.Path() == actorrepPath {
			return true
		}
	}
	return false
}

// deref is what t points to, or t.
func deref(t types.Type) types.Type {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// isActor reports whether t is a struct that embeds actorrep.Base, at whatever depth.
func isActor(t types.Type) bool {
	if _, ok := t.Underlying().(*types.Struct); !ok {
		return false
	}
	o, _, _ := types.LookupFieldOrMethod(t, true, nil, "Base")
	v, ok := o.(*types.Var)
	return ok && v.Embedded() && typeform.Named(v.Type(), actorrepPath, "Base")
}

// isActorPointer reports whether t is a pointer to an actor's struct.
func isActorPointer(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && isActor(p.Elem())
}

// varOf is the T of an actorrep.Var[T], or nil.
func varOf(t types.Type) types.Type { return argumentOf(t, actorrepPath, "Var") }

// elementOf is the T of a fastarray.List[T], or nil.
func elementOf(t types.Type) types.Type { return argumentOf(t, fastPath, "List") }

// argumentOf is the T of a path.name[T], or nil.
func argumentOf(t types.Type, path, name string) types.Type {
	if !typeform.Named(t, path, name) {
		return nil
	}
	args := types.Unalias(t).(*types.Named).TypeArgs()
	if args.Len() != 1 {
		return nil
	}
	return args.At(0)
}

// method is the method that a call calls, and what it is called on; nil for other calls.
func method(info *types.Info, call *ast.CallExpr) (*types.Func, ast.Expr) {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil, nil
	}
	f, ok := info.Uses[sel.Sel].(*types.Func)
	if !ok || f.Signature().Recv() == nil {
		return nil, nil
	}
	return f, sel.X
}

// isMethod reports whether f is the method path.typ.name.
func isMethod(f *types.Func, path, typ, name string) bool {
	return f != nil && f.Name() == name && typeform.Named(deref(f.Signature().Recv().Type()), path, typ)
}

// isTest reports whether a file is one of tests, which do what is wrong on purpose.
func isTest(pass *analysis.Pass, n ast.Node) bool {
	return strings.HasSuffix(pass.Fset.Position(n.Pos()).Filename, "_test.go")
}

// inModule reports whether a package is one of this module's.
func inModule(p *types.Package) bool { return p != nil && strings.HasPrefix(p.Path()+"/", modulePath) }
