package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// mutant is one small way in which a package is broken.
type mutant struct {
	id   int
	file string // of the module
	line int
	// name says what it is without line numbers, so that it stays the same when others are added above it:
	// "history/history.go AddLost: n >= Bits -> n > Bits".
	name  string
	tells bool // it notes when it differs; the others do whenever they are reached
}

// mutator writes a package in which each mutant can be chosen at run time: an expression or a statement that asks the
// function named isAlive. Only one is chosen at a time, so the alternatives hold no mutants themselves.
type mutator struct {
	fset    *token.FileSet
	mutants []mutant
	names   map[string]int
	dropped map[int]bool // they don't compile
	path    string
	fun     string
}

// These are the names in the file that support makes: isAlive reports whether a mutant is chosen, and pick chooses between two values.
// notes and value note that a mutant differs from what the text says, as far as the run has come: otherwise a test can't miss it.
const (
	isAlive = "_mutantIs"
	pick    = "_mutantPick"
	notes   = "_mutantNotes"
	value   = "_mutantValue"
)

// differsBit marks, in the file of a run, a mutant that has differed. The others in it were only reached.
const differsBit = 1 << 30

// support is the file that is added to a package with n mutants. The variable MUTANT of the environment chooses one. To the file named
// in MUTANT_REACHED the tests append each mutant that they reach, once, in four bytes, lowest first, and once more with differsBit when it differs. It is
// written at once, so that nothing is missing however the tests end, and without allocations, which tests may count.
func support(name string, n int) string {
	return "package " + name + fmt.Sprintf(`

import (
	"os"
	"strconv"
	"sync"
)

var (
	_mutantAlive   = func() int { n, _ := strconv.Atoi(os.Getenv("MUTANT")); return n }()
	_mutantFile    = func() *os.File { f, _ := os.OpenFile(os.Getenv("MUTANT_REACHED"), os.O_APPEND|os.O_WRONLY, 0); return f }()
	_mutantReached [%[1]d]bool
	_mutantDiffers [%[1]d]bool
	_mutantMu      sync.Mutex
	_mutantBytes   [4]byte
)

func _mutantNote(once *bool, id int) {
	_mutantMu.Lock()
	*once = true
	_mutantBytes = [4]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}
	_mutantFile.Write(_mutantBytes[:])
	_mutantMu.Unlock()
}

func _mutantNotes(id int, differs bool) bool {
	if differs && !_mutantDiffers[id] {
		_mutantNote(&_mutantDiffers[id], id|%[2]d)
	}
	return true
}

func _mutantValue(id int, v, differs bool) bool {
	_mutantNotes(id, v == differs)
	return v
}

func _mutantIs(id int) bool {
	if !_mutantReached[id] {
		_mutantNote(&_mutantReached[id], id)
	}
	return _mutantAlive == id
}

func _mutantPick[T comparable](id int, as, mutated T) T {
	_mutantNotes(id, as != mutated)
	if _mutantIs(id) {
		return mutated
	}
	return as
}

var _ = _mutantPick[int]
`, n+1, differsBit)
}

// file is the text of a file with its mutants; nil when it has directives, which don't survive being printed. Nothing depends on noinline but time.
func (m *mutator) file(dir, name string) ([]byte, error) {
	m.path = filepath.ToSlash(filepath.Join(dir, name))
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	if bytes.Contains(bytes.ReplaceAll(text, []byte("//go:noinline\n"), nil), []byte("//go:")) {
		return nil, nil
	}
	f, err := parser.ParseFile(m.fset, m.path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && fn.Name.Name != "String" {
			m.fun = fn.Name.Name
			m.block(fn.Body)
			m.end(fn)
		}
	}
	sameLine(reflect.ValueOf(f), m.fset.File(f.Pos()).Pos(0), map[uintptr]bool{})
	var out bytes.Buffer
	if err := format.Node(&out, m.fset, f); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// end ends a function that ends with a loop without a condition, so that a mutant that leaves the loop compiles.
func (m *mutator) end(fn *ast.FuncDecl) {
	last := len(fn.Body.List) - 1
	if last < 0 || fn.Type.Results == nil {
		return
	}
	if loop, ok := fn.Body.List[last].(*ast.ForStmt); ok && loop.Cond == nil {
		fn.Body.List = append(fn.Body.List, &ast.ExprStmt{X: &ast.CallExpr{Fun: ast.NewIdent("panic"), Args: []ast.Expr{number(0)}}})
	}
}

// sameLine moves all that is in a tree to one place. Otherwise the printer would break lines where the text did, which isn't
// always allowed for nodes that the text doesn't have.
func sameLine(v reflect.Value, at token.Pos, seen map[uintptr]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !seen[v.Pointer()] {
			seen[v.Pointer()] = true
			sameLine(v.Elem(), at, seen)
		}
	case reflect.Interface:
		if !v.IsNil() {
			sameLine(v.Elem(), at, seen)
		}
	case reflect.Slice:
		for i := range v.Len() {
			sameLine(v.Index(i), at, seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if p, ok := f.Interface().(token.Pos); ok {
				if p.IsValid() {
					f.Set(reflect.ValueOf(at))
				}
			} else {
				sameLine(f, at, seen)
			}
		}
	}
}

// add makes a mutant; 0 when it is known not to compile.
func (m *mutator) add(at token.Pos, what string) int {
	id := len(m.mutants) + 1
	name := fmt.Sprintf("%s %s: %s", m.path, m.fun, what)
	if m.names[name]++; m.names[name] > 1 {
		name += fmt.Sprintf(" (%d)", m.names[name])
	}
	m.mutants = append(m.mutants, mutant{id, m.path, m.fset.Position(at).Line, name, false})
	if m.dropped[id] {
		return 0
	}
	return id
}

// text is a node on one line, cut when it is long.
func (m *mutator) text(n ast.Node) string {
	var b strings.Builder
	_ = (&printer.Config{Mode: printer.RawFormat}).Fprint(&b, m.fset, n) // into memory
	s := strings.Join(strings.Fields(b.String()), " ")
	if len(s) > 90 {
		s = s[:87] + "..."
	}
	return s
}

func number(n int) ast.Expr { return &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(n)} }

