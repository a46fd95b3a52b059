package layout

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

type turning struct {
	Rot [4]float64 `net:"quat=15"`
}

func randomRotation(rng *rand.Rand) (q [4]float64) {
	for i := range q {
		q[i] = rng.NormFloat64()
	}
	switch rng.IntN(8) {
	case 0: // about one axis
		q[rng.IntN(4)], q[rng.IntN(4)] = 0, 0
	case 1: // the same in all, or nearly
		for i := range q {
			q[i] = math.Copysign(1+rng.Float64()*1e-5, q[i])
		}
	case 2:
		q = [4]float64{}
		q[rng.IntN(4)] = -1
	}
	return q
}

// angle is between two rotations, in radians.
func angle(a, b [4]float64) float64 {
	dot, la, lb := 0.0, 0.0, 0.0
	most := max(math.Abs(a[0]), math.Abs(a[1]), math.Abs(a[2]), math.Abs(a[3]))
	for i := range a {
		a[i] /= most
	}
	for i := range a {
		dot, la, lb = dot+a[i]*b[i], la+a[i]*a[i], lb+b[i]*b[i]
	}
	return 2 * math.Acos(min(1, math.Abs(dot)/math.Sqrt(la*lb)))
}

// TestQuaternions: every rotation arrives, whole, as a difference and predicted, the same at both ends and near to what it was, of length 1.
func TestQuaternions(t *testing.T) {
	p := newPair(t, reflect.TypeFor[turning]())
	require.Equal(t, Quat, p.l.Units[0].Kind)
	src, dst := p.src.Interface().(*turning), p.dst.Interface().(*turning)
	rng := rand.New(rand.NewPCG(1, 2))
	v := make([]uint64, 4)
	for range 20_000 {
		var past Past
		src.Rot = randomRotation(rng)
		for i := Points - 1; i >= 0; i-- { // turning on, with a jerk now and then
			for j := range src.Rot {
				src.Rot[j] += rng.NormFloat64() * math.Pow(10, -float64(rng.IntN(6)))
			}
			if rng.IntN(3) == 0 {
				for j := range src.Rot {
					src.Rot[j] = -src.Rot[j]
				}
			}
			p.compare(1)
			p.keep(&past, i, p.shadow.Words)
		}
		src.Rot = [4]float64{src.Rot[0] + 0.01, src.Rot[1], -src.Rot[2], src.Rot[3]}
		if rng.IntN(2) == 0 {
			src.Rot = randomRotation(rng)
		}
		p.compare(1)
		past.Mask, past.Age, past.Gap, past.Form, past.Predicted = 1, 1+rng.IntN(9), 1+rng.IntN(5), Form(rng.IntN(4)), 1
		p.l.Predict(p.shadow, &past)
		plain := Past{History: past.History, At: past.At, Mask: 1, Age: 1}
		for _, known := range []*Past{nil, &plain, &past} {
			w := p.write(0, &Base{Past: known})
			r := bitio.NewReader(w.Bytes(), w.Len())
			p.remote.ReadUnit(r, 0, v, known, p.l.Object(p.dst.UnsafePointer()))
			require.NoError(t, r.Err())
			require.Zero(t, r.Remaining())
			require.Equal(t, p.shadow.Words, v, "both ends know the same")
			a, b, c, d := Quaternion(dst.Rot[0], dst.Rot[1], dst.Rot[2], dst.Rot[3], 15)
			require.Equal(t, v, []uint64{a, b, c, d}, "what arrived is sent on as it is")
			require.Less(t, angle(src.Rot, dst.Rot), 2*2.2*math.Sqrt2/(1<<15), "%v is %v", src.Rot, dst.Rot)
			require.InDelta(t, 1, math.Sqrt(dst.Rot[0]*dst.Rot[0]+dst.Rot[1]*dst.Rot[1]+dst.Rot[2]*dst.Rot[2]+dst.Rot[3]*dst.Rot[3]), 1e-15)
			if known == nil {
				require.Equal(t, 2+3*15, w.Len())
			} else {
				require.LessOrEqual(t, w.Len(), 3+2+3*15)
			}
		}
	}
}

// TestNoRotations: the zero value arrives as it is; what has a NaN or an infinity is 0 there, and told of here.
func TestNoRotations(t *testing.T) {
	p := newPair(t, reflect.TypeFor[turning]())
	src, dst := p.src.Interface().(*turning), p.dst.Interface().(*turning)
	require.Zero(t, p.l.NonZero(p.shadow))
	past := &Past{Mask: 1, Age: 1}
	p.keep(past, 0, make([]uint64, 4))
	v := make([]uint64, 4)
	for _, q := range [][4]float64{{3: 1}, {}, {0: math.NaN()}, {2: -1}, {1: math.Inf(1)}, {0: 1e-300}, {1e300, 1e300, -1e300, 1e300}, {}} {
		src.Rot = q
		p.compare(1)
		for _, known := range []*Past{nil, past} {
			w := p.write(0, &Base{Past: known})
			p.remote.ReadUnit(bitio.NewReader(w.Bytes(), w.Len()), 0, v, known, p.l.Object(p.dst.UnsafePointer()))
			require.Equal(t, p.shadow.Words, v)
		}
		p.keep(past, 0, v)
		bad := math.IsNaN(q[0]) || math.IsInf(q[1], 0)
		require.Equal(t, bad, p.shadow.Unfit != 0, "%v", q)
		require.Equal(t, bad, p.l.Unfit(p.src.UnsafePointer(), 0) != nil)
		if q == ([4]float64{}) || bad {
			require.Zero(t, dst.Rot)
		} else {
			require.Less(t, angle(q, dst.Rot), 1e-3)
		}
	}
}

