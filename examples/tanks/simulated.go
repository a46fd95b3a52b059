package main

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

const serverAddr = "10.0.0.1:7777"

var names = []string{"Ann", "Bob", "Cid", "Dee"}

// match is a game on hosts in virtual time.
type match struct {
	party
	o        options
	world    *simtest.Simulation
	key      netcode.Key
	pictures pictures
}

func newMatch(o options) (*match, error) {
	m := &match{o: o, party: newParty(names), key: netcode.Key{1}, pictures: pictures{dir: o.pictures}}
	m.world = simtest.NewSimulation(o.seed, m.boot)
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
	c, err := game.Dial(serverAddr, cfg, h.Name(), game.Bot)
	if old := m.clients[h.Name()]; old != nil {
		m.before[h.Name()] = old
	}
	m.clients[h.Name()] = c
	return c, err
}

// until goes on for a time, and says what went wrong.
func (m *match) until(at time.Duration) error {
	for m.pictures.dir != "" && m.world.Now() < at {
		m.world.RunUntil(min(at, m.world.Now()+pictureTime))
		if err := m.pictures.take(m.world.Now(), m.clients[m.names[0]]); err != nil {
			return err
		}
	}
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
	if err := m.verdict(out, 20); err != nil {
		return err
	}
	if m.server.Back != 1 || m.server.Hits["Ann"] < crashed {
		return fmt.Errorf("the player who crashed came back %d times, with a score of %d after %d", m.server.Back, m.server.Hits["Ann"], crashed)
	}
	_, err = fmt.Fprintln(out, "PASS: everybody agrees on where the tanks are and on the score; what was seen hit was hit; Ann is back with tank and score")
	return err
}
