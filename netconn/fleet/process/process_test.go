//go:build unix

package process

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/fleet"
	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// yes is a store that does everything at once.
type yes struct {
	rev uint64
	in  []kv.Event
}

func (s *yes) Do(op kv.Op) {
	s.rev++
	s.in = append(s.in, kv.Event{Kind: kv.Result, ID: op.ID, Revision: s.rev})
}

func (s *yes) Events() []kv.Event {
	in := s.in
	s.in = nil
	return in
}

// calls is an SDK.
type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) add(s string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, s)
	return nil
}
func (c *calls) Ready(context.Context) error    { return c.add("ready") }
func (c *calls) Health(context.Context) error   { return c.add("health") }
func (c *calls) Shutdown(context.Context) error { return c.add("shutdown") }

// TestSIGTERM: /ready follows the server, a signal drains it, it stops when its players have left, and the SDK hears of it; a second signal ends at once.
func TestSIGTERM(t *testing.T) {
	for _, twice := range []bool{false, true} {
		server, err := fleet.NewServer(fleet.ServerConfig{Info: fleet.Info{Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Capacity: 2}})
		require.NoError(t, err)
		sdk := &calls{}
		p, err := Start(Config{Server: server, Store: &yes{}, HTTP: "127.0.0.1:0", SDK: sdk, Hang: time.Hour, Signals: []os.Signal{syscall.SIGUSR1}})
		require.NoError(t, err)
		now := time.Duration(0)
		get := func(path string) int {
			resp, err := http.Get("http://" + p.Addr().String() + path)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return resp.StatusCode
		}
		run := func(until func() bool) {
			for i := 0; !until(); i++ {
				require.Less(t, i, 20_000)
				now += 16 * time.Millisecond
				p.Tick(now)
				time.Sleep(100 * time.Microsecond)
			}
		}
		require.Equal(t, http.StatusServiceUnavailable, get("/ready"))
		require.Equal(t, http.StatusOK, get("/live"))
		server.Ready()
		run(func() bool { return server.Announced() })
		require.Equal(t, http.StatusOK, get("/ready"))
		var user [netcode.UserDataBytes]byte
		run(func() bool { return server.Admit(netcode.ClientInfo{ID: 1, UserData: &user}) == netcode.Admit })
		require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGUSR1))
		run(p.Draining)
		require.Equal(t, http.StatusServiceUnavailable, get("/ready"))
		for range 100 {
			now += 16 * time.Millisecond
			p.Tick(now)
		}
		require.False(t, p.Done())
		if twice {
			require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGUSR1))
		} else {
			server.Left(1)
		}
		run(p.Done)
		p.Close()
		require.Equal(t, "shutdown", sdk.list[len(sdk.list)-1])
	}
}

// TestNoSignals: an empty list is no signal.
func TestNoSignals(t *testing.T) {
	server, err := fleet.NewServer(fleet.ServerConfig{Info: fleet.Info{Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Capacity: 2}})
	require.NoError(t, err)
	p, err := Start(Config{Server: server, Store: &yes{}, Signals: []os.Signal{}})
	require.NoError(t, err)
	defer p.Close()
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGUSR2)
	defer signal.Stop(came)
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGUSR2))
	<-came
	p.Tick(0)
	require.False(t, p.Draining())
}

// TestGrace: a drain ends after Grace although players stay.
func TestGrace(t *testing.T) {
	server, err := fleet.NewServer(fleet.ServerConfig{Info: fleet.Info{Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Capacity: 2}})
	require.NoError(t, err)
	p, err := Start(Config{Server: server, Store: &yes{}, Grace: 5 * time.Second})
	require.NoError(t, err)
	defer p.Close()
	server.Ready()
	now := time.Duration(0)
	tick := func() { now += 16 * time.Millisecond; p.Tick(now) }
	var user [netcode.UserDataBytes]byte
	for server.Admit(netcode.ClientInfo{ID: 1, UserData: &user}) != netcode.Admit {
		tick()
	}
	p.Drain()
	began := now
	for !p.Done() {
		tick()
		require.Less(t, now-began, 6*time.Second)
	}
	require.GreaterOrEqual(t, now-began, 5*time.Second)
}

// TestEnvironment: settings come from the environment, and those that can't be read are errors that name their variable.
func TestEnvironment(t *testing.T) {
	t.Setenv("FLEET_ADDR", "203.0.113.7:7777,[2001:db8::1]:7777")
	t.Setenv("FLEET_NAME", "eu-3")
	t.Setenv("FLEET_REGION", "eu")
	t.Setenv("FLEET_BUILD", "41")
	t.Setenv("FLEET_BUILDS", "40, 41")
	t.Setenv("FLEET_GRACE", "90s")
	e, err := FromEnv()
	require.NoError(t, err)
	require.Equal(t, 90*time.Second, e.Grace)
	require.Equal(t, ":7777", e.Listen)
	s, err := fleet.NewServer(e.Server(64, 7))
	require.NoError(t, err)
	require.Equal(t, []string{"40", "41"}, s.Info().Builds)
	require.Len(t, s.Info().Addrs, 2)
	t.Setenv("FLEET_GRACE", "soon")
	_, err = FromEnv()
	require.ErrorContains(t, err, "FLEET_GRACE")
	t.Setenv("FLEET_ADDR", "here")
	_, err = FromEnv()
	require.ErrorContains(t, err, "FLEET_ADDR")
	require.Equal(t, "a-b-c", clean("a.b c"))
}

// TestP99: of the ticks between two measurements, to the power of two above.
func TestP99(t *testing.T) {
	var from, to driver.TickTimes
	from.Count, from.Below[20] = 1000, 1000
	to = from
	require.Zero(t, p99(&from, &to))
	to.Count += 100
	to.Below[3] += 99
	to.Below[10]++
	require.Equal(t, 8*time.Microsecond, p99(&from, &to))
	to.Count++
	to.Below[10]++
	require.Equal(t, 1024*time.Microsecond, p99(&from, &to))
}

// deaf is an SDK whose Ready never answers.
type deaf struct {
	calls
	healthy []time.Time
}

func (d *deaf) Ready(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (d *deaf) Health(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.healthy = append(d.healthy, time.Now())
	return nil
}

// TestSlowSDK: an SDK that doesn't answer Ready is told all the same that the server is alive: it would end it otherwise.
func TestSlowSDK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := fleet.NewServer(fleet.ServerConfig{Info: fleet.Info{Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Capacity: 2}})
		require.NoError(t, err)
		sdk := &deaf{}
		p, err := Start(Config{Server: server, Store: &yes{}, SDK: sdk, Hang: time.Hour, Signals: []os.Signal{}})
		require.NoError(t, err)
		server.Ready()
		for now := time.Duration(0); !p.ready.Load(); now += 16 * time.Millisecond {
			p.Tick(now)
		}
		time.Sleep(time.Minute)
		p.Close()
		require.Greater(t, len(sdk.healthy), 10)
		for i, at := range sdk.healthy[1:] {
			require.LessOrEqual(t, at.Sub(sdk.healthy[i]), 2*sdkEvery)
		}
	})
}
