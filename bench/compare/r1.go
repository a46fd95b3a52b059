package main

import (
	"fmt"
	"io"
	"math"

	"github.com/bunchnet/bunchnet/bench/internal/largeworld"
)

// replication is what R1 measures: a server's tick, how it grows, what memory it takes and how long the collector stops it.
type replication struct {
	Base     largeworld.Config
	Sweeps   []*sweep
	Walking  largeworld.Figures
	PerActor float64 // bytes
	PerView  float64 // bytes
	Pauses   []pausePoint
	Err      error
}

// sweep is ticks with more and more of one thing.
type sweep struct {
	Of, Some string // what grows, and what of it changes; "" what grows is the changes
	Points   []growthPoint
}

type growthPoint struct {
	X int
	largeworld.Figures
}

const nothing = "nothing"

// linear is the exponent up to which growth counts as linear: measured times scatter.
const linear = 1.1

// r1Sizes is what is measured, and for how long.
type r1Sizes struct {
	base                   largeworld.Config
	changes, actors, conns []int
	ticks                  int
	pauseTicks             int
	onlyDefault            bool // pauses at GOGC's default
}

func sizesOfR1(quick bool) r1Sizes {
	if quick {
		return r1Sizes{largeworld.Config{Conns: 10, Actors: 1000, Relevant: 100}, []int{0, 10, 100, 1000}, []int{500, 1000, 2000}, []int{5, 10, 20}, 20, 30, false}
	}
	return r1Sizes{largeworld.R1, []int{0, 50, 500, 5000, 50_000}, []int{12_500, 25_000, 50_000, 100_000, 200_000}, []int{12, 25, 50, 100, 200}, 200, 300, false}
}

// runR1 measures R1 and worlds larger and smaller than it.
func runR1(log io.Writer, s settings) *replication {
	n := sizesOfR1(s.quick)
	r := &replication{Base: n.base}
	if s.pauses > 0 {
		n.pauseTicks = int(s.pauses.Seconds() * largeworld.Rate)
		n.onlyDefault = true
		r.Err = r.pauses(log, n)
		return r
	}
	for _, f := range []func(io.Writer, r1Sizes) error{r.changes, r.actors, r.conns, r.memory, r.pauses} {
		if r.Err = f(log, n); r.Err != nil {
			return r
		}
	}
	return r
}

// enough is how many ticks to measure when there are so many changes in each.
func (n *r1Sizes) enough(changes int) int { return max(20, min(n.ticks, n.ticks*1000/max(1, changes))) }

// changes measures more and more changes, and walking.
func (r *replication) changes(log io.Writer, n r1Sizes) error {
	c, err := largeworld.New(n.base)
	if err != nil {
		return err
	}
	s := &sweep{Of: "changes"}
	for _, x := range n.changes {
		fmt.Fprintf(log, "r1: %d changes\n", x)
		s.add(c, n, x, x)
	}
	r.Sweeps = append(r.Sweeps, s)
	r.Walking = c.Measure(n.ticks/2, n.ticks, c.Walk)
	return nil
}

func (s *sweep) add(c *largeworld.Rig, n r1Sizes, x, changes int) {
	ticks := n.enough(changes)
	s.Points = append(s.Points, growthPoint{x, c.Measure(max(10, ticks/4), ticks, func() { c.Change(changes) })})
}

// worlds measures worlds that differ from the base in one size.
func (n *r1Sizes) worlds(log io.Writer, of string, sizes []int, size func(*largeworld.Config) *int, measure func(c *largeworld.Rig, x int)) error {
	for _, x := range sizes {
		fmt.Fprintf(log, "r1: %d %s\n", x, of)
		cfg := n.base
		*size(&cfg) = x
		c, err := largeworld.New(cfg)
		if err != nil {
			return err
		}
		measure(c, x)
	}
	return nil
}

// actors measures more and more of them at one density, so that connections see as many as before.
func (r *replication) actors(log io.Writer, n r1Sizes) error {
	idle, fixed, part := &sweep{Of: "actors", Some: nothing}, &sweep{Of: "actors", Some: fmt.Sprintf("%d of them", n.base.Actors/100)}, &sweep{Of: "actors", Some: "1 % of them"}
	err := n.worlds(log, "actors", n.actors, func(cfg *largeworld.Config) *int { return &cfg.Actors }, func(c *largeworld.Rig, x int) {
		idle.add(c, n, x, 0)
		fixed.add(c, n, x, n.base.Actors/100)
		part.add(c, n, x, x/100)
	})
	if err == nil {
		r.Sweeps = append(r.Sweeps, idle, fixed, part)
	}
	return err
}

// conns measures more and more connections to one world.
func (r *replication) conns(log io.Writer, n r1Sizes) error {
	idle, some := &sweep{Of: "connections", Some: nothing}, &sweep{Of: "connections", Some: fmt.Sprintf("%d actors", n.base.Actors/100)}
	err := n.worlds(log, "connections", n.conns, func(cfg *largeworld.Config) *int { return &cfg.Conns }, func(c *largeworld.Rig, x int) {
		idle.add(c, n, x, 0)
		some.add(c, n, x, n.base.Actors/100)
	})
	if err == nil {
		r.Sweeps = append(r.Sweeps, idle, some)
	}
	return err
}

