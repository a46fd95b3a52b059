// Sidebyside plays one game twice over the same bad network: once without prediction and once with it. The same bot plays both. It steers a car to the next coin
// by what it sees, as a player does. Everything runs in virtual time, so a seed always gives the same result.
//
//	go run ./examples/sidebyside
//	go run ./examples/sidebyside -rtt 250ms -loss 10
//	go run ./examples/sidebyside -gif game.gif       both games as one moving picture
//
// It prints for each game how long it took from the first key until the car moved on the screen, and how many coins the car got. The exit code is 0 when the
// predicted car moves within a frame, the other one not before a round trip, and the predicted one got more coins.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// options are the command line's.
type options struct {
	seed    uint64
	rtt     time.Duration
	loss    float64
	seconds int
	gif     string
}

const (
	frame = time.Second / 60
	start = 5 * time.Second // when the bot begins: both ends are in step by then
)

type place struct{ x, y float64 }

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the network and of the coins")
	flag.DurationVar(&o.rtt, "rtt", 150*time.Millisecond, "round trip, 50 to 500 ms; it varies by a tenth")
	flag.Float64Var(&o.loss, "loss", 5, "percentage of packets lost each way, 0 to 20")
	flag.IntVar(&o.seconds, "seconds", 12, "length of the game, 5 to 600")
	flag.StringVar(&o.gif, "gif", "", "file for both games as one moving picture; at most 60 seconds")
	flag.Parse()
	if flag.NArg() > 0 || o.rtt < 50*time.Millisecond || o.rtt > 500*time.Millisecond || !(o.loss >= 0 && o.loss <= 20) || o.seconds < 5 || o.seconds > 600 || o.gif != "" && o.seconds > 60 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// match is one of the two games.
type match struct {
	sim            *simtest.Simulation
	server, client *end
}

func newMatch(o options, predicted bool) (*match, error) {
	r := rand.New(rand.NewPCG(o.seed, 0))
	coins := make([]place, 100)
	for i := range coins {
		coins[i] = place{1 + r.Float64()*(field-2), 1 + r.Float64()*(field-2)}
	}
	const addr = "10.0.0.1:7777"
	m, key := &match{}, netcode.Key{1}
	m.sim = simtest.NewSimulation(o.seed, func(h *simtest.Host) (simtest.Program, error) {
		cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: key}}
		if h.IsServer() {
			socket, err := h.Listen(7777)
			if err != nil {
				return nil, err
			}
			cfg.Socket = socket
			m.server, err = serve(cfg, predicted, coins)
			return m.server, err
		}
		cfg.Socket = h.Open()
		var err error
		m.client, err = dial(addr, cfg, predicted, coins)
		return m.client, err
	})
	m.sim.AddHost("server", true).SetTick(frame)
	player := m.sim.AddHost("player", false)
	player.SetTick(frame)
	way := netsim.Settings{LagMin: o.rtt/2 - o.rtt/20, LagMax: o.rtt/2 + o.rtt/20, Loss: o.loss}
	return m, player.SetNet(way, way)
}

// play goes on until a time.
func (m *match) play(until time.Duration) error {
	m.sim.RunUntil(until)
	if f := m.sim.Failure(); f != nil {
		return fmt.Errorf("after %v: %s: %s", m.sim.Now().Round(time.Millisecond), f.Checker, f.Text)
	}
	return nil
}

func run(out io.Writer, o options) error {
	var both [2]*match // without prediction, with it
	for i := range both {
		var err error
		if both[i], err = newMatch(o, i == 1); err != nil {
			return err
		}
	}
	var film film
	for at := start - 250*time.Millisecond; at <= start+time.Duration(o.seconds)*time.Second; at += filmFrame {
		for _, m := range both {
			if err := m.play(at); err != nil {
				return err
			}
			if m.client.car == nil {
				return fmt.Errorf("no car after %v", at)
			}
		}
		if o.gif != "" {
			film.take(both, o)
		}
	}
	if o.gif != "" {
		if err := film.write(o.gif); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "a round trip of %v, %g %% loss, %d s\n", o.rtt, o.loss, o.seconds)
	var felt [2]time.Duration
	var coins [2]int
	for i, name := range []string{"without prediction", "with prediction"} {
		c := both[i].client
		if c.moved == 0 {
			return fmt.Errorf("%s: the car never moved", name)
		}
		felt[i], coins[i] = c.moved-c.pressed, int(both[i].server.car.Coins)
		fmt.Fprintf(out, "%-18s  a key moves the car after %3d ms, %2d coins\n", name, felt[i].Milliseconds(), coins[i])
	}
	if felt[1] > frame || felt[0] < o.rtt-o.rtt/10 || coins[1] <= coins[0] {
		return fmt.Errorf("with prediction the car should move at once, without it after a round trip, and get fewer coins")
	}
	_, err := fmt.Fprintln(out, "PASS: the predicted car moves in the frame of the key, and gets more coins")
	return err
}
