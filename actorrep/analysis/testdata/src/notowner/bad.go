package notowner

import "github.com/bunchnet/bunchnet/actorrep"

type Player struct {
	actorrep.Base
	Health uint8 `net:"notify=OnHealth"`
}

func greet(c actorrep.Call, p *Player, s string) error {
	return Boom.Call(p, 1) // want `error: only the server may call Boom, and the body of a ClientRPC runs on clients: Call returns ErrAuthority; use a ServerRPC`
}

var (
	Boom  = actorrep.MulticastRPC(func(c actorrep.Call, p *Player, n int) error { return nil })
	Greet = actorrep.ClientRPC(greet)
	Jump  = actorrep.ServerRPC(func(c actorrep.Call, p *Player, n int) error { return nil }, actorrep.RateLimit(10, 5))
	Run   = actorrep.ServerRPC(func(c actorrep.Call, p *Player, n int) error {
		return Jump.Call(p, n) // want `warning: server RPC Jump called in the body of a ServerRPC, which runs on the server: it runs here at once and sends nothing`
	}).Validated(func(c actorrep.Call, p *Player, n int) bool { return n < 3 })
)

func (p *Player) OnHealth(old uint8) {
	if err := Greet.Call(p, "ouch"); err != nil { // want `error: only the server may call Greet, and the notify OnHealth runs on clients`
		panic(err)
	}
}

type game struct {
	world   *actorrep.World
	players []*Player
	byName  map[string]*Player
}

func (g *game) join(name string) error {
	p := &Player{Health: 100}
	p.Health = 50
	if err := g.world.Spawn(p); err != nil {
		return err
	}
	g.players = append(g.players, p)
	g.byName[name] = p
	p.SetPriority(2)
	return Greet.Call(p, name) // want `error: client RPC Greet on an actor that nobody owns: Call returns ErrNoOwner; call SetOwner first, or make it a MulticastRPC`
}

func (g *game) bot() {
	p := new(Player)
	p.SetOwner(nil)
	_ = g.world.Spawn(p)
	_ = Greet.Call(p, "bot") // want `client RPC Greet on an actor that nobody owns`
	_ = Jump.Call(p, 3)      // want `warning: server RPC Jump called by the server, which has just spawned the actor: it runs here at once and sends nothing; call a plain function`
}

func (g *game) value() {
	var p = Player{}
	_ = g.world.Spawn(&p)
	_ = Greet.Call(&p, "value") // want `client RPC Greet on an actor that nobody owns`
}

var (
	Bang = actorrep.MulticastRPC0(func(c actorrep.Call, p *Player) error { return nil })
	Duck = actorrep.ClientRPC0[*Player](nil)
)

func init() {
	Duck.Handle(func(c actorrep.Call, p *Player) error {
		return Bang.Call(p) // want `error: only the server may call Bang, and the body of a ClientRPC runs on clients`
	})
}
