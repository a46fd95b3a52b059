package main

import (
	"cmp"
	"encoding/binary"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// rig is two honest connections, a client (0) and a server (1), and a network between them in virtual time.
type rig struct {
	now, tick time.Duration
	conns     [2]*netconn.Conn
	links     [2]*netsim.Link // by who sends
	dark      [2]bool         // what that end sends is lost
	lose      [2]int          // so many of its next packets are lost
	asleep    [2]bool         // that end has no tick, and what it is sent waits
	offered   [2]int          // bytes that each end sent, IP and UDP headers included
	results   [2]*netconn.CloseResult
}

// newRig is a rig with the same network both ways, and sequences that begin anywhere.
func newRig(e *env, net netsim.Settings, edit func(i int, c *netconn.Config)) (*rig, error) {
	return newRigAt(e, net, [2]uint16{uint16(e.rng.Uint32N(1 << 14)), uint16(e.rng.Uint32N(1 << 14))}, edit)
}

// newRigAt is a rig whose ends number their packets from first on.
func newRigAt(e *env, net netsim.Settings, first [2]uint16, edit func(i int, c *netconn.Config)) (*rig, error) {
	r := &rig{tick: tick}
	for i := range r.conns {
		link, err := netsim.NewLink(net, e.rng.Uint64())
		if err != nil {
			return nil, err
		}
		r.links[i] = link
		cfg := netconn.Config{Server: i == 1, Closed: func(res netconn.CloseResult) { r.results[i] = &res },
			Channels: []channel.Type{
				{Name: bunch.Control, ClientOpen: true, Static: true},
				{Name: dataName, ClientOpen: true, ServerOpen: true},
			},
			LowLevelSend: func(p []byte) {
				r.offered[i] += len(p) + 28
				if r.lose[i] > 0 {
					r.lose[i]--
				} else if !r.dark[i] {
					r.links[i].Push(r.now, p)
				}
			}}
		if edit != nil {
			edit(i, &cfg)
		}
		bucketed(&cfg)
		if r.conns[i], err = netconn.New(cfg, 0, first[1-i], first[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// step is one tick of both ends: packets in, game, packets out. game may be nil.
func (r *rig) step(game func()) {
	r.now += r.tick
	for i, c := range r.conns {
		if r.asleep[i] {
			continue
		}
		from := r.links[1-i]
		for p, ok := from.Pop(r.now); ok; p, ok = from.Pop(r.now) {
			_ = c.ReceivedPacket(r.now, p) // what is wrong with it is in the counters
		}
		c.PostTickDispatch(r.now)
	}
	if game != nil {
		game()
	}
	for i, c := range r.conns {
		if !r.asleep[i] {
			c.Tick(r.now)
		}
	}
}

// hello opens the control channel, as a client does first of all.
func (r *rig) hello() error {
	ctl, err := r.conns[0].Open(bunch.Control, channel.Nop{})
	if err == nil {
		_, err = ctl.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	}
	return err
}

// join is 5 s with hello, and until the server has the control channel, as a driver waits for its login: with Unreal's protocols a bunch of another
// channel before that breaks the protocol, and where a quarter of the packets is lost the open may take longer.
func (r *rig) join() error {
	err := r.hello()
	for err == nil && !r.over() && (r.now < 5*time.Second || r.conns[1].Channel(0) == nil) {
		r.step(nil)
	}
	return err
}

// tuning is how a connection times its acks and its packets, and what it does about lost ones, for attacks that draw it.
type tuning struct {
	AckDelay, ReorderWindow, KeepAlive time.Duration
	OrderCache                         int
	NoPacketInfo                       bool
	Coding                             netconn.Coding // these two but with Unreal's wire
	Secret                             uint64
}

func anyTuning(e *env) (s tuning) {
	ms := func(list ...int) time.Duration { return time.Duration(list[e.rng.IntN(len(list))]) * time.Millisecond }
	s.AckDelay, s.ReorderWindow = ms(0, 20, 100), ms(0, 0, 30, 100)
	s.OrderCache = []int{0, -1, 8, 128}[e.rng.IntN(4)]
	s.KeepAlive, s.NoPacketInfo = ms(10, 200, 1000), e.rng.IntN(2) == 0
	s.Coding = netconn.Coding{Repairs: []float64{0, 0.3, 1, 3}[e.rng.IntN(4)], Adaptive: e.rng.IntN(2) == 0}
	s.Secret = e.rng.Uint64() * e.rng.Uint64N(2)
	return s
}

// give sets what the wire at hand, which is in c already, has.
func (s tuning) give(c *netconn.Config) {
	c.AckDelay, c.ReorderWindow, c.OrderCache, c.KeepAlive, c.NoPacketInfo = s.AckDelay, s.ReorderWindow, s.OrderCache, s.KeepAlive, s.NoPacketInfo
	if !c.Protocol.Unreal {
		c.Coding, c.Secret = s.Coding, s.Secret
	}
}

// bucketed gives a Config without a controller Unreal's bucket at 100 kB/s: an end that doesn't give way.
func bucketed(c *netconn.Config) {
	if c.Controller == nil {
		c.NetSpeed = cmp.Or(c.NetSpeed, 100_000)
	}
}

// adaptive is the controller that finds the bandwidth of a path, the default.
func adaptive() congestion.Controller { return adaptiveFrom(0) }

// adaptiveFrom is that with a MinRate in bytes a second; 0 is the default.
func adaptiveFrom(least int) congestion.Controller {
	c, err := congestion.NewAdaptive(congestion.AdaptiveConfig{MinRate: least})
	if err != nil {
		panic(err) // those that are given are in range
	}
	return c
}

// over reports whether one of the ends has ended.
func (r *rig) over() bool { return r.results[0] != nil || r.results[1] != nil }

// numbers is a handler that checks numbered messages: a number in the first 8 bytes of each.
type numbers struct {
	channel.Nop
	next     uint64 // in order
	got      map[uint64]int
	disorder int
}

// ReceivedBunch notes the number of a message.
func (n *numbers) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	v := in.Data.ReadUint64()
	if v != n.next {
		n.disorder++
	}
	n.next = v + 1
	if n.got != nil {
		n.got[v]++
	}
}

// numbered is a message of some size with a number in it.
func numbered(v uint64, size int) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, max(size, 8)), v)[:max(size, 8)]
}
