package arena

import "image/color"

// The window: the field, and below it the graph.
const (
	ScreenWidth  = int(Width)
	ScreenHeight = int(Height) + GraphHeight
	GraphHeight  = 120
)

// Colors are the ships', each unlike anything else on the screen.
var Colors = [MaxShips]color.RGBA{
	{255, 90, 90, 255}, {90, 200, 255, 255}, {120, 230, 120, 255}, {255, 210, 80, 255}, {200, 130, 255, 255}, {255, 150, 60, 255},
	{80, 230, 210, 255}, {255, 140, 200, 255}, {160, 170, 60, 255}, {130, 150, 255, 255}, {200, 110, 90, 255}, {170, 220, 255, 255},
}

// Sprite is a ship as it is drawn.
type Sprite struct {
	Name   string
	Color  uint8 // in Colors
	Pos    Vec   // on the screen, too
	Angle  float64
	Thrust bool
	Hull   uint8
	Score  uint16
	Own    bool
}

// Triangle is the ship's corners, nose first, around Pos.
func (s *Sprite) Triangle() [3]Vec {
	forth := Direction(s.Angle)
	side := Vec{-forth.Y, forth.X}
	back := s.Pos.Plus(forth.Times(-0.6 * Radius))
	return [3]Vec{s.Pos.Plus(forth.Times(1.2 * Radius)), back.Plus(side.Times(0.75 * Radius)), back.Plus(side.Times(-0.75 * Radius))}
}

func (s *Ship) sprite(pos Vec, angle float64, thrust bool) Sprite {
	return Sprite{Name: s.Name, Color: s.Color % MaxShips, Pos: pos, Angle: angle, Thrust: thrust, Hull: s.Hull, Score: s.Score}
}
