package flight_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestSameIDAtOnce: an id that goes from one actor to another of another class between two Steps is shown as two actors, at the server and at a client.
func TestSameIDAtOnce(t *testing.T) {
	var world, seen *actorrep.World
	var rec, client *flight.Recorder
	var next actorrep.Actor
	sim := simtest.NewSimulation(1, func(h *simtest.Host) (simtest.Program, error) {
		dc := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
		w := actorrep.NewServer(actorrep.Config{})
		if !h.IsServer() {
			w = actorrep.NewClient(actorrep.Config{})
		}
		require.NoError(t, w.Register("Door", (*Door)(nil)))
		require.NoError(t, w.Register("Sign", (*Sign)(nil)))
		dc.Channels = w.ChannelTypes()
		var d *driver.Driver
		var err error
		if h.IsServer() {
			dc.Joined = func(c *driver.Conn) { w.AddConn(c) }
			if dc.Socket, err = h.Listen(7777); err != nil {
				return nil, err
			}
			if d, err = driver.Listen("", dc); err != nil {
				return nil, err
			}
			world = w
			rec, err = flight.New(w, d, flight.Config{})
		} else {
			dc.Socket, dc.Client = h.Open(), control.ClientConfig{URL: h.Name()}
			if d, err = driver.Dial("10.0.0.1:7777", dc); err != nil {
				return nil, err
			}
			seen = w
			client, err = flight.New(w, d, flight.Config{})
		}
		ticks := 0
		return program(func(now time.Time) error {
			d.TickDispatch(now)
			w.Step(d.Time(now))
			if ticks++; !h.IsServer() && ticks%30 == 0 { // a client that draws seldom
				client.Look(d.Time(now))
			}
			d.TickFlush(now)
			return d.Err()
		}), err
	})
	sim.AddHost("server", true)
	sim.AddHost("Ann", false)
	sim.RunUntil(time.Second)
	first := &Door{Label: "first"}
	require.NoError(t, world.Spawn(first))
	sim.RunUntil(3 * time.Second)
	require.NotNil(t, firstOf(seen))
	require.NoError(t, world.Destroy(first))
	next = &Sign{Text: "second"}
	require.NoError(t, world.SpawnAs(next, nil, first.GUID()))
	sim.RunUntil(5 * time.Second)
	require.Nil(t, sim.Failure())
	require.IsType(t, (*Sign)(nil), firstOf(seen))
	for _, r := range []*flight.Recorder{rec, client} {
		d, _ := read(t, r.Take(), flight.View{})
		require.Len(t, d.Actors, 2)
		require.Equal(t, "Door", d.Classes[d.Actors[0].Class].Name)
		require.Equal(t, "Sign", d.Classes[d.Actors[1].Class].Name)
		require.Positive(t, d.Actors[0].To)
		require.Equal(t, -1, d.Actors[1].To)
	}
}
