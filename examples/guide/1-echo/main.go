// Step 1 of the guide: a channel between a client and a server. The client says three lines, the server says
// them back, and the client compares.
//
//	go run ./examples/guide/1-echo
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// echoName is what both ends call this kind of channel. Numbers below 300 are Unreal's.
var echoName = bunch.Name{Index: 300}

// handler is one end of the channel: got is called with what arrives on it.
type handler struct {
	got func(ch *channel.Channel, data []byte)
}

// ReceivedBunch is called with what the other end wrote: reliable bunches in order and once.
func (h *handler) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	data := make([]byte, in.Data.Remaining()/8)
	in.Data.ReadBytes(data)
	h.got(ch, data)
}

// ReceivedAck and ReceivedNak tell the fate of each packet. Reliable bunches need neither.
func (*handler) ReceivedAck(*channel.Channel, int64) {}

// ReceivedNak is the other fate.
func (*handler) ReceivedNak(*channel.Channel, int64) {}

// Closed says that the channel is gone.
func (*handler) Closed(*channel.Channel, channel.CloseReason) {}

// say writes to a channel. A lost packet's reliable bunches are sent again.
func say(ch *channel.Channel, data []byte) {
	if _, err := ch.SendBunch(&bunch.Out{Data: data, Reliable: true}); err != nil {
		fmt.Println(err)
	}
}

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "it has no flags and takes no arguments")
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run() error {
	// The server accepts channels of that name, and answers on them.
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Channels: []channel.Type{{
		Name: echoName, ClientOpen: true,
		Accept: func(*channel.Channel) channel.Handler { return &handler{got: say} },
	}}})
	if err != nil {
		return err
	}
	defer srv.Close()

	// The client opens one when it has joined.
	const lines = "hello\nis anybody there\nbye\n"
	heard := ""
	hear := func(_ *channel.Channel, data []byte) { heard += string(data) }
	cl, err := driver.Dial(srv.LocalAddr().String(), driver.Config{
		Channels: []channel.Type{{Name: echoName, ClientOpen: true}},
		Joined: func(c *driver.Conn) {
			ch, err := c.Open(echoName, &handler{got: hear})
			if err != nil {
				fmt.Println(err)
				return
			}
			say(ch, []byte(lines))
		},
	})
	if err != nil {
		return err
	}
	defer cl.Close()

	// The game loop: take in what came, do the game, send what was written.
	for range 300 {
		now := time.Now()
		srv.TickDispatch(now)
		cl.TickDispatch(now)
		if len(heard) >= len(lines) {
			break
		}
		srv.TickFlush(now)
		cl.TickFlush(now)
		if err := cl.Err(); err != nil {
			return err // why it has no connection
		}
		time.Sleep(time.Second / 60)
	}
	fmt.Print(heard)
	if heard != lines {
		return fmt.Errorf("said %q, heard %q", lines, heard)
	}
	_, err = fmt.Println("PASS: all lines came back")
	return err
}
