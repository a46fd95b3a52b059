package message_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
)

// TestRoomIsToldInVainOnceATick: a peer that floods and acks nothing has each Receive look at what waits to be sent once a tick at most, while nothing may be sent.
func TestRoomIsToldInVainOnceATick(t *testing.T) {
	k := newKinds()
	var ends [2]*message.Attached
	var conns [2]*netconn.Conn
	now, deaf := time.Duration(0), false
	for i := range ends {
		ends[i] = message.Attach(message.New(message.Config{Kinds: &k.reg}))
	}
	protocol := netconn.Bunchnet()
	protocol.PacketWindow = 16
	types := []channel.Type{{Name: messageName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return ends[1] }}}
	for i := range conns {
		cfg := netconn.Config{Server: i == 1, Channels: types, Controller: congestion.NewTokenBucket(100 << 20), LowLevelSend: func(p []byte) {
			if i == 0 || !deaf {
				_ = conns[1-i].ReceivedPacket(now, p)
			}
		}}
		if i == 1 {
			cfg.Protocol = protocol
		}
		var err error
		conns[i], err = netconn.New(cfg, 0, 1, 1)
		require.NoError(t, err)
	}
	ch, err := conns[0].Open(messageName, ends[0])
	require.NoError(t, err)
	tick := func() {
		now += 16 * time.Millisecond
		for i, c := range conns {
			ends[i].Tick(now)
			c.Tick(now)
		}
	}
	for range 20 {
		tick()
	}
	deaf = true
	server := conns[1].Channel(ch.Index())
	for err = nil; err == nil; {
		_, err = server.SendBunch(&bunch.Out{Data: make([]byte, 900), StayUnreliable: true})
	}
	got := 0
	for range 8 { // 120 messages each
		for range 120 {
			require.NoError(t, ends[0].Send(k.number, &number{N: 1}))
		}
		now += 16 * time.Millisecond
		ends[0].Tick(now)
		conns[0].Tick(now)
		before := conns[1].Table().Counters.NotSent
		for m, _ := ends[1].Receive(); m != nil; m, _ = ends[1].Receive() {
			got++
		}
		require.LessOrEqual(t, conns[1].Table().Counters.NotSent-before, uint64(1), "%d messages", got)
		conns[1].Tick(now)
	}
	require.Equal(t, 8*120, got)
	require.Positive(t, conns[1].Table().Counters.NotSent, "there was room to tell of")
}
