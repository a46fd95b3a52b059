package mesh

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// crowd is four servers' Keepers that weigh, on a plane of 8 by 8 zones. Actors are only places: an actor is mirrored by all, and its owner is the server that has held its zone for a moment.
type crowd struct {
	t       testing.TB
	rng     *mathrand.Rand
	now     time.Duration
	servers []*scale
	store   map[string]kv.Event
	rev     uint64
	actors  []walker
	holders map[string]string // of zones, by the store
	former  map[string]string // who has handed it last
	handed  int
	back    int // zones that were handed to who has handed them
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

const (
	crowdCell    = 50.0
	crowdColumns = 8
)

func newCrowd(t testing.TB, seed uint64, home, others int) *crowd {
	g := &crowd{t: t, rng: mathrand.New(mathrand.NewPCG(seed, 1)), store: map[string]kv.Event{}, holders: map[string]string{}, former: map[string]string{}, way: 3 * time.Second}
	for i := range home + others {
		w := walker{home: i < home, weight: 1, x: 400 * g.rng.Float64(), y: 400 * g.rng.Float64()}
		if w.home {
			w.weight, w.x, w.y = 10, 150*g.rng.Float64(), 150*g.rng.Float64()
		}
		g.actors = append(g.actors, w)
	}
	plan := Table{Cell: crowdCell, Columns: crowdColumns}
	zones := make([][]string, 4)
	for i := range crowdColumns * crowdColumns {
		name := fmt.Sprint("z", i)
		plan.Servers = append(plan.Servers, name)
		at := i/(crowdColumns/2)%2 + i/(crowdColumns*crowdColumns/2)*2
		zones[at] = append(zones[at], name)
	}
	for i := range 4 {
		s := &scale{solo: &solo{t: t, state: []byte("state")}, id: string([]byte{'a' + byte(i)})}
		s.world = actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: 4}})
		require.NoError(t, s.world.Register("Sheep", (*sheep)(nil)))
		var err error
		s.zone, err = NewZone(ZoneConfig{ID: s.id, World: s.world, Game: s, Table: Table{Epoch: 1, Cell: crowdCell, Columns: 1, Servers: []string{s.id}}, Margin: 10, Hysteresis: 1, Key: [32]byte{1}, Rand: rand.Reader, ToServer: func(string, []byte) {}})
		require.NoError(t, err)
		s.keeper, err = NewKeeper(KeeperConfig{Zone: s.zone, Plan: plan, Zones: zones[i], Weight: func(a Actor) float64 { return g.actors[a.(*sheep).Name].weight }, Save: func(Actor) []byte { return s.state }})
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
			w.x, w.y = walk(w.x, 0, 150), walk(w.y, 0, 150)
		} else {
			w.x, w.y = walk(w.x, 0, 400), walk(w.y, 0, 400)
		}
		holder := g.holders[fmt.Sprint("z", int(w.x/crowdCell)+crowdColumns*int(w.y/crowdCell))]
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
			if was := g.holders[name]; was != "" {
				g.handed++
				if g.former[name] == v.holder {
					g.back++
				}
				g.former[name] = was
			}
			g.holders[name] = v.holder
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
		m[g.holders[fmt.Sprint("z", int(w.x/crowdCell)+crowdColumns*int(w.y/crowdCell))]] += w.weight
	}
	return m
}

// TestCrowdSettles: a crowd's zones are divided within two minutes, so that no server weighs much more than the mean. Then zones hardly change hands any more, though all walk about, and none does when nobody walks.
func TestCrowdSettles(t *testing.T) {
	seeds := uint64(3)
	if os.Getenv("CI") != "" && !testing.Short() {
		seeds = 10
	}
	for _, c := range []struct {
		home, others int
		still        bool
		handed, back float64 // a minute, at most
	}{{100, 100, false, 3, 1}, {30, 30, false, 8, 2.5}, {0, 200, false, 0.5, 0.25}, {100, 100, true, 0, 0}, {10, 20, true, 0, 0}} {
		const minutes = 5
		handed, back, heaviest, mean := 0, 0, 0.0, 0.0
		for seed := *first; seed < *first+seeds; seed++ {
			g := newCrowd(t, seed, c.home, c.others)
			g.still = c.still
			for g.now < 2*time.Minute {
				g.step()
			}
			wasHanded, wasBack := g.handed, g.back
			for n := 0; g.now < (2+minutes)*time.Minute; n++ {
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
			handed, back = handed+g.handed-wasHanded, back+g.back-wasBack
			if c.home > 0 && wasHanded < 4 {
				t.Errorf("seed %d: the crowd's zones weren't divided: %d were handed", seed, wasHanded)
			}
		}
		perMinute := 1 / float64(seeds*minutes)
		t.Logf("seeds %d to %d: %d of a crowd and %d others, still %v: %.2f zones a minute are handed, %.2f of them back; the heaviest weighs %.2f of the mean", *first, *first+seeds-1, c.home, c.others, c.still,
			float64(handed)*perMinute, float64(back)*perMinute, heaviest/mean)
		if float64(handed)*perMinute > c.handed || float64(back)*perMinute > c.back || heaviest > 1.5*mean {
			t.Errorf("that is more than %.2f and %.2f, or too heavy", c.handed, c.back)
		}
	}
}
