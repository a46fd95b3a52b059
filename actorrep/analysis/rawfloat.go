package analysis

import (
	"go/types"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// RawFloat finds floats that are sent as all their bits.
var RawFloat = &analysis.Analyzer{
	Name: "rawfloat",
	Doc: `find replicated floats without quantization

A float with a net tag that has none of q=, rot= and quat= is sent as all its 32 or 64 bits, each time any of them changes, which in
a simulation is every tick. Instead say in what steps it is to be sent, such as q=0.01 for metres, rot=16 for degrees or
quat=15 for a quaternion: it takes fewer bits, and a change below a step is none.`,
	Requires: []*analysis.Analyzer{classes},
	Run:      runRawFloat,
}

func runRawFloat(pass *analysis.Pass) (any, error) {
	for _, c := range pass.ResultOf[classes].([]*class) {
		for i := range c.fields {
			f := &c.fields[i]
			o := f.options
			if o.bad() || o.step != nil || o.bits != nil || o.quat != nil || o.condition != nil && o.condition.key == "never" {
				continue
			}
			list, _ := parts(f.typ, f.name, o)
			if p := firstFloat(list); p != nil {
				report(pass, f, advice, nil, "%s is sent as %d bits whenever any of them changes; add %s to its tag", p.path, floatBits(p), proposal(p.path))
			} else if p := untaggedFloat(elementOf(f.typ), f.name+"[]"); p != nil {
				report(pass, f, advice, nil, "%s is sent as %d bits whenever any of them changes; give it a net tag with %s", p.path, floatBits(p), proposal(p.path))
			}
		}
	}
	return nil, nil
}

func firstFloat(list []part) *part {
	for i := range list {
		if list[i].kind == partFloat {
			return &list[i]
		}
	}
	return nil
}

func floatBits(p *part) int {
	if p.typ.Underlying().(*types.Basic).Kind() == types.Float32 {
		return 32
	}
	return 64
}

// untaggedFloat is the first float without a tag in the elements of a fast array, whose exported fields are all sent.
func untaggedFloat(elem types.Type, path string) *part {
	if elem == nil {
		return nil
	}
	st, ok := elem.Underlying().(*types.Struct)
	if list, _ := parts(elem, path, nil); !ok || len(list) == 1 && list[0].kind == partCustom {
		return firstFloat(list)
	}
	for i := range st.NumFields() {
		v := st.Field(i)
		if _, tagged := reflect.StructTag(st.Tag(i)).Lookup("net"); tagged || !sentInWhole(v) {
			continue
		}
		list, _ := parts(v.Type(), path+"."+v.Name(), nil)
		if p := firstFloat(list); p != nil {
			return p
		}
	}
	return nil
}

// proposal is the option that a float of that name likely wants.
func proposal(path string) string {
	path = strings.ToLower(path)
	for _, rotation := range []string{"quat", "orientation", "attitude"} {
		if strings.Contains(path, rotation) {
			return "quat=15 for a quaternion, or q=STEP"
		}
	}
	for _, angle := range []string{"yaw", "pitch", "roll", "angle", "heading", "rotation", "rotator"} {
		if strings.Contains(path, angle) {
			return "rot=16 for an angle in degrees, or q=STEP"
		}
	}
	return "q=STEP, as q=0.01 for hundredths"
}
