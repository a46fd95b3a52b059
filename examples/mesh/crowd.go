package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// crowd is where players gather: a zone. It is split while they are there, and merged when they have left.
type crowd struct {
	at            time.Time
	left          time.Time     // when it was told to go; zero: it is there
	zone          int           // of plan
	before, after map[int]int   // how many of the zone's squares each server held
	split         time.Duration // until the zone was split, and several servers held it; 0: that isn't so yet
	merged        time.Duration // from left until it was whole again; 0: that isn't so yet
}

func (c *crowd) name() string { return plan().Servers[c.zone] }

// middle is that of the zone.
func (c *crowd) middle() (x, y float64) {
	return cell * (float64(c.zone%columns) + 0.5), cell * (float64(c.zone/columns) + 0.5)
}

// place is somewhere in the crowd.
func (c *crowd) place(rng *rand.Rand) (x, y float64) {
	const reach = cell - 3*hysteresis // so that hysteresis has nobody stay with a server around it
	x, y = c.middle()
	return x + reach*(rng.Float64()-0.5), y + reach*(rng.Float64()-0.5)
}

// place is somewhere on the plane, and half of the time near a border. It is not in a zone that is split: it was crowded enough there.
func (g *mesher) place(rng *rand.Rand) (x, y float64) {
	for range 10 {
		x, y = columns*cell*rng.Float64(), rows*cell*rng.Float64()
		if rng.IntN(2) == 0 {
			x = side*float64(1+rng.IntN(across-1)) - 10 + 20*rng.Float64()
		}
		if !g.split(min(int(y/cell), rows-1)*columns + min(int(x/cell), columns-1)) {
			break
		}
	}
	return x, y
}

// gather has most players go to a zone.
func (g *mesher) gather(zone string, now time.Time, bad error) error {
	at := slices.Index(plan().Servers, zone)
	if at < 0 {
		return bad
	}
	g.leave(now)
	c := &crowd{at: now, zone: at}
	c.before = g.shares(at)
	g.crowd, g.crowds = c, append(g.crowds, c)
	g.tell("the players gather in zone %s", zone)
	return nil
}

// leave has the crowd go.
func (g *mesher) leave(now time.Time) {
	if g.crowd != nil {
		g.crowd.left = now
	}
	g.crowd = nil
}

// shares is how many of a zone's squares each server holds.
func (g *mesher) shares(zone int) map[int]int {
	n := map[int]int{}
	for q := range 4 {
		if s := g.holder(quarter(zone, q)); s > 0 {
			n[s]++
		}
	}
	return n
}

// most is the number of the server that holds most of the crowd's zone; 0: there is no crowd.
func (g *mesher) most() (server int) {
	if g.crowd == nil {
		return 0
	}
	n := g.shares(g.crowd.zone)
	for s := range servers {
		if n[s+1] > n[server] {
			server = s + 1
		}
	}
	return server
}

// watchCrowds looks whether the crowd has come, and its zone is split and several servers hold it, none more than half of it; and whether the zones of former crowds are whole again.
func (g *mesher) watchCrowds(now time.Time) {
	for i, c := range g.crowds {
		later := func(o *crowd) bool { return o.zone == c.zone } // they have come again
		if c != g.crowd && c.split > 0 && c.merged == 0 && !g.split(c.zone) && !slices.ContainsFunc(g.crowds[i+1:], later) {
			c.merged = max(now.Sub(c.left), 1)
		}
	}
	c := g.crowd
	if c == nil || c.split > 0 || !g.split(c.zone) {
		return
	}
	there := 0
	for _, s := range g.slots {
		if s.now == nil {
			continue
		}
		for _, d := range s.now.last.Dots {
			if x, y := c.middle(); d.Player%4 > 0 && max(d.X-x, x-d.X, d.Y-y, y-d.Y) <= cell/2 {
				there++
			}
		}
	}
	n := g.shares(c.zone)
	for _, have := range n {
		if have > 2 {
			return
		}
	}
	if len(n) >= 2 && there >= len(g.bots)/2 {
		c.after, c.split = n, max(now.Sub(c.at), 1)
		g.tell("the crowd's zone %s is split among servers: %s of its quarters", c.name(), heldBy(n))
	}
}

// apart says which zone is split that no crowd is in.
func (g *mesher) apart() string {
	for zone, name := range plan().Servers {
		if g.split(zone) && (g.crowd == nil || g.crowd.zone != zone) {
			return "zone " + name + " is split, and no crowd is there"
		}
	}
	return ""
}

// heldBy says which servers hold how many quarters.
func heldBy(n map[int]int) string {
	var all []string
	for s := 1; s <= servers; s++ {
		if n[s] > 0 {
			all = append(all, fmt.Sprintf("server %d has %d", s, n[s]))
		}
	}
	return cmp.Or(strings.Join(all, ", "), "nobody has any")
}
