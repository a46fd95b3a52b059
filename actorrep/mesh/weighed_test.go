package mesh

import (
	"testing"
	"time"
)

// TestKeptWeighed is TestKept with zones that go by what their actors weigh, sixteen for each server, so that they change hands while servers crash, stand still and are cut off.
func TestKeptWeighed(t *testing.T) {
	handed, restored := uint64(0), 0
	for seed := *first; seed < *first+uint64(seedsToPlay(*keptSeeds, 10, 3)); seed++ {
		s := drawKept(seed)
		r, g := playPlain(s, func(g *plain) {
			g.zones = 4
			g.weight = func(a Actor) float64 {
				if x, y, _ := a.Location(); x < zoneCell && y < zoneCell {
					return 10
				}
				return 1
			}
		})
		if !r.OK() {
			t.Fatalf("seed %d: %v\n%v", seed, r.Failure, r.Script)
		}
		for _, s := range g.servers {
			g.tallied(s.keeper)
		}
		handed, restored = handed+g.handed, restored+g.restored
	}
	t.Logf("%d zones were handed, %d actors were taken over", handed, restored)
	if handed == 0 || restored == 0 {
		t.Fatal("nothing was tried")
	}
}

// crowded has zones split while their crowd is in one quarter of the plain, which is a zone, and merged when it is in another one, or gone.
func crowded(g *plain) {
	const each = 4 * time.Second
	g.spread, g.split = 500*time.Millisecond, 12
	g.weight = func(a Actor) float64 {
		x, y, _ := a.Location()
		if g.calm {
			return 1
		}
		switch g.w.Now() / each % 3 {
		case 0:
			if x < zoneCell && y < zoneCell {
				return 10
			}
		case 1:
			if x > zoneCell && y > zoneCell {
				return 10
			}
		}
		return 0
	}
}

// TestKeptSplit is TestKept with zones, one or four for each server, that are split, merged and handed by the game while servers crash, stand still and are cut off: in the end all have the table that the store has.
func TestKeptSplit(t *testing.T) {
	handed, splits, merges, restored := uint64(0), uint64(0), uint64(0), 0
	for seed := *first; seed < *first+uint64(seedsToPlay(*keptSeeds, 10, 6)); seed++ {
		s := drawKept(seed)
		if seed%3 == 0 {
			s = drawAway(seed)
		}
		r, g := playPlain(s, func(g *plain) {
			crowded(g)
			g.zones = 2 * int(seed%2)
			g.durable, g.deals = seed%5 == 0, seed%5 == 1
			if rng := g.w.Rand("hands"); seed%7 == 3 { // the game hands zones, too
				g.fault.step = func(k *Keeper) {
					if !g.calm && len(k.leases) > 0 && rng.IntN(50) == 0 {
						_ = k.Hand(k.zones[rng.IntN(len(k.zones))].name, k.leases[rng.IntN(len(k.leases))].id)
					}
				}
			}
		})
		if !r.OK() {
			t.Fatalf("seed %d: %v\n%v", seed, r.Failure, r.Script)
		}
		for _, s := range g.servers {
			g.tallied(s.keeper)
		}
		handed, splits, merges, restored = handed+g.handed, splits+g.splits, merges+g.merges, restored+g.restored
	}
	t.Logf("%d zones were split and %d merged, %d were handed, %d actors were taken over", splits, merges, handed, restored)
	if handed == 0 || splits == 0 || merges == 0 || restored == 0 {
		t.Fatal("nothing was tried")
	}
}
