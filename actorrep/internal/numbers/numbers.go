// Package numbers finds the numbers within Go values, and copies them out and in without knowing the types.
package numbers

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

// Number is where a number or a bool is within a value.
type Number struct {
	Name   string
	Offset uintptr
	Kind   reflect.Kind
}

// Errors of List and Offset.
var (
	ErrKind    = errors.New("it is neither a number nor a bool, nor an array or struct of these")
	ErrMany    = errors.New("there are too many numbers")
	ErrPointer = errors.New("it is behind a pointer")
)

// Offset is where a field of struct type t is, which may be one of an embedded struct's, not of one that is pointed to.
func Offset(t reflect.Type, index []int) (offset uintptr, err error) {
	for _, i := range index {
		if t.Kind() != reflect.Struct {
			return 0, ErrPointer
		}
		f := t.Field(i)
		offset, t = offset+f.Offset, f.Type
	}
	return offset, nil
}

// List appends the numbers of a value of type t, whose name and place from has, to list: at most so many there are then. An error
// names the part that it is about.
func List(list []Number, from Number, t reflect.Type, most int) ([]Number, error) {
	var err error
	switch t.Kind() {
	case reflect.Bool, reflect.Float32, reflect.Float64, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if from.Kind = t.Kind(); len(list) == most {
			return nil, fmt.Errorf("over %d numbers at %s: %w", most, from.Name, ErrMany)
		}
		return append(list, from), nil
	case reflect.Array:
		for i := range t.Len() {
			part := Number{Name: fmt.Sprintf("%s[%d]", from.Name, i), Offset: from.Offset + uintptr(i)*t.Elem().Size()}
			if list, err = List(list, part, t.Elem(), most); err != nil {
				return nil, err
			}
		}
		return list, nil
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if list, err = List(list, Number{Name: from.Name + "." + f.Name, Offset: from.Offset + f.Offset}, f.Type, most); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("%s is %v: %w", from.Name, t, ErrKind)
}

// Load is the number's bits in the value at obj: those of a float, an integer with its sign in 64 bits when it is an int and else in
// as many as it has.
func (n *Number) Load(obj unsafe.Pointer) uint64 {
	at := unsafe.Add(obj, n.Offset)
	switch n.Kind {
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		return uint64(*(*uint8)(at))
	case reflect.Int16, reflect.Uint16:
		return uint64(*(*uint16)(at))
	case reflect.Float32, reflect.Int32, reflect.Uint32:
		return uint64(*(*uint32)(at))
	case reflect.Int:
		return uint64(*(*int)(at)) // with its sign, on machines of 32 bits too
	case reflect.Uint:
		return uint64(*(*uint)(at))
	default:
		return *(*uint64)(at)
	}
}

// Store puts them there.
func (n *Number) Store(obj unsafe.Pointer, bits uint64) {
	at := unsafe.Add(obj, n.Offset)
	switch n.Kind {
	case reflect.Bool:
		*(*bool)(at) = bits&1 != 0
	case reflect.Int8, reflect.Uint8:
		*(*uint8)(at) = uint8(bits)
	case reflect.Int16, reflect.Uint16:
		*(*uint16)(at) = uint16(bits)
	case reflect.Float32, reflect.Int32, reflect.Uint32:
		*(*uint32)(at) = uint32(bits)
	case reflect.Int, reflect.Uint:
		*(*uint)(at) = uint(bits)
	default:
		*(*uint64)(at) = bits
	}
}

// Value is the number with these bits as a float64.
func (n *Number) Value(bits uint64) float64 {
	switch n.Kind {
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

// Bits returns the bits of the number of this kind that is nearest to v.
func (n *Number) Bits(v float64) uint64 {
	switch n.Kind {
	case reflect.Float64:
		return math.Float64bits(v)
	case reflect.Float32:
		return uint64(math.Float32bits(float32(v)))
	}
	v = math.RoundToEven(v)
	switch width := n.Width(); n.Kind {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := math.Ldexp(1, width-1)
		return uint64(int64(min(max(v, -most), math.Nextafter(most, 0)))) & (1<<width - 1)
	default:
		return uint64(min(max(v, 0), math.Nextafter(math.Ldexp(1, width), 0)))
	}
}

// Width is how many bits of Load can be set. An int has 64 on every machine.
func (n *Number) Width() int {
	switch n.Kind {
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

// IsFloat reports whether it is a float.
func (n *Number) IsFloat() bool { return n.Kind == reflect.Float32 || n.Kind == reflect.Float64 }
