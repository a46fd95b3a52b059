package flight_test

import (
	"strings"
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

// Kit may be kept from a client for many reasons.
type Kit struct {
	actorrep.Base
	Kind  string             `net:""`
	X     float64            `net:""`
	Alarm int32              `net:"custom"`
	Of    actorrep.Ref[*Kit] `net:""`
	Short string             `net:"cap=8"`
}

// Location makes it located.
func (k *Kit) Location() (x, y, z float64) { return k.X, 0, 0 }

// Relic is of a class that the client doesn't register.
type Relic struct {
	actorrep.Base
	Kind string `net:""`
}

// kept is the reason at a time why a client lacks an actor, or units of it that are named in hexadecimal; "" is none.
func (d *film) kept(waits [][]any, kind string, some bool, at float64) (reason, units string, found float64) {
	for _, w := range waits {
		a := d.Actors[int(w[0].(float64))]
		name := ""
		for _, p := range a.Parts {
			if p.Name == "Kind" {
				name = p.Of[0].(string)
			}
		}
		if name == kind && (w[1].(float64) == 1) == some && w[3].(float64) <= at {
			reason, units, found = w[5].(string), w[2].(string), w[3].(float64)
		}
	}
	return reason, units, found
}

// TestFilmHasExplainsReasons: a film says why a client lacks an actor or a value as World.Explain said it then, from when it was found until it is over, also
// of what began long before the film.
func TestFilmHasExplainsReasons(t *testing.T) {
	var world *actorrep.World
	var rec *flight.Recorder
	var peer *actorrep.Peer
	kits := map[string]*Kit{}
	sim := simtest.NewSimulation(3, func(h *simtest.Host) (simtest.Program, error) {
		dc := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
		w := actorrep.NewClient(actorrep.Config{})
		if h.IsServer() {
			w = actorrep.NewServer(actorrep.Config{Failed: func(error) {}})
			world = w
		}
		require.NoError(t, w.Register("Kit", (*Kit)(nil)))
		var d *driver.Driver
		var err error
		if h.IsServer() {
			require.NoError(t, w.Register("Relic", (*Relic)(nil)))
			if dc.Socket, err = h.Listen(7777); err != nil {
				return nil, err
			}
			dc.Channels = w.ChannelTypes()
			dc.Joined = func(c *driver.Conn) {
				peer = w.AddConn(c)
				peer.SetViewpoint(0, 0, 0)
				peer.Hold(func(a actorrep.Actor) bool { return a == kits["held"] })
			}
			d, err = driver.Listen("", dc)
			require.NoError(t, err)
			rec, err = flight.New(w, d, flight.Config{Keep: 20 * time.Second})
			for _, kind := range []string{"near", "far", "hidden", "held", "asleep", "off", "refers", "unfit"} {
				k := &Kit{Kind: kind, Alarm: 3}
				kits[kind] = k
				require.NoError(t, w.Spawn(k))
			}
			kits["far"].X = 70
			kits["far"].SetCullDistance(50)
			kits["hidden"].SetOnlyOwner(true)
			kits["refers"].Of = actorrep.RefTo(kits["hidden"])
			kits["unfit"].Short = "much too long"
			require.NoError(t, kits["off"].SetCondition("Alarm", false))
			require.NoError(t, w.Spawn(&Relic{Kind: "relic"}))
		} else {
			dc.Socket, dc.Channels, dc.Client = h.Open(), w.ChannelTypes(), control.ClientConfig{URL: h.Name()}
			d, err = driver.Dial("10.0.0.1:7777", dc)
		}
		return program(func(now time.Time) error {
			d.TickDispatch(now)
			w.Step(d.Time(now))
			d.TickFlush(now)
			return d.Err()
		}), err
	})
	sim.AddHost("server", true)
	lag := netsim.Settings{Lag: 30 * time.Millisecond}
	require.NoError(t, sim.AddHost("Ann", false).SetNet(lag, lag))
	sim.RunUntil(time.Second)
	require.NoError(t, kits["asleep"].SetDormant(true))
	sim.RunUntil(2 * time.Second)

	// check compares all that the film has with what Explain says now.
	check := func() film {
		d, _ := read(t, rec.Take(), flight.View{})
		require.Empty(t, d.Cut)
		now := d.Steps[len(d.Steps)-1]
		for a := range world.All {
			kind, field := "relic", ""
			if k, ok := a.(*Kit); ok {
				kind = k.Kind
				field = map[string]string{"refers": "Of", "off": "Alarm"}[kind]
			}
			got, _, found := d.kept(d.Conns[0].Waits, kind, false, now)
			all, _, _ := d.kept(d.Waits, kind, false, now)
			e := world.Explain(peer, a)
			switch e.Reason {
			case actorrep.ReasonUpToDate, actorrep.ReasonInFlight:
				require.Empty(t, got+all, kind)
			case actorrep.ReasonDormant:
				require.Empty(t, got, kind)
				require.Equal(t, e.Reason.String(), all, kind)
			default:
				require.Equal(t, e.Text, got, kind)
				require.LessOrEqual(t, found, now)
				require.Empty(t, all, kind)
			}
			if field == "" {
				continue
			}
			one, units, _ := d.kept(append(d.Conns[0].Waits, d.Waits...), kind, true, now)
			if e := world.Explain(peer, a, field); e.Reason == actorrep.ReasonUpToDate {
				require.Empty(t, one, kind)
			} else {
				require.Equal(t, strings.TrimPrefix(e.Text, field+": "), one, kind)
				for _, p := range d.Actors[0].Parts {
					if p.Name == field {
						require.Equal(t, p.Units, units, kind)
					}
				}
			}
		}
		return d
	}
	d := check()
	for kind, want := range map[string]string{
		"far":    "not relevant: out of range by 20: 70 away, seen within 50",
		"hidden": "not relevant: only its owner sees it",
		"held":   "waits for Peer.Release",
		"relic":  "the client has no such class",
		"unfit":  "Short",
	} {
		got, _, _ := d.kept(d.Conns[0].Waits, kind, false, 2000)
		require.Contains(t, got, want, kind)
	}

	_, units, _ := d.kept(d.Conns[0].Waits, "unfit", false, 2000)
	for _, p := range d.Actors[0].Parts {
		require.Equal(t, p.Name == "Short", p.Units == units, p.Name)
	}

	// It is in a film that has none of its beginning.
	sim.RunUntil(60 * time.Second)
	d = check()
	require.Greater(t, d.Steps[0], 30_000.0)
	_, _, found := d.kept(d.Conns[0].Waits, "hidden", false, 60_000)
	require.Less(t, found, 2000.0)

	// What is over is over.
	kits["far"].X = 10
	kits["hidden"].SetOnlyOwner(false)
	peer.Release()
	kits["unfit"].Short = "short"
	require.NoError(t, kits["off"].SetCondition("Alarm", true))
	require.NoError(t, kits["asleep"].SetDormant(false))
	sim.RunUntil(62 * time.Second)
	d = check()
	for _, kind := range []string{"far", "hidden", "held", "unfit", "off", "refers", "asleep"} {
		for _, some := range []bool{false, true} {
			now, _, _ := d.kept(append(d.Conns[0].Waits, d.Waits...), kind, some, 62_000)
			require.Empty(t, now, kind)
		}
		before, _, _ := d.kept(append(d.Conns[0].Waits, d.Waits...), kind, kind == "off" || kind == "refers", 59_000)
		require.NotEmpty(t, before, "%s: and what was before is there too", kind)
	}
	kits["hidden"].SetOnlyOwner(true)
	sim.RunUntil(80 * time.Second)
	require.Equal(t, 3, rec.Waits(), "the hidden one, who refers to it, and the relic")
	world.RemoveConn(peer)
	sim.RunUntil(81 * time.Second)
	require.Zero(t, rec.Waits())
	require.Nil(t, sim.Failure())
}

// TestRecorderChangesNothing: a server sends the same bytes with a recorder as without, whatever the recorder asks of it meanwhile.
func TestRecorderChangesNothing(t *testing.T) {
	hash := func(seed uint64, recorded bool) (hash uint64, reasons int) {
		var rec *flight.Recorder
		sim := simtest.NewSimulation(seed, func(h *simtest.Host) (simtest.Program, error) {
			dc := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
			w := actorrep.NewClient(actorrep.Config{})
			if h.IsServer() {
				w = actorrep.NewServer(actorrep.Config{Failed: func(error) {}, RelevantTimeout: 300 * time.Millisecond})
			}
			require.NoError(t, w.Register("Kit", (*Kit)(nil)))
			dc.Channels = w.ChannelTypes()
			var d *driver.Driver
			var kits []*Kit
			var err error
			if h.IsServer() {
				if dc.Socket, err = h.Listen(7777); err != nil {
					return nil, err
				}
				dc.Joined = func(c *driver.Conn) { w.AddConn(c).SetViewpoint(0, 0, 0) }
				d, err = driver.Listen("", dc)
				for n := range 60 {
					k := &Kit{Kind: "kit", X: float64(n)}
					k.SetCullDistance(30)
					k.SetOnlyOwner(n%10 == 0)
					require.NoError(t, w.Spawn(k))
					kits = append(kits, k)
				}
				if recorded {
					rec, err = flight.New(w, d, flight.Config{})
				}
			} else {
				dc.Socket, dc.Client = h.Open(), control.ClientConfig{URL: h.Name()}
				d, err = driver.Dial("10.0.0.1:7777", dc)
			}
			n := 0
			return program(func(now time.Time) error {
				d.TickDispatch(now)
				n++
				for i, k := range kits {
					if (n+i)%7 == 0 {
						k.X = float64((n/7 + i) % 60)
						k.Of = actorrep.RefTo(kits[(n+i)%60])
						if err := k.SetDormant(n%35 < 7 && i%3 == 0); err != nil {
							return err
						}
					}
				}
				w.Step(d.Time(now))
				d.TickFlush(now)
				return d.Err()
			}), err
		})
		sim.AddHost("server", true)
		bad := netsim.Settings{Lag: 40 * time.Millisecond, Loss: 20}
		require.NoError(t, sim.AddHost("Ann", false).SetNet(bad, bad))
		sim.RunUntil(10 * time.Second)
		require.Nil(t, sim.Failure())
		if rec != nil {
			reasons = rec.Waits()
		}
		return sim.Hash(), reasons
	}
	for seed := range uint64(5) {
		without, _ := hash(seed, false)
		with, reasons := hash(seed, true)
		require.Equal(t, without, with, "seed %d", seed)
		require.Positive(t, reasons)
	}
}
