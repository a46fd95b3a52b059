package capture_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/capture"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

var key = netcode.Key{1, 2, 3, 4}

// player runs about in an arena.
type player struct {
	actorrep.Base
	X, Y  float64 `net:"q=0.01"`
	Score int     `net:""`

	dir float64
}

var turn = actorrep.ServerRPC(func(_ actorrep.Call, p *player, dir float64) error {
	p.dir = dir
	return nil
}, actorrep.Reliable)

// end is a server's or a client's program.
type end struct {
	d       *driver.Driver
	world   *actorrep.World
	players []*player
	speed   float64
	ticks   int
	joined  int
}

func newEnd(w *actorrep.World) (*end, error) {
	return &end{world: w, speed: 1}, w.Register("player", (*player)(nil), actorrep.RPCs{"turn": turn})
}

func bootServer(o capture.Outside) (capture.Program, error) {
	e, err := newEnd(actorrep.NewServer(actorrep.Config{}))
	if err != nil {
		return nil, err
	}
	e.d, err = driver.Listen("", o.Config(driver.Config{Channels: e.world.ChannelTypes(), Link: driver.Netcode{Key: key}, Joined: func(c *driver.Conn) {
		p := &player{X: float64(10 * len(e.players))}
		p.SetOwner(e.world.AddConn(c))
		if e.world.Spawn(p) == nil {
			e.players = append(e.players, p)
			e.joined++
		}
	}}))
	return e, err
}

func bootClient(addr string) capture.Boot {
	return func(o capture.Outside) (capture.Program, error) {
		e, err := newEnd(actorrep.NewClient(actorrep.Config{}))
		if err != nil {
			return nil, err
		}
		e.d, err = driver.Dial(addr, o.Config(driver.Config{Channels: e.world.ChannelTypes(), Link: driver.Netcode{Key: key}}))
		return e, err
	}
}

// Tick is both ends'.
func (e *end) Tick(now time.Time) error {
	e.d.TickDispatch(now)
	e.ticks++
	for i, p := range e.players {
		p.X += e.speed * math.Cos(p.dir) / 6
		p.Y += e.speed * math.Sin(p.dir) / 6
		for j, q := range e.players {
			if i != j && math.Hypot(p.X-q.X, p.Y-q.Y) < 1 {
				p.Score++
			}
		}
	}
	if !e.world.IsServer() && e.ticks%10 == 0 {
		for a := range e.world.All {
			if p := a.(*player); p.IsOwned() {
				_ = turn.Call(p, math.Mod(float64(e.ticks)*0.7, 6)) // a full queue is part of the run
			}
		}
	}
	e.world.Step(e.d.Time(now))
	e.d.TickFlush(now)
	return e.d.Err()
}

// Call sets the speed.
func (e *end) Call(data []byte) error {
	_, err := fmt.Sscan(string(data), &e.speed)
	return err
}

// State is where everybody is.
func (e *end) State(w io.Writer) {
	for a := range e.world.All {
		p := a.(*player)
		fmt.Fprintf(w, "%v %v %v %v\n", p.GUID(), p.X, p.Y, p.Score)
	}
}

// arena is a simulated game of which every end is recorded.
type arena struct {
	files []*bytes.Buffer
	ends  []*host
}

// host is a recorded end in the simulated world.
type host struct {
	rec   *capture.Recorder
	ticks int
}

func (a *arena) Boot(h *simtest.Host) (simtest.Program, error) {
	var (
		boot capture.Boot = bootServer
		o                 = capture.Outside{Clock: h.Time, Rand: h.Secrets()}
		err  error
	)
	if h.IsServer() {
		o.Socket, err = h.Listen(7777)
	} else {
		o.Socket = h.Open()
		boot = bootClient(fmt.Sprintf("%v:7777", h.Simulation().ServerOf(h).Addr()))
	}
	if err != nil {
		return nil, err
	}
	file, e := &bytes.Buffer{}, &host{}
	e.rec, err = capture.Record(file, o, capture.Config{}, boot)
	a.files, a.ends = append(a.files, file), append(a.ends, e)
	return e, err
}

// Tick makes calls as well.
func (e *host) Tick(now time.Time) error {
	if e.ticks++; e.ticks%50 == 0 {
		if err := e.rec.Call(fmt.Appendf(nil, "%d.5", e.ticks/50)); err != nil {
			return err
		}
	}
	return e.rec.Tick(now)
}

func (a *arena) Calm()           {}
func (a *arena) Pending() string { return "" }

// record plays an arena over a lossy network, and is the files of the server and the clients.
func record(t testing.TB) *arena {
	script, err := simtest.Parse(`
		seed 11
		run 6s
		clients 3
		net lagmin=30ms lagmax=60ms loss=10 dup=2 order=5
		at 2s cut client2 server1 for 800ms
		at 3s rebind client1`)
	if err != nil {
		t.Fatal(err)
	}
	a := &arena{}
	result := simtest.Play(script, func(*simtest.Simulation, *simtest.Script) (simtest.Game, error) { return a, nil })
	if !result.OK() {
		t.Fatal(result.String())
	}
	for _, e := range a.ends {
		if err := e.rec.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// server is the file of the server.
func (a *arena) server() []byte {
	for i, e := range a.ends {
		if e.rec.Program().(*end).world.IsServer() {
			return a.files[i].Bytes()
		}
	}
	return nil
}
