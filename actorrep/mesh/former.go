package mesh

import "time"

// What was whose in former tables: a server mirrors it still for ZoneConfig.Linger.

// former is a table of another grid.
type former struct {
	Table
	past  past
	until time.Duration
}

// past is what was whose in a table's grid.
type past struct {
	all   []loss
	cells [][]bygone // by cell, each in the order of all
}

// loss is when what a server had in a cell is forgotten.
type loss struct {
	cell  int
	until time.Duration
}

// bygone is a part of a cell that was a server's.
type bygone struct {
	square
	server string
}

// Bounds of what is kept; above, the oldest is forgotten.
const (
	maxFormers = 4
	maxBygone  = 1 << 18 // what two tables differ in is less
)

// sameGrid reports whether two tables have the same cells, however these are divided.
func (t *Table) sameGrid(o *Table) bool {
	return t.X == o.X && t.Y == o.Y && t.Cell == o.Cell && t.Columns == o.Columns && t.cells() == o.cells()
}

// add adds what was others' in a table than in the next one, which has the same grid.
func (p *past) add(was, is *Table, until time.Duration) {
	for cell := range was.cells() {
		p.addIn(was, is, cell, cell, was.square(cell/was.Columns, cell%was.Columns), loss{cell, until})
	}
	p.forget(len(p.all) - maxBygone)
}

// addIn is add in a square, which is at a place in the Servers of each table, or within it.
func (p *past) addIn(was, is *Table, at, to int, s square, l loss) {
	i, j := was.split(at), is.split(to)
	if i < 0 && j < 0 {
		if server := was.Servers[at]; server != is.Servers[to] {
			if p.cells == nil {
				p.cells = make([][]bygone, was.cells())
			}
			p.all = append(p.all, l)
			p.cells[l.cell] = append(p.cells[l.cell], bygone{s, server})
		}
		return
	}
	for q := range 4 {
		from, next := at, to
		if i >= 0 {
			from = was.cells() + 4*i + q
		}
		if j >= 0 {
			next = is.cells() + 4*j + q
		}
		p.addIn(was, is, from, next, s.quarter(q), l)
	}
}

// expired is how much of it is to be forgotten.
func (p *past) expired(now time.Duration) (n int) {
	for n < len(p.all) && now >= p.all[n].until {
		n++
	}
	return n
}

// forget forgets the n oldest.
func (p *past) forget(n int) {
	if n <= 0 {
		return
	}
	for _, l := range p.all[:n] {
		p.cells[l.cell] = p.cells[l.cell][1:]
	}
	if p.all = p.all[n:]; len(p.all) == 0 {
		*p = past{}
	}
}

// near is Table.near of what was whose in a table's grid.
func (p *past) near(t *Table, all []distance, x, y, r float64) []distance {
	if len(p.all) == 0 {
		return all
	}
	in := t.reach(x, y, r)
	for row := in.top; row <= in.bottom; row++ {
		for column := in.left; column <= in.right; column++ {
			for _, b := range p.cells[row*t.Columns+column] {
				if d := b.from(in.x, in.y); d <= r {
					all = noteDistance(all, b.server, d)
				}
			}
		}
	}
	return all
}
