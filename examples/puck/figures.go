package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// stretches is how many rows the table has.
const stretches = 10

// figures is what was met in a while, of all players.
type figures struct {
	frames      int
	corrections int     // jumps that can be seen: over a centimetre
	jumped      float64 // m, all together
	largest     float64 // m
	compared    int
	ball, own   float64 // m: how far each was off, on average
	hits        int     // frames with the ball within half a metre of the player
	hitOff      float64 // m: how far off the ball was in those
}

// add takes a frame.
func (f *figures) add(s *sample, log map[uint32]seen) {
	f.frames++
	if s.jump > 0.01 {
		f.corrections++
	}
	f.jumped += s.jump
	f.largest = math.Max(f.largest, s.jump)
	if want, ok := log[s.ticks]; ok {
		f.compared++
		f.own += s.seen.own.distance(want.own)
		off := s.seen.ball.distance(want.ball)
		f.ball += off
		if s.seen.own.distance(s.seen.ball) < playerRadius+ballRadius+0.5 {
			f.hits++
			f.hitOff += off
		}
	}
}

// perMinute is a sum over all players' frames, of one player in a minute.
func (f *figures) perMinute(sum float64) float64 { return sum / float64(max(f.frames, 1)) * 3600 }

func mean(sum float64, n int) float64 { return sum / float64(max(n, 1)) }

// outcome is what was met in a match.
type outcome struct {
	rows  [stretches]figures
	all   figures
	curve curve
}

// measure plays a match.
func measure(o options, together bool) (*outcome, error) {
	m, err := newMatch(o, together)
	if err != nil {
		return nil, err
	}
	out := &outcome{}
	length := time.Duration(o.seconds) * time.Second
	if err := m.play(length); err != nil {
		return nil, err
	}
	for i, c := range m.clients {
		if len(c.curve) == 0 {
			return nil, fmt.Errorf("player %d never played", i)
		}
		for j := range c.curve {
			s := &c.curve[j]
			if s.at -= warm; s.at < 0 {
				continue
			}
			log := m.server.log[c.own.Number]
			out.rows[min(int(s.at*stretches/length), stretches-1)].add(s, log)
			out.all.add(s, log)
			out.curve.add(s.at.Seconds()/length.Seconds(), s, log)
		}
	}
	if out.all.compared < out.all.frames/2 {
		return nil, errors.New("the ends don't simulate the same ticks")
	}
	return out, nil
}

// Corrections and errors are to be smaller with the group by these factors at least.
const (
	jumpFactor = 2.0
	ballFactor = 10.0
)

// run plays both matches and gives the verdict.
func run(out io.Writer, o options) error {
	fmt.Fprintf(out, "%d players and a ball, round trip %v, %g %% loss, %d s\n\n", players, o.rtt, o.loss, o.seconds)
	alone, err := measure(o, false)
	if err != nil {
		return fmt.Errorf("predicted alone: %w", err)
	}
	together, err := measure(o, true)
	if err != nil {
		return fmt.Errorf("predicted together: %w", err)
	}
	fmt.Fprintln(out, "           own corrections a minute   put by them, m a minute   largest, cm      ball off, cm       off when near, cm")
	fmt.Fprintln(out, "seconds       alone   together            alone   together   alone  together   alone  together     alone  together")
	row := func(what string, a, g *figures) {
		fmt.Fprintf(out, "%-10s %8.0f %10.0f %16.2f %10.2f %7.0f %9.0f %7.1f %9.1f %9.1f %9.1f\n", what, a.perMinute(float64(a.corrections)), g.perMinute(float64(g.corrections)),
			a.perMinute(a.jumped), g.perMinute(g.jumped), 100*a.largest, 100*g.largest, 100*mean(a.ball, a.compared), 100*mean(g.ball, g.compared),
			100*mean(a.hitOff, a.hits), 100*mean(g.hitOff, g.hits))
	}
	for i := range stretches {
		row(fmt.Sprintf("%d - %d", i*o.seconds/stretches, (i+1)*o.seconds/stretches), &alone.rows[i], &together.rows[i])
	}
	a, g := &alone.all, &together.all
	row("all", a, g)
	fmt.Fprintln(out)
	if o.png != "" {
		if err := drawCurves(o.png, &alone.curve, &together.curve, time.Duration(o.seconds)*time.Second); err != nil {
			return err
		}
	}
	jumps, ball := a.jumped/g.jumped*float64(g.frames)/float64(a.frames), mean(a.ball, a.compared)/mean(g.ball, g.compared)
	fmt.Fprintf(out, "together, corrections put the own player %.1f times less, and the ball is %.1f times less off\n", jumps, ball)
	if !(jumps >= jumpFactor) || !(ball >= ballFactor) {
		return fmt.Errorf("that is to be %g and %g times at least", jumpFactor, ballFactor)
	}
	_, err = fmt.Fprintf(out, "PASS: all agree on where everything stands; corrections are at least %g times smaller and the ball %g times less off than predicted alone\n", jumpFactor, ballFactor)
	return err
}
