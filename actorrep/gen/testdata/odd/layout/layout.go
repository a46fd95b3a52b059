// Package layout has the name of another.
package layout

// Point is a vector.
type Point struct{ X, Y float32 }

// X64 is a coordinate.
func (p Point) X64() float64 { return float64(p.X) }

// Mark is a named boolean.
type Mark bool

// Closed can't be read from elsewhere.
type Closed struct{ secret int }

// Secret is the secret.
func (c Closed) Secret() int { return c.secret }
