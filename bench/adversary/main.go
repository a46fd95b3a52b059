// Adversary attacks every promise of the module and prints a line for each: what is promised, what was measured, the
// bound, what of a CPU it took, and whether it holds. The attackers speak the protocol: they connect in order and lie afterwards. Nearly all of
// it runs in virtual time, so that a figure is the same on every machine; what needs real sockets says so.
//
//	go run ./bench/adversary                     # all of it, within ten minutes
//	go run ./bench/adversary -quick              # a sample, within 40 s
//	go run ./bench/adversary -only core -v       # one area, with what else was seen
//	go run ./bench/adversary -attack blackout    # those with that in their names
//	go run ./bench/adversary -limits             # what isn't promised, in figures
//
// The exit status is 1 when a promise doesn't hold. See attack.go for how to add an attack.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	only := flag.String("only", "", "areas to attack, separated by commas: "+strings.Join(areas, ", ")+"; all unless given")
	match := flag.String("attack", "", "attack only those with this in their names")
	quick := flag.Bool("quick", false, "a sample of everything that takes long")
	seed := flag.Uint64("seed", 1, "seed of the networks and the attackers")
	verbose := flag.Bool("v", false, "print what else was seen")
	limits := flag.Bool("limits", false, "print what comes of situations in which nothing is promised, instead of attacks")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "adversary: %q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	if *limits {
		if err := printLimits(options{seed: *seed}); err != nil {
			fmt.Fprintln(os.Stderr, "adversary:", err)
			os.Exit(1)
		}
		return
	}
	chosen, err := choose(*only, *match)
	if err != nil {
		fmt.Fprintln(os.Stderr, "adversary:", err)
		os.Exit(2)
	}
	failed, known := runAll(chosen, options{seed: *seed, quick: *quick, verbose: *verbose})
	switch {
	case failed > 0:
		fmt.Printf("FAIL: %d of %d promises don't hold, besides %d known not to; seed %d\n", failed, len(chosen), known, *seed)
		os.Exit(1)
	case known > 0:
		_, err = fmt.Printf("PASS: but %d of %d promises are known not to hold yet; seed %d\n", known, len(chosen), *seed)
	default:
		_, err = fmt.Printf("PASS: all %d promises hold; seed %d\n", len(chosen), *seed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "adversary:", err)
		os.Exit(1)
	}
}

// choose is the attacks of some areas and with some text in their names.
func choose(only, match string) (chosen []attack, err error) {
	wanted := areas
	if only != "" {
		wanted = strings.Split(only, ",")
	}
	for _, area := range wanted {
		if !slices.Contains(areas, area) {
			return nil, fmt.Errorf("there is no area %q; there are %s", area, strings.Join(areas, ", "))
		}
	}
	for _, a := range attacks {
		if slices.Contains(wanted, a.area) && strings.Contains(a.name, match) {
			chosen = append(chosen, a)
		}
	}
	slices.SortStableFunc(chosen, func(a, b attack) int {
		return cmp.Compare(slices.Index(areas, a.area), slices.Index(areas, b.area))
	})
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no attack in %s has %q in its name", strings.Join(wanted, ", "), match)
	}
	return chosen, nil
}

type options struct {
	seed           uint64
	quick, verbose bool
}

// outcome is what came of an attack.
type outcome struct {
	figure figure
	cost   time.Duration // of its own thread; what servers and the collector do beside it isn't in it
	notes  []string
}

// runAll runs attacks, as many at a time as there are processors, then those that want the process for themselves. It
// prints each as soon as all before it are done.
func runAll(chosen []attack, o options) (failed, known int) {
	p := newPrinter(chosen, o)
	outcomes := make([]chan outcome, len(chosen))
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	go func() {
		var running sync.WaitGroup
		free := make(chan struct{}, runtime.GOMAXPROCS(0))
		for i, a := range chosen {
			if a.alone {
				continue
			}
			free <- struct{}{}
			running.Go(func() {
				outcomes[i] <- runOne(&a, o)
				<-free
			})
		}
		running.Wait()
		for i, a := range chosen {
			if a.alone {
				outcomes[i] <- runOne(&a, o)
			}
		}
	}()
	for i, a := range chosen {
		p.waiting(&a)
		switch p.line(&a, <-outcomes[i]) {
		case verdictFail:
			failed++
		case verdictKnown:
			known++
		}
	}
	return failed, known
}
