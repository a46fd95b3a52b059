package stream_test

import (
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/stream"
)

// A stream opened on the goroutine of the game's own loop, as soon as it has joined.
func ExampleOpen() {
	name := bunch.Name{Index: 321}
	l := stream.Listen(name, stream.Config{})
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Channels: []channel.Type{l.Type()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	cl, err := driver.Dial(srv.LocalAddr().String(), driver.Config{Channels: []channel.Type{stream.Type(name)}, Joined: func(c *driver.Conn) {
		s, err := stream.Open(c, name, stream.Config{})
		if err != nil {
			fmt.Println(err)
			return
		}
		go func() { // reads and writes may wait, so not in the loop
			fmt.Fprint(s, "a letter")
			s.Close()
		}()
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cl.Close()
	letter := make(chan string, 1)
	go func() {
		s, err := l.Accept()
		if err != nil {
			letter <- err.Error()
			return
		}
		b, _ := io.ReadAll(s)
		letter <- string(b)
	}()
	for {
		now := time.Now()
		srv.TickDispatch(now)
		cl.TickDispatch(now)
		srv.TickFlush(now)
		cl.TickFlush(now)
		select {
		case text := <-letter:
			fmt.Println(text)
			return
		default:
		}
	}
	// Output: a letter
}
