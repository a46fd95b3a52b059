package mesh

import (
	"crypto/rand"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// newScales returns server "a" with a Keeper that weighs, which holds all zones of a plan of so many cells in rows of so many. Others hold what the test says.
func newScales(t testing.TB, cells, columns int, weight func(Actor) float64) *solo {
	s := &solo{t: t, world: actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: 0, Servers: 4}}), state: []byte("state")}
	require.NoError(t, s.world.Register("Sheep", (*sheep)(nil)))
	var err error
	s.zone, err = NewZone(ZoneConfig{ID: "a", World: s.world, Game: s, Table: Table{Epoch: 1, Cell: 10, Columns: 1, Servers: []string{"a"}}, Margin: 10, Hysteresis: 1, Key: [32]byte{1}, Rand: rand.Reader, ToServer: func(string, []byte) {}})
	require.NoError(t, err)
	plan := Table{Cell: 10, Columns: columns}
	for i := range cells {
		plan.Servers = append(plan.Servers, fmt.Sprint("z", i))
	}
	s.keeper, err = NewKeeper(KeeperConfig{Zone: s.zone, Plan: plan, Zones: plan.Servers, Weight: weight, Save: func(Actor) []byte { return s.state }})
	require.NoError(t, err)
	k := s.keeper
	k.now, k.current, k.mine.held, k.mine.acked, k.mine.until = time.Hour, true, true, time.Hour, 2*time.Hour
	for _, z := range k.zones {
		z.rev, z.value = 1, zoneValue{1, wholly(k.id)}
	}
	s.server(k.id, 0)
	return s
}

// server has the Keeper hear of a server, and of the load that its lease tells.
func (s *solo) server(id string, load uint64) {
	s.rev++
	v := leaseValue{beat: splitBeats + s.rev, length: 2 * time.Second, load: load}
	s.keeper.heardLease(id, &kv.Event{Kind: kv.Changed, Value: v.append(nil), Revision: s.rev})
	s.keeper.lease(id).since = 0
}

// leaves has the Keeper hear that a server leaves.
func (s *solo) leaves(id string) {
	s.rev++
	v := leaseValue{beat: s.rev, length: 2 * time.Second, load: 1, leaves: true}
	s.keeper.heardLease(id, &kv.Event{Kind: kv.Changed, Value: v.append(nil), Revision: s.rev})
}

// weigh gives zones what their actors weigh, and returns the zones that are handed at once, and to whom.
func (s *solo) weigh(weights map[int]uint64) map[string]string {
	k := s.keeper
	k.load.told, k.load.fresh, k.ops = 1, true, nil
	for i := range k.zones {
		k.zones[i].shares[0].mean = weights[i]
		k.load.told += weights[i]
	}
	k.stepWeight()
	handed := map[string]string{}
	for _, op := range k.ops {
		var v zoneValue
		require.True(s.t, v.read(op.Value))
		handed[op.Key] = v.parts[0].holder
	}
	return handed
}

// TestCrowdStays: a crowd that is nearly all that its server has stays there, when another server has nothing: it would go back as soon as an actor comes by there. What is around it goes, and so does one of two crowds.
func TestCrowdStays(t *testing.T) {
	for _, c := range []struct {
		weights map[int]uint64
		handed  map[string]string
	}{
		{map[int]uint64{2: 100_000}, map[string]string{}},
		{map[int]uint64{2: 100_000, 3: 1000}, map[string]string{"mesh.zone.z3": "b"}},
		{map[int]uint64{2: 100_000, 3: 90_000}, map[string]string{"mesh.zone.z2": "b"}},
		{map[int]uint64{2: 100_000, 3: 40_000}, map[string]string{"mesh.zone.z3": "b"}}, // more than two thirds of what b has less
	} {
		s := newScales(t, 4, 4, func(Actor) float64 { return 1 })
		s.keeper.zones[1].value.parts = wholly("b")
		s.server("b", 1)
		require.Equal(t, c.handed, s.weigh(c.weights))
	}
}

// TestLittleHeavier: no zone is handed by a server that is only a little heavier.
func TestLittleHeavier(t *testing.T) {
	for load, n := range map[uint64]int{6300: 0, 5700: 2} {
		s := newScales(t, 10, 10, func(Actor) float64 { return 1 })
		s.server("b", load)
		weights := map[int]uint64{}
		for i := range 10 {
			weights[i] = 1000
		}
		require.Len(t, s.weigh(weights), n)
	}
}

