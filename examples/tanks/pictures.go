package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
)

// pictureTime is how far apart pictures are.
const pictureTime = 500 * time.Millisecond

const pictureSize = 480 // pixels each way

// pictures is what a player sees, as files.
type pictures struct {
	dir  string // "" takes none
	next time.Duration
	n    int
}

// take draws what a client shows, if it is time.
func (p *pictures) take(now time.Duration, c *game.Client) error {
	if p.dir == "" || now < p.next {
		return nil
	}
	if p.n == 0 {
		if err := os.MkdirAll(p.dir, 0o755); err != nil {
			return err
		}
	}
	p.next = now + pictureTime
	f, err := os.Create(filepath.Join(p.dir, fmt.Sprintf("tanks-%04d.png", p.n)))
	if err != nil {
		return err
	}
	p.n++
	if err := png.Encode(f, draw(c)); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

var (
	ground = color.RGBA{0x26, 0x2b, 0x22, 0xff}
	lit    = color.RGBA{0x3a, 0x42, 0x33, 0xff} // within sight
	colors = map[game.Kind]color.RGBA{
		game.Own: {0x7f, 0xd6, 0x5a, 0xff}, game.Other: {0x5a, 0xb0, 0xe6, 0xff}, game.Enemy: {0xe6, 0x5a, 0x4c, 0xff},
		game.Box: {0xb0, 0x85, 0x4a, 0xff}, game.Shot: {0xff, 0xf0, 0xa0, 0xff},
	}
	sizes = map[game.Kind]float64{game.Own: 6, game.Other: 6, game.Enemy: 3, game.Box: 2, game.Shot: 1}
)

// draw is the field from above: what a client doesn't have isn't there.
func draw(c *game.Client) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, pictureSize, pictureSize))
	at, there := c.Own()
	for y := range pictureSize {
		for x := range pictureSize {
			here := ground
			if there && at.Distance(game.Vec{X: float64(x), Y: float64(y)}.Times(game.Size/pictureSize)) < game.Sight {
				here = lit
			}
			img.SetRGBA(x, y, here)
		}
	}
	for t := range c.Scene {
		size := sizes[t.Kind] * pictureSize / game.Size * 1.2
		center := t.Pos.Times(pictureSize / game.Size)
		dot(img, center, size, colors[t.Kind])
		if t.Kind <= game.Other { // the barrel
			d := game.Vec{X: math.Cos(t.Heading * math.Pi / 180), Y: math.Sin(t.Heading * math.Pi / 180)}
			for along := size; along < 2*size; along++ {
				dot(img, center.Plus(d.Times(along)), 1.5, colors[t.Kind])
			}
		}
	}
	return img
}

func dot(img *image.RGBA, at game.Vec, size float64, c color.RGBA) {
	for y := int(at.Y - size); y <= int(at.Y+size); y++ {
		for x := int(at.X - size); x <= int(at.X+size); x++ {
			if at.Distance(game.Vec{X: float64(x), Y: float64(y)}) <= size {
				img.SetRGBA(x, y, c)
			}
		}
	}
}
