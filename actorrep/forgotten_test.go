package actorrep_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

type ticked func(now time.Time) error

func (p ticked) Tick(now time.Time) error { return p(now) }
func (p ticked) Close() error             { return nil }

// TestForgottenRemoveConn: a game that never calls RemoveConn is told once, and one that calls it isn't.
func TestForgottenRemoveConn(t *testing.T) {
	for _, removes := range []bool{false, true} {
		var told []error
		var ended int
		sim := simtest.NewSimulation(3, func(h *simtest.Host) (simtest.Program, error) {
			dc := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
			var w *actorrep.World
			var d *driver.Driver
			var err error
			if h.IsServer() {
				w = actorrep.NewServer(actorrep.Config{Failed: func(err error) { told = append(told, err) }})
				peers := map[*driver.Conn]*actorrep.Peer{}
				dc.Channels, dc.Joined = w.ChannelTypes(), func(c *driver.Conn) { peers[c] = w.AddConn(c) }
				dc.Closed = func(c *driver.Conn, _ netconn.CloseResult) {
					if ended++; removes {
						w.RemoveConn(peers[c])
					}
				}
				if dc.Socket, err = h.Listen(7777); err != nil {
					return nil, err
				}
				d, err = driver.Listen("", dc)
			} else {
				w = actorrep.NewClient(actorrep.Config{})
				dc.Channels, dc.Socket, dc.Client = w.ChannelTypes(), h.Open(), control.ClientConfig{URL: h.Name()}
				d, err = driver.Dial("10.0.0.1:7777", dc)
			}
			return ticked(func(now time.Time) error {
				d.TickDispatch(now)
				w.Step(d.Time(now))
				if h.Name() != "Dot" && !h.IsServer() && d.Time(now) > 3*time.Second && d.Server() != nil {
					d.Server().Close(d.Time(now), "enough")
				}
				d.TickFlush(now)
				return nil
			}), err
		})
		sim.AddHost("server", true)
		for _, name := range []string{"Ann", "Bob", "Cid", "Dot"} {
			sim.AddHost(name, false)
		}
		sim.RunUntil(2 * time.Second)
		require.Empty(t, told)
		sim.RunUntil(30 * time.Second)
		require.Nil(t, sim.Failure())
		require.Equal(t, 3, ended)
		if removes {
			require.Empty(t, told)
			continue
		}
		require.Len(t, told, 1)
		require.ErrorContains(t, told[0], "World.RemoveConn")
	}
}

// TestTimeWentBack: a server whose Step gets a time before the last is told once; the same time again is fine, and a client may go back, as a replay does.
func TestTimeWentBack(t *testing.T) {
	for server, want := range map[bool]int{true: 1, false: 0} {
		var told []error
		cfg := actorrep.Config{Failed: func(err error) { told = append(told, err) }}
		w := actorrep.NewServer(cfg)
		if !server {
			w = actorrep.NewClient(cfg)
			w.ChannelTypes()
		}
		for _, at := range []time.Duration{5, 5, 6} {
			w.Step(at * time.Second)
		}
		require.Empty(t, told)
		for _, at := range []time.Duration{4, 3, 8, 7} {
			w.Step(at * time.Second)
		}
		require.Len(t, told, want)
	}
}

// eager steps the world whenever it is called.
type eager struct {
	actorrep.Base
	N int `net:"notify=OnN"`
}

func (e *eager) Spawned() { e.World().Step(e.World().Now()) }
func (e *eager) OnN()     { e.Spawned() }

// TestNestedStep: Step within what a Step calls does nothing, and the game is told once. The Step that called goes on.
func TestNestedStep(t *testing.T) {
	var told []error
	var w *world
	again := func() { w.Server.Step(w.Server.Now()) }
	cfg := actorrep.Config{Failed: func(err error) { told = append(told, err); again() }}
	w = newWorld(t, 1, clean, cfg, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("eager", (*eager)(nil)))
	})
	w.Server.OnValues(func(actorrep.Actor) { again() })
	l := w.JoinOther(w.register)
	all := [3]*eager{{}, {}, {}}
	for _, e := range all {
		require.NoError(t, w.Server.Spawn(e))
	}
	before := w.Server.Frame()
	for n := range 30 {
		for _, e := range all {
			e.N = n
		}
		w.Step()
	}
	require.EqualValues(t, 30, w.Server.Frame()-before)
	for range 10 {
		w.Step()
	}
	for _, e := range all {
		require.Equal(t, 29, l.World.Find(e.GUID()).(*eager).N)
	}
	for _, failed := range [][]error{told, l.Failed} {
		require.Len(t, failed, 1)
		require.ErrorContains(t, failed[0], "World.Step was called by what the World calls")
	}
}

