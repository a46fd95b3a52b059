// Testlog reads what go test -json writes. It prints a line for each package, and all that a test said that failed; what was skipped goes to
// a file, with its reason, and what passed to another, a line for each test.
//
//	go test -json ./... | go run .ci/testlog.go -skips FILE -passed FILE
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is one of package cmd/test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func main() {
	skips := flag.String("skips", "skips.txt", "file to add skipped tests to")
	passed := flag.String("passed", "passed.txt", "file to add tests to that passed")
	flag.Parse()
	if err := run(*skips, *passed); err != nil {
		fmt.Println("FAIL:", err)
		os.Exit(1)
	}
}

func run(skips, passed string) error {
	skipped, err := os.OpenFile(skips, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer skipped.Close()
	good, err := os.OpenFile(passed, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer good.Close()
	said := map[string]*strings.Builder{} // by package and test, or package alone
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		if e.Package == "" { // what doesn't build
			fmt.Print(e.Output)
			continue
		}
		key := e.Package + " " + e.Test
		if said[key] == nil {
			said[key] = &strings.Builder{}
		}
		switch e.Action {
		case "output":
			said[key].WriteString(e.Output)
			continue
		case "pass", "fail", "skip":
		default:
			continue
		}
		switch {
		case e.Action == "skip" && e.Test != "":
			if _, err := fmt.Fprintf(skipped, "%s %s: %s\n", e.Package, e.Test, reason(said[key].String())); err != nil {
				return err
			}
		case e.Action == "pass" && e.Test != "":
			if _, err := fmt.Fprintf(good, "%s %s\n", e.Package, e.Test); err != nil {
				return err
			}
		case e.Action == "fail":
			if e.Test == "" { // with those that never came to an end: a time-out, or an exit
				for _, other := range slices.Sorted(maps.Keys(said)) {
					if strings.HasPrefix(other, key) && other != key {
						fmt.Print(said[other])
						delete(said, other)
					}
				}
			}
			fmt.Print(said[key])
			fallthrough
		case e.Test == "" && e.Action == "pass":
			if e.Test == "" {
				fmt.Printf("%-4s %s %.1f s\n", e.Action, e.Package, e.Elapsed)
			}
		}
		delete(said, key)
	}
	return lines.Err()
}

// reason is what a test said before it was skipped, on one line, without the place in the code.
func reason(text string) string {
	var words []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if _, after, ok := strings.Cut(line, ".go:"); ok {
			_, line, _ = strings.Cut(after, ": ")
		}
		words = append(words, line)
	}
	return strings.Join(words, "; ")
}
