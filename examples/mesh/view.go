package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// snapshot is what the map and the page show.
type snapshot struct {
	Seconds   float64
	Zones     []zoneView
	Servers   []serverView
	NATS      []natsView
	Dots      []dotView
	Handovers int
	Trades    int
	Refused   int
	Open      int // trades without an answer
	Reads     int
	Events    []string
}

type zoneView struct {
	Name        string
	Column, Row int
	Server      int // 0: nobody holds it
}

type serverView struct {
	Number                 int
	ID, State              string
	Zones, Players, Actors int
}

type natsView struct{ Name, State string }

type dotView struct {
	X, Y           float64
	Player, Server int
	Moved          bool // it has just gone to another server
}

// look returns how it is now.
func (g *mesher) look(now time.Time) snapshot {
	h := &g.history
	v := snapshot{Seconds: now.Sub(g.began).Seconds(), Handovers: g.truth.moves, Trades: h.trades, Refused: h.refused, Open: h.open, Reads: h.reads}
	holder := g.holders()
	for i, name := range plan().Servers {
		v.Zones = append(v.Zones, zoneView{name, i % columns, i / columns, holder[name]})
	}
	moved := map[uint32]bool{}
	for _, m := range g.truth.handovers {
		if now.Sub(m.At) < time.Second {
			moved[m.Actor] = true
		}
	}
	for _, s := range g.slots {
		if s == nil {
			continue
		}
		x := serverView{Number: s.number, State: "gone"}
		if p := s.now; p != nil {
			x.ID, x.State, x.Zones, x.Players, x.Actors = p.id, "plays", len(p.last.Zones), len(p.last.Plays), len(p.last.Dots)
			switch {
			case p.peer == nil || p.last.Start == 0:
				x.State = "begins"
			case p.last.Away:
				x.State = "plays without the store"
			}
			for _, d := range p.last.Dots {
				v.Dots = append(v.Dots, dotView{d.X, d.Y, int(d.Player), s.number, moved[d.Actor]})
			}
		}
		switch {
		case s.stopped:
			x.State = "stopped"
		case s.cut.To.All && s.cut.From.All:
			x.State += ", cut off"
		case s.cut.To.some() || s.cut.From.some():
			x.State += ", partly cut off"
		}
		v.Servers = append(v.Servers, x)
	}
	if g.nats != nil {
		run, leader := g.nats.look()
		for i, there := range run {
			n := natsView{g.nats.configs[i].Name, "killed"}
			switch {
			case there && i == leader:
				n.State = "leads"
			case there && leader < 0:
				n.State = "without a leader"
			case there:
				n.State = "follows"
			}
			v.NATS = append(v.NATS, n)
		}
	}
	for _, e := range g.events {
		v.Events = append(v.Events, fmt.Sprintf("%6.1f s  %s", e.at.Seconds(), e.what))
	}
	return v
}

// paint is the colours of servers 1 to 4.
var paint = []string{"", "\x1b[32m", "\x1b[36m", "\x1b[33m", "\x1b[35m"}

// picture draws a snapshot into so many columns and lines at most, from 50 by 20 on.
func (v *snapshot) picture(width, height int, colors bool) []string {
	side := max((width-1)/columns, 6) // of a zone, with the border at its left
	below := 3 + len(v.Servers)
	tall := min(max((height-below-4)/rows, 3), max(side/2, 3)) // with the border above
	grid := make([][]rune, rows*tall+1)
	owner := make([][]int, len(grid))
	for y := range grid {
		grid[y], owner[y] = slices.Repeat([]rune{' '}, columns*side+1), make([]int, columns*side+1)
		for x := range grid[y] {
			switch atX, atY := x%side == 0, y%tall == 0; {
			case atX && atY:
				grid[y][x] = '+'
			case atX:
				grid[y][x] = '|'
			case atY:
				grid[y][x] = '-'
			}
		}
	}
	put := func(x, y int, text string, server int) {
		for _, c := range text {
			if x < len(grid[y]) {
				grid[y][x], owner[y][x] = c, server
			}
			x++
		}
	}
	count := map[[2]int][2]int{}
	for _, d := range v.Dots {
		cx, cy := min(max(int(d.X/cell), 0), columns-1), min(max(int(d.Y/cell), 0), rows-1)
		inX, inY := min(max(d.X/cell-float64(cx), 0), 0.999), min(max(d.Y/cell-float64(cy), 0), 0.999)
		mark, i := ".", 1
		if d.Player > 0 {
			mark, i = "@", 0
		}
		if d.Moved {
			mark = "*"
		}
		n := count[[2]int{cx, cy}]
		n[i]++
		count[[2]int{cx, cy}] = n
		y := cy*tall + 2 + int(inY*float64(tall-2))
		if x := cx*side + 1 + int(inX*float64(side-1)); grid[y][x] != '@' && grid[y][x] != '*' {
			put(x, y, mark, d.Server)
		}
	}
	for _, z := range v.Zones {
		n, title := count[[2]int{z.Column, z.Row}], fmt.Sprintf("%s:%d", z.Name, z.Server)
		for _, more := range []string{fmt.Sprintf("%s %d@", title, n[0]), fmt.Sprintf("%s server %d, %d@ %d.", z.Name, z.Server, n[0], n[1])} {
			if len(more) < side-1 {
				title = more
			}
		}
		put(z.Column*side+1, z.Row*tall+1, title, z.Server)
	}
	var lines []string
	for y := range grid {
		lines = append(lines, painted(grid[y], owner[y], colors))
	}
	for _, s := range v.Servers {
		lines = append(lines, tint(fit(fmt.Sprintf("server %d %s: %d zones, %d players, %d actors  %s", s.Number, s.State, s.Zones, s.Players, s.Actors, s.ID), width), s.Number, colors))
	}
	nats := "NATS"
	for _, n := range v.NATS {
		nats += fmt.Sprintf("  %s %s", n.Name, n.State)
	}
	lines = append(lines, fit(nats, width), fit(fmt.Sprintf("%.0f s: %d trades, %d refused, %d unknown, %d reads, %d handovers (*)", v.Seconds, v.Trades, v.Refused, v.Open, v.Reads, v.Handovers), width))
	for _, e := range v.Events[max(0, len(v.Events)-max(1, height-len(lines)-1)):] {
		first, _, _ := strings.Cut(e, "\n")
		lines = append(lines, fit(first, width))
	}
	return lines
}

