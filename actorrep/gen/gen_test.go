package main

import (
	"go/parser"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGolden writes the code of the class in internal/hot anew: it is what is there.
func TestGolden(t *testing.T) {
	const dir = "internal/hot"
	want, err := os.ReadFile(filepath.Join(dir, "craft_net.go"))
	require.NoError(t, err)
	src, err := load(dir, fileNames([]string{"Craft"}))
	require.NoError(t, err)
	got, err := generate(src.check(nil, false), "Craft")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run go generate ./actorrep/gen/internal/hot")
}

// TestRun writes a file.
func TestRun(t *testing.T) {
	require.ErrorContains(t, run(t.TempDir(), []string{"X"}), "")
	require.ErrorContains(t, run("testdata/bad", []string{"Missing"}), "no type Missing")
}

// TestOdd compiles what is written for classes whose names and types ask for care.
func TestOdd(t *testing.T) {
	src, err := load("testdata/odd", nil)
	require.NoError(t, err)
	p := src.check(nil, false)
	for _, name := range []string{"Mob", "Vehicle", "Empty"} {
		code, err := generate(p, name)
		require.NoError(t, err, name)
		file, err := parser.ParseFile(src.fset, fileName(name), code, parser.SkipObjectResolution)
		require.NoError(t, err, name)
		src.files = append(src.files, file)
	}
	src.check(func(err error) { t.Error(err) }, true)
}

func TestErrors(t *testing.T) {
	src, err := load("testdata/bad", nil)
	require.NoError(t, err)
	p := src.check(nil, false)
	for name, text := range map[string]string{
		"NoBase":  "must embed actorrep.Base",
		"Map":     "M: map[int]int can't be replicated",
		"Tag":     "q= and rot= are for floats",
		"Taken":   "SetA is there already",
		"Closed":  "c.C.secret can't be read from package bad",
		"Generic": "without type parameters",
		"Number":  "must be a struct, not int",
		"Nothing": "no type Nothing",
	} {
		_, err := generate(p, name)
		require.ErrorContains(t, err, text, name)
	}
}
