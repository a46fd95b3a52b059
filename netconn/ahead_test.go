package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestCopiesInHeldPackets: reliable bunches arrive once and in order where a late packet has others held back, copies of what has arrived
// long ago among them, while a full channel goes on in what was held behind them.
func TestCopiesInHeldPackets(t *testing.T) {
	var server, client collector
	p := newPair(t, 1, network{}, func(i int, c *Config) {
		c.Redundancy = Redundancy{Copies: 4}
		c.NetSpeed = 100_000_000
		c.ReorderWindow = 100 * time.Millisecond
		c.Channels = testTypes(func(*channel.Channel) channel.Handler { return &server })
	})
	ctl, err := p.ends[0].conn.Open(bunch.Control, &client)
	require.NoError(t, err)
	_, err = ctl.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	require.NoError(t, err)
	for range 10 {
		p.step()
	}
	ch, err := p.ends[0].conn.Open(testName, &client)
	require.NoError(t, err)
	server.got = nil
	sent := 0
	fill := func() {
		for ch.Room() > 0 {
			_, err := ch.SendBunch(&bunch.Out{Data: message(sent, 8), Reliable: true, NoMerge: true})
			require.NoError(t, err)
			sent++
		}
	}
	p.ends[1].conn.enableOrderCache()
	fill()
	p.ends[0].conn.Tick(p.now)
	first := p.ends[0].flying
	p.ends[0].flying = nil
	for range 4 {
		p.now += testTick
		p.ends[0].conn.Tick(p.now) // the copies
	}
	copies := p.ends[0].flying
	require.Greater(t, len(copies), 2)
	require.NotZero(t, p.ends[0].conn.Counters.Copies)
	p.ends[0].flying = first
	for len(p.ends[0].flying) > 0 || ch.NumOutRec() > 0 {
		p.step()
		require.Less(t, p.now, time.Minute)
	}
	require.Len(t, server.got, sent)
	p.ends[0].flying = append(p.ends[0].flying, copies[1:]...) // the first is lost
	fill()
	for range 100 {
		p.step()
		fill()
	}
	for ch.NumOutRec() > 0 {
		p.step()
		require.Less(t, p.now, time.Minute)
	}
	require.NotZero(t, p.ends[1].conn.Counters.Cached)
	require.Len(t, server.got, sent)
	for i, b := range server.got {
		require.Equal(t, message(i, 8), b, "bunch %d", i)
	}
}
