// Plot draws the tables that programs of this module write with -csv; it tells them apart by their columns. It is a module
// of its own, since it needs a plotting library.
//
//	go run ./examples/congestion -csv /tmp/curves.csv
//	go run ./bench/soak -duration 5m -csv /tmp/soak.csv
//	go run ./bench/feel -quick -plot /tmp
//	go run ./bench/mesh -plot /tmp/mesh.csv
//	(cd bench/web && go run . -csv /tmp/web.csv)
//	(cd bench/compare && go run . -w w1 -quick -csv /tmp)
//	cd bench/plot
//	go run . -in /tmp/curves.csv -svg /tmp/curves.svg -png /tmp/curves.png
//	go run . -in /tmp/soak.csv -svg /tmp/soak.svg
//	go run . -in /tmp/feel.csv -png /tmp/feel.png
//	go run . -in /tmp/web.csv -png /tmp/web.png
//	go run . -in /tmp/w1.csv -png /tmp/w1.png
//
// The curves of examples/congestion are for each link the rates of the three controllers above, and their queues below. The
// samples of bench/soak are clients and connections, the heap, goroutines and file descriptors, one above the other. bench/compare
// writes a table for each of its workloads; frontier.csv is p99 over the bytes sent, where lower is sooner and further left is cheaper.
package main

import (
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

func main() {
	in := flag.String("in", "", "table written by examples/congestion, bench/soak, bench/feel, bench/mesh, bench/web or bench/compare")
	svg := flag.String("svg", "", "SVG file to write")
	png := flag.String("png", "", "PNG file to write")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*in, *svg, *png); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in, svg, png string) error {
	if in == "" || svg == "" && png == "" {
		return errors.New("nothing to do; give -in, and -svg, -png or both")
	}
	file, err := os.Open(in)
	if err != nil {
		return err
	}
	defer file.Close()
	pic, err := read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if svg != "" {
		c := vgsvg.New(pic.width, pic.height)
		if err := pic.save(svg, c, c); err != nil {
			return err
		}
	}
	if png != "" {
		c := vgimg.PngCanvas{Canvas: vgimg.New(pic.width, pic.height)}
		return pic.save(png, c, c)
	}
	return nil
}

// tables is what can be drawn, by the first line.
var tables = map[string]func(rows [][]string) (picture, error){
	congestionHead: congestion, soakHead: soak, feelHead: feel,
	latencyHead: latency, frontierHead: frontier, dotsHead: dots, growthHead: growth,
}

// read draws a table; csv sees to it that all rows have as many columns as the first.
func read(r io.Reader) (picture, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return picture{}, err
	}
	if len(rows) < 2 {
		return picture{}, errors.New("nothing in the table")
	}
	draw, ok := tables[strings.Join(rows[0], ",")]
	if !ok {
		return picture{}, fmt.Errorf("no table of examples/congestion, bench/soak, bench/feel, bench/mesh, bench/web or bench/compare: its columns are %q", rows[0])
	}
	pic, err := draw(rows[1:])
	if err != nil {
		return picture{}, err
	}
	if n := len(pic.grid) * len(pic.grid[0]); n > maxPlots {
		return picture{}, fmt.Errorf("%d plots; %d are the most that a picture has", n, maxPlots)
	}
	return pic, nil
}

// Bounds of a table: what is beyond them takes an axis for ever, or a picture more memory than there is.
const (
	most     = 1e13 // of a number
	maxPlots = 64
)

// number parses a value of a table.
func number(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && !(math.Abs(v) <= most) {
		err = fmt.Errorf("%s isn't between %g and %g", text, -most, most)
	}
	return v, err
}

// picture is plots in rows.
type picture struct {
	grid          [][]*plot.Plot
	width, height vg.Length
}

func (pic *picture) save(name string, canvas vg.CanvasSizer, out io.WriterTo) error {
	tiles := draw.Tiles{
		Rows: len(pic.grid), Cols: len(pic.grid[0]), PadX: vg.Centimeter / 2, PadY: vg.Centimeter / 2,
		PadRight: vg.Centimeter / 2, PadTop: vg.Centimeter / 4, PadBottom: vg.Centimeter / 4,
	}
	for i, row := range plot.Align(pic.grid, tiles, draw.New(canvas)) {
		for j, c := range row {
			pic.grid[i][j].Draw(c)
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

var colors = []color.Color{
	color.RGBA{0x88, 0x88, 0x88, 0xff}, color.RGBA{0xd9, 0x7a, 0x00, 0xff}, color.RGBA{0x0b, 0x63, 0xc4, 0xff},
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
