package analysis

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// tagOptions is a parsed net tag, by the rules of package layout, and what is wrong with it.
type tagOptions struct {
	step, bits, quat, max, cap, notify *tagOption // nil when not given
	condition                          *tagOption
	problems                           []tagProblem
}

// tagOption is one option of a tag and where in the tag it is.
type tagOption struct {
	text, key, value string
	offset           int
}

type tagProblem struct {
	option  *tagOption
	message string
	fix     string // what to write instead, or ""
	benign  bool   // package layout takes it
}

const maxCap = 65535

var conditions = []string{"initial", "owner", "skipowner", "simulated", "autonomous", "initialorowner", "custom", "replay",
	"replayorowner", "skipreplay", "never", "simulatedorphysics", "simulatednoreplay", "simulatedorphysicsnoreplay"}

// renamed is what people write who know the options by another name.
var renamed = map[string]string{"initialonly": "initial", "owneronly": "owner", "simulatedonly": "simulated", "autonomousonly": "autonomous",
	"replayonly": "replay", "quantize": "q", "step": "q", "bits": "rot", "quaternion": "quat", "onrep": "notify", "onchange": "notify", "limit": "cap", "len": "cap", "none": "never"}

func parseTag(tag string) *tagOptions {
	o := &tagOptions{}
	offset := 0
	for _, part := range strings.Split(tag, ",") {
		text := strings.TrimSpace(part)
		if text != "" {
			opt := &tagOption{text: text, offset: offset + strings.Index(part, text)}
			opt.key, opt.value, _ = strings.Cut(text, "=")
			o.set(opt)
		}
		offset += len(part) + 1
	}
	if o.step != nil && o.bits != nil {
		o.problem(o.bits, "q= and rot= exclude each other: q= is for lengths, rot= for angles")
	}
	if o.quat != nil && (o.step != nil || o.bits != nil) {
		o.problem(o.quat, "quat= excludes q= and rot=: it says how all four numbers of a quaternion are sent")
	}
	return o
}

func (o *tagOptions) problem(opt *tagOption, format string, args ...any) {
	o.problems = append(o.problems, tagProblem{option: opt, message: fmt.Sprintf(format, args...)})
}

// bad reports whether package layout refuses the tag.
func (o *tagOptions) bad() bool {
	return slices.ContainsFunc(o.problems, func(p tagProblem) bool { return !p.benign })
}

func (o *tagOptions) set(opt *tagOption) {
	switch opt.key {
	case "q":
		if step, err := strconv.ParseFloat(opt.value, 64); err != nil || !(step > 0) || math.IsInf(step, 0) {
			o.problem(opt, "%s must be a step above 0, as in q=0.01", opt.text)
		}
		o.once(&o.step, opt)
	case "rot":
		o.number(opt, 8, 16)
		o.once(&o.bits, opt)
	case "quat":
		o.number(opt, 8, 16)
		o.once(&o.quat, opt)
	case "max":
		o.number(opt, 1, math.MaxUint32-1)
		o.once(&o.max, opt)
	case "cap":
		o.number(opt, 1, maxCap)
		o.once(&o.cap, opt)
	case "notify":
		o.once(&o.notify, opt)
	case "group":
		if opt.value == "" {
			o.problem(opt, "group= wants the group's name")
		}
		if o.condition != nil {
			o.problem(opt, "two conditions, %s and %s: one field has one", o.condition.key, opt.key)
		}
		o.condition = opt
	default:
		o.setCondition(opt)
	}
}

func (o *tagOptions) number(opt *tagOption, low, high uint32) {
	if n, err := strconv.ParseUint(opt.value, 10, 32); err != nil || uint32(n) < low || uint32(n) > high {
		o.problem(opt, "%s must be from %d to %d", opt.text, low, high)
	}
}

// once sets an option; given twice, the last counts.
func (o *tagOptions) once(field **tagOption, opt *tagOption) {
	if *field != nil {
		o.problems = append(o.problems, tagProblem{option: *field, benign: true, message: fmt.Sprintf("%s= is given twice, the last counts", opt.key)})
	}
	*field = opt
}

func (o *tagOptions) setCondition(opt *tagOption) {
	switch {
	case !slices.Contains(conditions, opt.key):
		p := tagProblem{option: opt, message: fmt.Sprintf("unknown option %q", opt.text)}
		if key := meant(opt.key); key != "" {
			p.fix = key
			if opt.value != "" {
				p.fix += "=" + opt.value
			}
			p.message += fmt.Sprintf("; is it %q?", p.fix)
		}
		o.problems = append(o.problems, p)
		return
	case o.condition != nil:
		o.problem(opt, "two conditions, %s and %s: one field has one", o.condition.key, opt.key)
	case opt.key != opt.text:
		o.problems = append(o.problems, tagProblem{option: opt, message: fmt.Sprintf("%s takes no value", opt.key), fix: opt.key, benign: true})
	}
	o.condition = opt
}

// meant is the option that was likely meant by an unknown one, or "".
func meant(key string) string {
	key = strings.ToLower(key)
	key = strings.TrimPrefix(key, "cond_")
	key = strings.NewReplacer("_", "", "-", "", " ", "").Replace(key)
	if to := renamed[key]; to != "" {
		return to
	}
	known := append([]string{"q", "rot", "max", "cap", "notify", "group"}, conditions...)
	if slices.Contains(known, key) {
		return key
	}
	for _, k := range known {
		if len(k) > 3 && distance(key, k) == 1 {
			return k
		}
	}
	return ""
}

// distance is 1 when a letter more, less, other or swapped with its neighbour makes a of b, 0 when they are equal, else 2.
func distance(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch {
	case a == b:
		return 0
	case len(a) > 0 && len(b) > 0 && a[1:] == b[1:], len(a) > 0 && a[1:] == b, len(b) > 0 && a == b[1:]:
		return 1
	case len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]:
		return 1
	}
	return 2
}
