package analysis_test

import (
	"fmt"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep/analysis"
)

// A program with other analysers of its own gives these to multichecker.Main beside them.
func ExampleAll() {
	for _, a := range analysis.All() {
		title, _, _ := strings.Cut(a.Doc, "\n")
		fmt.Printf("%-16s %s\n", a.Name, title)
	}
	// Output:
	// badtag           check net tags as World.Register does
	// copyvar          find copies of actors and of replicated Vars
	// netmap           find maps, pointers and other things that can't be replicated
	// notifywrites     find notify methods that write replicated fields
	// notowner         find RPCs called on actors without an owner, or at the wrong end
	// rawfloat         find replicated floats without quantization
	// reliablelooprpc  find reliable RPCs called every tick
}
