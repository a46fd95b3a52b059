package mesh

import (
	"testing"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// careless is a ZoneGame whose Take forgets the state.
type careless struct{ ZoneGame }

func (careless) Take(Actor, []byte) error { return nil }

// TestZonesPlanted plants faults in what zones know, and expects each to be found.
func TestZonesPlanted(t *testing.T) {
	was := map[*zoneServer]map[netguid.GUID]bool{} // what was whose at the last Step
	plants := []struct {
		what  string
		plant func(s *zoneServer, r *record, own bool) // of an actor, and whether it was this server's
		each  func(s *zoneServer)
	}{
		{what: "it goes on with what it has given", plant: func(s *zoneServer, r *record, own bool) {
			if own && r.owner != s.zone.cfg.ID && r.owner != "" && r.a != nil {
				s.zone.own(r, r.epoch)
			}
		}},
		{what: "it goes on with a player that it has released", plant: func(s *zoneServer, r *record, own bool) {
			if own && r.owner == "" && r.a != nil {
				s.zone.own(r, r.epoch)
			}
		}},
		{what: "it takes without a new epoch", plant: func(s *zoneServer, r *record, own bool) {
			if !own && r.owner == s.zone.cfg.ID && r.epoch > 1 {
				r.epoch--
				r.a.body().Epoch--
			}
		}},
		{what: "it goes on showing what it has given", plant: func(s *zoneServer, r *record, own bool) {
			for _, n := range s.zone.neighbours {
				if r.owner != s.zone.cfg.ID && n.peer != nil && r.a != nil {
					n.peer.SetRelevant(r.a, true)
				}
			}
		}},
		{what: "it takes what it mirrors for its own", plant: func(s *zoneServer, r *record, own bool) {
			if r.owner != s.zone.cfg.ID && r.owner != "" && r.a != nil && s.g.rng.IntN(100) == 0 {
				s.zone.own(r, r.epoch)
			}
		}},
		{what: "it never forgets a mirror", plant: func(s *zoneServer, r *record, own bool) { r.shownAt = s.zone.now }},
		{what: "it forgets epochs", plant: func(s *zoneServer, r *record, own bool) {
			if r.owner != s.zone.cfg.ID && r.epoch > 1 {
				r.epoch, r.owner = 1, ""
			}
		}},
		{what: "it takes the state of a former time", each: func(s *zoneServer) { s.zone.cfg.Game = careless{zoneGame{s}} }},
		{what: "it hears a message twice", each: func(s *zoneServer) {
			for _, n := range s.zone.neighbours {
				if n.next > 1 && s.g.rng.IntN(20) == 0 {
					n.next--
				}
			}
		}},
		{what: "it misses a message", each: func(s *zoneServer) {
			for _, n := range s.zone.neighbours {
				if s.g.rng.IntN(20) == 0 {
					n.next++
				}
			}
		}},
		{what: "it doesn't return what it doesn't take", each: func(s *zoneServer) {
			for _, n := range s.zone.neighbours {
				for i, b := range n.out.waiting {
					var m zoneMessage
					if m.read(b); m.kind == zoneNo {
						n.out.waiting[i] = (&zoneMessage{kind: zoneEnded, id: m.id}).append(nil)
					}
				}
			}
		}},
		{what: "it forgets a call that waits", each: func(s *zoneServer) { s.zone.held = nil }},
	}
	seeds := uint64(20)
	if !*whole {
		plants = plants[:3]
	}
	for _, p := range plants {
		found := false
		for seed := uint64(1); seed <= seeds && !found; seed++ {
			clear(was)
			r, _ := playPlain(drawPlain(seed), func(g *plain) {
				g.plant = func(s *zoneServer) {
					if p.each != nil {
						p.each(s)
					}
					before, now := was[s], map[netguid.GUID]bool{}
					for _, r := range s.zone.list {
						if p.plant != nil {
							p.plant(s, r, before[r.id])
						}
						now[r.id] = r.owner == s.zone.cfg.ID
					}
					was[s] = now
				}
			})
			if found = !r.OK(); found {
				t.Logf("%s: seed %d: %.120s", p.what, seed, r.Failure)
			}
		}
		if !found {
			t.Errorf("%s: not found in %d seeds", p.what, seeds)
		}
	}
}
