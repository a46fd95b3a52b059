package main

import (
	"cmp"
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
	Parts     []part
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

type serverView struct {
	Number          int
	ID, State       string
	Zones, Quarters int
	Players, Actors int
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
	v.Parts = g.parts()
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
			x.ID, x.State, x.Players, x.Actors = p.id, "plays", len(p.last.Plays), len(p.last.Dots)
			switch {
			case p.peer == nil || p.last.Start == 0:
				x.State = "begins"
			case p.last.Away:
				x.State = "plays without the store"
			}
			for _, part := range v.Parts {
				switch {
				case part.Server != s.number:
				case part.Wide > 1:
					x.Zones++
				default:
					x.Quarters++
				}
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
	wide := max((width-1)/across, 6) // of a square, with the border at its left
	below := 3 + len(v.Servers)
	tall := min(max((height-below-4)/(2*rows), 3), max(wide/2, 3)) // with the border above
	grid := make([][]rune, 2*rows*tall+1)
	owner := make([][]int, len(grid))
	for y := range grid {
		grid[y], owner[y] = slices.Repeat([]rune{' '}, across*wide+1), make([]int, across*wide+1)
	}
	put := func(x, y int, text string, server int) {
		for _, c := range text {
			if x < len(grid[y]) {
				grid[y][x], owner[y][x] = c, server
			}
			x++
		}
	}
	in := make([]int, squares) // the part that a square is of
	for i, p := range v.Parts {
		left, top, width, height := p.Column*wide, p.Row*tall, p.Wide*wide, p.Wide*tall
		for x := range width + 1 {
			put(left+x, top, "-", 0)
			put(left+x, top+height, "-", 0)
		}
		for y := range height + 1 {
			put(left, top+y, "|", 0)
			put(left+width, top+y, "|", 0)
		}
		for q := range p.Wide * p.Wide {
			in[(p.Row+q/p.Wide)*across+p.Column+q%p.Wide] = i
		}
	}
	for _, p := range v.Parts { // the corners, over other parts' sides
		for q := range 4 {
			put((p.Column+q%2*p.Wide)*wide, (p.Row+q/2*p.Wide)*tall, "+", 0)
		}
	}
	count := make([][2]int, len(v.Parts))
	for _, d := range v.Dots {
		column, row := min(max(int(d.X/side), 0), across-1), min(max(int(d.Y/side), 0), 2*rows-1)
		inX, inY := min(max(d.X/side-float64(column), 0), 0.999), min(max(d.Y/side-float64(row), 0), 0.999)
		mark, i := ".", 1
		if d.Player > 0 {
			mark, i = "@", 0
		}
		if d.Moved {
			mark = "*"
		}
		count[in[row*across+column]][i]++
		y := row*tall + 2 + int(inY*float64(tall-2))
		if x := column*wide + 1 + int(inX*float64(wide-1)); grid[y][x] != '@' && grid[y][x] != '*' {
			put(x, y, mark, d.Server)
		}
	}
	for i, p := range v.Parts {
		zone, quarter, _ := strings.Cut(p.Name, " ")
		title := fmt.Sprintf("%s:%d", cmp.Or(quarter, zone), p.Server)
		for _, more := range []string{fmt.Sprintf("%s:%d", p.Name, p.Server), fmt.Sprintf("%s:%d %d@", p.Name, p.Server, count[i][0]), fmt.Sprintf("%s server %d, %d@ %d.", p.Name, p.Server, count[i][0], count[i][1])} {
			if len(more) < p.Wide*wide-1 {
				title = more
			}
		}
		put(p.Column*wide+1, p.Row*tall+1, title, p.Server)
	}
	var lines []string
	for y := range grid {
		lines = append(lines, painted(grid[y], owner[y], colors))
	}
	for _, s := range v.Servers {
		lines = append(lines, tint(fit(fmt.Sprintf("server %d %s: %d zones, %d quarters, %d players, %d actors  %s", s.Number, s.State, s.Zones, s.Quarters, s.Players, s.Actors, s.ID), width), s.Number, colors))
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

// line is a snapshot in one line. Of the squares it has the servers' numbers, row by row, and then which zones are split.
func (v *snapshot) line() string {
	var owners [squares]int
	split := ""
	for _, p := range v.Parts {
		for q := range p.Wide * p.Wide {
			owners[(p.Row+q/p.Wide)*across+p.Column+q%p.Wide] = p.Server
		}
		if zone, where, _ := strings.Cut(p.Name, " "); where == "nw" {
			split += ", " + zone + " is split"
		}
	}
	zones := ""
	for i, server := range owners {
		if i%across == 0 {
			zones += " "
		}
		zones += fmt.Sprint(server)
	}
	var players []string
	for _, s := range v.Servers {
		players = append(players, fmt.Sprint(s.Players))
	}
	return fmt.Sprintf("%6.1f s  zones%s%s, players %s, %d handovers, %d trades, %d refused, %d unknown", v.Seconds, zones, split, strings.Join(players, "+"), v.Handovers, v.Trades, v.Refused, v.Open)
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
