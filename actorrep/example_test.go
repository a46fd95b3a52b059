package actorrep_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn"
)

// Door is an actor: the same type at both ends.
type Door struct {
	actorrep.Base
	Open  bool   `net:"notify=OnOpen"`
	Label string `net:"initial"`
}

// OnOpen is called on a client.
func (d *Door) OnOpen() { fmt.Println("client:", d.Label, "is open:", d.Open) }

// Push is its owner's to call.
var Push = actorrep.ServerRPC0(func(_ actorrep.Call, d *Door) error {
	d.Open = !d.Open
	return nil
}, actorrep.Reliable)

// A server's and a client's world with a connection between them, without sockets.
func Example() {
	server, client := actorrep.NewServer(actorrep.Config{}), actorrep.NewClient(actorrep.Config{})
	worlds := [2]*actorrep.World{client, server}
	var conns [2]*netconn.Conn
	for i, w := range worlds {
		err := w.Register("Door", (*Door)(nil), actorrep.RPCs{"Push": Push})
		if err == nil {
			conns[i], err = netconn.New(netconn.Config{Server: i == 1, Channels: w.ChannelTypes(), LowLevelSend: func(p []byte) {
				_ = conns[1-i].ReceivedPacket(conns[i].Now(), p) // refused ones are lost
			}}, 0, 1, 1)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	door := &Door{Label: "the gate"}
	door.SetOwner(server.AddConn(conns[1]))
	if err := server.Spawn(door); err != nil {
		fmt.Println(err)
		return
	}
	pushed := false
	for now := time.Duration(0); now < time.Second; now += 20 * time.Millisecond {
		for i, w := range worlds {
			conns[i].PostTickDispatch(now)
			w.Step(now)
			conns[i].Tick(now)
		}
		if mirror, ok := client.Find(door.GUID()).(*Door); ok && mirror.IsOwned() && !pushed {
			err := Push.Call(mirror)
			pushed = !errors.Is(err, actorrep.ErrNotThere)
		}
	}
	fmt.Println("server:", door.Open)
	// Output:
	// client: the gate is open: true
	// server: true
}
