package main

import (
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// wire is an end's connection.
type wire struct {
	conn *netconn.Conn
	from *netsim.Link // what comes
}

// connect makes a connection of two worlds over a path there and back, whose time is *now.
func connect(now *time.Duration, set netsim.Settings, rng *rand.Rand, server, client *actorrep.World) (s, c wire, err error) {
	if s.from, err = netsim.NewLink(set, rng.Uint64()); err != nil {
		return s, c, err
	}
	if c.from, err = netsim.NewLink(set, rng.Uint64()); err != nil {
		return s, c, err
	}
	in, out := uint16(rng.UintN(16384)), uint16(rng.UintN(16384))
	if s.conn, err = netconn.New(netconn.Config{Protocol: netconn.Bunchnet(), Server: true, NetSpeed: 1 << 20, Channels: server.ChannelTypes(),
		LowLevelSend: func(p []byte) { c.from.Push(*now, p) }}, 0, in, out); err != nil {
		return s, c, err
	}
	c.conn, err = netconn.New(netconn.Config{Protocol: netconn.Bunchnet(), NetSpeed: 1 << 20, Channels: client.ChannelTypes(),
		LowLevelSend: func(p []byte) { s.from.Push(*now, p) }}, 0, out, in)
	return s, c, err
}

// receive takes what has come; at is the time of this end's own clock.
func (w *wire) receive(now, at time.Duration) {
	for p, ok := w.from.Pop(now); ok; p, ok = w.from.Pop(now) {
		_ = w.conn.ReceivedPacket(at, p) // what is wrong with a packet ends the connection
	}
	w.conn.PostTickDispatch(at)
}
