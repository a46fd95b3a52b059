package mesh

import (
	"cmp"
	"time"
)

// Zones by what their actors weigh: KeeperConfig.Weight.

// load is what this server's actors weigh, in thousandths, as a mean of loadSpreads KeeperConfig.Spreads: actors come and go.
type load struct {
	near  zoneLoad      // of actors that are in others' zones, and stay this server's by hysteresis
	told  uint64        // what the lease says of it: one more than the sum of all of them; 0 before they were weighed, and without KeeperConfig.Weight
	fresh bool          // they were weighed since told was looked at last
	ready time.Duration // since when there is a server to hand zones to; 0: there is none
}

// zoneLoad is what the actors in a zone, or in a part of it, weigh that are its holder's, or will be.
type zoneLoad struct {
	now, mean uint64
	times     float64 // that it was weighed since this server holds it
	side      int     // what its sides count in borders of what is on the other side of them
	borders   int
}

const (
	mostWeight  = 1 << 30 // of an actor, so that no sum overflows
	loadSpreads = 4
)

// weigh weighs the actors that are this server's, or will be: not those that are on their way to another server, but those that come from there. It is as often as the lease is renewed.
func (k *Keeper) weigh() {
	if k.cfg.Weight == nil {
		return
	}
	l := &k.load
	for _, t := range k.zones {
		for i := range t.shares {
			t.shares[i].now = 0
		}
	}
	places := k.lay()
	l.near.now = 0
	for _, r := range k.z.list {
		if r.a == nil || r.a.body().World() != k.z.cfg.World {
			continue
		}
		x, y, _ := r.a.Location()
		at := places.find(x, y)
		in := &k.shareAt(places.spots[at]).zoneLoad
		switch own := places.Servers[at] == k.id; {
		case own && r.owner == k.id:
		case own == (r.owner == k.id) || k.z.keeps(r.owner, x, y) == own: // another server's, which stays or goes to a third, or this server's, which goes
			continue
		case !own:
			in = &l.near
		}
		if w := k.cfg.Weight(r.a); w > 0 { // a number
			in.now += uint64(1000 * min(w, mostWeight))
		}
	}
	most := k.mostTimes()
	l.near.mix(most)
	l.told, l.fresh = 1+l.near.mean, true
	for _, t := range k.zones {
		for i, p := range t.value.parts {
			z := &t.shares[i]
			if p.holder != k.id {
				z.times = 0
				continue
			}
			z.mix(most)
			l.told += z.mean
		}
	}
}

// mostTimes is how often is weighed in loadSpreads.
func (k *Keeper) mostTimes() float64 {
	return max(1, loadSpreads*float64(k.cfg.Spread)/float64(k.cfg.Lease/4))
}

// mix has the mean of so many times be one of what it weighs now. At first it is that.
func (z *zoneLoad) mix(most float64) {
	z.times = min(z.times+1, most)
	z.mean = uint64(float64(z.mean) + (float64(z.now)-float64(z.mean))/z.times)
}

// borders counts, for each zone or part, how long its sides are that it shares with what a server holds or is about to be handed, less those that it shares with the rest of what this one holds.
func (k *Keeper) borders(to string) {
	for _, t := range k.zones {
		for i, p := range t.value.parts {
			z := &t.shares[i]
			z.borders = 0
			switch {
			case z.to == to || p.holder == to:
				z.side = 1
			case p.holder == k.id:
				z.side = -1
			default:
				z.side = 0
			}
		}
	}
	places := k.lay()
	for _, s := range places.borders() {
		if a, b := k.shareAt(places.spots[s.a]), k.shareAt(places.spots[s.b]); a != b {
			a.borders += s.length * b.side
			b.borders += s.length * a.side
		}
	}
}

// mostHanded is how many zones are handed at a time.
const mostHanded = 16

// stepWeight hands zones to the lightest server, if that weighs less than three fifths of what this one does, until both weigh as much. They border on what that one holds, if any does, so that servers have few borders.
// A heavier server comes first, since two that hand zones to the same one might make it the heaviest: each one that is lighter waits for half a Lease more.
func (k *Keeper) stepWeight() {
	if !k.load.fresh {
		return
	}
	k.load.fresh = false
	k.stepCalm()
	own, least, to, turn := k.load.told, k.load.told, "", time.Duration(0)
	for _, l := range k.leases {
		if w := l.value.load; l.id != k.id && w > 0 {
			if w > own || w == own && l.id < k.id {
				turn += k.cfg.Lease / 2
			}
			if w < least && k.mayGet(l) {
				to, least = l.id, w
			}
		}
	}
	if to == "" || least >= own/5*3 {
		k.load.ready = 0
		return
	}
	if k.load.ready = cmp.Or(k.load.ready, k.now); k.now-k.load.ready < turn {
		return
	}
	for n := 0; n < mostHanded && own > least; n++ {
		z, w := k.toHand(to, own-least)
		if z == nil {
			break
		}
		z.to, k.hands = to, true
		own, least = own-w, least+w
	}
	if k.stepHands(); least < own/5*3 {
		k.split()
	}
}

// toHand is the zone, or the part of one, to hand next to a server that weighs so much less than this one, and what it weighs: one that makes the heavier of the two lighter, of those that border most on the other's zones the heaviest. One that is more than two
// thirds of the difference stays: a crowd would go from server to server as an actor comes by.
func (k *Keeper) toHand(to string, less uint64) (best *share, weighs uint64) {
	k.borders(to)
	borders := 0
	for _, t := range k.zones {
		if k.now < t.tryAt { // its calm parts are being told, or merged
			continue
		}
		for i, p := range t.value.parts {
			z := &t.shares[i]
			if p.holder != k.id || z.to != "" || z.mean == 0 || z.mean > less-less/3 {
				continue
			}
			if b := z.borders; best == nil || b > borders || b == borders && z.mean > weighs {
				best, borders, weighs = z, b, z.mean
			}
		}
	}
	return best, weighs
}
