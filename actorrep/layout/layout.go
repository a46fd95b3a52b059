// Package layout turns a Go struct into a list of replicated values, once, so
// that comparing, writing and reading need no reflection (Unreal's FRepLayout).
//
// A field is replicated when it has a net tag:
//
//	type Ship struct {
//		actorrep.Base
//		Pos   Vec2    `net:"q=0.01,notify=OnPos"`
//		Armor uint8   `net:"max=100"`
//		Fuel  float32 `net:"q=0.1,owner"`
//		Name  string  `net:"initial"`
//		Prey  netguid.GUID `net:""`
//		local int     // not replicated
//	}
//
// Nested structs and arrays are flattened into leaves; a tag on one goes for all
// leaves in it. Leaves are compared and sent as integers: a float with q=s is the
// number of steps of s nearest to it, so that a change below a step is none.
//
//	tag           meaning
//	q=STEP        floats: quantize to multiples of STEP
//	max=N         unsigned integers: at most N, sent in just the bits that needs
//	owner         only to the owner's connection (COND_OwnerOnly)
//	skipowner     to all but the owner's (COND_SkipOwner)
//	initial       only when the actor appears (COND_InitialOnly)
//	notify=NAME   method NAME() or NAME(old T) of the class is called after a change arrived
//
// # On the wire
//
//	n bits        which leaves follow, n the number of leaves
//	per leaf      bool 1 bit; bounded uint as SerializeInt(max+1); other integers and
//	              quantized floats IntPacked, signed ones zigzag; plain floats 32 or 64
//	              bits; GUIDs IntPacked; strings FString
package layout

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Condition says to whom a leaf goes.
type Condition uint8

// The conditions, by Unreal's names.
const (
	Always Condition = iota
	OwnerOnly
	SkipOwner
	InitialOnly
)

// MaxLeaves is how many leaves a class may have: one word of a change mask.
const MaxLeaves = 64

type kind uint8

const (
	kindBool kind = iota
	kindInt
	kindUint
	kindMax // uint up to a maximum
	kindStep
	kindFloat32
	kindFloat64
	kindGUID
	kindString
)

// Leaf is one replicated value.
type Leaf struct {
	// Path names it: "Pos.X", "Slots[2]".
	Path      string
	Condition Condition
	// Field is the top-level field it belongs to, an index into Layout.Fields.
	Field int

	kind   kind
	size   uint8 // bytes of integers and floats
	offset uintptr
	max    uint32
	step   float64
	str    int // index among the strings
}

// Field is a top-level replicated field.
type Field struct {
	Name   string
	Notify string // method to call after a change arrived; "" for none
	Mask   Mask
	Index  []int // for reflect.Value.FieldByIndex
}

// Mask is a set of leaves.
type Mask uint64

// Layout is a class's replicated values in order of declaration.
type Layout struct {
	Type   reflect.Type
	Leaves []Leaf
	Fields []Field
	// Hash is equal for layouts that can talk to each other.
	Hash uint32

	conditions [InitialOnly + 1]Mask
	strings    int
}

// Errors of Build; each names the field.
var (
	ErrKind = errors.New("layout: a field of this type can't be replicated")
	ErrTag  = errors.New("layout: bad net tag")
	ErrMany = fmt.Errorf("layout: more than %d replicated values; split the class", MaxLeaves)
)

// Build lists the replicated values of struct type t.
func Build(t reflect.Type) (*Layout, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %v isn't a struct", ErrKind, t)
	}
	l := &Layout{Type: t}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("net")
		if !ok {
			continue
		}
		o, err := parseTag(tag)
		if err != nil {
			return nil, fmt.Errorf("%w: %v.%s: %w", ErrTag, t, f.Name, err)
		}
		first := len(l.Leaves)
		if err := l.flatten(f.Type, f.Offset, f.Name, o); err != nil {
			return nil, fmt.Errorf("%w (in %v)", err, t)
		}
		if len(l.Leaves) > MaxLeaves {
			return nil, fmt.Errorf("%w (in %v)", ErrMany, t)
		}
		l.Fields = append(l.Fields, Field{Name: f.Name, Notify: o.notify, Index: f.Index, Mask: maskOf(first, len(l.Leaves))})
	}
	l.finish()
	return l, nil
}

