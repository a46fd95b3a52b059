package layout

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

type vectorNumbers struct {
	Pos  [3]float32                   `net:"q=0.01"`
	One  float64                      `net:"q=0.5"`
	Two  struct{ X, Y float64 }       `net:"q=0.001"`
	Four struct{ A, B, C, D float64 } `net:"q=1"`
	Rot  [3]float32                   `net:"rot=16"`
	Yaw  float32                      `net:"rot=8"`
	Wide struct{ P, Q float64 }       `net:"rot=12"`
}

type vectorTurns struct {
	A [4]float64 `net:"quat=16"`
	B [4]float32 `net:"quat=9"`
}

type vectorValues struct {
	B    bool                      `net:""`
	I    int16                     `net:""`
	U    uint64                    `net:""`
	M    uint8                     `net:"max=100"`
	F    float32                   `net:""`
	D    [3]float64                `net:""`
	S    string                    `net:"cap=90"`
	L    []uint16                  `net:"cap=9"`
	T    []struct{ A, B int8 }     `net:"cap=5"`
	P    *struct{ X int32 }        `net:""`
	O    own                       `net:""`
	Bits []byte                    `net:"cap=9"`
	Part struct{ A, B, C uint32 }  `net:"owner"`
	Flat [5]struct{ Q, R float32 } `net:"q=0.25"`
}

// motion is how a number moves: along a polynomial, around, standing, noisily or by leaps, in steps of 1.
func motion(rng *rand.Rand) func(at float64) float64 {
	size := math.Pow(10, rng.Float64()*4)
	a, b, c, d := (rng.Float64()-0.5)*size*10, (rng.Float64()-0.5)*size/5, (rng.Float64()-0.5)*size/100, (rng.Float64()-0.5)*size/3000
	noise := []float64{0, 0, 0.3, 3, size}[rng.IntN(5)]
	switch rng.IntN(5) {
	case 0:
		b, c, d = 0, 0, 0
	case 1:
		c, d = 0, 0
	case 2:
		d = 0
	case 3:
		return func(at float64) float64 { return math.Round(size * math.Sin(a+at/20)) }
	}
	return func(at float64) float64 {
		return math.Round(a + b*at + c*at*at + d*at*at*at + noise*(rng.Float64()-0.5))
	}
}

// TestVectors: the bits of descriptions, values, differences and predictions are those that other builds of a game write and read. A change
// of them needs another form of the schema.
func TestVectors(t *testing.T) {
	for _, v := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[vectorNumbers](), "418057 bits 623838207183711e"},
		{reflect.TypeFor[vectorTurns](), "146305 bits f0319b37dee3b0a3"},
		{reflect.TypeFor[vectorValues](), "1213041 bits 332205b2dd1b51fd"},
		{wideStruct(), "3472170 bits 5d53c2e5122774ab"},
	} {
		p, h, bits := newPair(t, v.typ), fnv.New64a(), 0
		schema := p.schemaBytes()
		_, _ = h.Write(schema)
		fmt.Fprint(h, p.l.Hash(), p.l.NetGroups, p.l.Deltas, p.l.minBits, p.l.Words())
		for u := range p.l.Leaves {
			fmt.Fprint(h, u.Path, u.Kind, u.N, u.Max, u.Bits)
		}
		for i := range p.l.Units {
			fmt.Fprint(h, p.l.Units[i].Path, p.l.Units[i].Condition, len(p.l.Units[i].Parts))
		}
		for round := range 400 {
			rng := rand.New(rand.NewPCG(uint64(round), 4))
			past := &Past{Mask: p.l.Deltas, Predicted: p.l.Deltas, Age: 1 + rng.IntN(MaxAge), Gap: 1 + rng.IntN(MaxGap), Form: Form(round % 4)}
			moves := map[string]func(float64) float64{}
			set := func(at float64) {
				p.move(rng, moves, p.src.Elem(), "", at)
				p.compare(p.l.All())
			}
			for i := Points - 1; i >= 0 && p.l.Deltas != 0; i-- {
				set(float64(-i * past.Gap))
				p.keep(past, i, slices.Clone(p.shadow.Words))
			}
			set(float64(past.Age))
			predicted := p.l.Deltas != 0 && p.l.Predict(p.shadow, past)
			fmt.Fprint(h, predicted, past.Predicted)
			known := make([]int64, 64)
			for _, base := range []*Base{nil, {}, {Past: past}, {Past: &Past{Mask: past.Mask, Age: past.Age, At: past.At, History: past.History}}, {Known: known}} {
				if base != nil && base.Past != nil && p.l.Deltas == 0 {
					continue
				}
				for i := range p.l.Units {
					w := p.write(i, base)
					_, _ = h.Write(w.Bytes())
					bits += w.Len()
				}
			}
		}
		require.Equal(t, v.want, fmt.Sprintf("%d bits %016x", bits, h.Sum64()), "%v", v.typ)
	}
}

// move sets the numbers of a value to where they are at a time, and what else there is to something.
func (p *pair) move(rng *rand.Rand, moves map[string]func(float64) float64, v reflect.Value, path string, at float64) {
	number := func() float64 {
		if moves[path] == nil {
			moves[path] = motion(rng)
		}
		return moves[path](at)
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		v.SetFloat(number() / 100)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(number()))
	case reflect.Uint8:
		v.SetUint(uint64(number()) % 100)
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(math.Abs(number())))
	case reflect.Array:
		if v.Len() == 4 && v.Index(0).CanFloat() { // a rotation
			a, b := number()/500, number()/900
			for i, x := range []float64{math.Sin(a) * math.Cos(b), math.Sin(a) * math.Sin(b), 0.1, math.Cos(a)} {
				v.Index(i).SetFloat(math.Round(x*1e6) / 1e6)
			}
			return
		}
		for i := range v.Len() {
			p.move(rng, moves, v.Index(i), fmt.Sprint(path, i), at)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			p.move(rng, moves, v.Field(i), fmt.Sprint(path, ".", i), at)
		}
	case reflect.Pointer:
		if v.SetZero(); rng.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			p.move(rng, moves, v.Elem(), path+"*", at)
		}
	default:
		fill(rng, v)
	}
}
