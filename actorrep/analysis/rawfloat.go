package analysis

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// RawFloat finds floats that are sent as all their bits.
var RawFloat = &analysis.Analyzer{
	Name: "rawfloat",
	Doc: `find replicated floats without quantization

A float with a net tag that has neither q= nor rot= is sent as all its 32 or 64 bits, each time any of them changes, which in
a simulation is every tick. Instead say in what steps it is to be sent, such as q=0.01 for metres, or rot=16 for degrees:
it takes fewer bits, and a change below a step is none.`,
	Requires: []*analysis.Analyzer{classes},
	Run:      runRawFloat,
}

func runRawFloat(pass *analysis.Pass) (any, error) {
	for _, c := range pass.ResultOf[classes].([]*class) {
		for i := range c.fields {
			f := &c.fields[i]
			o := f.options
			if o.bad() || o.step != nil || o.bits != nil || o.condition != nil && o.condition.key == "never" {
				continue
			}
			list, _ := parts(f.typ, f.name, o.max != nil)
			for _, p := range list {
				if p.kind != partFloat {
					continue
				}
				bits := 64
				if p.typ.Underlying().(*types.Basic).Kind() == types.Float32 {
					bits = 32
				}
				report(pass, f, advice, nil, "%s is sent as %d bits whenever any of them changes; add %s to its tag", p.path, bits, proposal(p.path))
				break
			}
		}
	}
	return nil, nil
}

// proposal is the option that a float of that name likely wants.
func proposal(path string) string {
	path = strings.ToLower(path)
	for _, angle := range []string{"yaw", "pitch", "roll", "angle", "heading", "rotation", "rotator"} {
		if strings.Contains(path, angle) {
			return "rot=16 for an angle in degrees, or q=STEP"
		}
	}
	return "q=STEP, as q=0.01 for hundredths"
}
