package driver_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// chat is a channel whose bunches are lines of text.
type chat struct {
	channel.Nop
	got func(line string)
}

var chatName = bunch.Name{Index: 300}

func (c *chat) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	for in.Data.Remaining() > 0 { // bunches may come merged, so a line says where it ends
		c.got(in.Data.ReadString(100))
	}
}

// A server and a client in one game loop.
func Example() {
	var lines []string
	chats := []channel.Type{{Name: chatName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler {
		return &chat{got: func(line string) { lines = append(lines, line) }}
	}}}
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Channels: chats})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	cl, err := driver.Dial(srv.LocalAddr().String(), driver.Config{Channels: chats, Joined: func(c *driver.Conn) {
		ch, err := c.Open(chatName, nil)
		if err == nil {
			_, err = ch.SendBunch(&bunch.Out{Data: fstring("hello, server"), Reliable: true})
		}
		if err != nil {
			fmt.Println(err)
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cl.Close()

	for len(lines) == 0 { // the game loop; a real one ticks at its own rate
		now := time.Now()
		srv.TickDispatch(now)
		cl.TickDispatch(now)
		// ... the game's step ...
		srv.TickFlush(now)
		cl.TickFlush(now)
	}
	fmt.Println(lines[0])
	// Output: hello, server
}
