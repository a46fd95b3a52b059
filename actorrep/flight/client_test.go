package flight_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Legs is a runner's input.
type Legs struct{ Dir int8 }

// Runner is predicted.
type Runner struct {
	actorrep.Base
	X    float64 `net:"q=0.01,simulated" predict:"0.01"`
	Name string  `net:""`
}

// Simulate runs.
func (r *Runner) Simulate(l Legs, dt time.Duration) { r.X += 5 * float64(l.Dir) * dt.Seconds() }

// track is an end of a game with predicted runners, whose server pushes them and calls procedures.
type track struct {
	driver  *driver.Driver
	world   *actorrep.World
	runners *predict.Class[*Runner, Legs]
	rec     *flight.Recorder
	all     []*Runner
	pushes  []time.Duration
	bang    *actorrep.RPC0[*Runner] // unreliable
	gate    *actorrep.RPC0[*Runner] // reliable
	ask     *actorrep.RPC0[*Runner] // to the server
	ran     map[string]int
	drawn   map[float64]float64 // a client's own runner
}

func newTrack(h *simtest.Host, w *actorrep.World) (*track, error) {
	e := &track{world: w, ran: map[string]int{}, drawn: map[float64]float64{}}
	count := func(name string) func(actorrep.Call, *Runner) error {
		return func(actorrep.Call, *Runner) error {
			e.ran[name]++
			return nil
		}
	}
	e.bang = actorrep.MulticastRPC0(count("bang"))
	e.gate = actorrep.ClientRPC0(count("gate"), actorrep.Reliable)
	e.ask = actorrep.ServerRPC0(count("ask"), actorrep.RateLimit(2, 2))
	var err error
	e.runners, err = predict.Register(w, "Runner", predict.Config[*Runner, Legs]{Input: func(*Runner) Legs { return Legs{Dir: 1} }},
		actorrep.RPCs{"bang": e.bang, "gate": e.gate, "ask": e.ask})
	return e, err
}

// race is a game.
type race struct {
	sim     *simtest.Simulation
	server  *track
	clients map[string]*track
}

// run makes a game of some players.
func run(t *testing.T, seed uint64, cfg flight.Config, bad netsim.Settings, names ...string) *race {
	g := &race{clients: map[string]*track{}}
	g.sim = simtest.NewSimulation(seed, func(h *simtest.Host) (simtest.Program, error) {
		dc := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
		if h.IsServer() {
			s, err := newTrack(h, actorrep.NewServer(actorrep.Config{}))
			if err != nil {
				return nil, err
			}
			g.server = s
			if dc.Socket, err = h.Listen(7777); err != nil {
				return nil, err
			}
			dc.Channels = s.world.ChannelTypes()
			dc.Joined = func(c *driver.Conn) {
				peer, r := s.world.AddConn(c), &Runner{Name: c.Login().URL}
				r.SetOwner(peer)
				require.NoError(t, s.world.Spawn(r))
				require.NoError(t, s.runners.Possess(r, peer, c.Now()))
				s.all = append(s.all, r)
			}
			if s.driver, err = driver.Listen("", dc); err != nil {
				return nil, err
			}
			s.rec, err = flight.New(s.world, s.driver, cfg)
			n := 0
			return program(func(now time.Time) error {
				s.driver.TickDispatch(now)
				at := s.driver.Time(now)
				if n++; n%60 == 0 {
					for _, r := range s.all {
						_, _ = s.bang.Call(r), s.gate.Call(r)
					}
				}
				if n%400 == 0 {
					for _, r := range s.all {
						r.X += 3
					}
					s.pushes = append(s.pushes, at)
				}
				if err := s.runners.Tick(at); err != nil {
					return err
				}
				s.world.Step(at)
				s.driver.TickFlush(now)
				return s.driver.Err()
			}), err
		}
		c, err := newTrack(h, actorrep.NewClient(actorrep.Config{}))
		if err != nil {
			return nil, err
		}
		g.clients[h.Name()] = c
		dc.Socket, dc.Channels, dc.Client = h.Open(), c.world.ChannelTypes(), control.ClientConfig{URL: h.Name()}
		if c.driver, err = driver.Dial("10.0.0.1:7777", dc); err != nil {
			return nil, err
		}
		c.rec, err = flight.New(c.world, c.driver, cfg)
		return program(func(now time.Time) error {
			c.driver.TickDispatch(now)
			at := c.driver.Time(now)
			c.world.Step(at)
			if err := c.runners.Tick(at); err != nil {
				return err
			}
			for a := range c.world.All {
				if r := a.(*Runner); r.IsOwned() {
					_ = c.ask.Call(r) // more often than it may
					c.drawn[math.Round(float64(at)/1e4)/100] = r.X
				}
			}
			c.rec.Look(at)
			c.driver.TickFlush(now)
			return c.driver.Err()
		}), err
	})
	g.sim.AddHost("server", true)
	for _, name := range names {
		require.NoError(t, g.sim.AddHost(name, false).SetNet(bad, bad))
	}
	return g
}