// TestUnweighed: a server whose lease doesn't say what its actors weigh, since it has no Weight or is of another version, isn't taken for the lightest one. One without actors is.
func TestUnweighed(t *testing.T) {
	s := newScales(t, 2, 2, func(Actor) float64 { return 1 })
	s.keeper.load.told = 0
	s.keeper.weigh()
	none := s.keeper.load.told
	require.NotZero(t, none)
	require.Zero(t, new(load).told)
	s.server("b", 0)
	s.keeper.heardLease("c", &kv.Event{Kind: kv.Changed, Value: []byte{leaseVersion - 1}, Revision: 1})
	s.keeper.lease("c").since = 0
	require.Empty(t, s.weigh(map[int]uint64{0: 1000, 1: 1000}))
	s.server("d", none)
	require.Equal(t, map[string]string{"mesh.zone.z0": "d"}, s.weigh(map[int]uint64{0: 1000, 1: 1000}))
}

// TestHeavyTakesLast: the server that weighs most takes over last, though it has handed all zones but its crowd's to others and holds the fewest.
func TestHeavyTakesLast(t *testing.T) {
	s := newScales(t, 8, 4, func(Actor) float64 { return 1 })
	for i, z := range s.keeper.zones[1:] {
		z.value.parts = wholly([]string{"b", "c"}[i%2])
	}
	s.server("b", 20_000)
	s.server("c", 30_000)
	s.weigh(map[int]uint64{0: 100_000})
	require.EqualValues(t, 2, s.keeper.rank())
	s.weigh(map[int]uint64{0: 25_000})
	require.EqualValues(t, 1, s.keeper.rank())
}

// TestWeighs: any number is a weight, and those below 0 and no numbers are 0. An actor that the game has destroyed isn't asked about.
func TestWeighs(t *testing.T) {
	weight := math.Inf(1)
	asked := 0
	s := newScales(t, 2, 2, func(a Actor) float64 {
		require.NotNil(t, a.(*sheep).World())
		asked++
		return weight
	})
	var last *sheep
	for range 2 {
		last = &sheep{}
		require.NoError(t, s.world.Spawn(last))
		require.NoError(t, s.zone.Own(last, 1))
	}
	for _, c := range []struct {
		weight float64
		total  uint64
	}{{math.Inf(1), 2 * 1000 * mostWeight}, {math.MaxFloat64, 2 * 1000 * mostWeight}, {math.Inf(-1), 0}, {math.NaN(), 0}, {-1, 0}, {2, 4000}} {
		weight = c.weight
		s.keeper.unweighed()
		s.keeper.weigh()
		require.Equal(t, c.total, s.keeper.load.told-1, "%v", c.weight)
	}
	require.Equal(t, 12, asked)
	require.NoError(t, s.world.Destroy(last))
	s.keeper.weigh()
	require.Equal(t, 13, asked)
}

// TestWhoseWeight: an actor weighs at the server that keeps it, or will: by Hysteresis it stays where it was a little beyond the border, and one that is on its way to this server weighs here already.
func TestWhoseWeight(t *testing.T) {
	s := newScales(t, 2, 2, func(Actor) float64 { return 1 })
	k := s.keeper
	k.zones[1].value.parts = wholly("b")
	k.zonesChanged()
	k.retable()
	require.Equal(t, "b", s.zone.table.At(15, 5))
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	r := s.zone.add(a.GUID())
	r.a = a
	for _, c := range []struct {
		x            float64
		owner        string
		weighs, zone uint64
	}{{5, "a", 1000, 1000}, {9.5, "a", 1000, 1000}, {10.5, "a", 1000, 0}, {15, "a", 0, 0}, {15, "b", 0, 0}, {10.5, "b", 0, 0}, {9.5, "b", 0, 0}, {5, "b", 1000, 1000}, {5, "", 1000, 1000}, {15, "", 0, 0}} {
		a.X, r.owner = c.x, c.owner
		k.unweighed()
		k.weigh()
		require.Equal(t, c.weighs, k.load.told-1, "%+v", c)
		require.Equal(t, c.zone, k.zones[0].shares[0].mean, "%+v", c)
	}
}

