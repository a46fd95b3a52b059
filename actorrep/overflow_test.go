package actorrep_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
)

// freight is an actor with much of everything: values above a packet, openings in several bunches and large calls.
type freight struct {
	actorrep.Base
	A, B, C, D, E, F []byte `net:"cap=8000"`
	N                uint32 `net:""`
}

// yard is a server and a client with Unreal's policies: a full reliable buffer ends the connection.
type yard struct {
	server, client *actorrep.World
	peer           *actorrep.Peer
	s, c           *netconn.Conn
	now            time.Duration
	dark           bool
	sent, removeAt int // packets that the server has sent, and at which of them the game removes the connection; 0 never
	up, down       [][]byte
	took, asked    []uint32 // calls that came to the client, and to the server
	send, ask      *actorrep.RPC[*freight, load]
	failed         []error
}

type load struct {
	N    uint32
	Data []byte `net:"cap=30000"`
}

func newYard(t *testing.T, buffer, packet, channels, classes int, overflow actorrep.Overflow) *yard {
	y := &yard{now: time.Second}
	y.send = actorrep.MulticastRPC(func(c actorrep.Call, _ *freight, p load) error {
		if !c.World.IsServer() {
			y.took = append(y.took, p.N)
		}
		return nil
	}, actorrep.Reliable, actorrep.OnOverflow(overflow))
	y.ask = actorrep.ServerRPC(func(_ actorrep.Call, _ *freight, p load) error {
		y.asked = append(y.asked, p.N)
		return nil
	}, actorrep.Reliable, actorrep.AnyClient, actorrep.RateLimit(1000, 1000), actorrep.OnOverflow(overflow))
	register := func(w *actorrep.World) {
		require.NoError(t, w.Register("freight", (*freight)(nil), actorrep.RPCs{"Send": y.send, "Ask": y.ask}))
		for i := range min(classes, len(fillers)) {
			rpcs := actorrep.RPCs{}
			for n := range 50 {
				rpcs[fmt.Sprint(n, strings.Repeat("x", 250))] = fillers[i].wait
			}
			require.NoError(t, w.Register(fmt.Sprint("filler", i), fillers[i].a, rpcs))
		}
	}
	cfg := actorrep.Config{Failed: func(err error) { y.failed = append(y.failed, err) }}
	y.server, y.client = actorrep.NewServer(cfg), actorrep.NewClient(cfg)
	register(y.server)
	register(y.client)
	proto := netconn.Unreal51()
	proto.ReliableBuffer, proto.StrictControl = buffer, false
	proto.Bunch.MaxPacket = packet
	var err error
	y.s, err = netconn.New(netconn.Config{Protocol: proto, Server: true, NetSpeed: 1 << 30, MaxChannels: channels, Channels: y.server.ChannelTypes(), LowLevelSend: func(p []byte) {
		if y.sent++; y.sent == y.removeAt {
			y.server.RemoveConn(y.peer)
		}
		if !y.dark {
			y.down = append(y.down, append([]byte(nil), p...))
		}
	}, Closed: func(netconn.CloseResult) { y.server.RemoveConn(y.peer) }}, y.now, 1, 1)
	require.NoError(t, err)
	y.c, err = netconn.New(netconn.Config{Protocol: proto, MaxChannels: channels, Channels: y.client.ChannelTypes(), LowLevelSend: func(p []byte) {
		if !y.dark {
			y.up = append(y.up, append([]byte(nil), p...))
		}
	}}, y.now, 1, 1)
	require.NoError(t, err)
	y.peer = y.server.AddConn(y.s)
	return y
}

func (y *yard) step() {
	y.now += 33 * time.Millisecond
	for _, p := range y.up {
		_ = y.s.ReceivedPacket(y.now, p)
	}
	for _, p := range y.down {
		_ = y.c.ReceivedPacket(y.now, p)
	}
	y.up, y.down = y.up[:0], y.down[:0]
	y.s.PostTickDispatch(y.now)
	y.c.PostTickDispatch(y.now)
	y.client.Step(y.now)
	y.server.Step(y.now)
	y.s.Tick(y.now)
	y.c.Tick(y.now)
}

// TestNoChannelLeft: where more actors are relevant than a connection has channels, the game is told once, Explain says so of each that waits, and each comes
// when another one goes.
func TestNoChannelLeft(t *testing.T) {
	y := newYard(t, 256, 1024, 40, 0, actorrep.Refuse)
	var all []*freight
	for range 50 {
		f := &freight{}
		require.NoError(t, y.server.Spawn(f))
		all = append(all, f)
	}
	run := func() {
		for range 60 {
			y.step()
		}
	}
	run()
	there := y.client.Len()
	require.Equal(t, 38, there) // besides channel 0 and the replication channel
	waiting := 0
	for _, f := range all {
		if e := y.server.Explain(y.peer, f); !y.peer.Has(f) {
			waiting++
			require.Equal(t, actorrep.ReasonNoRoom, e.Reason, e.Text)
		}
	}
	require.Equal(t, len(all)-there, waiting)
	require.Len(t, y.failed, 1)
	require.ErrorIs(t, y.failed[0], channel.ErrNoIndex)
	for _, f := range all {
		if y.peer.Has(f) {
			require.NoError(t, y.server.Destroy(f))
		}
	}
	run()
	require.Equal(t, waiting, y.client.Len())
	require.Len(t, y.failed, 1)
}

type filler[T any] struct {
	actorrep.Base
	V T `net:""`
}

// wide is a class with a long description.
type wide struct {
	a    actorrep.Actor
	wait actorrep.Procedure
}

