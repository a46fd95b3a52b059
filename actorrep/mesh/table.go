package mesh

import (
	"fmt"
	"math"
	"time"
)

// Table divides the plane among servers, in a grid. What is outside the grid belongs to the nearest cell. A table with a higher Epoch takes the
// place of this one while all servers run: a zone is split, merged or given to another server by a change of the table.
type Table struct {
	Epoch   uint64
	X, Y    float64  // the corner of the first cell
	Cell    float64  // the side of a cell
	Columns int      // cells in a row
	Servers []string // the server of each cell, row by row
}

// maxCells bounds a table.
const maxCells = 1 << 16

func (t *Table) check() error {
	rows := 0
	if t.Columns > 0 {
		rows = len(t.Servers) / t.Columns
	}
	switch {
	case t.Epoch == 0:
		return fmt.Errorf("%w: Table.Epoch is 0", ErrConfig)
	case !(t.Cell > 0) || math.IsInf(t.Cell, 0) || math.IsInf(t.X, 0) || math.IsInf(t.Y, 0) || t.X != t.X || t.Y != t.Y:
		return fmt.Errorf("%w: Table.Cell %v at %v, %v", ErrConfig, t.Cell, t.X, t.Y)
	case rows == 0 || rows*t.Columns != len(t.Servers) || len(t.Servers) > maxCells:
		return fmt.Errorf("%w: Table has %d cells in rows of %d; whole rows, and %d cells at most", ErrConfig, len(t.Servers), t.Columns, maxCells)
	}
	for _, id := range t.Servers {
		if id == "" || len(id) > maxID {
			return fmt.Errorf("%w: Table.Servers has %q; an ID has 1 to %d bytes", ErrConfig, id, maxID)
		}
	}
	return nil
}

// index is the row or the column of v among n that begin at from.
func (t *Table) index(v, from float64, n int) int {
	i := math.Floor((v - from) / t.Cell)
	if !(i > 0) { // not a number, too
		return 0
	}
	return int(min(i, float64(n-1)))
}

// At is the server of a place.
func (t *Table) At(x, y float64) string { return t.Servers[t.cell(x, y)] }

// cell is the number of a place's cell.
func (t *Table) cell(x, y float64) int {
	return t.index(y, t.Y, len(t.Servers)/t.Columns)*t.Columns + t.index(x, t.X, t.Columns)
}

// former is a table of which servers mirror still what was theirs.
type former struct {
	Table
	until time.Duration
}

// maxFormers bounds those that a Zone keeps; above, the oldest is forgotten.
const maxFormers = 4

// distance is how far a place is from a server's zone.
type distance struct {
	server string
	d      float64
}

// near adds the servers whose zones are within r of a place. Those that all has already keep the smaller distance.
func (t *Table) near(all []distance, x, y, r float64) []distance {
	rows := len(t.Servers) / t.Columns
	x = within(x, t.X, float64(t.Columns)*t.Cell)
	y = within(y, t.Y, float64(rows)*t.Cell)
	for row := t.index(y-r, t.Y, rows); row <= t.index(y+r, t.Y, rows); row++ {
		for column := t.index(x-r, t.X, t.Columns); column <= t.index(x+r, t.X, t.Columns); column++ {
			d := math.Hypot(x-within(x, t.X+float64(column)*t.Cell, t.Cell), y-within(y, t.Y+float64(row)*t.Cell, t.Cell))
			if d <= r {
				all = noteDistance(all, t.Servers[row*t.Columns+column], d)
			}
		}
	}
	return all
}

func noteDistance(all []distance, server string, d float64) []distance {
	for i := range all {
		if all[i].server == server {
			all[i].d = min(all[i].d, d)
			return all
		}
	}
	return append(all, distance{server, d})
}

// within is the value nearest to v from a to a+length.
func within(v, a, length float64) float64 {
	if v != v {
		return a
	}
	return min(max(v, a), a+length)
}
