// Plot draws the curves that examples/congestion writes with -csv: for each link the rates of
// the three controllers above, and their queues below. It is a module of its own, since it
// needs a plotting library.
//
//	go run ./examples/congestion -csv /tmp/curves.csv
//	cd examples/congestion/plot
//	go run . -in /tmp/curves.csv -svg /tmp/curves.svg -png /tmp/curves.png
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
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

func main() {
	in := flag.String("in", "curves.csv", "curves written by examples/congestion -csv")
	svg := flag.String("svg", "", "SVG file to write")
	png := flag.String("png", "", "PNG file to write")
	flag.Parse()
	if err := run(*in, *svg, *png); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in, svg, png string) error {
	if svg == "" && png == "" {
		return errors.New("nothing to do; give -svg, -png or both")
	}
	file, err := os.Open(in)
	if err != nil {
		return err
	}
	defer file.Close()
	scenes, err := read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	width, height := vg.Length(len(scenes))*12*vg.Centimeter, 16*vg.Centimeter
	if svg != "" {
		c := vgsvg.New(width, height)
		if err := save(svg, scenes, c, c); err != nil {
			return err
		}
	}
	if png != "" {
		c := vgimg.PngCanvas{Canvas: vgimg.New(width, height)}
		return save(png, scenes, c, c)
	}
	return nil
}

// scene is a link and the curves on it.
type scene struct {
	link     string
	capacity plotter.XYs
	curves   []curve
}

// curve is what a controller made of a link.
type curve struct {
	controller          string
	rate, second, queue plotter.XYs
}

// read takes rows of one link, and within it of one controller, after each other.
func read(r io.Reader) ([]scene, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 2 {
		return nil, errors.New("no curves")
	}
	var scenes []scene
	for i, row := range rows[1:] {
		if err := add(&scenes, row); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	return scenes, nil
}

func add(scenes *[]scene, row []string) error {
	if len(row) != 7 {
		return fmt.Errorf("%d columns, not 7", len(row))
	}
	var v [5]float64
	for i, text := range row[2:] {
		if text == "" {
			continue
		}
		var err error
		if v[i], err = strconv.ParseFloat(text, 64); err != nil {
			return err
		}
	}
	if n := len(*scenes); n == 0 || (*scenes)[n-1].link != row[0] {
		*scenes = append(*scenes, scene{link: row[0]})
	}
	s := &(*scenes)[len(*scenes)-1]
	if n := len(s.curves); n == 0 || s.curves[n-1].controller != row[1] {
		s.curves = append(s.curves, curve{controller: row[1]})
	}
	c := &s.curves[len(s.curves)-1]
	c.rate = append(c.rate, plotter.XY{X: v[0], Y: v[1] / 1e6})
	if row[4] != "" {
		c.second = append(c.second, plotter.XY{X: v[0], Y: v[2] / 1e6})
	}
	c.queue = append(c.queue, plotter.XY{X: v[0], Y: v[3]})
	if len(s.curves) == 1 {
		s.capacity = append(s.capacity, plotter.XY{X: v[0], Y: v[4] / 1e6})
	}
	return nil
}

var colors = []color.Color{
	color.RGBA{0x88, 0x88, 0x88, 0xff}, color.RGBA{0xd9, 0x7a, 0x00, 0xff}, color.RGBA{0x0b, 0x63, 0xc4, 0xff},
}

// save draws all scenes side by side.
func save(name string, scenes []scene, canvas vg.CanvasSizer, out io.WriterTo) (err error) {
	grid := [][]*plot.Plot{make([]*plot.Plot, len(scenes)), make([]*plot.Plot, len(scenes))}
	for i := range scenes {
		if grid[0][i], err = rates(&scenes[i]); err != nil {
			return err
		}
		if grid[1][i], err = queues(&scenes[i]); err != nil {
			return err
		}
	}
	tiles := draw.Tiles{Rows: 2, Cols: len(scenes), PadX: vg.Centimeter / 2, PadY: vg.Centimeter / 2}
	for i, row := range plot.Align(grid, tiles, draw.New(canvas)) {
		for j, c := range row {
			grid[i][j].Draw(c)
		}
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err = out.WriteTo(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

func rates(s *scene) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = s.link
	p.Y.Label.Text = "rate, Mbit/s"
	p.Y.Min = 0
	if err := line(p, "capacity", s.capacity, color.Black, vg.Points(3)); err != nil {
		return nil, err
	}
	for _, xy := range s.capacity {
		p.Y.Max = max(p.Y.Max, 1.5*xy.Y) // room for the legend
	}
	for i, c := range s.curves {
		if err := line(p, c.controller, c.rate, colors[i%len(colors)], 0); err != nil {
			return nil, err
		}
		if len(c.second) == 0 {
			continue
		}
		if err := line(p, c.controller+", second flow", c.second, colors[i%len(colors)], vg.Points(2)); err != nil {
			return nil, err
		}
	}
	p.Legend.Top = true
	return p, nil
}

func queues(s *scene) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text = "s"
	p.Y.Label.Text = "queue, ms"
	p.Y.Min = 0
	for i, c := range s.curves {
		if err := line(p, "", c.queue, colors[i%len(colors)], 0); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// line adds a curve, dashed if dash isn't 0, and to the legend if it has a name.
func line(p *plot.Plot, name string, points plotter.XYs, c color.Color, dash vg.Length) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	l.Color = c
	if dash > 0 {
		l.Dashes = []vg.Length{dash, dash}
	}
	p.Add(l)
	if name != "" {
		p.Legend.Add(name, l)
	}
	return nil
}
