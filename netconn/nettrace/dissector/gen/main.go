// Gen writes the dissector to the file it is given.
package main

import (
	"fmt"
	"os"

	"github.com/bunchnet/bunchnet/netconn/nettrace/dissector"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen bunchnet.lua")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(dissector.Generate()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