// TestHeaviestHandsFirst: of two servers that have more to do than a new one the heavier hands it zones first, and the other one then waits for as long again. Nothing was handed for long, as after a time without the store.
func TestHeaviestHandsFirst(t *testing.T) {
	s := newScales(t, 8, 4, func(Actor) float64 { return 1 })
	k, weights := s.keeper, map[int]uint64{0: 1000, 1: 1000, 2: 1000, 3: 1000}
	for _, z := range k.zones[4:] {
		z.value.parts = wholly("b")
	}
	k.retable()
	after := func(d time.Duration, b, c uint64) int {
		k.now += d
		s.server("b", b)
		s.server("c", c)
		for _, z := range k.zones {
			z.tryAt, z.shares[0].to = 0, "" // what was handed has come back
		}
		k.load.fresh = false
		k.stepSpread()
		if !k.rests() {
			return 0
		}
		return len(s.weigh(weights))
	}
	require.Equal(t, 0, after(0, 5000, 1))
	require.Equal(t, 0, after(900*time.Millisecond, 5000, 1))
	require.Equal(t, 2, after(100*time.Millisecond, 5000, 1))
	require.Equal(t, 0, after(0, 5000, 4000), "nobody is lighter")
	require.Equal(t, 0, after(10*time.Second, 5000, 1), "it waits anew")
	require.Equal(t, 2, after(time.Second, 5000, 1))
	k.begins(1) // the watch was broken
	k.current = true
	require.Equal(t, 0, after(10*time.Second, 5000, 1), "it waits anew")
	require.Equal(t, 2, after(time.Second, 5000, 1))
	k.zones[7].at = k.now // b has handed one
	require.Equal(t, 0, after(9*time.Second, 5000, 1))
	require.Equal(t, 0, after(time.Second, 5000, 1), "it waits anew")
	require.Equal(t, 2, after(0, 3000, 1), "it is the heaviest")
}

// TestLeavingGetsNothing: a server that leaves is handed no zone, with Weight or without, nor by Hand, and takes over after all others.
func TestLeavingGetsNothing(t *testing.T) {
	weight := func(Actor) float64 { return 1 }
	s := newScales(t, 4, 4, weight)
	k, crowded := s.keeper, map[int]uint64{0: 1000, 1: 1000, 2: 1000, 3: 1000}
	s.server("b", 1)
	require.NotEmpty(t, s.weigh(crowded))
	require.NoError(t, k.Hand("z0", "b"))
	k.zones[0].shares[0].to = ""
	for _, z := range k.zones {
		z.tryAt = 0
	}
	s.leaves("b")
	require.Empty(t, s.weigh(crowded))
	require.ErrorIs(t, k.Hand("z0", "b"), ErrZone)
	k.stepCount()
	require.Empty(t, k.ops)
	require.EqualValues(t, 0, k.rank())
	s.server("c", 5000)
	require.EqualValues(t, 0, k.rank())
	k.Leave()
	require.EqualValues(t, 1, k.rank())
}

// TestLeavingIsTold: the others hear at once that a server leaves, not with the next beat of its lease.
func TestLeavingIsTold(t *testing.T) {
	s := newScales(t, 1, 1, nil)
	k := s.keeper
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.NoError(t, s.zone.Own(a, 1)) // the store doesn't have it yet: the lease goes on for a while
	leaves := func() bool {
		k.ops = nil
		k.renew()
		require.Len(t, k.ops, 1)
		var v leaseValue
		require.True(t, v.read(k.ops[0].Value))
		k.result(kv.Event{ID: k.ops[0].ID, Status: kv.OK, Revision: 2})
		return v.leaves
	}
	require.False(t, leaves())
	k.Leave()
	require.True(t, leaves())
}

// TestMostCells: with as many zones as a Plan has at most, 16 are chosen in a moment. Comparing each with each cell takes minutes, in one Step.
func TestMostCells(t *testing.T) {
	s := newScales(t, maxCells, 256, func(Actor) float64 { return 1 })
	s.server("b", 1)
	weights := map[int]uint64{}
	for i := range maxCells {
		weights[i] = 1000
	}
	s.keeper.zones[500].value.parts = wholly("b")
	require.Len(t, s.weigh(weights), mostHanded)
	s.keeper.retable()
	require.True(t, s.keeper.tabled)
}

// BenchmarkKeeperWeight is the choice of 16 of 4096 zones.
func BenchmarkKeeperWeight(b *testing.B) {
	s := newScales(b, 4096, 64, func(Actor) float64 { return 1 })
	s.server("b", 1)
	for _, z := range s.keeper.zones {
		z.shares[0].mean = 1000
	}
	for b.Loop() {
		for range mostHanded {
			s.keeper.toHand("b", 1<<40)
		}
	}
}

// unweighed has the Keeper begin anew with what actors weigh.
func (k *Keeper) unweighed() {
	k.load = load{}
	for _, t := range k.zones {
		t.shares = make([]share, len(t.value.parts))
	}
}

// BenchmarkStepOfManyZones is what a Step costs that has nothing to do, by how many zones there are.
func BenchmarkStepOfManyZones(b *testing.B) {
	for _, n := range []int{256, 4096, maxCells} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newScales(b, n, 256, func(Actor) float64 { return 1 })
			k := s.keeper
			for i := range 16 {
				s.server(fmt.Sprint("b", i), 1)
			}
			for i, z := range k.zones {
				z.value.parts = wholly(k.leases[i%len(k.leases)].id)
			}
			k.zonesChanged()
			b.ReportAllocs()
			for b.Loop() {
				k.stepLeases()
			}
		})
	}
}
