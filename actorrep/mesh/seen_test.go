package mesh

import (
	"math"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// sight is what players must see while zones change hands.
type sight struct {
	g      *plain
	at     time.Duration
	tables map[string][]former // that each server has had, and until when what was its own counts as that
	near   map[sighted]time.Duration
	looks  int
	holes  int
}

// sighted is an actor that is near a player's, and since when.
type sighted struct {
	player uint64
	id     netguid.GUID
}

// look looks at all clients, at most once at a time: what has been near a player's actor for a while is in its World, as long as its server has the place or has had it less than 2 s ago.
func (v *sight) look(t *testing.T) {
	g, now := v.g, v.g.w.Now()
	if now == v.at || g.calm || now < 3*time.Second {
		return
	}
	v.at = now
	for _, s := range g.servers {
		all := v.tables[s.id]
		if n := len(all); n == 0 || all[n-1].Epoch != s.zone.table.Epoch {
			all = append(all, former{Table: s.zone.table})
		}
		all[len(all)-1].until = now + 2*time.Second
		v.tables[s.id] = all
	}
	for _, c := range g.clients {
		if c.pawn == nil || c.m == nil || c.ends[c.m.Server()] == nil {
			continue
		}
		server, in := c.m.Server(), false
		for _, f := range v.tables[server] {
			in = in || f.until > now && distanceOf(f.near(nil, c.pawn.x, c.pawn.y, zoneHyst), server) <= zoneHyst
		}
		for _, o := range g.order {
			it := sighted{c.id, o.id}
			if !in || o.over || c.pawn.over || math.Hypot(o.x-c.pawn.x, o.y-c.pawn.y) > zoneMargin-12 { // what comes near is on the way for two ticks
				delete(v.near, it)
				continue
			}
			if _, ok := v.near[it]; !ok {
				v.near[it] = now
			}
			if now-v.near[it] < 500*time.Millisecond {
				continue
			}
			if v.looks++; c.ends[server].world.Find(o.id) == nil {
				if v.holes++; v.holes == 1 {
					t.Errorf("at %v player %d at %s, whose actor is at %.0f, %.0f, doesn't see sheep %d of %s at %.0f, %.0f: %s", now, c.id, server, c.pawn.x, c.pawn.y, o.name, o.owner.id, o.x, o.y, g.about(o.id))
				}
			}
		}
	}
}

// TestSplitLeavesNoHole: while zones are split, handed and merged all the time, a player sees what is near its actor, without a moment in which it isn't there: its server mirrors for Linger what was its own.
func TestSplitLeavesNoHole(t *testing.T) {
	splits, merges, handed, looks := uint64(0), uint64(0), uint64(0), 0
	for seed := *first; seed < *first+uint64(seedsToPlay(*keptSeeds, 5, 2)); seed++ {
		s := quietPlain(seed)
		s.Servers, s.Clients, s.Run = 5, 8, 20*time.Second
		s.Set("store", "1")
		v := sight{tables: map[string][]former{}, near: map[sighted]time.Duration{}}
		r, g := playPlain(s, func(g *plain) {
			crowded(g)
			v.g, g.zones = g, 2*int(seed%2)
			g.fault.step = func(*Keeper) { v.look(t) }
		})
		if !r.OK() || v.holes > 0 {
			t.Fatalf("seed %d: %v, %d holes in %d looks", seed, r.Failure, v.holes, v.looks)
		}
		for _, s := range g.servers {
			g.tallied(s.keeper)
		}
		splits, merges, handed, looks = splits+g.splits, merges+g.merges, handed+g.handed, looks+v.looks
	}
	t.Logf("%d zones were split and %d merged, %d were handed: %d looks", splits, merges, handed, looks)
	if splits == 0 || merges == 0 || handed == 0 || looks == 0 {
		t.Fatal("nothing was tried")
	}
}
