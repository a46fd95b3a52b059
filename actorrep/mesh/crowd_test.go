package mesh

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// crowd is four servers' Keepers that weigh, on a plane of 400 by 400. Actors are only places: an actor is mirrored by all, and its owner is the server that has held its zone for a moment.
type crowd struct {
	t       testing.TB
	rng     *mathrand.Rand
	now     time.Duration
	servers []*scale
	store   map[string]kv.Event
	rev     uint64
	actors  []walker
	plan    Table
	values  []zoneValue // of the plan's zones, by the store
	holders [crowdFine * crowdFine]string
	former  map[square]string // who has handed it last
	handed  int
	back    int // zones and parts that were handed to who has handed them
	changed int // zones that were split or merged
	homeAt  square
	way     time.Duration
	still   bool // nobody walks
}

type walker struct {
	x, y   float64
	home   bool // it stays about a place
	weight float64
	owner  string
	since  time.Duration // its zone's holder is another one
	next   string
}

type scale struct {
	*solo
	id     string
	events []kv.Event
	sheep  []*sheep
}

// The smallest side of a part, and how many of it the plane has in a row.
const (
	crowdUnit = 6.25
	crowdFine = 64
)

// newCrowd has a crowd at home in the first 150 of a plane of so many zones in a row, which are split above a weight.
func newCrowd(t testing.TB, seed uint64, home, others, columns int, split float64) *crowd {
	g := &crowd{t: t, rng: mathrand.New(mathrand.NewPCG(seed, 1)), store: map[string]kv.Event{}, former: map[square]string{}, way: 3 * time.Second, homeAt: square{side: 150}}
	for i := range home + others {
		w := walker{home: i < home, weight: 1, x: 400 * g.rng.Float64(), y: 400 * g.rng.Float64()}
		if w.home {
			w.weight, w.x, w.y = 10, 150*g.rng.Float64(), 150*g.rng.Float64()
		}
		g.actors = append(g.actors, w)
	}
	plan := Table{Cell: 400 / float64(columns), Columns: columns}
	zones := make([][]string, 4)
	for i := range columns * columns {
		name := fmt.Sprint("z", i)
		plan.Servers = append(plan.Servers, name)
		at := i/(columns/2)%2 + i/(columns*columns/2)*2
		zones[at] = append(zones[at], name)
	}
	g.plan, g.values = plan, make([]zoneValue, columns*columns)
	for i := range 4 {
		s := &scale{solo: &solo{t: t, state: []byte("state")}, id: string([]byte{'a' + byte(i)})}
		s.world = actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: 4}})
		require.NoError(t, s.world.Register("Sheep", (*sheep)(nil)))
		var err error
		s.zone, err = NewZone(ZoneConfig{ID: s.id, World: s.world, Game: s, Table: Table{Epoch: 1, Cell: plan.Cell, Columns: 1, Servers: []string{s.id}}, Margin: 10, Hysteresis: 1, Key: [32]byte{1}, Rand: rand.Reader, ToServer: func(string, []byte) {}})
		require.NoError(t, err)
		s.keeper, err = NewKeeper(KeeperConfig{Zone: s.zone, Plan: plan, Zones: zones[i], Split: split, Weight: func(a Actor) float64 { return g.actors[a.(*sheep).Name].weight }, Save: func(Actor) []byte { return s.state }})
		require.NoError(t, err)
		for n := range g.actors {
			a := &sheep{Name: uint32(n)}
			require.NoError(t, s.world.Spawn(a))
			s.sheep = append(s.sheep, a)
			s.zone.add(a.GUID()).a = a
		}
		s.events = []kv.Event{{Kind: kv.Begin, Store: 1}, {Kind: kv.Current}}
		g.servers = append(g.servers, s)
	}
	return g
}

// step is a quarter of a second.
func (g *crowd) step() {
	const d = 250 * time.Millisecond
	g.now += d
	walk := func(v, low, high float64) float64 { return min(max(v+8*g.rng.Float64()-4, low), high-0.01) }
	for i := range g.actors {
		w := &g.actors[i]
		if g.still {
		} else if w.home {
			w.x, w.y = walk(w.x, g.homeAt.x, g.homeAt.x+g.homeAt.side), walk(w.y, g.homeAt.y, g.homeAt.y+g.homeAt.side)
		} else {
			w.x, w.y = walk(w.x, 0, 400), walk(w.y, 0, 400)
		}
		holder := g.holder(w.x, w.y)
		if holder != w.next {
			w.next, w.since = holder, g.now
		}
		if g.now-w.since >= g.way {
			w.owner = w.next
		}
	}
	for _, s := range g.servers {
		for i, a := range s.sheep {
			w := &g.actors[i]
			a.X, a.Y = w.x, w.y
			s.zone.records[a.GUID()].owner = w.owner
		}
		in := s.events
		s.events = nil
		for _, op := range slices.Clone(s.keeper.Step(g.now, in)) {
			g.do(s, op)
		}
		require.False(g.t, s.keeper.Over())
	}
}

