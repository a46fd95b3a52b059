package driver

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// chatAll is the channels of a client that sends to an echo.
func chatAll() Config {
	return Config{Link: Netcode{Key: netcode.Key{5}}, Channels: []channel.Type{{Name: chatName, ClientOpen: true}}}
}

func shardConfig(int) Config {
	return Config{Link: Netcode{Key: netcode.Key{5}}, MaxConns: 64, TickRate: 500, Channels: []channel.Type{{Name: chatName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler {
		return &echo{}
	}}}}
}

// TestShards has many clients of shards on one port, each answered by the one that it joined.
func TestShards(t *testing.T) {
	all, err := ListenShards("127.0.0.1:0", 2, shardConfig)
	if runtime.GOOS != "linux" {
		require.ErrorIs(t, err, udp.ErrReusePort)
		return
	}
	require.NoError(t, err)
	require.Equal(t, all[0].LocalAddr(), all[1].LocalAddr())
	_, err = ListenShards(all[0].LocalAddr().String(), 2, shardConfig)
	require.Error(t, err, "another server's port isn't shared")

	const clients, rounds = 32, 20
	now := time.Now()
	var own []*Driver
	var sinks []*sink
	for range clients {
		cfg, got := chatAll(), &sink{}
		cfg.Joined = func(c *Conn) {
			ch, err := c.Open(chatName, got)
			require.NoError(t, err)
			for i := range rounds {
				_, err = ch.SendBunch(&bunch.Out{Data: []byte{byte(i)}, Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
		}
		d, err := Dial(all[0].LocalAddr().String(), cfg)
		require.NoError(t, err)
		own, sinks = append(own, d), append(sinks, got)
	}
	for step := 0; ; step++ {
		require.Less(t, step, 1000, "never answered")
		now = now.Add(16 * time.Millisecond)
		done := 0
		for _, d := range append(all[:2:2], own...) {
			d.TickDispatch(now)
			d.TickFlush(now)
		}
		for _, s := range sinks {
			if len(s.got) == rounds {
				done++
			}
		}
		if done == clients {
			break
		}
	}
	require.Equal(t, clients, all[0].Len()+all[1].Len())
	require.NotZero(t, all[0].Len(), "the kernel deals out: one in 2^31 that it doesn't")
	require.NotZero(t, all[1].Len())
	for _, d := range all {
		require.Zero(t, d.Counters.Refused, "each got its own clients' packets only")
		require.Equal(t, uint64(d.Len()), d.Counters.Joined)
		for reason, n := range d.server.refusals {
			require.Zero(t, n, reason)
		}
	}
	require.NoError(t, closeAll(own))
	require.NoError(t, closeAll(all))
}

// TestRunShards ends all when one of them fails, and says why.
func TestRunShards(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("shards are Linux's")
	}
	all, err := ListenShards("127.0.0.1:0", 3, shardConfig)
	require.NoError(t, err)
	broken := errors.New("broken")
	ticked := make([]bool, len(all))
	err = RunShards(context.Background(), all, func(shard int, _ time.Time) {
		ticked[shard] = true
		if shard == 1 {
			all[1].err = broken
		}
	})
	require.ErrorIs(t, err, broken)
	require.True(t, ticked[1])
	for _, d := range all {
		require.True(t, d.ended)
	}

	all, err = ListenShards("127.0.0.1:0", 2, shardConfig)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	require.NoError(t, RunShards(ctx, all, nil))
}

func TestShardsRefuse(t *testing.T) {
	for _, n := range []int{-1, 0, maxShards + 1} {
		_, err := ListenShards("127.0.0.1:0", n, shardConfig)
		require.ErrorIs(t, err, ErrShards)
	}
	_, err := ListenShards("127.0.0.1:0", 2, func(shard int) Config {
		cfg := shardConfig(shard)
		if shard == 1 {
			cfg.Socket, _ = udp.Pair(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2"))
		}
		return cfg
	})
	if runtime.GOOS == "linux" {
		require.ErrorIs(t, err, ErrShards)
	} else {
		require.ErrorIs(t, err, udp.ErrReusePort)
	}
	_, err = ListenShards("not an address", 2, shardConfig)
	require.Error(t, err)
}
