package driver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestCloseByTheTicksClock: a close takes as long as any where the game ticks by a clock behind that of Config.Clock: the connection doesn't stand still until its ticks are there.
func TestCloseByTheTicksClock(t *testing.T) {
	took := func(ahead time.Duration) (took time.Duration) {
		var c *driver.Conn
		var w *simtest.Simulation
		var begun time.Duration
		w = simtest.NewSimulation(3, func(h *simtest.Host) (simtest.Program, error) {
			cfg := driver.Config{Channels: []channel.Type{{Name: bunch.Actor, ServerOpen: true}}, Clock: func() time.Time { return h.Time().Add(ahead) }, Rand: h.Secrets(), Link: driver.PlainSalted{}}
			if !h.IsServer() {
				cfg.Socket = h.Open()
				d, err := driver.Dial("10.0.0.1:7777", cfg)
				return goesOn{d}, err
			}
			cfg.Socket, _ = h.Listen(7777)
			cfg.Joined = func(joined *driver.Conn) { c = joined }
			cfg.Closed = func(_ *driver.Conn, r netconn.CloseResult) {
				took = w.Now() - begun
				require.Zero(t, r.Unacked)
			}
			d, err := driver.Listen("10.0.0.1:7777", cfg)
			return goesOn{d}, err
		})
		w.AddHost("server", true)
		path := netsim.Settings{Lag: 30 * time.Millisecond}
		require.NoError(t, w.AddHost("client", false).SetNet(path, path))
		w.RunUntil(5 * time.Second)
		ch, err := c.Open(bunch.Actor, nil)
		require.NoError(t, err)
		for range 100 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 1000), Reliable: true})
			require.NoError(t, err)
		}
		begun = w.Now()
		c.CloseWithReason("bye")
		w.RunUntil(begun + 10*time.Second)
		return took
	}
	plain := took(0)
	require.NotZero(t, plain)
	for _, ahead := range []time.Duration{300 * time.Millisecond, time.Hour, -time.Hour} {
		require.Equal(t, plain, took(ahead), "%v", ahead)
	}
}
