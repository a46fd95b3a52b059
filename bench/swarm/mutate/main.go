// Mutate breaks the code in many small ways, one at a time in a copy, and lets the swarm look for each. It prints
// after how many seeds the swarm found it, and which checker did. What the swarm doesn't play, prediction, the tests of a package look for.
//
//	go run ./bench/swarm/mutate
//	go run ./bench/swarm/mutate -seeds 2000 -only channel
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	seeds := flag.Int("seeds", 1000, "seeds the swarm may play for each mutation")
	only := flag.String("only", "", "only mutations whose name contains this")
	limit := flag.Duration("limit", time.Minute, "time for each; a swarm that takes longer hangs, and so has found it")
	root := flag.String("root", ".", "the module's root")
	flag.Parse()
	missed, err := run(*root, *only, *seeds, *limit)
	switch {
	case err != nil:
		fmt.Println("FAIL:", err)
		os.Exit(1)
	case missed > 0:
		fmt.Printf("FAIL: %d mutations weren't found\n", missed)
		os.Exit(1)
	}
	fmt.Println("PASS: every one was found")
}

func run(root, only string, seeds int, limit time.Duration) (missed int, err error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := copyModule(dir, root); err != nil {
		return 0, err
	}
	if f, err := look(dir, seeds/10, limit); err != nil || f != nil {
		return 0, fmt.Errorf("the code as it is fails already: %+v, %w", f, err)
	}
	tested := map[string]bool{"": true}
	for _, m := range mutations {
		if tested[m.tests()] || !strings.Contains(m.name, only) {
			continue
		}
		tested[m.tests()] = true
		if f, err := test(dir, m.tests(), limit); err != nil || f != nil {
			return 0, fmt.Errorf("the tests %s fail already: %+v, %w", m.tests(), f, err)
		}
	}
	fmt.Printf("%-55s %8s  %-9s %s\n", "mutation", "seeds", "checker", "what it said")
	n := 0
	for _, m := range mutations {
		if !strings.Contains(m.name, only) {
			continue
		}
		n++
		f, err := try(dir, m, seeds, limit)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.name, err)
		}
		if f == nil {
			missed++
			f = &found{checker: "-", text: "NOT FOUND", seeds: seeds}
		}
		fmt.Printf("%-55s %8d  %-9s %.100s\n", m.name, f.seeds, f.checker, f.text)
	}
	fmt.Printf("%d of %d found\n", n-missed, n)
	return missed, nil
}

// copyModule copies what the swarm is built from.
func copyModule(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && rel != "." || rel == "examples" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".mod" && ext != ".sum" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o644)
	})
}

var errText = errors.New("the text to replace must occur exactly once")

// apply is a file's text with the mutation.
func (m *mutation) apply(text string) (string, error) {
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("%w: %d times in %s: %q", errText, n, m.file, m.old)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}

// try lets the swarm look for a mutation.
func try(dir string, m mutation, seeds int, limit time.Duration) (*found, error) {
	name := filepath.Join(dir, m.file)
	old, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	text, err := m.apply(string(old))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return nil, err
	}
	var f *found
	if m.tests() == "" {
		f, err = look(dir, seeds, limit)
	} else {
		f, err = test(dir, m.tests(), limit)
	}
	return f, errors.Join(err, os.WriteFile(name, old, 0o644))
}

// found is what the swarm says.
type found struct {
	seeds         int
	checker, text string
}

var failure = regexp.MustCompile(`FAIL seed (\d+),.* hash [0-9a-f]+: [^ ]+: (\w+): (.*)`)

// look builds the swarm and runs it until it finds something; nil when it doesn't.
func look(dir string, seeds int, limit time.Duration) (*found, error) {
	binary := filepath.Join(dir, "swarm.bin")
	build := exec.Command("go", "build", "-o", binary, "./bench/swarm")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-seeds", strconv.Itoa(seeds), "-stop-at-first", "-shrink", "0")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return &found{checker: "hang", text: "the swarm didn't end"}, nil
	}
	if err == nil {
		return nil, nil
	}
	m := failure.FindStringSubmatch(string(out))
	if m == nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	n, err := strconv.Atoi(m[1])
	return &found{seeds: n, checker: m[2], text: m[3]}, err
}

var failed = regexp.MustCompile(`--- FAIL: (\S+)`)

// predicts is the package whose tests look for mutations of its own.
const predicts = "./actorrep/predict"

// test runs some tests of prediction; nil when all pass.
func test(dir, run string, limit time.Duration) (*found, error) {
	limit *= 5 // they take longer than a swarm that finds something
	build := exec.Command("go", "vet", predicts)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-failfast", "-run", run, predicts)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return &found{checker: "hang", text: "the tests didn't end"}, nil
	}
	if err == nil {
		return nil, nil
	}
	if m := failed.FindStringSubmatch(string(out)); m != nil {
		return &found{checker: "test", text: m[1]}, nil
	}
	if strings.Contains(string(out), "panic:") {
		return &found{checker: "test", text: "a panic"}, nil
	}
	return nil, fmt.Errorf("%w\n%s", err, out)
}
