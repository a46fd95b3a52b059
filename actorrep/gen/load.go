package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is a package's files and where to find what they import.
type source struct {
	path    string
	fset    *token.FileSet
	files   []*ast.File
	exports map[string]string // files of compiled packages
}

// load parses the package in a directory, without the files that are about to be written.
func load(dir string, without map[string]bool) (*source, error) {
	list := exec.Command("go", "list", "-e", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.DepOnly}}\t{{.Dir}}\t{{range .GoFiles}}{{.}} {{end}}", ".")
	list.Dir = dir
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	src := &source{fset: token.NewFileSet(), exports: map[string]string{}}
	var where string
	var names []string
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 {
			return nil, fmt.Errorf("go list: %q", line)
		}
		src.exports[f[0]] = f[1]
		if f[2] == "false" {
			src.path, where, names = f[0], f[3], strings.Fields(f[4])
		}
	}
	for _, name := range names {
		if without[name] {
			continue
		}
		file, err := parser.ParseFile(src.fset, filepath.Join(where, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		src.files = append(src.files, file)
	}
	if len(src.files) == 0 {
		return nil, fmt.Errorf("no Go files in %s: %s", dir, stderr.String())
	}
	return src, nil
}

// check finds the types of the package; failed is told of errors and may be nil.
func (s *source) check(failed func(error), bodies bool) *types.Package {
	if failed == nil {
		failed = func(error) {}
	}
	conf := types.Config{IgnoreFuncBodies: !bodies, Error: failed, Importer: importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		if s.exports[path] == "" {
			return nil, fmt.Errorf("%s doesn't compile", path)
		}
		return os.Open(s.exports[path])
	})}
	p, _ := conf.Check(s.path, s.fset, s.files, nil)
	return p
}