// alive is the expression: mutant id is chosen. dead is: it isn't.
func alive(id int) ast.Expr {
	return &ast.CallExpr{Fun: ast.NewIdent(isAlive), Args: []ast.Expr{number(id)}}
}

func dead(id int) ast.Expr { return &ast.UnaryExpr{Op: token.NOT, X: alive(id)} }

// tells marks a mutant as one that notes when it differs, by the expression that is made: with notes its value is true, with value that of v.
func (m *mutator) tells(id int, name string, args ...ast.Expr) ast.Expr {
	m.mutants[id-1].tells = true
	return &ast.CallExpr{Fun: ast.NewIdent(name), Args: append([]ast.Expr{number(id)}, args...)}
}

func paren(e ast.Expr) ast.Expr { return &ast.ParenExpr{X: e} }

func both(a, b ast.Expr) ast.Expr { return &ast.BinaryExpr{X: a, Op: token.LAND, Y: b} }

// boolean is as unless one of the mutants is alive.
func boolean(as ast.Expr, ids []int, mutated []ast.Expr) ast.Expr {
	var out ast.Expr
	rest := paren(as)
	for i, id := range ids {
		if id == 0 {
			continue
		}
		rest = both(dead(id), rest)
		if m := both(alive(id), paren(mutated[i])); out == nil {
			out = m
		} else {
			out = &ast.BinaryExpr{X: out, Op: token.LOR, Y: m}
		}
	}
	if out == nil {
		return as
	}
	return paren(&ast.BinaryExpr{X: out, Op: token.LOR, Y: rest})
}

var (
	boundaries  = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}
	negations   = map[token.Token]token.Token{token.LSS: token.GEQ, token.LEQ: token.GTR, token.GTR: token.LEQ, token.GEQ: token.LSS, token.EQL: token.NEQ, token.NEQ: token.EQL}
	connectives = map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}
	operators   = map[token.Token]token.Token{token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.ADD, token.QUO: token.MUL, token.REM: token.MUL,
		token.AND: token.OR, token.OR: token.AND, token.XOR: token.OR, token.AND_NOT: token.AND, token.SHL: token.SHR, token.SHR: token.SHL}
	updates = map[token.Token]token.Token{token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.MUL_ASSIGN: token.ADD_ASSIGN,
		token.AND_ASSIGN: token.OR_ASSIGN, token.OR_ASSIGN: token.AND_ASSIGN, token.SHL_ASSIGN: token.SHR_ASSIGN, token.SHR_ASSIGN: token.SHL_ASSIGN}
)

// binary is a binary expression with its mutants.
func (m *mutator) binary(e *ast.BinaryExpr) ast.Expr {
	x, y := e.X, e.Y
	with := func(op token.Token) *ast.BinaryExpr { return &ast.BinaryExpr{X: x, Op: op, Y: y} }
	var ids []int
	var mutated []ast.Expr
	try := func(table map[token.Token]token.Token) {
		if op, ok := table[e.Op]; ok {
			alt := with(op)
			ids = append(ids, m.add(e.OpPos, m.text(with(e.Op))+" -> "+m.text(alt)))
			mutated = append(mutated, alt)
		}
	}
	try(boundaries)
	try(negations)
	try(connectives)
	if ids != nil {
		return m.logical(e, ids, mutated)
	}
	if !calls(x) && !calls(y) { // the value and its mutant are both computed
		try(operators)
	}
	as := &ast.BinaryExpr{X: m.expr(x), Op: e.Op, Y: m.expr(y)}
	if ids == nil || ids[0] == 0 {
		return as
	}
	m.tells(ids[0], pick) // pick does itself
	return &ast.CallExpr{Fun: ast.NewIdent(pick), Args: []ast.Expr{number(ids[0]), as, mutated[0]}}
}

