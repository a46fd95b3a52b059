package netmap

import (
	"sync"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Inventory writes itself.
type Inventory struct{ items map[string]int }

func (i *Inventory) WriteNet(w *bitio.Writer)      {}
func (i *Inventory) ReadNet(r *bitio.Reader) error { return nil }

// Items is a fast array.
type Items struct{ byID map[uint32]int }

func (i *Items) NetKey() uint32                        { return 0 }
func (i *Items) NetWrite(w *bitio.Writer, base uint32) {}
func (i *Items) NetRead(r *bitio.Reader) error         { return nil }

type Slot struct {
	ID    uint32
	Count uint8
}

type Good struct {
	actorrep.Base
	A     Inventory                 `net:""`
	B     Items                     `net:""`
	C     []Slot                    `net:"cap=20"`
	D     netguid.GUID              `net:""`
	E     []netguid.GUID            `net:""`
	F     actorrep.Var[[]int]       `net:""`
	G     [4]string                 `net:""`
	H     []Inventory               `net:""`
	Bag   fastarray.List[Slot]      `net:"owner"`
	Tools fastarray.List[Inventory] `net:""`
	seen  map[string]bool
	mu    sync.Mutex
	other *Good
}

type Full struct {
	actorrep.Base
	A [60]int    `net:""`
	B [2]float64 `net:""`
	C [2]string  `net:""`
	D []int      `net:""`
}

type Params struct {
	N     int
	Slots []Slot
	cache map[int]int
}

// watcher isn't exported, nor a struct: it isn't sent.
type watcher interface{ Watch() }

var (
	Put   = actorrep.ServerRPC(func(c actorrep.Call, g *Good, p Params) error { return nil })
	Give  = actorrep.ServerRPC(func(c actorrep.Call, g *Good, p Inventory) error { return nil })
	Other = actorrep.ServerRPC(func(c actorrep.Call, g *Good, p struct {
		watcher
		N int
	}) error {
		return nil
	})
	Named = actorrep.ServerRPC(func(c actorrep.Call, g *Good, p string) error { return nil })
)
