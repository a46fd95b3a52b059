// Mesh is one world on four game servers, each a process of its own, whose store is a NATS cluster of three processes. The plane has 8 zones, which servers hold by lease; players (bots) walk over it and
// travel from server to server, and trade with each other wherever they are. Where they gather, the zone is split into quarters, which go to several servers, and when they have left it is merged. Kill any of it, cut it off, and see who takes over. A map in the terminal shows it, and a page, whose address is printed.
//
//	go run .
//	go run . -players 40 -http 127.0.0.1:8080
//	go run . -script FILE          # commands with times; README.md says more
//	go run . -check                # a minute with kills, then a verdict
//	go run . -check -outage 60s    # the same, with NATS away for a minute
//
// The verdict: the crowd's zone was split among servers, and merged; what a killed server had was played again within 5 s; each actor had one authority at any time, by what servers did and clients saw; the history of all trades and reads is one that a
// single store could have given, so that nothing was lost, doubled or told before it was safe; gold and gems are what they were; everybody plays, and nobody had to log in again.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	players int
	seconds float64
	outage  time.Duration
	check   bool
	script  script
	http    string
	history string
}

// checkScript is what -check does. %v is how long NATS is away.
const checkScript = `
calm 1s gather b1
calm 1s kill crowd
calm 500ms scatter
500ms pause 3
3s wake 3
calm 500ms nats kill follower
1s nats on
calm 500ms nats kill leader
500ms nats on
calm 500ms nats off
%v nats on
calm 500ms quit`

func main() {
	switch os.Getenv(roleEnv) {
	case "nats":
		exit(playNATS())
	case "server":
		exit(playServer())
	default:
		first()
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// first is the life of the first process.
func first() {
	var o options
	flag.IntVar(&o.players, "players", 16, "players, 8 to 64")
	flag.Float64Var(&o.seconds, "seconds", 0, "ends after so many seconds; 0: when you say so")
	flag.DurationVar(&o.outage, "outage", 4*time.Second, "how long -check has NATS away altogether; game servers play on without NATS for 30 s more than that, with and without -check")
	flag.BoolVar(&o.check, "check", false, "a run with kills and a verdict")
	flag.StringVar(&o.http, "http", "127.0.0.1:0", "address of the page")
	flag.StringVar(&o.history, "history", "", "file for the history of trades and reads, as lines of JSON")
	file := flag.String("script", "", "file of lines \"[calm] DURATION COMMAND\": how long after the line before, and with calm after all is well")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "go run . [flags]; while it runs, type a command:\n\n%s\n\nflags:\n", commands)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || o.players < fewest || o.players > 64 || !(o.seconds >= 0) || o.outage < 0 || o.outage > time.Hour-time.Minute {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	text := ""
	if o.check {
		text = fmt.Sprintf(checkScript, o.outage)
	}
	var err error
	if *file != "" {
		var b []byte
		b, err = os.ReadFile(*file)
		text = string(b)
	}
	if err == nil {
		o.script, err = readScript(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

var errInterrupted = errors.New("interrupted")

func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	life, over := context.WithCancel(context.Background())
	defer over()
	opening, opened := context.WithCancel(life)
	defer context.AfterFunc(ctx, opened)()
	g, err := newMesher(life, opening, o)
	defer func() { g.close() }()
	if err != nil {
		return err
	}
	if err := g.until(ctx, "all players play", g.whole); err != nil {
		return err
	}
	g.tell("all play")
	if g.script = o.script; len(g.script.lines) == 0 {
		if err := g.do("gather b1", time.Now()); err != nil {
			return err
		}
	}
	if err := g.play(ctx); !errors.Is(err, errQuit) {
		return err
	}
	stop() // another interrupt ends it at once
	ctx = context.Background()
	g.calm = true
	g.leave(time.Now())
	if err := g.do("heal", time.Now()); err != nil {
		return err
	}
	if err := g.until(ctx, "all is well, all trades are over, and what was split is merged", func() string { return cmp.Or(g.whole(), g.unsettled(), g.apart()) }); err != nil {
		return err
	}
	g.settled = true
	if err := g.until(ctx, "all accounts are read", g.unread); err != nil {
		return err
	}
	return g.verdict()
}

// play plays until somebody or the script quits.
func (g *mesher) play(ctx context.Context) error {
	typed := make(chan string)
	if !g.o.check {
		go func() {
			for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
				select {
				case typed <- lines.Text():
				case <-g.ctx.Done():
					return
				}
			}
		}()
	}
	began := time.Now()
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if g.o.check {
				return errInterrupted
			}
			return errQuit
		case line := <-typed:
			err := g.do(line, time.Now())
			g.view.prompt()
			if errors.Is(err, errQuit) {
				return err
			} else if err != nil {
				g.tell("%v", err)
			}
		case <-ticker.C:
			now := time.Now()
			if err := g.tick(now); err != nil {
				return err
			}
			if err := g.stepScript(now); err != nil {
				return err
			}
			if g.o.seconds > 0 && now.Sub(began).Seconds() > g.o.seconds && g.script.done {
				return errQuit
			}
		}
	}
}

// until plays on until nothing stands in the way of something.
func (g *mesher) until(ctx context.Context, what string, why func() string) error {
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for end := time.Now().Add(patience); ; {
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-ticker.C:
		}
		now := time.Now()
		if err := g.tick(now); err != nil {
			return err
		}
		switch missing := why(); {
		case missing == "":
			return nil
		case now.After(end):
			return fmt.Errorf("never: %s: %s", what, missing)
		}
	}
}