// logical is a comparison or a connection with its mutants, of which the first, ids[0], may note when it differs: the boundary of a comparison when the sides are
// equal, and a connection not while its sides are what lets both connections agree.
func (m *mutator) logical(e *ast.BinaryExpr, ids []int, mutated []ast.Expr) ast.Expr {
	x, y := m.expr(e.X), m.expr(e.Y)
	_, connects := connectives[e.Op]
	if connects && ids[0] != 0 && !calls(e.Y) { // else the mutant may call it or not
		when := ast.NewIdent(strconv.FormatBool(e.Op == token.LOR))
		x, y = m.tells(ids[0], value, x, when), m.tells(ids[0], value, y, when)
	}
	var as ast.Expr = &ast.BinaryExpr{X: x, Op: e.Op, Y: y}
	if _, bounds := boundaries[e.Op]; bounds && ids[0] != 0 && !calls(e.X) && !calls(e.Y) {
		as = both(m.tells(ids[0], notes, &ast.BinaryExpr{X: e.X, Op: token.EQL, Y: e.Y}), paren(as))
	}
	return boolean(as, ids, mutated)
}

// calls reports whether an expression calls something that may do more than compute: it can't be evaluated twice.
func calls(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name, _ := n.Fun.(*ast.Ident)
			found = found || name == nil || !strings.Contains(" len cap min max int int32 int64 uint uint8 uint16 uint32 uint64 float64 byte ", " "+name.Name+" ")
		case *ast.FuncLit:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		}
		return !found
	})
	return found
}

// expr is an expression with mutants in it.
func (m *mutator) expr(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return m.binary(e)
	case *ast.ParenExpr:
		return &ast.ParenExpr{X: m.expr(e.X)}
	case *ast.UnaryExpr:
		if _, lit := e.X.(*ast.CompositeLit); !lit && e.Op != token.AND {
			return &ast.UnaryExpr{Op: e.Op, X: m.expr(e.X)}
		}
	case *ast.CallExpr:
		c := *e
		c.Args = m.exprs(e.Args)
		return &c
	case *ast.IndexExpr:
		c := *e
		c.Index = m.expr(e.Index)
		return &c
	case *ast.SliceExpr:
		c := *e
		c.Low, c.High = m.optional(e.Low), m.optional(e.High)
		return &c
	case *ast.FuncLit:
		m.block(e.Body)
	}
	return e
}

func (m *mutator) optional(e ast.Expr) ast.Expr {
	if e == nil {
		return nil
	}
	return m.expr(e)
}

func (m *mutator) exprs(list []ast.Expr) []ast.Expr {
	if list == nil {
		return nil // that of a default case says so by it
	}
	out := make([]ast.Expr, len(list))
	for i, e := range list {
		out[i] = m.expr(e)
	}
	return out
}

func (m *mutator) block(b *ast.BlockStmt) {
	for i, s := range b.List {
		b.List[i] = m.stmt(s)
	}
}

// unless is a statement that isn't executed when a mutant is alive, but another is, which may be nil.
func unless(id int, s, otherwise ast.Stmt) ast.Stmt {
	out := &ast.IfStmt{Cond: dead(id), Body: &ast.BlockStmt{List: []ast.Stmt{s}}}
	if otherwise != nil {
		out.Else = &ast.BlockStmt{List: []ast.Stmt{otherwise}}
	}
	return out
}

// stmt is a statement with mutants in it.
func (m *mutator) stmt(s ast.Stmt) ast.Stmt {
	switch s := s.(type) {
	case *ast.BlockStmt:
		m.block(s)
	case *ast.ExprStmt:
		return m.callStmt(s)
	case *ast.AssignStmt:
		return m.assign(s)
	case *ast.IncDecStmt:
		op := token.INC
		if s.Tok == token.INC {
			op = token.DEC
		}
		other := &ast.IncDecStmt{X: s.X, Tok: op}
		if id := m.add(s.Pos(), m.text(s)+" -> "+m.text(other)); id != 0 {
			return unless(id, s, other)
		}
	case *ast.IfStmt:
		m.ifStmt(s)
	case *ast.ForStmt:
		s.Cond = m.optional(s.Cond)
		m.block(s.Body)
	case *ast.RangeStmt:
		m.block(s.Body)
	case *ast.SwitchStmt:
		m.clauses(s.Body)
	case *ast.TypeSwitchStmt:
		m.clauses(s.Body)
	case *ast.ReturnStmt:
		return m.returnStmt(s)
	case *ast.BranchStmt:
		return m.branch(s)
	case *ast.LabeledStmt:
		s.Stmt = m.stmt(s.Stmt)
	}
	return s
}

