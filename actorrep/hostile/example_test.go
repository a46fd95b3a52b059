package hostile_test

import (
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/hostile"
	"github.com/bunchnet/bunchnet/bunch"
)

// Door is an actor of the game that is tried.
type Door struct {
	actorrep.Base
	Open  bool   `net:""`
	Label string `net:"cap=40"`
}

// doors is its class as a liar has it, with a procedure that takes a number.
func doors() hostile.Class {
	d := &Door{Label: "door"}
	return hostile.Class{Actor: d,
		Change:     func(dice *hostile.Dice) { d.Open, d.Label = !d.Open, "door"[:dice.N(5)] },
		Procedures: []func(*hostile.Dice) any{func(dice *hostile.Dice) any { return uint8(dice.N(256)) }}}
}

// A server that opens an actor on each channel and says something more of it.
func ExampleNewServer() {
	dice := hostile.NewDice(hostile.Bytes(1, 500), 16)
	liar, err := hostile.NewServer(dice, doors())
	fmt.Println(err)
	var sent []bunch.Out // each goes out on its channel: channel.Channel.SendBunch
	for channel := uint32(1); !dice.Over(); channel++ {
		data, bits := liar.Opening(channel)
		sent = append(sent, bunch.Out{Data: data, Bits: bits, Reliable: true})
		data, bits = liar.Messages(channel)
		sent = append(sent, bunch.Out{Data: data, Bits: bits, Reliable: true})
	}
	fmt.Println(len(sent) > 10)
	// Output:
	// <nil>
	// true
}

// A client that calls on the channel of an actor which the server opened.
func ExampleNewClient() {
	dice := hostile.NewDice(hostile.Bytes(2, 500), 16)
	liar, err := hostile.NewClient(dice, doors())
	fmt.Println(err)
	n := 0
	for ; !dice.Over(); n++ {
		data, bits := liar.Calls(0)
		_ = bunch.Out{Data: data, Bits: bits, Reliable: true}
	}
	fmt.Println(n > 10)
	// Output:
	// <nil>
	// true
}
