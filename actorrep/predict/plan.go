package predict

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// maxNumbers bounds the predicted numbers of an actor, and the numbers of an input.
const maxNumbers = 32

// ErrClass is wrapped by what is wrong with a predicted class or its input.
var ErrClass = errors.New("predict: class")

// number is where a predicted number of an actor is, or one of an input.
type number struct {
	name      string
	offset    uintptr
	kind      reflect.Kind
	tolerance float64
	smooth    bool
	turn      bool // an angle in degrees
}

// snapshot is the predicted numbers of an actor, by the order of its plan, each as its bits in memory.
type snapshot [maxNumbers]uint64

// plan is the predicted numbers of a class.
type plan []number

// stateOf lists the fields of an actor's struct that are tagged.
func stateOf(t reflect.Type) (p plan, err error) {
	l, err := layout.Build(t)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrClass, err)
	}
	owners := l.Allowed(layout.Initial|layout.Owner|layout.Autonomous) | l.Custom
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("predict")
		if !ok {
			continue
		}
		from := number{name: f.Name, turn: strings.Contains(f.Tag.Get("net"), "rot=")}
		tolerance, options, _ := strings.Cut(tag, ",")
		if tolerance != "" {
			if from.tolerance, err = strconv.ParseFloat(tolerance, 64); err != nil || !(from.tolerance >= 0) || math.IsInf(from.tolerance, 0) {
				return nil, fmt.Errorf("%w: %s: the tolerance %q is no number from 0 up", ErrClass, f.Name, tolerance)
			}
		}
		if from.smooth = options == "smooth"; !from.smooth && options != "" {
			return nil, fmt.Errorf("%w: %s: the predict tag has the option %q; there is smooth", ErrClass, f.Name, options)
		}
		for _, known := range l.Fields {
			if slices.Equal(known.Index, f.Index) && known.Mask&owners != 0 {
				return nil, fmt.Errorf("%w: %s is sent to its player too, over what is predicted; give its net tag the condition simulated or skipowner", ErrClass, f.Name)
			}
		}
		offset, err := offsetOf(t, f.Index)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrClass, f.Name, err)
		}
		from.offset = offset
		if p, err = p.flatten(from, f.Type); err != nil {
			return nil, err
		}
	}
	if len(p) == 0 {
		return nil, fmt.Errorf(`%w: %v has no field with a predict tag, as in predict:"0.01"`, ErrClass, t)
	}
	return p, nil
}

// offsetOf is where a field is, which may be one of an embedded struct's, not of one that is pointed to.
func offsetOf(t reflect.Type, index []int) (offset uintptr, err error) {
	for _, i := range index {
		if t.Kind() != reflect.Struct {
			return 0, errors.New("it is behind a pointer")
		}
		f := t.Field(i)
		offset, t = offset+f.Offset, f.Type
	}
	return offset, nil
}

