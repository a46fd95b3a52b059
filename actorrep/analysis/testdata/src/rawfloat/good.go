package rawfloat

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Normal writes itself in 20 bits.
type Normal struct{ X, Y, Z float32 }

func (n *Normal) WriteNet(w *bitio.Writer)      {}
func (n *Normal) ReadNet(r *bitio.Reader) error { return nil }

type Worn struct {
	ID   uint32
	Wear float32 `net:"q=0.01"`
	seen float32
}

type Good struct {
	actorrep.Base
	Speed  float32               `net:"q=0.1"`
	Pos    Vec                   `net:"q=0.01"`
	Yaw    float32               `net:"rot=16"`
	Fuel   actorrep.Var[float64] `net:"q=0.5"`
	Up     Normal                `net:""`
	Tools  fastarray.List[Worn]  `net:""`
	Count  int                   `net:""`
	Damp   float64               `net:"never"`
	Exact  float64               `net:"initial"` //bunchvet:ignore rawfloat both ends compute with it
	smooth float64
}
