package bench

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entries is the names that functions have which begin something, besides those with New in front.
var entries = []string{"Listen", "Dial", "Open", "OpenReplay", "Attach", "Pair", "Impair", "Record", "Replay", "Play"}

// noExample is packages for this module's own use.
func noExample(pkg string) bool {
	return strings.Contains(pkg, "internal") || strings.Contains(pkg, "/cmd/") || strings.Contains(pkg, "/gen") || pkg == "netconn/simtest/exercise"
}

// exempt is constructors that nobody calls who uses this module.
var exempt = map[string]string{"channel.NewMachine": "netconn.New makes it", "netconn/handler.Open": "netconn calls it"}

// used is every name that a package's runnable examples mention: their functions, and the rest of files named
// example*_test.go.
func used(t *testing.T, pkg string) map[string]bool {
	names := map[string]bool{}
	note := func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	}
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pkg), "*_test.go"))
	require.NoError(t, err)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		runs := false
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") {
				runs = true
				ast.Inspect(f.Body, note)
			}
		}
		if strings.HasPrefix(filepath.Base(path), "example") {
			require.True(t, runs, "%s has no example", path)
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					ast.Inspect(f.Body, note)
				}
			}
		}
	}
	return names
}

// TestSignals: an example that ends in order when it is interrupted does so too when a supervisor ends it, by SIGTERM, so that its players are told.
func TestSignals(t *testing.T) {
	n := 0
	require.NoError(t, filepath.WalkDir("../examples", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "NotifyContext" {
				n++
				last, _ := call.Args[len(call.Args)-1].(*ast.SelectorExpr)
				require.True(t, last != nil && last.Sel.Name == "SIGTERM", path)
			}
			return true
		})
		return nil
	}))
	require.Greater(t, n, 5)
}

// TestVerdicts: a program whose verdict can't be written, as on a full disk, says so by its exit code: the error of that line isn't thrown away.
func TestVerdicts(t *testing.T) {
	n := 0
	for _, dir := range []string{"../examples", "."} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if ok && slices.ContainsFunc(call.Args, isVerdict) {
					n++
				}
				s, ok := node.(*ast.ExprStmt)
				if !ok {
					return true
				}
				call, ok = s.X.(*ast.CallExpr)
				require.False(t, ok && slices.ContainsFunc(call.Args, isVerdict), "%s throws away the error of its verdict", path)
				return true
			})
			return nil
		}))
	}
	require.Greater(t, n, 40)
	if runtime.GOOS != "linux" {
		return // no /dev/full
	}
	program := filepath.Join(t.TempDir(), "echo")
	out, err := exec.Command("go", "build", "-o", program, "../examples/guide/1-echo").CombinedOutput()
	require.NoError(t, err, "%s", out)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	var said strings.Builder
	cmd := exec.Command(program)
	cmd.Stdout, cmd.Stderr = full, &said
	require.Error(t, cmd.Run())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Contains(t, said.String(), "no space left")
}

// isVerdict reports whether e is the text of a good verdict.
func isVerdict(e ast.Expr) bool {
	text, ok := e.(*ast.BasicLit)
	return ok && strings.HasPrefix(text.Value, `"PASS`)
}

// TestExamples checks that what one begins with is shown: each exported constructor is used by a runnable
// example of its package.
func TestExamples(t *testing.T) {
	shown := map[string]map[string]bool{}
	n := 0
	goFiles(t, func(pkg, name string, file *ast.File, _ *token.FileSet) {
		if noExample(pkg) || file.Name.Name == "main" {
			return
		}
		for dir := pkg; dir != "."; dir = path.Dir(dir) {
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(dir), "go.mod")); err == nil {
				return // a module of its own
			}
		}
		if shown[pkg] == nil {
			shown[pkg] = used(t, pkg)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() || !strings.HasPrefix(f.Name.Name, "New") && !slices.Contains(entries, f.Name.Name) {
				continue
			}
			n++
			if !shown[pkg][f.Name.Name] && exempt[pkg+"."+f.Name.Name] == "" {
				t.Errorf("%s: %s is in no example; add one to %s/example_test.go", name, f.Name.Name, pkg)
			}
		}
	})
	require.Greater(t, n, 50)
}