func (m *mutator) clauses(b *ast.BlockStmt) {
	for _, s := range b.List {
		if c, ok := s.(*ast.CaseClause); ok {
			c.List = m.exprs(c.List)
			for i, s := range c.Body {
				c.Body[i] = m.stmt(s)
			}
		}
	}
}

func (m *mutator) ifStmt(s *ast.IfStmt) {
	never, does := m.add(s.Pos(), "if "+m.text(s.Cond)+" -> never"), calls(s.Cond)
	s.Cond = paren(m.expr(s.Cond))
	if never != 0 && !does {
		s.Cond = m.tells(never, value, s.Cond, ast.NewIdent("true"))
	}
	if never != 0 {
		s.Cond = both(dead(never), s.Cond)
	}
	m.block(s.Body)
	if s.Else != nil {
		s.Else = m.stmt(s.Else)
	}
}

// callStmt may leave a call out.
func (m *mutator) callStmt(s *ast.ExprStmt) ast.Stmt {
	c, ok := s.X.(*ast.CallExpr)
	if name, is := c.Fun.(*ast.Ident); !ok || is && name.Name == "panic" {
		return s
	}
	id := m.add(s.Pos(), m.text(s)+" -> left out")
	s.X = m.expr(s.X)
	if id == 0 {
		return s
	}
	return unless(id, s, nil)
}

// assign may leave an assignment out, or exchange its operator.
func (m *mutator) assign(s *ast.AssignStmt) ast.Stmt {
	if s.Tok == token.DEFINE {
		s.Rhs = m.exprs(s.Rhs)
		return s
	}
	if blank, ok := s.Lhs[0].(*ast.Ident); ok && blank.Name == "_" && len(s.Lhs) == 1 {
		return s
	}
	out := m.add(s.Pos(), m.text(s)+" -> left out")
	var other ast.Stmt
	id := 0
	if op, ok := updates[s.Tok]; ok {
		other = &ast.AssignStmt{Lhs: s.Lhs, Tok: op, Rhs: s.Rhs}
		id = m.add(s.TokPos, m.text(s)+" -> "+m.text(other))
	}
	var as ast.Stmt = &ast.AssignStmt{Lhs: s.Lhs, Tok: s.Tok, Rhs: m.exprs(s.Rhs)}
	if id != 0 {
		as = unless(id, as, other)
	}
	if out != 0 {
		left := unless(out, as, nil).(*ast.IfStmt)
		if s.Tok == token.ASSIGN && len(s.Lhs) == 1 && constant(s.Rhs[0]) && !calls(s.Lhs[0]) {
			left.Cond = both(left.Cond, m.tells(out, notes, &ast.BinaryExpr{X: s.Lhs[0], Op: token.NEQ, Y: s.Rhs[0]}))
		}
		as = left
	}
	return as
}

// constant reports whether an expression is a literal, true, false or nil.
func constant(e ast.Expr) bool {
	_, literal := e.(*ast.BasicLit)
	name, _ := e.(*ast.Ident)
	return literal || name != nil && strings.Contains(" true false nil ", " "+name.Name+" ")
}

// returnStmt may negate a true or false.
func (m *mutator) returnStmt(s *ast.ReturnStmt) ast.Stmt {
	text := m.text(s)
	for i, e := range s.Results {
		if name, ok := e.(*ast.Ident); ok && (name.Name == "true" || name.Name == "false") {
			if id := m.add(e.Pos(), fmt.Sprintf("%s -> !%s", text, name.Name)); id != 0 {
				s.Results[i] = &ast.BinaryExpr{X: paren(dead(id)), Op: token.EQL, Y: name}
			}
			continue
		}
		s.Results[i] = m.expr(e)
	}
	return s
}

// branch may continue instead of breaking, and break instead of continuing.
func (m *mutator) branch(s *ast.BranchStmt) ast.Stmt {
	other := map[token.Token]token.Token{token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK}[s.Tok]
	if other == token.ILLEGAL || s.Label != nil {
		return s
	}
	id := m.add(s.Pos(), s.Tok.String()+" -> "+other.String())
	if id == 0 {
		return s
	}
	return unless(id, s, &ast.BranchStmt{Tok: other})
}
