package layout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// own is a value with its own serializer.
type own struct{ A, B uint8 }

func (o *own) WriteNet(w *bitio.Writer) { w.WriteUint8(o.A); w.WriteUint8(o.B) }
func (o *own) ReadNet(r *bitio.Reader) error {
	o.A, o.B = r.ReadUint8(), r.ReadUint8()
	return r.Err()
}

// pushed marks itself.
type pushed struct {
	V struct{ X, Y float64 }
}

func (*pushed) PushesNet() {}

// marked does so, and is a fast array.
type marked struct{ V toyList }

func (*marked) PushesNet() {}

type scalar struct {
	t   reflect.Type
	tag string
}

// scalars is every kind that isn't made of others, with the tags it may have.
var scalars = []scalar{
	{reflect.TypeFor[bool](), ""}, {reflect.TypeFor[int](), ""}, {reflect.TypeFor[int8](), ""}, {reflect.TypeFor[int16](), ""},
	{reflect.TypeFor[int32](), ""}, {reflect.TypeFor[int64](), ""}, {reflect.TypeFor[uint](), ""}, {reflect.TypeFor[uint8](), ""},
	{reflect.TypeFor[uint16](), ""}, {reflect.TypeFor[uint32](), ""}, {reflect.TypeFor[uint64](), ""},
	{reflect.TypeFor[uint8](), "max=100"}, {reflect.TypeFor[uint64](), "max=4294967294"}, {reflect.TypeFor[uint16](), "max=1"},
	{reflect.TypeFor[float32](), ""}, {reflect.TypeFor[float64](), ""}, {reflect.TypeFor[float32](), "q=0.01"}, {reflect.TypeFor[float64](), "q=0.5"},
	{reflect.TypeFor[float64](), "rot=16"}, {reflect.TypeFor[float32](), "rot=8"},
	{reflect.TypeFor[netguid.GUID](), ""}, {reflect.TypeFor[string](), ""}, {reflect.TypeFor[string](), "cap=5"}, {reflect.TypeFor[[]byte](), "cap=9"},
	{reflect.TypeFor[own](), ""}, {reflect.TypeFor[pushed](), "q=0.25"}, {reflect.TypeFor[struct{ X, Y, Z float32 }](), "q=1"},
	{reflect.TypeFor[struct{ P, Q float64 }](), "rot=12"}, {reflect.TypeFor[[4]float32](), ""},
	{reflect.TypeFor[[4]float32](), "quat=16"}, {reflect.TypeFor[struct{ X, Y, Z, W float64 }](), "quat=12"},
}

// randomType is a field's type and tag; still ones don't mark themselves.
func randomType(rng *rand.Rand, depth int, still bool) (reflect.Type, string) {
	s := scalars[rng.IntN(len(scalars))]
	if still && s.t == reflect.TypeFor[pushed]() {
		s = scalar{reflect.TypeFor[bool](), ""}
	}
	if depth == 0 {
		return s.t, s.tag
	}
	switch rng.IntN(6) {
	case 0:
		return reflect.ArrayOf(1+rng.IntN(2), s.t), s.tag
	case 1:
		if s.t == reflect.TypeFor[pushed]() || s.t.Kind() == reflect.Uint8 {
			return s.t, s.tag
		}
		return reflect.SliceOf(s.t), strings.TrimPrefix(s.tag+",cap=3", ",")
	case 2:
		return randomStruct(rng, depth-1, 1+rng.IntN(2), still), ""
	case 3:
		return reflect.SliceOf(randomStruct(rng, depth-1, 2, true)), ""
	}
	return s.t, s.tag
}

func randomStruct(rng *rand.Rand, depth, fields int, still bool) reflect.Type {
	var list []reflect.StructField
	for i := range fields {
		t, tag := randomType(rng, depth, still)
		list = append(list, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: t, Tag: reflect.StructTag(`net:"` + tag + `"`)})
	}
	return reflect.StructOf(list)
}

func randomFloat(rng *rand.Rand) float64 {
	switch rng.IntN(4) {
	case 0:
		return float64(rng.IntN(100))
	case 1:
		return (rng.Float64() - 0.5) * 1e6
	}
	return (rng.Float64() - 0.5) * 1000
}

