package main

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/stream"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

func init() {
	register(
		attack{area: "services", name: "a client that never closes its streams", promise: "it takes no stream from the others: players refused of 8", bound: none("refused"), run: muteStreams},
		attack{area: "services", name: "a stream on a full path, real time", promise: "with Prompt its driver waits for the tick: looks at the clock a tick", bound: atMost(30, "a tick"), run: fullPath, alone: true},
		attack{area: "services", name: "Dial on what has ended", promise: "a Dial that can't succeed says so: those that wait", bound: none("waiting"), run: deadDial},
	)
}

var streamName = bunch.Name{Text: "AdversaryStream"}

// streamServer listens for streams and closes each that it accepts at once.
func streamServer(cfg stream.Config) (*driver.Driver, *stream.Listener, func(), error) {
	l := stream.Listen(streamName, cfg)
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}, TickRate: 200, Channels: []channel.Type{l.Type()}})
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx, nil) }()
	return d, l, func() { cancel(); <-done; _ = l.Close() }, nil
}

// streamClient runs a client of it until stop.
func streamClient(to string) (*driver.Driver, func(), error) {
	d, err := driver.Dial(to, driver.Config{Link: driver.PlainSalted{}, TickRate: 200, Channels: []channel.Type{{Name: streamName, ClientOpen: true}}})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx, nil) }()
	return d, func() { cancel(); <-done }, nil
}

// muteStreams opens more channels of streams than there are slots and never says a word more, while the server's program closes
// each that it gets. Then eight players want one each.
func muteStreams(e *env) figure {
	srv, l, stop, err := streamServer(stream.Config{MaxStreams: 16})
	if err != nil {
		return broken("%v", err)
	}
	defer stop()
	go func() {
		for {
			s, err := l.Accept()
			if err != nil {
				return
			}
			go func(s net.Conn) {
				_, _ = s.Write([]byte("hello"))
				_ = s.Close()
			}(s)
		}
	}()
	bad, stopBad, err := streamClient(srv.LocalAddr().String())
	if err != nil {
		return broken("%v", err)
	}
	defer stopBad()
	opened := make(chan int, 1)
	var open func()
	open = func() {
		c := bad.Server()
		if c == nil || !c.Joined() {
			bad.BeforeFlush(open)
			return
		}
		n := 0
		for ; n < 64; n++ {
			ch, err := c.Open(streamName, channel.Nop{})
			if err != nil {
				break
			}
			if _, err := ch.SendBunch(&bunch.Out{Data: []byte{1, 0, 0, 1, 0, 0, 0, 0, 0}, Reliable: true}); err != nil {
				break
			}
		}
		opened <- n
	}
	bad.Do(open)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	select {
	case n := <-opened:
		e.notef("%d streams opened by the mute client", n)
	case <-ctx.Done():
		return broken("the mute client never joined")
	}
	time.Sleep(100 * time.Millisecond) // its streams come first, most likely
	refused := 0
	for range 8 {
		good, stopGood, err := streamClient(srv.LocalAddr().String())
		if err != nil {
			return broken("%v", err)
		}
		c, err := stream.Dial(ctx, good, streamName, stream.Config{})
		if err == nil {
			var b []byte
			b, err = io.ReadAll(c)
			if err == nil && string(b) != "hello" {
				refused++
			}
		}
		stopGood()
		if err != nil {
			return broken("%v", err)
		}
	}
	return figure{value: float64(refused)}
}

// fullPath writes more than the path takes, and counts the turns of the driver's loop, which looks at the clock in each.
func fullPath(e *env) figure {
	a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	l := stream.Listen(streamName, stream.Config{})
	const rate = 20
	srv, err := driver.Listen("", driver.Config{Socket: a, Link: driver.PlainSalted{}, TickRate: rate, NetSpeed: 20_000, Channels: []channel.Type{l.Type()}})
	if err != nil {
		return broken("%v", err)
	}
	var looks atomic.Int64
	clock := func() time.Time { looks.Add(1); return time.Now() }
	cl, err := driver.Dial("127.0.0.1:7777", driver.Config{Socket: b, Link: driver.PlainSalted{}, TickRate: rate, NetSpeed: 20_000, Prompt: true, Clock: clock, Channels: []channel.Type{stream.Type(streamName)}})
	if err != nil {
		return broken("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	for _, d := range []*driver.Driver{srv, cl} {
		go func() { _ = d.Run(ctx, nil); done <- struct{}{} }()
	}
	defer func() { cancel(); <-done; <-done }()
	wait, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	c, err := stream.Dial(wait, cl, streamName, stream.Config{})
	if err != nil {
		return broken("%v", err)
	}
	go func() { _, _ = c.Write(make([]byte, 1<<20)) }()
	time.Sleep(time.Second)
	before, seconds := looks.Load(), e.pick(2, 5)
	time.Sleep(time.Duration(seconds) * time.Second)
	return figure{value: float64(looks.Load()-before) / float64(seconds*rate)}
}

// deadDial dials on a driver that is closed meanwhile, and on one that was.
func deadDial(*env) figure {
	_, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	d, err := driver.Dial("127.0.0.1:1", driver.Config{Socket: b, Link: driver.PlainSalted{}, Channels: []channel.Type{stream.Type(streamName)}})
	if err != nil {
		return broken("%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 2)
	dial := func() {
		_, err := stream.Dial(ctx, d, streamName, stream.Config{})
		ended <- err
	}
	go dial()
	if err := d.Close(); err != nil {
		return broken("%v", err)
	}
	go dial()
	waiting := 0
	for range 2 {
		<-ended
		if ctx.Err() != nil {
			waiting++
		}
	}
	return figure{value: float64(waiting)}
}
