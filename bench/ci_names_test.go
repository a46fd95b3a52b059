package bench

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// namedTest is a test of the root module.
type namedTest struct {
	pkg, name string
	several   bool // it has goroutines, or a world on several cores
}

// testsOfRoot is all tests of the root module.
func testsOfRoot(t *testing.T) (all []namedTest) {
	root := filepath.Clean("..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if path != root && (err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			test := namedTest{pkg: filepath.ToSlash(pkg), name: f.Name.Name}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					test.several = true
				case *ast.SelectorExpr:
					test.several = test.several || n.Sel.Name == "Cores" || n.Sel.Name == "Go"
				}
				return true
			})
			all = append(all, test)
		}
		return nil
	}))
	return all
}

// TestNamesInCI: a pattern of .ci/run that no test's name fits leaves out nothing and runs nothing; and a test with goroutines, in a package that the race
// detector leaves out, is run with it by name.
func TestNamesInCI(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here: apt-get install bash")
	}
	script, err := os.ReadFile(filepath.Join("..", ".ci", "run"))
	require.NoError(t, err)
	variable := func(name string) string {
		var lines []string
		for line := range strings.SplitSeq(string(script), "\n") {
			if strings.HasPrefix(line, name+"=") {
				lines = append(lines, line)
			}
		}
		require.NotEmpty(t, lines, name)
		out, err := exec.Command("bash", "-c", strings.Join(lines, "\n")+"\nprintf %s \"$"+name+`"`).Output()
		require.NoError(t, err)
		return string(out)
	}
	all := testsOfRoot(t)
	fits := func(pattern, pkg string) bool {
		re := regexp.MustCompile(pattern)
		for _, f := range all {
			if (pkg == "" || f.pkg == pkg) && re.MatchString(f.name) {
				return true
			}
		}
		return false
	}
	for _, p := range alternatives(variable("figures")) {
		require.True(t, fits(p, ""), "no test is called %s", p)
	}
	raced := map[string]string{} // by package, what runs in it with the race detector
	for _, m := range regexp.MustCompile(`gotest (.*)-run '([^']+)' \./(\S+)`).FindAllStringSubmatch(string(script), -1) {
		for _, p := range alternatives(m[2]) {
			require.True(t, fits(p, m[3]), "no test of %s is called %s", m[3], p)
		}
		if strings.Contains(m[1], "-race") {
			raced[m[3]] = m[2]
		}
	}
	require.NotEmpty(t, raced)
	alone := regexp.MustCompile(variable("alone"))
	for _, f := range all {
		if f.several && alone.MatchString("github.com/bunchnet/bunchnet/"+f.pkg) {
			assert.True(t, raced[f.pkg] != "" && regexp.MustCompile(raced[f.pkg]).MatchString(f.name), "%s of %s has goroutines and never meets the race detector", f.name, f.pkg)
		}
	}
}

// alternatives is the patterns that one with alternatives, within at most one pair of parentheses each, stands for.
func alternatives(pattern string) (all []string) {
	depth, from := 0, 0
	for i, r := range pattern + "|" {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == '|' && depth == 0:
			one := pattern[from:i]
			from = i + 1
			before, rest, ok := strings.Cut(one, "(")
			if !ok {
				all = append(all, one)
				continue
			}
			inner, after, _ := strings.Cut(rest, ")")
			for p := range strings.SplitSeq(inner, "|") {
				all = append(all, before+p+after)
			}
		}
	}
	return all
}
