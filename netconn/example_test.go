package netconn_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// inbox prints what arrives.
type inbox struct{ channel.Nop }

func (inbox) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	line := make([]byte, in.Data.Remaining()/8)
	in.Data.ReadBytes(line)
	fmt.Printf("%s\n", line)
}

// Two connections without sockets, over links that lose a third.
func Example() {
	var now time.Duration
	var conns [2]*netconn.Conn
	var links [2]*netsim.Link
	name := bunch.Name{Index: 300}
	types := []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return inbox{} }}}
	for i := range conns {
		var err error
		if links[i], err = netsim.NewLink(netsim.Settings{Loss: 33, Lag: 20 * time.Millisecond}, uint64(i)); err == nil {
			conns[i], err = netconn.New(netconn.Config{Server: i == 1, Channels: types, LowLevelSend: func(p []byte) { links[i].Push(now, p) }}, 0, 1, 1)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	ch, err := conns[0].Open(name, inbox{})
	for i := range 3 {
		if err == nil {
			_, err = ch.SendBunch(&bunch.Out{Data: fmt.Appendf(nil, "line %d", i), Reliable: true, NoMerge: true})
		}
	}
	for ; err == nil && now < 3*time.Second; now += time.Second / 60 {
		for i, c := range conns {
			for p, ok := links[1-i].Pop(now); ok; p, ok = links[1-i].Pop(now) {
				_ = c.ReceivedPacket(now, p) // one that it refuses is lost
			}
			c.PostTickDispatch(now)
			c.Tick(now)
		}
	}
	fmt.Println(conns[0].Table().Unacked(), err)
	// Output:
	// line 0
	// line 1
	// line 2
	// 0 <nil>
}
