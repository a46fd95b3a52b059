package analysis

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/edge"
)

// ReliableLoopRPC finds reliable RPCs that are called every tick.
var ReliableLoopRPC = &analysis.Analyzer{
	Name: "reliablelooprpc",
	Doc: `find reliable RPCs called every tick

Reliable calls wait until the peer acknowledges them, and hold up those after them: called every tick, a second of bad network
makes 256 of them, and Call returns ErrFull. Instead call a reliable RPC when something happens, put several things into one
call, make the RPC unreliable when only its newest call matters, or let a replicated field carry the value.`,
	Requires: []*analysis.Analyzer{inspect.Analyzer, procedures},
	Run:      runReliableLoopRPC,
}

func runReliableLoopRPC(pass *analysis.Pass) (any, error) {
	calls := slices.DeleteFunc(slices.Clone(pass.ResultOf[procedures].(*procedureSet).called), func(c *called) bool {
		return !c.Reliable || isTest(pass, c.call)
	})
	if len(calls) == 0 {
		return nil, nil
	}
	t := newTicks(pass)
	for _, c := range calls {
		if reason := t.always(c.at, []ast.Expr{c.actor}); reason != "" {
			report(pass, c.call, warning, nil, "reliable RPC %s is called every tick (%s): unacknowledged calls pile up to ErrFull; call it when something happens, or make it unreliable if only the newest call matters", c.name, reason)
		} else if t.counted(c) {
			report(pass, c.call, warning, nil, "reliable RPC %s is called in each turn of a loop on the same actor: 256 unacknowledged calls are ErrFull; send one call with a slice of it all", c.name)
		}
	}
	return nil, nil
}

// counted reports whether a call is in a loop that counts, always, on an actor that stays the same.
func (t *ticks) counted(call *called) bool {
	for c := call.at; c.Valid(); c = c.Parent() {
		kind, index := c.ParentEdge()
		switch n := c.Parent().Node().(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			return false
		case *ast.ForStmt:
			if kind == edge.ForStmt_Body {
				return n.Post != nil && !mentions(t.info, call.actor, n)
			}
		case *ast.RangeStmt:
			if kind == edge.RangeStmt_Body {
				b, ok := t.info.TypeOf(n.X).Underlying().(*types.Basic)
				return ok && b.Info()&types.IsInteger != 0 && !mentions(t.info, call.actor, n)
			}
		default:
			before, after := siblings(kind, index, n)
			if t.conditional(kind, n) || t.guarded(before) || slices.ContainsFunc(after, isExit) {
				return false
			}
		}
	}
	return false
}
