// Bunchnet-schema says whether two builds of a game may talk to each other. Before a release, and then in CI:
//
//	go run github.com/bunchnet/bunchnet/actorrep/cmd/bunchnet-schema dump -o v1.json example.com/game/classes.Register
//	go run github.com/bunchnet/bunchnet/actorrep/cmd/bunchnet-schema diff v1.json v2.json
//
// dump writes the classes that a function registers: an exported func(*actorrep.World) error of a package that can be
// imported from anywhere, so neither of package main nor of an internal one. It is run in the directory of the game's module, and
// needs the go command. A game may as well write json.Marshal(schema.Of(world)) itself.
//
// diff lists what is different in the second: what was added, removed and retyped, by name. It exits with 0 when the two may talk to
// each other, 1 when they mustn't, and 2 when it can't say. Risky changes don't count unless -strict is given.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/bunchnet/bunchnet/actorrep/schema"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const usage = `usage: bunchnet-schema dump [-o file] example.com/game/classes.Register
       bunchnet-schema diff [-strict] old.json new.json
`

// run is the command; it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	var code int
	var err error
	switch args[0] {
	case "dump":
		out := flags.String("o", "", "the file; default the standard output")
		if flags.Parse(args[1:]) != nil || flags.NArg() != 1 {
			return misused(stderr)
		}
		err = dump(flags.Arg(0), *out, stdout)
	case "diff":
		strict := flags.Bool("strict", false, "risky changes count, too")
		if flags.Parse(args[1:]) != nil || flags.NArg() != 2 {
			return misused(stderr)
		}
		code, err = diff(flags.Arg(0), flags.Arg(1), *strict, stdout)
	default:
		return misused(stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bunchnet-schema:", err)
		return 2
	}
	return code
}

func misused(stderr io.Writer) int {
	fmt.Fprint(stderr, usage)
	return 2
}

func read(file string) (s schema.Schema, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	if len(s.Classes) == 0 {
		return s, fmt.Errorf("%s describes no classes", file)
	}
	return s, nil
}

// diff prints the changes and the verdict.
func diff(old, next string, strict bool, stdout io.Writer) (code int, err error) {
	a, err := read(old)
	if err != nil {
		return 0, err
	}
	b, err := read(next)
	if err != nil {
		return 0, err
	}
	count := map[schema.Severity]int{}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, c := range a.Diff(b) {
		count[c.Severity]++
		name := c.Class
		if c.Name != "" {
			name += "." + c.Name
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Severity, name, c.What)
	}
	if err := t.Flush(); err != nil {
		return 0, err
	}
	bad := count[schema.Breaking]
	if strict {
		bad += count[schema.Risky]
	}
	fmt.Fprintf(stdout, "%d fine, %d risky, %d breaking: ", count[schema.Fine], count[schema.Risky], count[schema.Breaking])
	if bad > 0 {
		fmt.Fprintln(stdout, "the two builds must not talk to each other")
		return 1, nil
	}
	fmt.Fprintln(stdout, "the two builds may talk to each other")
	return 0, nil
}
