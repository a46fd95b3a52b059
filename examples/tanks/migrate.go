package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/migrate"
	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

const seatPort = 7777

// seats is a game of a listen server, on hosts in virtual time or over real sockets, whose host goes.
type seats struct {
	o     options
	world *simtest.Simulation // nil over real sockets
	key   netcode.Key
	list  map[string]*game.Seat
	own   map[string]udp.Socket // of a player who hosts
	ctx   context.Context
	began time.Time // over real sockets
}

// now is the time since the beginning.
func (m *seats) now() time.Duration {
	if m.world != nil {
		return m.world.Now()
	}
	return time.Since(m.began)
}

// boot starts a player's program; who crashed doesn't come back.
func (m *seats) boot(h *simtest.Host) (simtest.Program, error) {
	if h.Boots() > 1 {
		return idle{}, nil
	}
	return m.sit(h.Name(), h.Index(), netip.AddrPortFrom(m.world.Hosts()[0].Addr(), seatPort), seatPort, driver.Config{Clock: h.Time, Rand: h.Secrets()},
		func() (udp.Socket, error) { return h.Listen(seatPort) },
		func() (udp.Socket, error) { return h.Open(), nil })
}

// sit begins a player's game. The first hosts.
func (m *seats) sit(name string, i int, first netip.AddrPort, port uint16, cfg driver.Config, listen, open func() (udp.Socket, error)) (*game.Seat, error) {
	cfg.Timeout, cfg.KeepAlive = 10*time.Second, 50*time.Millisecond
	now := time.Now()
	if cfg.Clock != nil {
		now = cfg.Clock()
	}
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: uint64(i + 1), Create: uint64(now.Unix()), Expire: uint64(now.Unix()) + 60, Timeout: 10,
		Servers: []netip.AddrPort{first}, PrivateKey: m.key, Rand: cfg.Rand})
	if err != nil {
		return nil, err
	}
	seat, err := game.NewSeat(game.SeatConfig{Name: name, Play: game.Bot, Seed: m.o.seed, Port: port,
		Listen: func() (driver.Config, error) {
			cfg := cfg
			s, err := listen()
			if err == nil {
				cfg.Socket, m.own[name] = udp.WithLocal(s, local)
			}
			return cfg, err
		},
		Dial: func(own bool) (_ driver.Config, err error) {
			cfg := cfg
			if cfg.Socket = m.own[name]; !own {
				cfg.Socket, err = open()
			}
			return cfg, err
		}}, migrate.Destination{Addr: first, Link: driver.Netcode{Token: token}, Own: i == 0}, driver.Netcode{Key: m.key, Addrs: []netip.AddrPort{first}})
	m.list[name] = seat
	return seat, err
}

// sitAll begins everybody's game over real sockets.
func (m *seats) sitAll(addr string) error {
	var first netip.AddrPort
	for i, name := range names {
		if i > 0 {
			addr = "127.0.0.1:0"
		}
		s, err := udp.Listen(addr, udp.Config{}) // the port at which it would host is its own from now on
		if err != nil {
			return err
		}
		at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.LocalAddr().Port())
		if i == 0 {
			first = at
		}
		kept := udp.Socket(s)
		listen := func() (udp.Socket, error) {
			if s := kept; s != nil {
				kept = nil
				return s, nil
			}
			return udp.Listen(at.String(), udp.Config{})
		}
		if _, err := m.sit(name, i, first, at.Port(), driver.Config{}, listen, func() (udp.Socket, error) { return udp.Listen("127.0.0.1:0", udp.Config{}) }); err != nil {
			return err
		}
	}
	return nil
}

// idle is the program of a machine without the game.
type idle struct{}

func (idle) Tick(time.Time) error { return nil }

