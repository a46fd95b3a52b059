package lockstep_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/lockstep"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestOverConnections plays a game of three over channels of connections that lose 20 % of their packets.
func TestOverConnections(t *testing.T) {
	const players, turns, seed = 3, 200, 6
	name := bunch.Name{Index: 330}
	var now time.Duration
	cfg := lockstep.Config{Players: players, Protocol: 1}
	host, err := lockstep.NewHost(lockstep.HostConfig{Config: cfg}, nil)
	require.NoError(t, err)
	type line struct {
		conns [2]*netconn.Conn
		links [2]*netsim.Link
		peer  *lockstep.Peer
		sum   uint64
	}
	lines := make([]*line, players)
	for i := range lines {
		l := &line{}
		lines[i] = l
		up, down := &lockstep.OnChannel{}, &lockstep.OnChannel{}
		down.Received = func(p []byte) { _ = host.Receive(now, i, p) }
		types := []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler {
			require.NoError(t, host.Connect(i, down))
			return down
		}}}
		for end := range l.conns {
			l.links[end], err = netsim.NewLink(netsim.Settings{Loss: 20, Dup: 5, Lag: 20 * time.Millisecond, LagVariance: 10 * time.Millisecond}, uint64(seed+10*i+end))
			require.NoError(t, err)
			l.conns[end], err = netconn.New(netconn.Config{Server: end == 1, Channels: types, LowLevelSend: func(p []byte) { l.links[end].Push(now, p) }}, 0, 1, 1)
			require.NoError(t, err)
		}
		l.peer, err = lockstep.NewPeer(lockstep.PeerConfig{Config: cfg, Player: i, Session: 1}, up)
		require.NoError(t, err)
		up.Received = func(p []byte) { _ = l.peer.Receive(now, p) }
		_, err = l.conns[0].Open(name, up)
		require.NoError(t, err)
	}
	done := func() bool {
		for _, l := range lines {
			if l.peer.Turn() < turns {
				return false
			}
		}
		return true
	}
	for started := false; !done(); now += 10 * time.Millisecond {
		require.Less(t, now, 2*time.Minute, "seed %d", seed)
		for _, l := range lines {
			for end, c := range l.conns {
				for p, ok := l.links[1-end].Pop(now); ok; p, ok = l.links[1-end].Pop(now) {
					_ = c.ReceivedPacket(now, p)
				}
				c.PostTickDispatch(now)
			}
			for turn, ok := l.peer.Next(); ok && l.peer.Turn() <= turns; turn, ok = l.peer.Next() {
				for player, cmd := range turn.Commands() {
					for _, b := range cmd {
						l.sum = l.sum*31 + uint64(b) + uint64(player)
					}
				}
				if turn.N%3 == 0 {
					require.NoError(t, l.peer.Submit(fmt.Appendf(nil, "cmd %d", turn.N)))
				}
				require.NoError(t, l.peer.Done(l.sum))
			}
			l.peer.Tick(now)
		}
		if !started && host.Ready() == 1<<players-1 {
			host.Start(now)
			started = true
		}
		host.Tick(now)
		for _, l := range lines {
			for _, c := range l.conns {
				c.Tick(now)
				require.False(t, c.Closed(), "%v", c.Result())
			}
			require.NoError(t, l.peer.Err())
		}
	}
	for _, l := range lines[1:] {
		require.Equal(t, lines[0].sum, l.sum, "seed %d: the games differ", seed)
	}
	require.NotZero(t, lines[0].sum)
	t.Logf("%d turns in %v", turns, now)
}

// TestOnTwoChannels: an OnChannel isn't given to a second channel, which is told, and the first goes on; once that is closed it may have another.
func TestOnTwoChannels(t *testing.T) {
	name := bunch.Name{Index: 330}
	o := &lockstep.OnChannel{}
	var conns [2]*netconn.Conn
	for i := range conns {
		var err error
		conns[i], err = netconn.New(netconn.Config{Channels: []channel.Type{{Name: name, ClientOpen: true}}, LowLevelSend: func([]byte) {}}, 0, 1, 1)
		require.NoError(t, err)
		if _, err = conns[i].Open(name, o); i == 1 {
			require.ErrorContains(t, err, "another channel")
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, o.Send(0, []byte("turn")))
	}
	conns[0].Abort(0, "enough")
	require.ErrorIs(t, o.Send(0, []byte("turn")), channel.ErrClosed)
	_, err := conns[1].Open(name, o)
	require.NoError(t, err)
	require.NoError(t, o.Send(0, []byte("turn")))
}

