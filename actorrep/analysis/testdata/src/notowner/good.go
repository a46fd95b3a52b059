package notowner

import "github.com/bunchnet/bunchnet/actorrep"

func (g *game) joinWell(name string, peer *actorrep.Peer) error {
	p := &Player{Health: 100}
	p.SetOwner(peer)
	if err := g.world.Spawn(p); err != nil {
		return err
	}
	return Greet.Call(p, name)
}

func (g *game) later(peer *actorrep.Peer) {
	p := &Player{}
	_ = g.world.Spawn(p)
	if peer != nil {
		p.SetOwner(peer)
	}
	_ = Greet.Call(p, "later")
}

func (g *game) elsewhere(peer *actorrep.Peer) {
	p := &Player{}
	_ = g.world.Spawn(p)
	g.own(p, peer)
	_ = Greet.Call(p, "elsewhere")
}

func (g *game) made(peer *actorrep.Peer) {
	p := g.newPlayer(peer)
	_ = g.world.Spawn(p)
	_ = Greet.Call(p, "made")
}

func (g *game) component(parent *Player) {
	p := &Player{}
	_ = g.world.SpawnIn(parent, p)
	_ = Greet.Call(p, "component")
}

func (g *game) closure(peer *actorrep.Peer) {
	p := &Player{}
	func() { p.SetOwner(peer) }()
	_ = g.world.Spawn(p)
	_ = Greet.Call(p, "closure")
}

func (g *game) method(peer *actorrep.Peer) {
	p := &Player{}
	_ = g.world.Spawn(p)
	p.possess(peer)
	_ = Greet.Call(p, "method")
}

func (g *game) all() {
	p := &Player{}
	_ = g.world.Spawn(p)
	_ = Boom.Call(p, 1)
}

func (g *game) promised() {
	p := &Player{}
	_ = g.world.Spawn(p)
	g.give(func() *Player { return p })
	_ = Greet.Call(p, "promised")
}

// input runs on a client.
func input(me *Player) error { return Jump.Call(me, 1) }

func (p *Player) possess(peer *actorrep.Peer) { p.SetOwner(peer) }

func (p *Player) OnShield() {
	_ = Jump.Call(p, 1)
	if p.Role() == actorrep.Authority {
		_ = Greet.Call(p, "shield")
	}
}

type Shielded struct {
	Player
	Shield uint8 `net:"notify=OnShield"`
}

func (g *game) give(f func() *Player)                     {}
func (g *game) own(p *Player, peer *actorrep.Peer)        { p.SetOwner(peer) }
func (g *game) newPlayer(peer *actorrep.Peer) (p *Player) { return p }
