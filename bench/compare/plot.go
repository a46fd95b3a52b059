package main

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// results is all that was measured.
type results struct {
	latency    []latencyPoint
	throughput []throughputPoint
	many       []manyPoint

	replication *replication
}

// draw writes an SVG and a PNG a workload into dir.
func (r *results) draw(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range []struct {
		name  string
		plots func() ([]*plot.Plot, error)
	}{{"w1", r.latencyPlots}, {"frontier", r.frontierPlots}, {"w2", r.throughputPlots}, {"w3", r.manyPlots}, {"r1", r.growthPlots}} {
		plots, err := d.plots()
		if err == nil && len(plots) > 0 {
			err = save(filepath.Join(dir, d.name), plots)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return nil
}

// save draws plots side by side.
func save(path string, plots []*plot.Plot) error {
	width, height := vg.Length(len(plots))*14*vg.Centimeter, 11*vg.Centimeter
	svg := vgsvg.New(width, height)
	png := vgimg.PngCanvas{Canvas: vgimg.New(width, height)}
	for ext, c := range map[string]interface {
		vg.CanvasSizer
		io.WriterTo
	}{".svg": svg, ".png": png} {
		tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: vg.Centimeter / 2, PadRight: vg.Centimeter / 2, PadTop: vg.Centimeter / 4, PadBottom: vg.Centimeter / 4}
		for i, dc := range plot.Align([][]*plot.Plot{plots}, tiles, draw.New(c))[0] {
			plots[i].Draw(dc)
		}
		f, err := os.Create(path + ext)
		if err != nil {
			return err
		}
		if _, err := c.WriteTo(f); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// palette: ours in blues, with coding in pinks, in the order of peers.
func peerColor(name string) color.Color {
	i := 0
	for j, p := range peers() {
		if p.Name == name {
			i = j
		}
	}
	colors := []color.RGBA{
		{0x08, 0x30, 0x6b, 0xff}, {0x21, 0x71, 0xb5, 0xff}, {0x00, 0xa0, 0xc0, 0xff}, {0x6b, 0xae, 0xd6, 0xff}, {0x9e, 0xca, 0xe1, 0xff},
		{0xe7, 0x29, 0x8a, 0xff}, {0xc5, 0x1b, 0x7d, 0xff}, {0x8e, 0x01, 0x52, 0xff},
		{0xd9, 0x48, 0x01, 0xff}, {0xfd, 0x8d, 0x3c, 0xff}, {0x23, 0x8b, 0x45, 0xff}, {0x74, 0xc4, 0x76, 0xff}, {0x6a, 0x51, 0xa3, 0xff},
		{0xa5, 0x0f, 0x15, 0xff}, {0x52, 0x52, 0x52, 0xff}, {0xbd, 0xbd, 0xbd, 0xff},
	}
	return colors[i%len(colors)]
}

// latencyPlots are p99 over loss, a plot a rate.
func (r *results) latencyPlots() (plots []*plot.Plot, err error) {
	rates := []int{}
	curves := map[int]map[string]plotter.XYs{}
	for i := range r.latency {
		p := &r.latency[i]
		if p.Err != nil || p.Burst || p.Together || p.Jitter > 0 || p.Got == 0 {
			continue
		}
		if curves[p.Rate] == nil {
			rates = append(rates, p.Rate)
			curves[p.Rate] = map[string]plotter.XYs{}
		}
		curves[p.Rate][p.name()] = append(curves[p.Rate][p.name()], plotter.XY{X: p.Loss, Y: p.P99.Seconds() * 1000})
	}
	for _, rate := range rates {
		pl := plot.New()
		pl.Title.Text = fmt.Sprintf("p99 of an echo, %d/s, 50 ms one way", rate)
		pl.X.Label.Text, pl.Y.Label.Text = "loss, %", "ms"
		logarithmic(pl)
		for _, p := range peers() {
			if xys := curves[rate][p.Name]; len(xys) > 0 {
				if err := addLine(pl, p.Name, xys); err != nil {
					return nil, err
				}
			}
		}
		pl.X.Max *= 1.35 // room for the legend
		pl.X.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 1, Label: "1"}, {Value: 5, Label: "5"}, {Value: 10, Label: "10"}, {Value: 20, Label: "20"}}
		pl.Legend.Top = true
		plots = append(plots, pl)
	}
	return plots, nil
}

// frontierPlots are p99 over the bytes that it costs, a plot a network: lower is sooner, and further left is cheaper.
func (r *results) frontierPlots() (plots []*plot.Plot, err error) {
	at := map[string]*plot.Plot{}
	for i := range r.latency {
		p := &r.latency[i]
		if p.Err != nil || p.Got < p.Sent || p.Loss == 0 && !p.Burst || p.Jitter > 0 {
			continue
		}
		title := strings.TrimPrefix(p.title(), "W1: ")
		pl := at[title]
		if pl == nil {
			pl = plot.New()
			pl.Title.Text, pl.X.Label.Text, pl.Y.Label.Text = title, "wire bytes a payload byte", "p99, ms"
			pl.Title.TextStyle.Font.Size = vg.Points(9)
			pl.Legend.Top = true
			logarithmic(pl)
			pl.Add(plotter.NewGrid())
			at[title] = pl
			plots = append(plots, pl)
		}
		s, err := plotter.NewScatter(plotter.XYs{{X: p.WireBytes, Y: p.P99.Seconds() * 1000}})
		if err != nil {
			return nil, err
		}
		s.Color, s.Radius, s.Shape = peerColor(p.Peer), vg.Points(4), draw.CircleGlyph{}
		if p.Batch {
			s.Shape = draw.RingGlyph{}
		}
		pl.Add(s)
		pl.Legend.Add(p.name(), s)
	}
	for _, pl := range plots {
		pl.X.Max *= 1.35 // room for the legend
		pl.Y.Min, pl.Y.Max = pl.Y.Min/1.1, pl.Y.Max*1.1
	}
	return plots, nil
}

func addLine(pl *plot.Plot, name string, xys plotter.XYs) error {
	l, s, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	l.Color, s.Color = peerColor(name), peerColor(name)
	l.Width, s.Shape = vg.Points(1.5), draw.CircleGlyph{}
	pl.Add(l, s)
	pl.Legend.Add(name, l, s)
	return nil
}

// throughputPlots are CPU seconds a million messages, a plot a size.
func (r *results) throughputPlots() (plots []*plot.Plot, err error) {
	for i := 0; i < len(r.throughput); {
		size := r.throughput[i].Size
		var names []string
		var values []float64
		for ; i < len(r.throughput) && r.throughput[i].Size == size; i++ {
			if p := &r.throughput[i]; p.Err == nil {
				names, values = append(names, p.Peer), append(values, p.cpuMillion())
			}
		}
		if len(names) == 0 {
			continue
		}
		pl, err := dots(fmt.Sprintf("CPU s per million of %d B", size), names, values)
		if err != nil {
			return nil, err
		}
		plots = append(plots, pl)
	}
	return plots, nil
}

// manyPlots are the server's CPU, a plot a number of clients.
func (r *results) manyPlots() (plots []*plot.Plot, err error) {
	for i := 0; i < len(r.many); {
		clients := r.many[i].Clients
		var names []string
		var values []float64
		for ; i < len(r.many) && r.many[i].Clients == clients; i++ {
			if p := &r.many[i]; p.Err == nil {
				names, values = append(names, p.Peer), append(values, 100*p.share(p.CPU))
			}
		}
		if len(names) == 0 {
			continue
		}
		pl, err := dots(fmt.Sprintf("server's share of a core, %d clients, %%", clients), names, values)
		if err != nil {
			return nil, err
		}
		plots = append(plots, pl)
	}
	return plots, nil
}

// dots is a dot a peer, on a logarithmic axis.
func dots(title string, names []string, values []float64) (*plot.Plot, error) {
	pl := plot.New()
	pl.Title.Text = title
	logarithmic(pl)
	pl.Y.Min, pl.Y.Max = slices.Min(values)/1.5, slices.Max(values)*1.5
	pl.Add(plotter.NewGrid())
	for i, v := range values {
		s, err := plotter.NewScatter(plotter.XYs{{X: float64(i), Y: v}})
		if err != nil {
			return nil, err
		}
		s.Color, s.Radius, s.Shape = peerColor(names[i]), vg.Points(4), draw.CircleGlyph{}
		pl.Add(s)
	}
	pl.NominalX(names...)
	pl.X.Tick.Label.Rotation, pl.X.Tick.Label.XAlign, pl.X.Tick.Label.YAlign = 0.9, draw.XRight, draw.YCenter
	return pl, nil
}

func logarithmic(pl *plot.Plot) {
	pl.Y.Scale, pl.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(ticks)
}

// ticks are at one to nine of each decade, with the one, the two and the five labelled.
func ticks(low, high float64) (all []plot.Tick) {
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for i := 1.0; i < 10; i++ {
			t := plot.Tick{Value: i * decade}
			if i == 1 || i == 2 || i == 5 {
				t.Label = strconv.FormatFloat(t.Value, 'g', 4, 64)
			}
			if t.Value >= low && t.Value <= high {
				all = append(all, t)
			}
		}
	}
	return all
}
