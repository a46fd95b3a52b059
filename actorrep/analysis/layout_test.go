package analysis

import (
	"fmt"
	"go/token"
	"go/types"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// typeOf is a reflected type as the analysers see it.
func typeOf(t reflect.Type) types.Type {
	if t == reflect.TypeFor[netguid.GUID]() {
		return types.NewNamed(types.NewTypeName(token.NoPos, types.NewPackage(netguidPath, "netguid"), "GUID", nil), types.Typ[types.Uint32], nil)
	}
	switch k := t.Kind(); k {
	case reflect.Struct:
		var fields []*types.Var
		var tags []string
		for i := range t.NumField() {
			fields = append(fields, types.NewField(token.NoPos, nil, t.Field(i).Name, typeOf(t.Field(i).Type), false))
			tags = append(tags, string(t.Field(i).Tag))
		}
		return types.NewStruct(fields, tags)
	case reflect.Array:
		return types.NewArray(typeOf(t.Elem()), int64(t.Len()))
	case reflect.Slice:
		return types.NewSlice(typeOf(t.Elem()))
	case reflect.Pointer:
		return types.NewPointer(typeOf(t.Elem()))
	case reflect.Map:
		return types.NewMap(typeOf(t.Key()), typeOf(t.Elem()))
	case reflect.Chan:
		return types.NewChan(types.SendRecv, typeOf(t.Elem()))
	case reflect.Interface:
		return types.NewInterfaceType(nil, nil)
	case reflect.Func:
		return types.NewSignatureType(nil, nil, nil, nil, nil, false)
	case reflect.UnsafePointer:
		return types.Typ[types.UnsafePointer]
	default:
		return types.Universe.Lookup(k.String()).Type()
	}
}

var scalars = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[netguid.GUID](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[uintptr](), reflect.TypeFor[complex64](), reflect.TypeFor[*int](), reflect.TypeFor[map[int]int](), reflect.TypeFor[chan int](),
	reflect.TypeFor[func()](), reflect.TypeFor[any](),
}

// someType is mostly one that can be replicated.
func someType(rng *rand.Rand, depth int) reflect.Type {
	switch n := rng.IntN(12); {
	case depth > 3 || n < 6:
		if rng.IntN(8) > 0 {
			return scalars[rng.IntN(11)]
		}
		return scalars[rng.IntN(len(scalars))]
	case n < 8:
		return reflect.SliceOf(someType(rng, depth+1))
	case n < 9:
		return reflect.ArrayOf(4, scalars[6+rng.IntN(2)])
	case n < 10:
		return reflect.ArrayOf(rng.IntN(6)*rng.IntN(6), someType(rng, depth+1))
	}
	var fields []reflect.StructField
	for i := range rng.IntN(5) {
		fields = append(fields, reflect.StructField{Name: string(rune('A' + i)), Type: someType(rng, depth+1)})
	}
	return reflect.StructOf(fields)
}

var someOptions = []string{"q=0.01", "q=1e3", "q=0", "q=-1", "q=", "q=Inf", "q=NaN", "q", "rot=8", "rot=16", "rot=7", "rot=17", "rot=x", "quat=8", "quat=16", "quat=7", "quat=17", "quat", "max=1", "max=100", "max=0", "max=4294967294",
	"max=4294967295", "max=99999999999", "max=-1", "cap=1", "cap=65535", "cap=65536", "cap=0", "notify=", "notify=OnX", "fast", "Owner", "owner=3", "quantize=1", " ", ""}

func someTag(rng *rand.Rand) string {
	var list []string
	for range rng.IntN(4) {
		switch n := rng.IntN(10); {
		case n < 3:
			list = append(list, conditions[rng.IntN(len(conditions))])
		case n < 6:
			list = append(list, []string{"q=0.5", "max=7", "rot=12", "cap=9", "quat=12"}[rng.IntN(5)])
		default:
			list = append(list, someOptions[rng.IntN(len(someOptions))])
		}
	}
	return strings.Join(list, []string{",", ", "}[rng.IntN(2)])
}

// refused is whether the analysers say that Register fails because of this field alone.
func refused(t types.Type, tag string) (bool, string) {
	f := &field{name: "F", typ: t, options: parseTag(tag)}
	if f.options.bad() {
		return true, fmt.Sprint(f.options.problems)
	}
	list, units := parts(t, "F", f.options)
	if p := firstBad(list); p != nil {
		return true, p.path + ": " + p.why
	}
	_, message := misfit(f, list)
	return message != "" || units.tooMany() != "", fmt.Sprint(message, " units ", units)
}

// groupsDecide is whether the number of groups that Build puts numbers into may decide if a value, or an element within it, has too many units. How many
// they are is for Build to say: a group for each 64 numbers with a delta, or without, and one for each array of numbers, and each run of them between others.
func groupsDecide(t reflect.Type, o *tagOptions) bool {
	_, n := parts(typeOf(t), "F", o)
	if n.units > maxOthers && n.others <= maxOthers && 2*n.others+arrays(t)+2*maxUnits/64 >= maxOthers {
		return true
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return groupsDecide(t.Elem(), o)
	case reflect.Struct:
		for i := range t.NumField() {
			if groupsDecide(t.Field(i).Type, o) {
				return true
			}
		}
	}
	return false
}

// arrays is how many arrays are in a value, without those in others.
func arrays(t reflect.Type) (n int) {
	switch t.Kind() {
	case reflect.Array:
		return 1
	case reflect.Struct:
		for i := range t.NumField() {
			n += arrays(t.Field(i).Type)
		}
	}
	return n
}

// TestAgreesWithLayout compares the analysers with what they speak for, the errors of layout.Build.
func TestAgreesWithLayout(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	bad := 0
	for range 20000 {
		typ, tag := someType(rng, 0), someTag(rng)
		st := reflect.StructOf([]reflect.StructField{{Name: "F", Type: typ, Tag: reflect.StructTag(fmt.Sprintf("net:%q", tag))}})
		l, err := layout.Build(st)
		if groupsDecide(typ, parseTag(tag)) {
			continue
		}
		says, why := refused(typeOf(typ), tag)
		require.Equal(t, err != nil, says, "seed %d: %v: Build says %v, the analysers %s", seed, st, err, why)
		if err != nil {
			bad++
			continue
		}
		_, units := parts(typeOf(typ), "F", parseTag(tag))
		leaves := 0
		for range l.Leaves {
			leaves++
		}
		require.Equal(t, leaves, units.units, "seed %d: units of %v", seed, st)
	}
	require.Greater(t, bad, 2000)
	require.Less(t, bad, 18000)
}

// TestConditionsAreLayouts tries each condition the analysers know on the layout.
func TestConditionsAreLayouts(t *testing.T) {
	for i, name := range conditions {
		st := reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeFor[int](), Tag: reflect.StructTag(fmt.Sprintf("net:%q", name))}})
		l, err := layout.Build(st)
		require.NoError(t, err)
		require.Equal(t, layout.Condition(i+1), l.Units[0].Condition, name)
	}
}
