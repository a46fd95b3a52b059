package mesh

import "time"

// Zones by what their actors weigh: KeeperConfig.Weight.

// load is what this server's actors weigh, in thousandths, as a mean of some KeeperConfig.Spread: actors come and go.
type load struct {
	cells []int      // of each cell of Plan, its zone's place in Keeper.zones
	zones []zoneLoad // by place in Keeper.zones
	total uint64
	fresh bool // it was weighed since it was looked at last
}

// zoneLoad is what the actors in a zone weigh.
type zoneLoad struct {
	now, mean uint64
	times     float64 // that it was weighed since this server holds it
}

// mostWeight bounds an actor's weight, so that no sum of them overflows.
const mostWeight = 1 << 30

func (k *Keeper) initLoad() {
	if k.cfg.Weight == nil {
		return
	}
	places := map[string]int{}
	for i, t := range k.zones {
		places[t.name] = i
	}
	for _, name := range k.cfg.Plan.Servers {
		k.load.cells = append(k.load.cells, places[name])
	}
	k.load.zones = make([]zoneLoad, len(k.zones))
}

// weigh weighs this server's actors, each in the zone where it is. It is as often as the lease is renewed.
func (k *Keeper) weigh() {
	if k.cfg.Weight == nil {
		return
	}
	l := &k.load
	for i := range l.zones {
		l.zones[i].now = 0
	}
	for _, r := range k.z.list {
		if r.owner != k.id || r.a == nil {
			continue
		}
		if w := k.cfg.Weight(r.a); w > 0 { // a number
			x, y, _ := r.a.Location()
			l.zones[l.cells[k.cfg.Plan.cell(x, y)]].now += uint64(1000 * min(w, mostWeight))
		}
	}
	l.total, l.fresh = 0, true
	most := max(1, float64(k.cfg.Spread)/float64(k.cfg.Lease/4))
	for i, t := range k.zones {
		z := &l.zones[i]
		if t.value.holder != k.id { // its last actors are on their way
			z.times = 0
			continue
		}
		if z.times = min(z.times+1, most); z.times == 1 {
			z.mean = 0
		}
		z.mean = uint64(float64(z.mean) + (float64(z.now)-float64(z.mean))/z.times)
		l.total += z.mean
	}
}

// borders is how many sides of cells a zone shares with what a server holds or is about to be handed, less those that it shares with the rest of what this one holds.
func (k *Keeper) borders(zone, to string) (n int) {
	p := &k.cfg.Plan
	rows := len(p.Servers) / p.Columns
	for i, name := range p.Servers {
		if name != zone {
			continue
		}
		row, column := i/p.Columns, i%p.Columns
		for _, next := range [...][2]int{{row - 1, column}, {row + 1, column}, {row, column - 1}, {row, column + 1}} {
			if next[0] < 0 || next[0] >= rows || next[1] < 0 || next[1] >= p.Columns {
				continue
			}
			switch t := k.zones[k.load.cells[next[0]*p.Columns+next[1]]]; {
			case t.name == zone:
			case t.to == to || t.value.holder == to:
				n++
			case t.value.holder == k.id:
				n--
			}
		}
	}
	return n
}

// mostHanded is how many zones are handed at a time.
const mostHanded = 16

// stepWeight hands zones to the lightest server, if that weighs less than two thirds of what this one does, until both weigh as much. They border on what that one holds, if any does, so that servers have few borders. rest is how long all
// zones have stayed where they are. A heavier server comes first, since two that hand zones to the same one might make it the heaviest: each one that is lighter waits for half a Lease more.
func (k *Keeper) stepWeight(rest time.Duration) {
	if !k.load.fresh {
		return
	}
	k.load.fresh = false
	own, least, to := k.load.total, k.load.total, ""
	for _, l := range k.leases {
		if w := l.value.load; l.id != k.id {
			if w > own || w == own && l.id < k.id {
				rest -= k.cfg.Lease / 2
			}
			if w < least && k.now-l.since >= k.cfg.Spread {
				to, least = l.id, w
			}
		}
	}
	if to == "" || least >= own-own/3 || rest < k.cfg.Spread {
		return
	}
	for n := 0; n < mostHanded && own > least; n++ {
		t, w := k.toHand(to, own-least)
		if t == nil {
			return
		}
		t.to = to
		own, least = own-w, least+w
	}
}

// toHand is the zone to hand next to a server that weighs so much less than this one, and what it weighs: one that makes the heavier of the two lighter, of those that border most on the other's zones the heaviest.
func (k *Keeper) toHand(to string, less uint64) (best *tenancy, weighs uint64) {
	borders := 0
	for i, t := range k.zones {
		w := k.load.zones[i].mean
		if t.value.holder != k.id || t.to != "" || w == 0 || w >= less {
			continue
		}
		if b := k.borders(t.name, to); best == nil || b > borders || b == borders && w > weighs {
			best, borders, weighs = t, b, w
		}
	}
	return best, weighs
}
