package mesh

import "testing"

// TestKeptWeighed is TestKept with zones that go by what their actors weigh, sixteen for each server, so that they change hands while servers crash, stand still and are cut off.
func TestKeptWeighed(t *testing.T) {
	handed, restored := uint64(0), 0
	for seed := *first; seed < *first+uint64(seedsToPlay(*keptSeeds, 20, 3)); seed++ {
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
			g.handed += s.keeper.Counters.Handed
		}
		handed, restored = handed+g.handed, restored+g.restored
	}
	t.Logf("%d zones were handed, %d actors were taken over", handed, restored)
	if handed == 0 || restored == 0 {
		t.Fatal("nothing was tried")
	}
}
