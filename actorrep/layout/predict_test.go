package layout

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestPredict: what moves along a line, a parabola or a cubic is where it was expected, at every age and distance of what is known, and
// takes a bit or two a number; also where an angle goes around.
func TestPredict(t *testing.T) {
	p := newPair(t, reflect.TypeFor[numbers]())
	src := p.src.Interface().(*numbers)
	for _, power := range []int{1, 2, 3} {
		for age := 1; age <= 12; age++ {
			for form, gap := Six, 1; form <= Twelve; gap++ {
				if age+(form.Times()-1)*gap >= MaxRecords {
					form, gap = form+1, 0
					continue
				}
				at := func(now int) []uint64 {
					x := math.Pow(float64(now), float64(power))
					src.Pos.X, src.Pos.Y, src.Pos.Z = 0.06*x, -0.12*x, 0
					src.Rot[0], src.Rot[1] = float32(1+x*360/65536), 90
					p.compare(p.l.All())
					return append([]uint64{}, p.shadow.Words...)
				}
				past := &Past{Mask: p.l.Deltas, Predicted: p.l.Deltas, Age: age, Gap: gap, Form: form}
				for i := range past.At {
					p.keep(past, i, at(-age-i*gap))
				}
				want := at(0)
				require.True(t, p.l.Predict(p.shadow, past))
				for unit := range 2 {
					w := p.write(unit, &Base{Past: past})
					require.LessOrEqual(t, w.Len(), 2*int(p.l.Units[unit].N), "power %d, age %d, gap %d, form %d: %s", power, age, gap, form, p.l.Units[unit].Path)
					got := make([]uint64, MaxNumbers)
					p.remote.ReadUnit(bitio.NewReader(w.Bytes(), w.Len()), unit, got, past, Object{})
					first := p.l.Units[unit].first
					require.Equal(t, want[first:][:p.l.Units[unit].N], got[:p.l.Units[unit].N])
				}
			}
		}
	}
}

// TestPredictAnything: whatever the numbers were and are, both ends predict the same, and the number arrives.
func TestPredictAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	buf := make([]byte, 1024)
	some := func() uint64 {
		return [...]uint64{0, 1, math.MaxUint64, math.MaxUint64 - 1, 1 << 63, 1<<63 - 1, rng.Uint64(), rng.Uint64() >> rng.UintN(64)}[rng.IntN(8)]
	}
	for range 20_000 {
		d := Wire{Kind: Step, N: uint8(1 + rng.IntN(MaxNumbers))}
		if rng.IntN(2) == 0 {
			d.Kind, d.Bits = Angle, uint8(8+rng.IntN(9))
		}
		past := &Past{Age: 1 + rng.IntN(MaxAge), Gap: 1 + rng.IntN(MaxGap), Form: Form(rng.IntN(4))}
		number := func() uint64 {
			if v := some(); d.Kind == Step {
				return v
			} else {
				return v & (1<<d.Bits - 1)
			}
		}
		var v, got, means, errors [MaxNumbers]uint64
		var guess [MaxNumbers]int64
		h := keptAt{int(d.N), d.packs()}.history(Points)
		past.History = &h
		for i := range past.At {
			for j := range d.N {
				v[j] = number()
			}
			past.At[i] = i
			d.keep(&h, keptAt{}, i, v[:d.N])
		}
		for j := range d.N {
			v[j] = number()
		}
		past.Prepare()
		n := d.N
		d.predict(past, keptAt{}, &guess, &means)
		w := bitio.NewWriter(buf)
		for i := range n {
			errors[i] = d.difference(v[i], uint64(guess[i]))
		}
		var e nearErrors
		e.set(0, 0, int(n), &errors, &means)
		e.write(w)
		require.NoError(t, w.Err())
		require.Equal(t, e.n, w.Len(), "as reckoned before")
		r := bitio.NewReader(w.Bytes(), w.Len())
		d.readNear(r, got[:n], &guess, &means)
		require.NoError(t, r.Err())
		require.Zero(t, r.Remaining())
		require.Equal(t, v[:n], got[:n])
	}
}

