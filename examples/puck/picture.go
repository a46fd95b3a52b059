package main

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"time"
)

const (
	pictureWidth, panelHeight = 1000, 240
	mostJump, mostOff         = 1.0, 2.0 // m, at the top of the panels
)

var (
	paper = color.RGBA{0xff, 0xff, 0xff, 0xff}
	lines = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
	frame = color.RGBA{0x60, 0x60, 0x60, 0xff}
	inks  = [2]color.RGBA{{0xd0, 0x40, 0x30, 0xff}, {0x20, 0x80, 0x40, 0xff}} // alone, together
)

// curve is the worst of all players over time, a value a pixel.
type curve struct{ jump, off [pictureWidth]float64 }

// add takes a frame at a share of the match.
func (c *curve) add(share float64, s *sample, log map[uint32]seen) {
	x := min(int(share*pictureWidth), pictureWidth-1)
	c.jump[x] = max(c.jump[x], s.jump)
	if want, ok := log[s.ticks]; ok {
		c.off[x] = max(c.off[x], s.seen.ball.distance(want.ball))
	}
}

// drawCurves writes a picture of two panels: above how far corrections put the own player, up to a metre, with lines 20 cm apart; below how far
// the ball was off, up to two metres, with lines 50 cm apart. Upright lines are 10 s apart. Red is predicted alone, green together.
func drawCurves(file string, alone, together *curve, length time.Duration) error {
	img := image.NewRGBA(image.Rect(0, 0, pictureWidth, 2*panelHeight+10))
	draw.Draw(img, img.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	panel(img, 0, mostJump, 0.2, length, alone.jump[:], together.jump[:])
	panel(img, panelHeight+10, mostOff, 0.5, length, alone.off[:], together.off[:])
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := png.Encode(f, img); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

func panel(img *image.RGBA, top int, most, line float64, length time.Duration, values ...[]float64) {
	y := func(v float64) int { return top + panelHeight - 1 - int(min(v/most, 1)*(panelHeight-1)) }
	for i := 0; float64(i)*line <= most+line/2; i++ {
		for x := range pictureWidth {
			img.Set(x, y(float64(i)*line), lines)
		}
	}
	for at := time.Duration(0); at < length; at += 10 * time.Second {
		for j := range panelHeight {
			img.Set(int(at*pictureWidth/length), top+j, lines)
		}
	}
	for x := range pictureWidth {
		img.Set(x, y(0), frame)
	}
	for i, curve := range values {
		for x, v := range curve {
			for from := y(0); v > 0 && from >= y(v); from-- {
				img.Set(x, from, inks[i])
			}
		}
	}
}
