package notifywrites

import "github.com/bunchnet/bunchnet/actorrep"

type Good struct {
	actorrep.Base
	Pos    Vec                 `net:"q=0.01,notify=OnPos"`
	Health actorrep.Var[uint8] `net:"max=100,notify=OnHealth"`
	Local  uint8               `net:"never"`

	shown Vec // where it is drawn
	hurt  bool
}

func (g *Good) OnPos(old Vec) {
	g.shown = old
	pos := g.Pos
	pos.X += 1
	g.shown.Y += pos.X
	g.Local = 3
	if g.Role() == actorrep.Authority {
		g.Pos.X = 0
	}
}

func (g *Good) OnHealth(old uint8) {
	g.hurt = g.Health.Get() < old
	g.flash(&Bad{})
}

func (g *Good) flash(other *Bad) { other.Ammo = 3 }

// Damage runs on the server; it is no notify.
func (g *Good) Damage(n uint8) {
	g.Pos.X++
	g.Health.Set(g.Health.Get() - n)
}