// TestFailedPanics: a game that recovers from a panic of its Config.Failed can go on.
func TestFailedPanics(t *testing.T) {
	s := actorrep.NewServer(actorrep.Config{Failed: func(error) { panic("failed") }})
	s.Step(2 * time.Second)
	require.PanicsWithValue(t, "failed", func() { s.Step(time.Second) }, "its time goes back")
	before := s.Frame()
	s.Step(3 * time.Second)
	require.NotEqual(t, before, s.Frame())
}

// TestForgottenViewpoint: a game whose actors have a cull distance, and that gives no connection a viewpoint, is told once, after 10 s. One that had a viewpoint once is enough; without
// a cull distance, without connections, for actors that all or only owners see, and with Config.Relevant nobody is told.
func TestForgottenViewpoint(t *testing.T) {
	const second = int(time.Second / tick)
	for _, c := range []struct {
		name string
		set  func(h *hero)
		cfg  actorrep.Config
		look int // the second for which a connection has a viewpoint; 0: never
		join int // the second in which a connection comes; 0: never
		told int // after how many seconds; 0: never
	}{
		{name: "forgotten", set: func(h *hero) { h.SetCullDistance(50) }, join: 1, told: 11},
		{name: "nobody there", set: func(h *hero) { h.SetCullDistance(50) }},
		{name: "looks", set: func(h *hero) { h.SetCullDistance(50) }, join: 1, look: 8},
		{name: "no distance", set: func(h *hero) { h.SetCullDistance(0) }, join: 1},
		{name: "always", set: func(h *hero) { h.SetCullDistance(50); h.SetAlwaysRelevant(true) }, join: 1},
		{name: "own", set: func(h *hero) { h.SetCullDistance(50); h.SetOnlyOwner(true) }, join: 1},
		{name: "Relevant", set: func(h *hero) { h.SetCullDistance(50) }, join: 1, cfg: actorrep.Config{Relevant: func(*actorrep.Peer, actorrep.Actor) bool { return true }}},
	} {
		var failed []error
		c.cfg.Failed = func(err error) { failed = append(failed, err) }
		w := newWorld(t, 1, clean, c.cfg, registerHeroes)
		var last *hero
		for range 2 {
			last = &hero{}
			require.NoError(t, w.Server.Spawn(last))
			c.set(last)
		}
		var l *rig.Line
		for i := range 40 * second {
			if c.join > 0 && i == c.join*second {
				l = w.join()
			}
			if c.look > 0 && i == c.look*second {
				l.Peer.SetViewTarget(last)
			}
			if c.look > 0 && i == (c.look+1)*second {
				l.Peer.SetViewTarget(nil) // as while a player waits to come back
			}
			w.Rig.Step()
			if c.told > 0 && i < c.told*second {
				require.Empty(t, failed, c.name)
			}
		}
		if c.told == 0 {
			require.Empty(t, failed, c.name)
			continue
		}
		require.Len(t, failed, 1, c.name)
		require.ErrorIs(t, failed[0], actorrep.ErrNoViewpoint, c.name)
	}
}

// TestTimeSinceTheLastStep: who gives Step the length of a frame is told once at each end, and nobody else: with a clock that began earlier or later, runs at half the speed, leaps back,
// or stands for some seconds.
func TestTimeSinceTheLastStep(t *testing.T) {
	for _, c := range []struct {
		name string
		at   func(now time.Duration) time.Duration
		told int
	}{
		{"the frame's length", func(now time.Duration) time.Duration { return tick + now%3 }, 1},
		{"milliseconds", func(now time.Duration) time.Duration { return now / time.Millisecond }, 1},
		{"earlier", func(now time.Duration) time.Duration { return now + time.Hour }, 0},
		{"later", func(now time.Duration) time.Duration { return max(now-8*time.Second, 0) }, 0},
		{"slowly", func(now time.Duration) time.Duration { return now / 2 }, 0},
		{"back by minutes", func(now time.Duration) time.Duration { return now - now/(15*time.Second)*2*time.Minute }, 0},
		{"with pauses", func(now time.Duration) time.Duration { return now - now%(6*time.Second) }, 0},
	} {
		var failed []error
		w := newWorld(t, 1, clean, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, registerHeroes)
		l := w.JoinOther(func(w *actorrep.World) error { registerHeroes(t, w); return nil })
		for range 60 * int(time.Second/tick) {
			w.Ahead = c.at(w.Now+tick) - w.Now - tick
			l.Ahead = w.Ahead
			w.Rig.Step()
		}
		for _, told := range [][]error{failed, l.Failed} {
			told = slices.DeleteFunc(told, func(err error) bool { return !strings.Contains(err.Error(), "Step's time hardly advances") })
			require.Len(t, told, c.told, c.name)
		}
	}
}
