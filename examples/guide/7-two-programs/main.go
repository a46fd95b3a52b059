// Step 7 of the guide: step 6 in programs of their own, a server, and clients whose runners are predicted.
//
//	export BUNCHNET_KEY=$(openssl rand -hex 32)
//	go run ./examples/guide/7-two-programs -serve 127.0.0.1:7777
//	go run ./examples/guide/7-two-programs -join 127.0.0.1:7777 -name Ann
//
// Without flags it starts a server and two clients by itself, for five seconds, and says whether each client's runner ran:
//
//	go run ./examples/guide/7-two-programs
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

func failed(err error) { slog.Warn("the world", "error", err) }

func serve(addr string) (*end, error) {
	e, err := newEnd(actorrep.NewServer(actorrep.Config{Failed: failed}))
	if err != nil {
		return nil, err
	}
	e.net, err = driver.Listen(addr, driver.Config{Channels: e.world.ChannelTypes(), Logger: slog.Default(), Joined: e.joined, Closed: e.closed})
	return e, err
}

// joined gives who joins a runner.
func (e *end) joined(c *driver.Conn) {
	p := player{e.world.AddConn(c), &Runner{Name: c.Login().URL}}
	p.runner.SetOwner(p.peer)
	if err := errors.Join(e.world.Spawn(p.runner), e.runners.Possess(p.runner, p.peer, c.Now())); err != nil {
		c.CloseWithError(err)
	}
	e.players[c] = p
}

// closed takes it away: the world doesn't notice by itself.
func (e *end) closed(c *driver.Conn, _ netconn.CloseResult) {
	if p, ok := e.players[c]; ok {
		e.world.RemoveConn(p.peer)
		if err := e.world.Destroy(p.runner); err != nil {
			failed(err)
		}
		delete(e.players, c)
	}
}

func join(addr, name string) (*end, error) {
	e, err := newEnd(actorrep.NewClient(actorrep.Config{Failed: failed}))
	if err != nil {
		return nil, err
	}
	e.net, err = driver.Dial(addr, driver.Config{Channels: e.world.ChannelTypes(), Logger: slog.Default(), Client: control.ClientConfig{URL: name},
		Closed: func(_ *driver.Conn, r netconn.CloseResult) { e.ended = fmt.Errorf("the connection ended: %v", r) }})
	return e, err
}

// frame is a frame of the game, at either end.
func (e *end) frame(now time.Time) error {
	e.net.TickDispatch(now)
	at, server := e.net.Time(now), e.world.IsServer()
	var err error
	if server {
		err = e.runners.Tick(at) // moves are simulated here
	}
	e.world.Step(at)
	e.in.Tick(at)
	if !server {
		err = e.runners.Tick(at) // keys are felt here
	}
	e.net.TickFlush(now)
	return errors.Join(err, e.ended, e.net.Err()) // why there is no connection
}

// play plays until it is interrupted or, unless least is 0, that time is over, and prints each second where all are drawn. A client whose runner has
// hardly run by then, on a busy machine, plays on for up to a minute. ran is how far it came.
func (e *end) play(ctx context.Context, least time.Duration) (ran float64, err error) {
	ticker := time.NewTicker(time.Second / 60)
	defer ticker.Stop()
	over := func(played time.Duration) bool {
		return least > 0 && played >= least && (ran >= 1 || e.world.IsServer() || played > time.Minute)
	}
	for n, began := 1, time.Now(); ctx.Err() == nil && err == nil && !over(time.Since(began)); n++ {
		err = e.frame(<-ticker.C)
		for a := range e.world.All {
			r, seen := a.(*Runner), Runner{}
			if r.IsOwned() && !e.world.IsServer() {
				ran = max(ran, r.X)
			}
			if e.drawn.At(r, &seen); n%60 == 0 {
				fmt.Printf("%s is drawn at %.2f\n", r.Name, seen.X)
			}
		}
	}
	return ran, errors.Join(err, e.net.Close())
}

func run(ctx context.Context, addr, server, name string, least time.Duration) error {
	if addr != "" {
		e, err := serve(addr)
		if err != nil {
			return err
		}
		fmt.Println("serving at", e.net.LocalAddr())
		_, err = e.play(ctx, least)
		return err
	}
	e, err := join(server, name)
	if err != nil {
		return err
	}
	ran, err := e.play(ctx, least)
	if err == nil && least > 0 && ran < 1 {
		err = fmt.Errorf("%s's runner came to %.2f only", name, ran)
	}
	return err
}

func main() {
	addr := flag.String("serve", "", "be a server at this address")
	server := flag.String("join", "", "be a client of the server at this address")
	name := flag.String("name", "Ann", "a client's name")
	seconds := flag.Float64("seconds", 0, "how long it plays; 0 is until it is interrupted")
	flag.Parse()
	if flag.NArg() > 0 || *addr != "" && *server != "" || !(*seconds >= 0 && *seconds <= 1e6) {
		fmt.Fprintln(os.Stderr, "give -serve, -join or neither, and seconds from 0 to 1000000; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if both := *addr == "" && *server == ""; both {
		if err = all(ctx); err == nil {
			_, err = fmt.Println("PASS: both clients' runners ran")
		}
	} else {
		err = run(ctx, *addr, *server, *name, time.Duration(*seconds*float64(time.Second)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}
