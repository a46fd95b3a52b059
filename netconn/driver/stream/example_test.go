package stream_test

import (
	"bufio"
	"context"
	"fmt"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/stream"
)

// A line-based service over a stream, as over TCP.
func Example() {
	lobby := bunch.Name{Index: 320}
	l := stream.Listen(lobby, stream.Config{})
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Channels: []channel.Type{l.Type()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	cl, err := driver.Dial(srv.LocalAddr().String(), driver.Config{Channels: []channel.Type{stream.Type(lobby)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 2)
	go func() { done <- srv.Run(ctx, nil) }()
	go func() { done <- cl.Run(ctx, nil) }()

	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		line, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Fprintf(c, "you said: %s", line)
		c.Close()
	}()
	c, err := stream.Dial(ctx, cl, lobby, stream.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprintln(c, "hello")
	answer, _ := bufio.NewReader(c).ReadString('\n')
	fmt.Print(answer)
	cancel()
	<-done
	<-done
	// Output: you said: hello
}
