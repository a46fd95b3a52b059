package main

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// names is the columns, after that of the time.
var names = []string{"clients", "connections", "heap", "goroutines", "files"}

// soakHead is the columns that bench/soak writes.
const soakHead = "seconds,clients,connections,heap,goroutines,files"

// columns is each column over time.
func columns(rows [][]string) (map[string]plotter.XYs, error) {
	var err error
	columns := map[string]plotter.XYs{}
	for i, row := range rows {
		var v [6]float64
		for j, text := range row {
			if v[j], err = number(text); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+2, err)
			}
		}
		for j, name := range names {
			columns[name] = append(columns[name], plotter.XY{X: v[0], Y: v[1+j]})
		}
	}
	return columns, nil
}

// panels is what is drawn, from above.
var panels = []struct {
	label string
	scale float64
	names []string
}{
	{"clients", 1, []string{"clients", "connections"}},
	{"heap, MB", 1e-6, []string{"heap"}},
	{"goroutines", 1, []string{"goroutines"}},
	{"file descriptors", 1, []string{"files"}},
}

// soak is the columns, one above the other.
func soak(rows [][]string) (picture, error) {
	over, err := columns(rows)
	if err != nil {
		return picture{}, err
	}
	pic := picture{width: 20 * vg.Centimeter, height: vg.Length(len(panels)) * 6 * vg.Centimeter}
	for _, panel := range panels {
		p := plot.New()
		p.Y.Label.Text, p.Y.Min = panel.label, 0
		for i, column := range panel.names {
			points := make(plotter.XYs, len(over[column]))
			for j, xy := range over[column] {
				points[j] = plotter.XY{X: xy.X, Y: xy.Y * panel.scale}
			}
			name := column
			if len(panel.names) == 1 {
				name = ""
			}
			if err := line(p, name, points, colors[len(colors)-1-i], 0); err != nil {
				return picture{}, err
			}
		}
		p.Y.Max *= 1.15
		pic.grid = append(pic.grid, []*plot.Plot{p})
	}
	pic.grid[len(pic.grid)-1][0].X.Label.Text = "s"
	return pic, nil
}
