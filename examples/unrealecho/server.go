package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// channelName is the name of the further channels: index 256, Unreal's Voice.
var channelName = bunch.Voice

func types(accept func(*channel.Channel) channel.Handler) []channel.Type {
	return []channel.Type{
		{Name: bunch.Control, ClientOpen: true, Static: true, Accept: accept},
		{Name: channelName, ClientOpen: true, Accept: accept},
	}
}

// releases is the wires that the probe speaks.
var releases = map[string]func(driver.Config) driver.Config{
	"4.27": driver.Unreal427,
	"5.1":  driver.Unreal51,
	"5.3":  func(c driver.Config) driver.Config { return driver.Unreal53(false, c) },
	"5.8":  func(c driver.Config) driver.Config { return driver.Unreal53(true, c) },
}

// wire is the settings of a release's wire.
func wire(release string, c driver.Config) (driver.Config, error) {
	set, ok := releases[release]
	if !ok {
		return c, fmt.Errorf("there is no wire of Unreal %q; there are %v", release, slices.Sorted(maps.Keys(releases)))
	}
	return set(c), nil
}

// config is the probe's own settings over those of a wire.
func config(c driver.Config) driver.Config {
	c.Protocol.CloseOnOverflow = false // a full buffer is for the echo to wait out
	c.NetSpeed = 4 << 20
	return c
}

// echoServer sends every message back on its channel, as reliably as it came.
type echoServer struct {
	joined, left           int
	bunches, bytes, failed int
	last                   netconn.CloseResult
}

func newServer(c driver.Config) (driver.Config, *echoServer) {
	s := &echoServer{}
	c = config(c)
	c.Channels = types(func(*channel.Channel) channel.Handler { return &echo{server: s} })
	c.RestartSequence = true
	c.Joined = func(*driver.Conn) { s.joined++ }
	c.Closed = func(_ *driver.Conn, r netconn.CloseResult) { s.left++; s.last = r }
	return c, s
}

// echo is one channel. What finds the reliable buffer full waits in later, in order.
type echo struct {
	channel.Nop
	server *echoServer
	later  [][]byte
}

// maxLater bounds what waits; beyond it the client sends without minding acks.
const maxLater = 1024

func (e *echo) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	b, _ := payload(in)
	if in.Close || in.Bits == 0 {
		return
	}
	e.server.bunches++
	e.server.bytes += len(b)
	if in.Reliable && len(e.later) > 0 {
		e.wait(b)
		return
	}
	if !e.send(ch, b, in.Bits, in.Reliable) && in.Reliable {
		e.wait(b)
	}
}

func (e *echo) wait(b []byte) {
	if len(e.later) == maxLater {
		e.server.failed++
		return
	}
	e.later = append(e.later, b)
}

func (e *echo) send(ch *channel.Channel, b []byte, bits int, reliable bool) bool {
	_, err := ch.SendBunch(&bunch.Out{Data: b, Bits: bits, Reliable: reliable, NoMerge: true})
	return err == nil
}

func (e *echo) ReceivedAck(ch *channel.Channel, _ int64) {
	for len(e.later) > 0 && e.send(ch, e.later[0], len(e.later[0])*8, true) {
		e.later = e.later[1:]
	}
}
