package flight_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Wheel is a driver's input.
type Wheel struct{ Turn float32 }

// Racer is a predicted car.
type Racer struct {
	actorrep.Base
	X       float64 `net:"q=0.01,simulated" predict:"0.01" interp:""`
	Y       float64 `net:"q=0.01,simulated" predict:"0.01" interp:""`
	Heading float64 `net:"rot=12,simulated" predict:"0.1" interp:""`
	Health  uint8   `net:""`
	Name    string  `net:""`
}

// Pit is seen by its owner only, which it doesn't have: nobody has it, for a reason that is kept for each.
type Pit struct {
	actorrep.Base
	Tyres uint8 `net:""`
}

// Simulate drives.
func (r *Racer) Simulate(w Wheel, dt time.Duration) {
	r.Heading = math.Mod(r.Heading+90*float64(w.Turn)*dt.Seconds()+360, 360)
	sin, cos := math.Sincos(r.Heading * math.Pi / 180)
	r.X += 10 * cos * dt.Seconds()
	r.Y += 10 * sin * dt.Seconds()
}

// grandPrix is a game of predicted players who all see each other. The server has a recorder, and one client.
type grandPrix struct {
	sim            *simtest.Simulation
	world          *actorrep.World
	server, client *flight.Recorder
	ofServer       time.Duration // CPU time of the server's frames
	ofClient       time.Duration // and of that client's
	corrections    int           // of all clients
	calls          int           // that ran at the one client
}

func newGrandPrix(b *testing.B, players int, recorders bool) *grandPrix {
	g := &grandPrix{}
	g.sim = simtest.NewSimulation(1, func(h *simtest.Host) (simtest.Program, error) {
		first := h.Name() == "player 0"
		dc := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
		w := actorrep.NewClient(actorrep.Config{})
		if h.IsServer() {
			w = actorrep.NewServer(actorrep.Config{})
			g.world = w
		}
		if err := w.Register("Pit", (*Pit)(nil)); err != nil {
			return nil, err
		}
		honk := actorrep.MulticastRPC0(func(actorrep.Call, *Racer) error {
			if first {
				g.calls++
			}
			return nil
		})
		frames := 0
		racers, err := predict.Register(w, "Racer", predict.Config[*Racer, Wheel]{
			Input:     func(*Racer) Wheel { return Wheel{float32(math.Sin(float64(frames) / 20))} },
			Corrected: func(*Racer, prediction.Correction) { g.corrections++ },
		}, actorrep.RPCs{"honk": honk})
		if err != nil {
			return nil, err
		}
		dc.Channels = w.ChannelTypes()
		var d *driver.Driver
		var rec *flight.Recorder
		var all []*Racer
		used := &g.ofServer
		switch {
		case h.IsServer():
			if dc.Socket, err = h.Listen(7777); err != nil {
				return nil, err
			}
			dc.Joined = func(c *driver.Conn) {
				peer, r := w.AddConn(c), &Racer{Name: c.Login().URL, Y: float64(len(all))}
				require.NoError(b, w.Spawn(r))
				require.NoError(b, racers.Possess(r, peer, c.Now()))
				all = append(all, r)
			}
			for range players {
				pit := &Pit{}
				pit.SetOnlyOwner(true)
				require.NoError(b, w.Spawn(pit))
			}
			d, err = driver.Listen("", dc)
		default:
			dc.Socket, dc.Client = h.Open(), control.ClientConfig{URL: h.Name()}
			d, err = driver.Dial("10.0.0.1:7777", dc)
			used = new(time.Duration)
			if first {
				used = &g.ofClient
			}
		}
		if err == nil && recorders && (h.IsServer() || first) {
			// Triggers that look at every correction and every end, and never fire.
			rec, err = flight.New(w, d, flight.Config{Save: flight.Saving{Dir: b.TempDir(), Correction: 1e6, Left: true}})
			if h.IsServer() {
				g.server = rec
			} else {
				g.client = rec
			}
		}
		return program(func(now time.Time) error {
			began := cputime.Thread()
			defer func() { *used += cputime.Thread() - began }()
			frames++
			d.TickDispatch(now)
			at := d.Time(now)
			if h.IsServer() {
				for i, r := range all {
					switch (frames + i) % 60 {
					case 0: // something that the client doesn't predict: a correction
						r.X += 2
					case 15, 45:
						r.Health++
						if err := honk.Call(r); err != nil {
							return err
						}
					}
				}
				if err := racers.Tick(at); err != nil {
					return err
				}
				w.Step(at)
			} else {
				w.Step(at)
				if err := racers.Tick(at); err != nil {
					return err
				}
				if rec != nil {
					rec.Look(at)
				}
			}
			d.TickFlush(now)
			return d.Err()
		}), err
	})
	g.sim.AddHost("server", true)
	bad := netsim.Settings{Lag: 40 * time.Millisecond, Loss: 2}
	for i := range players {
		require.NoError(b, g.sim.AddHost(fmt.Sprintf("player %d", i), false).SetNet(bad, bad))
	}
	return g
}

