// Lookback is a game with a fault, and the film in which it is found: examples/guide/LOOKING-BACK.md goes through it.
//
// Ann and Bob walk through a corridor with three doors, over a network with 5 % loss. A door sleeps until somebody is near; then the server opens
// it. The third door is opened without FlushDormancy: on the server it is open, and for Ann and Bob it stays shut. The whole is in
// virtual time, and takes less than a second.
//
//	go run ./examples/lookback                  # writes lookback.html to the folder for temporary files
//	go run ./examples/lookback -film film.html
//	go run ./examples/lookback -mended          # with FlushDormancy
//
// Printed is which doors are open on the server and for Ann. The exit code is 0 when these are the ones above.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
}

func register(w *actorrep.World) error {
	if err := w.Register("Walker", (*Walker)(nil)); err != nil {
		return err
	}
	return w.Register("Door", (*Door)(nil))
}

func newServer(h *simtest.Host, cfg driver.Config, mended bool) (*server, error) {
	s := &server{mended: mended, world: actorrep.NewServer(actorrep.Config{}), names: map[uint32]string{}}
	socket, err := h.Listen(7777)
	if err != nil {
		return nil, err
	}
	if err := register(s.world); err != nil {
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
				s.open(i)
			}
		}
	}
	s.world.Step(s.driver.Time(now))
	s.driver.TickFlush(now)
	return s.driver.Err()
}

func (s *server) open(i int) {
	d := s.doors[i]
	d.Open = true
	if i < 2 || s.mended {
		d.FlushDormancy()
	}
}

func (s *server) Close() error { return nil }

// client shows nothing.
type client struct {
	driver *driver.Driver
	world  *actorrep.World
}

func newClient(h *simtest.Host, cfg driver.Config) (*client, error) {
	c := &client{world: actorrep.NewClient(actorrep.Config{})}
	if err := register(c.world); err != nil {
		return nil, err
	}
	cfg.Socket, cfg.Channels, cfg.Client = h.Open(), c.world.ChannelTypes(), control.ClientConfig{URL: h.Name()}
	var err error
	c.driver, err = driver.Dial("10.0.0.1:7777", cfg)
	return c, err
}

func (c *client) Tick(now time.Time) error {
	c.driver.TickDispatch(now)
	c.world.Step(c.driver.Time(now))
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

// play plays the game, and returns its film and which doors were open at both ends.
func play(mended bool) (f *flight.Film, v flight.View, had, seen [3]bool, err error) {
	var srv *server
	var ann *client
	sim := simtest.NewSimulation(2, func(h *simtest.Host) (simtest.Program, error) {
		cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
		if h.IsServer() {
			s, err := newServer(h, cfg, mended)
			srv = s
			return s, err
		}
		c, err := newClient(h, cfg)
		if h.Name() == "Ann" {
			ann = c
		}
		return c, err
	})
	sim.AddHost("server", true)
	for _, name := range []string{"Ann", "Bob"} {
		bad := netsim.Settings{Lag: 60 * time.Millisecond, Loss: 5}
		if err := sim.AddHost(name, false).SetNet(bad, bad); err != nil {
			return nil, v, had, seen, err
		}
	}
	sim.RunUntil(seconds * time.Second)
	if fail := sim.Failure(); fail != nil {
		return nil, v, had, seen, fmt.Errorf("%v", fail)
	}
	return srv.past.Take(), flight.View{Title: "lookback", Names: srv.names}, doorsOf(srv.world), doorsOf(ann.world), nil
}

func run(file string, mended bool) error {
	film, view, had, seen, err := play(mended)
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := film.WriteHTML(out, view); err != nil {
		return err
	}
	fmt.Printf("open on the server: %v\nopen for Ann:       %v\nopen %s in a browser\n", had, seen, file)
	if want := [3]bool{true, true, mended}; had != [3]bool{true, true, true} || seen != want {
		return fmt.Errorf("open for Ann should be %v", want)
	}
	return nil
}

func main() {
	film := flag.String("film", filepath.Join(os.TempDir(), "lookback.html"), "where the film is written")
	mended := flag.Bool("mended", false, "play without the fault")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*film, *mended); err != nil {
		fmt.Println("FAIL:", err)
		os.Exit(1)
	}
	fmt.Println("PASS: as it should be, with the fault that it has")
}
