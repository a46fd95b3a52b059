package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// crowd is where players gather: the four zones around a corner.
type crowd struct {
	at            time.Time
	zones         []string
	x, y          float64       // the corner
	before, after map[int]int   // how many of the zones each server held
	divided       time.Duration // until several servers held them; 0: that isn't so yet
}

// place is somewhere in the crowd.
func (c *crowd) place(rng *rand.Rand) (x, y float64) {
	const reach = 2 * 0.9 * cell // so that hysteresis has nobody stay with a server around it
	return c.x + reach*(rng.Float64()-0.5), c.y + reach*(rng.Float64()-0.5)
}

// gather has most players go to a zone, and to those on its right and below.
func (g *mesher) gather(zone string, now time.Time, bad error) error {
	at := slices.Index(plan().Servers, zone)
	if at < 0 {
		return bad
	}
	column, row := min(at%columns, columns-2), min(at/columns, rows-2)
	c := &crowd{at: now, x: cell * float64(column+1), y: cell * float64(row+1)}
	for i := range 4 {
		c.zones = append(c.zones, zoneName(column+i%2, row+i/2))
	}
	c.before = g.shares(c.zones)
	g.crowd, g.crowds = c, append(g.crowds, c)
	g.tell("the players gather in zones %s", strings.Join(c.zones, " "))
	return nil
}

// shares is how many of some zones each server holds.
func (g *mesher) shares(zones []string) map[int]int {
	holder, n := g.holders(), map[int]int{}
	for _, z := range zones {
		if holder[z] > 0 {
			n[holder[z]]++
		}
	}
	return n
}

// watchCrowd looks whether the crowd has come, and its zones are divided among servers: none has more than half of them.
func (g *mesher) watchCrowd(now time.Time) {
	c := g.crowd
	if c == nil || c.divided > 0 {
		return
	}
	there := 0
	for _, s := range g.slots {
		if s.now == nil {
			continue
		}
		for _, d := range s.now.last.Dots {
			if d.Player%4 > 0 && max(d.X-c.x, c.x-d.X) <= cell && max(d.Y-c.y, c.y-d.Y) <= cell {
				there++
			}
		}
	}
	n := g.shares(c.zones)
	for _, have := range n {
		if have > len(c.zones)/2 {
			return
		}
	}
	if len(n) >= 2 && there >= len(g.bots)/2 {
		c.after, c.divided = n, now.Sub(c.at)
		g.tell("the crowd's zones are divided: %s", heldBy(n))
	}
}

// heldBy says which servers hold how many zones.
func heldBy(n map[int]int) string {
	var all []string
	for s := 1; s <= servers; s++ {
		if n[s] > 0 {
			all = append(all, fmt.Sprintf("server %d held %d", s, n[s]))
		}
	}
	return strings.Join(all, ", ")
}
