package copyvar

import (
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
)

type Player struct {
	actorrep.Base
	Health actorrep.Var[uint8] `net:"max=100"`
	Name   string              `net:""`
}

type Save struct{ P Player }

func (p Player) Show() string { return p.Name } // want `warning: each call of Show copies copyvar.Player, which holds an actorrep.Base; take a pointer`

func (p Player) Give() any { return &p } // want `warning: each call of Give copies copyvar.Player`

func heal(p Player) {} // want `warning: each call copies copyvar.Player, which holds an actorrep.Base; take a pointer`

func healthy(h actorrep.Var[uint8]) bool { return true } // want `warning: each call copies actorrep.Var\[uint8\]; take the uint8 that Get returns`

func bad(p, q *Player, list []Player, ch chan Player) (Player, error) {
	snapshot := *p                // want `warning: the assignment copies copyvar.Player, which holds an actorrep.Base; use a pointer`
	var other = list[0]           // want `warning: the assignment copies copyvar.Player`
	p.Health = q.Health           // want `warning: the assignment copies actorrep.Var\[uint8\]; take its value with Get`
	h := p.Health                 // want `warning: the assignment copies actorrep.Var\[uint8\]; take its value with Get`
	p.Base = q.Base               // want `warning: the assignment copies actorrep.Base; use a pointer`
	s := Save{P: *p}              // want `warning: the literal copies copyvar.Player`
	fmt.Println(p.Health)         // want `warning: the call copies actorrep.Var\[uint8\]`
	fmt.Println(*p)               // want `warning: the call copies copyvar.Player`
	ch <- *q                      // want `warning: the send copies copyvar.Player`
	list = append(list, Player{}) // want `warning: append moves copyvar.Player, which holds an actorrep.Base; use a slice of pointers`
	for _, each := range list {   // want `warning: each turn copies copyvar.Player, which holds an actorrep.Base; range over the index`
		each.Health.Set(3)
	}
	for _, each := range list { // want `warning: each turn copies copyvar.Player`
		keep(&each)
	}
	_, _, _, _ = &snapshot, &other, &h, &s
	func(p Player) {}(*q) // want `warning: each call copies copyvar.Player` `warning: the call copies copyvar.Player`
	heal(*p)
	return *p, nil // want `warning: the return copies copyvar.Player`
}

func keep(*Player) {}

type Chest struct{ Items fastarray.List[int] }

func empty(c *Chest) fastarray.List[int] {
	return c.Items // want `warning: the return copies fastarray.List\[int\]; use a pointer`
}

func look(c Chest) {} // want `warning: each call copies copyvar.Chest, which holds a fastarray.List; take a pointer`
