// Lookback is a game with faults, and the film in which they are found: examples/guide/LOOKING-BACK.md goes through it.
//
// Ann and Bob walk through a corridor with three doors, over a network with 5 % loss. A door sleeps until somebody is near; then the server opens
// it, and whoever opened it rings a bell. The third door is opened without FlushDormancy: on the server it is open, and for Ann and Bob it stays
// shut. The bell is an unreliable call, so that Ann hears only two of three. The whole is in virtual time, and takes less than a second.
//
//	go run ./examples/lookback                  # writes a new file to the folder for temporary files, and says which
//	go run ./examples/lookback -film film.html
//	go run ./examples/lookback -mended          # with FlushDormancy, and a bell that is reliable
//
// Printed is which doors are open on the server and for Ann, and how often she heard the bell. The exit code is 0 when these are the ones above.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Walker is a player.
type Walker struct {
	actorrep.Base
	Name string  `net:""`
	X, Y float64 `net:"q=0.01"`

	heard int // how often this end heard its bell
}

func (w *Walker) ring(actorrep.Call) error {
	w.heard++
	return nil
}

// Door is open or shut.
type Door struct {
	actorrep.Base
	Open bool    `net:""`
	X, Y float64 `net:"q=0.01"`
}

const (
	seconds = 20
	speed   = 2 // a second
	near    = 1
)

// server has the game and the recorder.
type server struct {
	mended  bool
	driver  *driver.Driver
	world   *actorrep.World
	past    *flight.Recorder
	doors   []*Door
	walkers []*Walker
	names   map[uint32]string
	bell    *actorrep.RPC0[*Walker]
}

// register returns the bell of a world.
func register(w *actorrep.World, mended bool) (*actorrep.RPC0[*Walker], error) {
	ring := func(call actorrep.Call, w *Walker) error { return w.ring(call) }
	bell := actorrep.MulticastRPC0(ring)
	if mended {
		bell = actorrep.MulticastRPC0(ring, actorrep.Reliable)
	}
	if err := w.Register("Walker", (*Walker)(nil), actorrep.RPCs{"Ring": bell}); err != nil {
		return nil, err
	}
	return bell, w.Register("Door", (*Door)(nil))
}

func newServer(h *simtest.Host, cfg driver.Config, mended bool) (*server, error) {
	s := &server{mended: mended, world: actorrep.NewServer(actorrep.Config{}), names: map[uint32]string{}}
	socket, err := h.Listen(7777)
	if err != nil {
		return nil, err
	}
	if s.bell, err = register(s.world, mended); err != nil {
		return nil, err
	}
	cfg.Socket, cfg.Channels, cfg.Joined = socket, s.world.ChannelTypes(), s.joined
	if s.driver, err = driver.Listen("", cfg); err != nil {
		return nil, err
	}
	if s.past, err = flight.New(s.world, s.driver, flight.Config{}); err != nil {
		return nil, err
	}
	for i := range 3 {
		d := &Door{X: 10 * float64(i+1), Y: 2}
		if err := s.world.Spawn(d); err != nil {
			return nil, err
		}
		if err := d.SetDormant(true); err != nil {
			return nil, err
		}
		s.doors = append(s.doors, d)
	}
	return s, nil
}

func (s *server) joined(c *driver.Conn) {
	w := &Walker{Name: c.Login().URL, Y: float64(len(s.walkers))}
	w.SetOwner(s.world.AddConn(c))
	if err := s.world.Spawn(w); err != nil {
		c.CloseWithError(err)
		return
	}
	s.walkers, s.names[c.ID()] = append(s.walkers, w), w.Name
}

func (s *server) Tick(now time.Time) error {
	s.driver.TickDispatch(now)
	for _, w := range s.walkers {
		w.X += speed * simtest.DefaultTick.Seconds()
		for i, d := range s.doors {
			if !d.Open && d.X-w.X < near {
				if err := s.open(i, w); err != nil {
					return err
				}
			}
		}
	}
	s.world.Step(s.driver.Time(now))
	s.driver.TickFlush(now)
	return s.driver.Err()
}

func (s *server) open(i int, by *Walker) error {
	d := s.doors[i]
	d.Open = true
	if i < 2 || s.mended {
		d.FlushDormancy()
	}
	return s.bell.Call(by)
}

