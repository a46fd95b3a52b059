package main

import (
	"fmt"
	"image/color"
	"math"

	"github.com/hajimehoshi/ebiten/v2"
	"github.com/hajimehoshi/ebiten/v2/ebitenutil"
	"github.com/hajimehoshi/ebiten/v2/vector"

	"github.com/bunchnet/bunchnet/examples/ebitengine/arena"
)

var (
	space  = color.RGBA{12, 14, 26, 255}
	panel  = color.RGBA{24, 26, 40, 255}
	border = color.RGBA{60, 66, 96, 255}
	shot   = color.RGBA{255, 255, 200, 255}
	flame  = color.RGBA{255, 120, 20, 255}
	good   = color.RGBA{70, 180, 90, 255}
	bad    = color.RGBA{230, 60, 60, 255}
	rtt    = color.RGBA{220, 190, 60, 255}
	data   = color.RGBA{90, 140, 230, 255}

	white = func() *ebiten.Image {
		i := ebiten.NewImage(3, 3)
		i.Fill(color.White)
		return i
	}()
)

func drawField(screen *ebiten.Image, c *arena.Client) {
	screen.Fill(space)
	vector.StrokeRect(screen, 1, 1, arena.Width-2, arena.Height-2, 2, border, false)
	n := 0
	for s := range c.Ships {
		drawShip(screen, &s)
		n++
	}
	for at := range c.Bullets {
		vector.FillRect(screen, float32(at.X)-2, float32(at.Y)-2, 4, 4, shot, false)
	}
	if n == 0 {
		ebitenutil.DebugPrintAt(screen, "joining ...", arena.ScreenWidth/2-32, int(arena.Height)/2)
	}
}

func drawShip(screen *ebiten.Image, s *arena.Sprite) {
	t := s.Triangle()
	if s.Thrust {
		back := t[1].Plus(t[2]).Times(0.5)
		forth := arena.Direction(s.Angle)
		side := t[1].Plus(back.Times(-1)).Times(0.5)
		triangle(screen, [3]arena.Vec{back.Plus(side), back.Plus(side.Times(-1)), back.Plus(forth.Times(-arena.Radius))}, flame)
	}
	triangle(screen, t, arena.Colors[s.Color])
	x, y := float32(s.Pos.X), float32(s.Pos.Y)
	if s.Own {
		vector.StrokeCircle(screen, x, y, arena.Radius+6, 1, color.White, true)
	}
	hull := float32(s.Hull) / 100
	vector.FillRect(screen, x-arena.Radius, y+arena.Radius+8, 2*arena.Radius, 3, bad, false)
	vector.FillRect(screen, x-arena.Radius, y+arena.Radius+8, 2*arena.Radius*hull, 3, good, false)
	label := fmt.Sprintf("%s %d", s.Name, s.Score)
	ebitenutil.DebugPrintAt(screen, label, int(s.Pos.X)-3*len(label), int(s.Pos.Y)-arena.Radius-24)
}

func triangle(screen *ebiten.Image, corners [3]arena.Vec, c color.RGBA) {
	var vs [3]ebiten.Vertex
	for i, p := range corners {
		vs[i] = ebiten.Vertex{DstX: float32(p.X), DstY: float32(p.Y), SrcX: 1, SrcY: 1,
			ColorR: float32(c.R) / 255, ColorG: float32(c.G) / 255, ColorB: float32(c.B) / 255, ColorA: 1}
	}
	screen.DrawTriangles(vs[:], []uint16{0, 1, 2}, white, nil)
}

const (
	chartWidth  = 160 // a pixel for each sample, and a half
	chartHeight = arena.GraphHeight - 44
)

// drawGraph draws the four charts below the field; the title of each says what its full height is.
func drawGraph(screen *ebiten.Image, c *arena.Client) {
	top := float32(arena.Height)
	vector.FillRect(screen, 0, top, arena.Width, arena.GraphHeight, panel, false)
	last := c.Graph.Last()
	for i, chart := range []struct {
		title string
		full  float64
		color color.RGBA
		of    func(s arena.Sample) float64
	}{
		{fmt.Sprintf("RTT %.0f of 400 ms", ms(last)), 400, rtt, ms},
		{fmt.Sprintf("loss %.0f of 50 %%", 100*last.Loss), 0.5, bad, func(s arena.Sample) float64 { return s.Loss }},
		{fmt.Sprintf("corrections %d; 4 high", c.Graph.Corrections()), 4, flame, func(s arena.Sample) float64 { return float64(s.Corrections) }},
		{fmt.Sprintf("%.1f+%.1f of 20 kB/s", last.In/1000, last.Out/1000), 20e3, data, func(s arena.Sample) float64 { return s.In + s.Out }},
	} {
		left := 12 + i*(chartWidth+24)
		ebitenutil.DebugPrintAt(screen, chart.title, left, int(top)+6)
		vector.StrokeRect(screen, float32(left), top+24, chartWidth, chartHeight, 1, border, false)
		for x, s := range c.Graph.All {
			h := float32(chartHeight * math.Min(1, chart.of(s)/chart.full))
			vector.FillRect(screen, float32(left+x), top+24+chartHeight-h, 1, h, chart.color, false)
		}
	}
	ebitenutil.DebugPrintAt(screen, fmt.Sprintf("lag  [ ]  %d ms\nloss - =  %.0f %%\n     0    none\n\narrows steer\nspace fires", c.Lag.Milliseconds(), c.Loss), 12+4*(chartWidth+24), int(top)+6)
}

func ms(s arena.Sample) float64 { return float64(s.RTT.Microseconds()) / 1000 }
