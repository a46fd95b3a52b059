// Package game has the classes of two builds of a game.
package game

import (
	"errors"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Item is in a bag.
type Item struct {
	Kind  uint8 `net:"max=40"`
	Count uint16
}

// Soldier is as it was.
type Soldier struct {
	actorrep.Base
	Pos    [3]float32           `net:"q=0.01"`
	Hp     actorrep.Var[uint8]  `net:"max=100,notify=OnHp"`
	Ammo   uint16               `net:"owner"`
	Name   string               `net:"cap=32"`
	Target netguid.GUID         `net:""`
	Bag    fastarray.List[Item] `net:"owner"`
	Old    bool                 `net:""`
}

// OnHp is told.
func (*Soldier) OnHp() {}

// Soldier2 is as it is now.
type Soldier2 struct {
	actorrep.Base
	Pos    [3]float32           `net:"q=0.05"`
	Hp     float32              `net:""`
	Ammo   uint8                `net:""`
	Name   string               `net:"cap=24"`
	Target netguid.GUID         `net:""`
	Bag    fastarray.List[uint] `net:"owner"`
	Armor  uint8                `net:"max=50"`
}

// Door is in the second build only.
type Door struct {
	actorrep.Base
	Open bool `net:""`
}

// Dir is where to.
type Dir struct{ X, Y float32 }

var (
	fire  = actorrep.ServerRPC(func(actorrep.Call, *Soldier, Dir) error { return nil }, actorrep.Reliable)
	fire2 = actorrep.ServerRPC(func(actorrep.Call, *Soldier2, [2]float64) error { return nil }, actorrep.Reliable)
	hurt  = actorrep.MulticastRPC(func(actorrep.Call, *Soldier, uint8) error { return nil })
	duck  = actorrep.ClientRPC(func(actorrep.Call, *Soldier2, bool) error { return nil })
)

// Register is the first build.
func Register(w *actorrep.World) error {
	return w.Register("Soldier", (*Soldier)(nil), actorrep.RPCs{"Fire": fire, "Hurt": hurt})
}

// Register2 is the second.
func Register2(w *actorrep.World) error {
	return errors.Join(w.Register("Soldier", (*Soldier2)(nil), actorrep.RPCs{"Fire": fire2, "Duck": duck}), w.Register("Door", (*Door)(nil)))
}

// Fails fails.
func Fails(*actorrep.World) error { return errors.New("no classes today") }
