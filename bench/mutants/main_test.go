package main

import (
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const counterDir = "testdata/counter"

// TestMutants checks that every kind of mutant is made, and that names don't depend on lines.
func TestMutants(t *testing.T) {
	m := &mutator{fset: token.NewFileSet(), names: map[string]int{}, dropped: map[int]bool{}}
	_, err := m.file(counterDir, "counter.go")
	require.NoError(t, err)
	var names []string
	for _, made := range m.mutants {
		names = append(names, made.name)
	}
	for _, want := range []string{
		"Add: c.calls++ -> c.calls--", "Add: c.N += n -> left out", "Add: c.N += n -> c.N -= n", "Add: n < 0 -> n <= 0", "Add: n < 0 -> n >= 0",
		"Add: return false -> !false", "Add: return false -> !false (2)", "Add: if c.N > c.Limit -> never", "Add: c.fill() -> left out",
		"fill: c.N, c.full = c.Limit, true -> left out", "Full: c.full && c.N >= c.Limit -> c.full || c.N >= c.Limit", "Never: a * b -> a + b",
	} {
		require.Contains(t, names, counterDir+"/counter.go "+want)
	}
}

// TestSurvivors runs all of it over a package whose tests leave some out.
func TestSurvivors(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a package")
	}
	p := pkg{"counter", counterDir, []string{"counter.go"}}
	o := options{workers: 2, slack: time.Minute}
	dir := t.TempDir()
	mutants, program, err := build(p, dir)
	require.NoError(t, err)
	tests, err := record(p, program, dir, mutants, o)
	require.NoError(t, err)
	missed := missedBy(tests)

	var todo []mutant
	for _, m := range mutants {
		switch name := m.name[len(counterDir+"/counter.go "):]; {
		case missed[m.id] == nil:
			require.Equal(t, "Never: a * b -> a + b", name)
			continue
		case name == "Add: n < 0 -> n <= 0": // no test adds 0
			require.Empty(t, missed[m.id])
		case strings.HasPrefix(name, "Room"):
			require.ElementsMatch(t, []string{"ExampleCounter_Room", "TestRoom"}, names(missed[m.id]), name)
		case strings.HasPrefix(name, "Full"):
			require.Equal(t, []string{"TestCounter"}, names(missed[m.id]), name)
		}
		todo = append(todo, m)
	}
	require.True(t, slices.ContainsFunc(mutants, func(m mutant) bool { return strings.HasSuffix(m.name, "Room: continue -> break") }), "it compiles, in the loop that ends a function")
	require.Less(t, len(todo), len(mutants))
	killed := tryAll(p, program, todo, missed, o)
	var survivors []string
	for i, m := range todo {
		if !killed[i] {
			survivors = append(survivors, m.name[len(counterDir+"/counter.go "):])
		}
	}
	require.ElementsMatch(t, []string{"Add: c.calls++ -> c.calls--", "Add: n < 0 -> n <= 0"}, survivors)
}

func names(tests []test) (list []string) {
	for _, t := range tests {
		list = append(list, t.name)
	}
	return list
}

// TestList checks that survivors are read from a page, with the bars that a table's cell can't have.
func TestList(t *testing.T) {
	page := filepath.Join(t.TempDir(), "MUTANTS.md")
	require.NoError(t, os.WriteFile(page, []byte("# x\n\n| mutant | why |\n|---|---|\n| ``a.go F: a \\|\\| b -> a && b`` | equal |\n| other | x |\n"), 0o600))
	listed, err := readList(page)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"a.go F: a || b -> a && b": true}, listed)
	listed, err = readList(page + ".none")
	require.NoError(t, err)
	require.Empty(t, listed)
}

// TestGone checks that names on the list are found of which the package has no mutant, and none of other packages.
func TestGone(t *testing.T) {
	mutants := []mutant{{name: "a/b/f.go F: x -> y"}}
	listed := map[string]bool{"a/b/f.go F: x -> y": true, "a/b/g.go F: x -> y": true, "a/b/f.go F: x -> z": true, "a/f.go F: x -> z": true, "a/b/c/f.go F: x -> z": true}
	require.Equal(t, []string{"a/b/f.go F: x -> z", "a/b/g.go F: x -> y"}, gone(pkg{dir: "a/b"}, mutants, listed))
}

// TestQuickestFirst checks that a mutant has the tests in which it differs, the quickest first, quick ones together and slow ones alone.
func TestQuickestFirst(t *testing.T) {
	made := func(name string, ms time.Duration, reached []int, differs ...int) test {
		return test{name, ms * time.Millisecond, reached, differs}
	}
	a, b, c := made("TestA", 4000, []int{1, 2, 4}, 1, 2), made("TestB", 60, []int{2, 3}, 2), made("ExampleC", 30, []int{2}, 2)
	d, e := made("FuzzD", 90, []int{2, 3}, 2, 3), made("TestE", 80, []int{2}, 2)
	missed := missedBy([]test{a, b, c, d, e})
	require.Equal(t, map[int][]test{1: {a}, 2: {c, b, e, d, a}, 3: {d}, 4: {}}, missed)
	require.Equal(t, [][]test{{c, b}, {e}, {d}, {a}}, inBundles(missed[2]))
	require.Equal(t, "^(ExampleC|TestB)$", pattern([]test{c, b}))
	require.Empty(t, inBundles(nil))
	quick := make([]test, 1000)
	for i := range quick {
		quick[i].took = 10 * time.Millisecond
	}
	require.Len(t, inBundles(quick), 8) // each twice the one before: 10, 10, 20, 40 ... 370 tests
}

// TestSample checks that a sample has one mutant of every so many, the same for the same seed.
func TestSample(t *testing.T) {
	all := make([]mutant, 23)
	for i := range all {
		all[i].id = i
	}
	drawn := sample(all, 5, 7)
	require.Len(t, drawn, 5)
	for i, m := range drawn {
		require.Equal(t, i, m.id/5)
	}
	require.Equal(t, drawn, sample(all, 5, 7))
	require.Equal(t, all, sample(all, 1, 7))
}
