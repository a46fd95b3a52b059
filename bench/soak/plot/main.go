// Plot draws the samples that bench/soak writes with -csv, one above the other: clients and connections, the heap, goroutines and
// file descriptors. It is a module of its own, since it needs a plotting library.
//
//	go run ./bench/soak -duration 5m -csv /tmp/soak.csv
//	cd bench/soak/plot
//	go run . -in /tmp/soak.csv -svg /tmp/soak.svg
package main

import (
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"image/color"
	"io"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

func main() {
	in := flag.String("in", "soak.csv", "samples written by bench/soak -csv")
	svg := flag.String("svg", "soak.svg", "SVG file to write")
	flag.Parse()
	if err := run(*in, *svg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in, svg string) error {
	file, err := os.Open(in)
	if err != nil {
		return err
	}
	defer file.Close()
	columns, err := read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	return save(svg, columns)
}

// names is the columns, after that of the time.
var names = []string{"clients", "connections", "heap", "goroutines", "files"}

// read is each column over time.
func read(r io.Reader) (map[string]plotter.XYs, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 2 {
		return nil, errors.New("no samples")
	}
	columns := map[string]plotter.XYs{}
	for i, row := range rows[1:] {
		if len(row) != 1+len(names) {
			return nil, fmt.Errorf("line %d: %d columns, not %d", i+2, len(row), 1+len(names))
		}
		var v [6]float64
		for j, text := range row {
			if v[j], err = strconv.ParseFloat(text, 64); err != nil {
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

var colors = []color.Color{color.RGBA{0x0b, 0x63, 0xc4, 0xff}, color.RGBA{0xd9, 0x7a, 0x00, 0xff}}

func save(name string, columns map[string]plotter.XYs) error {
	canvas := vgsvg.New(20*vg.Centimeter, vg.Length(len(panels))*6*vg.Centimeter)
	var grid [][]*plot.Plot
	for _, panel := range panels {
		p := plot.New()
		p.Y.Label.Text, p.Y.Min = panel.label, 0
		for i, column := range panel.names {
			points := make(plotter.XYs, len(columns[column]))
			for j, xy := range columns[column] {
				points[j] = plotter.XY{X: xy.X, Y: xy.Y * panel.scale}
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				return err
			}
			line.Color = colors[i]
			p.Add(line)
			if len(panel.names) > 1 {
				p.Legend.Add(column, line)
			}
		}
		p.Y.Max *= 1.15
		grid = append(grid, []*plot.Plot{p})
	}
	grid[len(grid)-1][0].X.Label.Text = "s"
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadY: vg.Centimeter / 2}
	for i, row := range plot.Align(grid, tiles, draw.New(canvas)) {
		grid[i][0].Draw(row[0])
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
