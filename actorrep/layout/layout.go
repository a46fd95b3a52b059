package layout

import (
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Mask is a set of units.
type Mask = uint64

// MaxUnits is the most units of a class, groups counted as one each. See MaxParts.
const MaxUnits = 64

// Condition says to whom a field is sent (Unreal's ELifetimeCondition).
type Condition uint8

// The conditions.
const (
	Always Condition = iota
	InitialOnly
	OwnerOnly
	SkipOwner
	SimulatedOnly
	AutonomousOnly
	InitialOrOwner
	CustomCondition
	ReplayOnly
	ReplayOrOwner
	SkipReplay
	Never
	SimulatedOrPhysics
	SimulatedNoReplay
	SimulatedOrPhysicsNoReplay
	NetGroup // to connections that are in the unit's NetGroup
	conditions
)

// Audience is what is true of a connection, for conditions.
type Audience uint8

// The flags of an Audience.
const (
	Initial    Audience = 1 << iota // these are the first values
	Owner                           // the actor is the connection's
	Autonomous                      // and its player controls it
	Replay                          // the connection is a recording
	Physics                         // the actor is moved by physics
	audiences
)

// String is the condition as it is in tags; "" for always, and for NetGroup, of which each unit has its own.
func (c Condition) String() string {
	for name, other := range conditionNames {
		if other == c {
			return name
		}
	}
	return ""
}

func (c Condition) allows(a Audience) bool {
	switch c {
	case InitialOnly:
		return a&Initial != 0
	case OwnerOnly:
		return a&Owner != 0
	case SkipOwner:
		return a&Owner == 0
	case SimulatedOnly:
		return a&Autonomous == 0
	case AutonomousOnly:
		return a&Autonomous != 0
	case InitialOrOwner:
		return a&(Initial|Owner) != 0
	case ReplayOnly:
		return a&Replay != 0
	case ReplayOrOwner:
		return a&(Replay|Owner) != 0
	case SkipReplay:
		return a&Replay == 0
	case Never:
		return false
	case SimulatedOrPhysics:
		return a&Autonomous == 0 || a&Physics != 0
	case SimulatedNoReplay:
		return a&(Autonomous|Replay) == 0
	case SimulatedOrPhysicsNoReplay:
		return a&Replay == 0 && (a&Autonomous == 0 || a&Physics != 0)
	}
	return true
}

// Field is a tagged field of the struct.
type Field struct {
	Name   string
	Notify string // method to call, or ""
	Index  []int
	Mask   Mask // its units; of a part of a group that of the group

	from, to int // leaves
}

// VarField is a field that marks itself when it is set (actorrep.Var), or a fast array that is a Marker.
type VarField struct {
	Offset uintptr
	Type   reflect.Type
	Mask   Mask

	from, to int // leaves
}

// Unit is what changes and is sent as a whole.
type Unit struct {
	Wire
	Path      string // Field.Part
	Field     int
	Condition Condition
	// NetGroup is the group of that condition; else "".
	NetGroup string
	// Number is which of the struct's numbers is its first, in the order of the fields.
	Number int
	// Parts is the units that a Group holds.
	Parts []Unit

	offsets [MaxNumbers]uintptr
	size    uintptr // of one number in memory
	first   int     // word of a Shadow, or of its group there
	kept    keptAt
	words   int  // of a group
	array   int  // the outermost array that it is an element of, counted from 1
	pushed  bool // it is in a field that marks itself
	refers  bool // it is a fast array whose elements may refer to actors
	blob    int  // blob of a Shadow
	typ     reflect.Type
	elem    *Layout // of a slice's elements, or what a pointer points to
	form    uint32  // of what has its own serializer
	codec   *codec  // of a Custom without methods
}

// Layout is a struct type's replicated fields.
type Layout struct {
	Type   reflect.Type
	Fields []Field
	Units  []Unit
	Vars   []VarField
	// Pushed is the units that mark themselves; only the others need comparing.
	Pushed Mask
	// Deltas is the units that a baseline makes smaller.
	Deltas Mask
	// Fasts is the units that are fast arrays.
	Fasts Mask
	// Refs is the units that are references.
	Refs Mask
	// Referring is these, and slices that hold references.
	Referring Mask
	// Groups is the units that are groups.
	Groups Mask
	// Zeros has groups that are sent first bring all their parts. Without it, parts that were never set are left out.
	Zeros bool
	// NetGroups is the units of each group that has some.
	NetGroups map[string]Mask
	// Custom is the units whose condition is the game's.
	Custom Mask

	words, blobs int
	alone        bool    // see Concurrent
	kept         keptAt  // behind the last unit
	numbers      int     // in all leaves
	arrays       int     // so far, see Unit.array
	bits         []uint8 // by leaf: its unit
	minBits      int     // that a whole value takes, 1 at least
	ranged       Mask    // numbers that may not fit
	compared     Mask    // numbers that generated code compares
	allowed      [audiences]Mask
	scratch      []byte
	writer       bitio.Writer
}

// Errors of Build.
var (
	ErrKind = errors.New("layout: this kind of field can't be replicated")
	ErrTag  = errors.New("layout: bad net tag")
	ErrMany = fmt.Errorf("layout: more than %d replicated units, or %d that aren't plain numbers; move some into a component", MaxParts, MaxUnits)
)

// CustomValue is a value with a serializer of its own. It is a method set of the pointer; what it writes must
// depend on the value only, and be at most 8 KiB: what is more isn't sent, and told. It may be nothing. ReadNet must read what WriteNet wrote, and no
// less. A value of which ReadNet returns an error isn't taken, and that is told, as it is when it reads less; a call with it doesn't run, and a client
// from which it comes is disconnected. Neither may keep the pointer: a call's parameters are read into memory that is used again.
type CustomValue interface {
	WriteNet(w *bitio.Writer)
	ReadNet(r *bitio.Reader) error
}

// Build lists the replicated units of struct type t.
func Build(t reflect.Type) (*Layout, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %v isn't a struct", ErrKind, t)
	}
	l := &Layout{Type: t}
	if err := l.addFields(t, 0, nil); err != nil {
		return nil, err
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	return l, l.useGenerated()
}

// addFields adds the tagged fields of a struct, and those of structs embedded in it, as Go promotes them.
func (l *Layout) addFields(t reflect.Type, offset uintptr, index []int) error {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clip(index), i)
		tag, ok, err := netTag(f.Tag)
		if err != nil {
			return fmt.Errorf("%w: %v.%s: %w", ErrTag, t, f.Name, err)
		}
		if !ok {
			if p := reflect.PointerTo(f.Type); p.Implements(reflect.TypeFor[Pusher]()) || p.Implements(reflect.TypeFor[FastArray]()) {
				return fmt.Errorf("%w: %v.%s has none, and is of use only with one: give it net:\"\", or net:\"never\"", ErrTag, t, f.Name)
			}
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				if err := l.addFields(f.Type, offset+f.Offset, at); err != nil {
					return err
				}
			}
			if f.Anonymous && f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct && hasTag(f.Type.Elem()) {
				return fmt.Errorf("%w: the fields of %v, embedded in %v as a pointer: embed the struct itself, or give the pointer a net tag", ErrKind, f.Type, t)
			}
			continue
		}
		o, err := parseTag(tag)
		if err != nil {
			return fmt.Errorf("%w: %v.%s: %w", ErrTag, t, f.Name, err)
		}
		if l.hasField(f.Name) {
			return fmt.Errorf("%w: %v.%s: an embedded struct has a field of that name too", ErrTag, t, f.Name)
		}
		first := len(l.Units)
		if err := l.flatten(f.Type, offset+f.Offset, f.Name, o); err != nil {
			return fmt.Errorf("%w (in %v)", err, t)
		}
		l.Fields = append(l.Fields, Field{Name: f.Name, Notify: o.notify, Index: at, from: first, to: len(l.Units)})
	}
	return nil
}

