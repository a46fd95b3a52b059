package layout

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// options is a parsed tag.
type options struct {
	step   float64
	bits   uint8
	quat   uint8
	max    uint32
	cap    uint32
	cond   Condition
	notify string

	netGroup string // of the NetGroup condition

	push   bool           // within a field that marks itself
	array  int            // the outermost array around, see Unit.array
	within []reflect.Type // the structs around
}

var conditionNames = map[string]Condition{"initial": InitialOnly, "owner": OwnerOnly, "skipowner": SkipOwner, "simulated": SimulatedOnly,
	"autonomous": AutonomousOnly, "initialorowner": InitialOrOwner, "custom": CustomCondition, "replay": ReplayOnly, "replayorowner": ReplayOrOwner,
	"skipreplay": SkipReplay, "never": Never, "simulatedorphysics": SimulatedOrPhysics, "simulatednoreplay": SimulatedNoReplay,
	"simulatedorphysicsnoreplay": SimulatedOrPhysicsNoReplay}

const (
	defaultCap = 1024
	maxCap     = 65535
)

func parseTag(tag string) (o options, err error) {
	o.cap = defaultCap
	for _, part := range strings.Split(tag, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if err := o.set(key, value); err != nil {
			return o, err
		}
	}
	switch {
	case o.step > 0 && o.bits > 0:
		return o, fmt.Errorf("q= and rot= exclude each other")
	case o.quat > 0 && (o.step > 0 || o.bits > 0):
		return o, fmt.Errorf("quat= excludes q= and rot=")
	}
	return o, nil
}

// numeric reports whether there are options of numbers.
func (o *options) numeric() bool { return o.step > 0 || o.bits > 0 || o.quat > 0 || o.max > 0 }

// inner is the options of a field of a struct that has these: its own tag's, if it has one.
func (o options) inner(tag reflect.StructTag) (options, error) {
	own, ok, err := netTag(tag)
	if !ok {
		return o, err
	}
	inner, err := parseTag(own)
	if err == nil && (inner.cond != Always || inner.notify != "") {
		err = errors.New("conditions and notifies belong to the actor's own field")
	}
	inner.netGroup = o.netGroup
	inner.cond, inner.push, inner.array, inner.within = o.cond, o.push, o.array, o.within
	return inner, err
}

// netTag is a field's net tag. One that Go doesn't read as such, as `Net:"q=1"` and `net: "q=1"`, is an error: the field wouldn't be sent.
func netTag(tag reflect.StructTag) (own string, ok bool, err error) {
	if own, ok = tag.Lookup("net"); ok {
		return own, true, nil
	}
	for rest := string(tag); ; {
		rest = strings.TrimLeft(rest, " \t\r\n,;")
		key := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool { return !strings.ContainsRune(" :=\"", r) }))]
		if strings.EqualFold(key, "net") {
			return "", false, fmt.Errorf("`%s` isn't a net tag to Go; write net:\"q=0.01\", in lower case, with quotes and without a space", tag)
		}
		after, colon := strings.CutPrefix(rest[len(key):], ":")
		value, err := strconv.QuotedPrefix(after)
		if !colon || err != nil {
			return "", false, nil
		}
		rest = after[len(value):]
	}
}

func (o *options) set(key, value string) error {
	switch key {
	case "":
		return nil
	case "q":
		step, err := strconv.ParseFloat(value, 64)
		if err != nil || !(step > 0) || math.IsInf(step, 0) {
			return fmt.Errorf("q=%s must be a step above 0", value)
		}
		o.step = step
		return nil
	case "rot":
		return number(key, value, 8, 16, func(n uint32) { o.bits = uint8(n) })
	case "quat":
		return number(key, value, 8, 16, func(n uint32) { o.quat = uint8(n) })
	case "max":
		return number(key, value, 1, math.MaxUint32-1, func(n uint32) { o.max = n })
	case "cap":
		return number(key, value, 1, maxCap, func(n uint32) { o.cap = n })
	case "notify":
		o.notify = value
		return nil
	}
	c, ok := conditionNames[key]
	if key == "group" {
		if value == "" {
			return errors.New("group= wants the group's name")
		}
		c, ok, o.netGroup = NetGroup, true, value
	}
	switch {
	case !ok:
		return fmt.Errorf("unknown option %q", key)
	case o.cond != Always:
		return fmt.Errorf("two conditions: %s is the second, and a field has one", key)
	}
	o.cond = c
	return nil
}

func number(key, value string, low, high uint32, set func(uint32)) error {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil || uint32(n) < low || uint32(n) > high {
		return fmt.Errorf("%s=%s must be from %d to %d", key, value, low, high)
	}
	set(uint32(n))
	return nil
}
