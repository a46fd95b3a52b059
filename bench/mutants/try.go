package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tryPackage makes a package's mutants and runs against each the tests in which it differs.
func tryPackage(p pkg, listed map[string]bool, o options) (sum tally, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	mutants, program, err := build(p, dir)
	if err != nil {
		return sum, err
	}
	tests, err := record(p, program, dir, mutants, o)
	if err != nil {
		return sum, err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return sum, err
	}
	missed := missedBy(tests)
	var todo []mutant
	for _, m := range mutants {
		if _, reached := missed[m.id]; reached && only.MatchString(m.name) {
			todo = append(todo, m)
		}
	}
	todo = sample(todo, o.sample, o.seed)
	killed := tryAll(p, program, todo, missed, o)
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
	if o.only == "" {
		for _, name := range gone(p, mutants, listed) {
			sum.outdated++
			fmt.Printf("listed, but there is no such mutant: %s\n", name)
		}
	}
	fmt.Printf("%-28s %5d mutants, %5d covered, %5d killed, %5.1f %%, %d survivors not listed\n", p.dir, len(mutants), sum.covered, sum.killed, sum.share(), sum.unlisted)
	return sum
}

// gone is the listed mutants of a package that it hasn't any more.
func gone(p pkg, mutants []mutant, listed map[string]bool) (names []string) {
	there := map[string]bool{}
	for _, m := range mutants {
		there[m.name] = true
	}
	for name := range listed {
		file, _, _ := strings.Cut(name, " ")
		if path.Dir(file) == p.dir && !there[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// build compiles the package's tests with all of its mutants, less those that don't compile.
func build(p pkg, dir string) (mutants []mutant, program string, err error) {
	program = filepath.Join(dir, "tests")
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
		if err := add("zz_mutants.go", []byte(support(p.name, len(m.mutants)))); err != nil {
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
		out, err := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", config, "-o", program, "./"+p.dir).CombinedOutput()
		if err == nil {
			for _, made := range m.mutants {
				if !dropped[made.id] {
					mutants = append(mutants, made)
				}
			}
			return mutants, program, nil
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
	compileError = regexp.MustCompile(`([\w.-]+\.go):(\d+):(?:\d+:)? `)
	inText       = regexp.MustCompile(`(?:` + isAlive + `|` + pick + `|` + notes + `|` + value + `)\((\d+)`)
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

// test is one top-level test, example or fuzz test with its seeds: the time that it takes without a mutant, the mutants that it reaches,
// and those of them that differ in it from what the text says.
type test struct {
	name    string
	took    time.Duration
	reached []int
	differs []int
}

// record runs each test alone, without a mutant.
func record(p pkg, program, dir string, mutants []mutant, o options) (tests []test, err error) {
	tells := map[int]bool{}
	for _, m := range mutants {
		tells[m.id] = m.tells
	}
	out, _, err := runTests(p, program, "", 0, 0, 0, "-test.list", cmp.Or(o.run, "."))
	if err != nil {
		return nil, fmt.Errorf("the tests can't be listed: %w\n%s", err, out)
	}
	skip, err := regexp.Compile(cmp.Or(o.skip, "^$"))
	if err != nil {
		return nil, err
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if !strings.HasPrefix(name, "Benchmark") && !skip.MatchString(name) {
			tests = append(tests, test{name: name})
		}
	}
	failed := make([]error, len(tests))
	parallel(len(tests), o.workers, func(i int) {
		t := &tests[i]
		file := filepath.Join(dir, t.name+".reached")
		if failed[i] = os.WriteFile(file, nil, 0o600); failed[i] != nil {
			return
		}
		out, took, err := runTests(p, program, file, 0, 0, 0, "-test.run", pattern(tests[i:i+1]))
		t.took = took
		if err != nil {
			failed[i] = fmt.Errorf("%s fails without a mutant: %w\n%s", t.name, err, out)
			return
		}
		ids, err := os.ReadFile(file)
		failed[i] = err
		for ; len(ids) >= 4; ids = ids[4:] {
			id := int(binary.LittleEndian.Uint32(ids))
			if id < differsBit {
				t.reached = append(t.reached, id)
			}
			if id >= differsBit || !tells[id] {
				t.differs = append(t.differs, id&^differsBit)
			}
		}
	})
	return tests, errors.Join(failed...)
}

// missedBy is, for each mutant that tests reach, those in which it differs, the quickest of them first. The others pass with it as they do without.
func missedBy(tests []test) map[int][]test {
	tests = slices.Clone(tests)
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	missed := map[int][]test{}
	for _, t := range tests {
		for _, id := range t.reached {
			if missed[id] == nil {
				missed[id] = []test{}
			}
		}
		for _, id := range t.differs {
			missed[id] = append(missed[id], t)
		}
	}
	return missed
}

// inBundles parts tests that are to be run one after the other, the quickest first, into those that one process runs: as many as take
// no longer than all those before them, or a tenth of a second. So a process isn't started for each quick test, and a mutant
// that one of them kills costs twice the time of those before that one at most.
func inBundles(tests []test) (bundles [][]test) {
	var done time.Duration
	for len(tests) > 0 {
		n, together := 1, tests[0].took
		for n < len(tests) && together+tests[n].took <= max(done, 100*time.Millisecond) {
			together += tests[n].took
			n++
		}
		bundles, tests, done = append(bundles, tests[:n]), tests[n:], done+together
	}
	return bundles
}

// pattern is what -test.run takes for these tests and no others.
func pattern(tests []test) string {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// sample is a mutant of every n, drawn with a seed, in their order; all of them when n is at most 1.
func sample(todo []mutant, n int, seed uint64) (drawn []mutant) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for ; n > 1 && len(todo) > 0; todo = todo[min(n, len(todo)):] {
		drawn = append(drawn, todo[rng.IntN(min(n, len(todo)))])
	}
	return append(drawn, todo...)
}

// maxTestMemory is the address space in KiB of a process that runs tests: a mutant may allocate without end.
const maxTestMemory = 8 << 20

// runTests runs the test program with a mutant alive, and appends to the file reached, if there is one, those that are reached. It returns how much of the processor's time they took. An error says that
// the tests failed, hung or took more than limit of the processor's time; 0 is no limit. What counts as a hang is far longer, since other
// programs may keep the machine busy.
func runTests(p pkg, program, reached string, id int, limit, slack time.Duration, args ...string) (out []byte, took time.Duration, err error) {
	seconds, wall := "unlimited", 30*time.Minute
	if limit > 0 {
		seconds, wall = strconv.Itoa(int(limit/time.Second)+1), 4*limit+slack
	}
	ctx, cancel := context.WithTimeout(context.Background(), wall)
	defer cancel()
	script := fmt.Sprintf(`ulimit -t %s; ulimit -v %d; exec "$0" "$@"`, seconds, maxTestMemory)
	cmd := exec.CommandContext(ctx, "sh", slices.Concat([]string{"-c", script, program}, args, []string{"-test.short", "-test.failfast"})...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(id), "MUTANT_REACHED="+reached, "GOMEMLIMIT=1GiB", "GOMAXPROCS=1")
	cmd.WaitDelay = time.Second
	out, err = cmd.CombinedOutput()
	if cmd.ProcessState != nil {
		took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return out, took, err
}

// tryAll runs the tests that may miss each mutant against it and reports which were killed. It shows how far it is.
func tryAll(p pkg, program string, todo []mutant, missed map[int][]test, o options) []bool {
	killed := make([]bool, len(todo))
	parallel(len(todo), o.workers, func(i int) {
		if onTerminal() || i%100 == 0 {
			progress("%s %d/%d", p.dir, i+1, len(todo))
		}
		for _, b := range inBundles(missed[todo[i].id]) {
			var took time.Duration
			for _, t := range b {
				took += t.took
			}
			if _, _, err := runTests(p, program, "", todo[i].id, 3*took+2*time.Second, o.slack, "-test.run", pattern(b)); err != nil {
				killed[i] = true
				break
			}
		}
	})
	if onTerminal() {
		progress("")
	}
	return killed
}

// parallel calls f for all numbers below n, some of them at a time.
func parallel(n, workers int, f func(i int)) {
	free := make(chan struct{}, max(1, workers))
	var running sync.WaitGroup
	for i := range n {
		free <- struct{}{}
		running.Go(func() {
			f(i)
			<-free
		})
	}
	running.Wait()
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