// carry is a tick of 20 ms of two connections that send into wire.
func carry(now *time.Duration, conns [2]*netconn.Conn, wire *[2][][]byte) {
	*now += 20 * time.Millisecond
	for i, c := range conns {
		for _, p := range wire[1-i] {
			_ = c.ReceivedPacket(*now, p)
		}
		wire[1-i] = nil
		c.PostTickDispatch(*now)
		c.Tick(*now)
	}
}

// refused counts packets that were lost, or that the peer refused.
type refused struct {
	lockstep.OnChannel
	naks int
}

func (r *refused) ReceivedNak(*channel.Channel, int64) { r.naks++ }

// TestOnlyPackets: an OnChannel takes unreliable bunches of whole bytes, counts the largest once, and says by a reliable bunch that it is open at the end that has opened it alone. It is ready as its
// connection is.
func TestOnlyPackets(t *testing.T) {
	name := bunch.Name{Index: 330}
	var now time.Duration
	var conns [2]*netconn.Conn
	var wire [2][][]byte
	var got []int
	up, down := &lockstep.OnChannel{}, &lockstep.OnChannel{Received: func(p []byte) { got = append(got, len(p)) }}
	for i := range conns {
		var err error
		conns[i], err = netconn.New(netconn.Config{Server: i == 1, Channels: []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return down }}},
			LowLevelSend: func(p []byte) { wire[i] = append(wire[i], append([]byte(nil), p...)) }}, 0, 1, 1)
		require.NoError(t, err)
	}
	step := func() { carry(&now, conns, &wire) }
	require.False(t, up.Ready())
	ch, err := conns[0].Open(name, up)
	require.NoError(t, err)
	step()
	step()
	require.EqualValues(t, 1, conns[0].Table().Counters.SentReliable)
	require.Zero(t, conns[1].Table().Counters.SentReliable)
	require.True(t, up.Ready())
	require.True(t, down.Ready())
	held := conns[1].Stats().Held
	for _, out := range []bunch.Out{{Bits: 12}, {Bits: 16, Reliable: true}, {Bits: 16}, {Bits: 800}, {Bits: 2400}, {Bits: 800}} {
		out.Data, out.NoMerge = make([]byte, (out.Bits+7)/8), true
		_, err := ch.SendBunch(&out)
		require.NoError(t, err)
		step()
		step()
	}
	require.Equal(t, []int{2, 100, 300, 100}, got)
	require.Equal(t, 300, conns[1].Stats().Held-held)
	for up.Ready() {
		require.NoError(t, up.Send(now, make([]byte, 500)))
	}
	require.False(t, conns[0].IsNetReady())
}

