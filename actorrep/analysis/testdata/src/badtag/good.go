package badtag

import (
	"math/big"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

type Vec struct{ X, Y float64 }

type Inventory struct{ items map[string]int }

func (i *Inventory) WriteNet(w *bitio.Writer)      {}
func (i *Inventory) ReadNet(r *bitio.Reader) error { return nil }

type Item struct {
	Name  string
	Where Vec
}

type Good struct {
	actorrep.Base
	A Vec                 `net:"q=0.01,notify=OnA"`
	B uint8               `net:"max=100, notify=OnB ,owner"`
	C [3]float32          `net:"rot=16"`
	Q [4]float32          `net:"quat=15"`
	D []Item              `net:"cap=64,initialorowner"`
	E []float32           `net:"q=0.5,custom"`
	F actorrep.Var[uint8] `net:"max=9,notify=OnF,replayorowner"`
	G netguid.GUID        `net:""`
	H []byte              `net:"cap=10,skipreplay"`
	I []uint8             `net:"max=10"`
	J Inventory           `net:"autonomous"`
	K string              `net:"cap=20,initial"`
	L int                 `json:"L"`
	M uint8               `net:"max=3,,"`
	N float64             `net:"q=1e-3,simulated"`
	O struct{}            `net:"never"`
	P big.Int             `net:"cap=20"` // its text
}

func (g *Good) OnA()          {}
func (g *Good) OnB(old uint8) {}
func (g *Good) OnF(old uint8) {}

type Generic[T any] struct {
	actorrep.Base
	V T `net:"q=0.01,notify=OnV"`
}

func (g *Generic[T]) OnV(old T) {}

// Hit is parameters of an RPC.
type Hit struct {
	At Vec `net:"q=0.01"`
}