// BenchmarkCost says what the recorders of a server with 100 players and of one of its clients cost: CPU time of their frames beside the
// same game without recorders, in seconds that take turns, and memory. Everybody sees everybody move 60 times a second, and is predicted; each
// player is corrected once a second, and calls an unreliable procedure of everybody's twice. As many actors again are kept from everybody.
func BenchmarkCost(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const begin, end = 3, 18
	for range b.N {
		games := []*grandPrix{newGrandPrix(b, 100, true), newGrandPrix(b, 100, false)}
		for _, g := range games {
			g.sim.RunUntil(begin * time.Second)
			g.corrections, g.calls = 0, 0
		}
		var server, client []float64 // share of a core, in %
		for at := begin + 1; at <= end; at++ {
			for _, g := range games {
				g.ofServer, g.ofClient = 0, 0
				g.sim.RunUntil(time.Duration(at) * time.Second)
				require.Nil(b, g.sim.Failure())
			}
			server = append(server, 100*(games[0].ofServer-games[1].ofServer).Seconds())
			client = append(client, 100*(games[0].ofClient-games[1].ofClient).Seconds())
		}
		slices.Sort(server)
		slices.Sort(client)
		g := games[0]
		b.ReportMetric(server[len(server)/2], "%-of-a-core")
		b.ReportMetric(client[len(client)/2], "%-of-a-core-at-a-client")
		b.ReportMetric(100*games[1].ofServer.Seconds(), "%-without")
		b.ReportMetric(float64(g.corrections)/(end-begin), "corrections/s")
		b.ReportMetric(float64(g.calls)/(end-begin), "calls/s-at-a-client")
		b.ReportMetric(float64(g.server.Waits()), "reasons")
		b.ReportMetric(float64(g.server.Bytes())/end/1e3, "kB/s")
		b.ReportMetric(float64(g.client.Bytes())/end/1e3, "kB/s-at-a-client")
		for _, conns := range [][]uint32{nil, {7}} {
			var page countingWriter
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := cputime.Thread()
			film := g.server.Take()
			taken := cputime.Thread() - began
			require.NoError(b, film.WriteHTML(&page, flight.View{Conns: conns}))
			written := cputime.Thread() - began
			runtime.ReadMemStats(&after)
			of := "-all"
			if conns != nil {
				of = "-one"
			}
			b.ReportMetric(float64(taken)/1e6, "ms-take"+of)
			b.ReportMetric(float64(written)/1e6, "ms-page"+of)
			b.ReportMetric(float64(page)/1e6, "MB-page"+of)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6, "MB-allocated"+of)
		}
		for _, r := range []struct {
			rec *flight.Recorder
			of  string
		}{{g.server, ""}, {g.client, "-at-a-client"}} {
			kept, with := r.rec.Bytes(), inUse()
			r.rec.Forget()
			b.ReportMetric(float64(with-inUse()-kept)/1e6, "MB-besides"+r.of)
		}
		runtime.KeepAlive(games)
	}
}

// inUse is the heap's bytes in use.
func inUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// countingWriter counts bytes.
type countingWriter int

func (w *countingWriter) Write(b []byte) (int, error) {
	*w += countingWriter(len(b))
	return len(b), nil
}