// TestLargestPacketCounts: what an OnChannel keeps to receive packets in counts within MaxMemory, however many channels a peer opens and whatever it sends there; and a
// closed one keeps nothing. Without Received the connection ends.
func TestLargestPacketCounts(t *testing.T) {
	name := bunch.Name{Index: 330}
	var now time.Duration
	var conns [2]*netconn.Conn
	var wire [2][][]byte
	received, forgotten := 0, false
	for i := range conns {
		var err error
		conns[i], err = netconn.New(netconn.Config{Server: i == 1, MaxMemory: []int{8 << 20, 1 << 20}[i], NetSpeed: 1 << 24, Channels: []channel.Type{
			{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler {
				o := &lockstep.OnChannel{}
				if !forgotten {
					o.Received = func([]byte) { received++ }
				}
				return o
			}}}, LowLevelSend: func(p []byte) { wire[i] = append(wire[i], append([]byte(nil), p...)) }}, 0, 1, 1)
		require.NoError(t, err)
	}
	step := func() { carry(&now, conns, &wire) }
	var outs []*channel.Channel
	for range 20 {
		o := &refused{}
		ch, err := conns[0].Open(name, o)
		require.NoError(t, err)
		for range 20 {
			step()
		}
		before, had := conns[1].Stats().Held, received
		_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 60_000), StayUnreliable: true})
		require.NoError(t, err)
		for range 20 {
			step()
		}
		require.Equal(t, received == had, o.naks > 0, "without room it counts as lost")
		if received > had {
			outs = append(outs, ch)
			require.Greater(t, conns[1].Stats().Held-before, 50_000)
		}
	}
	require.Greater(t, len(outs), 3)
	require.Less(t, len(outs), 9, "60 kB each, and half of MaxMemory for all")
	held := conns[1].Stats().Held
	require.NoError(t, outs[0].Close(bunch.Destroyed))
	for range 20 {
		step()
	}
	require.Less(t, conns[1].Stats().Held, held-50_000)

	forgotten = true
	o := &lockstep.OnChannel{}
	_, err := conns[0].Open(name, o)
	require.NoError(t, err)
	step()
	require.False(t, conns[1].Closed(), "Received may be set later")
	require.NoError(t, o.Send(0, []byte("turn")))
	step()
	step()
	require.Equal(t, netconn.WeBroke, conns[1].Result().Code)
	require.ErrorContains(t, conns[1].Result().Err, "Received is nil", "a packet would be lost in silence")
}

// TestBusyConnection: a player who catches up over a narrow connection gets the log at the connection's pace.
func TestBusyConnection(t *testing.T) {
	const speed = 20000
	name := bunch.Name{Index: 330}
	cfg := lockstep.Config{Players: 2, Protocol: 1, MaxPacket: 900}
	host, err := lockstep.NewHost(lockstep.HostConfig{Config: cfg, Secret: [32]byte{1}, Window: 1 << 20, Rate: 1 << 20}, nil)
	require.NoError(t, err)
	var now time.Duration
	var up, down queue
	first, err := lockstep.NewPeer(lockstep.PeerConfig{Config: cfg, Session: 1}, &up)
	require.NoError(t, err)
	require.NoError(t, host.Connect(0, &down))
	for ; first.Turn() < 6000; now += 10 * time.Millisecond { // a long game of one
		if _, ok := first.Next(); ok {
			_ = first.Submit(make([]byte, 14)) // InGame comes with turn 0
			require.NoError(t, first.Done(1))
		}
		first.Tick(now)
		up.drain(func(p []byte) error { return host.Receive(now, 0, p) })
		if host.Ready() == 1 {
			host.Start(now)
		}
		host.Tick(now)
		down.drain(func(p []byte) error { return first.Receive(now, p) })
	}
	conn, err := netconn.New(netconn.Config{Channels: []channel.Type{{Name: name, ClientOpen: true}}, LowLevelSend: func([]byte) {}}, now, 1, 1)
	require.NoError(t, err)
	conn.SetNetSpeed(speed)
	o, to := &lockstep.OnChannel{}, &counter{}
	_, err = conn.Open(name, o)
	require.NoError(t, err)
	to.OnChannel = o
	require.NoError(t, host.Connect(1, to))
	late, err := lockstep.NewPeer(lockstep.PeerConfig{Config: cfg, Player: 1, Session: 1}, &up)
	require.NoError(t, err)
	began, got := now, 0
	for ; now < began+2*time.Second; now += 10 * time.Millisecond {
		conn.PostTickDispatch(now)
		late.Tick(now)
		up.drain(func(p []byte) error { return host.Receive(now, 1, p) })
		host.Tick(now)
		for _, p := range to.packets {
			got += len(p)
			require.NoError(t, late.Receive(now, p))
		}
		to.packets = nil
		for _, ok := late.Next(); ok; _, ok = late.Next() {
			require.NoError(t, late.Done(1))
		}
		conn.Tick(now)
	}
	t.Logf("%d bytes a second over a connection of %d", got/2, speed)
	require.Less(t, got, 2*speed*2, "a packet in each turn goes in any case")
	require.Greater(t, got, speed)
}

// counter is a channel that delivers at once.
type counter struct {
	*lockstep.OnChannel
	queue
}

func (c *counter) Send(now time.Duration, p []byte) error {
	if err := c.OnChannel.Send(now, p); err != nil {
		return err
	}
	return c.queue.Send(now, p)
}