// fill sets a value at random, within the caps of randomStruct; numbers may be out of range.
func fill(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(rng.Uint64() >> rng.IntN(64)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rng.Uint64() >> rng.IntN(64))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(randomFloat(rng))
	case reflect.String:
		v.SetString([]string{"", "é", "aé", "€é", "12345"}[rng.IntN(5)])
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rng.IntN(4), 6))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(rng, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(rng, v.Field(i))
			}
		}
	}
}

// naive is what a client should have of a value: reflection, and each rule said once more.
func naive(v reflect.Value, tag map[string]string) any {
	num := func(key string) float64 {
		f, _ := strconv.ParseFloat(tag[key], 64)
		return f
	}
	limit := 1024
	if tag["cap"] != "" {
		limit = int(num("cap"))
	}
	isFloat := func(t reflect.Type) bool { return t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64 }
	if tag["quat"] != "" && (v.Kind() == reflect.Array && isFloat(v.Type().Elem()) || v.Kind() == reflect.Struct && v.NumField() == 4 && isFloat(v.Type().Field(0).Type)) {
		return naiveQuat(v, num("quat"))
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		switch {
		case tag["q"] != "":
			f = math.RoundToEven(f/num("q"))*num("q") + 0
		case tag["rot"] != "":
			n := math.Exp2(num("rot"))
			f = math.Mod(math.RoundToEven((f/360-math.Floor(f/360))*n), n) * 360 / n
		}
		if v.Kind() == reflect.Float32 {
			return float32(f)
		}
		return f
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if tag["max"] != "" && v.Uint() > uint64(num("max")) {
			return uint64(num("max"))
		}
		return v.Uint()
	case reflect.String:
		s := ""
		for _, c := range v.String() {
			if len(s)+len(string(c)) > limit {
				break
			}
			s += string(c)
		}
		return s
	case reflect.Array, reflect.Slice:
		list := []any{}
		for i := range v.Len() {
			if v.Kind() == reflect.Slice && i == limit {
				break
			}
			inner := map[string]string{"q": tag["q"], "rot": tag["rot"], "max": tag["max"], "quat": tag["quat"]}
			if v.Kind() == reflect.Array {
				inner["cap"] = tag["cap"]
			}
			list = append(list, naive(v.Index(i), inner))
		}
		return list
	case reflect.Struct:
		list := []any{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			inner := tag
			if own, ok := f.Tag.Lookup("net"); ok {
				inner = naiveTag(own)
			}
			list = append(list, naive(v.Field(i), inner))
		}
		return list
	}
	return v.Interface()
}

// naiveQuat is the steps of a rotation's numbers, the largest positive.
func naiveQuat(v reflect.Value, bits float64) (list [4]int) {
	var f [4]float64
	length, at := 0.0, 0
	for i := range f {
		if f[i] = reflectAt(v, i).Float(); math.Abs(f[i]) > math.Abs(f[at]) {
			at = i
		}
		length = math.Hypot(length, f[i])
	}
	if length == 0 {
		return list
	}
	m := math.Exp2(bits-1) - 1
	scale, left := math.Copysign(math.Sqrt2*m/length, f[at]), 2*m*m
	for i := range f {
		if i != at {
			n := max(-m, min(m, math.RoundToEven(f[i]*scale)))
			list[i], left = int(n), left-n*n
		}
	}
	list[at] = int(math.Round(math.Sqrt(left)))
	return list
}

func reflectAt(v reflect.Value, i int) reflect.Value {
	if v.Kind() == reflect.Array {
		return v.Index(i)
	}
	return v.Field(i)
}

func naiveTag(tag string) map[string]string {
	m := map[string]string{}
	for _, part := range strings.Split(tag, ",") {
		key, value, _ := strings.Cut(part, "=")
		m[key] = value
	}
	return m
}

// at is the part of a naive value that a unit's path leads to.
func at(v reflect.Value, all any, path string) any {
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		i, err := strconv.Atoi(part)
		switch {
		case err == nil:
			v = v.Index(i)
		case v.Type() == reflect.TypeFor[pushed]():
			v, all = v.Field(0), all.([]any)[0]
			fallthrough
		default:
			f, _ := v.Type().FieldByName(part)
			i, v = f.Index[0], v.Field(f.Index[0])
		}
		all = all.([]any)[i]
	}
	return all
}
