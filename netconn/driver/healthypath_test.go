package driver_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// ticked is a driver as a simulated host's program.
type ticked struct{ *driver.Driver }

func (p ticked) Tick(now time.Time) error {
	p.TickDispatch(now)
	p.TickFlush(now)
	return p.Err()
}

// TestAHealthyPathIsNoWarning: a path that is slow, loses packets and lets some overtake others or arrive twice isn't a warning on any link, at either end.
func TestAHealthyPathIsNoWarning(t *testing.T) {
	counted := map[string]uint64{}
	for name, link := range map[string]driver.Link{"netcode": driver.Netcode{Key: netcode.Key{1}}, "salted": driver.PlainSalted{}, "unreal": driver.PlainUnreal53()} {
		for seed := uint64(1); seed <= 12; seed++ {
			var log bytes.Buffer
			var all []*driver.Driver
			joined := 0
			world := simtest.NewSimulation(seed, func(h *simtest.Host) (simtest.Program, error) {
				cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), KeepAlive: 20 * time.Millisecond, Link: link,
					Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})), Joined: func(*driver.Conn) { joined++ }}
				open, err := driver.Dial, error(nil)
				if cfg.Socket = h.Open(); h.IsServer() {
					open = driver.Listen
					cfg.Socket, err = h.Listen(7777)
					require.NoError(t, err)
				}
				d, err := open("10.0.0.1:7777", cfg)
				all = append(all, d)
				return ticked{d}, err
			})
			world.AddHost("server", true)
			client := world.AddHost("client", false)
			bad := netsim.Settings{Lag: 100 * time.Millisecond, LagVariance: 25 * time.Millisecond, Loss: 5, Dup: 5}
			require.NoError(t, client.SetNet(bad, bad))
			world.RunUntil(10 * time.Second)
			require.Nil(t, world.Failure())
			require.Equal(t, 2, joined, "%s, seed %d", name, seed)
			require.NotContains(t, log.String(), "msg=refused", "%s, seed %d", name, seed)
			for _, d := range all {
				for reason, n := range d.Refusals {
					counted[reason] += n
				}
			}
		}
	}
	t.Log(counted)
	require.NotZero(t, counted["stale_packet"])
	require.NotZero(t, counted["unexpected"])
	require.NotZero(t, counted["replayed"])
}