func fit(s string, width int) string {
	r := []rune(s)
	return string(r[:min(len(r), width)])
}

func tint(s string, server int, colors bool) string {
	if !colors || server <= 0 || server >= len(paint) {
		return s
	}
	return paint[server] + s + "\x1b[0m"
}

func painted(line []rune, owner []int, colors bool) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		j := i
		for j < len(line) && owner[j] == owner[i] {
			j++
		}
		b.WriteString(tint(string(line[i:j]), owner[i], colors))
		i = j
	}
	return b.String()
}

// viewer shows the game in the terminal and on a page.
type viewer struct {
	g       *mesher
	live    bool // the output is a terminal
	colors  bool
	width   int
	height  int
	sizedAt time.Time
	shown   time.Time
	drawn   bool
	site    site
}

const (
	drawEvery = 250 * time.Millisecond
	lineEvery = 2 * time.Second // where there is no terminal
)

func (v *viewer) init(g *mesher) error {
	v.g = g
	if info, err := os.Stdout.Stat(); err == nil {
		v.live = info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	v.colors = v.live && os.Getenv("NO_COLOR") == ""
	if err := v.site.start(g.o.http); err != nil {
		return err
	}
	g.tell("the page is at http://%s/", v.site.addr)
	return nil
}

// told tells of an event; a terminal shows it with the map.
func (v *viewer) told(e event) {
	if !v.live {
		fmt.Printf("%6.1f s  %s\n", e.at.Seconds(), e.what)
	}
}

// show shows the game.
func (v *viewer) show(now time.Time) {
	every := drawEvery
	if now.Sub(v.shown) < every {
		return
	}
	s := v.g.look(now)
	v.site.set(s)
	switch {
	case v.live:
		v.size(now)
		v.shown = now
		v.draw(s.picture(v.width, v.height, v.colors))
	default:
		if now.Sub(v.shown) >= lineEvery {
			v.shown = now
			fmt.Println(s.line())
		}
	}
}

// line is a snapshot in one line. Of zones it has the servers' numbers, row by row.
func (v *snapshot) line() string {
	zones := ""
	for _, z := range v.Zones {
		if z.Column == 0 {
			zones += " "
		}
		zones += fmt.Sprint(z.Server)
	}
	var players []string
	for _, s := range v.Servers {
		players = append(players, fmt.Sprint(s.Players))
	}
	return fmt.Sprintf("%6.1f s  zones%s, players %s, %d handovers, %d trades, %d refused, %d unknown", v.Seconds, zones, strings.Join(players, "+"), v.Handovers, v.Trades, v.Refused, v.Open)
}

// size asks the terminal how large it is, now and then.
func (v *viewer) size(now time.Time) {
	if now.Sub(v.sizedAt) < 2*time.Second {
		return
	}
	v.sizedAt = now
	v.width, v.height = 80, 24
	c := exec.Command("stty", "size")
	c.Stdin = os.Stdin
	out, err := c.Output()
	var h, w int
	if n, _ := fmt.Sscan(string(out), &h, &w); err == nil && n == 2 && h >= 20 && w >= 50 {
		v.width, v.height = w, h
	}
}

// draw draws above the line in which one types.
func (v *viewer) draw(lines []string) {
	var b strings.Builder
	if !v.drawn {
		v.drawn = true
		b.WriteString("\x1b[2J" + v.atPrompt())
	}
	b.WriteString("\x1b7\x1b[H")
	for i := range v.height - 1 {
		if i < len(lines) {
			b.WriteString(lines[i])
		}
		b.WriteString("\x1b[K\r\n")
	}
	b.WriteString("\x1b8")
	fmt.Print(b.String())
}

func (v *viewer) atPrompt() string { return fmt.Sprintf("\x1b[%d;1H\x1b[J> ", max(v.height, 1)) }

// prompt begins another line to type in.
func (v *viewer) prompt() {
	if v.live {
		fmt.Print("\x1b[2J" + v.atPrompt()) // the line feed that was typed has moved the picture
	}
}

// end leaves the last picture where it is.
func (v *viewer) end() {
	if v.live && v.drawn {
		fmt.Print(v.atPrompt(), "\r\n")
	}
}

func (v *viewer) close() { v.site.close() }
