// Arena is a small game whose players and pickups are replicated from a server to
// its clients over real UDP and a bad network. Without flags it runs a server and four
// clients in one process for ten seconds, stops the world, waits until all that was in flight has arrived,
// compares every client's state with the server's, and says whether they are the same.
//
//	go run ./examples/arena
//	go run ./examples/arena -loss 20 -delay 100ms
//
// With -http the server has the inspector's page, and goes on until it is interrupted:
//
//	go run ./examples/arena -http 127.0.0.1:8080
//
// For a server and clients of their own, give both the key of the encrypted link:
//
//	export BUNCHNET_KEY=$(openssl rand -hex 32)
//	go run ./examples/arena -serve :7777
//	go run ./examples/arena -join 127.0.0.1:7777 -name Ann
//
// With -film a client saves what it showed when it ends, to be added to the server's film (Look back, on the page that the server has with -http):
//
//	go run ./examples/arena -join 127.0.0.1:7777 -name Ann -film ann.html
//
// When clients dial another address than the server's own, as through examples/badnetwork, tell the server:
//
//	go run ./examples/arena -serve 127.0.0.1:7777 -public 127.0.0.1:9000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type options struct {
	clients  int
	seconds  float64
	seed     uint64
	bad      netsim.Settings
	live     bool
	interval time.Duration
	http     string
	film     string
}

func main() {
	var o options
	loss := flag.Float64("loss", 5, "datagrams lost, percent, each way")
	delay := flag.Duration("delay", 50*time.Millisecond, "one-way delay")
	jitter := flag.Duration("jitter", 10*time.Millisecond, "what the delay varies by, up and down")
	dup := flag.Float64("dup", 2, "datagrams repeated, percent")
	reorder := flag.Float64("reorder", 5, "datagrams held back, percent")
	flag.IntVar(&o.clients, "clients", 4, "clients")
	flag.Float64Var(&o.seconds, "seconds", 10, "how long the world runs")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the game and of the network")
	var public netip.AddrPort
	flag.TextVar(&public, "public", netip.AddrPort{}, "with -serve: the address that clients dial, when it isn't the server's own: a proxy's or a NAT's")
	flag.StringVar(&o.http, "http", "", "serve the inspector's page of the server at this address, and go on until interrupted")
	serve := flag.String("serve", "", "be only a server, at this address")
	join := flag.String("join", "", "be only a client, of the server at this address")
	name := flag.String("name", "player", "the player's name, with -join")
	flag.StringVar(&o.film, "film", "", "with -join: file for a film of what the client showed in the last minute, written when it ends")
	flag.Parse()
	if flag.NArg() > 0 || o.film != "" && *join == "" || o.clients < 1 || !(o.seconds > 0) {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	o.bad = netsim.Settings{Loss: *loss, LagMin: max(0, *delay-*jitter), LagMax: *delay + *jitter, Dup: *dup, Order: *reorder}
	if info, err := os.Stdout.Stat(); err == nil {
		o.live = info.Mode()&os.ModeCharDevice != 0
	}
	o.interval = 2 * time.Second
	if o.live {
		o.interval = 200 * time.Millisecond
	}
	if err := run(o, *serve, public, *join, *name); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run(o options, serve string, public netip.AddrPort, join, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case serve != "":
		return runServer(ctx, serve, public, o)
	case join != "":
		return runClient(ctx, join, name, o)
	}
	return runAll(ctx, o)
}

// ticks calls f sixty times a second until ctx is done or f ends it.
func ticks(ctx context.Context, f func(now time.Time) (done bool, err error)) error {
	t := time.NewTicker(time.Second / 60)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C:
			if done, err := f(now); done || err != nil {
				return err
			}
		}
	}
}

// view draws the table in place on a terminal, and now and then otherwise.
type view struct {
	o     options
	next  time.Time
	lines int
}

func (v *view) draw(now time.Time, head string, clients []*client) {
	if now.Before(v.next) {
		return
	}
	v.next = now.Add(v.o.interval)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "client\tRTT\tjitter\tloss in\tin\tactors\tqueued\tmoves\tscore\t")
	for _, c := range clients {
		fmt.Fprintln(w, c.row())
	}
	w.Flush()
	out := head + "\n" + b.String()
	if v.o.live && v.lines > 0 {
		fmt.Printf("\x1b[%dA\x1b[J", v.lines)
	}
	fmt.Print(out)
	v.lines = strings.Count(out, "\n")
}

