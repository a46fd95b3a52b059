package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// always is how one knows that a call happens every tick, "" when it doesn't or one can't tell. Within a loop over
// actors it must concern each of them: one of the subjects is the loop's actor. Other loops are over what happened.
func (t *ticks) always(call inspector.Cursor, subjects []ast.Expr) string {
	leaves := false // what follows leaves the loop
	for c := call; c.Valid(); c = c.Parent() {
		kind, index := c.ParentEdge()
		parent := c.Parent().Node()
		switch n := parent.(type) {
		case *ast.FuncDecl:
			return t.funcs[n]
		case *ast.FuncLit:
			if reason := t.funcs[n]; reason != "" || !invoked(c.Parent()) {
				return reason
			}
		case *ast.ForStmt, *ast.RangeStmt:
			if kind != edge.ForStmt_Body && kind != edge.RangeStmt_Body {
				continue
			}
			if t.isTickLoop(n) {
				if leaves {
					return ""
				}
				return "a tick loop"
			}
			if !t.each(n, subjects) {
				return ""
			}
		default:
			before, after := siblings(kind, index, n)
			if t.conditional(kind, n) || t.guarded(before) {
				return ""
			}
			leaves = leaves || slices.ContainsFunc(after, isExit)
		}
	}
	return ""
}

// siblings is the statements before a child at that edge of n, and the child and those after it; none unless n is a
// list of statements.
func siblings(kind edge.Kind, index int, n ast.Node) (before, after []ast.Stmt) {
	var list []ast.Stmt
	switch n := n.(type) {
	case *ast.BlockStmt:
		list = n.List
	case *ast.CaseClause:
		list = n.Body
	case *ast.CommClause:
		list = n.Body
	}
	if index < 0 || index > len(list) || kind == edge.CaseClause_List {
		return nil, nil
	}
	return list[:index], list[index:]
}

// invoked reports whether a function literal is called where it stands.
func invoked(lit inspector.Cursor) bool { return lit.ParentEdgeKind() == edge.CallExpr_Fun }

// conditional reports whether a child at that edge of n happens only sometimes.
func (t *ticks) conditional(kind edge.Kind, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		switch kind {
		case edge.IfStmt_Body, edge.IfStmt_Else:
			return !t.steady(n.Cond)
		default: // it ends the loop once it has succeeded
			return equalsNil(n.Cond) && slices.ContainsFunc(n.Body.List, isExit)
		}
	case *ast.BinaryExpr:
		return kind == edge.BinaryExpr_Y && (n.Op == token.LAND || n.Op == token.LOR) && !t.steady(n.X)
	case *ast.CaseClause:
		return !t.isTypeCase(n)
	case *ast.CommClause:
		return kind == edge.CommClause_Body && !t.receivesTime(n)
	}
	return false
}

// isTypeCase reports whether a case names an actor's types, which stay the same.
func (t *ticks) isTypeCase(n *ast.CaseClause) bool {
	for _, x := range n.List {
		if tv := t.info.Types[x]; !tv.IsType() || !isActorPointer(tv.Type) {
			return false
		}
	}
	return len(n.List) > 0
}

func (t *ticks) receivesTime(n *ast.CommClause) (yes bool) {
	if n.Comm != nil {
		ast.Inspect(n.Comm, func(n ast.Node) bool {
			u, ok := n.(*ast.UnaryExpr)
			yes = yes || ok && u.Op == token.ARROW && t.isTimer(u.X)
			return !yes
		})
	}
	return yes
}

// guarded reports whether one of the statements leaves on a condition that changes.
func (t *ticks) guarded(before []ast.Stmt) bool {
	for _, s := range before {
		switch s := s.(type) {
		case *ast.IfStmt:
			if !t.steady(s.Cond) && exits(s) {
				return true
			}
		case *ast.SwitchStmt:
			if exits(s) {
				return true
			}
		case *ast.SelectStmt:
			if exits(s) {
				return true
			}
		}
	}
	return false
}

// exits reports whether a statement can leave the function or loop it is in.
func exits(s ast.Stmt) (yes bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		stmt, ok := n.(ast.Stmt)
		yes = yes || ok && (isExit(stmt) || isContinue(stmt))
		return !yes
	})
	return yes
}

func isExit(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return s.Tok == token.BREAK || s.Tok == token.GOTO
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok {
			id, ok := call.Fun.(*ast.Ident)
			return ok && id.Name == "panic"
		}
	}
	return false
}

func isContinue(s ast.Stmt) bool {
	b, ok := s.(*ast.BranchStmt)
	return ok && b.Tok == token.CONTINUE
}

// steady reports whether a condition tells how things stand, the same for many ticks, and not what happened: whether there
// was an error, something is nil, of a type, owned, joined.
func (t *ticks) steady(cond ast.Expr) bool {
	switch x := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		return x.Op == token.NOT && t.steady(x.X)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LAND, token.LOR:
			return t.steady(x.X) && t.steady(x.Y)
		case token.EQL, token.NEQ:
			return t.info.Types[x.X].IsNil() || t.info.Types[x.Y].IsNil() || asksEnd(t.info, x)
		}
	case *ast.CallExpr:
		m, _ := method(t.info, x)
		return m != nil && inModule(m.Pkg()) && m.Pkg() != t.pass.Pkg
	case *ast.Ident:
		if assert, ok := t.born[t.info.Uses[x]].(*ast.TypeAssertExpr); ok && assert.Type != nil {
			return isActorPointer(t.info.TypeOf(assert.Type))
		}
	}
	return t.info.Types[cond].Value != nil
}

func equalsNil(cond ast.Expr) bool {
	b, ok := ast.Unparen(cond).(*ast.BinaryExpr)
	if !ok || b.Op != token.EQL {
		return false
	}
	id, ok := ast.Unparen(b.Y).(*ast.Ident)
	return ok && id.Name == "nil"
}

// each reports whether a loop goes through actors, of which one of the subjects is the turn's.
func (t *ticks) each(loop ast.Node, subjects []ast.Expr) bool {
	for _, x := range subjects {
		if tv := t.info.TypeOf(x); tv != nil && isActorPointer(tv) && t.isTurns(loop, x, 0) {
			return true
		}
	}
	return false
}

// isTurns reports whether x is what a loop's turn is about: its variable, the element at its index, or these as another type.
func (t *ticks) isTurns(loop ast.Node, x ast.Expr, depth int) bool {
	if depth > 10 {
		return false
	}
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		o := t.info.ObjectOf(x)
		if o == nil || o.Pos() < loop.Pos() || loop.End() <= o.Pos() {
			return false
		}
		if from := t.born[o]; from != nil && o.Pos() > loopBody(loop).Pos() {
			return t.isTurns(loop, from, depth+1)
		}
		return true
	case *ast.TypeAssertExpr:
		return t.isTurns(loop, x.X, depth+1)
	case *ast.IndexExpr:
		return mentions(t.info, x.Index, loop)
	}
	return false
}

func loopBody(loop ast.Node) *ast.BlockStmt {
	if r, ok := loop.(*ast.RangeStmt); ok {
		return r.Body
	}
	return loop.(*ast.ForStmt).Body
}

// mentions reports whether an expression has something in it that a loop declares.
func mentions(info *types.Info, x ast.Expr, loop ast.Node) (yes bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			o := info.Uses[id]
			yes = yes || o != nil && loop.Pos() <= o.Pos() && o.Pos() < loop.End()
		}
		return !yes
	})
	return yes
}
