package notifywrites

import (
	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
)

type Vec struct{ X, Y float64 }

type Bad struct {
	actorrep.Base
	Pos    Vec                   `net:"q=0.01,notify=OnPos"`
	Health actorrep.Var[uint8]   `net:"max=100,notify=OnHealth"`
	Slots  [4]uint8              `net:"notify=OnSlots"`
	Score  uint32                `net:"notify=OnScore"`
	Bag    fastarray.List[uint8] `net:"notify=OnBag"`
	Ammo   uint8                 `net:""`
}

func (b *Bad) OnPos(old Vec) {
	b.Pos.X = old.X // want `warning: OnPos writes Pos, which the server replicates`
	b.Ammo++        // want `warning: OnPos writes Ammo`
}

func (b *Bad) OnHealth(old uint8) {
	if b.Health.Get() == 0 {
		b.Health.Set(100) // want `warning: OnHealth writes Health, which the server replicates: it stands here only, until the server's next value; keep it in a field without a net tag`
	}
}

func (b *Bad) OnSlots() {
	b.Slots[0], (b.Ammo) = 1, 2 // want `warning: OnSlots writes Slots` `warning: OnSlots writes Ammo`
}

func (b *Bad) OnScore() {
	b.clear() // want `warning: OnScore writes Ammo`
}

func (b *Bad) clear() {
	if b.Ammo > 0 {
		b.reset()
	}
}

func (b *Bad) reset() {
	b.Ammo = 0
	b.clear()
}

func (b *Bad) OnBag() {
	if b.Bag.Len() == 0 {
		_, _ = b.Bag.Add(1) // want `warning: OnBag writes Bag`
	}
}
