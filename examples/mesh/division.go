package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep/mesh"
)

// The squares of the plane: the quarters of its zones, which are the smallest that there are. They are numbered row by row.
const (
	side     = cell / 2
	across   = 2 * columns
	squares  = across * 2 * rows
	quarters = 4
)

// quarter is the square of a zone's quarter: 0 and 1 of its upper half, 2 and 3 of its lower one.
func quarter(zone, q int) int {
	return (2*(zone/columns)+q/2)*across + 2*(zone%columns) + q%2
}

// middle is that of a square.
func middle(square int) (x, y float64) {
	return side * (float64(square%across) + 0.5), side * (float64(square/across) + 0.5)
}

// split reports whether a zone is split, by the newest table of all servers.
func (g *mesher) split(zone int) bool { return slices.Contains(g.table.Splits, zone) }

// holder returns the number of the server that has a square, by that table; 0 when it is there no more.
func (g *mesher) holder(square int) int {
	if g.table.Epoch == 0 {
		return 0
	}
	id := g.table.At(middle(square))
	for _, s := range g.slots {
		if s != nil && s.now != nil && s.now.id == id {
			return s.number
		}
	}
	return 0
}

// part is a zone that isn't split, or a quarter of one that is.
type part struct {
	Name   string
	Column int // in squares
	Row    int
	Wide   int // so many squares, and so many high
	Server int // 0: nobody has it
}

// parts returns what the plane is divided into, in the order of plan.
func (g *mesher) parts() (all []part) {
	for zone, name := range plan().Servers {
		first := quarter(zone, 0)
		if !g.split(zone) {
			all = append(all, part{name, first % across, first / across, 2, g.holder(first)})
			continue
		}
		for q, where := range [quarters]string{"nw", "ne", "sw", "se"} {
			at := quarter(zone, q)
			all = append(all, part{name + " " + where, at % across, at / across, 1, g.holder(at)})
		}
	}
	return all
}

// retabled takes a newer table, and tells what is different.
func (g *mesher) retabled(t mesh.Table) {
	was := map[string]int{}
	for _, p := range g.parts() {
		was[p.Name] = p.Server
	}
	began := g.table.Epoch == 0
	g.table = t
	if began {
		return // servers take the zones of the beginning
	}
	taken := map[int][]string{}
	for _, p := range g.parts() {
		zone, _, quarter := strings.Cut(p.Name, " ")
		had, same := was[p.Name]
		switch {
		case !same && quarter:
			if strings.HasSuffix(p.Name, "nw") {
				g.tell("zone %s is split", zone)
			}
			had = was[zone]
		case !same:
			g.tell("zone %s is merged, and server %d has it", zone, p.Server)
			continue
		}
		if had != p.Server && p.Server > 0 {
			taken[p.Server] = append(taken[p.Server], p.Name)
		}
	}
	for s := 1; s <= servers; s++ {
		if len(taken[s]) > 0 {
			g.tell("server %d has taken %s", s, strings.Join(taken[s], ", "))
		}
	}
}

// disagrees says which server has an older table than others.
func (g *mesher) disagrees() string {
	for _, s := range g.slots {
		if s.now != nil && s.now.last.Epoch != g.table.Epoch {
			return fmt.Sprintf("server %d has an older table", s.number)
		}
	}
	return ""
}

// nobodys reports whether no server that is there has what was a part, or all of it.
func (g *mesher) nobodys(p part) bool {
	for i := range p.Wide * p.Wide {
		if g.holder((p.Row+i/p.Wide)*across+p.Column+i%p.Wide) == 0 {
			return true
		}
	}
	return false
}

// names lists parts.
func names(parts []part) string {
	var all []string
	for _, p := range parts {
		all = append(all, p.Name)
	}
	return cmp.Or(strings.Join(all, ", "), "no zone")
}
