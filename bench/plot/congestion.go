package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

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

// congestionHead is the columns that examples/congestion writes.
const congestionHead = "link,controller,seconds,rate1,rate2,queue_ms,capacity"

// congestion is a link beside the other, each with its rates above and its queues below. It takes rows of one
// link, and within it of one controller, after each other.
func congestion(rows [][]string) (picture, error) {
	var scenes []scene
	for i, row := range rows {
		if err := add(&scenes, row); err != nil {
			return picture{}, fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	pic := picture{grid: [][]*plot.Plot{nil, nil}, width: vg.Length(len(scenes)) * 12 * vg.Centimeter, height: 16 * vg.Centimeter}
	for i := range scenes {
		for j, draw := range []func(*scene) (*plot.Plot, error){rates, queues} {
			p, err := draw(&scenes[i])
			if err != nil {
				return picture{}, err
			}
			pic.grid[j] = append(pic.grid[j], p)
		}
	}
	return pic, nil
}

func add(scenes *[]scene, row []string) error {
	var v [5]float64
	for i, text := range row[2:] {
		if text == "" {
			continue
		}
		var err error
		if v[i], err = number(text); err != nil {
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
