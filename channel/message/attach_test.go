package message_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
)

// TestAllocsAttached: messages both ways over connections, with their acks, allocate nothing.
func TestAllocsAttached(t *testing.T) {
	var ends [2]*message.Attached
	var kindsOf [2]*kinds
	var conns [2]*netconn.Conn
	now := time.Duration(0)
	for i := range ends {
		kindsOf[i] = newKinds()
		ends[i] = message.Attach(message.New(message.Config{Kinds: &kindsOf[i].reg}))
	}
	types := []channel.Type{{Name: messageName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return ends[1] }}}
	for i := range conns {
		var err error
		conns[i], err = netconn.New(netconn.Config{Server: i == 1, Channels: types, LowLevelSend: func(p []byte) {
			if err := conns[1-i].ReceivedPacket(now, p); err != nil {
				t.Error(err)
			}
		}}, 0, 1, 1)
		require.NoError(t, err)
	}
	_, err := conns[0].Open(messageName, ends[0])
	require.NoError(t, err)
	got := 0
	tick := func() {
		now += 16 * time.Millisecond
		for i, e := range ends {
			k := kindsOf[i].number
			m := k.New().(*number)
			m.N = 1
			if err := e.Send(k, m); err != nil {
				t.Fatal(err)
			}
			k.Free(m)
			e.Tick(now)
		}
		for i, c := range conns {
			c.Tick(now)
			for m, k := ends[i].Receive(); m != nil; m, k = ends[i].Receive() {
				got++
				k.Free(m)
			}
		}
	}
	for range 600 {
		tick()
	}
	got = 0
	require.Zero(t, testing.AllocsPerRun(200, tick))
	require.GreaterOrEqual(t, got, 2*200)
}

// TestNoChannel: a queue that nobody gave to a channel says so when it is full.
func TestNoChannel(t *testing.T) {
	k := newKinds()
	a := message.Attach(message.New(message.Config{Kinds: &k.reg, Window: 8}))
	var err error
	for range 9 {
		m := k.number.New().(*number)
		require.NoError(t, err)
		a.Tick(time.Second)
		err = a.Send(k.number, m)
	}
	require.ErrorIs(t, err, message.ErrFull)
	require.ErrorContains(t, err, "no channel")
}
