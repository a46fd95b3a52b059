// Fleet is a rolling update of game servers with players on them. NATS runs within the program, three servers of build 1 announce themselves, a
// token service places 60 bots, and then each server is replaced by one of build 2: a new one starts, the old one drains, its players dial
// another and only then leave, it stops.
//
//	go run .
//	go run . -players 300 -capacity 150
//	go run . -check      # a short one for CI
//
// The verdict: all bots play on servers of build 2, no bot was ever without a connection after its first, no echo was lost or came out of
// turn on its connection, no server had more players than seats, and a client of a build that no server takes was told so before it dialled.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/netconn/fleet"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
)

func main() {
	o := options{}
	flag.IntVar(&o.players, "players", 60, "bots")
	flag.IntVar(&o.servers, "servers", 3, "servers at a time")
	flag.IntVar(&o.capacity, "capacity", 40, "seats of each")
	check := flag.Bool("check", false, "a short run, without pauses to look at the table")
	flag.Parse()
	if flag.NArg() > 0 || min(o.players, o.servers, o.capacity) < 1 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	o.pause = 3 * time.Second
	if *check {
		o.pause = 300 * time.Millisecond
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

type options struct {
	players, servers, capacity int
	pause                      time.Duration
}

// patience is how long the program waits for what must happen before it gives up. Nothing is measured by it.
const patience = 2 * time.Minute

var errInterrupted = errors.New("interrupted")

func run(o options) error {
	if o.players > o.servers*o.capacity {
		return fmt.Errorf("%d players don't fit on %d servers of %d", o.players, o.servers, o.capacity)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	w, err := newWorld(ctx, o)
	if err != nil {
		return err
	}
	defer w.close()
	for range o.servers {
		if err := w.start("1"); err != nil {
			return err
		}
	}
	if err := w.until("the first servers are ready", func() bool { return w.ready() == o.servers }); err != nil {
		return err
	}
	w.bots = newBots(w, o.players)
	if err := w.until("all bots play", w.bots.allPlay); err != nil {
		return err
	}
	w.show("all play")
	w.look(o.pause)
	if err := w.update(); err != nil {
		return err
	}
	if err := w.until("all bots play on build 2", func() bool { return w.bots.allPlay() && len(w.servers) == o.servers }); err != nil {
		return err
	}
	w.look(o.pause)
	if w.ctx.Err() != nil {
		return errInterrupted
	}
	w.show("updated")
	return w.verdict()
}

// update replaces the servers, one after the other.
func (w *world) update() error {
	for _, old := range append([]*server(nil), w.servers...) {
		if err := w.start("2"); err != nil {
			return err
		}
		n := len(w.servers)
		if err := w.until("the new server is ready", func() bool { return w.ready() >= w.o.servers+1 || w.ready() == n }); err != nil {
			return err
		}
		old.drain()
		if err := w.until(old.name+" has drained", old.gone); err != nil {
			return err
		}
		w.stopped = append(w.stopped, old)
		w.servers = append([]*server(nil), without(w.servers, old)...)
		w.show(old.name + " was replaced")
		w.look(w.o.pause)
	}
	return nil
}

func without(list []*server, s *server) (out []*server) {
	for _, o := range list {
		if o != s {
			out = append(out, o)
		}
	}
	return out
}

// show prints the fleet as the token service sees it.
func (w *world) show(title string) {
	fmt.Printf("\n%s\n", title)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "server\tbuild\tstate\tplayers\tseats free\ttick p99")
	_ = w.service.Look(context.Background(), func(p *fleet.Placer) {
		for i := range p.List().All {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\t%d\t%.1f ms\n", i.ID[:strings.LastIndex(i.ID, "-")], i.Build, i.State, i.Load.Connections, i.Capacity, p.Free(i.ID),
				float64(i.Load.TickP99.Microseconds())/1000)
		}
	})
	t.Flush()
}

// look lets everything go on for a while.
func (w *world) look(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && w.ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		w.tickBots()
	}
}

func (w *world) until(what string, f func() bool) error {
	for end := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		switch {
		case w.ctx.Err() != nil:
			return errInterrupted
		case time.Now().After(end):
			return fmt.Errorf("never: %s", what)
		}
		w.tickBots()
	}
	return nil
}

func (w *world) verdict() error {
	for _, s := range append(w.stopped, w.servers...) {
		if n := int(s.most.Load()); n > w.o.capacity {
			return fmt.Errorf("%s had %d players in %d seats", s.name, n, w.o.capacity)
		}
		if err := s.failed(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	moved, longest := 0, time.Duration(0)
	for _, b := range w.bots.list {
		switch {
		case b.dropped:
			return fmt.Errorf("bot %d was without a connection", b.id)
		case b.wrong != "":
			return fmt.Errorf("bot %d: %s", b.id, b.wrong)
		case b.build != "2":
			return fmt.Errorf("bot %d plays on build %q", b.id, b.build)
		}
		moved += b.moves
		longest = max(longest, b.longest)
	}
	_, err := w.fetch(context.Background(), 1<<40, "0", "")
	var refused *tokenserver.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusUpgradeRequired {
		return fmt.Errorf("a client of build 0 got %w", err)
	}
	fmt.Printf("\na client of build 0 is told: %s\n", refused.Reason)
	_, err = fmt.Printf("PASS: %d bots on build 2 after %d moves, nobody dropped; the longest time without an echo was %v\n", len(w.bots.list), moved, longest.Round(time.Millisecond))
	return err
}