func (g *crowd) do(s *scale, op kv.Op) {
	e := g.store[op.Key]
	r := kv.Event{Kind: kv.Result, ID: op.ID, Status: kv.OK, Key: op.Key}
	switch {
	case op.Kind == kv.Get && e.Revision == 0:
		r.Status = kv.Missing
	case op.Kind == kv.Get:
		r.Value, r.Revision = e.Value, e.Revision
	case op.Expect != e.Revision:
		r.Status = kv.Conflict
	default:
		g.rev++
		e = kv.Event{Kind: kv.Changed, Key: op.Key, Value: bytes.Clone(op.Value), Revision: g.rev}
		g.store[op.Key], r.Revision = e, g.rev
		if name, ok := strings.CutPrefix(op.Key, "mesh.zone."); ok {
			var v zoneValue
			require.True(g.t, v.read(op.Value))
			i, err := strconv.Atoi(name[1:])
			require.NoError(g.t, err)
			if len(v.parts) != len(g.values[i].parts) && g.values[i].parts != nil {
				g.changed++
			}
			for n, q := range g.squares(i, v.parts) {
				was, is := g.holder(q.x+q.side/2, q.y+q.side/2), v.parts[n].holder
				for y := q.y / crowdUnit; y < (q.y+q.side)/crowdUnit; y++ {
					for x := q.x / crowdUnit; x < (q.x+q.side)/crowdUnit; x++ {
						g.holders[int(y)*crowdFine+int(x)] = is
					}
				}
				if was == "" || was == is {
					continue
				}
				g.handed++
				if g.former[q] == is {
					g.back++
				}
				g.former[q] = was
			}
			g.values[i] = v
		}
		for _, o := range g.servers {
			if !strings.HasPrefix(op.Key, "mesh.list.") {
				o.events = append(o.events, e)
			}
		}
	}
	s.events = append(s.events, r)
}

// weights is what servers weigh in truth, by who holds the zones.
func (g *crowd) weights() map[string]float64 {
	m := map[string]float64{"a": 0, "b": 0, "c": 0, "d": 0}
	for _, w := range g.actors {
		m[g.holder(w.x, w.y)] += w.weight
	}
	return m
}

// squares are the places of a zone's parts.
func (g *crowd) squares(zone int, parts []part) []square {
	s := square{float64(zone%g.plan.Columns) * g.plan.Cell, float64(zone/g.plan.Columns) * g.plan.Cell, g.plan.Cell}
	all, left := squaresOf(s, 0, parts)
	require.Empty(g.t, left)
	return all
}

// squaresOf are the places of the parts that are in a square of a depth. It returns those that are beyond it.
func squaresOf(s square, depth uint8, parts []part) (all []square, left []part) {
	if parts[0].depth == depth {
		return []square{s}, parts[1:]
	}
	half := s.side / 2
	for _, q := range []square{{s.x, s.y, half}, {s.x + half, s.y, half}, {s.x, s.y + half, half}, {s.x + half, s.y + half, half}} {
		var of []square
		of, parts = squaresOf(q, depth+1, parts)
		all = append(all, of...)
	}
	return all, parts
}

// holder is who holds a place, by the store; "" when nobody does.
func (g *crowd) holder(x, y float64) string {
	return g.holders[int(y/crowdUnit)*crowdFine+int(x/crowdUnit)]
}

// heaviest is the mean of what the heaviest server weighs of what all do in the mean, of every ten seconds of so long.
func (g *crowd) heaviest(d time.Duration) float64 {
	heaviest, mean := 0.0, 0.0
	for n, until := 0, g.now+d; g.now < until; n++ {
		g.step()
		if n%40 > 0 {
			continue
		}
		w := g.weights()
		heaviest += slices.Max(slices.Collect(maps.Values(w)))
		for _, v := range w {
			mean += v / float64(len(w))
		}
	}
	return heaviest / mean
}

// parts is how many parts a zone has.
func (g *crowd) parts(zone int) int { return len(g.values[zone].parts) }

