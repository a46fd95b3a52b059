package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tryPackage makes a package's mutants and runs its tests against each that is covered.
func tryPackage(p pkg, listed map[string]bool, o options) (sum tally, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	mutants, binary, err := build(p, dir)
	if err != nil {
		return sum, err
	}
	covered, err := coverage(p, dir, o)
	if err != nil {
		return sum, err
	}
	out, err := runTests(p, binary, 0, 10*time.Minute, "-test.v", "-test.run", o.run, "-test.skip", o.skip)
	if err != nil {
		return sum, fmt.Errorf("the tests fail without a mutant: %w\n%s", err, out)
	}
	groups := inGroups(string(out))
	var todo []mutant
	for _, m := range mutants {
		if covered(m) && strings.Contains(m.name, o.only) {
			todo = append(todo, m)
		}
	}
	todo = sample(todo, o.sample, o.seed)
	killed := tryAll(p, binary, todo, groups, o)
	return report(p, mutants, todo, killed, listed, o), nil
}

// report prints the survivors and the sum of a package.
func report(p pkg, mutants, todo []mutant, killed []bool, listed map[string]bool, o options) (sum tally) {
	sum.covered = len(todo)
	for i, m := range todo {
		became, known := "", listed[m.name]
		switch {
		case killed[i] && known:
			sum.outdated++
			became = "listed but killed"
		case killed[i]:
			became = "killed"
		case known:
			became = "listed"
		default:
			sum.unlisted++
			became = "survives"
		}
		if killed[i] {
			sum.killed++
		}
		if o.verbose || became == "survives" || became == "listed but killed" {
			fmt.Printf("%s:%d: %s: %s\n", m.file, m.line, became, m.name)
		}
	}
	fmt.Printf("%-28s %5d mutants, %5d covered, %5d killed, %5.1f %%, %d survivors not listed\n", p.dir, len(mutants), sum.covered, sum.killed, sum.share(), sum.unlisted)
	return sum
}

// build compiles the package's tests with all of its mutants, less those that don't compile.
func build(p pkg, dir string) (mutants []mutant, binary string, err error) {
	binary = filepath.Join(dir, "tests")
	dropped := map[int]bool{}
	for range 30 {
		m := &mutator{fset: token.NewFileSet(), names: map[string]int{}, dropped: dropped}
		overlay := map[string]string{}
		add := func(name string, text []byte) error {
			path := filepath.Join(dir, name)
			abs, err := filepath.Abs(filepath.Join(p.dir, name))
			if err != nil {
				return err
			}
			overlay[abs] = path
			return os.WriteFile(path, text, 0o600)
		}
		for _, name := range p.files {
			text, err := m.file(p.dir, name)
			if err != nil {
				return nil, "", err
			}
			if text != nil {
				if err := add(name, text); err != nil {
					return nil, "", err
				}
			}
		}
		if err := add("zz_mutants.go", []byte(support(p.name))); err != nil {
			return nil, "", err
		}
		list, err := json.Marshal(map[string]any{"Replace": overlay})
		if err != nil {
			return nil, "", err
		}
		config := filepath.Join(dir, "overlay.json")
		if err := os.WriteFile(config, list, 0o600); err != nil {
			return nil, "", err
		}
		out, err := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", config, "-o", binary, "./"+p.dir).CombinedOutput()
		if err == nil {
			for _, made := range m.mutants {
				if !dropped[made.id] {
					mutants = append(mutants, made)
				}
			}
			return mutants, binary, nil
		}
		before := len(dropped)
		drop(dropped, string(out), dir)
		if len(dropped) == before {
			return nil, "", fmt.Errorf("the mutants don't compile: %s", out)
		}
	}
	return nil, "", errors.New("the mutants don't compile")
}

var (
	compileError = regexp.MustCompile(`([\w.-]+\.go):(\d+):\d+: `)
	inText       = regexp.MustCompile(`(?:` + choice + ` [!=]= |` + pick + `\()(\d+)`)
)

// drop notes the mutants in the lines of compile errors, or the nearest before them.
func drop(dropped map[int]bool, out, dir string) {
	for _, e := range compileError.FindAllStringSubmatch(out, -1) {
		text, err := os.ReadFile(filepath.Join(dir, e[1]))
		if err != nil {
			continue
		}
		lines := bytes.Split(text, []byte("\n"))
		n, _ := strconv.Atoi(e[2])
		for n = min(n, len(lines)); n > 0; n-- {
			ids := inText.FindAllSubmatch(lines[n-1], -1)
			for _, id := range ids {
				v, _ := strconv.Atoi(string(id[1]))
				dropped[v] = true
			}
			if ids != nil {
				break
			}
		}
	}
}

