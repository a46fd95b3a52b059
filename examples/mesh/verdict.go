package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// backIn is how long after a kill what a server had shall be played again, on a machine that doesn't stand still.
const backIn = 5 * time.Second

// verdict says what was seen, and whether it is as it should be.
func (g *mesher) verdict() error {
	var wrong []string
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	wrong = append(wrong, g.truth.wrong...)
	wrong = append(wrong, check(g.history.list, uint32(len(g.bots)))...)
	for _, l := range g.losses {
		if l.back > backIn+l.stood+l.away {
			fail("what server %d had was played again after %.2f s, and the machine stood still for %.2f s meanwhile", l.number, l.back.Seconds(), l.stood.Seconds())
		}
	}
	for _, o := range g.outages {
		if o.ended > 0 && !o.stood || o.steps == 0 {
			fail("without NATS %d servers ended, and there were %d steps of actors", o.ended, o.steps)
		}
	}
	if g.o.check && !slices.ContainsFunc(g.crowds, func(c *crowd) bool { return c.split > 0 && c.merged > 0 }) {
		fail("no crowd's zone was split, and merged again")
	}
	for player, n := range g.logins {
		if n != 1 {
			fail("player %d has logged in %d times", player, n)
		}
	}
	if g.history.trades == 0 || g.truth.moves == 0 {
		fail("nothing was tried: %d trades, %d handovers", g.history.trades, g.truth.moves)
	}
	if g.o.history != "" {
		if err := g.save(g.o.history); err != nil {
			return err
		}
	}
	g.view.end()
	for _, c := range g.crowds {
		if c.split > 0 {
			fmt.Printf("a crowd gathered in zone %s, which was split after %.1f s: of its quarters %s", c.name(), c.split.Seconds(), heldBy(c.after))
			if c.merged > 0 {
				fmt.Printf("; it was merged %.1f s after the crowd had been told to go", c.merged.Seconds())
			}
			fmt.Println()
		}
	}
	for _, l := range g.losses {
		fmt.Printf("server %d was killed with %s and %d actors: played again after %.2f s\n", l.number, names(l.parts), len(l.actors), l.back.Seconds())
	}
	if len(g.returned) > 0 {
		slices.Sort(g.returned)
		fmt.Printf("%d players whose server had gone were back after %.2f s in the middle, %.2f s at worst, by the pass of their first login\n", len(g.returned), g.returned[len(g.returned)/2].Seconds(),
			g.returned[len(g.returned)-1].Seconds())
	}
	for _, o := range g.outages {
		fmt.Println(o)
	}
	h := &g.history
	fmt.Printf("trades: %d done, %d refused, %d without an answer; %d reads of accounts; %d handovers of actors\n", h.trades, h.refused, h.open, h.reads, g.truth.moves)
	if len(wrong) > 0 {
		for _, w := range wrong[:min(len(wrong), maxWrong)] {
			fmt.Println("wrong:", w)
		}
		return errors.New(wrong[0])
	}
	_, err := fmt.Printf("PASS: one authority for each actor, %d gold and %d gems as at the beginning, no trade lost or doubled, all %d players play\n", startGold*len(g.bots), startGems*len(g.bots), len(g.bots))
	return err
}