func runAll(ctx context.Context, o options) error {
	s, err := newServer("127.0.0.1:0", driver.Config{}, o.seed)
	if err != nil {
		return err
	}
	defer s.driver.Close()
	var clients []*client
	for i := range o.clients {
		c, err := newClient(fmt.Sprintf("player %d", i+1), s.driver.LocalAddr().String(), o.bad, o.seed*100+uint64(2*i))
		if err != nil {
			return err
		}
		defer c.driver.Close()
		clients = append(clients, c)
	}
	fmt.Printf("server at %v, %d clients, seed %d\neach way %.0f %% lost, %v to %v delay, %.0f %% repeated, %.0f %% held back\n",
		s.driver.LocalAddr(), o.clients, o.seed, o.bad.Loss, o.bad.LagMin, o.bad.LagMax, o.bad.Dup, o.bad.Order)
	page, err := servePage(o.http, s)
	if err != nil {
		return err
	}
	defer page.Close()
	start := time.Now()
	v := view{o: o}
	run, settle := time.Duration(o.seconds*float64(time.Second)), time.Minute
	if o.http != "" {
		run = math.MaxInt64 / 2
	}
	diff := ""
	err = ticks(ctx, func(now time.Time) (bool, error) {
		at := now.Sub(start)
		s.game.frozen = at > run
		if err := s.tick(now); err != nil {
			return true, err
		}
		for _, c := range clients {
			if err := c.tick(now); err != nil {
				return true, err
			}
		}
		v.draw(now, fmt.Sprintf("%4.1f s  %d actors, %d spawned, %d gone, %d pickups taken", at.Seconds(), s.world.Len(), s.game.spawned, s.game.died, s.game.taken), clients)
		if at < run+time.Second/2 {
			return false, nil
		}
		diff = compareAll(s, clients)
		return diff == "" || at > run+settle, nil
	})
	if err != nil || ctx.Err() != nil {
		return err
	}
	return verdict(s, clients, diff, time.Since(start)-run)
}

// compareAll is the first difference between a client and the server, or "".
func compareAll(s *server, clients []*client) string {
	if len(s.peers) < len(clients) {
		return fmt.Sprintf("only %d of %d clients joined", len(s.peers), len(clients))
	}
	for _, c := range clients {
		mine := func(p *Player) bool { return p.Name == c.name }
		if d := difference(snapshot(c.world, mine), snapshot(s.world, mine)); d != "" {
			return c.name + ": " + d
		}
	}
	return ""
}

func verdict(s *server, clients []*client, diff string, after time.Duration) error {
	for _, c := range clients {
		up, down := c.net.Counters()
		st := c.driver.Server().Stats()
		fmt.Printf("%s: %d of its packets were acked, %d lost\n", c.name, st.Packets.PacketsAcked, st.Packets.PacketsLost)
		fmt.Printf("  datagrams: up %d, %d lost; down %d, %d lost, %d repeated, %d held back\n",
			up.Pushed, up.Lost, down.Pushed, down.Lost, down.Duplicated, down.Reordered)
		if len(c.errs) > 0 {
			return c.errs[0]
		}
	}
	w := s.world.Counters
	fmt.Printf("server: %d actor channels opened; %d updates of %.1f bits, %d of them lost\n", w.Opened, w.Updates, float64(w.UpdateBits)/float64(max(1, w.Updates)), w.Resent)
	if diff != "" {
		return fmt.Errorf("not the same after %.1f s: %s", after.Seconds(), diff)
	}
	_, err := fmt.Printf("PASS: %d clients see the server's %d actors exactly, %.1f s after it stopped\n", len(clients), s.world.Len(), after.Seconds())
	return err
}

func runServer(ctx context.Context, addr string, public netip.AddrPort, o options) error {
	cfg := driver.Config{Logger: slog.Default()} // says who is refused, and why
	if public.IsValid() {
		cfg.Link = driver.Netcode{Addrs: []netip.AddrPort{public}} // tokens name the address that is dialed
	}
	s, err := newServer(addr, cfg, o.seed)
	if err != nil {
		return err
	}
	defer s.driver.Close()
	page, err := servePage(o.http, s)
	if err != nil {
		return err
	}
	defer page.Close()
	fmt.Printf("server at %v; interrupt to end\n", s.driver.LocalAddr())
	next := time.Now()
	return ticks(ctx, func(now time.Time) (bool, error) {
		if now.After(next) {
			next = now.Add(2 * time.Second)
			fmt.Printf("%d players, %d actors, %d pickups taken\n", len(s.peers), s.world.Len(), s.game.taken)
		}
		return false, s.tick(now)
	})
}

func runClient(ctx context.Context, addr, name string, o options) error {
	c, err := newClient(name, addr, o.bad, o.seed)
	if err != nil {
		return err
	}
	defer c.driver.Close()
	past, err := flight.New(c.world, c.driver, flight.Config{})
	if err != nil {
		return err
	}
	v := view{o: o}
	err = ticks(ctx, func(now time.Time) (bool, error) {
		v.draw(now, "joined "+addr+"; interrupt to end", []*client{c})
		err := c.tick(now)
		past.Look(c.driver.Time(now))
		return false, err
	})
	if o.film != "" {
		err = errors.Join(err, save(o.film, past.Take(), name))
	}
	return err
}

func save(file string, film *flight.Film, title string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(film.WriteHTML(out, flight.View{Title: title}), out.Close())
}