// coverage is which mutants the tests reach.
func coverage(p pkg, dir string, o options) (covered func(mutant) bool, err error) {
	profile := filepath.Join(dir, "cover.out")
	args := []string{"test", "-short", "-count=1", "-coverprofile", profile}
	args = append(args, "-run", o.run, "-skip", o.skip)
	if out, err := exec.Command("go", append(args, "./"+p.dir)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the tests fail: %w\n%s", err, out)
	}
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		file, rest, _ := strings.Cut(s.Text(), ".go:")
		var fromLine, fromCol, toLine, toCol, statements, count int
		if n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &fromLine, &fromCol, &toLine, &toCol, &statements, &count); n != 6 || count == 0 {
			continue
		}
		for line := fromLine; line <= toLine; line++ {
			lines[fmt.Sprintf("%s.go:%d", filepath.Base(file), line)] = true
		}
	}
	return func(m mutant) bool { return lines[fmt.Sprintf("%s:%d", filepath.Base(m.file), m.line)] }, nil
}

// group is tests that are run together, and the time that they take without a mutant.
type group struct {
	run  string // for -test.run
	took time.Duration
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\S+) \((\S+)s\)`)

// inGroups parts the tests that passed, as -test.v lists them: the quick ones, of less than a tenth of the time of all, together, then
// each slow one alone, the quickest of them first. So most mutants are killed before a slow test is run.
func inGroups(verbose string) (groups []group) {
	var all time.Duration
	for _, m := range passed.FindAllStringSubmatch(verbose, -1) {
		took, _ := time.ParseDuration(m[2] + "s") // as it is printed
		groups = append(groups, group{"^" + m[1] + "$", took})
		all += took
	}
	var together group
	var names []string
	groups = slices.DeleteFunc(groups, func(g group) bool {
		if g.took >= max(all/10, 200*time.Millisecond) {
			return false
		}
		names, together.took = append(names, g.run[1:len(g.run)-1]), together.took+g.took
		return true
	})
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(a.took, b.took) })
	if names == nil {
		return groups
	}
	together.run = "^(" + strings.Join(names, "|") + ")$"
	return append([]group{together}, groups...)
}

// sample is a mutant of every n, drawn with a seed, in their order; all of them when n is at most 1.
func sample(todo []mutant, n int, seed uint64) (drawn []mutant) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for ; n > 1 && len(todo) > 0; todo = todo[min(n, len(todo)):] {
		drawn = append(drawn, todo[rng.IntN(min(n, len(todo)))])
	}
	return append(drawn, todo...)
}

// runTests runs the test binary with a mutant alive. An error says that the tests failed, or hung.
func runTests(p pkg, binary string, id int, limit time.Duration, args ...string) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append(args, "-test.short", "-test.failfast")...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(id), "GOMEMLIMIT=1GiB", "GOMAXPROCS=1")
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

// tryAll runs the tests against each mutant and reports which were killed. It shows how far it is.
func tryAll(p pkg, binary string, todo []mutant, groups []group, o options) []bool {
	killed := make([]bool, len(todo))
	free := make(chan struct{}, max(1, o.workers))
	var running sync.WaitGroup
	for i, m := range todo {
		free <- struct{}{}
		if onTerminal() || i%100 == 0 {
			progress("%s %d/%d", p.dir, i+1, len(todo))
		}
		running.Go(func() {
			for _, g := range groups {
				if _, err := runTests(p, binary, m.id, 3*g.took+o.slack, "-test.run", g.run); err != nil {
					killed[i] = true
					break
				}
			}
			<-free
		})
	}
	running.Wait()
	if onTerminal() {
		progress("")
	}
	return killed
}

// progress shows how far it is: on a terminal in one line, otherwise in one for every hundred mutants.
func progress(format string, args ...any) {
	if onTerminal() {
		fmt.Fprintf(os.Stderr, "\r\x1b[K"+format, args...)
	} else {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	}
}

func onTerminal() bool {
	info, err := os.Stderr.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
