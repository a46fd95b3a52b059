// Tanks is the parts together: four players in predicted tanks over a bad network, drones that are interpolated and hit where they were seen, shells that
// appear with the key, ammunition that only its owner knows, crates that sleep, a score board, chat, sight that ends at 150 m, and a player whose
// client crashes and is back with tank and score. Bots play, in virtual time, so that every run with a seed is the same.
//
//	go run ./examples/tanks
//	go run ./examples/tanks -seconds 300 -lag 80ms -loss 10 -seed 7
//
// The game is package game, which knows nothing of virtual time: give its Listen and Dial real sockets, and call Tick.
//
// It prints what each player saw, then the verdict. The exit code is 1 when something isn't as it should be.
package main

import (
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// options are the command line's.
type options struct {
	seed    uint64
	seconds int
	lag     time.Duration
	loss    float64
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the network, the drones and the bots")
	flag.IntVar(&o.seconds, "seconds", 60, "how long they play, 20 to 3600")
	flag.DurationVar(&o.lag, "lag", 50*time.Millisecond, "one way delay, up to 200ms; it varies by a quarter of that")
	flag.Float64Var(&o.loss, "loss", 5, "percentage of packets lost, 0 to 20")
	flag.Parse()
	if o.seconds < 20 || o.seconds > 3600 || o.lag < 0 || o.lag > 200*time.Millisecond || !(o.loss >= 0 && o.loss <= 20) {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if err := run(os.Stdout, o); err != nil {
		fmt.Println("FAIL:", err)
		os.Exit(1)
	}
}

const serverAddr = "10.0.0.1:7777"

var names = []string{"Ann", "Bob", "Cid", "Dee"}

// match is a game on hosts in virtual time.
type match struct {
	o       options
	world   *simtest.World
	server  *game.Server
	clients map[string]*game.Client
	before  map[string]*game.Client // of a client that crashed
	key     netcode.Key
}

func newMatch(o options) (*match, error) {
	m := &match{o: o, clients: map[string]*game.Client{}, before: map[string]*game.Client{}, key: netcode.Key{1}}
	m.world = simtest.NewWorld(o.seed, m.boot)
	m.world.AddHost("server", true)
	for _, name := range names {
		set := netsim.Settings{LagMin: o.lag - o.lag/4, LagMax: o.lag + o.lag/4, Loss: o.loss}
		if err := m.world.AddHost(name, false).SetNet(set, set); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// boot starts a host's program.
func (m *match) boot(h *simtest.Host) (simtest.Program, error) {
	cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Timeout: 10 * time.Second}
	if h.IsServer() {
		s, err := h.Listen(7777)
		if err != nil {
			return nil, err
		}
		cfg.Socket, cfg.Link = s, driver.Netcode{Key: m.key, TakeOver: true}
		m.server, err = game.Listen(serverAddr, cfg, m.o.seed)
		return m.server, err
	}
	now := uint64(simtest.Epoch.Add(m.world.Now()).Unix())
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: uint64(h.Index()), Create: now, Expire: now + 60, Timeout: 5,
		Servers: []netip.AddrPort{netip.MustParseAddrPort(serverAddr)}, PrivateKey: m.key, Rand: h.Secrets()})
	if err != nil {
		return nil, err
	}
	cfg.Socket, cfg.Link = h.Open(), driver.Netcode{Token: token}
	c, err := game.Dial(serverAddr, cfg, h.Name(), m.o.seed*10+uint64(h.Index()))
	if old := m.clients[h.Name()]; old != nil {
		m.before[h.Name()] = old
	}
	m.clients[h.Name()] = c
	return c, err
}

// until goes on for a time, and says what went wrong.
func (m *match) until(at time.Duration) error {
	m.world.RunUntil(at)
	if f := m.world.Failure(); f != nil {
		return fmt.Errorf("after %v: %s: %s", m.world.Now().Round(time.Millisecond), f.Checker, f.Text)
	}
	return nil
}

// run plays a match and gives the verdict.
func run(out io.Writer, o options) error {
	m, err := newMatch(o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d players, %v each way, %g %% loss, %d s\n", len(names), o.lag, o.loss, o.seconds)
	half, end := time.Duration(o.seconds)*time.Second/2, time.Duration(o.seconds)*time.Second
	if err := m.until(half); err != nil {
		return err
	}
	for _, name := range names {
		if err := m.clients[name].Say("hello"); err != nil {
			return fmt.Errorf("%s says hello: %w", name, err)
		}
	}
	if err := m.until(half + 2*time.Second); err != nil {
		return err
	}
	crashed := m.clients["Ann"].Score("Ann")
	m.world.Host("Ann").Crash(1500 * time.Millisecond)
	fmt.Fprintf(out, "%6.1f s  Ann's client crashes with a score of %d\n", m.world.Now().Seconds(), crashed)
	for m.server.Back == 0 && m.world.Now() < end+10*time.Second {
		if err := m.until(m.world.Now() + 10*time.Millisecond); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%6.1f s  Ann is back\n", m.world.Now().Seconds())
	if err := m.until(max(end, m.world.Now()+5*time.Second)); err != nil {
		return err
	}
	m.server.Still()
	for _, c := range m.clients {
		c.Still()
	}
	if err := m.until(m.world.Now() + 8*time.Second); err != nil {
		return err
	}
	return m.verdict(out, crashed)
}