func (s *server) Close() error { return nil }

// client has a recorder of its own.
type client struct {
	driver *driver.Driver
	world  *actorrep.World
	past   *flight.Recorder
}

func newClient(h *simtest.Host, cfg driver.Config, mended bool) (*client, error) {
	c := &client{world: actorrep.NewClient(actorrep.Config{})}
	if _, err := register(c.world, mended); err != nil {
		return nil, err
	}
	cfg.Socket, cfg.Channels, cfg.Client = h.Open(), c.world.ChannelTypes(), control.ClientConfig{URL: h.Name()}
	var err error
	if c.driver, err = driver.Dial("10.0.0.1:7777", cfg); err != nil {
		return nil, err
	}
	c.past, err = flight.New(c.world, c.driver, flight.Config{})
	return c, err
}

func (c *client) Tick(now time.Time) error {
	c.driver.TickDispatch(now)
	c.world.Step(c.driver.Time(now))
	c.past.Look(c.driver.Time(now)) // what a player would see
	c.driver.TickFlush(now)
	return c.driver.Err()
}

func (c *client) Close() error { return nil }

// doorsOf is which doors of a world are open, in the order of the corridor.
func doorsOf(w *actorrep.World) (open [3]bool) {
	for a := range w.All {
		if d, ok := a.(*Door); ok {
			open[int(d.X/10)-1] = d.Open
		}
	}
	return open
}

// rings is how often a world's bells were heard.
func rings(w *actorrep.World) (n int) {
	for a := range w.All {
		if walker, ok := a.(*Walker); ok {
			n += walker.heard
		}
	}
	return n
}

// play plays the game, and returns its film, which doors were open at both ends, and how often Ann heard the bell.
func play(mended bool) (f *flight.Film, v flight.View, had, seen [3]bool, heard int, err error) {
	var srv *server
	var ann *client
	sim := simtest.NewSimulation(2, func(h *simtest.Host) (simtest.Program, error) {
		cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
		if h.IsServer() {
			s, err := newServer(h, cfg, mended)
			srv = s
			return s, err
		}
		c, err := newClient(h, cfg, mended)
		if h.Name() == "Ann" {
			ann = c
		}
		return c, err
	})
	sim.AddHost("server", true)
	for _, name := range []string{"Ann", "Bob"} {
		bad := netsim.Settings{Lag: 60 * time.Millisecond, Loss: 5}
		if err := sim.AddHost(name, false).SetNet(bad, bad); err != nil {
			return nil, v, had, seen, 0, err
		}
	}
	sim.RunUntil(seconds * time.Second)
	if fail := sim.Failure(); fail != nil {
		return nil, v, had, seen, 0, fmt.Errorf("%v", fail)
	}
	v = flight.View{Title: "lookback", Names: srv.names, Clients: []*flight.Film{ann.past.Take()}}
	return srv.past.Take(), v, doorsOf(srv.world), doorsOf(ann.world), rings(ann.world), nil
}

// create makes the film's file; without a name a new one, since the folder for temporary files is everybody's.
func create(file string) (*os.File, error) {
	if file == "" {
		return os.CreateTemp("", "lookback-*.html")
	}
	return os.Create(file)
}

func run(file string, mended bool) error {
	film, view, had, seen, heard, err := play(mended)
	if err != nil {
		return err
	}
	out, err := create(file)
	if err != nil {
		return err
	}
	if err := film.WriteHTML(out, view); err != nil {
		return errors.Join(err, out.Close())
	}
	if err := out.Close(); err != nil {
		return err
	}
	fmt.Printf("open on the server: %v\nopen for Ann:       %v\nbells for Ann:      %d of 3\nopen %s in a browser\n", had, seen, heard, out.Name())
	if want := [3]bool{true, true, mended}; had != [3]bool{true, true, true} || seen != want {
		return fmt.Errorf("open for Ann should be %v", want)
	}
	if mended != (heard == 3) {
		return fmt.Errorf("the bell rang for Ann %d times of 3", heard)
	}
	return nil
}

func main() {
	film := flag.String("film", "", "file for the film; a new one in the folder for temporary files unless given")
	mended := flag.Bool("mended", false, "play without the fault")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	err := run(*film, *mended)
	if err == nil {
		_, err = fmt.Println("PASS: as it should be, with the faults that it has")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}