// hasTag reports whether a field of a struct, or of one that is embedded in it, has a net tag. within is the structs that it is embedded in.
func hasTag(t reflect.Type, within ...reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if _, ok := f.Tag.Lookup("net"); ok {
			return true
		}
		in := f.Type
		if in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		if f.Anonymous && in.Kind() == reflect.Struct && !slices.Contains(within, in) && hasTag(in, append(within, t)...) {
			return true
		}
	}
	return false
}

func maskOf(from, to int) Mask {
	if to-from >= 64 {
		return ^Mask(0)
	}
	return (Mask(1)<<(to-from) - 1) << from
}

// All is every unit.
func (l *Layout) All() Mask { return maskOf(0, len(l.Units)) }

func (l *Layout) hasField(name string) bool {
	return slices.ContainsFunc(l.Fields, func(f Field) bool { return f.Name == name })
}

// leafMask is the units of some leaves.
func (l *Layout) leafMask(from, to int) (m Mask) {
	for _, bit := range l.bits[from:to] {
		m |= 1 << bit
	}
	return m
}

// Words is how many numbers a Shadow holds.
func (l *Layout) Words() int { return l.words }

// Allowed is the units that may go to a connection, of NetGroups all.
func (l *Layout) Allowed(a Audience) Mask { return l.allowed[a] }

// FieldMask is the units of a field by name; 0 when there is no such field.
func (l *Layout) FieldMask(name string) Mask {
	for i := range l.Fields {
		if l.Fields[i].Name == name {
			return l.Fields[i].Mask
		}
	}
	return 0
}

