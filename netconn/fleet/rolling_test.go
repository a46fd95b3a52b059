package fleet

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/kv/kvsim"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// newcomer is a player of TestRollingUpdate.
type newcomer struct {
	id     uint64
	asks   uint64 // the number of its Want, when asked
	asked  bool
	placed Placement
	comes  time.Duration // when it is at its server
	late   bool          // its seat has lapsed by then
	used   uint64        // the placement it came with last. A placer that hasn't heard yet that a server drains may name it again
	at     *Server       // where it plays
}

// TestRollingUpdate: 1000 players come within ten seconds, some long after their seats have lapsed, while all five servers drain and stop one after the other, and a new one takes
// the place of each. In the end each player is on one server, the new ones; no server ever has more than its capacity, and each of the old ones is drained when its players
// have gone, and stops.
func TestRollingUpdate(t *testing.T) {
	for name, trouble := range map[string]kvsim.Trouble{"quick": {}, "slow": {Delay: 20 * time.Millisecond, Slow: 5, SlowBy: 300 * time.Millisecond, LostResult: 2}} {
		t.Run(name, func(t *testing.T) {
			const capacity, players = 200, 1000
			timing := Timing{Life: 3 * time.Second, OpTimeout: 500 * time.Millisecond}
			rng := rand.New(rand.NewPCG(1, 1))
			b := newBench(t, 1, trouble)
			serve := func() *Server {
				return b.server(func(c *ServerConfig) { c.Timing, c.Info.Capacity = timing, capacity })
			}
			for range 5 {
				serve()
			}
			var replacements []*Server // not ready yet
			for range 5 {
				s := serve()
				s.info.State = Starting
				replacements = append(replacements, s)
			}
			for range 4 {
				b.placer(func(c *PlacerConfig) { c.Timing, c.Policy, c.Deadline = timing, Spread, time.Second })
			}
			b.run(3 * time.Second)
			begin := b.w.Now()

			var all []*newcomer
			byID := map[string]*Server{}
			for _, s := range b.servers {
				byID[s.ID()] = s
			}
			there := map[*Server]int{}
			full, late := 0, 0
			tick := func(n *newcomer) {
				now := b.w.Now()
				p := b.placers[n.id%4]
				switch {
				case n.at != nil:
					if n.at.Info().State != Draining { // else the game has it dial again
						return
					}
					n.at.Left(n.id)
					there[n.at]--
					n.at, n.asked, n.comes = nil, false, 0
				case !n.asked:
					id, err := p.Place(Want{Player: n.id, Build: "1", Schema: 7})
					if err == nil {
						n.asks, n.asked, n.comes = id, true, 0
					}
				case n.comes == 0:
					o, ok := b.outcomes[p][n.asks]
					if !ok {
						return
					}
					if n.asked = o.Err == nil; !n.asked {
						full++
						return
					}
					n.placed, n.late, n.comes = o.Placement, false, now+time.Duration(rng.IntN(800))*time.Millisecond
					if rng.IntN(20) == 0 {
						n.late, n.comes = true, n.comes+3*timing.Life
						late++
					}
				case now >= n.comes:
					s := byID[n.placed.Server.ID]
					switch come(s, n.id, n.placed.Ticket) {
					case netcode.Admit:
						n.at, n.used = s, slot(n.placed.Ticket.placement)
						there[s]++
						require.LessOrEqual(t, there[s], capacity)
					case netcode.Refuse:
						require.True(t, n.late || slot(n.placed.Ticket.placement) == n.used, "player %d came in time to %s", n.id, s.ID())
						n.asked = false
					}
				}
			}
			for step := 0; ; step++ {
				now := b.w.Now() - begin
				require.Less(t, now, 3*time.Minute, "%d full, %d late, %v", full, late, there)
				if len(all) < players && step%2 == 0 {
					for range 20 {
						all = append(all, &newcomer{id: uint64(len(all) + 1)})
					}
				}
				for i, old := range b.servers[:5] {
					switch at := time.Duration(i+1) * 3 * time.Second; {
					case now < at:
					case old.Info().State == Ready:
						replacements[i].Ready()
						old.Drain()
					case old.Drained():
						require.Zero(t, there[old])
						old.Stop()
					}
				}
				rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				for _, n := range all {
					tick(n)
				}
				b.run(100 * time.Millisecond)
				if len(all) == players && !slices.ContainsFunc(all, func(n *newcomer) bool { return n.at == nil }) && !slices.ContainsFunc(b.servers[:5], func(s *Server) bool { return !s.Stopped() }) {
					break
				}
			}
			sum := 0
			for _, s := range replacements {
				require.Equal(t, there[s], s.Players())
				sum += s.Players()
			}
			require.Equal(t, players, sum)
			require.NotZero(t, late)
			t.Logf("%s: %v until all old servers had stopped; %d placings refused, %d players came late", name, b.w.Now()-begin, full, late)
		})
	}
}
