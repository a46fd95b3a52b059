package main

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// feelHead is the columns that bench/feel, bench/mesh and bench/web write: what is drawn over what, the curve, and a point of it.
const feelHead = "y,x,curve,at,value"

// feel is a panel for each y, one above the other, in the order in which they come.
func feel(rows [][]string) (picture, error) {
	type key struct{ y, curve string }
	panels, points, n := map[string]*plot.Plot{}, map[key]plotter.XYs{}, map[string]int{}
	var order []key
	pic := picture{width: 18 * vg.Centimeter}
	for i, row := range rows {
		at, err := number(row[3])
		if err != nil {
			return picture{}, fmt.Errorf("line %d: %w", i+2, err)
		}
		value, err := number(row[4])
		if err != nil {
			return picture{}, fmt.Errorf("line %d: %w", i+2, err)
		}
		if panels[row[0]] == nil {
			p := plot.New()
			p.Y.Label.Text, p.X.Label.Text, p.Y.Min, p.Legend.Top = row[0], row[1], 0, true
			panels[row[0]] = p
			pic.grid = append(pic.grid, []*plot.Plot{p})
			pic.height += 7 * vg.Centimeter
		}
		k := key{row[0], row[2]}
		if points[k] == nil {
			order = append(order, k)
			n[k.y]++
		}
		points[k] = append(points[k], plotter.XY{X: at, Y: value})
	}
	drawn := map[string]int{}
	for _, k := range order {
		name := k.curve
		if n[k.y] == 1 {
			name = ""
		}
		if err := line(panels[k.y], name, points[k], colors[(len(colors)-1+drawn[k.y])%len(colors)], 0); err != nil {
			return picture{}, err
		}
		drawn[k.y]++
	}
	for y, p := range panels {
		p.Y.Max *= 1.1 + float64(n[y])/9 // a line of the legend takes about a tenth of a panel
	}
	return pic, nil
}