func (g *race) until(t *testing.T, at time.Duration) {
	g.sim.RunUntil(at)
	require.Nil(t, g.sim.Failure())
}

// correctedBy300 is of a push of 3, at a tolerance of 0.01.
var correctedBy300 = regexp.MustCompile(`corrected: X was off by (29|30)\d`)

// TestClient: a client's film has what it showed in each frame, predicted values too, which corrections there were, and its calls. Both
// ends tell of the same corrections; a call's packet has the fate that the call had.
func TestClient(t *testing.T) {
	g := run(t, 11, flight.Config{}, netsim.Settings{Lag: 60 * time.Millisecond, Loss: 10}, "Ann", "Bob")
	g.until(t, 20*time.Second)
	ann := g.clients["Ann"]
	d, page := read(t, ann.rec.Take(), flight.View{})
	require.NotContains(t, page, `class="client">`)
	require.True(t, d.Client)
	require.Empty(t, d.Cut)
	require.Len(t, d.Actors, 2)
	own := -1
	for i, a := range d.Actors {
		if d.at(i, "Name", len(d.Steps)-1) == "Ann" {
			own = i
		}
		require.Equal(t, -1, a.To)
	}
	compared := 0
	for i, at := range d.Steps {
		if want, ok := ann.drawn[at]; ok {
			require.InDelta(t, want, d.at(own, "X", i), 0.0001, "at %v", at)
			compared++
		}
	}
	require.Greater(t, compared, 1000)
	require.Len(t, d.Conns, 1)
	require.Greater(t, len(d.Conns[0].Got), 500)
	sets := 0
	for i, a := range d.Actors { // of the other one's, every change is by a value that came since the frame before
		for _, p := range a.Parts {
			if p.Name == "X" {
				require.Equal(t, []string{"simulated", "predict"}, []string{p.Only, p.Drawn})
			}
			for k, step := range p.At {
				if i == own || p.Name != "X" || k == 0 {
					continue
				}
				require.True(t, slices.ContainsFunc(d.Conns[0].Set, func(s set) bool {
					return s.Actor == i && s.Units == p.Units && s.At > d.Steps[step-1] && s.At <= d.Steps[step]
				}), "%s at %v", p.Name, d.Steps[step])
				sets++
			}
		}
	}
	require.Greater(t, sets, 500)
	require.Less(t, len(d.Conns[0].Set), 2*sets, "nothing else")
	corrections, off := 0, 0
	for _, n := range d.Notes {
		if strings.Contains(n.Text, "its prediction was corrected") {
			require.Equal(t, own, n.Actor)
			corrections++
			if correctedBy300.MatchString(n.Text) {
				off++
			}
		}
	}
	require.GreaterOrEqual(t, corrections, 2)
	require.GreaterOrEqual(t, off, 2, "pushes of 3, at a tolerance of 0.01: 300 times the tolerance")
	came, asked := map[string]int{}, 0
	for _, c := range d.Conns[0].Calls {
		switch {
		case c.Came:
			came[c.Name]++
		case c.Name == "ask":
			require.NotNil(t, c.Packet)
			asked++
		}
	}
	require.Equal(t, ann.ran["bang"], came["bang"])
	require.Equal(t, ann.ran["gate"], came["gate"])
	require.NotZero(t, asked)
}

