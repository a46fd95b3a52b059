// Mutants breaks packages in many small ways, one at a time, and runs each package's own tests against every one. A mutant
// that no test fails on survives: either a test is missing, or the mutant is equivalent or harmless and listed, with the
// reason, in netconn/MUTANTS.md.
//
//	go run ./bench/mutants ./history ./packetnotify
//	go run ./bench/mutants -v -only AddLost ./history
//
// All mutants of a package are compiled into one test binary. First each test is run alone and without a mutant, and the binary notes which
// mutants it reaches, and which of them differ in it: a comparison at its boundary only when both sides are equal, an if that is never taken only when it is to be
// taken or calls something, a constant that isn't assigned only when something else was there. Then it is run for each mutant with the tests in which that differs, the quickest first,
// until one fails: most mutants cost less than a second, and only one that survives costs all of them. A mutant that no test reaches isn't covered. The exit status is 1 when less
// than 90 % of the covered mutants are killed, over all packages together, or a survivor isn't listed, or a listed one is killed or no
// mutant of its package.
//
// A test that takes three times the processor's time that it takes without a mutant, and 2 s, counts as failed. That doesn't depend on what else
// the machine does. Only a test that waits for ever is ended by a clock: see -slack. It needs a Unix with sh.
//
// The mutants: a comparison at its boundary and negated, && and || exchanged, an if that never is taken, arithmetic
// and bit operators exchanged, ++ and -- exchanged, break and continue exchanged, a returned true or false negated, and
// a call or an assignment left out. A file with go:build, go:embed and the like is as it is; noinline doesn't matter.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "only mutants whose line in the list matches this")
	flag.IntVar(&o.workers, "workers", 2, "test binaries at a time")
	flag.DurationVar(&o.slack, "slack", time.Minute, "time by the clock that tests get beyond four times the processor's time that they may take")
	flag.IntVar(&o.sample, "sample", 1, "try one mutant of every so many")
	flag.Uint64Var(&o.seed, "seed", 1, "which ones of -sample")
	flag.Float64Var(&o.goal, "goal", 90, "the percentage of covered mutants that must be killed")
	flag.StringVar(&o.list, "list", "netconn/MUTANTS.md", "the survivors that are known to be equivalent or harmless")
	flag.StringVar(&o.run, "run", "", "run only tests that match this")
	flag.StringVar(&o.skip, "skip", "", "leave out tests that match this, for their time")
	flag.BoolVar(&o.verbose, "v", false, "print every mutant")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	listed, err := readList(o.list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	var all tally
	for _, pattern := range flag.Args() {
		pkgs, err := packages(pattern)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(2)
		}
		for _, pkg := range pkgs {
			sum, err := tryPackage(pkg, listed, o)
			if err != nil {
				fmt.Fprintf(os.Stderr, "mutants: %s: %v\n", pkg.dir, err)
				os.Exit(2)
			}
			all.add(sum)
		}
	}
	if all.share() < o.goal || all.unlisted > 0 || all.outdated > 0 {
		fmt.Printf("FAIL: %.1f %% killed, %d survivors that %s doesn't list, %d that it lists and are killed or gone\n", all.share(), all.unlisted, o.list, all.outdated)
		os.Exit(1)
	}
	if _, err := fmt.Printf("PASS: %.1f %% of %d killed, the others are listed\n", all.share(), all.covered); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// tally is what came of the mutants of a package, or of several.
type tally struct{ covered, killed, unlisted, outdated int }

func (t *tally) add(u tally) {
	t.covered += u.covered
	t.killed += u.killed
	t.unlisted += u.unlisted
	t.outdated += u.outdated
}

// share is the percentage that was killed.
func (t *tally) share() float64 {
	if t.covered == 0 {
		return 100
	}
	return 100 * float64(t.killed) / float64(t.covered)
}

type options struct {
	only, list      string
	run, skip       string // tests
	workers, sample int
	seed            uint64
	slack           time.Duration
	goal            float64
	verbose         bool
}

// pkg is a package that is to be mutated.
type pkg struct {
	name  string // in its package clauses
	dir   string // relative to the module's root, without ./
	files []string
}

// packages is what a pattern of the go command names, less packages without tests.
func packages(pattern string) (list []pkg, err error) {
	out, err := exec.Command("go", "list", "-f", "{{.Name}}\t{{.Dir}}\t{{len .TestGoFiles}}{{len .XTestGoFiles}}\t{{join .GoFiles \" \"}}", pattern).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pattern, err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) < 4 || f[2] == "00" {
			continue
		}
		dir, err := filepath.Rel(root, f[1])
		if err != nil {
			return nil, err
		}
		list = append(list, pkg{f[0], filepath.ToSlash(dir), strings.Fields(f[3])})
	}
	return list, nil
}

// readList is the mutants named in a page: what stands between backquotes in the first column of its tables.
func readList(path string) (map[string]bool, error) {
	page, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if cell, ok := strings.CutPrefix(line, "| ``"); ok {
			name, _, _ := strings.Cut(cell, "`` |")
			listed[strings.ReplaceAll(strings.TrimSpace(name), `\|`, "|")] = true
		}
	}
	return listed, nil
}
