package main

import (
	"image/color"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// growthPlots are a tick's time over what grows, on logarithmic axes, a plot for each of that.
func (r *results) growthPlots() (plots []*plot.Plot, err error) {
	if r.replication == nil {
		return nil, nil
	}
	for _, of := range []string{"changes", "actors", "connections"} {
		var sweeps []*sweep
		for _, s := range r.replication.Sweeps {
			if s.Of == of {
				sweeps = append(sweeps, s)
			}
		}
		if len(sweeps) == 0 {
			continue
		}
		pl, err := growthPlot(of, sweeps)
		if err != nil {
			return nil, err
		}
		plots = append(plots, pl)
	}
	// One scale for all, so that they can be compared.
	for _, pl := range plots {
		pl.Y.Min, pl.Y.Max = min(pl.Y.Min, plots[0].Y.Min), max(pl.Y.Max, plots[0].Y.Max)
		plots[0].Y.Min, plots[0].Y.Max = pl.Y.Min, pl.Y.Max
	}
	for _, pl := range plots {
		pl.Y.Min, pl.Y.Max = plots[0].Y.Min, plots[0].Y.Max
	}
	return plots, nil
}

var growthColors = []color.Color{color.RGBA{0x08, 0x30, 0x6b, 0xff}, color.RGBA{0xd9, 0x48, 0x01, 0xff}, color.RGBA{0x23, 0x8b, 0x45, 0xff}}

func growthPlot(of string, sweeps []*sweep) (*plot.Plot, error) {
	pl := plot.New()
	pl.Title.Text = "R1: a server's tick, with more " + of
	pl.X.Label.Text, pl.Y.Label.Text = of, "ms, median"
	if of == "changes" {
		pl.X.Label.Text = "changes a tick"
	}
	logarithmic(pl)
	pl.X.Scale = plot.LogScale{}
	pl.Add(plotter.NewGrid())
	var xs []int
	top, floor := plotter.XYs{}, time.Duration(0)
	for i, s := range sweeps {
		xys := plotter.XYs{}
		for j := range s.Points {
			p := &s.Points[j]
			if p.X == 0 {
				floor = p.P50
			}
			if p.X == 0 || p.P50 <= 0 {
				continue
			}
			xys = append(xys, plotter.XY{X: float64(p.X), Y: p.P50.Seconds() * 1000})
			xs = append(xs, p.X)
		}
		if len(xys) == 0 {
			continue
		}
		if err := addColored(pl, s.changing(), xys, growthColors[i%len(growthColors)]); err != nil {
			return nil, err
		}
		if len(top) == 0 || xys[0].Y > top[0].Y {
			top = xys
		}
	}
	if len(top) == 0 {
		return pl, nil
	}
	if err := addLinear(pl, top); err != nil {
		return nil, err
	}
	if floor > 0 {
		y := floor.Seconds() * 1000
		if err := addDashed(pl, "nothing changing", plotter.XYs{{X: top[0].X, Y: y}, {X: top[len(top)-1].X, Y: y}}, growthColors[0], 1); err != nil {
			return nil, err
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	marks := plot.ConstantTicks{}
	for _, x := range xs {
		marks = append(marks, plot.Tick{Value: float64(x), Label: thousands(x)})
	}
	pl.X.Tick.Marker = marks
	pl.X.Min, pl.X.Max = float64(xs[0])/1.3, float64(xs[len(xs)-1])*1.3 // the labels at the ends want room
	pl.Y.Min, pl.Y.Max = pl.Y.Min/1.5, pl.Y.Max*4                       // and so does the legend
	pl.Legend.Top, pl.Legend.Left, pl.Legend.XOffs, pl.Legend.YOffs, pl.Legend.Padding = true, true, vg.Millimeter*3, -vg.Millimeter, vg.Millimeter/2
	return pl, nil
}

// addColored draws one line with its points.
func addColored(pl *plot.Plot, name string, xys plotter.XYs, c color.Color) error {
	l, s, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	l.Color, s.Color = c, c
	l.Width, s.Shape = vg.Points(1.5), draw.CircleGlyph{}
	pl.Add(l, s)
	pl.Legend.Add(name, l, s)
	return nil
}

// addLinear draws how it would be if time grew as x does, from a line's first point on.
func addLinear(pl *plot.Plot, xys plotter.XYs) error {
	first, end := xys[0], xys[len(xys)-1].X
	return addDashed(pl, "linear growth", plotter.XYs{first, {X: end, Y: first.Y * end / first.X}}, color.Gray{0x80}, 4)
}

// addDashed draws a line of dashes of that many points.
func addDashed(pl *plot.Plot, name string, xys plotter.XYs, c color.Color, dash float64) error {
	l, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	l.Color, l.Width, l.Dashes = c, vg.Points(1), []vg.Length{vg.Points(dash), vg.Points(3)}
	pl.Add(l)
	pl.Legend.Add(name, l)
	return nil
}

// thousands writes a number with a comma before each three digits.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
