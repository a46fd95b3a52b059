package rewind

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func randomVec(rnd *rand.Rand, size float64) Vec {
	// Whole numbers now and then, so that lines are parallel, touch, or are points.
	v := Vec{}
	whole := rnd.IntN(3) == 0
	for i := range v {
		v[i] = (rnd.Float64()*2 - 1) * size
		if whole {
			v[i] = math.Round(v[i])
		}
	}
	return v
}

func randomCapsule(rnd *rand.Rand) Capsule {
	c := Capsule{A: randomVec(rnd, 4), B: randomVec(rnd, 4), Radius: rnd.Float64() * 2}
	if rnd.IntN(5) == 0 {
		c.B = c.A
	}
	return c
}

// naiveDepth tries many points of the one line.
func naiveDepth(p, q *Capsule) float64 {
	best := math.Inf(1)
	const n = 1000
	for i := range n + 1 {
		a := lerp(p.A, p.B, float64(i)/n)
		b := lerp(q.A, q.B, nearest(a, q.A, q.B))
		best = min(best, length(sub(a, b)))
	}
	return p.Radius + q.Radius - best
}

func TestDepthModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	touching := 0
	for i := range 1500 {
		p, q := randomCapsule(rnd), randomCapsule(rnd)
		got, want := depth(&p, &q), naiveDepth(&p, &q)
		require.InDelta(t, want, got, 0.01, "case %d: %+v %+v", i, p, q)
		require.GreaterOrEqual(t, got, want-1e-9, "case %d: there is a nearer point", i)
		require.InDelta(t, got, depth(&q, &p), 1e-9, "case %d", i)
		if got >= 0 {
			touching++
		}
	}
	require.True(t, touching > 100 && touching < 1400, "%d touch", touching)
}

// The naive ray goes in small steps.
func TestEnterModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 1))
	hits := 0
	for i := range 1000 {
		from, to, c := randomVec(rnd, 8), randomVec(rnd, 8), randomCapsule(rnd)
		got, ok := enter(from, to, &c)
		const n = 1000
		want, found := 0.0, false
		for s := range n + 1 {
			p := Sphere(lerp(from, to, float64(s)/n), 0)
			if depth(&p, &c) >= 0 {
				want, found = float64(s)/n, true
				break
			}
		}
		if found {
			hits++
			require.True(t, ok, "case %d: %v %v %+v", i, from, to, c)
			require.True(t, got <= want+1e-9 && got >= want-1.0/n-1e-9, "case %d: %v, not %v", i, got, want)
		} else if ok { // it only grazes, between two steps
			line := Capsule{A: from, B: to}
			require.InDelta(t, 0, depth(&line, &c), 0.01, "case %d", i)
		}
	}
	require.Greater(t, hits, 50)
}

func TestAround(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for range 500 {
		shapes := []Capsule{randomCapsule(rnd), randomCapsule(rnd)}
		s := around(shapes)
		for _, c := range shapes {
			for _, end := range []Vec{c.A, c.B} {
				require.LessOrEqual(t, length(sub(end, s.A))+c.Radius, s.Radius*1.8)
				dir := randomVec(rnd, 1)
				if l := length(dir); l > 0 {
					p := lerp(end, Vec{end[0] + dir[0], end[1] + dir[1], end[2] + dir[2]}, c.Radius/l)
					require.LessOrEqual(t, length(sub(p, s.A)), s.Radius+1e-9)
				}
			}
		}
	}
}

// A ray or a shape that isn't anywhere hits nothing.
func TestNaN(t *testing.T) {
	nan := math.NaN()
	c := Sphere(Vec{}, 1)
	for _, v := range []Vec{{nan, 0, 0}, {math.Inf(1), 0, 0}} {
		_, ok := enter(v, Vec{}, &c)
		require.False(t, ok)
		far := Sphere(v, 1)
		require.False(t, depth(&far, &c) >= 0)
		_, ok = enter(Vec{5}, Vec{}, &far)
		require.False(t, ok)
	}
}
