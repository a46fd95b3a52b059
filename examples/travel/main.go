// Travel is three towns along a road, each on a server of its own, and players who walk from town to town while they play. All is over real UDP: between a player and its servers 50 ms each way
// and 2 % loss, between the servers a little loss. What the first player sees is drawn in the terminal. A table says what the travels cost.
//
//	go run ./examples/travel
//	go run ./examples/travel -delay 100ms -loss 5 -players 20
//	go run ./examples/travel -check      # a short one for CI
//
// The verdict: everybody has travelled, nobody was lost, each player is at one town, which its client draws, with what it had; and each order and each answer has arrived once, in order.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

const (
	towns    = 3
	length   = 20.0 // of a town, in metres
	frame    = time.Second / 60
	patience = time.Minute // how long the program waits for what must happen; nothing is measured by it
)

type options struct {
	players int
	seconds float64
	bad     netsim.Settings
	live    bool
}

func main() {
	var o options
	flag.IntVar(&o.players, "players", 6, "players, 1 to 50")
	flag.Float64Var(&o.seconds, "seconds", 30, "how long they walk")
	flag.DurationVar(&o.bad.Lag, "delay", 50*time.Millisecond, "one-way delay")
	flag.Float64Var(&o.bad.Loss, "loss", 2, "datagrams lost, percent, each way")
	check := flag.Bool("check", false, "a short run")
	flag.Parse()
	if flag.NArg() > 0 || o.players < 1 || o.players > 50 || !(o.seconds > 0 && o.seconds <= 1e6) || o.bad.Validate() != nil {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if *check {
		o.seconds = 9
	}
	if info, err := os.Stdout.Stat(); err == nil {
		o.live = info.Mode()&os.ModeCharDevice != 0
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// game is what would be several machines.
type game struct {
	o       options
	key     netcode.Key
	began   time.Time
	settled time.Time // until then the worlds fill, and nobody travels
	towns   []*town
	players []*player
	stopped bool // nobody walks on, or orders anything
	lines   int
}

func run(o options) error {
	g, err := newGame(o)
	if err != nil {
		return err
	}
	defer g.close()
	end := g.began.Add(time.Duration(o.seconds * float64(time.Second)))
	if err := g.play(func(now time.Time) bool { return now.After(end) && g.allWent() }); err != nil {
		return err
	}
	g.stopped = true
	quiet := g.play(func(time.Time) bool { return g.unfinished() == "" })
	g.table()
	if quiet != nil {
		return errors.Join(quiet, errors.New(g.unfinished()))
	}
	return g.verdict()
}

func newGame(o options) (g *game, err error) {
	g = &game{o: o, began: time.Now(), settled: time.Now().Add(3 * time.Second)}
	if g.key, err = netcode.GenerateKey(nil); err != nil {
		return nil, err
	}
	for i := range towns {
		t, err := g.newTown(i)
		if err != nil {
			g.close()
			return nil, err
		}
		g.towns = append(g.towns, t)
	}
	for i := range o.players {
		p, err := g.newPlayer(uint64(i + 1))
		if err != nil {
			g.close()
			return nil, err
		}
		g.players = append(g.players, p)
	}
	return g, nil
}

func (g *game) close() {
	for _, p := range g.players {
		p.close()
	}
	for _, t := range g.towns {
		t.close()
	}
}

// play runs until it is over.
func (g *game) play(over func(now time.Time) bool) error {
	for last := time.Now().Add(time.Duration(g.o.seconds*float64(time.Second)) + patience); ; {
		now := time.Now()
		if now.After(last) {
			return errors.New("it never ends")
		}
		for _, t := range g.towns {
			if err := t.tick(now); err != nil {
				return err
			}
		}
		for _, p := range g.players {
			if err := p.tick(now); err != nil {
				return err
			}
		}
		if over(now) {
			return nil
		}
		g.draw()
		time.Sleep(time.Until(now.Add(frame)))
	}
}

// allWent reports whether everybody has travelled.
func (g *game) allWent() bool {
	return !slices.ContainsFunc(g.players, func(p *player) bool { return p.went == 0 })
}

// unfinished is what isn't over yet, after the players have stopped; "" when all is.
func (g *game) unfinished() string {
	for _, t := range g.towns {
		if !t.mesh.Idle() {
			return "somebody is on the way from or to " + t.name
		}
	}
	for _, p := range g.players {
		at, n := g.plays(p.id)
		switch {
		case n != 1:
			return fmt.Sprintf("player %d plays in %d towns", p.id, n)
		case p.drawn != at.name || p.mesh.Server() != at.name:
			return fmt.Sprintf("player %d plays in %s, and draws %s", p.id, at.name, p.drawn)
		case !p.watch.IsZero():
			return fmt.Sprintf("player %d has just come to %s", p.id, at.name)
		case p.ordered != at.guests[p.id].Orders || p.answered != at.guests[p.id].Answers:
			return fmt.Sprintf("player %d has ordered %d times and has %d answers; %s knows of %d and %d", p.id, p.ordered, p.answered, at.name, at.guests[p.id].Orders, at.guests[p.id].Answers)
		}
	}
	return ""
}

// plays is the town that plays a player, and how many do.
func (g *game) plays(id uint64) (at *town, n int) {
	for _, t := range g.towns {
		if t.mesh.Plays(id) {
			at = t
			n++
		}
	}
	return at, n
}

// draw draws the road as the first player sees it.
func (g *game) draw() {
	if !g.o.live || g.stopped {
		return
	}
	if g.lines > 0 {
		fmt.Printf("\x1b[%dA\x1b[J", g.lines)
	}
	out := g.view(os.Getenv("NO_COLOR") == "")
	fmt.Print(out)
	g.lines = strings.Count(out, "\n")
}

// table prints what the travels were.
func (g *game) table() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "player\ttravels\tstood still p50\tp99\tinputs\tlost\torders\tanswers\t")
	var all []time.Duration
	inputs, lost, orders, answers := uint32(0), uint32(0), uint32(0), uint32(0)
	row := func(name string, still []time.Duration, inputs, lost, orders, answers uint32) {
		slices.Sort(still)
		p50, p99 := time.Duration(0), time.Duration(0)
		if n := len(still); n > 0 {
			p50, p99 = still[n/2], still[n*99/100]
		}
		fmt.Fprintf(w, "%s\t%d\t%.0f ms\t%.0f ms\t%d\t%d\t%d\t%d\t\n", name, len(still), p50.Seconds()*1000, p99.Seconds()*1000, inputs, lost, orders, answers)
	}
	for _, p := range g.players {
		row(fmt.Sprint(p.id), p.stood, p.inputs, p.lost, p.ordered, p.answered)
		all = append(all, p.stood...)
		inputs, lost, orders, answers = inputs+p.inputs, lost+p.lost, orders+p.ordered, answers+p.answered
	}
	row("all", all, inputs, lost, orders, answers)
	w.Flush()
}

func (g *game) verdict() error {
	travels, orders, gone := 0, uint32(0), uint64(0)
	for _, t := range g.towns {
		gone += t.mesh.Counters.Lost
		if t.wrong != nil {
			return fmt.Errorf("%s: %w", t.name, t.wrong)
		}
	}
	for _, p := range g.players {
		if p.wrong != nil {
			return fmt.Errorf("player %d: %w", p.id, p.wrong)
		}
		travels += p.went
		orders += p.ordered
	}
	if gone > 0 {
		return fmt.Errorf("%d players were lost", gone)
	}
	_, err := fmt.Printf("PASS: %d players walked through %d towns, %d travels; %d orders and their answers each arrived once, in order\n", len(g.players), towns, travels, orders)
	return err
}

// view is the road as the first player sees it, in at most 80 columns. With colour the player's town is shown inverted.
func (g *game) view(colour bool) string {
	p := g.players[0]
	row := []byte(strings.Repeat(".", towns*int(length)))
	for x, c := range p.seen() {
		if at := &row[min(max(int(x), 0), len(row)-1)]; *at != '@' {
			*at = c
		}
	}
	out := "\n"
	for i, t := range g.towns {
		part := "|" + string(row[i*int(length):(i+1)*int(length)])
		if colour && t.name == p.drawn {
			part = "\x1b[7m" + part + "\x1b[0m"
		}
		out += part
	}
	return out + fmt.Sprintf("|\nplayer 1 (@) is in %s, after %d travels and %d orders\n#: carts, which are in all towns; o: others who are in this town\n", p.drawn, p.went, p.ordered)
}
