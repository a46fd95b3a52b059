// Mesh measures what one world on several servers costs, in virtual time and one process: a border by the actors near it, a server by how many servers there are beside it at the same density, what
// goes between servers, and what the store does. Times are CPU time of the servers' ticks. All shapes of a table run in turns, so that they have the same machine.
//
//	go run ./bench/mesh                     # the tables of bench/MESH.md, a few minutes
//	go run ./bench/mesh -quick              # a few small ones
//	go run ./bench/mesh -plot /tmp/mesh.csv # and the curves, for bench/plot
//
// It fails when in the end, after nobody has walked for three seconds, an actor hasn't one authority, or a player doesn't see what is near as it is.
package main

import (
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// options is the flags.
type options struct {
	hz, players, walkers int
	seconds              float64
	quick                bool
	plot                 string
}

func main() {
	var o options
	flag.IntVar(&o.hz, "hz", 20, "ticks a second, of servers and clients")
	flag.IntVar(&o.players, "players", 40, "players of each server")
	flag.IntVar(&o.walkers, "walkers", 80, "other actors of each server")
	flag.Float64Var(&o.seconds, "seconds", 10, "of virtual time that are measured")
	flag.BoolVar(&o.quick, "quick", false, "fewer and smaller shapes")
	flag.StringVar(&o.plot, "plot", "", "file for the curves")
	flag.Parse()
	if flag.NArg() > 0 || o.hz < 1 || o.hz > 120 || o.players < 1 || o.walkers < 0 || !(o.seconds > 0) {
		fmt.Fprintln(os.Stderr, "a flag is out of range, or isn't one; see -help")
		os.Exit(2)
	}
	if o.quick {
		o.players, o.walkers, o.seconds = min(o.players, 8), min(o.walkers, 16), min(o.seconds, 3)
	}
	runtime.LockOSThread() // cputime is of a thread
	debug.SetGCPercent(400)
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// curves is what is plotted: rows of what bench/feel writes.
type curves [][]string

func (c *curves) add(y, x, curve string, at, value float64) {
	*c = append(*c, []string{y, x, curve, strconv.FormatFloat(at, 'g', 6, 64), strconv.FormatFloat(value, 'g', 6, 64)})
}

func run(o options) error {
	c := &curves{{"y", "x", "curve", "at", "value"}}
	for _, part := range []func(o options, c *curves) error{borders, servers, keepers} {
		if err := part(o, c); err != nil {
			return err
		}
		fmt.Println()
	}
	if o.plot != "" {
		f, err := os.Create(o.plot)
		if err != nil {
			return err
		}
		w := csv.NewWriter(f)
		if err := w.WriteAll(*c); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	_, err := fmt.Println("PASS: each actor has one authority, and each player sees what is near as it is")
	return err
}

const (
	fill   = 6 * time.Second // until all are connected and see what is there
	settle = 3 * time.Second
)

// play runs worlds in turns, and measures after they are filled. It returns an error when one isn't right in the end.
func play(worlds []*world, long time.Duration) error {
	turn := func(from, to time.Duration) error {
		for t := from; t < to; {
			t = min(t+100*time.Millisecond, to)
			for _, w := range worlds {
				if w.sim.RunUntil(t); w.sim.Failure() != nil {
					return fmt.Errorf("%+v: %v", w.shape, w.sim.Failure())
				}
			}
		}
		return nil
	}
	if err := turn(0, fill); err != nil {
		return err
	}
	for _, w := range worlds {
		w.begin()
	}
	if err := turn(fill, fill+long); err != nil {
		return err
	}
	for _, w := range worlds {
		w.end()
	}
	if err := turn(fill+long, fill+long+settle); err != nil {
		return err
	}
	for _, w := range worlds {
		if err := w.verdict(); err != nil {
			return fmt.Errorf("%+v: %w", w.shape, err)
		}
	}
	return nil
}

// median is that of CPU times, in microseconds.
func median(all []time.Duration) float64 {
	s := slices.Sorted(slices.Values(all))
	if len(s) == 0 {
		return 0
	}
	return float64(s[len(s)/2]) / float64(time.Microsecond)
}

func table() *tabwriter.Writer {
	return tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// borders measures a border by the actors near it: two servers without players.
func borders(o options, c *curves) error {
	sizes := []int{0, 125, 250, 500, 1000, 2000}
	if o.quick {
		sizes = []int{0, 100, 200}
	}
	var worlds []*world
	for _, n := range sizes {
		worlds = append(worlds, newWorld(shape{rows: 1, columns: 2, margin: n}, o.hz))
		if n > 0 {
			worlds = append(worlds, newWorld(shape{rows: 1, columns: 2, margin: n, far: true}, o.hz))
		}
	}
	long := time.Duration(o.seconds * float64(time.Second))
	if err := play(worlds, long); err != nil {
		return err
	}
	fmt.Printf("a border: two servers without players; all actors of one of them walk, within the other's margin or far from it, at %d ticks a second\n", o.hz)
	t := table()
	fmt.Fprintln(t, "actors\tfar, us a tick\tnear\tshows, ns an actor\tmirrors, us a tick\tns an actor\tkB/s\tB/s an actor\t")
	var idle float64
	for i := 0; i < len(worlds); i++ {
		w := worlds[i]
		n, near := w.shape.margin, median(w.servers[0].ticks)
		mirror, kB := median(w.servers[1].ticks), float64(w.measured.borders+w.measured.messages)/long.Seconds()/1000
		far := near
		if n == 0 {
			idle = mirror
			fmt.Fprintf(t, "%d\t%.0f\t%.0f\t\t%.0f\t\t%.1f\t\t\n", n, far, near, mirror, kB)
			continue
		}
		i++
		far = median(worlds[i].servers[0].ticks)
		per := func(us float64) float64 { return us * 1000 / float64(n) }
		fmt.Fprintf(t, "%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t%.0f\t\n", n, far, near, per(near-far), mirror, per(mirror-idle), kB, 1000*kB/float64(n))
		const x = "actors in the margin"
		c.add("CPU, us a tick", x, "shows them", float64(n), near-far)
		c.add("CPU, us a tick", x, "mirrors them", float64(n), mirror-idle)
		c.add("between the servers, kB/s", x, "bytes", float64(n), kB)
	}
	return t.Flush()
}

// servers measures a server by how many there are beside it.
func servers(o options, c *curves) error {
	shapes := [][2]int{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {1, 16}, {2, 2}, {4, 4}}
	if o.quick {
		shapes = [][2]int{{1, 1}, {1, 2}, {2, 2}}
	}
	var worlds []*world
	for _, s := range shapes {
		worlds = append(worlds, newWorld(shape{rows: s[0], columns: s[1], players: o.players, walkers: o.walkers, keeps: true}, o.hz))
	}
	long := time.Duration(o.seconds * float64(time.Second))
	if err := play(worlds, long); err != nil {
		return err
	}
	fmt.Printf("a server, with %d players and %d other actors in its zone of %.0f m, who walk at %.0f m/s and see %.0f m far; margin %.0f m; %d ticks a second\n", o.players, o.walkers, zoneSide, speed, sight, margin, o.hz)
	t := table()
	fmt.Fprintln(t, "servers\tsides\tof\tactors\tmirrors\tus a tick\tborders, us\tmedian, us\tto clients, kB/s\tborders, kB/s\tmessages, kB/s\ttravel, kB/s\tcross/s\tstore writes/s\treads/s\tMB a server\t")
	for _, w := range worlds {
		n := float64(w.shape.servers())
		per := func(v uint64) float64 { return float64(v) / long.Seconds() / n }
		var rows []string
		for sides := range 5 {
			r := w.ofSides(sides)
			if r.of == 0 {
				continue
			}
			rows = append(rows, fmt.Sprintf("%dx%d\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t", w.rows, w.columns, sides, r.of, r.actors/r.of, r.mirrors/r.of, r.mean/r.of, r.border/r.of, r.median/r.of))
			if w.rows == 1 && sides > 0 {
				c.add("CPU of a server, us a tick", "servers in a row", [...]string{1: "at an end", 2: "between"}[sides], n, r.mean/r.of)
			}
		}
		sent, mB := w.measured, w.memory()
		for _, r := range rows {
			fmt.Fprintf(t, "%s%.1f\t%.1f\t%.1f\t%.2f\t%.2f\t%.1f\t%.1f\t%.1f\t\n", r, per(sent.clients)/1000, per(sent.borders)/1000, per(sent.messages)/1000, per(sent.travel)/1000, per(sent.crossed),
				per(w.writes), per(w.reads), mB)
		}
	}
	return t.Flush()
}

// row is sums over servers of one kind.
type row struct{ of, actors, mirrors, mean, median, border float64 }

// ofSides is the servers with so many neighbours' sides. Times are in microseconds.
func (w *world) ofSides(sides int) (r row) {
	for i, s := range w.servers {
		if w.sides(i) != sides {
			continue
		}
		sum := func(all []time.Duration) (us float64) {
			for _, d := range all {
				us += float64(d) / float64(time.Microsecond) / float64(len(all))
			}
			return us
		}
		r.of++
		r.actors, r.mirrors = r.actors+float64(s.own), r.mirrors+float64(s.all-s.own)
		r.mean, r.border, r.median = r.mean+sum(s.ticks), r.border+sum(s.zones), r.median+median(s.ticks)
	}
	return r
}
