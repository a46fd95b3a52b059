package driver_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// goesOn is a driver as a simulated host's program, also when it has ended.
type goesOn struct{ *driver.Driver }

func (p goesOn) Tick(now time.Time) error {
	p.TickDispatch(now)
	p.TickFlush(now)
	return nil
}

// TestKickedClientIsQuiet: a client of Unreal's links that goes on ticking its driver after a kick, as while it shows the reason, sends nothing more.
func TestKickedClientIsQuiet(t *testing.T) {
	for name, unreal := range map[string]func(driver.Config) driver.Config{"4.27": driver.Unreal427, "5.1": driver.Unreal51, "5.3": func(c driver.Config) driver.Config { return driver.Unreal53(true, c) }} {
		var log bytes.Buffer
		var kicked *driver.Conn
		var client *driver.Driver
		w := simtest.NewSimulation(1, func(h *simtest.Host) (simtest.Program, error) {
			cfg := driver.Config{Clock: h.Time, Rand: h.Secrets()}
			if h.IsServer() {
				cfg.Socket, _ = h.Listen(7777)
				cfg.Joined = func(c *driver.Conn) { kicked = c }
				cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
				d, err := driver.Listen("10.0.0.1:7777", unreal(cfg))
				return goesOn{d}, err
			}
			cfg.Socket = h.Open()
			var err error
			client, err = driver.Dial("10.0.0.1:7777", unreal(cfg))
			return goesOn{client}, err
		})
		w.AddHost("server", true)
		path := netsim.Settings{Lag: 40 * time.Millisecond, LagVariance: 6 * time.Millisecond}
		require.NoError(t, w.AddHost("client", false).SetNet(path, path))
		w.RunUntil(15 * time.Second)
		require.NotNil(t, kicked, name)
		kicked.CloseWithError(driver.ErrKicked)
		w.RunUntil(16 * time.Second)
		sent := client.Counters.DatagramsOut
		w.RunUntil(2 * time.Minute)
		require.LessOrEqual(t, client.Counters.DatagramsOut, sent+2, name)
		require.Empty(t, log.String(), name)
	}
}

// TestAcceptedAndClosedAreLevel: Counters.Accepted less Closed is the number of connections, also where clients are refused.
func TestAcceptedAndClosedAreLevel(t *testing.T) {
	for name, edit := range map[string]func(driver.Config) driver.Config{
		"unreal": driver.Unreal51,
		"salted": func(c driver.Config) driver.Config { c.Link = driver.PlainSalted{}; return c },
	} {
		for _, shut := range []bool{false, true} {
			var server *driver.Driver
			w := simtest.NewSimulation(7, func(h *simtest.Host) (simtest.Program, error) {
				cfg := edit(driver.Config{Clock: h.Time, Rand: h.Secrets(), MaxConns: 2})
				if h.IsServer() {
					cfg.Socket, _ = h.Listen(7777)
					var err error
					server, err = driver.Listen("10.0.0.1:7777", cfg)
					return goesOn{server}, err
				}
				cfg.Socket = h.Open()
				d, err := driver.Dial("10.0.0.1:7777", cfg)
				return goesOn{d}, err
			})
			w.AddHost("server", true)
			for range 2 {
				w.AddHost("client", false)
			}
			w.RunUntil(5 * time.Second)
			if shut {
				server.Shutdown("the night")
			}
			for range 3 {
				w.AddHost("late", false)
				w.RunUntil(w.Now() + 5*time.Second)
			}
			w.RunUntil(w.Now() + 20*time.Second)
			c := server.Counters
			require.EqualValues(t, server.Len(), c.Accepted-c.Closed, "%s, shut down %v: %d accepted, %d closed", name, shut, c.Accepted, c.Closed)
		}
	}
}