func maskOf(from, to int) Mask { return Mask(1)<<to - Mask(1)<<from }

// All is every leaf.
func (l *Layout) All() Mask { return maskOf(0, len(l.Leaves)) }

func (l *Layout) finish() {
	h := fnv.New32a()
	for i := range l.Leaves {
		f := &l.Leaves[i]
		l.conditions[f.Condition] |= 1 << i
		fmt.Fprintf(h, "%s %d %d %d %v %d;", f.Path, f.kind, f.size, f.max, f.step, f.Condition)
	}
	l.Hash = h.Sum32()
}

// Allowed is the leaves that may go to a connection: the owner's or another, with the actor's
// first bunch or later.
func (l *Layout) Allowed(owner, initial bool) Mask {
	m := l.conditions[Always]
	if owner {
		m |= l.conditions[OwnerOnly]
	} else {
		m |= l.conditions[SkipOwner]
	}
	if initial {
		m |= l.conditions[InitialOnly]
	}
	return m
}

type options struct {
	step   float64
	max    uint32
	cond   Condition
	notify string
}

func parseTag(tag string) (o options, err error) {
	for _, part := range strings.Split(tag, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch key {
		case "":
		case "q":
			if o.step, err = strconv.ParseFloat(value, 64); err != nil || !(o.step > 0) {
				return o, fmt.Errorf("q=%s must be a step above 0", value)
			}
		case "max":
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil || n == 0 || n >= math.MaxUint32 {
				return o, fmt.Errorf("max=%s must be from 1 to 4294967294", value)
			}
			o.max = uint32(n)
		case "owner":
			o.cond = OwnerOnly
		case "skipowner":
			o.cond = SkipOwner
		case "initial":
			o.cond = InitialOnly
		case "notify":
			o.notify = value
		default:
			return o, fmt.Errorf("unknown option %q", part)
		}
	}
	return o, nil
}

var guidType = reflect.TypeFor[netguid.GUID]()

func (l *Layout) flatten(t reflect.Type, offset uintptr, path string, o options) error {
	f := Leaf{Path: path, Condition: o.cond, Field: len(l.Fields), offset: offset, size: uint8(min(t.Size(), 255))}
	switch k := t.Kind(); {
	case t == guidType:
		f.kind = kindGUID
	case k == reflect.Bool:
		f.kind = kindBool
	case k >= reflect.Int && k <= reflect.Int64:
		f.kind = kindInt
	case k >= reflect.Uint && k <= reflect.Uint64:
		f.kind = kindUint
		if o.max > 0 {
			f.kind, f.max = kindMax, o.max
		}
	case k == reflect.Float32 || k == reflect.Float64:
		f.kind = kindFloat64
		if k == reflect.Float32 {
			f.kind = kindFloat32
		}
		if o.step > 0 {
			f.kind, f.step = kindStep, o.step
		}
	case k == reflect.String:
		f.kind, f.str = kindString, l.strings
		l.strings++
	case k == reflect.Struct:
		for i := range t.NumField() {
			sub := t.Field(i)
			if err := l.flatten(sub.Type, offset+sub.Offset, path+"."+sub.Name, o); err != nil {
				return err
			}
		}
		return nil
	case k == reflect.Array:
		for i := range t.Len() {
			if err := l.flatten(t.Elem(), offset+uintptr(i)*t.Elem().Size(), fmt.Sprintf("%s[%d]", path, i), o); err != nil {
				return err
			}
			if len(l.Leaves) > MaxLeaves {
				return ErrMany
			}
		}
		return nil
	default:
		return fmt.Errorf("%w: %s is a %v", ErrKind, path, t)
	}
	l.Leaves = append(l.Leaves, f)
	return nil
}
