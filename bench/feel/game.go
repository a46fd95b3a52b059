package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type keys struct{ X, Y int8 }

// runner is the player's own.
type runner struct {
	actorrep.Base
	X, Y float64 `net:"q=0.01,simulated" predict:"0.001"`
}

// Simulate runs.
func (r *runner) Simulate(in keys, dt time.Duration) {
	r.X = min(max(r.X+5*float64(in.X)*dt.Seconds(), -50), 50)
	r.Y = min(max(r.Y+5*float64(in.Y)*dt.Seconds(), -50), 50)
}

// walker is one of those that the player sees, on a circle.
type walker struct {
	actorrep.Base
	X, Y float64 `net:"q=0.001" interp:""`

	phase float64
}

const walkers = 5

// walk puts it where it is at a time: 5 m/s.
func (w *walker) walk(now time.Duration) {
	a := now.Seconds() + w.phase
	w.X, w.Y = 5*math.Cos(a), 5*math.Sin(a)
}

// end is a server or a client.
type end struct {
	world *actorrep.World
	own   *predict.Class[*runner, keys]
	in    *interp.Interpolator
	seen  *interp.Class[*walker]
	wire
}

// game is a server of 60 frames a second, and a client whose frames and clock are its own.
type game struct {
	now, serverAt, clientAt time.Duration
	clock                   float64
	shooting                bool

	server, client end
	peer           *actorrep.Peer
	walkers        []*walker
	rng            *rand.Rand
	err            error

	draws    float64
	behind   time.Duration
	shots    []shot
	shotsN   int
	offs     float64
	farShots int
}

// shot is what a player drew and claims, on its way to the server.
type shot struct {
	due   time.Duration
	seen  interp.Seen
	drawn map[netguid.GUID][2]float64
}

func (g *game) input(*runner) keys {
	return keys{int8(int(g.now/time.Second)%3 - 1), int8(int(g.now/(700*time.Millisecond))%3 - 1)}
}

func (g *game) newEnd(w *actorrep.World, hz float64) (e end, err error) {
	e.world = w
	if e.own, err = predict.Register(w, "Runner", predict.Config[*runner, keys]{Input: g.input}); err != nil {
		return e, err
	}
	var options []actorrep.ClassOption
	if hz > 0 {
		options = append(options, actorrep.UpdateFrequency(hz))
	}
	if err = w.Register("Walker", (*walker)(nil), options...); err != nil {
		return e, err
	}
	if e.in, err = interp.New(w, interp.Config{MaxRewind: time.Second}); err != nil {
		return e, err
	}
	e.seen, err = interp.Register(e.in, interp.ClassConfig[*walker]{})
	return e, err
}

// newGame is one over a path; walkers are updated hz times a second, or there are none.
func newGame(seed uint64, set netsim.Settings, hz float64) (*game, error) {
	g := &game{clock: 1, rng: rand.New(rand.NewPCG(seed, 7)), clientAt: time.Duration(seed%16) * time.Millisecond}
	failed := func(err error) { g.err = err }
	var err error
	if g.server, err = g.newEnd(actorrep.NewServer(actorrep.Config{Failed: failed}), hz); err != nil {
		return nil, err
	}
	if g.client, err = g.newEnd(actorrep.NewClient(actorrep.Config{Failed: failed}), hz); err != nil {
		return nil, err
	}
	if g.server.wire, g.client.wire, err = connect(&g.now, set, g.rng, g.server.world, g.client.world); err != nil {
		return nil, err
	}
	g.peer = g.server.world.AddConn(g.server.conn)
	r := &runner{}
	if err := g.server.world.Spawn(r); err != nil {
		return nil, err
	}
	for i := range walkers {
		if hz == 0 {
			break
		}
		w := &walker{phase: float64(i)}
		g.walkers = append(g.walkers, w)
		if err := g.server.world.Spawn(w); err != nil {
			return nil, err
		}
	}
	return g, g.server.own.Possess(r, g.peer, 0)
}

// set changes the path.
func (g *game) set(s netsim.Settings) error {
	if err := g.server.from.Set(s); err != nil {
		return err
	}
	return g.client.from.Set(s)
}