// TestRice: every number and width arrives, with as many bits as were reckoned, also at the very end of a packet.
func TestRice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	buf := make([]byte, 64)
	for range 50_000 {
		v, c := rng.Uint64()>>rng.UintN(64), riceCode{uint8(rng.IntN(48)), uint8(2 + rng.IntN(5))}
		if rng.IntN(100) == 0 {
			v = math.MaxUint64
		}
		lead, trail := rng.IntN(9), rng.IntN(2)*64
		w := bitio.NewWriter(buf)
		w.WriteBits(0, lead)
		if code, n := c.code(v); n <= 64 {
			w.WriteBits(code, n)
		} else {
			c.writeLong(w, v)
		}
		_, bits := c.code(v)
		require.Equal(t, bits, w.Len()-lead)
		n := w.Len()
		w.WriteBits(0, trail)
		r := bitio.NewReader(w.Bytes()[:(n+7)/8], n)
		if trail > 0 {
			r = bitio.NewReader(w.Bytes(), w.Len())
		}
		r.Skip(lead)
		require.Equal(t, v, c.read(r))
		require.Equal(t, n, r.Pos())
	}
	ones := bytes.Repeat([]byte{255}, 40)
	for i := range 8 * len(ones) { // nothing but ones
		r := bitio.NewReader(ones, i)
		riceCode{3, 4}.read(r)
		if all := 4 + 64 + 64 + 3; i < all {
			require.Error(t, r.Err())
		} else {
			require.Equal(t, all, r.Pos(), "no more than a number may take")
		}
	}
	short := bitio.NewReader(buf, 0)
	riceCode{3, 2}.read(short)
	require.Error(t, short.Err())
}

// BenchmarkPredict is a place and a rotation that move.
func BenchmarkPredict(b *testing.B) {
	p := newPair(b, reflect.TypeFor[struct {
		Pos [3]float32 `net:"q=0.001"`
		Rot [3]float32 `net:"rot=16"`
	}]())
	rng := rand.New(rand.NewPCG(1, 1))
	past := &Past{}
	var at [64]Past
	var now [64][]uint64
	for n := range at {
		var words [Points][6]uint64
		now[n] = make([]uint64, 6)
		for j := range 6 {
			x, v, a := rng.Uint64N(1<<16), rng.Uint64N(100), rng.Uint64N(10)
			for i := Points - 1; i >= 0; i-- {
				words[i][j] = x << 1 & 0xffff
				x, v, a = x+v, v+a, a+rng.Uint64N(3)
			}
			now[n][j] = (x + v) << 1 & 0xffff
		}
		for i := range words {
			p.keep(&at[n], i, words[i][:])
		}
	}
	var w bitio.Writer
	buf := make([]byte, 64)
	for i := 0; b.Loop(); i++ {
		past.Reset()
		past.History, past.At, past.Mask, past.Predicted, past.Age, past.Gap, past.Form = at[i&63].History, at[i&63].At, 3, 3, 4, 1, Twelve
		p.shadow.Words = now[i&63]
		p.l.Predict(p.shadow, past)
		w.Reset(buf)
		base := Base{Past: past}
		p.l.WriteUnit(&w, p.shadow, 0, &base)
		p.l.WriteUnit(&w, p.shadow, 1, &base)
	}
}

// TestPastUsedAgain: a Past that was prepared for one time predicts for another as a new one does; without a Gap nothing is prepared.
func TestPastUsedAgain(t *testing.T) {
	p := newPair(t, reflect.TypeFor[numbers]())
	src := p.src.Interface().(*numbers)
	past := &Past{Mask: p.l.Deltas, Predicted: p.l.Deltas}
	for i := range past.At {
		src.Pos.X = float64(i*i) / 10
		p.compare(p.l.All())
		p.keep(past, i, p.shadow.Words)
	}
	rng := rand.New(rand.NewPCG(1, 10))
	u := &p.l.Units[0]
	age, gap, form := 1, 1, Six
	for range 2000 {
		switch rng.IntN(4) { // one of them, so that each is noticed by itself
		case 0:
			age = 1 + rng.IntN(MaxAge)
		case 1:
			gap = 1 + rng.IntN(MaxGap)
		case 2:
			form = Form(rng.IntN(4))
		case 3:
			none := &Past{Age: age}
			none.Prepare()
		}
		fresh := &Past{History: past.History, At: past.At}
		var guess, wantGuess [MaxNumbers]int64
		var means, wantMeans [MaxNumbers]uint64
		for _, q := range []*Past{past, fresh} {
			q.Age, q.Gap, q.Form = age, gap, form
			q.Prepare()
		}
		u.predict(past, u.kept, &guess, &means)
		u.predict(fresh, u.kept, &wantGuess, &wantMeans)
		require.Equal(t, wantGuess, guess, "age %d, gap %d, form %d", age, gap, form)
		require.Equal(t, wantMeans, means, "age %d, gap %d, form %d", age, gap, form)
	}
}
