package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The columns that bench/compare writes.
const (
	// latencyHead is p99 over the loss.
	latencyHead = "rate,peer,loss,p99_ms"
	// frontierHead is p99 over the bytes that it costs.
	frontierHead = "network,peer,wire_bytes,p99_ms"
	// dotsHead is a value for each peer.
	dotsHead = "panel,peer,value"
	// growthHead is a tick's time over what grows.
	growthHead = "grows,changes,x,median_ms"
)

// peerColors: ours in blues, with coding in pinks, the others as far apart as they can be.
var peerColors = map[string]color.RGBA{
	"bunchnet": {0x08, 0x30, 0x6b, 0xff}, "bunchnet-nc": {0x21, 0x71, 0xb5, 0xff}, "bunchnet-ad": {0x00, 0xa0, 0xc0, 0xff},
	"bunchnet-1": {0x6b, 0xae, 0xd6, 0xff}, "bunchnet-0": {0x9e, 0xca, 0xe1, 0xff},
	"bunchnet-c1": {0xe7, 0x29, 0x8a, 0xff}, "bunchnet-c2": {0xc5, 0x1b, 0x7d, 0xff}, "bunchnet-ca": {0x8e, 0x01, 0x52, 0xff},
	"kcp": {0xd9, 0x48, 0x01, 0xff}, "kcp-fec": {0xfd, 0x8d, 0x3c, 0xff}, "quic": {0x23, 0x8b, 0x45, 0xff}, "quic-dgram": {0x74, 0xc4, 0x76, 0xff},
	"sctp": {0x6a, 0x51, 0xa3, 0xff}, "enet": {0xa5, 0x0f, 0x15, 0xff}, "tcp": {0x52, 0x52, 0x52, 0xff}, "udp": {0xbd, 0xbd, 0xbd, 0xff},
}

// batched is behind the name of a peer whose messages are sent at a game's ticks.
const batched = " @120"

// peerColor is black for a peer that isn't known.
func peerColor(name string) color.Color {
	if c, ok := peerColors[strings.TrimSuffix(name, batched)]; ok {
		return c
	}
	return color.Black
}

// sideBySide is plots in the order in which their names were first asked for.
type sideBySide struct {
	names []string
	plots []*plot.Plot
}

// at returns the plot of a name, which is new when it is the first time.
func (s *sideBySide) at(name string) (pl *plot.Plot, first bool) {
	if i := slices.Index(s.names, name); i >= 0 {
		return s.plots[i], false
	}
	pl = plot.New()
	pl.Title.Text = name
	s.names, s.plots = append(s.names, name), append(s.plots, pl)
	return pl, true
}

func (s *sideBySide) picture() picture {
	return picture{grid: [][]*plot.Plot{s.plots}, width: vg.Length(len(s.plots)) * 14 * vg.Centimeter, height: 11 * vg.Centimeter}
}

// positive parses a value for a logarithmic axis.
func positive(line int, text string) (float64, error) {
	v, err := number(text)
	if err == nil && v < 1/most {
		err = fmt.Errorf("%s isn't %g or more", text, 1/most)
	}
	if err != nil {
		return 0, fmt.Errorf("line %d: %w", line, err)
	}
	return v, nil
}

// latency is a plot for each rate.
func latency(rows [][]string) (picture, error) {
	var s sideBySide
	type curve struct {
		plot *plot.Plot
		peer string
	}
	var order []curve
	points := map[curve]plotter.XYs{}
	for i, row := range rows {
		loss, err := number(row[2])
		if err != nil {
			return picture{}, fmt.Errorf("line %d: %w", i+2, err)
		}
		ms, err := positive(i+2, row[3])
		if err != nil {
			return picture{}, err
		}
		pl, first := s.at(fmt.Sprintf("p99 of an echo, %s/s, 50 ms one way", row[0]))
		if first {
			pl.X.Label.Text, pl.Y.Label.Text, pl.Legend.Top = "loss, %", "ms", true
			logarithmic(&pl.Y)
		}
		c := curve{pl, row[1]}
		if points[c] == nil {
			order = append(order, c)
		}
		points[c] = append(points[c], plotter.XY{X: loss, Y: ms})
	}
	for _, c := range order {
		if err := dotted(c.plot, c.peer, points[c], peerColor(c.peer)); err != nil {
			return picture{}, err
		}
	}
	for _, pl := range s.plots {
		pl.X.Max *= 1.35 // room for the legend
		pl.X.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 1, Label: "1"}, {Value: 5, Label: "5"}, {Value: 10, Label: "10"}, {Value: 20, Label: "20"}}
	}
	return s.picture(), nil
}