func newFiller[T any]() wide {
	return wide{(*filler[T])(nil), actorrep.MulticastRPC(func(actorrep.Call, *filler[T], int8) error { return nil })}
}

var fillers = []wide{newFiller[int8](), newFiller[int16](), newFiller[int32](), newFiller[int64](), newFiller[uint8](), newFiller[uint16](), newFiller[uint32](), newFiller[uint64]()}

// yards is small limits under which an end that takes no heed of the room breaks its own.
var yards = []struct{ buffer, packet, channels, classes int }{{256, 1024, 0, 0}, {64, 512, 0, 8}, {128, 256, 40, 8}, {64, 1024, 10, 2}}

// busy makes actors, changes them and calls, some of it in the dark.
func (y *yard) busy(t *testing.T, steps int) (sent []uint32, actors []*freight) {
	var open []*freight
	for i := range steps {
		y.dark = i%40 > 25
		if i%5 == 0 && i < 100 {
			f := &freight{N: uint32(i)}
			for _, b := range []*[]byte{&f.A, &f.B, &f.C, &f.D, &f.E, &f.F} {
				*b = make([]byte, i*70)
			}
			require.NoError(t, y.server.Spawn(f))
			actors = append(actors, f)
		}
		open = open[:0]
		for _, f := range actors {
			f.N++
			f.A = append(f.A[:0:0], f.A...)
			if len(f.A) > 0 {
				f.A[i%len(f.A)]++
			}
			if !y.s.Closed() && y.peer.Has(f) {
				open = append(open, f)
			}
		}
		if len(open) > 0 {
			f := open[i%len(open)]
			for n := range 3 {
				id := uint32(i*3 + n)
				if err := y.send.Call(f, load{id, make([]byte, i*37%8000)}); err == nil {
					sent = append(sent, id)
				}
			}
		}
		y.step()
	}
	y.dark = false
	return sent, actors
}

// TestNoOverflowOfOurs: with Unreal's policies and small limits, no amount of values, openings, classes and calls of the game overflows a
// channel, which would end the connection; what was accepted arrives.
func TestNoOverflowOfOurs(t *testing.T) {
	for _, c := range yards {
		y := newYard(t, c.buffer, c.packet, c.channels, c.classes, actorrep.Refuse)
		sent, actors := y.busy(t, 300)
		most := len(actors)
		if c.channels > 0 && c.channels-2 < most {
			most = c.channels - 2
			require.Len(t, y.failed, 1, "%+v", c)
			require.ErrorIs(t, y.failed[0], channel.ErrNoIndex)
			y.failed = nil
		}
		for range 600 {
			y.step()
		}
		require.False(t, y.s.Closed(), "%+v: %v", c, y.s.Result())
		require.False(t, y.c.Closed(), "%+v: %v", c, y.c.Result())
		require.Greater(t, len(sent), 300, "%+v", c)
		require.ElementsMatch(t, sent, y.took, "%+v", c)
		require.Empty(t, y.failed, "%+v", c)
		n := 0
		for _, f := range actors {
			if m, ok := y.client.Find(f.GUID()).(*freight); ok {
				n++
				require.Equal(t, []string{string(f.A), string(f.F)}, []string{string(m.A), string(m.F)})
			}
		}
		require.GreaterOrEqual(t, n, most, "%+v", c)
	}
}

// TestRemovedAmidStep: the game removes the connection amid a Step, in each of the packets that are sent then: it neither fails nor sends more,
// nor keeps anything of the connection.
func TestRemovedAmidStep(t *testing.T) {
	for _, overflow := range []actorrep.Overflow{actorrep.Refuse, actorrep.CloseConn} {
		for _, c := range yards {
			for at := 1; at < 400; at += 1 + at/5 {
				y := newYard(t, c.buffer, c.packet, c.channels, c.classes, overflow)
				y.removeAt = at
				_, actors := y.busy(t, 60)
				if y.sent < at {
					require.Greater(t, at, 40, "%+v", c)
					break
				}
				require.False(t, y.peer.Has(actors[0]), "%+v", c)
				for _, f := range actors {
					require.NoError(t, y.server.Destroy(f))
				}
				y.step()
				require.Zero(t, y.server.Len())
				n := 0
				y.server.Peers(func(*actorrep.Peer) bool { n++; return true })
				require.Zero(t, n, "%+v at %d", c, at)
			}
		}
	}
}

// TestNoOverflowOfAClient: with Unreal's policies and small limits no amount of a client's reliable calls overflows a channel, which would end the connection;
// what was accepted runs, in order, once.
func TestNoOverflowOfAClient(t *testing.T) {
	for _, c := range yards {
		y := newYard(t, c.buffer, c.packet, c.channels, 0, actorrep.Refuse)
		f := &freight{}
		require.NoError(t, y.server.Spawn(f))
		for range 20 {
			y.step()
		}
		mine := y.client.Find(f.GUID()).(*freight)
		var sent []uint32
		for i := range 200 {
			y.dark = i%40 > 25
			for n := range 3 {
				id := uint32(i*3 + n)
				if err := y.ask.Call(mine, load{id, make([]byte, i*37%1500)}); err == nil {
					sent = append(sent, id)
				}
			}
			y.step()
		}
		y.dark = false
		for n := 0; n < 3000 && len(y.asked) < len(sent); n++ {
			y.step()
		}
		require.False(t, y.s.Closed(), "%+v: %v", c, y.s.Result())
		require.False(t, y.c.Closed(), "%+v: %v", c, y.c.Result())
		require.Greater(t, len(sent), 100, "%+v", c)
		require.Equal(t, sent, y.asked, "%+v", c)
		require.Empty(t, y.failed, "%+v", c)
	}
}
