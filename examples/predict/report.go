package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/interpolation"
)

// quantile is the value that a share q of all don't exceed.
func quantile[T cmp.Ordered](values []T, q float64) (v T) {
	if len(values) == 0 {
		return v
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func inMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (g *game) report(w io.Writer, once *game) {
	fmt.Fprintf(w, "%-34s %8s %8s %8s %8s\n", "from an input to the screen, ms", "inputs", "p50", "p99", "worst")
	for _, row := range []struct {
		name   string
		values []time.Duration
	}{{"with prediction", g.player.predicted}, {"without", g.player.plain}} {
		fmt.Fprintf(w, "  %-32s %8d %8.1f %8.1f %8.1f\n", row.name, len(row.values), inMS(quantile(row.values, 0.5)), inMS(quantile(row.values, 0.99)), inMS(quantile(row.values, 1)))
	}
	lost, pushed := g.sizes()
	lostOnce, _ := once.sizes()
	fmt.Fprintf(w, "\n%-34s %8s %8s %8s %8s\n", "corrections, metres", "count", "p50", "p99", "worst")
	for _, row := range []struct {
		name   string
		values []float64
	}{{"of moves lost, late or cut", lost}, {"  the same if sent once only", lostOnce}, {"of pushes by the server", pushed}} {
		fmt.Fprintf(w, "  %-32s %8d %8.3f %8.3f %8.3f\n", row.name, len(row.values), quantile(row.values, 0.5), quantile(row.values, 0.99), quantile(row.values, 1))
	}
	c, s, p := g.player.client.Counters, g.server.body.Counters, g.player.path
	fmt.Fprintf(w, "\nplayer:  %d moves in %d messages, %d sent again, %.1f B/s up; %d acks, %d moves replayed, %d replies repeated, %.1f B/s down\n",
		c.Moves, c.Messages, c.SentAgain, float64(p.sent[moves])/total.Seconds(), c.Acks, c.Replayed, c.Repeated, float64(p.sent[reply])/total.Seconds())
	fmt.Fprintf(w, "server:  %d moves simulated, %d came again, %d forced, %d claims good, %d bad; %d moves cut, %d times too far ahead\n",
		s.Moves, s.Old, s.Forced, s.Good, s.Bad, s.Cut, s.SpeedHacks)
	g.reportWatcher(w)
	g.drawStrip(w)
}

func (g *game) reportWatcher(w io.Writer) {
	all := 0
	for _, n := range g.watcher.frames {
		all += n
	}
	fmt.Fprintf(w, "watcher: its picture is %.0f ms old (p99 %.0f), %.1f %% of frames between two snapshots; its clock was %.1f ms off at worst\n",
		inMS(quantile(g.watcher.ages, 0.5)), inMS(quantile(g.watcher.ages, 0.99)), 100*float64(g.watcher.frames[interpolation.Interpolated])/float64(max(1, all)), inMS(g.watcher.clockOff))
	s := g.server
	fmt.Fprintf(w, "shots:   %d arrived; %d hit what the watcher saw, %d would have hit what the server has now\n\n", s.shots, s.hits, s.plainHits)
}

// sizes are the corrections' sizes: those that the server made necessary by a push are told by their timestamps.
func (g *game) sizes() (lost, pushed []float64) {
	pushes := g.server.pushes
	for _, c := range g.player.fixes {
		if len(pushes) > 0 && c.At >= pushes[0] {
			pushes = pushes[1:]
			pushed = append(pushed, c.Size)
		} else {
			lost = append(lost, c.Size)
		}
	}
	return lost, pushed
}

// drawStrip shows two seconds around the first push, time going down.
func (g *game) drawStrip(w io.Writer) {
	const width = 72
	from := 0
	for from < len(g.strip) && g.strip[from].at < 7600*time.Millisecond {
		from++
	}
	rows := g.strip[from:min(from+40, len(g.strip))]
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, m := range rows {
		lo, hi = min(lo, m.server, m.predicted, m.watched), max(hi, m.server, m.predicted, m.watched)
	}
	hi = max(hi, lo+1)
	fmt.Fprintf(w, "x from %.1f to %.1f m:  p what the player sees   S the server   w what the watcher sees   * more than one   (pushed at 8 s)\n", lo, hi)
	for i, m := range rows {
		line := []rune(strings.Repeat(" ", width))
		put := func(x float64, mark rune) {
			col := int(math.Round((x - lo) / (hi - lo) * (width - 1)))
			if line[col] != ' ' {
				mark = '*'
			}
			line[col] = mark
		}
		put(m.server, 'S')
		put(m.predicted, 'p')
		put(m.watched, 'w')
		label := ""
		if i%4 == 0 {
			label = fmt.Sprintf("%.2f s", m.at.Seconds())
		}
		fmt.Fprintf(w, "%7s ▕%s▏\n", label, string(line))
	}
	fmt.Fprintln(w)
}

// check is a sentence and whether it is true.
type check struct {
	ok   bool
	text string
}

func conclude(w io.Writer, checks []check) error {
	good := true
	for _, c := range checks {
		mark := "yes"
		if !c.ok {
			mark, good = "NO ", false
		}
		fmt.Fprintf(w, "%s  %s\n", mark, c.text)
	}
	if !good {
		return errors.New("not all of that is so")
	}
	_, err := fmt.Fprintln(w, "PASS")
	return err
}

// agree are the checks that hold for all.
func (g *game) agree() []check {
	b, p := *g.server.body.State(), *g.player.client.State()
	w := Body{X: g.watcher.drawn[0], Y: g.watcher.drawn[1], VX: b.VX, VY: b.VY}
	return []check{
		{distance(&p, &b) <= 2*maxError, fmt.Sprintf("at the end the player is where the server has it, to %.0f µm: (%.3f, %.3f)", 2e6*maxError, b.X, b.Y)},
		{distance(&w, &b) < 0.001, "and the watcher sees it there"},
	}
}

func (g *game) verdict(w io.Writer) error {
	lost, pushed := g.sizes()
	s := g.server
	worst := quantile(g.player.predicted, 1)
	plain := quantile(g.player.plain, 0.5)
	checks := append(g.agree(),
		check{len(g.player.predicted) > 20 && worst <= frame+step, fmt.Sprintf("every input was felt within a frame (%.1f ms at worst; without prediction %.0f ms)", inMS(worst), inMS(plain))},
		check{plain >= g.o.rtt*9/10, "without prediction an input takes the round trip"},
		check{quantile(lost, 0.99) <= 0.5, fmt.Sprintf("corrections of lost moves are small: p99 %.3f m of a character that runs %.0f m/s", quantile(lost, 0.99), speed)},
		check{len(pushed) == len(s.pushes) && len(pushed) > 0, fmt.Sprintf("each of the %d pushes by the server came through with one correction", len(s.pushes))},
		check{s.body.Counters.SpeedHacks == 0, "nobody was taken for a cheat"},
		check{s.shots > 100 && s.hits*10 >= s.shots*8 && s.hits > s.plainHits, fmt.Sprintf("shots hit what was seen: %d %% with the rewind, %d %% without", 100*s.hits/max(1, s.shots), 100*s.plainHits/max(1, s.shots))},
	)
	return conclude(w, checks)
}

func (g *game) cheatVerdict(w io.Writer) error {
	s := g.server
	most := total + total/200 + 250*time.Millisecond
	checks := append(g.agree(),
		check{s.body.Counters.SpeedHacks > 0, fmt.Sprintf("the cheat was found out, %d times", s.body.Counters.SpeedHacks)},
		check{s.simulated <= most, fmt.Sprintf("its clock says %.1f s, the server gave it %.2f s of %.1f s", total.Seconds()*g.rate, s.simulated.Seconds(), total.Seconds())},
	)
	return conclude(w, checks)
}
