package mesh

import (
	"fmt"
	"slices"

	"github.com/bunchnet/bunchnet/netconn/kv"
)

// Zones that are split: KeeperConfig.Split. A zone's parts are in its one key, so all of them are as one write has left them.

// part is a part of a zone: a zone of one cell, halved so many times both ways. A zone that isn't split is one part.
type part struct {
	depth  uint8
	calm   bool // its holder says that it weighs so little that it may be merged
	holder string
}

const (
	maxParts    = 128 // of a zone, so that its value is no longer than an actor's record
	wholeZone   = 1 << (2 * maxDepth)
	calmParts   = 16            // a part is calm that weighs less than one of so many of KeeperConfig.Split
	splitsTaken = maxSplits / 2 // of all zones, from which on nothing is split any more: several servers may do it at the same time
)

// size is how much of its zone a part is, of wholeZone.
func (p part) size() int { return wholeZone >> (2 * p.depth) }

// wholly is a zone that isn't split.
func wholly(holder string) []part { return []part{{holder: holder}} }

// fits reports whether parts are those of a whole zone: quarters of quarters, in the order of Table.Servers, each followed by what follows it in its own square.
func fits(parts []part) bool {
	at := 0
	for _, p := range parts {
		if p.depth > maxDepth || at%p.size() != 0 {
			return false
		}
		at += p.size()
	}
	return at == wholeZone
}

// squareOf is how many of the parts are those of a square of a depth, with which they begin.
func squareOf(parts []part, depth uint8) (n int) {
	for left := (part{depth: depth}).size(); left > 0; n++ {
		left -= parts[n].size()
	}
	return n
}

// divided returns parts with one of them split.
func divided(parts []part, at int) []part {
	p := part{depth: parts[at].depth + 1, holder: parts[at].holder}
	return slices.Replace(slices.Clone(parts), at, at+1, p, p, p, p)
}

// merge merges four calm parts that were split from one, whose first one is a holder's, into one of that holder's, as often as there are such. It returns how often.
func merge(parts []part, holder string) (merged []part, n int) {
	begins := 0
	for i := 0; i+3 < len(parts); i++ {
		p := parts[i]
		four := parts[i : i+4]
		if p.depth > 0 && begins%(4*p.size()) == 0 && p.holder == holder && !slices.ContainsFunc(four, func(o part) bool { return o.depth != p.depth || !o.calm }) {
			parts = slices.Replace(parts, i, i+4, part{depth: p.depth - 1, holder: holder})
			n++
		}
		begins += parts[i].size()
	}
	return parts, n
}

// spot is a place in a Table, and the zone's part that it is of.
type spot struct {
	zone, part int
	depth      uint8
	square
}

// sharedSide is where two parts touch, in units of the smallest side that there may be.
type sharedSide struct{ a, b, length int }

// division is the Plan with its zones as they are split.
type division struct {
	Table
	spots []spot // of each place in Servers
	sides []sharedSide
	sided bool // sides is of spots
}

// lay returns the division by what the store has.
func (k *Keeper) lay() *division {
	l := &k.division
	if k.laid {
		return l
	}
	k.laid = true
	*l = division{Table: k.cfg.Plan, spots: l.spots[:0], sides: l.sides[:0]}
	l.Servers, l.Splits = make([]string, 0, len(k.cells)), nil
	for i, zone := range k.cells {
		l.spots = append(l.spots, spot{zone: zone, square: l.Table.square(i/l.Columns, i%l.Columns)})
	}
	for n := 0; n < len(l.spots); n++ {
		s := l.spots[n]
		parts := k.zones[s.zone].value.parts
		if p := parts[s.part]; p.depth == s.depth {
			l.Servers = append(l.Servers, p.holder)
			continue
		}
		l.Servers, l.Splits = append(l.Servers, ""), append(l.Splits, n)
		at := s.part
		for q := range 4 {
			l.spots = append(l.spots, spot{s.zone, at, s.depth + 1, s.quarter(q)})
			at += squareOf(parts[at:], s.depth+1)
		}
	}
	return l
}

// shareAt is what is known of a place's part.
func (k *Keeper) shareAt(s spot) *share { return &k.zones[s.zone].shares[s.part] }

