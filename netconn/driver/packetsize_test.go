package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestPacketSizes: over each link the largest datagram of MaxDatagram is found, and no larger one.
func TestPacketSizes(t *testing.T) {
	for _, v := range []struct {
		cfg  Config
		most int
	}{
		{Config{Link: Netcode{}}, 1200},
		{Config{Link: PlainSalted{}}, 1452 - 13},
		{Config{Link: PlainSalted{}, Checksum: true}, 1452 - 13 - 4},
		{Config{Link: PlainSalted{}, MaxDatagram: 1300}, 1300 - 13},
		{Config{Link: PlainUnreal51()}, 1452},
		{Config{Link: PlainSalted{}, MaxDatagram: -1}, 1024},
		{Config{Link: PlainSalted{}, Coding: netconn.Coding{Repairs: 1}}, 1024},
		{Unreal51(Config{}), 1024},
	} {
		clock := time.Unix(1_700_000_000, 0)
		cfg := v.cfg
		cfg.Clock = func() time.Time { return clock }
		cfg.Channels = chat(counting{count: func() {}})
		srv, err := Listen("127.0.0.1:0", cfg)
		require.NoError(t, err)
		cl, err := Dial(srv.LocalAddr().String(), cfg)
		require.NoError(t, err)
		var ch *channel.Channel
		for i := range 20_000 {
			clock = clock.Add(time.Millisecond)
			srv.TickDispatch(clock)
			cl.TickDispatch(clock)
			if c := cl.Server(); c != nil && c.Joined() {
				if ch == nil {
					ch, err = c.Open(chatName, channel.Nop{})
					require.NoError(t, err)
				}
				if i%20 == 0 && ch.Room() > 60 {
					_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 20_000), Reliable: true})
					require.NoError(t, err)
				}
				if n := c.Stats().PacketSize; n > v.most-searchedTo && n > 1024 || c.Counters.PacketsAcked > 2000 {
					break
				}
			}
			srv.TickFlush(clock)
			cl.TickFlush(clock)
		}
		size := cl.Server().Stats().PacketSize
		if udp.SendsWhole(cl.socket) || v.most == 1024 {
			require.LessOrEqual(t, size, v.most, "%T", cfg.Link)
			require.Greater(t, size, v.most-searchedTo, "%T", cfg.Link)
		}
		require.NoError(t, cl.Close())
		require.NoError(t, srv.Close())
	}
}

// searchedTo is the bytes of a bunch header, which a probe may have less.
const searchedTo = 5
