package main

import (
	"go/token"
	"os"
	"path/filepath"
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

// TestSurvivors runs all of it over a package whose test leaves some out.
func TestSurvivors(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a package twice")
	}
	p := pkg{"counter", counterDir, []string{"counter.go"}}
	dir := t.TempDir()
	mutants, binary, err := build(p, dir)
	require.NoError(t, err)
	covered, err := coverage(p, dir, options{})
	require.NoError(t, err)
	out, err := runTests(p, binary, 0, time.Minute, "-test.v")
	require.NoError(t, err)
	groups := inGroups(string(out))
	require.Len(t, groups, 1)
	var todo []mutant
	for _, m := range mutants {
		if covered(m) {
			todo = append(todo, m)
		} else {
			require.Contains(t, m.name, "Never")
		}
	}
	require.Less(t, len(todo), len(mutants))
	killed := tryAll(p, binary, todo, groups, options{workers: 2, slack: time.Minute})
	var survivors []string
	for i, m := range todo {
		if !killed[i] {
			survivors = append(survivors, m.name[len(counterDir+"/counter.go "):])
		}
	}
	require.ElementsMatch(t, []string{"Add: c.calls++ -> c.calls--", "Add: n < 0 -> n <= 0"}, survivors)
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

// TestGroups checks that quick tests are run together and first, and slow ones alone, the quickest of them first.
func TestGroups(t *testing.T) {
	groups := inGroups("=== RUN   TestA\n--- PASS: TestA (3.50s)\n    --- PASS: TestA/sub (3.40s)\n--- PASS: TestB (0.01s)\n--- SKIP: TestC (0.00s)\n--- PASS: TestD (0.40s)\n--- PASS: FuzzE (0.02s)\nPASS\n")
	require.Equal(t, []group{{"^(TestB|FuzzE)$", 30 * time.Millisecond}, {"^TestD$", 400 * time.Millisecond}, {"^TestA$", 3500 * time.Millisecond}}, groups)
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