// TestRotationsSentOn: what has arrived is the same when it is sent on, also where two numbers are nearly the largest, in few bits, as floats of 32.
func TestRotationsSentOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for range 200_000 {
		width := uint8(8 + rng.IntN(9))
		q := randomRotation(rng)
		if rng.IntN(2) == 0 {
			q[0] = q[1+rng.IntN(3)] * float64(1-2*rng.IntN(2)) * (1 + rng.NormFloat64()/300)
		}
		var v, again [4]uint64
		v[0], v[1], v[2], v[3] = Quaternion(q[0], q[1], q[2], q[3], width)
		f := fromQuat(v[:])
		for i := range f {
			f[i] = float64(float32(f[i]))
		}
		again[0], again[1], again[2], again[3] = Quaternion(f[0], f[1], f[2], f[3], width)
		require.Equal(t, v, again, "%v in %d bits", q, width)
		if n := quatOf(v[:]); q != ([4]float64{}) {
			at := index(&n, largestPart(width))
			require.GreaterOrEqual(t, at, 0, "%v in %d bits", q, width)
			n[at] = 0
			require.LessOrEqual(t, abs(n[longest(&n)]), uint64(largestPart(width)), "%v in %d bits: those that are sent have room", q, width)
		}
	}
}

// TestSteadyTurn: an object that turns evenly takes few bits.
func TestSteadyTurn(t *testing.T) {
	p := newPair(t, reflect.TypeFor[turning]())
	src := p.src.Interface().(*turning)
	total := 0
	for step := range 200 {
		past := Past{Mask: 1, Predicted: 1, Age: 3, Gap: 2, Form: Twelve}
		at := func(step int) []uint64 {
			a := float64(step) / 30 / 2
			src.Rot = [4]float64{0.6 * math.Sin(a), 0.8 * math.Sin(a) * math.Cos(0.3), 0.8 * math.Sin(a) * math.Sin(0.3), math.Cos(a)}
			p.compare(1)
			return append([]uint64{}, p.shadow.Words...)
		}
		for i := range past.At {
			p.keep(&past, i, at(step-3-2*i))
		}
		at(step)
		require.True(t, p.l.Predict(p.shadow, &past))
		total += p.write(0, &Base{Past: &past}).Len()
	}
	require.Less(t, float64(total)/200, 13.0)
}

// TestQuarterTurns: two numbers of a quarter turn are the largest that are sent. It arrives whole, as a difference and predicted.
func TestQuarterTurns(t *testing.T) {
	h := math.Sqrt2 / 2
	var turns [][4]float64
	for i := range 4 {
		for j := range i {
			for sign := range 4 {
				var q [4]float64
				q[i], q[j] = h*float64(1-sign&2), h*float64(1-2*(sign&1))
				turns = append(turns, q)
			}
		}
	}
	p := newPair(t, reflect.TypeFor[turning]())
	src, dst := p.src.Interface().(*turning), p.dst.Interface().(*turning)
	v := make([]uint64, 4)
	for _, q := range turns {
		for _, from := range append(turns, [4]float64{3: 1}, [4]float64{0.5, 0.5, 0.5, 0.5}) {
			past := &Past{Mask: 1, Age: 1, Gap: 1, Form: Two, Predicted: 1}
			for i := range past.At {
				for j := range 4 { // from there to where it is, and a little beyond
					src.Rot[j] = from[j] + (q[j]-from[j])*float64(Points+1-i)/Points
				}
				p.compare(1)
				p.keep(past, i, p.shadow.Words)
			}
			src.Rot = q
			p.compare(1)
			p.l.Predict(p.shadow, past)
			for _, known := range []*Past{nil, {History: past.History, At: past.At, Mask: 1, Age: 1}, past} {
				w := p.write(0, &Base{Past: known})
				p.remote.ReadUnit(bitio.NewReader(w.Bytes(), w.Len()), 0, v, known, p.l.Object(p.dst.UnsafePointer()))
				require.Equal(t, p.shadow.Words, v)
				require.Less(t, angle(q, dst.Rot), 1e-3, "%v is %v", q, dst.Rot)
			}
		}
	}
}

// TestRotationsFarFromWhatWasExpected: a rotation whose errors take more than 64 bits, as it was calm before, arrives.
func TestRotationsFarFromWhatWasExpected(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	d := Wire{Kind: Quat, N: 4, Bits: 16}
	some := func() (v [4]uint64) {
		v[0], v[1], v[2], v[3] = Quaternion(rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), d.Bits)
		return v
	}
	long := 0
	for range 1000 {
		v, before := some(), some()
		guess := quatOf(before[:])
		var means, got [MaxNumbers]uint64
		var e nearErrors
		n := d.nearRotation(v[:], &guess, &means, &e)
		w := bitio.NewWriter(make([]byte, 64))
		e.write(w)
		require.NoError(t, w.Err())
		require.Equal(t, n, w.Len(), "as reckoned before")
		r := bitio.NewReader(w.Bytes(), w.Len())
		means = [MaxNumbers]uint64{}
		d.readNear(r, got[:4], &guess, &means)
		require.NoError(t, r.Err())
		require.Equal(t, v[:], got[:4])
		if n > 64 {
			long++
		}
	}
	require.Greater(t, long, 100)
}