// memory measures what an actor takes, in the graph and its shadow included, and what a view: an actor as one connection knows
// it, its channel included, and the connection's own part.
func (r *replication) memory(log io.Writer, n r1Sizes) error {
	fmt.Fprintln(log, "r1: memory")
	var err error
	r.PerActor, r.PerView, err = largeworld.Memory(n.base, n.base.Conns/5, nil)
	return err
}

// exponent is the slope of the logarithm of the time over that of x(point), by least squares; false when x hardly changes.
func (s *sweep) exponent(x func(p *growthPoint) float64) (slope float64, ok bool) {
	var n, sx, sy, sxx, sxy float64
	low, high := math.Inf(1), 0.0
	for i := range s.Points {
		p := &s.Points[i]
		v := x(p)
		if v <= 0 || p.P50 <= 0 {
			continue // not on logarithmic axes
		}
		low, high = min(low, v), max(high, v)
		lx, ly := math.Log(v), math.Log(float64(p.P50))
		n, sx, sy, sxx, sxy = n+1, sx+lx, sy+ly, sxx+lx*lx, sxy+lx*ly
	}
	if n < 2 || high < 1.5*low {
		return 0, false
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx), true
}

// steepest is the largest slope between points that follow each other.
func (s *sweep) steepest() float64 {
	most := math.Inf(-1)
	for i := 1; i < len(s.Points); i++ {
		two := sweep{Points: s.Points[i-1 : i+1]}
		if e, ok := two.exponent(growthX); ok {
			most = max(most, e)
		}
	}
	return most
}

func growthX(p *growthPoint) float64       { return float64(p.X) }
func growthUpdates(p *growthPoint) float64 { return p.Updates }

func printR1(w io.Writer, r *replication) {
	for _, s := range r.Sweeps {
		table(w, s.title(r.Base), func(row func(...any)) {
			row(s.Of, "tick p50 us", "p99 us", "updates", "ns/update", "allocs", "bytes", "seen")
			for i := range s.Points {
				p := &s.Points[i]
				row(append([]any{p.X}, cells(&p.Figures)...)...)
			}
		})
	}
	if len(r.Sweeps) == 0 {
		if r.Err != nil {
			fmt.Fprintf(w, "\nR1: %v\n", r.Err)
			return
		}
		printPauses(w, r)
		return
	}
	table(w, "R1: players walk, nothing else changes; memory", func(row func(...any)) {
		row("tick p50 us", "p99 us", "opens", "bytes", "B/actor", "B/view")
		f := &r.Walking
		row(us(f.P50), us(f.P99), fmt.Sprintf("%.0f", f.Opens), fmt.Sprintf("%.0f", f.Bytes), fmt.Sprintf("%.0f", r.PerActor), fmt.Sprintf("%.0f", r.PerView))
	})
	printGrowth(w, r)
	printPauses(w, r)
	if r.Err != nil {
		fmt.Fprintf(w, "\nR1: %v\n", r.Err)
	}
}

// changing says what changes.
func (s *sweep) changing() string {
	if s.Some == "" {
		return "so many changing"
	}
	return s.Some + " changing"
}

func (s *sweep) title(base largeworld.Config) string {
	conns, actors := fmt.Sprintf(", %d connections", base.Conns), fmt.Sprintf(", %d actors", base.Actors)
	switch s.Of {
	case "actors":
		actors = ""
	case "connections":
		conns = ""
	}
	if s.Some != "" {
		actors += ", " + s.changing()
	}
	return fmt.Sprintf("R1: more and more %s%s%s, each connection sees about %d", s.Of, conns, actors, base.Relevant)
}

func cells(f *largeworld.Figures) []any {
	each := "-"
	if f.Updates > 0 {
		each = fmt.Sprintf("%.0f", float64(f.P50)/f.Updates)
	}
	return []any{us(f.P50), us(f.P99), fmt.Sprintf("%.0f", f.Updates), each, fmt.Sprintf("%.2f", f.Allocs), fmt.Sprintf("%.0f", f.Bytes), fmt.Sprintf("%.0f", f.Seen)}
}

// printGrowth tells the exponents, and whether they are those of linear growth at most where something changes.
func printGrowth(w io.Writer, r *replication) {
	most := math.Inf(-1)
	table(w, "R1: growth: the exponent e of time ~ x^e, by least squares over the medians", func(row func(...any)) {
		row("x", "", "against x", "steepest", "against updates", "")
		for _, s := range r.Sweeps {
			e, ok := s.exponent(growthX)
			if !ok {
				continue
			}
			verdict, updates := "", "-"
			worst := e
			if u, ok := s.exponent(growthUpdates); ok {
				updates, worst = fmt.Sprintf("%.2f", u), max(e, u)
			}
			if s.Some != nothing {
				most, verdict = max(most, worst), "no worse than linear"
				if worst > linear {
					verdict = "worse than linear"
				}
			}
			row(s.Of, s.changing(), fmt.Sprintf("%.2f", e), fmt.Sprintf("%.2f", s.steepest()), updates, verdict)
		}
	})
	verdict := "no worse than linear in changes"
	if most > linear {
		verdict = "worse than linear in changes"
	}
	fmt.Fprintf(w, "\n%s: the largest exponent is %.2f\n", verdict, most)
}
