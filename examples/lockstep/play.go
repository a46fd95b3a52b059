package main

import (
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
)

// play runs the battle and gives the verdict.
func play(out io.Writer, o options) error {
	w, err := newWorld(out, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d players, %d units, %g %% loss, %v lag, over %s\n\n", players, units, o.loss, o.lag, transportName(o.link))
	fmt.Fprintln(out, "turn       time  delay  rtt     units alive      state on all machines")
	// A turn may take 20 times as long as it should before the network is to blame.
	limit := time.Duration(o.turns) * turnTime * 20
	for last := int64(0); w.slowest() < o.turns; w.step() {
		if w.refused != nil {
			return w.refused
		}
		if w.now > limit {
			return fmt.Errorf("only %d of %d turns in %v; the network is too bad for this", w.slowest(), o.turns, limit)
		}
		if err := w.repair(); err != nil {
			return err
		}
		if t := w.slowest(); t >= last+o.turns/10 && t < o.turns && w.settled() {
			last = t
			w.line(t - 1)
		}
	}
	w.line(o.turns - 1)
	if !o.maps {
		fmt.Fprintln(out)
		draw(out, w.machines[0].battle)
	}
	return w.verdict()
}

func transportName(link bool) string {
	if link {
		return "channel/lockstep/link"
	}
	return "datagrams"
}

// slowest is how many turns all machines have executed.
func (w *world) slowest() int64 {
	t := w.machines[0].peer.Turn()
	for _, m := range w.machines {
		t = min(t, m.peer.Turn())
	}
	return t
}

// settled reports whether all machines have the same turns in memory: none is catching up.
func (w *world) settled() bool {
	return w.host.Turn()-w.slowest() < remembered/2
}

// line is a summary after turn.
func (w *world) line(turn int64) {
	agree := ""
	first := &w.machines[0].states[turn%remembered]
	for _, m := range w.machines {
		mark := "="
		if m.states[turn%remembered].hash() != first.hash() {
			mark = "X"
		}
		agree += mark
	}
	alive := first.alive()
	rtt := w.host.Path(0).RTT.Round(time.Millisecond)
	fmt.Fprintf(w.out, "%4d  %8.2fs  %5d  %-6v  %2d  %2d  %2d  %2d   %016x %s\n", turn+1, w.now.Seconds(), w.host.Delay(), rtt,
		alive[0], alive[1], alive[2], alive[3], first.hash(), agree)
	if w.o.maps {
		draw(w.out, first)
	}
}

// repair shows a desync report when it comes, and lets the machine start anew from the log.
func (w *world) repair() error {
	if w.report == nil || w.repaired {
		return nil
	}
	w.repaired = true
	e, m := w.report, w.machines[w.report.Player]
	fmt.Fprintf(w.out, "\nDESYNC     the first turn that differs: %d   player: %d   hash: %016x   the others': %016x\n", e.Value, e.Player, e.Got, e.Want)
	w.difference(e.Value, m)
	fmt.Fprintf(w.out, "           machine %d starts anew and replays the log\n\n", m.player)
	m.breakAt = -1
	return w.connect(m)
}

// difference names the units that differ after turn, which the machines still remember.
func (w *world) difference(turn int64, m *machine) {
	other := w.machines[(m.player+1)%players]
	a, b := &m.states[turn%remembered], &other.states[turn%remembered]
	if a.turn != turn+1 || b.turn != turn+1 {
		return
	}
	for i := range a.units {
		if a.units[i] != b.units[i] {
			fmt.Fprintf(w.out, "           unit %d on machine %d: %+v\n", i, m.player, a.units[i])
			fmt.Fprintf(w.out, "           unit %d on machine %d: %+v\n", i, other.player, b.units[i])
		}
	}
}

func (w *world) verdict() error {
	s := w.host.Stats()
	var lost, sent uint64
	for _, m := range w.machines {
		for _, c := range []uint64{m.up.Counters.Lost, m.down.Counters.Lost} {
			lost += c
		}
		sent += m.up.Counters.Pushed + m.down.Counters.Pushed
	}
	fmt.Fprintf(w.out, "\n%d turns in %.1f s, at best %.1f s; %d of %d packets lost; host sent %.1f kbit/s to each machine\n",
		w.o.turns, w.now.Seconds(), float64(w.o.turns)*turnTime.Seconds(), lost, sent, float64(s.BytesSent)*8/1000/players/w.now.Seconds())
	if w.o.desync {
		return w.desyncVerdict()
	}
	if s.Desyncs > 0 || w.compared < uint64(w.o.turns)*(players-1) {
		return fmt.Errorf("%d desyncs, %d hashes found equal", s.Desyncs, w.compared)
	}
	_, err := fmt.Fprintf(w.out, "PASS: the states of %d machines were equal after each of %d turns\n", players, w.o.turns)
	return err
}

func (w *world) desyncVerdict() error {
	e := w.report
	switch {
	case e == nil:
		return fmt.Errorf("unit %d went wrong in turn %d on machine %d, and nobody noticed", brokenUnit, breakTurn, brokenMachine)
	case e.Kind != lockstep.Desynced || e.Value != breakTurn || e.Player != brokenMachine || e.Want != w.hashes[breakTurn]:
		return fmt.Errorf("the report is wrong: %+v", *e)
	case w.host.Stats().Desyncs != 1:
		return fmt.Errorf("%d reports instead of one", w.host.Stats().Desyncs)
	}
	_, err := fmt.Fprintf(w.out, "PASS: the report named turn %d and player %d, and the replay made the machine whole\n", e.Value, e.Player)
	return err
}

// draw is a map of 64 by 12 characters, with the player who has the most units in each.
func draw(out io.Writer, b *battle) {
	const width, height = mapWidth / cell, mapHeight / cell / 2
	var count [height][width][players]int
	for i := range b.units {
		if u := &b.units[i]; u.life > 0 {
			count[u.y/(2*cell)][u.x/cell][i%players]++
		}
	}
	for _, row := range count {
		line := []byte("  ")
		for _, c := range row {
			best := byte('.')
			most := 0
			for p, n := range c {
				if n > most {
					best, most = byte('0'+p), n
				}
			}
			line = append(line, best)
		}
		fmt.Fprintf(out, "%s\n", line)
	}
}
