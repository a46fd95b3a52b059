// Gen writes setters and a fast comparison for classes of actors that change much. Put beside the struct
//
//	//go:generate go run github.com/bunchnet/bunchnet/actorrep/gen -type Soldier
//
// and run go generate; it writes soldier_net.go. For this struct
//
//	type Soldier struct {
//		actorrep.Base
//		Pos   Vec     `net:"q=0.01"`
//		Ammo  [3]uint8 `net:"max=99"`
//		Armor uint8   `net:"max=100"`
//	}
//
// the file has
//
//	func (s *Soldier) SetPos(v Vec)              set the field and mark it: actors of the class are compared only when
//	func (s *Soldier) SetAmmo(v [3]uint8)        something was marked, and then only that
//	func (s *Soldier) SetAmmoAt(i int, v uint8)  one element of an array or a slice
//	func (s *Soldier) SetArmor(v uint8)
//	func (s *Soldier) NetCompare(...)            for package layout: the comparison without reflection
//	func (s *Soldier) NetUnits() string          for package layout: which struct the code was written for
//
// From then on change replicated fields through their setters; what is written to a field itself is sent after the next
// MarkDirty. Vars and fast arrays go on marking themselves. Fields that aren't exported get setters that aren't.
// On the wire nothing differs: ends may have the class plain, of Vars or generated. When the struct has changed and the
// code hasn't, Register says so.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	names := flag.String("type", "", "the structs, separated by commas")
	flag.Parse()
	if *names == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: gen -type Soldier,Tank   (in the package's directory)")
		os.Exit(2)
	}
	if err := run(".", strings.Split(*names, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run writes the files of the named structs of the package in dir.
func run(dir string, names []string) error {
	src, err := load(dir, fileNames(names))
	if err != nil {
		return err
	}
	p := src.check(nil, false) // errors don't matter: the code may use setters that aren't there yet
	for _, name := range names {
		code, err := generate(p, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fileName(name)), code, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func fileName(name string) string { return strings.ToLower(name) + "_net.go" }

func fileNames(names []string) map[string]bool {
	m := map[string]bool{}
	for _, name := range names {
		m[fileName(name)] = true
	}
	return m
}