// borders returns where parts touch.
func (l *division) borders() []sharedSide {
	if l.sided {
		return l.sides
	}
	l.sided = true
	width, height := float64(l.Columns)*l.Cell, float64(l.rows())*l.Cell
	for n, s := range l.spots {
		if l.split(n) >= 0 {
			continue
		}
		for i, d := range [...][2]float64{{1, 0}, {0, 1}, {-1, 0}, {0, -1}} {
			x, y := s.x+s.side*(d[0]+0.5), s.y+s.side*(d[1]+0.5) // the middle of the square beside it
			if x < l.X || y < l.Y || x > l.X+width || y > l.Y+height {
				continue
			}
			if m := l.find(x, y); l.spots[m].depth < s.depth || l.spots[m].depth == s.depth && i < 2 { // of two different ones the smaller one finds the larger
				l.sides = append(l.sides, sharedSide{n, m, 1 << (maxDepth - s.depth)})
			}
		}
	}
	return l.sides
}

// deepest is how often a cell may be halved so that Margin and Hysteresis allow its parts: what SetTable takes, with sides of four times Hysteresis.
func (z *Zone) deepest(cell float64) (n uint8) {
	for n < maxDepth {
		if cell /= 2; z.cfg.Margin+z.cfg.Hysteresis > 4*cell || 4*z.cfg.Hysteresis > cell {
			break
		}
		n++
	}
	return n
}

// put has the store have a zone's parts, if the zone is as this server has heard of it. done hears when it has them. Nothing happens when too many zones are being written, or this one: then it is tried again.
func (k *Keeper) put(t *tenancy, v zoneValue, done func()) {
	if k.ofZones >= maxZoneOps {
		return
	}
	k.ofZones++
	t.tryAt = k.now + k.cfg.Lease/4
	k.do(kv.Op{Kind: kv.Put, Key: k.key("zone", t.name), Value: v.append(nil), Expect: t.rev}, func(e kv.Event) {
		k.ofZones--
		if e.Status == kv.OK {
			done()
		}
	})
}

// allKnowSplits reports whether there is no server of a release that knows no zones that are split. Such a one takes a zone that is split for damaged, and takes it whole.
func (k *Keeper) allKnowSplits() bool {
	i := slices.IndexFunc(k.leases, func(l *lease) bool { return !l.value.over && l.value.beat < splitBeats })
	if i >= 0 && !k.former {
		k.former = true
		report(k.z.cfg.World, fmt.Errorf("%w: server %q has another release, which knows no zones that are split, or its lease was damaged: no zone is split while it is there", ErrConfig, k.leases[i].id))
	}
	return i < 0
}

// split splits the heaviest part of this server's zones, if it weighs more than KeeperConfig.Split and may be split further.
func (k *Keeper) split() {
	var zone *tenancy
	at, heaviest := 0, uint64(1000*min(k.cfg.Split, mostWeight))
	if k.cfg.Split == 0 || len(k.lay().Splits) >= splitsTaken || !k.allKnowSplits() {
		return
	}
	for _, t := range k.zones {
		if t.cells > 1 || len(t.value.parts)+3 > maxParts || k.now < t.tryAt {
			continue
		}
		for i, p := range t.value.parts {
			if w := t.shares[i].mean; p.holder == k.id && t.shares[i].to == "" && p.depth < k.deepest && w > heaviest {
				zone, at, heaviest = t, i, w
			}
		}
	}
	if zone != nil {
		k.put(zone, zoneValue{zone.value.epoch + 1, divided(zone.value.parts, at)}, func() { k.Counters.Split++ })
	}
}

// stepCalm says which of this server's parts have become calm, or aren't any more, and merges those that are with their neighbours.
func (k *Keeper) stepCalm() {
	if k.cfg.Split == 0 {
		return
	}
	limit := uint64(1000 * min(k.cfg.Split, mostWeight) / calmParts)
	for _, t := range k.zones {
		if len(t.value.parts) == 1 || k.now < t.tryAt {
			continue
		}
		k.parts = append(k.parts[:0], t.value.parts...)
		parts := k.parts
		for i, p := range parts {
			if z := &t.shares[i]; p.holder == k.id {
				parts[i].calm = p.calm && z.mean <= 2*limit || !p.calm && z.mean <= limit && z.times >= k.mostTimes()
			}
		}
		told := !slices.Equal(parts, t.value.parts)
		parts, merged := merge(parts, k.id)
		v := zoneValue{t.value.epoch, parts}
		if merged > 0 {
			v.epoch++
		} else if !told {
			continue
		}
		k.put(t, v, func() { k.Counters.Merged += uint64(merged) })
	}
}