// TestCallsAndCorrections: a server's film has the calls in both directions with their packets, and the corrections.
func TestCallsAndCorrections(t *testing.T) {
	g := run(t, 12, flight.Config{}, netsim.Settings{Lag: 60 * time.Millisecond, Loss: 20}, "Ann", "Bob")
	g.until(t, 20*time.Second)
	d, _ := read(t, g.server.rec.Take(), flight.View{Clients: []*flight.Film{g.clients["Ann"].rec.Take()}})
	require.Len(t, d.Conns, 2)
	lost := 0
	for _, c := range d.Conns {
		ran, name := g.clients["Ann"].ran, "Ann"
		if c.ID == d.Conns[1].ID {
			ran, name = g.clients["Bob"].ran, "Bob"
		}
		sent, acked, gates, asked := 0, 0, 0, 0
		for _, call := range c.Calls {
			require.Empty(t, call.Refused)
			switch call.Name {
			case "bang":
				require.False(t, call.Reliable)
				if sent++; call.Packet.Fate == 1 {
					acked++
				}
				if call.Packet.Fate == 2 {
					lost++
				}
			case "gate":
				require.True(t, call.Reliable)
				of := -1
				for _, rec := range c.Records {
					if rec.Packet == call.Packet && rec.Actor == call.Actor && rec.Calls {
						of = rec.Seq
					}
				}
				require.Positive(t, of, "its bunch")
				tries, arrived := 0, false
				for _, rec := range c.Records {
					if rec.Actor == call.Actor && rec.Calls && rec.Seq == of {
						tries, arrived = tries+1, arrived || rec.Packet.Fate == 1
					}
				}
				require.True(t, arrived || call.At > 19_000, "sent again until it arrives: %v, %d tries", call.At, tries)
				gates++
			case "ask":
				require.True(t, call.Came)
				asked++
			}
		}
		require.GreaterOrEqual(t, ran["bang"], acked, name)
		require.LessOrEqual(t, ran["bang"], sent, name)
		require.InDelta(t, gates, ran["gate"], 1, name)
		require.NotZero(t, asked)
	}
	require.Greater(t, lost, 3)
	require.NotZero(t, g.server.ran["ask"])
	pushed := 0
	for _, n := range d.Notes {
		if strings.HasSuffix(n.Text, ": its prediction was corrected: the game had set X") {
			require.Regexp(t, `^Runner actor \d+:`, n.Text)
			require.Equal(t, "X", n.Field)
			for _, at := range g.server.pushes {
				if math.Abs(float64(at)/1e6-n.At) < 40 {
					pushed++
				}
			}
		}
	}
	require.Equal(t, 2*len(g.server.pushes), pushed)
}

// TestClientBounds: what a client keeps has a bound, and a film that begins later has the values of before.
func TestClientBounds(t *testing.T) {
	g := run(t, 13, flight.Config{Keep: 5 * time.Second, MaxBytes: 1 << 20}, netsim.Settings{Lag: 20 * time.Millisecond}, "Ann", "Bob", "Cid", "Dot")
	g.until(t, time.Second)
	ann, most := g.clients["Ann"], 0
	for at := time.Second; at <= 40*time.Second; at += time.Second {
		g.until(t, at)
		most = max(most, ann.rec.Bytes())
	}
	require.LessOrEqual(t, most, 1<<20)
	d, _ := read(t, ann.rec.Take(), flight.View{})
	require.Greater(t, d.Steps[0], 10_000.0)
	require.Less(t, d.Steps[0], 35_100.0)
	require.Len(t, d.Actors, 4)
	var names []string
	for i := range d.Actors {
		names = append(names, fmt.Sprint(d.at(i, "Name", 0)))
	}
	require.ElementsMatch(t, []string{"Ann", "Bob", "Cid", "Dot"}, names)
	require.Zero(t, testing.AllocsPerRun(100, func() { ann.rec.Look(ann.world.Now()) }))
	require.NoError(t, ann.rec.Err())
	require.NoError(t, ann.rec.Close())
	ann.rec.Look(0)
	ann.rec.Trace(&nettrace.Event{Kind: nettrace.PacketSent})
	d2, _ := read(t, ann.rec.Take(), flight.View{})
	require.Equal(t, len(d.Steps)+101, len(d2.Steps))

	// Without Look.
	w := actorrep.NewClient(actorrep.Config{})
	rec, err := flight.New(w, nil, flight.Config{})
	require.NoError(t, err)
	d, _ = read(t, rec.Take(), flight.View{})
	require.Contains(t, d.Cut, "calls Look")
}
