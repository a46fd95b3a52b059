// Package counter is what the tests of mutants are tried on.
package counter

// Counter counts up to a limit.
type Counter struct {
	N, Limit int
	full     bool
	calls    int
}

// Add adds n, as far as the limit allows, and reports whether all of it fitted.
func (c *Counter) Add(n int) bool {
	c.calls++ // nobody looks at it
	c.N += n
	switch {
	case n < 0:
		c.N -= n
		return false
	default:
		if c.N > c.Limit {
			c.fill()
			return false
		}
	}
	return true
}

//go:noinline
func (c *Counter) fill() {
	c.N, c.full = c.Limit, true
}

// Full reports whether something didn't fit.
func (c *Counter) Full() bool { return c.full && c.N >= c.Limit }

// Room is how much still fits.
func (c *Counter) Room() int {
	for n := 0; ; n++ {
		if c.N+n < c.Limit {
			continue
		}
		return n
	}
}

// Never isn't tested.
func Never(a, b int) int { return a * b }

// Take takes two, or what there is.
func (c *Counter) Take() {
	if !c.take() { // without it one isn't taken, even when it is never false
		return
	}
	c.take()
}

func (c *Counter) take() bool {
	c.N--
	return c.N != 0
}
