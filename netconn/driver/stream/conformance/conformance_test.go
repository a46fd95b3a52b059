package conformance

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/stream"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

var name = bunch.Name{Index: 310}

func TestConn(t *testing.T) { nettest.TestConn(t, pipe) }

// pipe is a stream's two ends, on drivers that run until stop.
func pipe() (c1, c2 net.Conn, stop func(), err error) {
	a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	l := stream.Listen(name, stream.Config{})
	cfg := driver.Config{NetSpeed: 20_000_000, TickRate: 1000, Socket: a, Channels: []channel.Type{l.Type()}}
	server, err := driver.Listen("", cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	cfg.Socket, cfg.Channels = b, []channel.Type{stream.Type(name)}
	client, err := driver.Dial("127.0.0.1:7777", cfg)
	if err != nil {
		return nil, nil, nil, errors.Join(err, server.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- server.Run(ctx, nil) }()
	go func() { done <- client.Run(ctx, nil) }()
	stop = func() {
		cancel()
		<-done
		<-done
	}
	c1, err = stream.Dial(ctx, client, name, stream.Config{})
	if err == nil {
		c2, err = l.Accept()
	}
	if err != nil {
		stop()
		return nil, nil, nil, err
	}
	return c1, c2, stop, nil
}
