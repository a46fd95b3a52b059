package actorrep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// lamp is an actor whose calls end connections that don't keep up.
type lamp struct {
	actorrep.Base
	On   bool   `net:""`
	A, B []byte `net:""`
}

// TestRemovedAsItEnds: a game removes a connection when it is told that it has ended, also when a call has ended it, and the call goes on to the others.
func TestRemovedAsItEnds(t *testing.T) {
	flash := actorrep.MulticastRPC(func(actorrep.Call, *lamp, uint32) error { return nil }, actorrep.Reliable, actorrep.OnOverflow(actorrep.CloseConn))
	register := func(w *actorrep.World) error {
		return w.Register("lamp", (*lamp)(nil), actorrep.RPCs{"Flash": flash})
	}
	server := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, register(server))
	type line struct {
		peer   *actorrep.Peer
		s, c   *netconn.Conn
		client *actorrep.World
		ended  int
	}
	now, dark := time.Second, false
	var lines []*line
	for range 3 {
		l := &line{client: actorrep.NewClient(actorrep.Config{})}
		require.NoError(t, register(l.client))
		proto := netconn.Bunchnet()
		proto.ReliableBuffer = 16
		var err error
		l.s, err = netconn.New(netconn.Config{Protocol: proto, Server: true, NetSpeed: 1 << 30, Channels: server.ChannelTypes(), LowLevelSend: func(p []byte) {
			if !dark {
				_ = l.c.ReceivedPacket(now, p)
			}
		}, Closed: func(netconn.CloseResult) {
			l.ended++
			server.RemoveConn(l.peer)
		}}, now, 1, 1)
		require.NoError(t, err)
		l.c, err = netconn.New(netconn.Config{Protocol: proto, Channels: l.client.ChannelTypes(), LowLevelSend: func(p []byte) {
			if !dark {
				_ = l.s.ReceivedPacket(now, p)
			}
		}}, now, 1, 1)
		require.NoError(t, err)
		l.peer = server.AddConn(l.s)
		lines = append(lines, l)
	}
	step := func() {
		now += 33 * time.Millisecond
		for _, l := range lines {
			l.client.Step(now)
		}
		server.Step(now)
		for _, l := range lines {
			l.s.Tick(now)
			l.c.Tick(now)
		}
	}
	a := &lamp{}
	require.NoError(t, server.Spawn(a))
	for range 10 {
		step()
	}
	dark = true
	for i := range uint32(200) {
		for range 20 {
			_ = flash.Call(a, i)
		}
		step()
	}
	for _, l := range lines {
		require.Equal(t, 1, l.ended)
		require.Equal(t, netconn.WeBroke, l.s.Result().Code, "%v", l.s.Result())
	}
}

// openings notes which actors' channels are opened.
type openings []netguid.GUID

func (o *openings) Opening(conn channel.Conn, id netguid.GUID, ch uint32, units layout.Mask) {
	*o = append(*o, id)
}
func (*openings) Sent(channel.Conn, int64, []bridge.Sent)                        {}
func (*openings) Carried(channel.Conn, uint32, int64, layout.Mask)               {}
func (*openings) Closing(channel.Conn, uint32, channel.CloseReason)              {}
func (*openings) Unsaid(netguid.GUID, string, *layout.Layout, layout.Mask, bool) {}
func (*openings) Set(channel.Conn, netguid.GUID, layout.Mask)                    {}
func (*openings) Waits(bridge.Wait) bool                                         { return false }
func (*openings) Why(bridge.Wait, string)                                        {}
func (*openings) Room() bool                                                     { return false }
func (*openings) Waited(channel.Conn)                                            {}
func (*openings) Stepping()                                                      {}
func (*openings) Called(bridge.Call)                                             {}
func (*openings) Corrected(channel.Conn, netguid.GUID, float64, []string)        {}

// TestActorsOfAnEndedConnection: a connection that has ended and isn't removed yet stands whatever becomes of its actors; what an observer sees opened is
// what there was.
func TestActorsOfAnEndedConnection(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{RelevantTimeout: -1})
	var seen openings
	bridge.Observe.(func(*actorrep.World, bridge.Observer))(w.Server, &seen)
	l := w.join()
	var rocks []*rock
	var ids openings
	for n := range uint16(6) {
		rocks = append(rocks, &rock{Size: n + 1})
		require.NoError(t, w.Server.Spawn(rocks[n]))
		ids = append(ids, rocks[n].GUID())
	}
	w.converge()
	require.ElementsMatch(t, ids, seen)
	require.NoError(t, rocks[0].SetDormant(true))
	for range 20 {
		w.Step()
	}
	l.S.Close(w.Now, "")
	for now := w.Now; !l.S.Closed(); now += time.Second {
		l.S.Tick(now)
	}
	steps := func() {
		for range 3 {
			w.Now += tick
			w.Server.Step(w.Now)
		}
	}
	require.NoError(t, w.Server.Destroy(rocks[1]))
	require.NoError(t, rocks[2].TearOff())
	require.NoError(t, rocks[3].SetDormant(true))
	rocks[4].SetOnlyOwner(true)
	rocks[5].Size++
	rocks[0].Size++
	rocks[0].FlushDormancy()
	steps()
	for _, a := range rocks {
		require.NoError(t, w.Server.Destroy(a))
	}
	steps()
	require.Contains(t, w.Server.Explain(l.Peer, &rock{}).Text, "not spawned")
	w.Server.RemoveConn(l.Peer)
	steps()
	w.Server.Consistent(t)
	require.Zero(t, w.Server.Len())
}

