package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"math"
	"os"
	"time"
)

const (
	filmFrame = 50 * time.Millisecond
	half      = 300 // pixels of a game, each way
	gap       = 8
	head      = 44 // pixels above the games, for words
	foot      = 30 // below them, for the keys
	trail     = 40 // frames of a car's way that are drawn
)

// Indices of the palette.
const (
	unchanged = iota // transparent: as in the frame before
	backdrop
	grass
	words
	faint
	gold
	late
	prompt
	track
)

var palette = color.Palette{
	color.RGBA{}, color.RGBA{0x16, 0x1a, 0x1d, 0xff}, color.RGBA{0x24, 0x2c, 0x2a, 0xff}, color.RGBA{0xe8, 0xea, 0xe6, 0xff}, color.RGBA{0x7c, 0x86, 0x82, 0xff},
	color.RGBA{0xf2, 0xc1, 0x4e, 0xff}, color.RGBA{0xe8, 0x6a, 0x5c, 0xff}, color.RGBA{0x6c, 0xc6, 0x7d, 0xff}, color.RGBA{0x5a, 0x6a, 0x64, 0xff},
}

// film is both games as a GIF. A frame has only the rectangle that has changed.
type film struct {
	gif    gif.GIF
	last   *image.Paletted
	trails [2][]place
}

// take adds a frame.
func (f *film) take(both [2]*match, o options) {
	img := image.NewPaletted(image.Rect(0, 0, 2*half+gap, head+half+foot), palette)
	for i := range img.Pix {
		img.Pix[i] = backdrop
	}
	write(img, half/2, 4, 2, late, "WITHOUT PREDICTION")
	write(img, half+gap+half/2, 4, 2, prompt, "WITH PREDICTION")
	for i, m := range both {
		left := i * (half + gap)
		c := m.client
		f.trails[i] = append(f.trails[i], place{c.seen.X, c.seen.Y})
		f.trails[i] = f.trails[i][max(0, len(f.trails[i])-trail):]
		f.field(img, left, c, f.trails[i], uint8(late+i))
		write(img, left+half/2, 24, 2, words, fmt.Sprintf("COINS: %d", c.car.Coins))
		keys(img, left+half/2, head+half+5, c.keys)
	}
	write(img, half+gap/2, head+half+9, 2, faint, fmt.Sprintf("%d MS, %g%% LOSS", o.rtt.Milliseconds(), o.loss))
	f.add(img)
}

// field draws a game from above: the coin, the car's way, and the car as the player sees it.
func (f *film) field(img *image.Paletted, left int, c *end, way []place, ink uint8) {
	for y := range half {
		for x := range half {
			img.SetColorIndex(left+x, head+y, grass)
		}
	}
	at := func(x, y float64) (float64, float64) {
		return float64(left) + 10 + x*(half-20)/field, float64(head) + 10 + y*(half-20)/field
	}
	for _, p := range way {
		x, y := at(p.x, p.y)
		disc(img, x, y, 2, track)
	}
	coin := c.coins[c.car.Coin]
	x, y := at(coin.x, coin.y)
	disc(img, x, y, 6, gold)
	x, y = at(c.seen.X, c.seen.Y)
	sin, cos := math.Sincos(c.seen.Heading * math.Pi / 180)
	for along := -9.0; along <= 9; along += 0.5 { // a wedge that points where it drives
		for across := -(9 - along) / 3; across <= (9-along)/3; across += 0.5 {
			img.SetColorIndex(int(x+along*cos-across*sin), int(y+along*sin+across*cos), ink)
		}
	}
}

// keys draws which keys the player holds down: left, forward, right.
func keys(img *image.Paletted, x, y int, k Keys) {
	for i, down := range []bool{k.Turn < 0, k.Drive > 0, k.Turn > 0} {
		ink := uint8(track)
		if down {
			ink = words
		}
		left := x + (i-1)*26 - 10
		for dy := range 20 {
			for dx := range 20 {
				if dx == 0 || dy == 0 || dx == 19 || dy == 19 || down {
					img.SetColorIndex(left+dx, y+dy, ink)
				}
			}
		}
		if down {
			ink = backdrop
		}
		for d := range 6 { // an arrow
			for w := -d; w <= d; w++ {
				switch i {
				case 0:
					img.SetColorIndex(left+6+d, y+10+w, ink)
				case 1:
					img.SetColorIndex(left+10+w, y+6+d, ink)
				case 2:
					img.SetColorIndex(left+13-d, y+10+w, ink)
				}
			}
		}
	}
}

func disc(img *image.Paletted, x, y, size float64, ink uint8) {
	for py := int(y - size); py <= int(y+size)+1; py++ {
		for px := int(x - size); px <= int(x+size)+1; px++ {
			if math.Hypot(float64(px)-x, float64(py)-y) <= size {
				img.SetColorIndex(px, py, ink)
			}
		}
	}
}

// add appends a frame: what has changed since the one before.
func (f *film) add(img *image.Paletted) {
	change := image.Rect(0, 0, 1, 1)
	if f.last == nil {
		change = img.Rect
	} else {
		for i := range img.Pix {
			if img.Pix[i] != f.last.Pix[i] {
				x, y := i%img.Stride, i/img.Stride
				change = change.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	part := image.NewPaletted(change, palette)
	for y := change.Min.Y; y < change.Max.Y; y++ {
		for x := change.Min.X; x < change.Max.X; x++ {
			if now := img.ColorIndexAt(x, y); f.last == nil || now != f.last.ColorIndexAt(x, y) {
				part.SetColorIndex(x, y, now)
			}
		}
	}
	f.last = img
	f.gif.Image = append(f.gif.Image, part)
	f.gif.Delay = append(f.gif.Delay, int(filmFrame/(10*time.Millisecond)))
	f.gif.Disposal = append(f.gif.Disposal, gif.DisposalNone)
}

func (f *film) write(file string) error {
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &f.gif); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}
