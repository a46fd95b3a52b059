package copyvar

import (
	"fmt"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep"
)

type snapshot struct {
	name   string
	health uint8
}

type world struct {
	players []*Player
	first   Player
}

func newPlayer(name string) *Player { return &Player{Name: name} }

func (p *Player) Hurt(n uint8) { p.Health.Set(p.Health.Get() - n) }

func good(p, q *Player, list []Player) (snapshot, Player) {
	s := snapshot{p.Name, p.Health.Get()}
	p.Health.Set(q.Health.Get())
	for i := range list {
		list[i].Hurt(1)
	}
	all := []*Player{p, q, &list[0]}
	for _, p := range all {
		p.Hurt(1)
	}
	all = append(all, &Player{})
	var w world
	w.first.Hurt(2)
	fresh := Player{Name: "new"}
	fmt.Println(p, p.Health.Get(), unsafe.Sizeof(*p), len(list))
	zero := *new(Player)
	_ = zero.Name
	_ = *p
	var a actorrep.Actor = &fresh
	_ = a
	return s, Player{}
}