// TestSplitSettles: a crowd in one zone of sixteen is divided by splitting it, so that no server weighs much more than the mean. Then splits, merges and changes of hands become rare, and there are none when nobody walks. When the crowd has gone to
// another zone, that one is split and the first one is whole again. When the crowd is gone, all are whole.
func TestSplitSettles(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("CI") != "" && !testing.Short() {
		seeds = 2
	}
	for _, c := range []struct {
		home, others    int
		side            float64 // of the square where the crowd is
		still           bool
		handed, changed float64 // a minute, at most
	}{{100, 100, 100, false, 3, 1}, {100, 100, 30, false, 3, 1}, {100, 100, 100, true, 0, 0}, {30, 30, 100, true, 0, 0}} {
		const minutes = 6
		handed, changed, times := 0, 0, 0.0
		for seed := *first; seed < *first+seeds; seed++ {
			g := newCrowd(t, seed, 0, c.home+c.others, 4, 100)
			g.still = c.still
			gather := func(x, y, weight float64) {
				g.homeAt = square{x, y, c.side}
				for i := range g.actors {
					if w := &g.actors[i]; i < c.home {
						w.home, w.weight, w.x, w.y = true, weight, x+c.side*g.rng.Float64(), y+c.side*g.rng.Float64()
					}
				}
			}
			gather(0, 0, 10)
			g.heaviest(4 * time.Minute)
			wasHanded, wasChanged := g.handed, g.changed
			times += g.heaviest(minutes * time.Minute)
			handed, changed = handed+g.handed-wasHanded, changed+g.changed-wasChanged
			t.Logf("seed %d: %d parts at %v, %d were handed, %d zones split or merged", seed, g.parts(0), g.now, g.handed, g.changed)
			if g.parts(0) < 4 {
				t.Errorf("seed %d: it wasn't split", seed)
			}
			gather(300, 300, 10)
			g.heaviest(10 * time.Minute)
			if g.parts(0) != 1 || g.parts(15) < 4 {
				t.Errorf("seed %d: %d parts where the crowd was, %d where it is", seed, g.parts(0), g.parts(15))
			}
			gather(300, 300, 0)
			g.heaviest(10 * time.Minute)
			for zone := range g.values {
				if g.parts(zone) != 1 {
					t.Errorf("seed %d: zone %d has %d parts, and nobody is there", seed, zone, g.parts(zone))
				}
			}
			for _, s := range g.servers {
				if n := s.keeper.Counters.Failed; n > 0 || s.zone.table.Splits != nil {
					t.Errorf("seed %d: %s has %d failures, and splits %v", seed, s.id, n, s.zone.table.Splits)
				}
			}
		}
		perMinute := 1 / float64(seeds*minutes)
		t.Logf("seeds %d to %d: %d of a crowd in %v and %d others, still %v: %.2f zones and parts a minute are handed, %.2f split or merged; the heaviest weighs %.2f of the mean", *first, *first+seeds-1, c.home, c.side, c.others, c.still,
			float64(handed)*perMinute, float64(changed)*perMinute, times/float64(seeds))
		if float64(handed)*perMinute > c.handed || float64(changed)*perMinute > c.changed || times/float64(seeds) > 1.5 {
			t.Errorf("that is more than %.2f and %.2f, or too heavy", c.handed, c.changed)
		}
	}
}

// TestCrowdSettles: a crowd's zones are divided within two minutes, so that no server weighs much more than the mean. Then zones hardly change hands any more, though all walk about, and none does when nobody walks.
func TestCrowdSettles(t *testing.T) {
	seeds := uint64(3)
	if os.Getenv("CI") != "" && !testing.Short() {
		seeds = 5
	}
	for _, c := range []struct {
		home, others int
		still        bool
		handed, back float64 // a minute, at most
	}{{100, 100, false, 3, 1}, {30, 30, false, 8, 2.5}, {0, 200, false, 0.5, 0.25}, {100, 100, true, 0, 0}, {10, 20, true, 0, 0}} {
		const minutes = 5
		handed, back, times := 0, 0, 0.0
		for seed := *first; seed < *first+seeds; seed++ {
			g := newCrowd(t, seed, c.home, c.others, 8, 0)
			g.still = c.still
			g.heaviest(2 * time.Minute)
			wasHanded, wasBack := g.handed, g.back
			times += g.heaviest(minutes * time.Minute)
			handed, back = handed+g.handed-wasHanded, back+g.back-wasBack
			if c.home > 0 && wasHanded < 4 {
				t.Errorf("seed %d: the crowd's zones weren't divided: %d were handed", seed, wasHanded)
			}
		}
		perMinute := 1 / float64(seeds*minutes)
		t.Logf("seeds %d to %d: %d of a crowd and %d others, still %v: %.2f zones a minute are handed, %.2f of them back; the heaviest weighs %.2f of the mean", *first, *first+seeds-1, c.home, c.others, c.still,
			float64(handed)*perMinute, float64(back)*perMinute, times/float64(seeds))
		if float64(handed)*perMinute > c.handed || float64(back)*perMinute > c.back || times/float64(seeds) > 1.5 {
			t.Errorf("that is more than %.2f and %.2f, or too heavy", c.handed, c.back)
		}
	}
}