// PathMask is the units of a field, or of a part of one by its path, such as "Stats.Speed" or "Slots[2]"; 0 when there is none.
func (l *Layout) PathMask(name string) Mask {
	m, named := Mask(0), func(u Unit) bool {
		rest, ok := strings.CutPrefix(u.Path, name)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	for i, u := range l.Units {
		if u.Path == name || named(u) || slices.ContainsFunc(u.Parts, named) {
			m |= 1 << i
		}
	}
	return m
}

// Hash is the same for layouts that write the same bits.
func (l *Layout) Hash() uint32 {
	h := fnv.New32a()
	for u := range l.Leaves {
		fmt.Fprintf(h, "%s %v;", u.Path, u.Wire)
		if u.hasForm() {
			fmt.Fprintf(h, "%x;", u.Form())
		}
	}
	for i := range l.Units {
		if n := len(l.Units[i].Parts); n > 0 {
			fmt.Fprintf(h, "%d at %d;", n, i)
		}
	}
	return h.Sum32()
}

// Type is the Go type of the unit, or of one of its numbers.
func (u *Unit) Type() reflect.Type { return u.typ }

// Form is the same for slices, fast arrays and values with their own serializers whose insides are the same; 0 for others.
func (u *Unit) Form() uint32 {
	if u.elem != nil {
		return u.elem.Hash()
	}
	return u.form
}

// finish forms the groups, and the masks.
func (l *Layout) finish() error {
	if err := l.group(); err != nil {
		return err
	}
	for i := range l.Fields {
		l.Fields[i].Mask = l.leafMask(l.Fields[i].from, l.Fields[i].to)
	}
	for i := range l.Vars {
		l.Vars[i].Mask = l.leafMask(l.Vars[i].from, l.Vars[i].to)
	}
	polled := Mask(0)
	for i := range l.Units {
		u := &l.Units[i]
		all := u.pushed
		if u.Kind == Group {
			all = !slices.ContainsFunc(u.Parts, func(p Unit) bool { return !p.pushed })
		}
		if !all {
			polled |= 1 << i
		}
	}
	l.Pushed = l.All() &^ polled
	for i := range l.Units {
		u, bit := &l.Units[i], Mask(1)<<i
		if u.Kind.IsBlob() {
			u.blob = l.blobs
			l.blobs++
			l.alone = l.alone || u.Kind != String
		} else {
			u.first, u.kept = l.words, l.kept.add(&u.Wire)
			l.words += int(u.N)
		}
		for a := range audiences {
			if u.Condition.allows(a) {
				l.allowed[a] |= bit
			}
		}
		if u.HasDelta() {
			l.Deltas |= bit
		}
		if u.Kind == Max || u.Kind == Step || u.Kind == Angle || u.Kind == Quat {
			l.ranged |= bit
		}
		switch {
		case u.Kind == Group:
			l.Groups |= bit
		case u.Kind == Fast:
			l.Fasts |= bit
		case u.Kind == Ref:
			l.Refs |= bit
		}
		if u.Refers() {
			l.Referring |= bit
		}
		if u.Condition == CustomCondition {
			l.Custom |= bit
		}
		if u.Condition == NetGroup {
			if l.NetGroups == nil {
				l.NetGroups = map[string]Mask{}
			}
			l.NetGroups[u.NetGroup] |= bit
		}
		l.minBits += u.minBits()
	}
	l.minBits = max(l.minBits, 1)
	return nil
}

// BuildValue is the layout of a whole value: of a struct that has no form of its own all exported fields and all embedded structs, with or
// without tags.
func BuildValue(t reflect.Type) (*Layout, error) {
	l := &Layout{Type: t}
	if err := l.buildValue(t); err != nil {
		return nil, err
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	if l.Fasts != 0 || l.Pushed != 0 {
		return nil, fmt.Errorf("%w: %v: Vars and fast arrays belong to actors", ErrKind, t)
	}
	return l, nil
}

func (l *Layout) buildValue(t reflect.Type) error {
	if t.Kind() != reflect.Struct || formOf(t) != asParts {
		return l.flatten(t, 0, "", options{cap: defaultCap})
	}
	hidden := t.NumField() > 0
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !(f.Anonymous && f.Type.Kind() == reflect.Struct) {
			continue
		}
		hidden = false
		tag, _, err := netTag(f.Tag)
		if err != nil {
			return fmt.Errorf("%w: %v.%s: %w", ErrTag, t, f.Name, err)
		}
		o, err := parseTag(tag)
		if err != nil {
			return fmt.Errorf("%w: %v.%s: %w", ErrTag, t, f.Name, err)
		}
		if err := l.flatten(f.Type, f.Offset, f.Name, o); err != nil {
			return fmt.Errorf("%w (in %v)", err, t)
		}
	}
	if hidden {
		return fmt.Errorf("%w: %v has no exported field", ErrKind, t)
	}
	return nil
}

// WriteValue writes the whole value at obj.
func (l *Layout) WriteValue(w *bitio.Writer, obj unsafe.Pointer) { l.WriteUnits(w, obj, l.All()) }

// ReadValue reads it. Its strings and slices are in mem, or in memory of their own when that is nil.
func (l *Layout) ReadValue(r *bitio.Reader, obj unsafe.Pointer, mem *Memory) { l.readAll(r, obj, mem) }
