package main

import (
	"bytes"
	"fmt"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// program registers the classes and writes them; it is run in the game's module.
const program = `package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/schema"

	game %s
)

func main() {
	w := actorrep.NewClient(actorrep.Config{})
	var register func(*actorrep.World) error = game.%s
	if err := register(w); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "\t")
	if err := e.Encode(schema.Of(w)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`

// dump writes the schema of what a function registers to a file, or to stdout.
func dump(function, file string, stdout io.Writer) error {
	dot := strings.LastIndexByte(function, '.')
	if dot < 0 || dot < strings.LastIndexByte(function, '/') || !token.IsExported(function[dot+1:]) || !token.IsIdentifier(function[dot+1:]) {
		return fmt.Errorf("%q must be an import path and an exported function, as in example.com/game/classes.Register", function)
	}
	dir, err := os.MkdirTemp("", "bunchnet-schema")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	main := filepath.Join(dir, "main.go")
	if err := os.WriteFile(main, fmt.Appendf(nil, program, strconv.Quote(function[:dot]), function[dot+1:]), 0o600); err != nil {
		return err
	}
	var out, stderr bytes.Buffer
	cmd := exec.Command("go", "run", main)
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	if file == "" {
		_, err = stdout.Write(out.Bytes())
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}