// frontier is a plot for each network: lower is sooner, and further left is cheaper.
func frontier(rows [][]string) (picture, error) {
	var s sideBySide
	for i, row := range rows {
		bytes, err := positive(i+2, row[2])
		if err != nil {
			return picture{}, err
		}
		ms, err := positive(i+2, row[3])
		if err != nil {
			return picture{}, err
		}
		pl, first := s.at(row[0])
		if first {
			pl.X.Label.Text, pl.Y.Label.Text, pl.Legend.Top = "wire bytes a payload byte", "p99, ms", true
			pl.Title.TextStyle.Font.Size = vg.Points(9)
			logarithmic(&pl.Y)
			pl.Add(plotter.NewGrid())
		}
		d, err := dot(pl, row[1], bytes, ms)
		if err != nil {
			return picture{}, err
		}
		pl.Legend.Add(row[1], d)
	}
	for _, pl := range s.plots {
		pl.X.Max *= 1.35 // room for the legend
		pl.Y.Min, pl.Y.Max = pl.Y.Min/1.1, pl.Y.Max*1.1
	}
	return s.picture(), nil
}

// dots is a plot for each panel, with a dot for each peer, on a logarithmic axis.
func dots(rows [][]string) (picture, error) {
	var s sideBySide
	names := map[*plot.Plot][]string{}
	for i, row := range rows {
		v, err := positive(i+2, row[2])
		if err != nil {
			return picture{}, err
		}
		pl, first := s.at(row[0])
		if first {
			logarithmic(&pl.Y)
			pl.Add(plotter.NewGrid())
		}
		if _, err := dot(pl, row[1], float64(len(names[pl])), v); err != nil {
			return picture{}, err
		}
		names[pl] = append(names[pl], row[1])
	}
	for _, pl := range s.plots {
		pl.Y.Min, pl.Y.Max = pl.Y.Min/1.5, pl.Y.Max*1.5
		pl.NominalX(names[pl]...)
		pl.X.Tick.Label.Rotation, pl.X.Tick.Label.XAlign, pl.X.Tick.Label.YAlign = 0.9, draw.XRight, draw.YCenter
	}
	return s.picture(), nil
}

// dot adds a peer's dot, which is a ring where its messages are batched.
func dot(pl *plot.Plot, peer string, x, y float64) (*plotter.Scatter, error) {
	s, err := plotter.NewScatter(plotter.XYs{{X: x, Y: y}})
	if err != nil {
		return nil, err
	}
	s.Color, s.Radius, s.Shape = peerColor(peer), vg.Points(4), draw.CircleGlyph{}
	if strings.HasSuffix(peer, batched) {
		s.Shape = draw.RingGlyph{}
	}
	pl.Add(s)
	return s, nil
}

// growing is a plot of ticks with more and more of one thing.
type growing struct {
	names  []string
	curves map[string]plotter.XYs
	floor  float64 // ms with none of it
}

var growthColors = []color.Color{color.RGBA{0x08, 0x30, 0x6b, 0xff}, color.RGBA{0xd9, 0x48, 0x01, 0xff}, color.RGBA{0x23, 0x8b, 0x45, 0xff}}

