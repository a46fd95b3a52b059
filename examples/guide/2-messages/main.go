// Step 2 of the guide: typed messages instead of bytes, over a link that loses one datagram in ten. The client walks a
// hundred steps, the server adds them up and says where that leads; both must come to the same place.
//
//	go run ./examples/guide/2-messages
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// Walk is a step of the player, Place where it has come to.
type (
	Walk  struct{ DX, DY int32 }
	Place struct{ X, Y int32 }
)

// Serialize writes, reads and measures: the same lines, so that they can't differ.
func (m *Walk) Serialize(s *message.Stream) {
	s.Int(&m.DX, -1, 1) // two bits
	s.Int(&m.DY, -1, 1)
}

// Serialize is Place's.
func (m *Place) Serialize(s *message.Stream) {
	s.Int(&m.X, -1000, 1000) // eleven bits
	s.Int(&m.Y, -1000, 1000)
}

// kinds is what both ends know, in the same order. A Registry belongs to one goroutine; in this program both ends are in the same.
var (
	kinds message.Registry
	walk  = kinds.Add("Walk", func() message.Message { return new(Walk) })
	place = kinds.Add("Place", func() message.Message { return new(Place) })
)

var gameName = bunch.Name{Index: 301}

func newQueue() *message.Attached {
	return message.Attach(message.New(message.Config{Mode: message.Ordered, Kinds: &kinds}))
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
	server, client := newQueue(), newQueue() // a real server has one for each connection
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Channels: []channel.Type{{
		Name: gameName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return server },
	}}})
	if err != nil {
		return err
	}
	defer srv.Close()

	local, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err != nil {
		return err
	}
	bad := netsim.Settings{Loss: 10, Lag: 30 * time.Millisecond}
	socket, err := proxy.Impair(local, bad, bad, 1) // the client's socket, behind a bad network
	if err != nil {
		return err
	}
	cl, err := driver.Dial(srv.LocalAddr().String(), driver.Config{
		Socket: socket, Channels: []channel.Type{{Name: gameName, ClientOpen: true}},
		Joined: func(c *driver.Conn) {
			if _, err := c.Open(gameName, client); err != nil {
				fmt.Println("the channel doesn't open:", err)
			}
		},
	})
	if err != nil {
		return err
	}
	defer cl.Close()

	const steps = 100
	var walked, told Place // where the client is, and where the server says it is
	var at Place           // the server's
	sent, got := 0, 0
	for range 1200 { // twenty seconds at most
		now := time.Now()
		srv.TickDispatch(now)
		for m, kind := server.Receive(); m != nil; m, kind = server.Receive() {
			step := m.(*Walk)
			at.X, at.Y, got = at.X+step.DX, at.Y+step.DY, got+1
			kind.Free(m)
			if got == steps {
				if err := server.Send(place, &Place{at.X, at.Y}); err != nil {
					return err
				}
			}
		}
		server.Tick(srv.Time(now))
		srv.TickFlush(now)

		cl.TickDispatch(now)
		if sent < steps {
			step := &Walk{DX: int32(sent%3) - 1, DY: int32(sent % 2)}
			walked.X, walked.Y, sent = walked.X+step.DX, walked.Y+step.DY, sent+1
			if err := client.Send(walk, step); err != nil { // reliable: kept and sent again until acked
				return err
			}
		}
		if m, _ := client.Receive(); m != nil {
			told = *m.(*Place)
			break
		}
		client.Tick(cl.Time(now))
		cl.TickFlush(now)
		if err := cl.Err(); err != nil {
			return err // why it has no connection
		}
		time.Sleep(time.Second / 60)
	}
	fmt.Printf("%d steps sent, %d received, %d sent again\n", sent, got, client.Counters.Resent)
	if told != walked || got != steps {
		return fmt.Errorf("the client walked to %v, the server says %v", walked, told)
	}
	_, err = fmt.Printf("PASS: both are at %v\n", walked)
	return err
}
