// Hostile lets strangers loose on a server that has eight honest players, over each link: spoofed, forged,
// replayed, truncated and damaged packets from a million addresses, a full house, and storms of clients that
// connect and vanish, and a socket that is never empty. The network is in memory and time is virtual, so that addresses can be spoofed and
// the server's own cost is what is measured. Last, each server is flooded over the loopback, in real time, with a sender on another core.
//
//	go run ./bench/hostile
//	go run ./bench/hostile -n 100000 -link netcode
//
// It fails when a stranger takes a slot, gets back more bytes than he sent, makes memory grow, keeps a newcomer out,
// or when an honest player loses an echo or waits longer than before the attack.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	n := flag.Int("n", 1_000_000, "datagrams of each attack")
	perTick := flag.Int("rate", 4000, "datagrams a tick of 1/60 s; more than a tick reads, 4096 with those of the players, wait for the next")
	link := flag.String("link", "netcode,unreal,salted", "links to attack")
	seed := flag.Uint64("seed", 1, "seed of the attackers")
	flood := flag.Duration("flood", 3*time.Second, "how long to flood each link's server over the loopback, and how long to play in peace before; 0 not at all")
	flag.Parse()
	if flag.NArg() > 0 || *n < 1 || *perTick < 1 || *flood < 0 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	failed := false
	for _, name := range strings.Split(*link, ",") {
		ok, err := run(name, *n, *perTick, *seed)
		if err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)
			os.Exit(1)
		}
		failed = failed || !ok
		if *flood > 0 {
			if ok, err = liveFlood((&game{link: name}).linkOf(nil, 64), name, *flood); err != nil {
				fmt.Fprintln(os.Stderr, "FAIL:", err)
				os.Exit(1)
			}
			failed = failed || !ok
		}
	}
	if failed {
		fmt.Println("FAIL: see the last column")
		os.Exit(1)
	}
	if _, err := fmt.Println("PASS: no slot taken, nothing amplified, memory flat, honest players undisturbed"); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// run attacks a link and prints its table.
func run(link string, n, perTick int, seed uint64) (ok bool, err error) {
	if !slices.Contains([]string{"netcode", "unreal", "salted"}, link) {
		return false, fmt.Errorf("there is no link %q", link)
	}
	g, err := newGame(link, 64)
	if err != nil {
		return false, err
	}
	g.byLot = link == "unreal" // restart requests
	g.measure()
	for range 300 {
		g.step(nil)
	}
	base := g.measure()
	fmt.Printf("%s: %d players, echo p50 %d ticks, p99 %d; a server tick's p99 %v; seed %d\n", link, honest, base.p50, base.p99, base.cost.Round(time.Microsecond), seed)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "attack\tpackets\tns each\tanswered\tbytes out/in\theap\techo p99\ttick p99\trefused as\tverdict")
	ok = true
	attacks, err := g.attacks(n, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		return false, err
	}
	for _, a := range attacks {
		fine, err := g.attack(w, a, base, perTick)
		if err != nil {
			return false, err
		}
		ok = ok && fine
	}
	full, err := fullHouse(w, link, min(n, 20_000), perTick)
	if err != nil {
		return false, err
	}
	storm, err := storm(w, link)
	if err != nil {
		return false, err
	}
	endless, err := endlessFlood(w, link)
	if err != nil {
		return false, err
	}
	w.Flush()
	fmt.Println()
	return ok && full && storm && endless, nil
}

// attack runs one and prints its line.
func (g *game) attack(w *tabwriter.Writer, a attack, base measure, perTick int) (bool, error) {
	progress("%s: %s", g.link, a.name)
	for range 2 { // what the network in memory needs for itself
		g.step(func() {
			for i := range perTick {
				g.hostile(g.port, stranger(i), make([]byte, 1))
			}
		})
	}
	g.measure()
	before := g.refusals()
	heap, conns, closed := heapBytes(), g.server.Len(), g.closed
	g.in, g.out, g.answered, g.worst = 0, 0, 0, 0
	if a.n < perTick*10 { // a few spread over ten ticks
		perTick = (a.n + 9) / 10
	}
	for i := 0; i < a.n; {
		g.step(func() {
			for end := min(i+perTick, a.n); i < end; i++ {
				from, p := a.send(i)
				g.hostile(g.port, from, p)
			}
		})
	}
	m := g.measure()
	refused := g.refusalsSince(before)
	next := a.n
	newcomer, err := g.visit(playerAddr(201), func() { // the attack goes on meanwhile
		for end := next + min(perTick, 256); next < end; next++ {
			from, p := a.send(next)
			g.hostile(g.port, from, p)
		}
	})
	if err != nil {
		return false, err
	}
	grown := heapBytes() - heap
	var problems []string
	check := func(bad bool, text string) {
		if bad {
			problems = append(problems, text)
		}
	}
	check(g.server.Len() > conns, "slots taken")
	check(g.closed > closed+1, "a player was lost") // but the newcomer, who left
	check(!newcomer, "a newcomer was kept out")
	check(g.worst < 0 && !a.touches, "amplified")
	check(grown > 1<<20, "memory grew")
	check(m.p99 > base.p99, "players wait")
	check(g.missing() > 0, "echoes missing")
	g.measure()
	row(w, a, m, g, grown, refused, problems)
	return len(problems) == 0, nil
}

func row(w *tabwriter.Writer, a attack, m measure, g *game, grown int64, refused string, problems []string) {
	verdict := "ok"
	if len(problems) > 0 {
		verdict = strings.Join(problems, ", ")
	}
	ratio := "-"
	if g.in > 0 {
		ratio = fmt.Sprintf("%.2f", float64(g.out)/float64(g.in))
	}
	each := m.total.Nanoseconds() / int64(max(1, a.n))
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%+d kB\t%d\t%v\t%s\t%s\n", a.name, a.n, each, g.answered, ratio, grown>>10, m.p99, m.cost.Round(10*time.Microsecond), refused, verdict)
}

// missing is the echoes that should have come by now.
func (g *game) missing() (n int) {
	for _, p := range g.players {
		if p.driver.Server() == nil || p.driver.Server().Table().Unacked() > 16 {
			n++
		}
	}
	return n
}

func (g *game) refusals() map[string]uint64 {
	all := map[string]uint64{}
	for reason, n := range g.server.Refusals {
		all[reason] += n
	}
	return all
}

// refusalsSince is the three most frequent reasons since then.
func (g *game) refusalsSince(before map[string]uint64) string {
	type count struct {
		reason string
		n      uint64
	}
	var list []count
	for reason, n := range g.server.Refusals {
		if n > before[reason] {
			list = append(list, count{reason, n - before[reason]})
		}
	}
	slices.SortStableFunc(list, func(a, b count) int { return int(b.n) - int(a.n) })
	var text []string
	for _, c := range list[:min(3, len(list))] {
		text = append(text, fmt.Sprintf("%s %d", c.reason, c.n))
	}
	return strings.Join(text, ", ")
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// progress shows what is under way, on a terminal.
func progress(format string, args ...any) {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "\r\x1b[K"+format, args...)
	}
}