// until goes on for a time, and says what went wrong.
func (m *seats) until(at time.Duration) error {
	for m.world == nil {
		if m.now() >= at || m.ctx.Err() != nil {
			return m.ctx.Err()
		}
		time.Sleep(time.Second / 60)
		now := time.Now()
		for _, name := range names {
			if seat := m.list[name]; seat != nil {
				if err := seat.Tick(now); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	m.world.RunUntil(at)
	if f := m.world.Failure(); f != nil {
		return fmt.Errorf("after %v: %s: %s", m.now().Round(time.Millisecond), f.Checker, f.Text)
	}
	return nil
}

// host is who has the game.
func (m *seats) host() (name string, s *game.Server, err error) {
	for _, n := range names {
		if seat := m.list[n]; seat != nil && seat.Server != nil && seat.Server.Hosting() {
			if s != nil {
				return "", nil, fmt.Errorf("%s and %s both host", name, n)
			}
			name, s = n, seat.Server
		}
	}
	if s == nil {
		err = errors.New("nobody hosts")
	}
	return name, s, err
}

// maxStill is how long a game may stand while another player becomes the host.
const maxStill = 3 * time.Second

// runMigrate plays a match of a listen server, ends its host without a word, and gives the verdict on what the others have then.
func runMigrate(ctx context.Context, out io.Writer, o options) error {
	m := &seats{o: o, key: netcode.Key{1}, list: map[string]*game.Seat{}, own: map[string]udp.Socket{}, ctx: ctx, began: time.Now()}
	if o.host != "" {
		var err error
		if m.key, err = netcode.GenerateKey(rand.Reader); err != nil {
			return err
		}
		if err := m.sitAll(o.host); err != nil {
			return err
		}
		fmt.Fprintf(out, "%d players over real sockets, Ann hosts, %d s\n", len(names), o.seconds)
	} else {
		m.world = simtest.NewSimulation(o.seed, m.boot)
		for _, name := range names {
			set := netsim.Settings{LagMin: o.lag - o.lag/4, LagMax: o.lag + o.lag/4, Loss: o.loss}
			if err := m.world.AddHost(name, false).SetNet(set, set); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, "%d players, Ann hosts, %v each way, %g %% loss, %d s\n", len(names), o.lag, o.loss, o.seconds)
	}
	end := time.Duration(o.seconds) * time.Second
	if err := m.until(end / 2); err != nil {
		return err
	}
	name, s, err := m.host()
	if err != nil || name != "Ann" {
		return errors.Join(err, fmt.Errorf("the host is %q", name))
	}
	before := map[string]int{}
	fmt.Fprintf(out, "%6.1f s  Ann's machine dies; the score is", m.now().Seconds())
	for _, n := range names {
		m.list[n].Stood()
		before[n] = s.Hits[n]
		fmt.Fprintf(out, " %s %d", n, before[n])
	}
	fmt.Fprintln(out)
	delete(m.list, "Ann")
	if m.world != nil {
		m.world.Host("Ann").Crash(time.Hour)
	}
	if err := m.until(max(end, m.now()+10*time.Second)); err != nil {
		return err
	}
	if name, s, err = m.host(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%6.1f s  %s hosts; %.2f s of the game were lost\n", m.now().Seconds(), name, m.list[name].Lost.Seconds())
	s.Still()
	for _, seat := range m.list {
		seat.Client.Still()
	}
	if err := m.until(m.now() + 8*time.Second); err != nil {
		return err
	}
	return m.verdict(out, s, before)
}

// verdict compares what those have who are left.
func (m *seats) verdict(out io.Writer, s *game.Server, before map[string]int) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	fmt.Fprintln(out, "\nplayer  stood still  hits before  after  off by")
	more := 0
	for _, name := range names[1:] {
		seat := m.list[name]
		still, v := seat.Stood(), seat.Client.View()
		at, ok := seat.Client.Own()
		truth, there := s.Place(name)
		fmt.Fprintf(out, "%-6s  %9.2f s  %11d  %5d  %.3f m\n", name, still.Seconds(), before[name], s.Hits[name], at.Distance(truth))
		more += s.Hits[name] - before[name]
		switch {
		case !ok || !there || at.Distance(truth) > 0.05:
			wrong("%s's tank is at %v, and feels to be at %v", name, truth, at)
		case still > maxStill:
			wrong("%s saw nothing new for %v", name, still)
		case seat.Migrations() != 1:
			wrong("%s went to another host %d times", name, seat.Migrations())
		case s.Hits[name] < before[name]-8: // those of the time that is lost
			wrong("%s hit %d times, and has %d of that", name, before[name], s.Hits[name])
		case seat.Client.Score(name) != s.Hits[name]:
			wrong("%s has a score of %d on the board for %d hits", name, seat.Client.Score(name), s.Hits[name])
		case v.OthersAmmo > 0:
			wrong("%s knows the others' ammunition", name)
		case v.Board != m.list[names[1]].Client.View().Board:
			wrong("%s has another board", name)
		}
	}
	if more <= 0 {
		wrong("nobody hit anything since")
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "PASS: the host died, another player went on as the host; tanks, ammunition and scores are there, and the game goes on")
	return err
}