// growth is a plot for each of what grows, on logarithmic axes, with one scale for all, so that they can be compared.
func growth(rows [][]string) (picture, error) {
	var s sideBySide
	of := map[*plot.Plot]*growing{}
	for i, row := range rows {
		x, err := strconv.Atoi(row[2])
		if err != nil || x < 0 || float64(x) > most {
			return picture{}, fmt.Errorf("line %d: %q isn't a number of things", i+2, row[2])
		}
		ms, err := positive(i+2, row[3])
		if err != nil {
			return picture{}, err
		}
		pl, first := s.at("R1: a server's tick, with more " + row[0])
		if first {
			pl.X.Label.Text, pl.Y.Label.Text = row[0], "ms, median"
			if row[0] == "changes" {
				pl.X.Label.Text = "changes a tick"
			}
			of[pl] = &growing{curves: map[string]plotter.XYs{}}
		}
		g := of[pl]
		if x == 0 {
			g.floor = ms
			continue
		}
		if g.curves[row[1]] == nil {
			g.names = append(g.names, row[1])
		}
		g.curves[row[1]] = append(g.curves[row[1]], plotter.XY{X: float64(x), Y: ms})
	}
	low, high := math.Inf(1), 0.0
	for _, pl := range s.plots {
		if err := of[pl].draw(pl); err != nil {
			return picture{}, err
		}
		low, high = min(low, pl.Y.Min), max(high, pl.Y.Max)
	}
	for _, pl := range s.plots {
		pl.Y.Min, pl.Y.Max = low, high
	}
	return s.picture(), nil
}

// draw draws the curves, how the slowest would be if time grew as x does, and the floor.
func (g *growing) draw(pl *plot.Plot) error {
	logarithmic(&pl.Y)
	pl.X.Scale = plot.LogScale{}
	pl.Add(plotter.NewGrid())
	var top plotter.XYs
	var xs []float64
	for i, name := range g.names {
		xys := g.curves[name]
		if err := dotted(pl, name, xys, growthColors[i%len(growthColors)]); err != nil {
			return err
		}
		if len(top) == 0 || xys[0].Y > top[0].Y {
			top = xys
		}
		for _, xy := range xys {
			xs = append(xs, xy.X)
		}
	}
	if len(top) == 0 {
		return fmt.Errorf("%s: nothing above 0", pl.Title.Text)
	}
	first, end := top[0], top[len(top)-1].X
	if err := line(pl, "linear growth", plotter.XYs{first, {X: end, Y: first.Y * end / first.X}}, color.Gray{0x80}, vg.Points(4)); err != nil {
		return err
	}
	if g.floor > 0 {
		if err := line(pl, "nothing changing", plotter.XYs{{X: first.X, Y: g.floor}, {X: end, Y: g.floor}}, growthColors[0], vg.Points(2)); err != nil {
			return err
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	marks := plot.ConstantTicks{}
	for _, x := range xs {
		marks = append(marks, plot.Tick{Value: x, Label: thousands(int(x))})
	}
	pl.X.Tick.Marker = marks
	pl.X.Min, pl.X.Max = xs[0]/1.3, xs[len(xs)-1]*1.3 // the labels at the ends want room
	pl.Y.Min, pl.Y.Max = pl.Y.Min/1.5, pl.Y.Max*4     // and so does the legend
	pl.Legend.Top, pl.Legend.Left, pl.Legend.Padding = true, true, vg.Millimeter/2
	pl.Legend.XOffs, pl.Legend.YOffs = vg.Millimeter*3, -vg.Millimeter
	return nil
}

// dotted adds a line with its points.
func dotted(pl *plot.Plot, name string, xys plotter.XYs, c color.Color) error {
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

// logarithmic has ticks at one to nine of each decade, with the one, the two and the five labelled.
func logarithmic(a *plot.Axis) {
	a.Scale, a.Tick.Marker = plot.LogScale{}, plot.TickerFunc(func(low, high float64) (all []plot.Tick) {
		for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
			for i := 1.0; i < 10; i++ {
				t := plot.Tick{Value: i * decade}
				if i == 1 || i == 2 || i == 5 {
					if t.Label = strconv.FormatFloat(t.Value, 'g', 4, 64); t.Value >= 1 && t.Value < 1e7 {
						t.Label = thousands(int(t.Value))
					}
				}
				if t.Value >= low && t.Value <= high {
					all = append(all, t)
				}
			}
		}
		return all
	})
}

// thousands writes a number with a comma before each three digits.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