// heard notes the calls that an observer hears of.
type heard struct {
	openings
	calls []bridge.Call
}

func (h *heard) Called(c bridge.Call) { h.calls = append(h.calls, c) }

// TestCallsAreObserved: an observer at a server hears of each unreliable call that goes to a client once, with the packet that it is in. One at a client
// hears of each call that goes to the server.
func TestCallsAreObserved(t *testing.T) {
	hail := actorrep.MulticastRPC(func(actorrep.Call, *rock, uint8) error { return nil })
	dig := actorrep.ServerRPC(func(actorrep.Call, *rock, uint8) error { return nil }, actorrep.AnyClient)
	mine := actorrep.ServerRPC(func(actorrep.Call, *rock, uint8) error { return nil }, actorrep.AnyClient, actorrep.Reliable)
	w := newWorld(t, 1, clean, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("rock", (*rock)(nil), actorrep.RPCs{"Hail": hail, "Dig": dig, "Mine": mine}))
	})
	var h heard
	bridge.Observe.(func(*actorrep.World, bridge.Observer))(w.Server, &h)
	w.join()
	a := &rock{Size: 1}
	require.NoError(t, w.Server.Spawn(a))
	w.converge()
	for range 10 { // its opening is acked
		w.Step()
	}
	for n := range 8 {
		h.calls = nil
		require.NoError(t, hail.Call(a, uint8(n)))
		if n%2 == 0 {
			a.Size++ // it goes with a value
		}
		w.Step()
		require.Len(t, h.calls, 1)
		c := h.calls[0]
		require.Positive(t, c.Packet)
		require.Equal(t, []any{a.GUID(), "rock", "Hail", false, false, ""}, []any{c.Actor, c.Class, c.Procedure, c.Reliable, c.Came, c.Refused})
		w.Step()
		require.Len(t, h.calls, 1)
	}
	var there heard
	client := w.Lines[0].World
	bridge.Observe.(func(*actorrep.World, bridge.Observer))(client, &there)
	for _, c := range []struct {
		name     string
		call     func(*rock, uint8) error
		reliable bool
	}{{"Dig", dig.Call, false}, {"Mine", mine.Call, true}} {
		h.calls, there.calls = nil, nil
		require.NoError(t, c.call(client.Find(a.GUID()).(*rock), 1))
		for range 10 {
			w.Step()
		}
		require.Len(t, there.calls, 1)
		require.Len(t, h.calls, 1)
		sent, came := there.calls[0], h.calls[0]
		require.Positive(t, sent.Packet)
		require.Equal(t, []any{a.GUID(), "rock", c.name, c.reliable, false}, []any{sent.Actor, sent.Class, sent.Procedure, sent.Reliable, sent.Came})
		require.Equal(t, []any{a.GUID(), "rock", c.name, c.reliable, true}, []any{came.Actor, came.Class, came.Procedure, came.Reliable, came.Came})
	}
}

// TestClientsCloseNothing: a client that closes the replication channel, or an actor's, loses its connection.
func TestClientsCloseNothing(t *testing.T) {
	for _, name := range []bunch.Name{actorrep.ReplicationName, bunch.Actor} {
		w := newWorld(t, 1, clean, actorrep.Config{})
		l := w.join()
		require.NoError(t, w.Server.Spawn(&rock{Size: 3}))
		w.converge()
		for ch := range l.S.Table().All {
			if ch.Name() == name {
				ch.Handler().Closed(ch, bunch.Destroyed) // what a bunch does that an honest client can't send
			}
		}
		w.Await("the end", w.Rig.Step, l.S.Closed)
		require.EqualValues(t, 1, w.Server.Counters.Bad)
	}
}

// TestAckOfAFormerChannel: an ack of the channel that an actor had before it slept says nothing of the one on which it wakes.
func TestAckOfAFormerChannel(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{Lag: 200 * time.Millisecond}, actorrep.Config{})
	l := w.join()
	a := &rock{Size: 3}
	require.NoError(t, w.Server.Spawn(a))
	w.converge()
	explained := func(r actorrep.Reason) func() bool {
		return func() bool { return w.Server.Explain(l.Peer, a).Reason == r }
	}
	w.Await("rest", w.Step, explained(actorrep.ReasonUpToDate))
	require.NoError(t, a.SetDormant(true))
	w.Await("sleep", w.Step, explained(actorrep.ReasonDormant))
	a.Size = 4
	require.NoError(t, a.SetDormant(false))
	w.Await("its opening", w.Step, explained(actorrep.ReasonOpening))
	former := 0
	for ch := range l.S.Table().All {
		if ch.Name() == bunch.Actor && ch.Closing() {
			former++
			require.True(t, ch.OpenAcked())
			ch.Handler().ReceivedAck(ch, 0)
		}
	}
	require.Equal(t, 1, former)
	require.True(t, explained(actorrep.ReasonOpening)())
	w.converge()
}