// flatten appends the numbers of a value of type t.
func (p plan) flatten(from number, t reflect.Type) (plan, error) {
	switch t.Kind() {
	case reflect.Bool, reflect.Float32, reflect.Float64, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if from.kind = t.Kind(); len(p) == maxNumbers {
			return nil, fmt.Errorf("%w: over %d numbers at %s", ErrClass, maxNumbers, from.name)
		}
		return append(p, from), nil
	case reflect.Array:
		base, name := from.offset, from.name
		for i := range t.Len() {
			from.offset, from.name = base+uintptr(i)*t.Elem().Size(), fmt.Sprintf("%s[%d]", name, i)
			var err error
			if p, err = p.flatten(from, t.Elem()); err != nil {
				return nil, err
			}
		}
		return p, nil
	case reflect.Struct:
		base, name := from.offset, from.name
		for i := range t.NumField() {
			f := t.Field(i)
			from.offset, from.name = base+f.Offset, name+"."+f.Name
			var err error
			if p, err = p.flatten(from, f.Type); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	return nil, fmt.Errorf("%w: %s is %v; numbers, bools, and arrays and structs of them can be predicted and be inputs", ErrClass, from.name, t)
}

// load takes the numbers of the value at obj, which must be of the plan's type.
func (p plan) load(obj unsafe.Pointer, s *snapshot) {
	for i := range p {
		at := unsafe.Add(obj, p[i].offset)
		switch p[i].kind {
		case reflect.Bool, reflect.Int8, reflect.Uint8:
			s[i] = uint64(*(*uint8)(at))
		case reflect.Int16, reflect.Uint16:
			s[i] = uint64(*(*uint16)(at))
		case reflect.Float32, reflect.Int32, reflect.Uint32:
			s[i] = uint64(*(*uint32)(at))
		case reflect.Int:
			s[i] = uint64(*(*int)(at)) // with its sign, on machines of 32 bits too
		case reflect.Uint:
			s[i] = uint64(*(*uint)(at))
		default:
			s[i] = *(*uint64)(at)
		}
	}
}

// store puts them there.
func (p plan) store(obj unsafe.Pointer, s *snapshot) {
	for i := range p {
		at := unsafe.Add(obj, p[i].offset)
		switch p[i].kind {
		case reflect.Bool:
			*(*bool)(at) = s[i]&1 != 0
		case reflect.Int8, reflect.Uint8:
			*(*uint8)(at) = uint8(s[i])
		case reflect.Int16, reflect.Uint16:
			*(*uint16)(at) = uint16(s[i])
		case reflect.Float32, reflect.Int32, reflect.Uint32:
			*(*uint32)(at) = uint32(s[i])
		case reflect.Int, reflect.Uint:
			*(*uint)(at) = uint(s[i])
		default:
			*(*uint64)(at) = s[i]
		}
	}
}

// value is a number as a float64.
func (n *number) value(bits uint64) float64 {
	switch n.kind {
	case reflect.Float64:
		return math.Float64frombits(bits)
	case reflect.Float32:
		return float64(math.Float32frombits(uint32(bits)))
	case reflect.Int8:
		return float64(int8(bits))
	case reflect.Int16:
		return float64(int16(bits))
	case reflect.Int32:
		return float64(int32(bits))
	case reflect.Int, reflect.Int64:
		return float64(int64(bits))
	default:
		return float64(bits)
	}
}

// bits is the number of this kind nearest to v.
func (n *number) bits(v float64) uint64 {
	switch n.kind {
	case reflect.Float64:
		return math.Float64bits(v)
	case reflect.Float32:
		return uint64(math.Float32bits(float32(v)))
	}
	v = math.RoundToEven(v)
	switch width := n.width(); n.kind {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := math.Ldexp(1, width-1)
		return uint64(int64(min(max(v, -most), math.Nextafter(most, 0)))) & (1<<width - 1)
	default:
		return uint64(min(max(v, 0), math.Nextafter(math.Ldexp(1, width), 0)))
	}
}

// width is the bits of a number on the wire. An int has 64 on every machine.
func (n *number) width() int {
	switch n.kind {
	case reflect.Bool:
		return 1
	case reflect.Int8, reflect.Uint8:
		return 8
	case reflect.Int16, reflect.Uint16:
		return 16
	case reflect.Float32, reflect.Int32, reflect.Uint32:
		return 32
	default:
		return 64
	}
}

// form is what of a number's type both ends must have alike: an int is an int64 on every machine.
func (n *number) form() reflect.Kind {
	switch n.kind {
	case reflect.Int:
		return reflect.Int64
	case reflect.Uint:
		return reflect.Uint64
	default:
		return n.kind
	}
}

// finite reports whether all floats are numbers.
func (p plan) finite(s *snapshot) bool {
	for i := range p {
		if k := p[i].kind; k == reflect.Float32 || k == reflect.Float64 {
			if v := p[i].value(s[i]); math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
		}
	}
	return true
}

// distance is how far apart two snapshots are, in tolerances; infinite where an exact number differs.
func (p plan) distance(a, b *snapshot) (most float64) {
	for i := range p {
		n := &p[i]
		if a[i] == b[i] {
			continue
		}
		d := math.Abs(n.value(a[i]) - n.value(b[i]))
		if n.turn {
			d = math.Mod(d, 360)
			d = min(d, 360-d)
		}
		switch {
		case d == 0 && n.tolerance > 0:
		case n.tolerance == 0 || math.IsNaN(d):
			return math.Inf(1)
		default:
			most = max(most, d/n.tolerance)
		}
	}
	return most
}

func (p plan) writeState(w *bitio.Writer, s *snapshot) {
	for i := range p {
		w.WriteBits(s[i], p[i].width())
	}
}

func (p plan) readState(r *bitio.Reader, s *snapshot) {
	for i := range p {
		s[i] = r.ReadBits(p[i].width())
	}
	if !p.finite(s) {
		r.Fail(bitio.ErrFormat)
	}
}

// mostSteps is the largest number of half tolerances in a claim: what a float64 counts.
const mostSteps = 1 << 53

func (p plan) writeClaim(w *bitio.Writer, s *snapshot) {
	for i := range p {
		n := &p[i]
		if n.tolerance == 0 {
			w.WriteBits(s[i], n.width())
			continue
		}
		steps := math.RoundToEven(n.value(s[i]) / (n.tolerance / 2))
		if !(math.Abs(steps) <= mostSteps) {
			steps = mostSteps
		}
		v := int64(steps)
		w.WriteIntPacked64(uint64(v<<1) ^ uint64(v>>63))
	}
}

// readClaim reads what writeClaim wrote.
func (p plan) readClaim(r *bitio.Reader, s *snapshot) {
	for i := range p {
		n := &p[i]
		if n.tolerance == 0 {
			s[i] = r.ReadBits(n.width())
			continue
		}
		v := r.ReadIntPacked64()
		s[i] = n.bits(float64(int64(v>>1)^-int64(v&1)) * (n.tolerance / 2))
	}
}
