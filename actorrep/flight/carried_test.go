package flight_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Chest is opened by reliable calls, each with a new Fill. Its Pack may be changed in place.
type Chest struct {
	actorrep.Base
	Fill int32                 `net:""`
	Kind string                `net:""`
	Pack actorrep.Var[[]int32] `net:"cap=4"`
	Sum  actorrep.Var[int32]   `net:""`
}

// TestReliableBunchesAreInTheFilm: at 20 % loss the film has, of values that went with reliable calls, the bunch that carried them each time it was sent; of a
// channel that was closed the reason; and what the game changed in place, from when it was found until it was told.
func TestReliableBunchesAreInTheFilm(t *testing.T) {
	var past *flight.Recorder
	chests := map[string]*Chest{}
	set := map[int32]float64{} // when Fill was set
	sim := simtest.NewSimulation(4, func(h *simtest.Host) (simtest.Program, error) {
		cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
		w := actorrep.NewClient(actorrep.Config{})
		if h.IsServer() {
			w = actorrep.NewServer(actorrep.Config{RelevantTimeout: -1})
		}
		open := actorrep.MulticastRPC0(func(actorrep.Call, *Chest) error { return nil }, actorrep.Reliable)
		require.NoError(t, w.Register("Chest", (*Chest)(nil), actorrep.RPCs{"open": open}))
		cfg.Channels = w.ChannelTypes()
		var d *driver.Driver
		var err error
		if h.IsServer() {
			cfg.Joined = func(c *driver.Conn) { w.AddConn(c) }
			if cfg.Socket, err = h.Listen(7777); err != nil {
				return nil, err
			}
			if d, err = driver.Listen("", cfg); err == nil {
				past, err = flight.New(w, d, flight.Config{})
			}
			for _, kind := range []string{"called", "left", "asleep", "changed"} {
				chests[kind] = &Chest{Kind: kind}
				chests[kind].Pack.Set([]int32{1, 2})
				require.NoError(t, w.Spawn(chests[kind]))
			}
		} else {
			cfg.Socket, cfg.Client = h.Open(), control.ClientConfig{URL: h.Name()}
			d, err = driver.Dial("10.0.0.1:7777", cfg)
		}
		n := int32(0)
		return program(func(now time.Time) error {
			d.TickDispatch(now)
			at := d.Time(now)
			if n++; h.IsServer() {
				switch called := chests["called"]; {
				case n > 120 && n%20 == 0:
					called.Fill = n
					set[n] = float64(at) / 1e6
					require.NoError(t, open.Call(called))
				case n == 201:
					chests["left"].SetOnlyOwner(true)
				case n == 202:
					require.NoError(t, chests["asleep"].SetDormant(true))
				case n == 203:
					chests["changed"].Pack.Get()[0] = 9
				case n == 263:
					chests["changed"].Pack.Set([]int32{3})
				}
			}
			w.Step(at)
			d.TickFlush(now)
			return d.Err()
		}), err
	})
	sim.AddHost("server", true)
	bad := netsim.Settings{Lag: 60 * time.Millisecond, Loss: 20}
	require.NoError(t, sim.AddHost("Ann", false).SetNet(bad, bad))
	sim.RunUntil(8 * time.Second)
	require.Nil(t, sim.Failure())
	d, _ := read(t, past.Take(), flight.View{})
	of := map[string]int{}
	for i, a := range d.Actors {
		of[d.at(i, "Kind", len(d.Steps)-1).(string)] = i
		require.Equal(t, "Fill", a.Parts[0].Name)
	}
	require.Len(t, of, 4)
	require.Greater(t, len(set), 10)
	again := 0
	for n, at := range set {
		times, seq := 0, -1
		for _, r := range d.Conns[0].Records {
			if r.Actor != of["called"] || !r.Calls || units(r.Units)&units(d.Actors[r.Actor].Parts[0].Units) == 0 || r.Of < at-1 || r.Of > at+1 {
				continue
			}
			require.True(t, seq < 0 || seq == r.Seq, "it is the same bunch")
			times, seq = times+1, r.Seq
		}
		require.NotZero(t, times, "Fill %d, set at %v", n, at)
		if times > 1 {
			again++
		}
	}
	require.NotZero(t, again, "one was sent again")
	closes := map[int]string{}
	for _, r := range d.Conns[0].Records {
		if r.Closes {
			closes[r.Actor] = r.Waited
		}
	}
	require.Equal(t, map[int]string{of["left"]: "Relevancy", of["asleep"]: "Dormancy"}, closes)

	require.Len(t, d.Unsaid, 2)
	pack := d.Actors[of["changed"]].Parts[slices.IndexFunc(d.Actors[of["changed"]].Parts, func(p part) bool { return p.Name == "Pack" })]
	require.Equal(t, []any{float64(of["changed"]), pack.Units}, d.Unsaid[0][:2])
	require.InDelta(t, 3400, d.Unsaid[0][2], 50)
	require.Equal(t, []any{float64(of["changed"]), "0"}, d.Unsaid[1][:2])
	require.InDelta(t, 4390, d.Unsaid[1][2], 50)
	found := false
	for _, n := range d.Notes {
		found = found || n.Text == "Chest "+d.Actors[of["changed"]].ID+": the game set Pack, and nobody is told: it changed the slice that Get returned; call Set afterwards, or the actor's MarkDirty"
	}
	require.True(t, found, "%v", d.Notes)
}
