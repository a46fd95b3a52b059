//go:build !js

package web

import (
	"context"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/echotest"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestShards: beside shards of UDP a door has a driver of its own, with the same key and address in tokens, and RunShards runs all. A shard can't be joined
// with a door, and says so.
func TestShards(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("shards are Linux's")
	}
	d := newDoor(t, ServerConfig{})
	_, err := driver.ListenShards("127.0.0.1:0", 2, func(int) driver.Config { return driver.Config{Socket: udp.Join(nil, d.Server)} })
	require.ErrorIs(t, err, driver.ErrShards)
	require.ErrorContains(t, err, "a driver of its own")

	var joined [3]atomic.Int32
	config := func(i int) driver.Config {
		return driver.Config{Link: driver.Netcode{Key: gameKey}, MaxConns: 64, Joined: func(*driver.Conn) { joined[i].Add(1) }, Channels: []channel.Type{echotest.Server()}}
	}
	all, err := driver.ListenShards("127.0.0.1:0", 2, config)
	require.NoError(t, err)
	at := all[0].LocalAddr()
	cfg := config(2)
	cfg.Socket, cfg.Link = d.Server, driver.Netcode{Key: gameKey, Addrs: []netip.AddrPort{at}}
	own, err := driver.Listen("", cfg)
	require.NoError(t, err)
	d.Tell(own)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- driver.RunShards(ctx, append(all, own), nil) }()

	var clients []*player
	for _, way := range []Way{UDP, UDP, UDP, UDP, UDP, UDP, UDP, UDP, WebTransport, WebSocket} {
		p := &player{}
		c := driver.Config{Link: driver.Netcode{Key: gameKey}, Channels: []channel.Type{echotest.Client()}, Joined: func(c *driver.Conn) { p.conn = c }}
		if way != UDP {
			c.Socket = d.dial(way)
		}
		p.driver, err = driver.Dial(at.String(), c)
		require.NoError(t, err)
		clients = append(clients, p)
	}
	until := func(what string, f func(p *player) bool) {
		eventually(t, what, func() bool {
			now, done := time.Now(), 0
			for _, p := range clients {
				p.driver.TickDispatch(now)
				p.driver.TickFlush(now)
				if f(p) {
					done++
				}
			}
			return done == len(clients)
		})
	}
	until("all joined", func(p *player) bool { return p.conn != nil })
	for _, p := range clients {
		require.NoError(t, p.sink.Send(p.conn, []string{"one", "two"}))
	}
	until("all echoed", func(p *player) bool { return len(p.sink.Got) == 2 })
	require.EqualValues(t, 8, joined[0].Load()+joined[1].Load())
	require.EqualValues(t, 2, joined[2].Load())
	for _, p := range clients {
		require.NoError(t, p.driver.Close())
	}
	stop()
	require.NoError(t, <-ended)
}
