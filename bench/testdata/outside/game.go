package main

import (
	"fmt"
	"math"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Lamp is the game: a lamp that its owner switches and everybody sees.
type Lamp struct {
	actorrep.Base
	On      bool    `net:"notify=OnSwitched"`
	Watts   float32 `net:"q=0.5"`
	presses int
	seen    int
}

// OnSwitched counts what a client has seen.
func (l *Lamp) OnSwitched() { l.seen++ }

// Press is the owner's hand.
var Press = actorrep.ServerRPC(func(_ actorrep.Call, l *Lamp, watts float32) error {
	if math.IsNaN(float64(watts)) || watts < 0 || watts > 100 {
		return fmt.Errorf("%v watts", watts)
	}
	l.On, l.Watts = !l.On, watts
	l.presses++
	return nil
}, actorrep.Reliable)

func register(w *actorrep.World) error {
	return w.Register("Lamp", (*Lamp)(nil), actorrep.RPCs{"Press": Press})
}
