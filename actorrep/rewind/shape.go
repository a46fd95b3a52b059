package rewind

import "math"

// Vec is a point or a direction, in the game's units.
type Vec [3]float64

// Capsule is all points within Radius of the line from A to B; a sphere when A equals B.
type Capsule struct {
	A, B   Vec
	Radius float64
}

// Sphere returns a sphere as a capsule.
func Sphere(center Vec, radius float64) Capsule {
	return Capsule{A: center, B: center, Radius: radius}
}

func sub(a, b Vec) Vec     { return Vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func dot(a, b Vec) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func lerp(a, b Vec, t float64) Vec {
	return Vec{a[0] + (b[0]-a[0])*t, a[1] + (b[1]-a[1])*t, a[2] + (b[2]-a[2])*t}
}

func clamp01(t float64) float64 { return min(max(t, 0), 1) }

func length(v Vec) float64 { return math.Sqrt(dot(v, v)) }

// nearest is the point of the line from a to b nearest to p, as a fraction of the line.
func nearest(p, a, b Vec) float64 {
	d := sub(b, a)
	dd := dot(d, d)
	if dd == 0 {
		return 0
	}
	return clamp01(dot(sub(p, a), d) / dd)
}

// closest is the points of two lines that are nearest to each other, as fractions of the lines.
//
// The squared distance is convex in both fractions. So the minimum over s, with the best u for each s, is found by
// solving for s with both lines unbounded, then clamping u, then s.
func closest(p, q *Capsule) (s, u float64) {
	d, e, r := sub(p.B, p.A), sub(q.B, q.A), sub(p.A, q.A)
	dd, ee, de := dot(d, d), dot(e, e), dot(d, e)
	switch {
	case dd == 0:
		return 0, nearest(p.A, q.A, q.B)
	case ee == 0:
		return nearest(q.A, p.A, p.B), 0
	}
	if det := dd*ee - de*de; det > 1e-12*dd*ee {
		s = clamp01((de*dot(e, r) - ee*dot(d, r)) / det)
	}
	u = clamp01((de*s + dot(e, r)) / ee)
	s = clamp01((de*u - dot(d, r)) / dd)
	return s, u
}

// depth is how deep two capsules overlap; below 0 it is minus their distance. It is NaN, for which no comparison is
// true, when coordinates are NaN.
func depth(p, q *Capsule) float64 {
	s, u := closest(p, q)
	return p.Radius + q.Radius - length(sub(lerp(p.A, p.B, s), lerp(q.A, q.B, u)))
}

// enter is the fraction of the line at which it first touches a capsule; 0 when it starts inside.
//
// The distance to the capsule's line is convex along the way: it falls until the closest point. Before that point it
// equals the radius exactly once.
func enter(from, to Vec, c *Capsule) (float64, bool) {
	outside := func(t float64) bool {
		p := lerp(from, to, t)
		return !(length(sub(p, lerp(c.A, c.B, nearest(p, c.A, c.B)))) <= c.Radius)
	}
	if !outside(0) {
		return 0, true
	}
	hi, _ := closest(&Capsule{A: from, B: to}, c)
	if outside(hi) {
		return 0, false
	}
	lo := 0.0
	for range 50 {
		mid := (lo + hi) / 2
		if outside(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi, true
}

// around is a sphere that contains all shapes.
func around(shapes []Capsule) Capsule {
	var lo, hi Vec
	for i := range lo {
		lo[i], hi[i] = math.Inf(1), math.Inf(-1)
		for _, s := range shapes {
			lo[i] = min(lo[i], s.A[i]-s.Radius, s.B[i]-s.Radius)
			hi[i] = max(hi[i], s.A[i]+s.Radius, s.B[i]+s.Radius)
		}
	}
	return Sphere(lerp(lo, hi, 0.5), length(sub(hi, lo))/2)
}
