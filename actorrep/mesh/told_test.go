package mesh

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// asks is what a client asks of its sheep, one thing after the other, each again until it is told that it is done.
type asks struct {
	n     uint64 // the number of the last one
	told  uint64 // and of the last one that it was told of
	again time.Duration
}

// drawTold is drawKept with clients that ask.
func drawTold(seed uint64) simtest.Script {
	s := drawKept(seed)
	s.Set("asks", "1")
	return s
}

// ask asks for the next thing, or for the last one again. What waits at a server that is no more is lost.
func (c *zoneClient) ask() {
	g := c.g
	if !g.asking || c.m == nil || g.w.Now() < c.again || c.told == c.n && g.calm {
		return
	}
	if c.told == c.n {
		c.n++
	}
	c.again = g.w.Now() + time.Second
	_ = c.m.Send(binary.AppendUvarint(nil, c.n)) // without room it is asked for again
}

// tell takes a server's word that something is done.
func (c *zoneClient) tell(m []byte) {
	if n, _ := binary.Uvarint(m); n > c.told {
		c.told, c.again = n, min(c.again, c.g.w.Now()+100*time.Millisecond)
		c.g.told++
	}
}

// asked does what a player's client asks for, once, and tells it when the store has that.
func (s *zoneServer) asked(player uint64, m []byte) {
	a := s.pawns[player]
	if !s.g.asking || a == nil || !s.zone.Owns(a) {
		return
	}
	n, _ := binary.Uvarint(m)
	if n > a.Asked {
		a.Asked, a.Coins = n, a.Coins+1
	}
	answer := func(err error) {
		if err == nil {
			_ = s.m.Send(player, m) // to one that isn't here any more, it is told when it asks again
		}
	}
	if s.g.hasty {
		answer(nil)
		answer = func(error) {}
	}
	_ = s.keeper.Keep(a, answer)
}

// hasTold checks that a server's sheep has what its client was told of.
func (s *zoneServer) hasTold(a *sheep) {
	if s.g.asking && a.player > 0 {
		if c := s.g.clients[a.player-1]; a.Asked < c.told {
			s.g.w.Failf("told", "client %d was told of %d, and its sheep at %s has %d", c.id, c.told, s.id, a.Asked)
		}
	}
}

// untold says which client waits for something, and checks that each was done once.
func (g *plain) untold() string {
	if !g.asking {
		return ""
	}
	for _, c := range g.clients {
		if c.told != c.n {
			return fmt.Sprintf("client %d waits for %d", c.id, c.n)
		}
		for _, s := range g.servers {
			if a := s.pawns[c.id]; a != nil && s.zone.Owns(a) && (a.Coins != c.told || a.Asked != c.told) {
				g.w.Failf("told", "client %d was told of %d, and its sheep at %s has done %d, up to %d", c.id, c.told, s.id, a.Coins, a.Asked)
			}
		}
	}
	return ""
}

// TestTold is TestKept with clients that ask for things: what a client was told that is done isn't lost by a take-over, nothing is done twice, and in the end everything is done and told.
func TestTold(t *testing.T) {
	n := seedsToPlay(*keptSeeds, 6, 3)
	told, restored := 0, 0
	for seed := *first; seed < *first+uint64(n); seed++ {
		r, g := playPlain(drawTold(seed), nil)
		if !r.OK() {
			t.Fatalf("seed %d: %v\n%v", seed, r.Failure, r.Script)
		}
		told, restored = told+g.told, restored+g.restored
	}
	t.Logf("seeds %d to %d: %d things were told, %d actors were taken over", *first, *first+uint64(n)-1, told, restored)
	if told == 0 || restored == 0 {
		t.Fatal("nothing was tried")
	}
}

// TestToldPlanted plants faults by which clients are told too early, and expects each to be found.
func TestToldPlanted(t *testing.T) {
	const hasty = "the game tells its client at once"
	plants := []planted{
		{2, hasty, keeperFault{}},
		{4, "it tells when it has asked the store, before the answer", keeperFault{step: func(k *Keeper) {
			for _, a := range k.list {
				if a.busy {
					k.tell(a, a.last.want, nil)
				}
			}
		}}},
		{88, "a write tells of what was changed after it", keeperFault{step: func(k *Keeper) {
			for _, a := range k.list {
				if a.busy {
					a.last.want = a.want
				}
			}
		}}},
		{11, "it tells of what the store has refused", keeperFault{event: func(e *kv.Event) {
			if e.Kind == kv.Result && e.Status == kv.Conflict {
				e.Status = kv.OK
			}
		}}},
	}
	expectFound(t, plants, 2, func(seed uint64, p planted) simtest.Result {
		r, _ := playPlain(drawTold(seed), func(g *plain) { g.fault, g.hasty = p.keeperFault, p.what == hasty })
		return r
	})
}