// run lets time pass.
func (g *game) run(d time.Duration) error {
	for until := g.now + d; g.now < until && g.err == nil; {
		g.now = min(g.serverAt, g.clientAt)
		if g.now == g.serverAt {
			g.serverAt += tick
			g.serve()
		}
		if g.now == g.clientAt {
			g.clientAt += tick
			g.play(time.Duration(float64(g.now) * g.clock))
		}
		if g.server.conn.Closed() || g.client.conn.Closed() {
			return fmt.Errorf("the connection ended: %v, %v", g.server.conn.Result(), g.client.conn.Result())
		}
	}
	return g.err
}

func (g *game) serve() {
	s := &g.server
	s.receive(g.now, g.now)
	for len(g.shots) > 0 && g.shots[0].due <= g.now {
		g.judge(&g.shots[0])
		g.shots = g.shots[1:]
	}
	if err := s.own.Tick(g.now); err != nil {
		g.err = err
	}
	for _, w := range g.walkers {
		w.walk(g.now)
	}
	s.world.Step(g.now)
	s.in.Tick(g.now)
	s.conn.Tick(g.now)
}

func (g *game) play(at time.Duration) {
	c := &g.client
	c.receive(g.now, at)
	c.world.Step(at)
	c.in.Tick(at)
	if err := c.own.Tick(at); err != nil {
		g.err = err
	}
	g.draw()
	c.conn.Tick(at)
}

// draw draws all that the player sees, and shoots at it.
func (g *game) draw() {
	var s shot
	if g.shooting {
		s = shot{due: g.now + 50*time.Millisecond + time.Duration(g.rng.Int64N(int64(20*time.Millisecond))), seen: g.client.in.Seen(), drawn: map[netguid.GUID][2]float64{}}
	}
	var drawn walker
	for a := range g.client.world.All {
		w, ok := a.(*walker)
		if !ok || !g.client.seen.At(w, &drawn) {
			continue
		}
		at, _ := g.client.seen.Time(w)
		g.draws++
		g.behind += g.now - at
		if g.shooting {
			s.drawn[w.GUID()] = [2]float64{drawn.X, drawn.Y}
		}
	}
	if g.shooting {
		g.shots = append(g.shots, s)
	}
}

// judge compares what a player drew with what the server shows of it.
func (g *game) judge(s *shot) {
	view := g.server.in.Rewind(g.peer, s.seen)
	var past walker
	for _, w := range g.walkers {
		drawn, ok := s.drawn[w.GUID()]
		if !ok || !g.server.seen.Pose(view, w, &past) {
			continue
		}
		off := math.Hypot(past.X-drawn[0], past.Y-drawn[1])
		g.shotsN++
		if g.offs += off; off > 0.1 {
			g.farShots++
		}
	}
}

// figures is what was met in a while.
type figures struct {
	missed, wait, corrections float64 // percent, ms
	late, behind              float64 // percent, ms
	off, far                  float64 // m, percent
}

// add adds a share of a game's figures.
func (f *figures) add(g *figures, share float64) {
	f.missed += g.missed * share
	f.wait += g.wait * share
	f.corrections += g.corrections * share
	f.late += g.late * share
	f.behind += g.behind * share
	f.off += g.off * share
	f.far += g.far * share
}

var errNoInput = errors.New("no input has come at all")

// measure lets time pass and says what was met.
func (g *game) measure(d time.Duration) (f figures, err error) {
	server, client, drawn := g.server.own.Counters().Server, g.client.own.Counters().Client, g.client.in.Counters
	g.draws, g.behind, g.shotsN, g.offs, g.farShots = 0, 0, 0, 0, 0
	if err := g.run(d); err != nil {
		return f, err
	}
	s, c, n := g.server.own.Counters().Server, g.client.own.Counters().Client, g.client.in.Counters
	moves, missed := float64(s.Moves-server.Moves), float64(s.Missed-server.Missed)
	if moves == 0 {
		return f, errNoInput
	}
	f.missed, f.wait = 100*missed/(moves+missed), float64(s.Waited-server.Waited)/1000/moves
	f.corrections = float64(c.Corrections - client.Corrections)
	if g.draws > 0 {
		f.late, f.behind = 100*float64(n.Late-drawn.Late)/g.draws, ms(g.behind)/g.draws
	}
	if g.shotsN > 0 {
		f.off, f.far = g.offs/float64(g.shotsN), 100*float64(g.farShots)/float64(g.shotsN)
	}
	return f, nil
}
