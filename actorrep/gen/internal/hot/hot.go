// Package hot has a class with a field of every kind and the code generated for it, to test and measure that.
package hot

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

//go:generate go run ../.. -type Craft

// Vec is a vector.
type Vec struct{ X, Y, Z float64 }

// Liters is a named number.
type Liters float32

// Engine is a struct whose parts have tags.
type Engine struct {
	Power float64 `net:"q=0.5"`
	RPM   uint16  `net:"max=9000"`
	Gears [2]int8
}

// Crate is an element of the cargo.
type Crate struct {
	Kind  uint8
	Label string
}

// Craft is the class.
type Craft struct {
	actorrep.Base
	Pos    Vec                   `net:"q=0.01,notify=OnPos"`
	Rot    [3]float32            `net:"rot=16"`
	Speed  float32               `net:""`
	Mass   float64               `net:""`
	Armor  uint8                 `net:"max=100"`
	Fuel   Liters                `net:"q=0.1,owner"`
	Heat   int16                 `net:""`
	Shots  uint32                `net:""`
	Lights bool                  `net:""`
	Target netguid.GUID          `net:""`
	Doors  [3]bool               `net:""`
	Guns   [2]Engine             `net:""`
	Name   string                `net:"cap=32"`
	Log    []int32               `net:"cap=16"`
	Alive  time.Duration         `net:""`
	Shield actorrep.Var[Vec]     `net:"q=0.1"`
	Cargo  fastarray.List[Crate] `net:""`
	trim   int8                  `net:""`
	Att    [4]float32            `net:"quat=14"`

	moved int
}

// OnPos counts moves on a client.
func (c *Craft) OnPos() { c.moved++ }
