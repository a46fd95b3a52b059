// Mutate breaks the code in many small ways, one at a time in a copy, and lets the swarm look for each. It prints
// after how many seeds the swarm found it, and which checker did. For what the swarm doesn't play, or too seldom, the tests of a package look.
//
//	go run ./bench/swarm/mutate
//	go run ./bench/swarm/mutate -seeds 2000 -only channel
package main

import (
	"bytes"
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
	limit := flag.Duration("limit", 2*time.Minute, "a swarm, or tests, of which nothing is heard for so long hang, and so have found it")
	root := flag.String("root", ".", "the module's root")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	missed, err := run(*root, *only, *seeds, *limit)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	case missed > 0:
		fmt.Printf("FAIL: %d mutations weren't found\n", missed)
		os.Exit(1)
	}
	if _, err := fmt.Println("PASS: every one was found"); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
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
	tested := map[search]bool{{}: true}
	for _, m := range mutations {
		by := m.search()
		if tested[by] || !strings.Contains(m.name, only) {
			continue
		}
		tested[by] = true
		if f, err := test(dir, by, limit); err != nil || f != nil {
			return 0, fmt.Errorf("the tests %s of %s fail already: %+v, %w", by.run, by.pkg, f, err)
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
	if n == 0 {
		return 0, fmt.Errorf("no mutation's name contains %q", only)
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
	if by := m.search(); by == (search{}) {
		f, err = look(dir, seeds, limit)
	} else {
		f, err = test(dir, by, limit)
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
	if err := goTool(dir, "build", "-o", binary, "./bench/swarm"); err != nil {
		return nil, err
	}
	out, hangs, err := listen(dir, limit, binary, "-seeds", strconv.Itoa(seeds), "-stop-at-first", "-shrink", "0")
	if hangs {
		return &found{checker: "hang", text: "the swarm stood still"}, nil
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

// test runs tests of a package; nil when all pass.
func test(dir string, by search, limit time.Duration) (*found, error) {
	binary := filepath.Join(dir, "tests.bin")
	if err := goTool(dir, "test", "-c", "-o", binary, by.pkg); err != nil {
		return nil, err
	}
	out, hangs, err := listen(filepath.Join(dir, by.pkg), limit, binary, "-test.v", "-test.failfast", "-test.run", by.run)
	if hangs {
		return &found{checker: "hang", text: "the tests stood still"}, nil
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

// goTool runs the go command, whose output is in its error.
func goTool(dir string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// listen runs a program, until nothing has come of it for limit: then it hangs. However long it takes otherwise, as on a busy machine, isn't judged.
func listen(dir string, limit time.Duration, name string, args ...string) (out []byte, hangs bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	said := &lastSaid{limit: limit, timer: time.AfterFunc(limit, cancel)}
	defer said.timer.Stop()
	cmd.Stdout, cmd.Stderr = said, said
	err = cmd.Run()
	return said.Bytes(), ctx.Err() != nil, err
}

// lastSaid keeps what a program prints, and winds the timer up each time.
type lastSaid struct {
	bytes.Buffer
	limit time.Duration
	timer *time.Timer
}

func (l *lastSaid) Write(p []byte) (int, error) {
	l.timer.Reset(l.limit)
	return l.Buffer.Write(p)
}
